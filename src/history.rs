// SPDX-License-Identifier: GPL-2.0

//! The latest events of connections, of the module and of others, which `history` shows.
//!
//! Events are recorded in contexts that must not sleep or wait. So the memory is allocated when the
//! module is loaded, and a new event overwrites the oldest one.
//!
//! The lock is a spin lock. It may be taken with any other lock of the module held, and no lock is
//! taken with it held. Events are never recorded in interrupts.

use kernel::{
    new_spinlock,
    prelude::*,
    sync::{
        Arc,
        SpinLock, //
    },
    time::{
        ClockSource,
        RealTime, //
    }, //
};

use crate::{
    bindings::log_clock,
    counters::SharedStats,
    protocol::history::{
        Entry,
        Event,
        Timestamp, //
    }, //
};

/// The limit of the parameter `history`, in events.
const MAX: u32 = 65_536;

/// How many events are copied for a reader before the lock is released once.
const COPIED: u64 = 64;

/// The latest events.
struct Ring {
    /// Event number `n`, counted from 0, is at index `n` modulo the size.
    entries: KVVec<Entry>,
    /// How many events have been recorded since the module was loaded.
    recorded: u64,
    /// The time of the latest event.
    latest_ns: u64,
}

/// The history of all connections.
#[pin_data]
pub(crate) struct History {
    /// How many events are kept. With 0, no event is recorded.
    size: u64,
    stats: Arc<SharedStats>,
    #[pin]
    ring: SpinLock<Ring>,
}

impl History {
    /// Makes an empty history, which keeps `size` events, at most [`MAX`]; process context.
    ///
    /// Fails with `ENOMEM`.
    pub(crate) fn new(size: u32, stats: Arc<SharedStats>) -> Result<Arc<Self>> {
        let size = size.min(MAX);
        let ring = Ring {
            entries: KVVec::with_capacity(size as usize, GFP_KERNEL)?,
            recorded: 0,
            latest_ns: 0,
        };
        Arc::pin_init(
            pin_init!(Self {
                size: size.into(),
                stats,
                ring <- new_spinlock!(ring, "History::ring"),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns how many events are kept at this moment; any context except interrupts.
    pub(crate) fn count(&self) -> usize {
        self.ring.lock().entries.len()
    }

    /// Records an event, with the present time; any context except interrupts.
    pub(crate) fn record(&self, event: Event) {
        let mut ring = self.ring.lock();
        let Some(place) = ring.recorded.checked_rem(self.size) else {
            return;
        };
        let place = place as usize;
        // The events are in the order of their times: the time is taken with the lock held, and
        // the clock of one processor may be behind that of another.
        ring.latest_ns = log_clock().max(ring.latest_ns);
        let timestamp = Timestamp {
            log_ns: ring.latest_ns,
            utc_ns: RealTime::ktime_get().unsigned_abs(),
        };
        let (later, earlier) = ring.entries.split_at_checked(place).unwrap_or_default();
        let latest_first = Iterator::chain(later.iter().rev(), earlier.iter().rev());
        let entry = Entry::new(timestamp, event, latest_first);

        ring.recorded += 1;
        match ring.entries.get_mut(place) {
            Some(oldest) => {
                *oldest = entry;
                self.stats.history_overwritten.increment();
            }
            // The capacity is `size`, so this does not fail.
            None => {
                let _ = ring.entries.push_within_capacity(entry);
            }
        }
    }

    /// Returns the events up to now, the latest one first; process context, may sleep.
    ///
    /// Fails with `ENOMEM`.
    pub(crate) fn latest_first(&self) -> Result<KVVec<Entry>> {
        let mut copy = KVVec::with_capacity(self.size as usize, GFP_KERNEL)?;
        let mut end = self.ring.lock().recorded;

        // The lock is released after a few events, so that no new event waits for long. The latest
        // events are copied first: events that are overwritten meanwhile are the oldest ones, so
        // the copy has no gap.
        loop {
            let ring = self.ring.lock();
            let oldest = ring.recorded.saturating_sub(self.size);
            let begin = end.saturating_sub(COPIED).max(oldest);
            if begin >= end {
                return Ok(copy);
            }
            for number in (begin..end).rev() {
                let place = number.checked_rem(self.size).unwrap_or_default();
                if let Some(entry) = ring.entries.get(place as usize) {
                    // The capacity is `size`, so this does not fail.
                    let _ = copy.push_within_capacity(*entry);
                }
            }
            end = begin;
        }
    }
}
