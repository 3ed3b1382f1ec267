// SPDX-License-Identifier: GPL-2.0

//! KUnit tests of the pure files of `rpcrdma_cm`, and of the files of src/base, src/rdma and
//! src/observer that need no device.
//!
//! A test of a rule of a document is named after its section: of RFC 8797, unless its suite names
//! another document. The expected values of its rows are copied from the section, not computed. If
//! a row fails, its name is in the kernel's log.

#![crate_name = "rpcrdma_cm_tests"]

mod base;
mod cases;
mod control;
#[allow(dead_code)]
#[path = "../src/counters.rs"]
mod counters;
mod ending;
mod exchange;
mod header;
mod history;
mod inferred_invalidation;
mod info;
mod meaning;
mod negotiation;
mod octets;
mod outcome;
mod owners;
#[allow(dead_code)]
#[path = "../src/permits.rs"]
mod permits;
mod private_data;
mod program;
#[path = "../src/pure/mod.rs"]
mod pure;
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
