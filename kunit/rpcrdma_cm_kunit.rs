// SPDX-License-Identifier: GPL-2.0

//! KUnit tests of the files of `rpcrdma_cm` that know no kernel.
//!
//! A test is named after the section whose rules its rows hold, of RFC 8797 if its suite does not
//! say another document, and what its rows expect is written out from there, not computed. A row
//! that fails is named in the kernel log.

#![crate_name = "rpcrdma_cm_tests"]

mod cases;
mod control;
mod exchange;
mod header;
mod history;
mod info;
mod invalidation;
mod negotiation;
mod octets;
mod outcome;
mod private_data;
mod program;
#[path = "../src/protocol.rs"]
mod protocol;
mod rdma;
mod request;
mod rows;
mod rpc;
mod stats;
mod tables;

use kernel::prelude::*;

#[cfg(not(CONFIG_KUNIT = "y"))]
compile_error!("without CONFIG_KUNIT=y, #[kunit_tests] leaves every test out");

module! {
    type: RpcrdmaCmKunit,
    name: "rpcrdma_cm_kunit",
    authors: ["The rpcrdma_cm developers"],
    description: "KUnit tests of rpcrdma_cm",
    license: "GPL",
}

struct RpcrdmaCmKunit;

impl kernel::Module for RpcrdmaCmKunit {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        Ok(Self)
    }
}
