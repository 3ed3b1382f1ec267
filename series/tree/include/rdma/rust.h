/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the Rust abstraction of rdma_cm and the verbs adds to the types of C.
 */
#ifndef _RDMA_RUST_H
#define _RDMA_RUST_H

#include <linux/scatterlist.h>
#include <rdma/rw.h>

/* One transfer: an RDMA Read or Write between local memory and that of the peer. */
struct rdma_rust_transfer {
	struct rdma_rw_ctx ctx;
	struct scatterlist sg;
};

enum rdma_rust_transport {
	RDMA_RUST_INFINIBAND,
	RDMA_RUST_ROCE,
	RDMA_RUST_IWARP,
	RDMA_RUST_OTHER,
};

#endif /* _RDMA_RUST_H */
