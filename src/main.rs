// SPDX-License-Identifier: GPL-2.0

//! The connection set-up of RPC-over-RDMA (RFC 8797), as client and as server.
//!
//! The octets of an event of rdma_cm go through [`wire`], which parses them, [`negotiation`], which
//! combines two offers, [`connection`], which holds the state, and [`registry`], which knows what
//! is live, to [`debugfs`], which shows it.

#![crate_name = "rpcrdma_cm"]

mod bindings;
mod connection;
mod debugfs;
mod negotiation;
mod rdma;
mod registry;
mod trace;
mod wire;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    debugfs::{
        Dir,
        RootFiles, //
    },
    registry::Registry, //
};

module! {
    type: RpcrdmaCm,
    name: "rpcrdma_cm",
    authors: ["The rpcrdma_cm developers"],
    description: "RPC-over-RDMA connection set-up (RFC 8797)",
    license: "GPL",
}

/// The module. Its fields go in their order.
struct RpcrdmaCm {
    _live: Live,
    _files: RootFiles,
}

/// What is live; all of it ends when this is dropped.
struct Live(Arc<Registry>);

impl Drop for Live {
    fn drop(&mut self) {
        self.0.shut_down();
    }
}

impl kernel::Module for RpcrdmaCm {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let root = Dir::new(c"rpcrdma_cm", None)?;
        let live = Live(Registry::new(Dir::new(c"connection", Some(&root))?)?);
        let files = RootFiles::new(&root, live.0.clone())?;

        Ok(Self {
            _live: live,
            _files: files,
        })
    }
}
