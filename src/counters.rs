// SPDX-License-Identifier: GPL-2.0

//! The counters that `stats` shows. All processors may increment them at a time.

use kernel::sync::atomic::{
    Atomic,
    Relaxed, //
};

use crate::pure::text::stats::Stats;

/// A number that only grows.
pub(crate) struct Counter(Atomic<u64>);

impl Counter {
    const fn new() -> Self {
        Self(Atomic::new(0))
    }

    /// Adds one; any context.
    pub(crate) fn increment(&self) {
        self.add(1);
    }

    /// Adds `count`; any context.
    pub(crate) fn add(&self, count: u32) {
        self.0.add(u64::from(count), Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// The counters of the module.
pub(crate) type SharedStats = Stats<Counter>;

impl SharedStats {
    /// Creates counters that are all zero.
    pub(crate) fn new() -> Self {
        Self::with(Counter::new)
    }
}
