// SPDX-License-Identifier: GPL-2.0

//! The transport headers of RFC 8166, section 4, and of the draft, section 4.

use std::fmt::Write;

use super::{
    built,
    header_oracle::{
        judge,
        judge_direction,
        Verdict, //
    },
    shown, //
};
use crate::pure::wire::{
    discarded::Fault,
    header::{
        chunks::{
            ChunkLists,
            List,
            ReadSegment,
            Segment,
            WriteChunk, //
        },
        direction::{
            direction,
            Direction, //
        },
        parse,
        Body,
        Header,
        Version,
        Versions, //
    },
    xdr::NoRoom, //
};

/// The credits that a responder grants in these tests.
pub(crate) const CREDIT: u32 = 0xc0de;

/// The versions that responders speak in these tests.
pub(crate) const SPOKEN: [Versions; 3] = [Versions::only(1), Versions::only(2), Versions::ALL];

/// A header that owns its lists and options.
#[derive(Clone, Debug)]
pub(crate) struct Owned {
    pub(crate) xid: u32,
    pub(crate) credit: u32,
    /// The body, without the lists and options that follow.
    pub(crate) body: Body<'static>,
    pub(crate) reads: Vec<ReadSegment>,
    pub(crate) writes: Vec<Vec<Segment>>,
    pub(crate) reply: Option<Vec<Segment>>,
    pub(crate) optinfo: Vec<u8>,
}

impl Owned {
    /// Calls `check` with this header.
    pub(crate) fn with<T>(&self, check: impl FnOnce(Header<'_>) -> T) -> T {
        let writes: Vec<_> = self
            .writes
            .iter()
            .map(|chunk| WriteChunk::new(chunk))
            .collect();
        let lists = ChunkLists {
            reads: List::new(&self.reads),
            writes: List::new(&writes),
            reply: self.reply.as_deref().map(WriteChunk::new),
        };
        let body = match self.body {
            Body::Msg(version, _) => Body::Msg(version, lists),
            // An RDMA_NOMSG has at least one chunk.
            Body::Nomsg(version, _) if lists.is_empty() => Body::Nomsg(
                version,
                ChunkLists {
                    reply: Some(WriteChunk::EMPTY),
                    ..lists
                },
            ),
            Body::Nomsg(version, _) => Body::Nomsg(version, lists),
            Body::Optional {
                direction, opttype, ..
            } => Body::Optional {
                direction,
                opttype,
                optinfo: &self.optinfo,
            },
            body => body,
        };
        check(Header {
            xid: self.xid,
            credit: self.credit,
            body,
        })
    }

    /// Returns the shortest message with this header, and the length of the header.
    pub(crate) fn message(&self) -> (Vec<u8>, usize) {
        self.with(|header| {
            let mut octets = built(|buffer| header.build(buffer));
            let len = octets.len();
            if let Body::Msg(version, _) = header.body {
                octets.extend(header.xid.to_be_bytes());
                if let Version::Two(direction) = version {
                    octets.extend((direction as u32).to_be_bytes());
                }
            }
            (octets, len)
        })
    }
}

/// Returns the answer of a responder that speaks `versions`.
pub(crate) fn answer(octets: &[u8], versions: Versions) -> Option<Header<'static>> {
    match parse(octets) {
        Ok((header, _)) => header.version_error(CREDIT, versions),
        Err(error) => error.answer(CREDIT, versions),
    }
}

/// Returns the result of the code in the form of the oracle.
fn verdict(octets: &[u8], versions: Versions) -> Verdict {
    match (answer(octets, versions), parse(octets)) {
        (Some(answer), _) => Verdict::Answer(words(&built(|buffer| answer.build(buffer)))),
        (None, Ok((header, payload))) => {
            // Building the parsed header again makes the same octets.
            let own = built(|buffer| header.build(buffer));
            assert_eq!([&own[..], payload].concat(), octets);
            Verdict::Valid(text(header), own.len())
        }
        (None, Err(_)) => Verdict::Discard,
    }
}

/// Checks the direction of octets, and the results of responders for them.
pub(crate) fn check(octets: &[u8]) {
    let way = match direction(octets) {
        Some(Direction::Call) => "call",
        Some(Direction::Reply) => "reply",
        None => "unknown",
    };
    assert_eq!(way, judge_direction(octets), "{octets:02x?}");
    match parse(octets) {
        Ok((header, payload)) => {
            let shown = header.direction(payload);
            assert_eq!(shown, direction(octets), "{octets:02x?}");
            if let Body::ErrVers { low, high, .. } = header.body {
                check_common(Versions { low, high });
            }
        }
        Err(error) => {
            shown(Fault::from(error));
        }
    }
    for versions in SPOKEN {
        let judged = judge(octets, CREDIT, versions.low..=versions.high);
        assert_eq!(
            verdict(octets, versions),
            judged,
            "{versions:?}: {octets:02x?}"
        );
    }
}

