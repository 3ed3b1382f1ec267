// SPDX-License-Identifier: GPL-2.0

//! Tests over whole input spaces and with random inputs.

mod control;
mod ending;
mod header;
mod history;
mod inferred_invalidation;
mod info;
mod meaning;
mod negotiation;
mod outcome;
mod private_data;
mod program;
mod rpc;
mod stats;
mod tables;

use std::{
    env,
    num::NonZero,
    thread, //
};

use proptest::test_runner::Config;

/// Sets the number of random inputs of a property, unless PROPTEST_CASES does. A failure is
/// printed, and not kept in a file.
fn cases(cases: u32) -> Config {
    let mut config = Config::default();
    if env::var_os("PROPTEST_CASES").is_none() {
        config.cases = cases;
    }
    config.failure_persistence = None;
    config
}

/// Calls `check` with every `u32`, on all processors. Without FULL=1, only with one in 251 of those
/// whose upper half is `sampled`.
fn for_each_u32(sampled: impl Fn(u32) -> bool + Sync, check: impl Fn(u32) + Sync) {
    let full = env::var_os("FULL").is_some();
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        for first in 0..threads {
            let (sampled, check) = (&sampled, &check);
            // Interleaved, because inputs that are cheap to check may be adjacent.
            let highs = (first as u32..=0xffff).step_by(threads);
            scope.spawn(move || {
                for high in highs {
                    let step = if full || !sampled(high) { 1 } else { 251 };
                    // The samples differ from one upper half to the next.
                    for low in (high % step..=0xffff).step_by(step as usize) {
                        check((high << 16) | low);
                    }
                }
            });
        }
    });
}
