// SPDX-License-Identifier: GPL-2.0

//! Which way a message goes (RFC 8167, section 2; the draft, section 4.2.2).

use super::{
    chunks::ChunkLists,
    error::Part,
    Direction,
    Fixed,
    Parser,
    Reader,
    RDMA2_OPTIONAL,
    RDMA_ERROR,
    RDMA_MSG,
    RDMA_NOMSG, //
};

/// Returns which way a message goes, even where its header is malformed; [`None`] where it does not
/// say so. The receiver then has its own outstanding calls to go by.
///
/// Version 2 has a field for the direction (the draft, section 4.2.2). In version 1 it is that of
/// the RPC message (RFC 8167, section 2). An RPC message in chunks cannot be read here: only a call
/// has a Read list (RFC 8166, section 4.3.1). Errors are for calls (RFC 8166, section 4.5).
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
