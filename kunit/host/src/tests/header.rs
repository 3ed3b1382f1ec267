// SPDX-License-Identifier: GPL-2.0

//! The transport headers of RFC 8166, section 4, and of the draft, section 4.

use std::fmt::Write;

use proptest::{
    collection::vec,
    option,
    prelude::*,
    sample::{
        select,
        Index, //
    }, //
};

use super::{
    cases,
    header_oracle::{
        judge,
        Verdict, //
    }, //
};
use crate::wire::{
    header::{
        chunks::{
            ChunkLists,
            List,
            ReadSegment,
            Segment,
            WriteChunk, //
        },
        error::{
            Error,
            Reason, //
        },
        parse,
        Body,
        Direction,
        Header,
        Version,
        Versions, //
    },
    xdr::NoRoom,
};

/// What a responder grants in these tests.
const CREDIT: u32 = 0xc0de;

/// What responders speak in these tests.
const SPOKEN: [Versions; 3] = [Versions::only(1), Versions::only(2), Versions::ALL];

/// A header that owns what it says.
#[derive(Clone, Debug)]
struct Owned {
    xid: u32,
    credit: u32,
    /// Without lists and options: those are below.
    body: Body<'static>,
    reads: Vec<ReadSegment>,
    writes: Vec<Vec<Segment>>,
    reply: Option<Vec<Segment>>,
    optinfo: Vec<u8>,
}

