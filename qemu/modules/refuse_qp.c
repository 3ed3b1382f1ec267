// SPDX-License-Identifier: GPL-2.0
/*
 * For qemu/tests only: while this module is loaded, the driver of a device refuses to
 * move the queue pairs of rpcrdma_cm to the error state. With keep=1, it also refuses to
 * initialize the queue pairs that rdma_cm makes, and to destroy them. With mappings=N, it
 * only seems that the driver cannot map the next N memory regions of rpcrdma_cm.
 *
 * The drivers in the tests never do that by themselves, and the kernel's fault injection
 * cannot make ib_modify_qp() fail. So a kprobe adds an attribute that no driver knows to
 * the mask that the driver is called with. It also makes the local ACK timeout of these
 * queue pairs infinite, so that a message that the peer does not take never fails. Another
 * kprobe calls a function that fails, in place of that of the driver.
 */
#include <linux/atomic.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/ptrace.h>
#include <linux/refcount.h>
#include <linux/string.h>
#include <linux/sysfs.h>
#include <rdma/ib_verbs.h>

static char *function = "rxe_modify_qp";
module_param(function, charp, 0400);
MODULE_PARM_DESC(function, "The function of the driver (rxe_modify_qp)");

static unsigned int refused;
module_param(refused, uint, 0400);
MODULE_PARM_DESC(refused, "The number of queue pairs that it refused to move");

static bool keep;
module_param(keep, bool, 0400);
MODULE_PARM_DESC(keep, "Whether rxe initializes and destroys no queue pairs, either (N)");

static int mappings;
module_param(mappings, int, 0400);
MODULE_PARM_DESC(mappings, "How many mappings of memory regions fail (none)");

/* That of the last queue pair that was refused. It must not have been removed since. */
static struct ib_device *device;

static int get_references(char *buffer, const struct kernel_param *kp)
{
	return device ? sysfs_emit(buffer, "%u\n", refcount_read(&device->refcount)) : -ENODEV;
}

static const struct kernel_param_ops references_ops = { .get = get_references };
module_param_cb(references, &references_ops, NULL, 0400);
MODULE_PARM_DESC(references, "How many references to the device are held");

static atomic_t mappings_left;

static bool is_of(const struct rdma_restrack_entry *res, const char *owner)
{
	return res->kern_name && !strcmp(res->kern_name, owner);
}

static bool is_of_rpcrdma_cm(const struct rdma_restrack_entry *res)
{
	return is_of(res, "rpcrdma_cm");
}

/* Until rpcrdma_cm knows a queue pair, rdma_cm owns it. */
static bool is_new(const struct ib_qp *qp)
{
	return is_of(&qp->res, "rdma_cm");
}

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

	if (keep && is_new(qp))
		set_mask(regs, mask | ~IB_QP_ATTR_STANDARD_BITS);
	if (!is_of_rpcrdma_cm(&qp->res))
		return 0;
	if (mask & IB_QP_TIMEOUT)
		attr->timeout = 0;
	if (mask & IB_QP_STATE && attr->qp_state == IB_QPS_ERR) {
		set_mask(regs, mask | ~IB_QP_ATTR_STANDARD_BITS);
		refused++;
		device = qp->device;
	}
	return 0;
}

static struct kprobe probe = { .pre_handler = refuse };

static int busy(void)
{
	return -EBUSY;
}

/* int rxe_destroy_qp(struct ib_qp *qp, struct ib_udata *udata) */
static int keep_qp(struct kprobe *probe, struct pt_regs *regs)
{
	const struct ib_qp *qp = (void *)regs_get_kernel_argument(regs, 0);

	if (!is_new(qp) && !is_of_rpcrdma_cm(&qp->res))
		return 0;
	instruction_pointer_set(regs, (unsigned long)busy);
	return 1;
}

/* With a handler of this kind, the first one is called in a way that it can change the pointer. */
static void after_keep_qp(struct kprobe *probe, struct pt_regs *regs, unsigned long flags)
{
}

static struct kprobe keep_probe = {
	.symbol_name = "rxe_destroy_qp",
	.pre_handler = keep_qp,
	.post_handler = after_keep_qp,
};

/* int ib_map_mr_sg(struct ib_mr *mr, ...). Returns 1 if the result of this call is to stay. */
static int keep_result(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	const struct ib_mr *mr = (void *)regs_get_kernel_argument(regs, 0);

	return !is_of_rpcrdma_cm(&mr->pd->res) || atomic_dec_if_positive(&mappings_left) < 0;
}

static int replace_result(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	regs_set_return_value(regs, -EINVAL);
	return 0;
}

static struct kretprobe map_probe = {
	.kp.symbol_name = "ib_map_mr_sg",
	.entry_handler = keep_result,
	.handler = replace_result,
};

static int __init refuse_qp_init(void)
{
	struct kprobe *probes[] = { &probe, &keep_probe };

	if (mappings) {
		atomic_set(&mappings_left, mappings);
		return register_kretprobe(&map_probe);
	}
	probe.symbol_name = function;
	return register_kprobes(probes, keep ? 2 : 1);
}
module_init(refuse_qp_init);

static void __exit refuse_qp_exit(void)
{
	struct kprobe *probes[] = { &probe, &keep_probe };

	if (map_probe.kp.addr)
		unregister_kretprobe(&map_probe);
	else
		unregister_kprobes(probes, keep ? 2 : 1);
}
module_exit(refuse_qp_exit);

MODULE_DESCRIPTION("Makes a device refuse to fail or destroy queue pairs, or to map memory");
MODULE_LICENSE("GPL");
