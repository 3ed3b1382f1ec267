// SPDX-License-Identifier: GPL-2.0

//! What the offers of the two sides mean together (RFC 8797, sections 4.1 and 4.2).

use core::fmt;

use super::private_data::{
    Offer,
    Size, //
};

/// Which side of the connection this end is (RFC 8797, section 4).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Role {
    /// The side that actively establishes the connection; the requester.
    Client,
    /// The side that passively accepts it; the responder.
    Server,
}

impl Role {
    /// Returns its name in the files of debugfs.
    pub(super) fn name(self) -> &'static str {
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

/// What holds for the life of one connection (RFC 8797, sections 4.1 and 4.2).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Negotiated {
    /// The client-to-server inline threshold, in octets (RFC 8797, section 4.2).
    pub(crate) client_to_server_threshold: u32,
    /// The server-to-client inline threshold, in octets (RFC 8797, section 4.2).
    pub(crate) server_to_client_threshold: u32,
    /// Whether the responder may use RDMA Send with Invalidate (RFC 8797, section 4.1).
    pub(crate) remote_invalidation: bool,
}

/// Combines the offers of both sides, where `role` is that of the side that made `own`
/// (RFC 8797, sections 4.1 and 4.2).
///
/// RFC 8797 has each side compute the threshold for what it sends. Here each side computes both:
/// it holds both offers, and the two ends of a connection arrive at the same result.
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

/// What an implementation goes by on one connection, as far as that is known.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct InUse {
    /// The most that it sends inline, in octets.
    pub(crate) inline_send: Option<u32>,
    /// The most that it expects to receive inline, in octets.
    pub(crate) inline_receive: Option<u32>,
    /// Whether the responder uses RDMA Send with Invalidate.
    pub(crate) remote_invalidation: Option<bool>,
    /// Whether the peer's message begins at another offset than 0, where it does not look.
    pub(crate) misplaced: bool,
}

/// How an implementation departs from what the two offers mean together.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Deviation {
    /// It may send longer messages than the threshold allows (RFC 8797, section 4.2).
    InlineSend { in_use: u32, threshold: u32 },
    /// It expects messages of another length than the threshold (RFC 8797, section 4.2).
    InlineReceive { in_use: u32, threshold: u32 },
    /// It has not found the peer's message, which begins at another offset than 0, so that it
    /// expects shorter messages than the peer may send (RFC 8797, section 5.2).
    Misplaced { in_use: u32, threshold: u32 },
    /// It invalidates remotely, although not both sides support that (RFC 8797, section 4.1).
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
    /// Returns the same with thresholds that are not below `size`.
    pub(crate) fn at_least(self, size: Size) -> Self {
        let size = size.octets();
        Self {
            client_to_server_threshold: self.client_to_server_threshold.max(size),
            server_to_client_threshold: self.server_to_client_threshold.max(size),
            ..self
        }
    }

    /// Returns where an implementation in that role departs from this by what it goes by.
    ///
    /// To send less than is allowed, and not to invalidate, is no departure. A server may well be
    /// ready for more than it is ever sent; a client chooses by what it expects how a reply is to
    /// come, so has to expect what the server may send.
    pub(crate) fn deviations(
        &self,
        role: Role,
        in_use: &InUse,
    ) -> impl Iterator<Item = Deviation> + use<> {
        let (send, receive) = match role {
            Role::Client => (
                self.client_to_server_threshold,
                self.server_to_client_threshold,
            ),
            Role::Server => (
                self.server_to_client_threshold,
                self.client_to_server_threshold,
            ),
        };
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
