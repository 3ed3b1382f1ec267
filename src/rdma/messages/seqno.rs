// SPDX-License-Identifier: GPL-2.0

//! Sequence numbers, by which the order of events is known.

use kernel::sync::atomic::{
    Atomic,
    Relaxed, //
};

/// The sequence number of an event: larger than all that were taken before it, on any processor.
///
/// An rkey is used again after 256 registrations, and another device may have the same one. Each
/// sequence number is unique.
///
/// # Examples
///
/// ```no_run
/// let registered = Seqno::next();
/// let invalidated = Seqno::next();
/// assert!(registered < invalidated);
/// ```
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(in crate::rdma) struct Seqno(u64);

/// The latest sequence number.
static LATEST: Atomic<u64> = Atomic::new(0);

impl Seqno {
    /// Returns a number that is larger than all that were returned before; any context.
    pub(in crate::rdma) fn next() -> Self {
        // The accesses to one variable have a total order, even with `Relaxed`. If one event
        // happens before another one, that order agrees.
        Self(LATEST.fetch_add(1, Relaxed) + 1)
    }
}
