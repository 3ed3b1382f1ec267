// SPDX-License-Identifier: GPL-2.0

//! The RPC-over-RDMA version 1 CM Private Data message (RFC 8797, section 4).
//!
//! Each side of a connection may send one such message while the connection is set up. It is eight
//! octets long, and states the offer of its sender for the life of that connection.

use core::fmt;

/// The value of the Format Identifier field, sent in network byte order (RFC 8797, section 4).
pub(crate) const FORMAT_IDENTIFIER: u32 = 0xf6ab_0e18;

/// The only message format version that RFC 8797 defines (section 4, "Version").
pub(crate) const VERSION: u8 = 1;

/// Length in octets of a version 1 message (RFC 8797, section 4, "Version").
pub(crate) const MESSAGE_LEN: usize = 8;

/// The R field: the lowest bit of the flags octet. The other seven bits are Reserved (RFC 8797,
/// section 4).
const R: u8 = 0x01;

/// The unit of Send Size and Receive Size, in octets (RFC 8797, section 4.2).
const KILO_OCTET: u32 = 1024;

/// The value of a Send Size or Receive Size field (RFC 8797, section 4.2).
///
/// The field holds the number of kilo-octets beyond the first one, so that each of its values is a
/// valid size.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Size(u8);

impl Size {
    /// The size of a side that sent no valid message: 1024 octets (RFC 8797, section 5.1).
    pub(crate) const DEFAULT: Self = Self(0);

    /// The default size in version 2 of RPC-over-RDMA: 4096 octets
    /// (draft-cel-nfsv4-rpcrdma-version-two-01, section 2.3).
    pub(crate) const DEFAULT_TWO: Self = Self(3);

    /// The smallest size that can be represented, in octets (RFC 8797, section 4.2).
    pub(crate) const MIN_OCTETS: u32 = 1024;

    /// The largest size that can be represented, in octets (RFC 8797, section 4.2).
    pub(crate) const MAX_OCTETS: u32 = 262_144;

    /// Encodes a buffer size given in octets (RFC 8797, section 4.2).
    ///
    /// Rounds down to a multiple of 1024 octets, because a peer may use the whole size that is
    /// advertised. Returns [`None`] if the size is below [`Self::MIN_OCTETS`] or above
    /// [`Self::MAX_OCTETS`].
    pub(crate) fn from_octets(octets: u32) -> Option<Self> {
        if !(Self::MIN_OCTETS..=Self::MAX_OCTETS).contains(&octets) {
            return None;
        }
        u8::try_from(octets / KILO_OCTET - 1).ok().map(Self)
    }

    /// Creates a size from the value of a field. Each value is valid (RFC 8797, section 4.2).
    pub(crate) const fn from_encoded(encoded: u8) -> Self {
        Self(encoded)
    }

    /// Returns the value of the field (RFC 8797, section 4.2).
    pub(crate) const fn encoded(self) -> u8 {
        self.0
    }

    /// Returns the size in octets (RFC 8797, section 4.2).
    pub(crate) fn octets(self) -> u32 {
        (u32::from(self.0) + 1) * KILO_OCTET
    }
}

/// The content of one side's message (RFC 8797, section 4).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Offer {
    /// The length of the longest RDMA Send that the sender of the message transmits.
    pub(crate) send_size: Size,
    /// The length of the longest message for which the sender of the message posts RDMA Receives.
    pub(crate) receive_size: Size,
    /// The R field: the sender of the message supports remote invalidation.
    pub(crate) remote_invalidation: bool,
}

impl Offer {
    /// The offer of a side that sent no valid message (RFC 8797, section 5.1).
    pub(crate) const DEFAULT: Self = Self {
        send_size: Size::DEFAULT,
        receive_size: Size::DEFAULT,
        remote_invalidation: false,
    };

    /// The default offer in version 2 of RPC-over-RDMA (draft-cel-nfsv4-rpcrdma-version-two-01,
    /// section 5.1).
    pub(crate) const DEFAULT_TWO: Self = Self {
        send_size: Size::DEFAULT_TWO,
        receive_size: Size::DEFAULT_TWO,
        ..Self::DEFAULT
    };

    /// Builds the message: version 1, Reserved bits zero (RFC 8797, section 4).
    pub(crate) fn to_octets(self) -> [u8; MESSAGE_LEN] {
        let [id0, id1, id2, id3] = FORMAT_IDENTIFIER.to_be_bytes();
        [
            id0,
            id1,
            id2,
            id3,
            VERSION,
            if self.remote_invalidation { R } else { 0 },
            self.send_size.encoded(),
            self.receive_size.encoded(),
        ]
    }
}

/// The content of a CM Private Data field (RFC 8797, section 4): up to 255 octets, the maximum of
/// the kernel's length field.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct PrivateData {
    octets: [u8; Self::MAX_LEN],
    len: u8,
}

impl PrivateData {
    /// The most octets that it can hold.
    pub(crate) const MAX_LEN: usize = 255;

    /// No octet at all.
    pub(crate) const EMPTY: Self = Self {
        octets: [0; Self::MAX_LEN],
        len: 0,
    };

    /// Copies the first [`Self::MAX_LEN`] of `octets`.
    pub(crate) fn truncated(octets: &[u8]) -> Self {
        let mut this = Self::EMPTY;
        let _ = octets.iter().try_for_each(|&octet| this.push(octet));
        this
    }

    /// Adds an octet. Returns [`None`] if there are [`Self::MAX_LEN`] already.
    pub(crate) fn push(&mut self, octet: u8) -> Option<()> {
        let len = self.len.checked_add(1)?;
        *self.octets.get_mut(usize::from(self.len))? = octet;
        self.len = len;
        Some(())
    }

