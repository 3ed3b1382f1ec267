// SPDX-License-Identifier: GPL-2.0

//! Moments, by which the order of events is known.

use kernel::sync::atomic::{
    Atomic,
    Relaxed, //
};

/// A moment: later than all moments that were taken before it, on any processor.
///
/// A Steering Tag is used again after 256 registrations, and another device may have the same one.
/// Each moment is unique.
///
/// # Examples
///
/// ```no_run
/// let registered = Moment::now();
/// let invalidated = Moment::now();
/// assert!(registered < invalidated);
/// ```
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(in crate::rdma) struct Moment(u64);

/// The latest moment.
static LATEST: Atomic<u64> = Atomic::new(0);

impl Moment {
    pub(in crate::rdma) fn now() -> Self {
        // The accesses to one variable have a total order, even with `Relaxed`. If one event
        // happens before another one, that order agrees.
        Self(LATEST.fetch_add(1, Relaxed) + 1)
    }
}
