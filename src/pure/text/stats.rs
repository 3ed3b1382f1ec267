// SPDX-License-Identifier: GPL-2.0

//! The module's counters, and the text of the file `stats`.

use core::fmt::{
    self,
    Write, //
};

use super::keys::{
    observing_reasons,
    stats_keys, //
};
use crate::pure::wire::private_data::Parsed;

macro_rules! stats {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The counters of events since the module was loaded. `C` is the type of one counter: an
        /// `u64` in a snapshot, or one that several processors may increment at a time.
        #[derive(Clone, Copy)]
        pub(crate) struct Stats<C> {
            $($(#[$doc])* pub(crate) $name: C,)*
        }

        impl<C> Stats<C> {
            /// Creates each counter with `counter`.
            pub(crate) fn with(mut counter: impl FnMut() -> C) -> Self {
                Self { $($name: counter(),)* }
            }

            /// Returns the result of `read` for each counter.
            pub(crate) fn map<D>(&self, mut read: impl FnMut(&C) -> D) -> Stats<D> {
                Stats { $($name: read(&self.$name),)* }
            }
        }

        impl Stats<u64> {
            /// Writes the file's content. Fails only if `out` fails.
            pub(crate) fn write(&self, out: &mut dyn Write) -> fmt::Result {
                $(writeln!(out, concat!(stringify!($name), ": {}"), self.$name)?;)*
                Ok(())
            }
        }
    };
}

stats_keys!(stats);

impl<C> Stats<C> {
    /// Returns the counter of private data that was parsed as `parsed`.
    pub(crate) fn of_parsed(&self, parsed: &Parsed) -> &C {
        match parsed {
            Parsed::Present(_) => &self.private_data_present,
            Parsed::Absent => &self.private_data_absent,
            Parsed::Rejected { .. } => &self.private_data_rejected,
        }
    }
}

macro_rules! limits {
    ($($observing:literal {
        $($(#[doc = $sentence:literal])* $name:ident = $word:literal;)*
    })*) => {
        /// Why connections of others are not shown, or not all of them.
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        pub(crate) enum Limit {
            $($($(#[doc = $sentence])* $name,)*)*
        }

        /// All limits, in the order in which they are shown: each with the value of `observing`,
        /// the word for programs, and the sentence for people behind a space.
        const LIMITS: &[(Limit, &str, &str, &str)] =
            &[$($((Limit::$name, $observing, $word, concat!($($sentence),*)),)*)*];
    };
}

observing_reasons!(limits);

/// A set of limits.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Limits(u32);

impl Limits {
    const fn bit(limit: Limit) -> u32 {
        1_u32.wrapping_shl(limit as u32)
    }

    pub(crate) fn with(self, limit: Limit, present: bool) -> Self {
        if present {
            Self(self.0 | Self::bit(limit))
        } else {
            self
        }
    }

    /// Adds the limits that were reached, by the counters.
    pub(crate) fn with_missed(self, stats: &Stats<u64>) -> Self {
        self.with(Limit::Events, stats.observed_events_lost != 0)
            .with(Limit::Nfs, stats.observed_missed_nfs != 0)
            .with(Limit::User, stats.observed_missed_user != 0)
            .with(Limit::Programs, stats.observed_missed_programs != 0)
            .with(Limit::Memory, stats.observed_missed_memory != 0)
    }

    /// Writes the lines of `stats` that say whether connections of others are observed, and why
    /// not. Fails only if `out` fails.
    pub(crate) fn write(self, out: &mut dyn Write) -> fmt::Result {
        let mut limits = LIMITS
            .iter()
            .filter(|(limit, ..)| self.0 & Self::bit(*limit) != 0)
            .peekable();
        let observing = limits
            .peek()
            .map_or("yes", |&&(_, observing, ..)| observing);
        writeln!(out, "observing: {observing}")?;
        for &(limit, _, word, sentence) in limits {
            // An option that the kernel lacks is why rdma_cm could not be hooked.
            let explained = limit == Limit::Hooks && self.0 % Self::bit(Limit::Hooks) != 0;
            if !explained {
                writeln!(out, "observing_reason: {word}:{sentence}")?;
            }
        }
        Ok(())
    }
}
