// SPDX-License-Identifier: GPL-2.0
/*
 * For qemu/tests only: while this module is loaded, the driver of a device refuses to
 * move the queue pairs of rpcrdma_cm to the error state.
 *
 * The drivers in the tests never do that by themselves, and the kernel's fault injection
 * cannot make ib_modify_qp() fail. So a kprobe adds an attribute that no driver knows to
 * the mask that the driver is called with. It also makes the local ACK timeout of these
 * queue pairs infinite, so that a message that the peer does not take never fails.
 */
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/ptrace.h>
#include <linux/string.h>
#include <rdma/ib_verbs.h>

static char *function = "rxe_modify_qp";
module_param(function, charp, 0400);
MODULE_PARM_DESC(function, "The function of the driver (rxe_modify_qp)");

static unsigned int refused;
module_param(refused, uint, 0400);
MODULE_PARM_DESC(refused, "The number of queue pairs that it refused to move");

static void set_mask(struct pt_regs *regs, int mask)
{
#if defined(CONFIG_X86_64)
	regs->dx = mask;
#elif defined(CONFIG_ARM64)
	regs->regs[2] = mask;
#else
#error "name the register that holds the third argument on this architecture"
#endif
}

/* int modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata) */
static int refuse(struct kprobe *probe, struct pt_regs *regs)
{
	const struct ib_qp *qp = (void *)regs_get_kernel_argument(regs, 0);
	struct ib_qp_attr *attr = (void *)regs_get_kernel_argument(regs, 1);
	int mask = regs_get_kernel_argument(regs, 2);

	if (!qp->res.kern_name || strcmp(qp->res.kern_name, "rpcrdma_cm"))
		return 0;
	if (mask & IB_QP_TIMEOUT)
		attr->timeout = 0;
	if (mask & IB_QP_STATE && attr->qp_state == IB_QPS_ERR) {
		set_mask(regs, mask | ~IB_QP_ATTR_STANDARD_BITS);
		refused++;
	}
	return 0;
}

static struct kprobe probe = { .pre_handler = refuse };

static int __init refuse_qp_init(void)
{
	probe.symbol_name = function;
	return register_kprobe(&probe);
}
module_init(refuse_qp_init);

static void __exit refuse_qp_exit(void)
{
	unregister_kprobe(&probe);
}
module_exit(refuse_qp_exit);

MODULE_DESCRIPTION("Makes a device refuse to fail queue pairs, for tests of rpcrdma_cm");
MODULE_LICENSE("GPL");
