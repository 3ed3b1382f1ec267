/* SPDX-License-Identifier: GPL-2.0 */
/* The functions of trace.c, which bindings.rs declares for Rust. */
#ifndef RPCRDMA_CM_TRACE_RUST_H
#define RPCRDMA_CM_TRACE_RUST_H

#include <linux/types.h>

struct sockaddr;

@prototypes trace_

#endif /* RPCRDMA_CM_TRACE_RUST_H */
