// SPDX-License-Identifier: GPL-2.0

//! Moments, which tell what happened first.

use kernel::sync::atomic::{
    Atomic,
    Relaxed, //
};

/// A moment: later than all that were taken before it, on any processor.
///
/// A Steering Tag comes back after 256 registrations, and another device may have the same one.
/// Moments do not come back.
///
/// # Examples
///
/// ```no_run
/// let registered = Moment::now();
/// let invalidated = Moment::now();
/// assert!(registered < invalidated);
/// ```
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Moment(u64);

/// The latest moment.
static LATEST: Atomic<u64> = Atomic::new(0);

impl Moment {
    pub(super) fn now() -> Self {
        // All accesses to one variable have an order, which the order of events agrees with.
        Self(LATEST.fetch_add(1, Relaxed) + 1)
    }
}
