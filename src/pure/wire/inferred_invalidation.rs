// SPDX-License-Identifier: GPL-2.0

//! Concludes from the counters of the kernel's client whether its server uses RDMA Send with
//! Invalidate.
//!
//! The client counts the segments that it registers and those that it has to invalidate itself.
//! The server invalidated all others, except those that are still registered.

/// The counters of one transport of the kernel's client, at one moment.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Counters {
    /// Whether no call was being sent while the counters were read.
    pub(crate) steady: bool,
    pub(crate) sends: u64,
    pub(crate) receives: u64,
    /// Segments of Read lists.
    pub(crate) read_segments: u64,
    /// Segments of Write chunks. The client also counts a segment for padding, which stays
    /// registered. A chunk has at most one of these, and at least one other segment.
    pub(crate) write_segments: u64,
    /// Segments of Reply chunks.
    pub(crate) reply_segments: u64,
    pub(crate) local_invalidations: u64,
    /// Calls that could not be sent. Their segments are in the counters above, too.
    pub(crate) failed_marshals: u64,
}

impl Counters {
    /// Returns the differences to `first`, which was read before.
    fn since(&self, first: &Self) -> Self {
        Self {
            steady: self.steady,
            sends: self.sends.wrapping_sub(first.sends),
            receives: self.receives.wrapping_sub(first.receives),
            read_segments: self.read_segments.wrapping_sub(first.read_segments),
            write_segments: self.write_segments.wrapping_sub(first.write_segments),
            reply_segments: self.reply_segments.wrapping_sub(first.reply_segments),
            local_invalidations: self
                .local_invalidations
                .wrapping_sub(first.local_invalidations),
            failed_marshals: self.failed_marshals.wrapping_sub(first.failed_marshals),
        }
    }
}

/// The most segments that a call of the client has: 16 in each of two chunk lists.
const MAX_SEGMENTS: u64 = 32;

/// The evidence that the counters of one connection have given so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Invalidations {
    /// The counters that later readings are compared with.
    first: Option<Counters>,
    /// Whether no call was under way at `first`.
    first_quiet: bool,
    /// Whether the server seems to have invalidated segments before `first`.
    doubt: bool,
    /// The conclusion so far.
    used: Option<bool>,
}

impl Invalidations {
    /// Begins with the counters of a connection that was just established, so that no call is under
    /// way on it. They need not seem steady, because the client locks a transport that it connects.
    /// Sends and receives may differ: calls on connections before may have been lost.
    pub(crate) fn begin(counters: Counters) -> Self {
        Self {
            first: Some(counters),
            first_quiet: true,
            ..Self::default()
        }
    }

    /// Draws a conclusion from `now`, the present counters, if they allow one.
    pub(crate) fn learn(&mut self, now: &Counters) {
        let Some(first) = &self.first else {
            // While a call is being sent, an invalidation may be among the counters, and its
            // segment not.
            if now.steady {
                self.first = Some(*now);
                self.first_quiet = now.sends == now.receives;
            }
            return;
        };

        let since = now.since(first);
        // An upper limit of the calls under way, those of `first` included. There may be fewer
        // calls: a reply to a callback counts as a call, and a call that was killed has no reply.
        let counts = if self.first_quiet { &since } else { now };
        let under_way = counts.sends.saturating_sub(counts.receives);
        let quiet = now.steady && under_way == 0;
        let settled = quiet && self.first_quiet && since.failed_marshals == 0;
        // At most so many segments may still be registered, or were never sent.
        let left = if settled {
            0
        } else {
            under_way
                .saturating_add(since.failed_marshals)
                .saturating_add(1)
                .saturating_mul(MAX_SEGMENTS)
        };

        let others = since.read_segments.saturating_add(since.reply_segments);
        let fewest = others.saturating_add(since.write_segments.div_ceil(2));
        let most = others.saturating_add(since.write_segments);
        let local = since.local_invalidations;
        if fewest > local.saturating_add(left) {
            self.used = Some(true);
        } else if settled && local > 0 && most == local && !self.doubt && self.used.is_none() {
            self.used = Some(false);
        } else if quiet && !settled {
            // It is not known how many segments the failed calls had, or those that were under way
            // at first, so begin again.
            self.first = Some(*now);
            self.first_quiet = true;
            self.doubt |= most > local;
        }
    }

    /// Returns whether the server uses Send with Invalidate; [`None`] until that is known.
    pub(crate) fn used(&self) -> Option<bool> {
        self.used
    }
}
