// SPDX-License-Identifier: GPL-2.0

//! The direction of a message (RFC 8167, section 2; the draft, section 4.2.2).

use super::{
    chunks::ChunkLists,
    error::{
        Part,
        Reason, //
    },
    Fixed,
    Parser,
    Reader,
    RDMA2_OPTIONAL,
    RDMA_ERROR,
    RDMA_MSG,
    RDMA_NOMSG, //
};

/// The direction of a message: `msg_type` of RPC (the draft, sections 3.2 and 4.2.2).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Direction {
    /// From requester to responder.
    Call = 0,
    /// From responder to requester.
    Reply = 1,
}

impl Direction {
    pub(super) fn from_word(word: u32) -> Result<Self, Reason> {
        match word {
            0 => Ok(Self::Call),
            1 => Ok(Self::Reply),
            _ => Err(Reason::Value(word)),
        }
    }
}

/// Returns the direction of a message, even if its header is malformed. Returns [`None`] if the
/// message does not show it. The receiver then looks the XID up in its own outstanding calls. Of a
/// header that was parsed, [`Header::direction`](super::Header::direction) returns the same.
///
/// Version 2 has a field for the direction (the draft, section 4.2.2). In version 1 the direction
/// is the type of the RPC message (RFC 8167, section 2). An RPC message in chunks cannot be read
/// here: only a call has a Read list (RFC 8166, section 4.3.1). Errors answer calls (RFC 8166,
/// section 4.5).
pub(crate) fn direction(octets: &[u8]) -> Option<Direction> {
    let mut parser = Parser {
        reader: Reader::new(octets),
        part: Part::Direction,
    };
    let fixed = Fixed::parse(&mut parser.reader)?;
    match (fixed.vers, fixed.proc) {
        (_, RDMA_ERROR) => Some(Direction::Reply),
        (2, RDMA_MSG | RDMA_NOMSG | RDMA2_OPTIONAL) => parser.direction().ok(),
        (1, RDMA_MSG) => {
            ChunkLists::parse(&mut parser).ok()?;
            let _xid = parser.word().ok()?;
            parser.direction().ok()
        }
        (1, RDMA_NOMSG) => {
            let lists = ChunkLists::parse(&mut parser).ok()?;
            (!lists.reads.is_empty()).then_some(Direction::Call)
        }
        _ => None,
    }
}
