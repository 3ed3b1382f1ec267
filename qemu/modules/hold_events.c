// SPDX-License-Identifier: GPL-2.0
/*
 * For qemu/tests only: the work of rpcrdma_cm that reports events does nothing while this module
 * is loaded. With ids=N, it does nothing while N ids of an owner that rpcrdma_cm does not know
 * come and go.
 */
#include <linux/err.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>
#include <rdma/rdma_cm.h>

static bool hold = true;

static unsigned int ids;
module_param(ids, uint, 0400);
MODULE_PARM_DESC(ids, "How many ids come and go");

/* Takes the place of report_events(). */
static noinline void report_nothing(struct work_struct *work)
{
}

static int skip(struct kprobe *probe, struct pt_regs *regs)
{
	if (!READ_ONCE(hold))
		return 0;
	instruction_pointer_set(regs, (unsigned long)report_nothing);
	return 1;
}

/* A probe with a post_handler is not optimized, so that skip() may change the address. */
static void do_nothing(struct kprobe *probe, struct pt_regs *regs, unsigned long flags)
{
}

static struct kprobe probe = {
	.symbol_name = "rpcrdma_cm:report_events",
	.pre_handler = skip,
	.post_handler = do_nothing,
};

static int never_called(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	return 0;
}

static int __init hold_events_init(void)
{
	struct rdma_cm_id *id;
	unsigned int i;
	int ret;

	ret = register_kprobe(&probe);
	if (ret)
		return ret;
	for (i = 0; i < ids; i++) {
		id = rdma_create_id(&init_net, never_called, NULL, RDMA_PS_TCP, IB_QPT_RC);
		if (IS_ERR(id)) {
			unregister_kprobe(&probe);
			return PTR_ERR(id);
		}
		rdma_destroy_id(id);
	}
	if (ids)
		WRITE_ONCE(hold, false);
	return 0;
}
module_init(hold_events_init);

static void __exit hold_events_exit(void)
{
	unregister_kprobe(&probe);
}
module_exit(hold_events_exit);

MODULE_DESCRIPTION("Holds back the events of rpcrdma_cm");
MODULE_LICENSE("GPL");
