// SPDX-License-Identifier: GPL-2.0

//! Host tests of the pure files of `rpcrdma_cm`.
//!
//! These tests take too long for the kernel, or need more than `core`: whole input spaces, random
//! inputs, and comparisons with a second implementation. KUnit (`rpcrdma_cm_kunit.rs`) tests the
//! rules of the RFCs one by one.

#![allow(dead_code, reason = "the module uses all of it, the tests some")]
// Only the tests may panic.
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

#[path = "../../../src/pure/mod.rs"]
mod pure;

#[cfg(test)]
#[path = "../../cases.rs"]
mod cases;
#[cfg(test)]
mod checks;
#[cfg(test)]
mod tests;
