// SPDX-License-Identifier: GPL-2.0

//! The private data of both sides, for the one connection that they sent it for (RFC 8797,
//! section 4).

use core::{
    fmt,
    net::SocketAddr, //
};

use super::{
    negotiation::{
        negotiate,
        Negotiated,
        Role, //
    },
    private_data::{
        parse,
        Offer,
        Parsed,
        PrivateData,
        Size, //
    },
    text::Text, //
};

/// The private data of one side, and the message that the other side finds in it (RFC 8797,
/// section 5.2).
#[derive(Clone, Copy)]
pub(crate) struct ParsedPrivateData {
    pub(crate) octets: PrivateData,
    pub(crate) parsed: Parsed,
}

impl ParsedPrivateData {
    /// Parses `octets`.
    pub(crate) fn new(octets: PrivateData) -> Self {
        Self {
            octets,
            parsed: parse(octets.octets()),
        }
    }

    /// Returns the offer of the side that sent it (RFC 8797, section 5.1).
    pub(crate) fn offer(&self) -> Offer {
        self.parsed.offer()
    }
}

/// The protocol that a port of an RDMA device speaks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Transport {
    InfiniBand,
    Roce,
    Iwarp,
}

impl Transport {
    /// Returns its name in the files of debugfs.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::InfiniBand => "infiniband",
            Self::Roce => "roce",
            Self::Iwarp => "iwarp",
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The RDMA device that a connection runs over.
#[derive(Clone, Copy)]
pub(crate) struct Device {
    /// Its name, of at most `IB_DEVICE_NAME_MAX` octets.
    pub(crate) name: Text<64>,
    pub(crate) transport: Transport,
}

/// The two sides of one connection, and the private data of each (RFC 8797, section 4).
#[derive(Clone, Copy)]
pub(crate) struct Exchange {
    pub(crate) device: Option<Device>,
    pub(crate) local: Option<SocketAddr>,
    pub(crate) remote: Option<SocketAddr>,
    /// The private data that this side sends, once that is known.
    pub(crate) sent: Option<ParsedPrivateData>,
    /// The private data of the peer, once it has arrived.
    pub(crate) received: Option<ParsedPrivateData>,
    /// The version of RPC-over-RDMA that has been agreed upon since, or the one that the requester
    /// used last.
    pub(crate) version: Option<u32>,
}

impl Exchange {
    /// Begins an exchange of which only the peer's address is known, if that.
    pub(crate) const fn with(remote: Option<SocketAddr>) -> Self {
        Self {
            device: None,
            local: None,
            remote,
            sent: None,
            received: None,
            version: None,
        }
    }

    /// Returns the offer in `private_data`, that of one of the two sides. The version of
    /// RPC-over-RDMA decides about the defaults.
    pub(crate) fn offer_of(&self, private_data: &ParsedPrivateData) -> Offer {
        private_data.parsed.offer_or(default_offer(self.version))
    }

    /// Returns both sides' messages; [`None`] as long as one of them is not known.
    pub(crate) fn messages(&self) -> Option<Messages> {
        let (sent, received) = self.sent.as_ref().zip(self.received.as_ref())?;
        Some(Messages {
            sent: sent.parsed,
            received: received.parsed,
        })
    }

    /// Combines the two offers, where `role` is this side's; [`None`] as long as one of them is not
    /// known.
    pub(crate) fn negotiated(&self, role: Role) -> Option<Negotiated> {
        let messages = self.messages()?;
        Some(messages.negotiated(role, self.version))
    }
}

/// The messages that the two sides of a connection have found in each other's private data.
#[derive(Clone, Copy)]
pub(crate) struct Messages {
    /// That of this side.
    sent: Parsed,
    /// That of the peer.
    received: Parsed,
}

impl Messages {
    /// Combines the two offers, where `role` is this side's, and `version` that of RPC-over-RDMA,
    /// once it is agreed upon. In version 2 both thresholds are at least 4096 octets, because every
    /// receiver has that room (draft-cel-nfsv4-rpcrdma-version-two-01, section 2.3).
    pub(crate) fn negotiated(&self, role: Role, version: Option<u32>) -> Negotiated {
        let default = default_offer(version);
        let own = self.sent.offer_or(default);
        let negotiated = negotiate(role, own, self.received.offer_or(default));
        match version {
            Some(2) => negotiated.at_least(Size::DEFAULT_TWO),
            _ => negotiated,
        }
    }
}

/// Returns the offer of a side that has sent no message.
fn default_offer(version: Option<u32>) -> Offer {
    match version {
        Some(2) => Offer::DEFAULT_TWO,
        _ => Offer::DEFAULT,
    }
}
