// SPDX-License-Identifier: GPL-2.0

//! The latest events of connections, of the module and of others, which `history` shows.
//!
//! Events are recorded in contexts that must not sleep or wait. So the memory is allocated when the
//! module is loaded, and a new event overwrites the oldest one.
//!
//! [`HistoryEvent::ring`] says which events can overwrite each other.
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
    pure::{
        text::{
            history::{
                Entry,
                HistoryEvent,
                Timestamp, //
            },
            snapshot::Origin, //
        }, //
    }, //
};

/// The limit of the parameter `history`, in events of each ring.
const MAX: u32 = 65_536;

/// How many events are copied for a reader before the lock is released once.
const COPIED: u64 = 64;

/// The number of rings.
const RINGS: usize = HistoryEvent::RINGS;

/// An event with its number, which is counted over all rings.
#[derive(Clone, Copy)]
pub(crate) struct Numbered {
    number: u64,
    pub(crate) entry: Entry,
}

/// The latest events of one kind.
struct Ring {
    /// Event number `n` of this ring, counted from 0, is at index `n` modulo the size.
    events: KVVec<Numbered>,
    /// How many events this ring has recorded since the module was loaded.
    recorded: u64,
}

impl Ring {
    const fn new() -> Self {
        Self {
            events: KVVec::new(),
            recorded: 0,
        }
    }
}

struct Rings {
    rings: [Ring; RINGS],
    /// The number of the next event.
    next: u64,
    /// The time of the latest event.
    latest_ns: u64,
}

/// The history of all connections.
#[pin_data]
pub(crate) struct History {
    /// How many events each ring keeps. With 0, no event is recorded.
    size: u64,
    stats: Arc<SharedStats>,
    #[pin]
    rings: SpinLock<Rings>,
}

impl History {
    /// Creates an empty history, which keeps `size` events of each ring, at most [`MAX`]; process
    /// context.
    ///
    /// Fails with `ENOMEM`.
    pub(crate) fn new(size: u32, stats: Arc<SharedStats>) -> Result<Arc<Self>> {
        let size = size.min(MAX);
        let mut rings = [const { Ring::new() }; RINGS];
        for ring in &mut rings {
            ring.events.reserve(size as usize, GFP_KERNEL)?;
        }
        let rings = Rings {
            rings,
            next: 0,
            latest_ns: 0,
        };
        Arc::pin_init(
            pin_init!(Self {
                size: size.into(),
                stats,
                rings <- new_spinlock!(rings, "History::rings"),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns how many events are kept at this moment; any context except interrupts.
    pub(crate) fn count(&self) -> usize {
        let rings = self.rings.lock();
        rings.rings.iter().map(|ring| ring.events.len()).sum()
    }

    /// Records an event, with the present time; any context except interrupts.
    pub(crate) fn record(&self, event: HistoryEvent) {
        let mut guard = self.rings.lock();
        let Rings {
            rings,
            next,
            latest_ns,
        } = &mut *guard;
        let Some(ring) = rings.get_mut(event.ring()) else {
            return;
        };
        let Some(place) = ring.recorded.checked_rem(self.size) else {
            return;
        };
        let place = place as usize;
        // The events are in the order of their times: the time is taken with the lock held, and
        // the clock of one processor may be behind that of another.
        *latest_ns = log_clock().max(*latest_ns);
        let timestamp = Timestamp {
            log_ns: *latest_ns,
            utc_ns: RealTime::ktime_get().unsigned_abs(),
        };
        let (later, earlier) = ring.events.split_at_checked(place).unwrap_or_default();
        let latest_first = Iterator::chain(later.iter().rev(), earlier.iter().rev());
        let entries = latest_first.map(|numbered| &numbered.entry);
        let numbered = Numbered {
            number: *next,
            entry: Entry::new(timestamp, event, entries),
        };

        *next += 1;
        ring.recorded += 1;
        match ring.events.get_mut(place) {
            Some(oldest) => {
                *oldest = numbered;
                match event.origin {
                    Origin::User => self.stats.history_overwritten_programs.increment(),
                    Origin::Module | Origin::Nfs => self.stats.history_overwritten.increment(),
                }
                if event.of_root {
                    self.stats.history_overwritten_root.increment();
                }
            }
            // The capacity is `size`, so this does not fail.
            None => {
                let _ = ring.events.push_within_capacity(numbered);
            }
        }
    }

    /// Returns the events up to now, the oldest one first; process context, may sleep.
    ///
    /// Fails with `ENOMEM`.
    pub(crate) fn oldest_first(&self) -> Result<KVVec<Numbered>> {
        let ends = self.rings.lock().rings.each_ref().map(|ring| ring.recorded);
        let kept: u64 = ends.iter().map(|&end| end.min(self.size)).sum();
        let mut copy = KVVec::with_capacity(kept as usize, GFP_KERNEL)?;

        for (ring, end) in ends.into_iter().enumerate() {
            self.copy(ring, end, &mut copy);
        }
        copy.sort_unstable_by_key(|numbered| numbered.number);
        Ok(copy)
    }

    /// Copies the events of a ring, up to its event number `end`.
    fn copy(&self, ring: usize, mut end: u64, copy: &mut KVVec<Numbered>) {
        // The lock is released after a few events, so that no new event waits for long. The latest
        // events are copied first: events that are overwritten meanwhile are the oldest ones, so
        // the copy has no gap.
        loop {
            let rings = self.rings.lock();
            let Some(ring) = rings.rings.get(ring) else {
                return;
            };
            let oldest = ring.recorded.saturating_sub(self.size);
            let begin = end.saturating_sub(COPIED).max(oldest);
            if begin >= end {
                return;
            }
            for number in (begin..end).rev() {
                let place = number.checked_rem(self.size).unwrap_or_default();
                if let Some(numbered) = ring.events.get(place as usize) {
                    // The capacity is that of all these events, so this does not fail.
                    let _ = copy.push_within_capacity(*numbered);
                }
            }
            end = begin;
        }
    }
}