impl Owned {
    /// Calls `check` with the header that this is.
    fn with<T>(&self, check: impl FnOnce(Header<'_>) -> T) -> T {
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
            // One chunk at least.
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

    /// Returns the shortest message that the header makes, and the length of the header.
    fn message(&self) -> (Vec<u8>, usize) {
        self.with(|header| {
            let mut octets = built(header);
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

fn built(header: Header<'_>) -> Vec<u8> {
    let Err(NoRoom {
        needed,
        available: 0,
    }) = header.build(&mut [])
    else {
        panic!("built in no octets");
    };
    let mut octets = vec![0; needed];
    assert_eq!(header.build(&mut octets), Ok(needed));
    octets
}

/// What a responder that speaks `versions` answers to octets.
fn answer(octets: &[u8], versions: Versions) -> Option<Header<'static>> {
    match parse(octets) {
        Ok((header, _)) => header.version_error(CREDIT, versions),
        Err(error) => error.answer(CREDIT, versions),
    }
}

/// Says what the code found as the oracle says it.
fn verdict(octets: &[u8], versions: Versions) -> Verdict {
    match (answer(octets, versions), parse(octets)) {
        (Some(answer), _) => Verdict::Answer(words(&built(answer))),
        (None, Ok((header, payload))) => {
            // What was parsed is built again from where it lies.
            let own = built(header);
            assert_eq!([&own[..], payload].concat(), octets);
            Verdict::Valid(text(header), own.len())
        }
        (None, Err(_)) => Verdict::Discard,
    }
}

/// Checks what responders make of octets.
fn check(octets: &[u8]) {
    for versions in SPOKEN {
        let judged = judge(octets, CREDIT, versions.low..=versions.high);
        assert_eq!(
            verdict(octets, versions),
            judged,
            "{versions:?}: {octets:02x?}"
        );
    }
}

fn words(octets: &[u8]) -> Vec<u32> {
    assert_eq!(octets.len() % 4, 0);
    octets
        .chunks(4)
        .map(|word| u32::from_be_bytes(word.try_into().unwrap()))
        .collect()
}

/// Writes a header down as the oracle does.
fn text(header: Header<'_>) -> String {
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

fn segments() -> impl Strategy<Value = Segment> {
    any::<(u32, u32, u64)>().prop_map(|(handle, length, offset)| Segment {
        handle,
        length,
        offset,
    })
}

fn headers() -> impl Strategy<Value = Owned> {
    let reads = (0..=u32::MAX / 4, segments()).prop_map(|(position, target)| ReadSegment {
        position: 4 * position,
        target,
    });
    let chunks = || vec(segments(), 0..4);
    let bodies = (
        0..11_usize,
        any::<u32>(),
        prop_oneof![0..4_u32, any::<u32>()],
        any::<u32>(),
    )
        .prop_map(|(which, one, other, third)| {
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
            bodies[which]
        });
    (
        any::<(u32, u32)>(),
        bodies,
        vec(reads, 0..4),
        vec(chunks(), 0..4),
        option::of(chunks()),
        vec(any::<u8>(), 0..=13),
    )
        .prop_map(
            |((xid, credit), body, reads, writes, reply, optinfo)| Owned {
                xid,
                credit,
                body,
                reads,
                writes,
                reply,
                optinfo,
            },
        )
}

/// A word that has a meaning somewhere, or any.
fn telling() -> impl Strategy<Value = u32> {
    prop_oneof![
        8 => 0..7_u32,
        1 => select(&[8, 16, 0x0fff_ffff, 0x1000_0000, 0x4000_0000, 0x8000_0000, !0][..]),
        1 => any::<u32>(),
    ]
}

/// Messages of which the first words mostly make sense.
fn messages() -> impl Strategy<Value = Vec<u8>> {
    (vec(telling(), 0..40), vec(any::<u8>(), 0..4)).prop_map(|(words, more)| {
        let mut octets: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        octets.extend(more);
        octets
    })
}

/// What may happen to a message: at which of its words, what, and with which word.
#[derive(Clone, Copy, Debug)]
enum Mutation {
    Replace(Index, u32),
    Flip(Index, u8),
    Insert(Index, u32),
    Remove(Index),
    Truncate(Index),
}

fn mutations() -> impl Strategy<Value = Mutation> {
    let at = any::<Index>;
    prop_oneof![
        (at(), telling()).prop_map(|(at, word)| Mutation::Replace(at, word)),
        (at(), 0..8_u8).prop_map(|(at, bit)| Mutation::Flip(at, bit)),
        (at(), telling()).prop_map(|(at, word)| Mutation::Insert(at, word)),
        at().prop_map(Mutation::Remove),
        at().prop_map(Mutation::Truncate),
    ]
}

impl Mutation {
    fn apply(self, octets: &mut Vec<u8>) {
        if octets.len() < 4 {
            return;
        }
        let word = |at: Index| 4 * at.index(octets.len() / 4);
        match self {
            Self::Replace(at, with) => {
                let at = word(at);
                octets.splice(at..at + 4, with.to_be_bytes());
            }
            Self::Flip(at, bit) => {
                let at = at.index(octets.len());
                octets[at] ^= 1 << bit;
            }
            Self::Insert(at, with) => {
                let at = word(at);
                octets.splice(at..at, with.to_be_bytes());
            }
            Self::Remove(at) => {
                let at = word(at);
                octets.drain(at..at + 4);
            }
            Self::Truncate(at) => octets.truncate(at.index(octets.len())),
        }
    }
}

/// How many octets a header has, counted by the pictures of RFC 8166, section 4.7, and the XDR of
/// section 4.1.2 and of the draft, section 4.2.
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

/// RFC 8166, section 4.1.2, and the draft, section 4.2: all that a few words of small values can
/// be, in each version and one before and behind, of each procedure.
#[test]
fn section_4_every_small_message() {
    for vers in 0..=3 {
        for proc in 0..=6 {
            for len in 0..=9 {
                for digits in 0..3_u32.pow(len) {
                    let fixed = [1, vers, 5, proc];
                    let rest = (0..len).map(|place| digits / 3_u32.pow(place) % 3);
                    let words = fixed.into_iter().chain(rest);
                    let octets: Vec<u8> = words.flat_map(u32::to_be_bytes).collect();
                    check(&octets);
                }
            }
        }
    }
}

/// RFC 8166, sections 4.2.2 and 4.2.4: every version and every procedure of two octets, in either
/// half of the word.
#[test]
fn section_4_2_every_half_word() {
    for half in 0..=0xffff_u32 {
        for word in [half, half << 16] {
            for (vers, proc) in [(word, 0), (word, 1), (word, 4), (1, word), (2, word)] {
                let words = [7, vers, 5, proc, 1, 0, 0, 0, 0, 0, 0, 0, 0, 7, 1];
                let octets: Vec<u8> = words.into_iter().flat_map(u32::to_be_bytes).collect();
                check(&octets);
            }
        }
    }
}

proptest! {
    #![proptest_config(cases(20_000))]

    /// What is built is what is parsed, and what is behind it is left.
    #[test]
    fn section_4_round_trip(owned in headers(), more in vec(any::<u8>(), 0..=9)) {
        let (mut octets, len) = owned.message();
        octets.extend(more);
        owned.with(|header| {
            prop_assert_eq!(parse(&octets), Ok((header, &octets[len..])));
            prop_assert_eq!(
                judge(&octets, CREDIT, 1..=2),
                Verdict::Valid(text(header), len)
            );
            check(&octets);
            Ok(())
        })?;
    }

    /// A buffer is long enough, or too short and the error says so; nothing is written behind what
    /// is needed.
    #[test]
    fn section_4_room(owned in headers(), available in 0..400_usize) {
        owned.with(|header| {
            let octets = built(header);
            let needed = octets.len();
            let mut buffer = vec![0xaa; available];
            let result = header.build(&mut buffer);
            if available < needed {
                prop_assert_eq!(result, Err(NoRoom { needed, available }));
            } else {
                prop_assert_eq!(result, Ok(needed));
                prop_assert_eq!(&buffer[..needed], &octets[..]);
                prop_assert!(buffer[needed..].iter().all(|octet| *octet == 0xaa));
            }
            Ok(())
        })?;
    }

    /// A header is as long as it says: what is built changes that many octets, which is also where
    /// the payload begins for who parses it, and as many as the words of the XDR have.
    #[test]
    fn section_4_len(owned in headers()) {
        let (octets, _) = owned.message();
        owned.with(|header| {
            let len = header.len();
            prop_assert_eq!(len, xdr_len(header));

            // Each octet is there in one of two buffers that differ everywhere.
            let mut buffers = [vec![0x00; len + 64], vec![0xff; len + 64]];
            for buffer in &mut buffers {
                prop_assert_eq!(header.build(buffer), Ok(len));
            }
            let [zeros, ones] = buffers;
            let written = zeros.iter().zip(&ones).filter(|(one, other)| one == other);
            prop_assert_eq!(written.count(), len);

            let (_, payload) = parse(&octets).unwrap();
            prop_assert_eq!(len, octets.len() - payload.len());
            Ok(())
        })?;
    }

    /// RFC 8166, section 4.5: no beginning of a message is a message, and which error that is.
    #[test]
    fn section_4_5_every_truncation(owned in headers()) {
        let (octets, _) = owned.message();
        let is_error = octets[12..16] == [0, 0, 0, 4];
        for length in 0..octets.len() {
            let cut = &octets[..length];
            match parse(cut) {
                Err(Error::Short { length: reported }) => {
                    prop_assert_eq!(reported, length);
                    prop_assert!(length < 16 || (length < 28 && !is_error));
                }
                Err(Error::Malformed(fixed, malformed)) => {
                    prop_assert!(length >= 28 || (length >= 16 && is_error));
                    prop_assert_eq!(fixed.xid, owned.xid);
                    prop_assert!(malformed.at <= length && malformed.at % 4 == 0);
                    prop_assert!(matches!(malformed.reason, Reason::Truncated | Reason::Count(_)));
                }
                parsed => return Err(TestCaseError::fail(format!("{length}: {parsed:?}"))),
            }
            check(cut);
        }
    }

    /// Any octets: no panic, and where they are a header, it is built again as it was.
    #[test]
    fn section_4_any_octets(octets in vec(any::<u8>(), 0..=300)) {
        check(&octets);
    }

    /// Words that often have a meaning.
    #[test]
    fn section_4_any_words(octets in messages()) {
        check(&octets);
    }

    /// Words behind fixed fields that are right.
    #[test]
    fn section_4_any_body(vers in 1..=2_u32, proc in 0..6_u32, body in messages()) {
        let fixed = [3, vers, 5, proc].map(u32::to_be_bytes).concat();
        let octets = [fixed, body].concat();
        check(&octets);
    }

    /// Messages with something wrong, mostly.
    #[test]
    fn section_4_mutated(owned in headers(), mutations in vec(mutations(), 1..4)) {
        let (mut octets, _) = owned.message();
        for mutation in mutations {
            mutation.apply(&mut octets);
        }
        check(&octets);
    }

    /// RFC 8166, section 4.5: an answer has the XID and the version of what it answers, can be
    /// read, and is never answered itself, whole or not.
    #[test]
    fn section_4_5_answers(octets in messages()) {
        for versions in SPOKEN {
            if let Some(header) = answer(&octets, versions) {
                let reply = built(header);
                prop_assert_eq!(&reply[..8], &octets[..8]);
                prop_assert_eq!(&reply[12..16], &[0, 0, 0, 4]);
                prop_assert_eq!(parse(&reply), Ok((header, &[][..])));
                for length in 0..=reply.len() {
                    prop_assert_eq!(answer(&reply[..length], versions), None);
                }
            }
        }
    }

    /// The draft, section 5.2: of two ranges, against all that is in them.
    #[test]
    fn draft_section_5_2_highest_common(ranges in any::<[[u8; 2]; 2]>(), version in any::<u8>()) {
        let versions = ranges.map(|[low, high]| Versions {
            low: low.into(),
            high: high.into(),
        });
        let both = |version: &u32| versions.iter().all(|versions| versions.contains(*version));
        let [one, other] = versions;
        prop_assert_eq!(one.highest_common(other), (0..=255).rev().find(both));
        prop_assert_eq!(one.contains(version.into()), {
            let [low, high] = ranges[0];
            (low..=high).contains(&version)
        });
    }

    /// RFC 8166, section 3.4.6: what is returned of a chunk has its handles and offsets, is filled
    /// in order, and holds as much as was written and fits.
    #[test]
    fn section_3_4_6_filled(
        chunk in vec(segments(), 0..6),
        octets in (any::<u64>(), 0..64).prop_map(|(octets, shift)| octets >> shift),
    ) {
        let own = WriteChunk::new(&chunk);
        let filled: Vec<_> = own.filled(octets).collect();

        prop_assert_eq!(filled.len(), chunk.len());
        let room: u64 = chunk.iter().map(|segment| u64::from(segment.length)).sum();
        prop_assert_eq!(own.length(), room);
        prop_assert_eq!(WriteChunk::new(&filled).length(), room.min(octets));
        let mut is_full = true;
        for (one, other) in chunk.iter().zip(&filled) {
            prop_assert_eq!((one.handle, one.offset), (other.handle, other.offset));
            prop_assert!(other.length <= one.length);
            prop_assert!(is_full || other.length == 0);
            is_full &= other.length == one.length;
        }
    }
}
