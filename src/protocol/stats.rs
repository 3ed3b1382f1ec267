// SPDX-License-Identifier: GPL-2.0

//! The module's counters, and the text of the file `stats`.

use core::fmt::{
    self,
    Write, //
};

use super::private_data::Parsed;

macro_rules! stats {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The counters of events since the module was loaded. `C` is the type of one counter: an
        /// `u64` in a snapshot, or one that several processors may increment at a time.
        #[derive(Clone, Copy)]
        pub(crate) struct Stats<C> {
            $($(#[$doc])* pub(crate) $name: C,)*
        }

        impl<C> Stats<C> {
            /// Makes each counter with `counter`.
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

stats! {
    /// Attempts to connect as client.
    connects,
    /// Attempts among `connects` that led to no connection.
    connects_failed,
    /// Attempts among `connects` that followed a loss.
    reconnects,
    /// Connection requests of peers (REQ).
    requests,
    /// Requests that were accepted (REP sent).
    requests_accepted,
    /// Requests that were rejected because the listener had `max=` connections.
    requests_refused,
    /// Requests that could not be accepted: no memory, or an unknown transport.
    requests_failed,
    /// Accepted requests that the peer never confirmed (RTU).
    requests_unconfirmed,
    /// Connections established, in either role.
    established,
    /// Connections among `established` that were lost.
    lost,
    /// Connections among `established` that were closed by this side.
    closed,
    /// Peers' private data with a valid message (RFC 8797, section 4).
    private_data_present,
    /// Peers' private data without a Format Identifier.
    private_data_absent,
    /// Peers' private data with a Format Identifier, but no valid message.
    private_data_rejected,
    /// Messages that arrived on the module's own connections.
    messages_received,
    /// Connections of others that were observed.
    observed,
    /// Connections among `observed` that were established.
    observed_established,
    /// Connection attempts of others that either side refused.
    observed_refused,
    /// Connection attempts of others that failed otherwise.
    observed_failed,
    /// Connections of others that could not be observed.
    observed_missed,
    /// Those of the kernel's NFS among `observed_missed` for which its share was used up.
    observed_missed_nfs,
    /// Those of programs among `observed_missed` whose user had as many as one user may have.
    observed_missed_user,
    /// Those of programs among `observed_missed` for which the share of programs was used up.
    observed_missed_programs,
    /// Those among `observed_missed` for which there was no memory.
    observed_missed_memory,
    /// Events of NFS and of the module that were in `history`, and that later events have
    /// overwritten.
    history_overwritten,
    /// Events of programs that were in `history`, and that later events have overwritten.
    history_overwritten_programs,
}

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
