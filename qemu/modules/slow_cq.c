// SPDX-License-Identifier: GPL-2.0
/*
 * For qemu/tests only: while this module is loaded, a device takes long to create the
 * completion queues of rpcrdma_cm, as if memory had to be reclaimed first. Those of others
 * are not delayed.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/netdevice.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <rdma/ib_verbs.h>

static char *netdev = "";
module_param(netdev, charp, 0400);
MODULE_PARM_DESC(netdev, "The network interface of the device, in the namespace of insmod");

static unsigned int milliseconds;
module_param(milliseconds, uint, 0400);
MODULE_PARM_DESC(milliseconds, "How long it takes");

static struct ib_device *slow;
static int (*create_cq)(struct ib_cq *cq, const struct ib_cq_init_attr *attr,
			struct uverbs_attr_bundle *attrs);

static int create_slowly(struct ib_cq *cq, const struct ib_cq_init_attr *attr,
			 struct uverbs_attr_bundle *attrs)
{
	if (cq->res.kern_name && !strcmp(cq->res.kern_name, "rpcrdma_cm"))
		msleep(milliseconds);
	return create_cq(cq, attr, attrs);
}

static int __init slow_cq_init(void)
{
	struct net_device *interface = dev_get_by_name(current->nsproxy->net_ns, netdev);

	if (!interface)
		return -ENODEV;
	slow = ib_device_get_by_netdev(interface, RDMA_DRIVER_UNKNOWN);
	dev_put(interface);
	if (!slow)
		return -ENODEV;
	create_cq = slow->ops.create_cq;
	slow->ops.create_cq = create_slowly;
	return 0;
}
module_init(slow_cq_init);

/* Waits until no call is in this module any more. */
static void __exit slow_cq_exit(void)
{
	slow->ops.create_cq = create_cq;
	msleep(2 * milliseconds);
	ib_device_put(slow);
}
module_exit(slow_cq_exit);

MODULE_DESCRIPTION("Makes a device create completion queues slowly");
MODULE_LICENSE("GPL");
