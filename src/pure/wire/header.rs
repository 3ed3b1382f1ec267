// SPDX-License-Identifier: GPL-2.0

//! The transport header of RPC-over-RDMA: version 1 (RFC 8166, section 4) and version 2
//! (draft-cel-nfsv4-rpcrdma-version-two-01, section 4; "the draft" below).
//!
//! Each message begins with a transport header. The Payload stream may follow: an RPC message,
//! without the parts of it that are transferred by RDMA Read and Write. The two versions have the
//! first four words, the chunk lists and ERR_VERS in common. Version 2 adds the direction of a
//! message, and messages that carry an option.
//!
//! The draft's XDR has two defects, which the module resolves like this:
//!
//! - `rpcrdma2_body` has members of the type `rpcrdma2_chunks`, which is not defined. The module
//!   takes it to be `rpcrdma2_chunk_lists`: that type is used nowhere else, and has the field
//!   `rdma_direction` that section 3.2 of the draft ascribes to `rpcrdma2_chunks`.
//! - Section 3.2 also gives `rpcrdma2_error` such a field, but the XDR does not. The module takes
//!   it to have none. ERR_VERS is then the same as in version 1, as RFC 8166, section 7, demands
//!   and as responders of version 1 send it. Section 4.2.2 of the draft determines the direction of
//!   an error anyway.

use super::xdr::{
    NoRoom,
    Reader,
    Writer, //
};

pub(crate) mod chunks;
pub(crate) mod direction;
pub(crate) mod error;

use chunks::ChunkLists;
use direction::Direction;
use error::{
    HeaderError,
    Malformed,
    Part,
    Reason, //
};

/// Length in octets of the smallest header of a message that is not an error; a receiver discards a
/// shorter message (RFC 8166, section 4.5).
pub(crate) const MIN_LEN: usize = 28;

// `rdma_proc` (RFC 8166, section 4.2.4). Section 4.1.2 fixes 0, 1 and 4 for all versions.
const RDMA_MSG: u32 = 0;
const RDMA_NOMSG: u32 = 1;
const RDMA_MSGP: u32 = 2;
const RDMA_DONE: u32 = 3;
const RDMA_ERROR: u32 = 4;
/// Version 2 only (the draft, section 4.2).
const RDMA2_OPTIONAL: u32 = 5;

// `rdma_err` (RFC 8166, section 4.1.2; the draft, section 4.2).
const ERR_VERS: u32 = 1;
const ERR_CHUNK: u32 = 2;
const RDMA2_ERR_BAD_HEADER: u32 = 2;
const RDMA2_ERR_INVALID_OPTION: u32 = 3;

/// The offset of the fourth word, in octets (RFC 8166, section 4.2).
const PROC_AT: usize = 12;

/// The versions that a side speaks: all from the lowest to the highest (RFC 8166, sections 4.2.2
/// and 4.5.1; the draft, section 5).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Versions {
    /// The lowest version. A peer may announce a lowest version above its highest one. Then there
    /// are no versions.
    pub(crate) low: u32,
    /// The highest one.
    pub(crate) high: u32,
}

impl Versions {
    /// Versions 1 and 2.
    pub(crate) const ALL: Self = Self { low: 1, high: 2 };

    /// A single version.
    pub(crate) const fn only(version: u32) -> Self {
        Self {
            low: version,
            high: version,
        }
    }

    /// Whether `version` is one of these versions.
    pub(crate) fn contains(self, version: u32) -> bool {
        (self.low..=self.high).contains(&version)
    }

    /// Returns the highest version that both speak, with which a requester continues (the draft,
    /// section 5.2), or [`None`] if they have no version in common.
    pub(crate) fn highest_common(self, other: Self) -> Option<u32> {
        let high = self.high.min(other.high);
        (self.contains(high) && other.contains(high)).then_some(high)
    }

    /// Returns the answer of a responder with these versions to a message of another version (RFC
    /// 8166, section 4.5.1).
    fn mismatch(self, vers: u32) -> Body<'static> {
        Body::ErrVers {
            vers,
            low: self.low,
            high: self.high,
        }
    }
}

/// The version of a header with chunk lists, and the field that precedes the lists in version 2.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Version {
    /// Version 1 (RFC 8166, section 4.1.2).
    One,
    /// Version 2, with `rdma_direction` (the draft, section 4.2).
    Two(Direction),
}

