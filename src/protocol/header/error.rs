// SPDX-License-Identifier: GPL-2.0

//! What is wrong with a header, and what is to be answered (RFC 8166, section 4.5).

use core::fmt;

use super::{
    Body,
    Fixed,
    Header,
    Versions,
    RDMA_ERROR, //
};

/// Why octets are not a message, or not one to act upon (RFC 8166, section 4.5).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Error {
    /// Too short to believe anything in it (RFC 8166, section 4.5).
    Short {
        /// How many octets there are.
        length: usize,
    },
    /// A version that is not known (RFC 8166, section 4.5.1).
    Version(Fixed),
    /// A version that is known, and a header that is none of it (RFC 8166, section 4.5.2).
    Malformed(Fixed, Malformed),
}

impl Error {
    /// Returns what a responder that grants `credit` and speaks `versions` answers to a call like
    /// this, or [`None`] where it is to discard the message silently (RFC 8166, section 4.5; the
    /// draft, section 4.2.3). A malformed reply is discarded always.
    ///
    /// What a version that it does not speak would find wrong does not matter to it.
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

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short { length } => write!(f, "{length} octets, fewer than any header has"),
            Self::Version(fixed) => write!(f, "unknown version {}", fixed.vers),
            Self::Malformed(_, malformed) => malformed.fmt(f),
        }
    }
}

/// What is wrong with a header, and where.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Malformed {
    /// The part of the header.
    pub(crate) part: Part,
    /// Where the word is, in octets from the beginning of the message.
    pub(crate) at: usize,
    /// What is wrong with it.
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

/// What is wrong with a part of a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Reason {
    /// The octets end where a word must be.
    Truncated,
    /// This is none of the values that the word can have.
    Value(u32),
    /// More elements than there are octets for (RFC 4506, sections 4.10 and 4.13).
    Count(u32),
    /// This Position is not a multiple of four (RFC 8166, section 3.4.5).
    Position(u32),
    /// The octets that fill up the last unit of what begins there are not zero (RFC 4506, section
    /// 3).
    Residual,
    /// RDMA_NOMSG, and no chunk that could hold the Payload stream (RFC 8166, section 4.5.2).
    NoChunk,
    /// RDMA_MSGP, which senders must not send (RFC 8166, section 4.6.1).
    Msgp,
    /// RDMA_DONE, which senders must not send (RFC 8166, section 4.6.2).
    Done,
    /// The RPC message has this XID, and the header another (RFC 8166, section 4.5.2).
    Xid(u32),
    /// The RPC message is of this type, and goes the other way (the draft, section 4.2.2).
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
