// SPDX-License-Identifier: GPL-2.0

//! The first cause of the end of a connection, concluded from the evidence in the order in which it
//! arrives.
//!
//! An end of a connection leaves many traces: the peer disconnects, the device flushes the work
//! requests, and the owner disconnects because of that. Only the first one is the cause. A flush is
//! never the cause. Something has ended the connection before, and the evidence of that may arrive
//! later, because completions and events of the CM take different ways.

/// A trace of the end of a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Evidence {
    /// The CM says that the connection is disconnected: DREQ, FIN or RST has arrived.
    Disconnected,
    /// REJ has arrived for an established connection. The CM makes the queue pair fail before it
    /// reports that, so that a flush is its consequence.
    Rejected,
    /// The owner of this end calls rdma_disconnect.
    Disconnect,
    /// A completion, other than a flush, or an event of the queue pair names an error, or a Work
    /// Request could not be posted.
    Error,
    /// This end makes the queue pair fail.
    GivenUp,
    /// The device or the address of this end is gone.
    Gone,
    /// A Work Request was flushed, or could not be posted because the connection was being closed,
    /// or iWARP closed the connection although the peer had not disconnected. Something else was
    /// the cause.
    Consequence,
}

/// The present knowledge of the end of a connection.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Ending {
    /// The connection has not ended.
    #[default]
    None,
    /// The peer disconnected, or rejected the connection after it had accepted it.
    Peer,
    /// This end disconnected, or made the queue pair fail.
    ThisEnd,
    /// The queue pair failed because of an error.
    Error,
    /// The device or the address of this end is gone.
    Gone,
    /// The connection has ended, and the cause is not known.
    Unknown {
        /// Whether the peer may have disconnected. DISCONNECTED would then show that.
        peer: bool,
    },
}

impl Ending {
    /// Returns what is known after `evidence` has arrived, too.
    ///
    /// `iwarp` says whether the transport is iWARP. There a disconnect of the peer makes the device
    /// flush, and the CM may report it after the flush. On InfiniBand and RoCE it does not make the
    /// device flush, so a flush before it had another cause.
    pub(crate) fn learn(self, evidence: Evidence, iwarp: bool) -> Self {
        match (self, evidence) {
            // The first cause stays.
            (Self::Peer | Self::ThisEnd | Self::Error | Self::Gone, _) => self,
            (_, Evidence::Error) => Self::Error,
            (_, Evidence::Gone) => Self::Gone,
            (Self::None | Self::Unknown { peer: true }, Evidence::Disconnected) => Self::Peer,
            (_, Evidence::Rejected) => Self::Peer,
            (Self::None, Evidence::Disconnect | Evidence::GivenUp) => Self::ThisEnd,
            // From here on, DISCONNECTED may be the answer to that.
            (Self::Unknown { .. }, Evidence::Disconnect) => Self::Unknown { peer: false },
            (Self::None, Evidence::Consequence) => Self::Unknown { peer: iwarp },
            // The queue pair had failed before.
            (
                Self::Unknown { .. },
                Evidence::Disconnected | Evidence::GivenUp | Evidence::Consequence,
            ) => self,
        }
    }

    /// Whether the first cause is known.
    pub(crate) fn is_known(self) -> bool {
        !matches!(self, Self::None | Self::Unknown { .. })
    }
}
