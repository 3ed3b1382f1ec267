// SPDX-License-Identifier: GPL-2.0
/*
 * For qemu/tests only: the CM does not handle the next REP for a connection of rpcrdma_cm
 * until the peer has rejected that connection.
 */
#include <linux/delay.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/nmi.h>
#include <linux/ptrace.h>
#include <linux/string.h>
#include <rdma/ib_cm.h>
#include <rdma/rdma_cm.h>

/* Less than the time after which the kernel reports a processor that does not schedule. */
#define LIMIT_MS	10000

static unsigned int delayed;
module_param(delayed, uint, 0400);
MODULE_PARM_DESC(delayed, "The number of replies that were delayed");

static bool is_of_rpcrdma_cm(const struct ib_cm_id *cm_id)
{
	/* The context is the private structure of rdma_cm, which begins with this one. */
	const struct rdma_cm_id *id = cm_id->context;

	return id->qp && id->qp->res.kern_name && !strcmp(id->qp->res.kern_name, "rpcrdma_cm");
}

/* Whether the CM has got a REP, and neither an RTU was sent nor a REJ has arrived. */
static bool has_reply(const struct ib_cm_id *cm_id)
{
	enum ib_cm_state state = READ_ONCE(cm_id->state);

	return state == IB_CM_REP_RCVD || state == IB_CM_MRA_REP_SENT;
}

/* int ib_cm_init_qp_attr(struct ib_cm_id *cm_id, ...), with which rdma_cm begins to handle a REP */
static int delay(struct kprobe *probe, struct pt_regs *regs)
{
	const struct ib_cm_id *cm_id = (void *)regs_get_kernel_argument(regs, 0);
	int waited;

	if (delayed || !has_reply(cm_id) || !is_of_rpcrdma_cm(cm_id))
		return 0;
	delayed++;
	for (waited = 0; waited < LIMIT_MS && has_reply(cm_id); waited++) {
		mdelay(1);
		touch_softlockup_watchdog();
	}
	return 0;
}

static struct kprobe probe = {
	.symbol_name = "ib_cm_init_qp_attr",
	.pre_handler = delay,
};

static int __init slow_reply_init(void)
{
	return register_kprobe(&probe);
}
module_init(slow_reply_init);

static void __exit slow_reply_exit(void)
{
	unregister_kprobe(&probe);
}
module_exit(slow_reply_exit);

MODULE_DESCRIPTION("Delays a REP until the connection is rejected");
MODULE_LICENSE("GPL");
