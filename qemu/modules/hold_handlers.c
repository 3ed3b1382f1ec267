// SPDX-License-Identifier: GPL-2.0
/*
 * For qemu/tests only: holds the handler mutexes of the first ids of rdma_cm that are bound while
 * this module is loaded, until it is unloaded. The ids must stay until then.
 */
#include <linux/atomic.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/sched.h>
#include <rdma/rdma_cm.h>

#define IDS	3

static bool held[IDS];
module_param_array(held, bool, NULL, 0400);
MODULE_PARM_DESC(held, "Which mutexes are held");

static struct rdma_cm_id *bound[IDS];
static atomic_t count = ATOMIC_INIT(0);
static struct task_struct *threads[IDS];

static int keep_id(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	*(struct rdma_cm_id **)instance->data = (void *)regs_get_kernel_argument(regs, 0);
	return 0;
}

static int note_id(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	int n;

	if (regs_return_value(regs))
		return 0;
	n = atomic_fetch_inc(&count);
	if (n < IDS)
		WRITE_ONCE(bound[n], *(struct rdma_cm_id **)instance->data);
	return 0;
}

static struct kretprobe probe = {
	.kp.symbol_name = "rdma_bind_addr",
	.entry_handler = keep_id,
	.handler = note_id,
	.data_size = sizeof(struct rdma_cm_id *),
};

/* A thread for each id, because lockdep wants no two locks of a class in one. */
static int hold(void *number)
{
	long n = (long)number;

	while (!kthread_should_stop() && !READ_ONCE(bound[n]))
		schedule_timeout_idle(1);
	if (!READ_ONCE(bound[n]))
		return 0;
	rdma_lock_handler(bound[n]);
	WRITE_ONCE(held[n], true);
	while (!kthread_should_stop())
		schedule_timeout_idle(1);
	rdma_unlock_handler(bound[n]);
	return 0;
}

static void stop(void)
{
	int n;

	for (n = 0; n < IDS; n++) {
		if (!IS_ERR_OR_NULL(threads[n]))
			kthread_stop(threads[n]);
	}
}

static int __init hold_handlers_init(void)
{
	long n;
	int ret;

	for (n = 0; n < IDS; n++) {
		threads[n] = kthread_run(hold, (void *)n, "hold_handlers");
		if (IS_ERR(threads[n])) {
			ret = PTR_ERR(threads[n]);
			goto error;
		}
	}
	ret = register_kretprobe(&probe);
	if (!ret)
		return 0;
error:
	stop();
	return ret;
}
module_init(hold_handlers_init);

static void __exit hold_handlers_exit(void)
{
	unregister_kretprobe(&probe);
	stop();
}
module_exit(hold_handlers_exit);

MODULE_DESCRIPTION("Holds the handler mutexes of ids of rdma_cm");
MODULE_LICENSE("GPL");
