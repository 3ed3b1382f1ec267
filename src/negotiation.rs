// SPDX-License-Identifier: GPL-2.0

//! What the offers of the two sides mean together (RFC 8797, sections 4.1 and 4.2).

use core::fmt;

use crate::wire::private_data::Offer;

/// Which side of the connection this end is (RFC 8797, section 4).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Role {
    /// The side that actively establishes the connection; the requester.
    Client,
    /// The side that passively accepts it; the responder.
    Server,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Client => "client",
            Self::Server => "server",
        })
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
