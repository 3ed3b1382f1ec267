// SPDX-License-Identifier: GPL-2.0
/*
 * For qemu/tests only: the next hold of rpcrdma_cm that ends is kept until this module is
 * removed, as if an id had been forgotten. Unloading rpcrdma_cm must wait for it.
 */
#include <linux/atomic.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/ptrace.h>
#include <linux/rcupdate.h>

struct rpcrdma_cm_holds;

static atomic_t kept = ATOMIC_INIT(0);
/* The argument of the call that was skipped. */
static struct rpcrdma_cm_holds *kept_holds;

static int get_kept(char *buffer, const struct kernel_param *param)
{
	return sysfs_emit(buffer, "%d\n", atomic_read(&kept));
}

static const struct kernel_param_ops kept_ops = { .get = get_kept };
module_param_cb(kept, &kept_ops, NULL, 0400);
MODULE_PARM_DESC(kept, "Whether a hold is kept");

/* Takes the place of shim_hold_end(). */
static noinline void end_nothing(struct rpcrdma_cm_holds *holds)
{
}

static int keep(struct kprobe *probe, struct pt_regs *regs)
{
	if (atomic_xchg(&kept, 1))
		return 0;
	kept_holds = (void *)regs_get_kernel_argument(regs, 0);
	instruction_pointer_set(regs, (unsigned long)end_nothing);
	return 1;
}

/* A probe with a post_handler is not optimized, so that keep() may change the address. */
static void do_nothing(struct kprobe *probe, struct pt_regs *regs, unsigned long flags)
{
}

static struct kprobe probe = {
	.symbol_name = "rpcrdma_cm:shim_hold_end",
	.pre_handler = keep,
	.post_handler = do_nothing,
};

static int __init keep_hold_init(void)
{
	return register_kprobe(&probe);
}
module_init(keep_hold_init);

static void __exit keep_hold_exit(void)
{
	void (*hold_end)(struct rpcrdma_cm_holds *holds) = (void *)probe.addr;
	bool gone = kprobe_gone(&probe);

	unregister_kprobe(&probe);
	if (gone || !atomic_read(&kept))
		return;
	/* The memory of rpcrdma_cm is freed only after a grace period. */
	rcu_read_lock();
	hold_end(kept_holds);
	rcu_read_unlock();
}
module_exit(keep_hold_exit);

MODULE_DESCRIPTION("Keeps a hold of rpcrdma_cm, for its tests");
MODULE_LICENSE("GPL");
