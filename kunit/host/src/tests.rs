// SPDX-License-Identifier: GPL-2.0

//! Tests over whole input spaces and with random inputs.

mod control;
mod header;
mod history;
mod info;
mod invalidation;
mod negotiation;
mod outcome;
mod private_data;
mod program;
mod rpc;
mod stats;
mod tables;

use std::{
    num::NonZero,
    thread, //
};

use proptest::test_runner::Config;

/// Sets the number of random inputs of a property. A failure is printed, and not kept in a file.
fn cases(cases: u32) -> Config {
    Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    }
}

/// Calls `check` with every `u32`, on all processors.
fn for_each_u32(check: impl Fn(u32) + Sync) {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        for first in 0..threads {
            let check = &check;
            // Interleaved, because inputs that are cheap to check may be adjacent.
            let highs = (first..=0xffff).step_by(threads);
            scope.spawn(move || {
                for high in highs {
                    for low in 0..=0xffff {
                        check(((high as u32) << 16) | low);
                    }
                }
            });
        }
    });
}
