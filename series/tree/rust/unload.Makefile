obj-$(CONFIG_RUST) += unload.o
