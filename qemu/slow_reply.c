// SPDX-License-Identifier: GPL-2.0
/*
 * For qemu/tests only: while this module is loaded, the CM takes longer to handle the REP of a
 * connection of rpcrdma_cm, so that the peer's next message arrives meanwhile.
 */
#include <linux/delay.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/ptrace.h>
#include <linux/string.h>
#include <rdma/ib_cm.h>
#include <rdma/rdma_cm.h>

#define DELAY_MS 1000

static unsigned int delayed;
module_param(delayed, uint, 0400);
MODULE_PARM_DESC(delayed, "The number of delays that have begun");

/*
 * int ib_cm_init_qp_attr(struct ib_cm_id *cm_id, ...). rdma_cm calls it several times for a REP,
 * and only the first call is delayed.
 */
static int delay(struct kprobe *probe, struct pt_regs *regs)
{
	const struct ib_cm_id *cm_id = (void *)regs_get_kernel_argument(regs, 0);
	/* The context is rdma_cm's own structure, which begins with this one. */
	const struct rdma_cm_id *id = cm_id->context;

	if (delayed || !id->qp || !id->qp->res.kern_name ||
	    strcmp(id->qp->res.kern_name, "rpcrdma_cm"))
		return 0;
	delayed++;
	mdelay(DELAY_MS);
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

MODULE_DESCRIPTION("Delays the CM when it handles a REP");
MODULE_LICENSE("GPL");
