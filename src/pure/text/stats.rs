// SPDX-License-Identifier: GPL-2.0

//! The module's counters, and the text of the file `stats`.

use core::fmt::{
    self,
    Write, //
};

use super::keys::stats_keys;
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
    ($($name:ident => $word:literal, $sentence:literal;)*) => {
        /// Why connections of others are not shown, or not all of them.
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        pub(crate) enum Limit {
            $($name,)*
        }

        /// All limits, in the order in which they are shown: each with the word for programs, and
        /// the sentence for people.
        const LIMITS: &[(Limit, &str, &str)] = &[$((Limit::$name, $word, $sentence),)*];
    };
}

limits! {
    // With these, none is shown.
    Parameter => "parameter", "the module was loaded with observe=0";
    Fprobe => "fprobe", "the kernel lacks CONFIG_FPROBE";
    Tracepoints => "tracepoints", "the kernel lacks CONFIG_TRACEPOINTS";
    Kallsyms => "kallsyms", "the kernel lacks CONFIG_KALLSYMS";
    Hooks => "hooks", "rdma_cm could not be hooked, and the kernel's log has the errno";
    // With these, some are not shown, or not everything of them.
    Btf => "btf", "the kernel lacks CONFIG_DEBUG_INFO_BTF or CONFIG_BPF_SYSCALL, so that the \
        values that NFS uses are unknown";
    Members => "members", "BTF does not have the members of the structures of NFS, so that the \
        values that NFS uses are unknown";
    Symbols => "symbols", "an id of rpcrdma or rdma_ucm has an unknown handler, and is not shown";
    Users => "users", "BTF does not have the members of the structures of rdma_ucm, so that the \
        users of programs are unknown, and all programs have the limit of one user";
    Search => "search", "connections that are older than the module were not all found";
    Events => "events", "events were lost, so that connections and their events may be missing";
    Causes => "causes", "some causes of the ends of connections are not noticed, so that a reason \
        in history may be a consequence";
    Nfs => "limit_nfs", "connections of NFS were left out, because there were max_observed of them";
    User => "limit_user", "connections of programs were left out, because of the limit of their \
        user";
    Programs => "limit_programs", "connections of programs were left out, because of the limit of \
        all programs";
    Memory => "memory", "connections were left out, because there was no memory";
}

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
        let observing = match self.0 {
            0 => "yes",
            bits if bits % Self::bit(Limit::Btf) != 0 => "no",
            _ => "partial",
        };
        writeln!(out, "observing: {observing}")?;
        for &(limit, word, sentence) in LIMITS {
            // An option that the kernel lacks is why rdma_cm could not be hooked.
            let explained = limit == Limit::Hooks && self.0 % Self::bit(Limit::Hooks) != 0;
            if self.0 & Self::bit(limit) != 0 && !explained {
                writeln!(out, "observing_reason: {word}: {sentence}")?;
            }
        }
        Ok(())
    }
}