/// The draft, section 5.2: the version with which a requester goes on.
fn check_common(theirs: Versions) {
    let expected = [2, 1]
        .into_iter()
        .find(|version| theirs.low <= *version && *version <= theirs.high);
    assert_eq!(Versions::ALL.highest_common(theirs), expected, "{theirs:?}");
}

fn words(octets: &[u8]) -> Vec<u32> {
    assert_eq!(octets.len() % 4, 0);
    octets
        .chunks(4)
        .map(|word| u32::from_be_bytes(word.try_into().unwrap()))
        .collect()
}

/// Writes a header in the form of the oracle.
pub(crate) fn text(header: Header<'_>) -> String {
    let hloo = |segment: Segment| {
        let Segment {
            handle,
            length,
            offset,
        } = segment;
        let (high, low) = (offset >> 32, offset & 0xffff_ffff);
        format!("H{handle:x} L{length:x} O{high:x} O{low:x} ")
    };
    let chunk = |chunk: WriteChunk<'_>| {
        let segments: String = chunk.iter().map(hloo).collect();
        format!("[{:x} {segments}] ", chunk.iter().count())
    };
    let lists = |lists: ChunkLists<'_>| {
        let mut text = String::new();
        let mut reads = lists.reads.iter();
        for read in reads.by_ref() {
            write!(text, "P{:x} {}", read.position, hloo(read.target)).unwrap();
        }
        assert_eq!(reads.next(), None, "the Write list is not the Read list");
        text += "/ ";
        text.extend(lists.writes.iter().map(chunk));
        text += "/ ";
        text.extend(lists.reply.map(chunk));
        text
    };
    let direction = |direction| match direction {
        Direction::Call => "call ",
        Direction::Reply => "reply ",
    };
    let version = |version| match version {
        Version::One => (1, ""),
        Version::Two(way) => (2, direction(way)),
    };

    let (vers, rest) = match header.body {
        Body::Msg(of, chunks) => {
            let (vers, way) = version(of);
            (vers, format!("proc 0 {way}{}", lists(chunks)))
        }
        Body::Nomsg(of, chunks) => {
            let (vers, way) = version(of);
            (vers, format!("proc 1 {way}{}", lists(chunks)))
        }
        Body::ErrVers { vers, low, high } => (vers, format!("proc 4 err 1 l{low:x} h{high:x} ")),
        Body::ErrChunk => (1, "proc 4 err 2 ".into()),
        Body::ErrBadHeader => (2, "proc 4 err 2 ".into()),
        Body::ErrInvalidOption => (2, "proc 4 err 3 ".into()),
        Body::Optional {
            direction: way,
            opttype,
            optinfo,
        } => {
            let mut text = format!("proc 5 {}t{opttype:x} ", direction(way));
            write!(text, "[{:x} ", optinfo.len()).unwrap();
            for word in optinfo.chunks(4) {
                let mut unit = [0; 4];
                unit[..word.len()].copy_from_slice(word);
                write!(text, "{:08x} ", u32::from_be_bytes(unit)).unwrap();
            }
            (2, text + "] ")
        }
    };
    format!(
        "xid {:x} vers {vers} credit {} {rest}",
        header.xid, header.credit
    )
}

/// Returns one of all kinds of bodies. The words are used by the kinds that have some. Lists and
/// options are empty.
pub(crate) fn body(which: usize, one: u32, other: u32, third: u32) -> Body<'static> {
    let call = Version::Two(Direction::Call);
    let reply = Version::Two(Direction::Reply);
    let optional = |direction| Body::Optional {
        direction,
        opttype: one,
        optinfo: &[],
    };
    let bodies = [
        Body::Msg(Version::One, ChunkLists::EMPTY),
        Body::Msg(call, ChunkLists::EMPTY),
        Body::Msg(reply, ChunkLists::EMPTY),
        Body::Nomsg(Version::One, ChunkLists::EMPTY),
        Body::Nomsg(call, ChunkLists::EMPTY),
        Body::Nomsg(reply, ChunkLists::EMPTY),
        Body::ErrVers {
            vers: other,
            low: one,
            high: third,
        },
        Body::ErrChunk,
        Body::ErrBadHeader,
        Body::ErrInvalidOption,
        optional([Direction::Call, Direction::Reply][one as usize % 2]),
    ];
    bodies[which % bodies.len()]
}