/// A header (RFC 8166, section 4.1.2; the draft, section 4.2).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Header<'a> {
    /// `rdma_xid`: that of the RPC message (RFC 8166, section 4.2.1).
    pub(crate) xid: u32,
    /// `rdma_credit`: requested by a Call, granted by a Reply (RFC 8166, section 4.2.3).
    pub(crate) credit: u32,
    /// `rdma_body`, and its version.
    pub(crate) body: Body<'a>,
}

/// `rdma_body` (RFC 8166, section 4.1.2; the draft, section 4.2).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Body<'a> {
    /// RDMA_MSG: the Payload stream follows the header (RFC 8166, section 4.2.4).
    Msg(Version, ChunkLists<'a>),
    /// RDMA_NOMSG: a chunk holds the Payload stream (RFC 8166, section 4.2.4).
    Nomsg(Version, ChunkLists<'a>),
    /// RDMA_ERROR with ERR_VERS: the same in all versions (RFC 8166, sections 4.5.1 and 7).
    ErrVers {
        /// `rdma_vers`, as in the message that is answered.
        vers: u32,
        /// `rdma_vers_low`: the lowest version that the responder supports.
        low: u32,
        /// `rdma_vers_high`: the highest version that the responder supports.
        high: u32,
    },
    /// RDMA_ERROR with ERR_CHUNK: version 1 (RFC 8166, section 4.5.2).
    ErrChunk,
    /// RDMA2_ERROR with RDMA2_ERR_BAD_HEADER: version 2 (the draft, section 4.2).
    ErrBadHeader,
    /// RDMA2_ERROR with RDMA2_ERR_INVALID_OPTION: version 2 (the draft, section 3.1).
    ErrInvalidOption,
    /// RDMA2_OPTIONAL: version 2; some of a Payload stream may follow (the draft, section 3.1).
    Optional {
        /// `rdma_optdir`.
        direction: Direction,
        /// `rdma_opttype`: the option. The draft defines none.
        opttype: u32,
        /// `rdma_optinfo`: the data of the option.
        optinfo: &'a [u8],
    },
}

impl Header<'_> {
    /// Returns `rdma_vers`: the version of the header. ERR_VERS is the same in all versions, and
    /// has the version of the message that it answers (RFC 8166, sections 4.2.2 and 4.5).
    pub(crate) fn version(&self) -> u32 {
        match self.body {
            Body::Msg(Version::One, _) | Body::Nomsg(Version::One, _) | Body::ErrChunk => 1,
            Body::Msg(Version::Two(_), _)
            | Body::Nomsg(Version::Two(_), _)
            | Body::ErrBadHeader
            | Body::ErrInvalidOption
            | Body::Optional { .. } => 2,
            Body::ErrVers { vers, .. } => vers,
        }
    }

    /// Returns `rdma_proc` (RFC 8166, section 4.2.4).
    fn proc(&self) -> u32 {
        match self.body {
            Body::Msg(..) => RDMA_MSG,
            Body::Nomsg(..) => RDMA_NOMSG,
            Body::ErrVers { .. } | Body::ErrChunk | Body::ErrBadHeader | Body::ErrInvalidOption => {
                RDMA_ERROR
            }
            Body::Optional { .. } => RDMA2_OPTIONAL,
        }
    }

    /// Returns the answer of a responder that grants `credit` and speaks `versions`, or [`None`] if
    /// it speaks the version of this header, or if this is an error, which is not answered (RFC
    /// 8166, sections 4.2.4 and 4.5.1).
    pub(crate) fn version_error(&self, credit: u32, versions: Versions) -> Option<Header<'static>> {
        let vers = self.version();
        if versions.contains(vers) || self.proc() == RDMA_ERROR {
            return None;
        }
        Some(Header {
            xid: self.xid,
            credit,
            body: versions.mismatch(vers),
        })
    }

    /// Whether a part of the RPC message or of its reply may be transferred by RDMA Read or Write
    /// (RFC 8166, section 4.3).
    pub(crate) fn has_chunks(&self) -> bool {
        match self.body {
            Body::Msg(_, lists) | Body::Nomsg(_, lists) => !lists.is_empty(),
            _ => false,
        }
    }

    /// Returns the direction of the message with this header and `payload`, or [`None`] if it does
    /// not show it: see [`direction()`](direction::direction).
    pub(crate) fn direction(&self, payload: &[u8]) -> Option<Direction> {
        match self.body {
            Body::Msg(Version::One, _) => {
                let mut reader = Reader::new(payload);
                let _xid = reader.word()?;
                Direction::from_word(reader.word()?).ok()
            }
            Body::Nomsg(Version::One, lists) => {
                (!lists.reads.is_empty()).then_some(Direction::Call)
            }
            Body::Msg(Version::Two(direction), _)
            | Body::Nomsg(Version::Two(direction), _)
            | Body::Optional { direction, .. } => Some(direction),
            Body::ErrVers { .. } | Body::ErrChunk | Body::ErrBadHeader | Body::ErrInvalidOption => {
                Some(Direction::Reply)
            }
        }
    }

    /// Returns the length of the header, in octets.
    pub(crate) fn len(&self) -> usize {
        self.build(&mut []).unwrap_or_else(|room| room.needed)
    }

    /// Writes the header at the beginning of `buffer` and returns its length in octets. The caller
    /// appends the Payload stream, if there is one.
    ///
    /// # Errors
    ///
    /// Fails if the buffer is too short, with the length that is needed.
    pub(crate) fn build(&self, buffer: &mut [u8]) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(buffer);
        for word in [self.xid, self.version(), self.credit, self.proc()] {
            writer.word(word);
        }

        match self.body {
            Body::Msg(version, lists) | Body::Nomsg(version, lists) => {
                if let Version::Two(direction) = version {
                    writer.word(direction as u32);
                }
                lists.write(&mut writer);
            }
            Body::ErrVers { low, high, .. } => {
                for word in [ERR_VERS, low, high] {
                    writer.word(word);
                }
            }
            Body::ErrChunk => writer.word(ERR_CHUNK),
            Body::ErrBadHeader => writer.word(RDMA2_ERR_BAD_HEADER),
            Body::ErrInvalidOption => writer.word(RDMA2_ERR_INVALID_OPTION),
            Body::Optional {
                direction,
                opttype,
                optinfo,
            } => {
                writer.word(direction as u32);
                writer.word(opttype);
                writer.count(optinfo.len());
                writer.opaque(optinfo);
            }
        }
        writer.finish()
    }
}

