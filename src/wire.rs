// SPDX-License-Identifier: GPL-2.0

//! Messages on the wire.
//!
//! Nothing below this module knows the kernel: pure `core`, no allocation, no panic.

// The paths are spelled out because the test crates include this file with `#[path]`, which would
// otherwise move its children to the directory it is in.
#[path = "wire/header.rs"]
pub(crate) mod header;
#[path = "wire/private_data.rs"]
pub(crate) mod private_data;
#[path = "wire/program.rs"]
pub(crate) mod program;
#[path = "wire/rpc.rs"]
pub(crate) mod rpc;
#[path = "wire/xdr.rs"]
pub(crate) mod xdr;
