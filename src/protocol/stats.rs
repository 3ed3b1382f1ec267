// SPDX-License-Identifier: GPL-2.0

//! The counters, and the text of `stats`.

use core::fmt::{
    self,
    Write, //
};

use super::private_data::Parsed;

macro_rules! stats {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Events since the module was loaded. `C` counts one kind of them: a number, or one that
        /// several processors may raise.
        #[derive(Clone, Copy)]
        pub(crate) struct Stats<C> {
            $($(#[$doc])* pub(crate) $name: C,)*
        }

        impl<C> Stats<C> {
            /// Makes counters that are all as `counter` returns them.
            pub(crate) fn with(mut counter: impl FnMut() -> C) -> Self {
                Self { $($name: counter(),)* }
            }

            /// Reads each counter with `read`.
            pub(crate) fn map<D>(&self, mut read: impl FnMut(&C) -> D) -> Stats<D> {
                Stats { $($name: read(&self.$name),)* }
            }
        }

        impl Stats<u64> {
            /// Writes the file.
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
    /// Attempts of these that did not lead to a connection.
    connects_failed,
    /// Attempts of these that followed a loss.
    reconnects,
    /// Requests of peers for a connection.
    requests,
    /// Requests of these that were accepted.
    requests_accepted,
    /// Requests of these that were rejected as the listener had its maximum of connections.
    requests_refused,
    /// Requests of these that failed for want of resources or of a known transport.
    requests_failed,
    /// Requests that were accepted, but whose peer never confirmed that.
    requests_unconfirmed,
    /// Connections established, on either side.
    established,
    /// Connections of these that were lost.
    lost,
    /// Connections of these that were closed by this side.
    closed,
    /// Peers' private data with a valid message (RFC 8797, section 4).
    private_data_present,
    /// Peers' private data without a Format Identifier.
    private_data_absent,
    /// Peers' private data with a Format Identifier, but no valid message.
    private_data_rejected,
    /// Messages that arrived on connections.
    messages_received,
    /// Connections of others that have been observed.
    observed,
    /// Connections of these that were established.
    observed_established,
    /// Attempts of others to connect that a side refused.
    observed_refused,
    /// Attempts of others to connect that failed otherwise.
    observed_failed,
    /// Connections of others that could not be observed, for want of memory or of a place.
    observed_missed,
    /// Events that `history` held, and that later ones have overwritten.
    history_overwritten,
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