/// Parses the header at the beginning of a message, and returns it with the octets behind it: the
/// Payload stream. Octets behind a header without Payload stream have no meaning.
///
/// Lists are checked once, here, and later read in place. No memory is allocated for the lengths
/// that a header announces.
///
/// # Errors
///
/// Fails with the first word that is wrong, and the reason.
pub(crate) fn parse(octets: &[u8]) -> Result<(Header<'_>, &[u8]), HeaderError> {
    let short = HeaderError::Short {
        length: octets.len(),
    };
    let mut reader = Reader::new(octets);
    let fixed = Fixed::parse(&mut reader).ok_or(short)?;
    // The length is checked "before performing any parsing", in any version. The exception are
    // errors: ERR_CHUNK has 20 octets.
    if octets.len() < MIN_LEN && fixed.proc != RDMA_ERROR {
        return Err(short);
    }

    let mut parser = Parser {
        reader,
        part: Part::Proc,
    };
    let body = match (fixed.vers, fixed.proc) {
        (_, RDMA_ERROR) => parse_error(fixed, &mut parser),
        (1, RDMA_MSG | RDMA_NOMSG) => parse_message(fixed, Version::One, &mut parser),
        (1, RDMA_MSGP) => Err(fixed.malformed(Reason::Msgp)),
        (1, RDMA_DONE) => Err(fixed.malformed(Reason::Done)),
        (2, RDMA_MSG | RDMA_NOMSG) => parser
            .direction()
            .and_then(|direction| parse_message(fixed, Version::Two(direction), &mut parser)),
        (2, RDMA2_OPTIONAL) => parse_optional(&mut parser),
        (1 | 2, proc) => Err(fixed.malformed(Reason::Value(proc))),
        _ => return Err(HeaderError::Version(fixed)),
    }
    .map_err(|malformed| HeaderError::Malformed(fixed, malformed))?;

    let header = Header {
        xid: fixed.xid,
        credit: fixed.credit,
        body,
    };
    Ok((header, parser.reader.rest()))
}

/// RDMA_MSG and RDMA_NOMSG, from the chunk lists on.
fn parse_message<'a>(
    fixed: Fixed,
    version: Version,
    parser: &mut Parser<'a>,
) -> Result<Body<'a>, Malformed> {
    let lists = ChunkLists::parse(parser)?;
    if fixed.proc == RDMA_NOMSG {
        if lists.is_empty() {
            return Err(fixed.malformed(Reason::NoChunk));
        }
        return Ok(Body::Nomsg(version, lists));
    }

    // The header must agree with the first words of the Payload stream, the XID and the message
    // type (RFC 8166, section 4.5.2; the draft, section 4.2.2). They stay in the Payload stream,
    // for the RPC parser.
    let mut payload = Parser {
        part: Part::Payload,
        ..*parser
    };
    payload.word_as(|xid| {
        if xid != fixed.xid {
            return Err(Reason::Xid(xid));
        }
        Ok(())
    })?;
    if let Version::Two(direction) = version {
        payload.word_as(|msg_type| {
            if msg_type != direction as u32 {
                return Err(Reason::MsgType(msg_type));
            }
            Ok(())
        })?;
    }
    Ok(Body::Msg(version, lists))
}

