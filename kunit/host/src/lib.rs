// SPDX-License-Identifier: GPL-2.0

//! Host tests of the files of `rpcrdma_cm` that know no kernel.
//!
//! Here is what takes too long for the kernel or needs more than `core`: whole input spaces,
//! against a second implementation, and random inputs. The rules of the RFCs one by one are in
//! `rpcrdma_cm_kunit.rs`.

#![allow(dead_code, reason = "the module uses all of it, the tests some")]
// What panics is for the tests only.
#![cfg_attr(
    not(test),
    deny(
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::string_slice,
        clippy::todo,
        clippy::unimplemented,
        clippy::unreachable,
        clippy::unwrap_used
    )
)]

#[path = "../../../src/protocol.rs"]
mod protocol;

#[cfg(test)]
#[path = "../../cases.rs"]
mod cases;
#[cfg(test)]
mod checks;
#[cfg(test)]
mod tests;
