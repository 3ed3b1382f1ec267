obj-$(CONFIG_INFINIBAND)		+= rpcrdma_cm/
