// SPDX-License-Identifier: GPL-2.0

//! The pure core: the protocols, the grammar of the control files, and the text of the files that
//! show connections.
//!
//! No file of this module knows the kernel: they use `core` alone, allocate nothing and cannot
//! panic. The same files are compiled into the module, into the KUnit module and into the crates of
//! `kunit`.

// The test crates include this file with `#[path]`. Without paths of their own, the files below
// would then be looked for in the directory of this file.
#[path = "protocol/control.rs"]
pub(crate) mod control;
#[path = "protocol/exchange.rs"]
pub(crate) mod exchange;
#[path = "protocol/header.rs"]
pub(crate) mod header;
#[path = "protocol/history.rs"]
pub(crate) mod history;
#[path = "protocol/info.rs"]
pub(crate) mod info;
#[path = "protocol/invalidation.rs"]
pub(crate) mod invalidation;
#[path = "protocol/negotiation.rs"]
pub(crate) mod negotiation;
#[path = "protocol/outcome.rs"]
pub(crate) mod outcome;
#[path = "protocol/private_data.rs"]
pub(crate) mod private_data;
#[path = "protocol/program.rs"]
pub(crate) mod program;
#[path = "protocol/request.rs"]
pub(crate) mod request;
#[path = "protocol/rpc.rs"]
pub(crate) mod rpc;
#[path = "protocol/snapshot.rs"]
pub(crate) mod snapshot;
#[path = "protocol/stats.rs"]
pub(crate) mod stats;
#[path = "protocol/tables.rs"]
pub(crate) mod tables;
#[path = "protocol/text.rs"]
pub(crate) mod text;
#[path = "protocol/xdr.rs"]
pub(crate) mod xdr;
