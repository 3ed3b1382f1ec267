// SPDX-License-Identifier: GPL-2.0

//! The private data that both sides of one connection exchanged (RFC 8797, section 4).

use core::{
    fmt,
    net::SocketAddr, //
};

use super::format::Text;
use crate::pure::wire::{
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
    }, //
};

/// The result of parsing the private data of one side (RFC 8797, section 5.2).
#[derive(Clone, Copy)]
pub(crate) struct ParsedPrivateData {
    pub(crate) parsed: Parsed,
    /// The length of the private data in octets.
    pub(crate) len: u8,
    /// The first octets, if there is no Format Identifier. [`None`] also if all octets are zero:
    /// zeros may be padding.
    pub(crate) other_format: Option<[u8; 8]>,
}

impl ParsedPrivateData {
    /// Parses private data.
    pub(crate) fn new(private_data: &PrivateData) -> Self {
        let octets = private_data.octets();
        let parsed = parse(octets);
        let is_other = parsed == Parsed::Absent && octets.iter().any(|&octet| octet != 0);
        let mut first = [0; 8];
        for (to, from) in first.iter_mut().zip(octets) {
            *to = *from;
        }
        Self {
            parsed,
            len: private_data.len(),
            other_format: is_other.then_some(first),
        }
    }

    /// Returns the offer of the side that sent the private data: the defaults if it is not valid
    /// (RFC 8797, section 5.1).
    pub(crate) fn offer(&self) -> Offer {
        self.parsed.offer()
    }
}

/// The protocol that a port of an RDMA device speaks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ShownTransport {
    InfiniBand,
    Roce,
    Iwarp,
}

impl ShownTransport {
    /// Returns its name in the files of debugfs.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::InfiniBand => "infiniband",
            Self::Roce => "roce",
            Self::Iwarp => "iwarp",
        }
    }
}

impl fmt::Display for ShownTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The RDMA device that a connection runs over.
#[derive(Clone, Copy)]
pub(crate) struct ShownDevice {
    /// Its name, of at most `IB_DEVICE_NAME_MAX` octets.
    pub(crate) name: Text<64>,
    pub(crate) transport: ShownTransport,
}

/// The two sides of one connection, and the private data of each (RFC 8797, section 4).
#[derive(Clone, Copy)]
pub(crate) struct Exchange {
    pub(crate) device: Option<ShownDevice>,
    pub(crate) local: Option<SocketAddr>,
    pub(crate) remote: Option<SocketAddr>,
    /// The private data that this side sends; [`None`] if it is not known.
    pub(crate) sent: Option<ParsedPrivateData>,
    /// The private data of the peer; [`None`] until it has arrived, or if it is not known.
    pub(crate) received: Option<ParsedPrivateData>,
    /// The version of RPC-over-RDMA that both sides have agreed upon. [`None`] before that, and of
    /// the connections of others.
    pub(crate) version: Option<u32>,
}

impl Exchange {
    /// Creates an exchange of which at most the peer's address is known.
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

    /// Returns the offer in `private_data`, which is `sent` or `received`. The defaults are those
    /// of the version of RPC-over-RDMA.
    pub(crate) fn offer_of(&self, private_data: &ParsedPrivateData) -> Offer {
        private_data.parsed.offer_or(default_offer(self.version))
    }

    /// Returns the messages of both sides; [`None`] until both are known.
    pub(crate) fn messages(&self) -> Option<Messages> {
        let (sent, received) = self.sent.as_ref().zip(self.received.as_ref())?;
        Some(Messages {
            sent: sent.parsed,
            received: received.parsed,
        })
    }

    /// Combines the two offers. `role` is that of this side. Returns [`None`] until both are known.
    pub(crate) fn negotiated(&self, role: Role) -> Option<Negotiated> {
        let messages = self.messages()?;
        Some(messages.negotiated(role, self.version))
    }
}

/// The messages in the private data of both sides.
#[derive(Clone, Copy)]
pub(crate) struct Messages {
    /// The message of this side.
    sent: Parsed,
    /// The message of the peer.
    received: Parsed,
}

impl Messages {
    /// Combines the two offers. `role` is that of this side. `version` is the version of
    /// RPC-over-RDMA, if known. In version 2 both thresholds are at least 4096 octets, because
    /// every receiver has that room (draft-cel-nfsv4-rpcrdma-version-two-01, section 2.3).
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

/// Returns the offer of a side that has sent no valid message (RFC 8797, section 5.1).
fn default_offer(version: Option<u32>) -> Offer {
    match version {
        Some(2) => Offer::DEFAULT_TWO,
        _ => Offer::DEFAULT,
    }
}
