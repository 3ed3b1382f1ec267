// SPDX-License-Identifier: GPL-2.0

//! Combines the offers of both sides (RFC 8797, sections 4.1 and 4.2), and compares the result with
//! the values that an implementation really uses.

use core::fmt;

use super::private_data::{
    Offer,
    Size, //
};

/// The role of this end of a connection (RFC 8797, section 4).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Role {
    /// The side that actively establishes the connection; the requester.
    Client,
    /// The side that passively accepts it; the responder.
    Server,
}

impl Role {
    /// Returns the role of the other side.
    pub(crate) fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    /// Returns the name of the role in the files of debugfs.
    pub(in crate::pure) fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The result of combining both offers. It holds for the life of one connection (RFC 8797,
/// sections 4.1 and 4.2).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Negotiated {
    /// The client-to-server inline threshold, in octets (RFC 8797, section 4.2).
    pub(crate) client_to_server_threshold: u32,
    /// The server-to-client inline threshold, in octets (RFC 8797, section 4.2).
    pub(crate) server_to_client_threshold: u32,
    /// Whether the responder may use RDMA Send with Invalidate (RFC 8797, section 4.1).
    pub(crate) remote_invalidation: bool,
}

/// Combines the offers of both sides (RFC 8797, sections 4.1 and 4.2). `role` is the role of the
/// side that made the offer `own`.
///
/// RFC 8797 has each side compute the threshold for the messages that it sends. Here each side
/// computes both thresholds: it knows both offers, and both ends arrive at the same result.
pub(crate) fn negotiate(role: Role, own: Offer, peer: Offer) -> Negotiated {
    let (client, server) = match role {
        Role::Client => (own, peer),
        Role::Server => (peer, own),
    };

    Negotiated {
        client_to_server_threshold: client.send_size.min(server.receive_size).octets(),
        server_to_client_threshold: server.send_size.min(client.receive_size).octets(),
        remote_invalidation: client.remote_invalidation && server.remote_invalidation,
    }
}

/// The values that an implementation really uses on one connection. [`None`] stands for a value
/// that is not known.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct InUse {
    /// The length of the longest message that it sends inline, in octets.
    pub(crate) inline_send: Option<u32>,
    /// The length of the longest message that it expects to receive inline, in octets.
    pub(crate) inline_receive: Option<u32>,
    /// Whether the responder uses RDMA Send with Invalidate.
    pub(crate) remote_invalidation: Option<bool>,
    /// Whether the peer's message begins at another offset than 0, and the implementation looks for
    /// it at offset 0 only.
    pub(crate) misplaced: bool,
}

/// A difference between the values that an implementation uses and the result of both offers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Deviation {
    /// The implementation may send longer messages than the threshold allows (RFC 8797, section
    /// 4.2).
    InlineSend { in_use: u32, threshold: u32 },
    /// The implementation expects messages of another length than the threshold (RFC 8797, section
    /// 4.2).
    InlineReceive { in_use: u32, threshold: u32 },
    /// The implementation has not found the peer's message, because it begins at another offset
    /// than 0. So it expects shorter messages than the peer may send (RFC 8797, section 5.2).
    Misplaced { in_use: u32, threshold: u32 },
    /// The implementation invalidates remotely, although not both sides support that (RFC 8797,
    /// section 4.1).
    RemoteInvalidation,
}

impl fmt::Display for Deviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InlineSend { in_use, threshold } => write!(
                f,
                "may send {in_use} octets inline, where the threshold is {threshold} \
                 (RFC 8797, section 4.2)"
            ),
            Self::InlineReceive { in_use, threshold } => write!(
                f,
                "expects up to {in_use} octets inline, where the threshold is {threshold} \
                 (RFC 8797, section 4.2)"
            ),
            Self::Misplaced { in_use, threshold } => write!(
                f,
                "does not look for private data at other offsets than 0, and expects up to \
                 {in_use} octets inline, where the threshold is {threshold} (RFC 8797, section 5.2)"
            ),
            Self::RemoteInvalidation => f.write_str(
                "uses RDMA Send with Invalidate, although not both sides support remote \
                 invalidation (RFC 8797, section 4.1)",
            ),
        }
    }
}

impl Negotiated {
    /// Returns the inline threshold for the messages that the side of this role sends, in octets.
    /// It is the same in both directions of calls (RFC 8167, section 4.2).
    pub(crate) fn threshold(&self, sender: Role) -> u32 {
        match sender {
            Role::Client => self.client_to_server_threshold,
            Role::Server => self.server_to_client_threshold,
        }
    }

    /// Returns the same result with both thresholds raised to `size`, if they are below.
    pub(crate) fn at_least(self, size: Size) -> Self {
        let size = size.octets();
        Self {
            client_to_server_threshold: self.client_to_server_threshold.max(size),
            server_to_client_threshold: self.server_to_client_threshold.max(size),
            ..self
        }
    }

    /// Returns the deviations of an implementation in `role` that uses the values `in_use`.
    ///
    /// Sending less than the threshold allows is no deviation, nor is not invalidating remotely. A
    /// server may be prepared to receive longer messages than the threshold. A client may not: it
    /// decides by the length that it expects whether to offer a Reply chunk, so that length must be
    /// the one up to which the server sends inline.
    pub(crate) fn deviations(
        &self,
        role: Role,
        in_use: &InUse,
    ) -> impl Iterator<Item = Deviation> + use<> {
        let (send, receive) = (self.threshold(role), self.threshold(role.peer()));
        let inline_send = in_use.inline_send.filter(|&in_use| in_use > send);
        let inline_receive = in_use
            .inline_receive
            .filter(|&in_use| in_use < receive || (role == Role::Client && in_use > receive));
        let remote_invalidation = in_use
            .remote_invalidation
            .filter(|&in_use| in_use && !self.remote_invalidation);

        [
            inline_send.map(|in_use| Deviation::InlineSend {
                in_use,
                threshold: send,
            }),
            inline_receive.map(|in_use_octets| {
                if in_use.misplaced && in_use_octets < receive {
                    Deviation::Misplaced {
                        in_use: in_use_octets,
                        threshold: receive,
                    }
                } else {
                    Deviation::InlineReceive {
                        in_use: in_use_octets,
                        threshold: receive,
                    }
                }
            }),
            remote_invalidation.map(|_| Deviation::RemoteInvalidation),
        ]
        .into_iter()
        .flatten()
    }
}