    /// Returns the octets.
    pub(crate) fn octets(&self) -> &[u8] {
        self.octets.get(..self.len.into()).unwrap_or_default()
    }

    /// Returns how many octets there are.
    pub(crate) fn len(&self) -> u8 {
        self.len
    }
}

/// The CM Private Data to send (RFC 8797, section 4).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "a box needs an allocation, and 256 octets fit on the stack"
)]
pub(crate) enum Offered {
    /// A message with this offer (RFC 8797, section 4).
    Message(Offer),
    /// The octets of `private=`.
    Raw(PrivateData),
    /// No Private Data at all.
    None,
}

impl Offered {
    /// Returns the octets to send. In a message, clears the R field unless `can_invalidate`,
    /// because not all RNICs support remote invalidation (RFC 8797, section 3.2). The octets of
    /// `private=` are not changed.
    pub(crate) fn private_data(&self, can_invalidate: bool) -> PrivateData {
        match *self {
            Self::Message(offer) => {
                let offer = Offer {
                    remote_invalidation: offer.remote_invalidation && can_invalidate,
                    ..offer
                };
                PrivateData::truncated(&offer.to_octets())
            }
            Self::Raw(octets) => octets,
            Self::None => PrivateData::EMPTY,
        }
    }

    /// Returns the offer that a peer reads in the octets (RFC 8797, sections 5.1 and 5.2), assuming
    /// that the device supports remote invalidation.
    pub(crate) fn offer(&self) -> Offer {
        parse(self.private_data(true).octets()).offer()
    }
}

/// A valid message, with its place (RFC 8797, section 5.2).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Found {
    /// The offset of its Format Identifier, in octets from the start of the Private Data.
    pub(crate) offset: usize,
    /// Its Version field: [`VERSION`], the only one that is recognized.
    pub(crate) version: u8,
    /// The flags octet without R: the Reserved field. It is ignored, and kept for display.
    pub(crate) reserved: u8,
    /// Its content.
    pub(crate) offer: Offer,
}

/// Why the octets that begin with a Format Identifier are no valid message (RFC 8797, section 5.2).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Rejection {
    /// The Version field is not 1 (RFC 8797, sections 5.2 and 6).
    Version(u8),
    /// The Private Data ends before the message does (RFC 8797, section 5.2).
    Truncated {
        /// The number of octets from the Format Identifier on; fewer than [`MESSAGE_LEN`].
        available: usize,
    },
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => write!(f, "unrecognized version {version}"),
            Self::Truncated { available } => {
                write!(f, "truncated, {available} of {MESSAGE_LEN} octets")
            }
        }
    }
}

/// The result of parsing a peer's Private Data (RFC 8797, section 5.2).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Parsed {
    /// There is a valid message.
    Present(Found),
    /// There is no Format Identifier.
    Absent,
    /// There is a Format Identifier, but no valid message.
    Rejected {
        /// The offset of the first Format Identifier, in octets from the start of the Private Data.
        offset: usize,
        /// Why the octets at that offset are no valid message.
        reason: Rejection,
    },
}

impl Parsed {
    /// Returns the offer of the peer: the defaults unless it sent a valid message (RFC 8797,
    /// section 5.1).
    pub(crate) fn offer(&self) -> Offer {
        self.offer_or(Offer::DEFAULT)
    }

    /// Returns the offer of the peer: `default` unless it sent a valid message.
    pub(crate) fn offer_or(&self, default: Offer) -> Offer {
        match self {
            Self::Present(found) => found.offer,
            Self::Absent | Self::Rejected { .. } => default,
        }
    }
}

/// Finds the message in a peer's Private Data (RFC 8797, section 5.2).
///
/// `octets` is everything that the transport delivered. It may be empty, or shorter than a message,
/// or longer: other layers may put their own data in front of the message, and InfiniBand pads
/// behind it.
///
/// Looks for the Format Identifier at every offset. It can also occur by chance in the data of
/// another layer (RFC 8797, section 7). So a Format Identifier without a valid message does not end
/// the search: the first valid message counts. If there is none, the first Format Identifier is
/// reported.
pub(crate) fn parse(octets: &[u8]) -> Parsed {
    let mut result = Parsed::Absent;
    for offset in 0..octets.len() {
        match parse_at(offset, octets) {
            Some(Ok(found)) => return Parsed::Present(found),
            Some(Err(reason)) if result == Parsed::Absent => {
                result = Parsed::Rejected { offset, reason };
            }
            _ => {}
        }
    }
    result
}

/// Parses the message that begins at `offset` (RFC 8797, sections 4 and 5.2). Returns [`None`] if
/// there is no Format Identifier at that offset.
fn parse_at(offset: usize, octets: &[u8]) -> Option<Result<Found, Rejection>> {
    let candidate = octets.get(offset..)?;
    let (&identifier, fields) = candidate.split_first_chunk()?;
    if identifier != FORMAT_IDENTIFIER.to_be_bytes() {
        return None;
    }
    let Some(&[version, flags, send_size, receive_size]) = fields.first_chunk() else {
        return Some(Err(Rejection::Truncated {
            available: candidate.len(),
        }));
    };
    if version != VERSION {
        return Some(Err(Rejection::Version(version)));
    }

    Some(Ok(Found {
        offset,
        version,
        reserved: flags & !R,
        offer: Offer {
            send_size: Size::from_encoded(send_size),
            receive_size: Size::from_encoded(receive_size),
            remote_invalidation: flags & R != 0,
        },
    }))
}
