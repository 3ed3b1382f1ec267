// SPDX-License-Identifier: GPL-2.0
/*
 * For qemu/tests only: registers an fprobe that is never hit, so that the first fprobe of another
 * module need not register those of the whole kernel. If there is no memory for that, no fprobe can
 * be registered until the kernel boots again (reports/fgraph-failed-registration.txt).
 */
#include <linux/fprobe.h>
#include <linux/module.h>

/* Only a probe of the return needs the function graph tracer. */
static void returned(struct fprobe *fp, unsigned long entry_ip, unsigned long ret_ip,
		     struct ftrace_regs *regs, void *entry_data)
{
}

static struct fprobe probe = { .exit_handler = returned };

static int __init keep_fprobe_init(void)
{
	const char *symbol = "orderly_poweroff";

	return register_fprobe_syms(&probe, &symbol, 1);
}
module_init(keep_fprobe_init);

static void __exit keep_fprobe_exit(void)
{
	unregister_fprobe(&probe);
}
module_exit(keep_fprobe_exit);

MODULE_DESCRIPTION("An fprobe that is never hit");
MODULE_LICENSE("GPL");
