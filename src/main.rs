// SPDX-License-Identifier: GPL-2.0

//! The connection set-up of RPC-over-RDMA (RFC 8797), as client and as server.
//!
//! This is the way of the data, and the order in which to read the modules:
//!
//! 1. [`rdma`] hands over the events of rdma_cm with their private data.
//! 2. [`pure`] parses the private data and combines the offers of both sides. It is pure: it
//!    knows no kernel.
//! 3. [`connection`] holds the state of the connections that this module makes and accepts.
//!    [`observer`] does the same for the connections of the kernel's NFS and of programs.
//! 4. [`registry`] lists both kinds, and shows each connection in a directory of debugfs.
//!
//! [`rpc`] makes and answers calls on an established connection. [`control`] has the files that
//! take commands. docs/design.md has the layers, the life of an id, the locks and the order of
//! unloading.

#![crate_name = "rpcrdma_cm"]
// A kernel module has no public items, so its documentation is that of the private ones.
#![allow(rustdoc::private_intra_doc_links)]

// Layer by layer, the lowest one first. docs/design.md says what each has.
mod pure;

mod bindings;
mod kernel_series;

mod base;

mod rdma;

mod shown_device;

mod trace;

mod counters;
mod debugfs;
mod failure;
mod permits;

mod rpc;

mod history_ring;

mod registry;

mod connection;
mod observer;

mod control;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    base::{
        unload::{
            guarded_module,
            Hold, //
        },
        wait::MayWait, //
    },
    connection::own::Own,
    control::{
        ControlFiles,
        RootFiles, //
    },
    counters::SharedStats,
    debugfs::Dir,
    history_ring::History,
    observer::{
        Observer,
        ObserverStatus, //
    },
    pure::text::stats::Limit,
    registry::Registry, //
};

module! {
    type: RpcrdmaCm,
    name: "rpcrdma_cm",
    authors: ["The rpcrdma_cm developers"],
    description: "RPC-over-RDMA connection set-up (RFC 8797)",
    license: "GPL",
    params: {
        observe: u8 {
            default: 1,
            description: "Show the connections of NFS/RDMA and of programs, too (0 or 1)",
        },
        max_observed: u32 {
            default: 16384,
            description: "How many connections of NFS clients, and of NFS servers, are kept",
        },
        history: u32 {
            default: 1024,
            description: "Events that history keeps of each group of owners and peers (0 to 65536)",
        },
        // The package for dkms changes this default by control_off. An option in modprobe.d would
        // not do: the kernel refuses a parameter that is set twice.
        control: u8 {
            default: 1 - cfg!(control_off) as u8,
            description: "Make the files that take commands (0 or 1)",
        },
    },
}

guarded_module! {
    /// The module.
    struct RpcrdmaCm {
        parts: Parts = Parts::new, Parts::end,
    }
    teardown: c"rpcrdma_cm_teardown",
}

/// The parts of the module. [`Self::end`] ends them in declaration order, which is the teardown
/// order, except the files: they are dropped.
struct Parts {
    // First: the observer waits for no peer, and adds connections to the registry until it ends.
    observer: Option<Observer>,
    // Ending this waits for peers. No command can begin anything new meanwhile: an open file would
    // have kept the module loaded.
    own: Own,
    // Last: nothing waits for the files. No file is open, so no operation on one is under way.
    _control: Option<ControlFiles>,
    _files: RootFiles,
}

impl Parts {
    fn new(hold: &Hold, may_wait: &MayWait) -> Result<Self> {
        let root = Dir::new(c"rpcrdma_cm", hold)?;
        let dir = root.dir(c"connection")?;
        let stats = Arc::new(SharedStats::new(), GFP_KERNEL)?;
        let history = History::new(
            kernel_series::parameter(module_parameters::history.value()),
            stats.clone(),
        )?;
        let registry = Registry::new(dir)?;
        let own = Own::new(hold, registry.clone(), stats.clone(), history.clone())?;
        let status = Arc::new(ObserverStatus::new(), GFP_KERNEL)?;
        let files = RootFiles::new(
            &root,
            registry.clone(),
            &own,
            stats.clone(),
            status.clone(),
            history.clone(),
        )?;
        let mut parts = Self {
            observer: None,
            own,
            _control: None,
            _files: files,
        };
        // The files cannot be opened before init has succeeded, so no command runs until then.
        let control = match kernel_series::parameter(module_parameters::control.value()) {
            0 => Ok(None),
            _ => ControlFiles::new(&root, registry.clone(), &parts.own).map(Some),
        };
        parts._control = control.inspect_err(|_| parts.end(may_wait))?;
        let observe: u8 = kernel_series::parameter(module_parameters::observe.value());
        if observe == 0 {
            status.turn_off(Limit::Parameter);
            return Ok(parts);
        }
        match Observer::new(
            hold,
            registry,
            stats,
            history,
            kernel_series::parameter(module_parameters::max_observed.value()),
            may_wait,
        ) {
            Ok(observer) => parts.observer = Some(observer),
            Err(ENOMEM) => {
                // No command has run: its file cannot be opened before init has succeeded.
                parts._control = None;
                parts.end(may_wait);
                return Err(ENOMEM);
            }
            // Without the kernel options that observing needs, the rest of the module still works.
            Err(error) => {
                pr_notice!("cannot observe others: error {}\n", error.to_errno());
                status.turn_off(Limit::Hooks);
            }
        }
        Ok(parts)
    }

    /// Ends everything except the files; process context.
    fn end(&mut self, may_wait: &MayWait) {
        if let Some(observer) = &mut self.observer {
            observer.end(may_wait);
        }
        self.own.end(may_wait);
    }
}
