// SPDX-License-Identifier: GPL-2.0

//! Errors in a header, and the answers to them (RFC 8166, section 4.5).

use core::fmt;

use super::{
    Body,
    Fixed,
    Header,
    Versions,
    RDMA_ERROR, //
};

/// Why a message cannot be processed (RFC 8166, section 4.5).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum HeaderError {
    /// The message is too short to be parsed (RFC 8166, section 4.5).
    Short {
        /// The length of the message, in octets.
        length: usize,
    },
    /// The version is not known (RFC 8166, section 4.5.1).
    Version(Fixed),
    /// The version is known, and the header is malformed (RFC 8166, section 4.5.2).
    Malformed(Fixed, Malformed),
}

impl HeaderError {
    /// Returns the XID of the message, or [`None`] if it is too short to be trusted.
    pub(crate) fn xid(&self) -> Option<u32> {
        match self {
            Self::Short { .. } => None,
            Self::Version(fixed) | Self::Malformed(fixed, _) => Some(fixed.xid),
        }
    }

    /// Returns the answer of a responder that grants `credit` and speaks `versions` to a call with
    /// this error, or [`None`] if the responder must discard the message silently (RFC 8166,
    /// section 4.5; the draft, section 4.2.3). The caller discards malformed replies.
    ///
    /// If the responder does not speak the version of the call, the answer is ERR_VERS, even if the
    /// header is malformed.
    pub(crate) fn answer(&self, credit: u32, versions: Versions) -> Option<Header<'static>> {
        let (xid, body) = match *self {
            Self::Short { .. } => return None,
            Self::Version(Fixed { xid, vers, .. }) => (xid, versions.mismatch(vers)),
            // RFC 8166, section 4.2.4.
            Self::Malformed(Fixed { proc, .. }, _) if proc == RDMA_ERROR => return None,
            Self::Malformed(Fixed { xid, vers, .. }, _) if !versions.contains(vers) => {
                (xid, versions.mismatch(vers))
            }
            // RFC 8166, section 4.6.2.
            Self::Malformed(_, malformed) if malformed.reason == Reason::Done => return None,
            Self::Malformed(Fixed { xid, vers: 1, .. }, _) => (xid, Body::ErrChunk),
            Self::Malformed(Fixed { xid, .. }, _) => (xid, Body::ErrBadHeader),
        };
        Some(Header { xid, credit, body })
    }
}

/// The word of a header that is wrong, and the reason.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Malformed {
    /// The part of the header that is wrong.
    pub(crate) part: Part,
    /// The offset of the word from the beginning of the message, in octets.
    pub(crate) at: usize,
    /// The reason.
    pub(crate) reason: Reason,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at octet {}: {}", self.part, self.at, self.reason)
    }
}

/// A part of a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Part {
    /// `rdma_proc` (RFC 8166, section 4.2.4).
    Proc,
    /// `rdma_direction` or `rdma_optdir` (the draft, section 4.2.2).
    Direction,
    /// `rdma_reads` (RFC 8166, section 4.3.1).
    ReadList,
    /// `rdma_writes` (RFC 8166, section 4.3.2).
    WriteList,
    /// `rdma_reply` (RFC 8166, section 4.3.3).
    ReplyChunk,
    /// `rdma_error` (RFC 8166, section 4.5).
    Err,
    /// `rdma_opttype` or `rdma_optinfo` (the draft, section 3.1).
    Optional,
    /// The Payload stream (RFC 8166, section 3.2).
    Payload,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Proc => "rdma_proc",
            Self::Direction => "direction",
            Self::ReadList => "Read list",
            Self::WriteList => "Write list",
            Self::ReplyChunk => "Reply chunk",
            Self::Err => "rdma_error",
            Self::Optional => "rdma_optional",
            Self::Payload => "Payload stream",
        })
    }
}

/// The reason why a part of a message is wrong.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Reason {
    /// The message ends where a word must be.
    Truncated,
    /// The word has this value, which is not allowed.
    Value(u32),
    /// More elements, or octets, are announced than the message has (RFC 4506, sections 4.10 and
    /// 4.13).
    Count(u32),
    /// This Position is not a multiple of four (RFC 8166, section 3.4.5).
    Position(u32),
    /// The padding of the item that begins at the word is not zero (RFC 4506, section 3).
    Residual,
    /// An RDMA_NOMSG whose chunk lists are all marked not present (RFC 8166, section 4.5.2).
    NoChunk,
    /// RDMA_MSGP, which senders must not send (RFC 8166, section 4.6.1).
    Msgp,
    /// RDMA_DONE, which senders must not send (RFC 8166, section 4.6.2).
    Done,
    /// The RPC message has this XID, and the header another (RFC 8166, section 4.5.2).
    Xid(u32),
    /// The RPC message has this type, which contradicts the direction in the header (the draft,
    /// section 4.2.2).
    MsgType(u32),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("truncated"),
            Self::Value(value) => write!(f, "illegal value {value}"),
            Self::Count(count) => write!(f, "a count of {count} is more than there is"),
            Self::Position(position) => write!(f, "Position {position} is not a multiple of four"),
            Self::Residual => f.write_str("residual octets are not zero"),
            Self::NoChunk => f.write_str("RDMA_NOMSG without a chunk"),
            Self::Msgp => f.write_str("RDMA_MSGP is not to be used"),
            Self::Done => f.write_str("RDMA_DONE is not to be used"),
            Self::Xid(xid) => write!(f, "XID {xid:#010x} is not the header's"),
            Self::MsgType(msg_type) => write!(f, "msg_type {msg_type} is not the direction"),
        }
    }
}
