// SPDX-License-Identifier: GPL-2.0

#include <linux/completion.h>
#include <linux/module.h>
#include <linux/refcount.h>
#include <linux/rust_unload.h>
#include <linux/workqueue.h>

@@shim_alloc_workqueue

@@shim_flush_workqueue

/*
 * The number of holds: objects through which the kernel may still call the module. The
 * unload guard has one, too, from when it is made until it is dropped. A count that
 * overflows is saturated, so that unloading waits for ever.
 */
static refcount_t holds = REFCOUNT_INIT(0);
static DECLARE_COMPLETION(no_holds);
/* Valid as long as there are holds. */
static struct workqueue_struct *teardown;

@@shim_unload_guard

@@shim_unload_wait

@@shim_unload_end

@@shim_hold

@@shim_hold_again

@@shim_hold_end
