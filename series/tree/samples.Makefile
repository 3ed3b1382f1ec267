obj-$(CONFIG_SAMPLE_RUST_RDMA_CM)		+= rust_rdma_cm.o
