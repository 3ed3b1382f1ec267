// SPDX-License-Identifier: GPL-2.0
/*
 * For qemu/tests only: while this module is loaded, a device takes long to take the first
 * Receive of each queue pair of rpcrdma_cm. The queue pair has the memory of all of its
 * Receives then, so this is as if the last of that memory had to be reclaimed. The queue
 * pairs of others are not delayed.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/netdevice.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

static char *netdev = "";
module_param(netdev, charp, 0400);
MODULE_PARM_DESC(netdev, "The network interface of the device, in the namespace of insmod");

static unsigned int milliseconds;
module_param(milliseconds, uint, 0400);
MODULE_PARM_DESC(milliseconds, "How long it takes");

static struct ib_device *slow;
static int (*post_recv)(struct ib_qp *qp, const struct ib_recv_wr *recv_wr,
			const struct ib_recv_wr **bad_recv_wr);

/* The queue pairs, by their numbers, whose first Receive was delayed. */
static DEFINE_XARRAY(delayed);

static int post_slowly(struct ib_qp *qp, const struct ib_recv_wr *recv_wr,
		       const struct ib_recv_wr **bad_recv_wr)
{
	/* rpcrdma_cm posts Receives only where it may sleep. */
	if (qp->res.kern_name && !strcmp(qp->res.kern_name, "rpcrdma_cm") &&
	    !xa_insert(&delayed, qp->qp_num, xa_mk_value(1), GFP_KERNEL))
		msleep(milliseconds);
	return post_recv(qp, recv_wr, bad_recv_wr);
}

static int __init slow_setup_init(void)
{
	struct net_device *interface = dev_get_by_name(current->nsproxy->net_ns, netdev);

	if (!interface)
		return -ENODEV;
	slow = ib_device_get_by_netdev(interface, RDMA_DRIVER_UNKNOWN);
	dev_put(interface);
	if (!slow)
		return -ENODEV;
	post_recv = slow->ops.post_recv;
	slow->ops.post_recv = post_slowly;
	return 0;
}
module_init(slow_setup_init);

/* Waits until no call is in this module any more. */
static void __exit slow_setup_exit(void)
{
	slow->ops.post_recv = post_recv;
	msleep(2 * milliseconds);
	ib_device_put(slow);
	xa_destroy(&delayed);
}
module_exit(slow_setup_exit);

MODULE_DESCRIPTION("Makes a device set queue pairs up slowly");
MODULE_LICENSE("GPL");
