/* SPDX-License-Identifier: GPL-2.0 */
/* What the Rust type UnloadGuard is made of, and work queues of a module's own. */
#ifndef _LINUX_RUST_UNLOAD_H
#define _LINUX_RUST_UNLOAD_H

#include <linux/completion.h>
#include <linux/refcount.h>
#include <linux/types.h>

struct module;
struct workqueue_struct;

@struct rpcrdma_cm_holds

@prototypes shim_alloc_workqueue shim_flush_workqueue shim_unload shim_hold

#endif /* _LINUX_RUST_UNLOAD_H */
