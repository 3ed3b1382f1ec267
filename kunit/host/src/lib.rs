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

/// Calls the generic functions that only the module calls. Without a call they are not compiled,
/// and `scripts/check panic` would not see them.
#[cfg(not(test))]
fn generic(
    request: &pure::wire::call_request::CallRequest,
    results: &[&[u8]],
    (event, time): (
        pure::text::history::HistoryEvent,
        pure::text::history::Timestamp,
    ),
    earlier: &[pure::text::history::Entry],
) -> (
    bool,
    pure::text::history::Entry,
    pure::text::stats::Stats<u64>,
) {
    (
        request.has_results(0, results.iter().copied()),
        pure::text::history::Entry::new(time, event, earlier.iter()),
        pure::text::stats::Stats::with(|| 0).map(|counter: &u64| *counter),
    )
}

#[cfg(test)]
#[path = "../../cases.rs"]
mod cases;
#[cfg(test)]
mod checks;
#[cfg(test)]
mod tests;