/// RDMA_ERROR of any version, from `rdma_err` on.
fn parse_error<'a>(fixed: Fixed, parser: &mut Parser<'a>) -> Result<Body<'a>, Malformed> {
    parser.part = Part::Err;
    let before = *parser;
    match (parser.word()?, fixed.vers) {
        (ERR_VERS, vers) => Ok(Body::ErrVers {
            vers,
            low: parser.word()?,
            high: parser.word()?,
        }),
        (ERR_CHUNK, 1) => Ok(Body::ErrChunk),
        (RDMA2_ERR_BAD_HEADER, 2) => Ok(Body::ErrBadHeader),
        (RDMA2_ERR_INVALID_OPTION, 2) => Ok(Body::ErrInvalidOption),
        (err, _) => Err(before.malformed(Reason::Value(err))),
    }
}

/// RDMA2_OPTIONAL, from `rdma_optdir` on.
fn parse_optional<'a>(parser: &mut Parser<'a>) -> Result<Body<'a>, Malformed> {
    let direction = parser.direction()?;
    parser.part = Part::Optional;
    Ok(Body::Optional {
        direction,
        opttype: parser.word()?,
        optinfo: parser.opaque()?,
    })
}

/// The four words at the beginning of every header of every version (RFC 8166, section 4.2).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Fixed {
    /// `rdma_xid`.
    pub(crate) xid: u32,
    /// `rdma_vers`.
    pub(crate) vers: u32,
    /// `rdma_credit`.
    pub(crate) credit: u32,
    /// `rdma_proc`.
    pub(crate) proc: u32,
}

impl Fixed {
    fn parse(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            xid: reader.word()?,
            vers: reader.word()?,
            credit: reader.word()?,
            proc: reader.word()?,
        })
    }

    fn malformed(&self, reason: Reason) -> Malformed {
        Malformed {
            part: Part::Proc,
            at: PROC_AT,
            reason,
        }
    }
}

/// The rest of a message that is to be parsed, and the part to which it belongs.
#[derive(Clone, Copy)]
pub(crate) struct Parser<'a> {
    reader: Reader<'a>,
    part: Part,
}

impl<'a> Parser<'a> {
    fn malformed(&self, reason: Reason) -> Malformed {
        Malformed {
            part: self.part,
            at: self.reader.at(),
            reason,
        }
    }

    fn word(&mut self) -> Result<u32, Malformed> {
        self.word_as(Ok)
    }

    /// Reads a word that may only have certain values.
    fn word_as<T>(&mut self, of: impl FnOnce(u32) -> Result<T, Reason>) -> Result<T, Malformed> {
        let before = *self;
        self.reader
            .word()
            .ok_or(Reason::Truncated)
            .and_then(of)
            .map_err(|reason| before.malformed(reason))
    }

    fn direction(&mut self) -> Result<Direction, Malformed> {
        self.part = Part::Direction;
        self.word_as(Direction::from_word)
    }

    /// Reads opaque data of variable length (RFC 4506, section 4.10).
    fn opaque(&mut self) -> Result<&'a [u8], Malformed> {
        let before = *self;
        let (data, residual) = self.counted(1)?;
        if residual.iter().any(|&octet| octet != 0) {
            return Err(before.malformed(Reason::Residual));
        }
        Ok(data)
    }

    /// Reads an array of variable length (RFC 4506, section 4.13), of elements of `len` octets, and
    /// returns these to be parsed.
    fn array(&mut self, len: usize) -> Result<Self, Malformed> {
        let (elements, _) = self.counted(len)?;
        Ok(Self {
            reader: Reader::new(elements),
            part: self.part,
        })
    }

    fn counted(&mut self, len: usize) -> Result<(&'a [u8], &'a [u8]), Malformed> {
        let before = *self;
        let count = self.word()?;
        usize::try_from(count)
            .ok()
            .and_then(|count| count.checked_mul(len))
            .and_then(|len| self.reader.opaque(len))
            .ok_or(before.malformed(Reason::Count(count)))
    }
}
