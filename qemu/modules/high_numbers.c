// SPDX-License-Identifier: GPL-2.0
/*
 * For qemu/tests only: the resource tracker numbers the next ids of rdma_cm from 16 million
 * on, as it does when so many have come and gone.
 */
#include <linux/module.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>
#include <rdma/restrack.h>

#define HIGH	(16 * 1024 * 1024)

/* As in drivers/infiniband/core/restrack.h. */
struct rdma_restrack_root {
	struct xarray xa;
	u32 next_id;
};

static u32 next = HIGH;

static int set_next(struct ib_device *device)
{
	device->res[RDMA_RESTRACK_CM_ID].next_id = next;
	/* The device does not become a device of this client. */
	return -EOPNOTSUPP;
}

static int set_all(void)
{
	struct ib_client client = { .name = KBUILD_MODNAME, .add = set_next };
	int ret = ib_register_client(&client);

	if (!ret)
		ib_unregister_client(&client);
	return ret;
}

static int __init high_numbers_init(void)
{
	return set_all();
}
module_init(high_numbers_init);

static void __exit high_numbers_exit(void)
{
	next = 0;
	set_all();
}
module_exit(high_numbers_exit);

MODULE_DESCRIPTION("High numbers for ids of rdma_cm");
MODULE_LICENSE("GPL");
