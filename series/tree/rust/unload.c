// SPDX-License-Identifier: GPL-2.0

#include <linux/err.h>
#include <linux/module.h>
#include <linux/rust_unload.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

@@shim_alloc_workqueue

@@shim_flush_workqueue

@@shim_unload_guard

@@shim_unload_wait

@@shim_unload_end

@@shim_hold_again

@@shim_hold_end

@@shim_hold_queue