/// Returns the length of a header in octets, counted by the figures of RFC 8166, section 4.7, and
/// the XDR of section 4.1.2 and of the draft, section 4.2.
fn xdr_len(header: Header<'_>) -> usize {
    // "HLOO", behind a count.
    let chunk = |chunk: WriteChunk<'_>| 4 + 16 * chunk.iter().count();
    let lists = |lists: ChunkLists<'_>| {
        // "1 PHLOO 1 PHLOO 1 PHLOO 0"
        let reads = 24 * lists.reads.iter().count() + 4;
        // "1 3 HLOO HLOO HLOO 1 2 HLOO HLOO 0"
        let writes: usize = lists.writes.iter().map(|write| 4 + chunk(write)).sum();
        // "1 2 HLOO HLOO"
        let reply = 4 + lists.reply.map_or(0, chunk);
        reads + writes + 4 + reply
    };
    // The four fixed fields first.
    16 + match header.body {
        Body::Msg(Version::One, chunks) | Body::Nomsg(Version::One, chunks) => lists(chunks),
        Body::Msg(Version::Two(_), chunks) | Body::Nomsg(Version::Two(_), chunks) => {
            4 + lists(chunks)
        }
        Body::ErrVers { .. } => 12,
        Body::ErrChunk | Body::ErrBadHeader | Body::ErrInvalidOption => 4,
        Body::Optional { optinfo, .. } => 12 + optinfo.len().div_ceil(4) * 4,
    }
}

/// Parsing a built header returns the same header, and leaves the octets behind it.
pub(crate) fn check_round_trip(owned: &Owned, more: &[u8]) {
    let (mut octets, len) = owned.message();
    octets.extend(more);
    owned.with(|header| {
        assert_eq!(parse(&octets), Ok((header, &octets[len..])));
        assert_eq!(
            judge(&octets, CREDIT, 1..=2),
            Verdict::Valid(text(header), len)
        );
    });
    check(&octets);
}

/// Building fails with an error if the buffer is too short. Nothing is written behind the header.
pub(crate) fn check_room(owned: &Owned, available: usize) {
    owned.with(|header| {
        let octets = built(|buffer| header.build(buffer));
        let needed = octets.len();
        let mut buffer = vec![0xaa; available];
        let result = header.build(&mut buffer);
        if available < needed {
            assert_eq!(result, Err(NoRoom { needed }));
        } else {
            assert_eq!(result, Ok(needed));
            assert_eq!(&buffer[..needed], &octets[..]);
            assert!(buffer[needed..].iter().all(|octet| *octet == 0xaa));
        }
    });
}

/// The length of a header is the same by four ways of counting: the length that it states, the
/// octets that building it changes, the place where the parser finds the payload, and the XDR.
pub(crate) fn check_len(owned: &Owned) {
    let (octets, _) = owned.message();
    owned.with(|header| {
        let len = header.len();
        assert_eq!(len, xdr_len(header));

        // Building into two buffers that differ everywhere shows each octet that is written.
        let mut buffers = [vec![0x00; len + 64], vec![0xff; len + 64]];
        for buffer in &mut buffers {
            assert_eq!(header.build(buffer), Ok(len));
        }
        let [zeros, ones] = buffers;
        let written = zeros.iter().zip(&ones).filter(|(one, other)| one == other);
        assert_eq!(written.count(), len);

        let (_, payload) = parse(&octets).unwrap();
        assert_eq!(len, octets.len() - payload.len());
    });
}

/// RFC 8166, section 4.5: an answer has the XID and the version of its message, can be parsed, and
/// is never answered itself, whole or truncated.
pub(crate) fn check_answers(octets: &[u8]) {
    for versions in SPOKEN {
        if let Some(header) = answer(octets, versions) {
            let reply = built(|buffer| header.build(buffer));
            assert_eq!(&reply[..8], &octets[..8]);
            assert_eq!(&reply[12..16], &[0, 0, 0, 4]);
            assert_eq!(parse(&reply), Ok((header, &[][..])));
            for length in 0..=reply.len() {
                assert_eq!(answer(&reply[..length], versions), None);
            }
        }
    }
}

/// RFC 8166, section 3.4.6: a returned chunk has the handles and offsets of the original. Its
/// segments are filled in order, and their lengths add up to the octets that were written and fit.
pub(crate) fn check_filled(chunk: &[Segment], octets: u64) {
    let own = WriteChunk::new(chunk);
    let filled: Vec<_> = own.filled(octets).collect();

    assert_eq!(filled.len(), chunk.len());
    let room: u64 = chunk.iter().map(|segment| u64::from(segment.length)).sum();
    assert_eq!(own.length(), room);
    assert_eq!(WriteChunk::new(&filled).length(), room.min(octets));
    let mut is_full = true;
    for (one, other) in chunk.iter().zip(&filled) {
        assert_eq!((one.handle, one.offset), (other.handle, other.offset));
        assert!(other.length <= one.length);
        assert!(is_full || other.length == 0);
        is_full &= other.length == one.length;
    }
}
