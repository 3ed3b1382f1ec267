// SPDX-License-Identifier: GPL-2.0

//! The connection set-up of RPC-over-RDMA (RFC 8797).

#![crate_name = "rpcrdma_cm"]

use kernel::prelude::*;

module! {
    type: RpcrdmaCm,
    name: "rpcrdma_cm",
    authors: ["The rpcrdma_cm developers"],
    description: "RPC-over-RDMA connection set-up (RFC 8797)",
    license: "GPL",
}

struct RpcrdmaCm;

impl kernel::Module for RpcrdmaCm {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        Ok(Self)
    }
}
