// SPDX-License-Identifier: GPL-2.0
/*
 * For qemu/tests only: the work of rpcrdma_cm that reports events waits as long as @hold is
 * set. With ids=N, N ids of an owner that rpcrdma_cm does not know come and go meanwhile.
 */
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/nmi.h>
#include <net/net_namespace.h>
#include <rdma/rdma_cm.h>

#define LIMIT_MS	10000

static bool hold = true;
module_param(hold, bool, 0600);
MODULE_PARM_DESC(hold, "Whether the work waits");

static unsigned int ids;
module_param(ids, uint, 0400);
MODULE_PARM_DESC(ids, "How many ids come and go");

static int wait(struct kprobe *probe, struct pt_regs *regs)
{
	int waited;

	for (waited = 0; waited < LIMIT_MS && READ_ONCE(hold); waited++) {
		mdelay(1);
		/* In a slow guest, a millisecond of mdelay() takes more than twice as long. */
		touch_softlockup_watchdog();
	}
	return 0;
}

static struct kprobe probe = {
	.symbol_name = "rpcrdma_cm:report_events",
	.pre_handler = wait,
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
	WRITE_ONCE(hold, false);
	unregister_kprobe(&probe);
}
module_exit(hold_events_exit);

MODULE_DESCRIPTION("Delays the events of rpcrdma_cm");
MODULE_LICENSE("GPL");
