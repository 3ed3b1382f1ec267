// SPDX-License-Identifier: GPL-2.0

//! Whether a server uses RDMA Send with Invalidate, as the kernel's client lets know.
//!
//! The client counts the segments that it registers and those that it has to invalidate itself.
//! The server invalidated the others, unless they are still registered.

/// What the client counts of one transport, at one moment.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Counters {
    /// Whether no call was being sent while these were read.
    pub(crate) steady: bool,
    pub(crate) sends: u64,
    pub(crate) receives: u64,
    /// Segments of Read lists.
    pub(crate) read_segments: u64,
    /// Segments of Write chunks. With these, the client counts a segment for padding, which stays
    /// registered: at most one in each chunk, beside at least one of the others.
    pub(crate) write_segments: u64,
    /// Segments of Reply chunks.
    pub(crate) reply_segments: u64,
    pub(crate) local_invalidations: u64,
    /// Calls that could not be sent, whose segments are counted.
    pub(crate) failed_marshals: u64,
}

impl Counters {
    /// Returns what was counted since `first`.
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

/// The most segments that a call of the client has: its limit for a chunk list, for two of them.
const MAX_SEGMENTS: u64 = 32;

/// The evidence that the counters of one connection have given so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Invalidations {
    /// From when no call was under way.
    first: Option<Counters>,
    /// Whether the server may have invalidated segments before that.
    doubt: bool,
    used: Option<bool>,
}

impl Invalidations {
    /// Begins with a connection that has just been established, so that no call is under way.
    pub(crate) fn begin(counters: Counters) -> Self {
        Self {
            first: Some(counters),
            ..Self::default()
        }
    }

    /// Learns from what is counted `now`.
    pub(crate) fn learn(&mut self, now: &Counters) {
        let Some(first) = &self.first else {
            if now.steady && now.sends == now.receives {
                self.first = Some(*now);
            }
            return;
        };

        let since = now.since(first);
        let under_way = since.sends.saturating_sub(since.receives);
        let quiet = now.steady && under_way == 0;
        let settled = quiet && since.failed_marshals == 0;
        // So many segments may be registered still, or never have been sent.
        let left = match settled {
            true => 0,
            false => under_way
                .saturating_add(since.failed_marshals)
                .saturating_add(1)
                .saturating_mul(MAX_SEGMENTS),
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
            // How many segments a failed call had is not known: begin again.
            self.first = Some(*now);
            self.doubt |= most > local;
        }
    }

    /// Returns whether the server uses it; [`None`] as long as that is not known.
    pub(crate) fn used(&self) -> Option<bool> {
        self.used
    }
}
