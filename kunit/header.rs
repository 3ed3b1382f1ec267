// SPDX-License-Identifier: GPL-2.0

//! Transport headers: RFC 8166, and the draft of version 2,
//! draft-cel-nfsv4-rpcrdma-version-two-01.

mod error;

use kernel::{
    prelude::*,
    str::CString, //
};

#[kunit_tests(rpcrdma_cm_header)]
mod tests {
    use super::*;
    use crate::{
        octets::{
            check_built,
            Octets,
            X, //
        },
        pure::wire::header::{
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
        rows::check, //
    };

    /// HLOO: a1 1000 1 80000000.
    const A: Segment = Segment {
        handle: 0xa1,
        length: 0x1000,
        offset: 0x1_8000_0000,
    };

    /// HLOO: b2 0 0 4.
    const B: Segment = Segment {
        handle: 0xb2,
        length: 0,
        offset: 4,
    };

    /// HLOO: ffffffff ffffffff ffffffff ffffffff.
    const M: Segment = Segment {
        handle: u32::MAX,
        length: u32::MAX,
        offset: u64::MAX,
    };

    const CALL: Version = Version::Two(Direction::Call);
    const REPLY: Version = Version::Two(Direction::Reply);

    /// A header with the XID [`X`] and 20 (hex) credits.
    fn header(body: Body<'_>) -> Header<'_> {
        Header {
            xid: X,
            credit: 0x20,
            body,
        }
    }

    /// PHLOO.
    fn read(position: u32, target: Segment) -> ReadSegment {
        ReadSegment { position, target }
    }

    fn reads(reads: &[ReadSegment]) -> ChunkLists<'_> {
        ChunkLists {
            reads: List::new(reads),
            ..ChunkLists::EMPTY
        }
    }

    fn writes<'a>(writes: &'a [WriteChunk<'a>]) -> ChunkLists<'a> {
        ChunkLists {
            writes: List::new(writes),
            ..ChunkLists::EMPTY
        }
    }

    fn reply(segments: &[Segment]) -> ChunkLists<'_> {
        ChunkLists {
            reply: Some(WriteChunk::new(segments)),
            ..ChunkLists::EMPTY
        }
    }

    /// Checks the result of parsing a message, and that building that again makes the same header.
    pub(super) fn check_header(words: &str, expected: Header<'_>) -> Result {
        let octets = Octets::new(words)?;
        let (head, payload) = octets.all().split_at(octets.head);
        check(words, parse(octets.all()), Ok((expected, payload)))?;

        check(words, expected.len(), head.len())?;
        check_built(words, head, |buffer| expected.build(buffer))
    }

    /// RFC 8166, sections 4.2.1 to 4.2.3; section 4.7: without chunks, "there are simply three
    /// 32-bit fields that contain zero".
    #[test]
    fn rfc_8166_section_4_2_fixed_fields() -> Result {
        for (words, xid, credit) in [
            ("X 1 20 0 / 0 0 0 | X 0 2", X, 32),
            ("0 1 0 0 / 0 0 0 | 0", 0, 0),
            ("1 1 80000000 0 / 0 0 0 | 1 1 0", 1, 0x8000_0000),
            (
                "ffffffff 1 ffffffff 0 / 0 0 0 | ffffffff",
                u32::MAX,
                u32::MAX,
            ),
        ] {
            let body = Body::Msg(Version::One, ChunkLists::EMPTY);
            check_header(words, Header { xid, credit, body })?;
        }
        Ok(())
    }

    /// RFC 8166, section 4.7: "1 PHLOO 1 PHLOO 1 PHLOO 0".
    #[test]
    fn rfc_8166_section_4_7_read_list() -> Result {
        for (words, segments) in [
            (
                "X 1 20 0 / 1 0 a1 1000 1 80000000 0 0 0 | X",
                &[read(0, A)][..],
            ),
            (
                "X 1 20 0 / 1 28 a1 1000 1 80000000 / 1 28 b2 0 0 4 / \
                 1 fffffffc ffffffff ffffffff ffffffff ffffffff / 0 0 0 | X",
                &[read(40, A), read(40, B), read(0xffff_fffc, M)],
            ),
        ] {
            check_header(words, header(Body::Msg(Version::One, reads(segments))))?;
        }
        Ok(())
    }

    /// RFC 8166, section 4.7: "1 3 HLOO HLOO HLOO 1 2 HLOO HLOO 0". Section 3.4.6: "An empty Write
    /// chunk is a Write chunk with a zero segment count".
    #[test]
    fn rfc_8166_section_4_7_write_list() -> Result {
        let three = WriteChunk::new(&[A, B, M]);
        let two = WriteChunk::new(&[B, A]);
        for (words, chunks) in [
            (
                "X 1 20 0 / 0 / 1 3 a1 1000 1 80000000 b2 0 0 4 ffffffff ffffffff ffffffff \
                 ffffffff 1 2 b2 0 0 4 a1 1000 1 80000000 0 / 0 | X",
                &[three, two][..],
            ),
            (
                "X 1 20 0 / 0 / 1 0 1 2 b2 0 0 4 a1 1000 1 80000000 0 / 0 | X",
                &[WriteChunk::EMPTY, two],
            ),
            ("X 1 20 0 / 0 / 1 0 0 / 0 | X", &[WriteChunk::EMPTY]),
        ] {
            check_header(words, header(Body::Msg(Version::One, writes(chunks))))?;
        }
        Ok(())
    }

    /// RFC 8166, section 4.7: "1 2 HLOO HLOO".
    #[test]
    fn rfc_8166_section_4_7_reply_chunk() -> Result {
        for (words, segments) in [
            (
                "X 1 20 0 / 0 0 / 1 2 a1 1000 1 80000000 b2 0 0 4 | X",
                &[A, B][..],
            ),
            ("X 1 20 0 / 0 0 / 1 0 | X", &[]),
        ] {
            check_header(words, header(Body::Msg(Version::One, reply(segments))))?;
        }
        Ok(())
    }

    /// Each of the lists, in calls and in replies.
    #[test]
    fn rfc_8166_section_4_3_chunks() -> Result {
        for (words, expected) in [
            ("X 1 20 0 / 0 0 0 | X 0 2", false),
            ("X 1 20 0 / 1 0 a1 1000 1 80000000 0 0 0 | X 0 2", true),
            ("X 1 20 0 / 0 1 0 0 0 | X 0 2", true),
            ("X 1 20 0 / 0 0 1 0 | X 0 2", true),
            ("X 1 20 1 / 1 0 a1 1000 1 80000000 0 0 0 |", true),
            ("X 2 20 0 / 1 0 0 0 | X 1 0", false),
            ("X 2 20 0 / 0 0 0 1 0 | X 0 2", true),
            ("X 1 20 4 / 1 1 1", false),
            ("X 1 20 4 / 2", false),
            ("X 2 20 5 / 0 7 0 |", false),
        ] {
            let octets = Octets::new(words)?;
            let parsed = parse(octets.all()).map(|(header, _)| header.has_chunks());
            check(words, parsed, Ok(expected))?;
        }
        Ok(())
    }

    /// RFC 8166, section 4.2.4: "RDMA_NOMSG = 1 indicates that after the chunk lists there is no
    /// Payload stream".
    #[test]
    fn rfc_8166_section_4_2_4_nomsg() -> Result {
        let long = [read(0, A)];
        let chunks = [WriteChunk::new(&[A])];
        let all = ChunkLists {
            reads: List::new(&long),
            writes: List::new(&chunks),
            reply: Some(WriteChunk::new(&[B])),
        };
        for (words, lists) in [
            (
                "X 1 20 1 / 1 0 a1 1000 1 80000000 0 / 1 1 a1 1000 1 80000000 0 / 1 1 b2 0 0 4",
                all,
            ),
            ("X 1 20 1 / 1 0 a1 1000 1 80000000 0 / 0 0", reads(&long)),
            (
                "X 1 20 1 / 0 / 1 1 a1 1000 1 80000000 0 / 0",
                writes(&chunks),
            ),
            ("X 1 20 1 / 0 0 / 1 1 b2 0 0 4", reply(&[B])),
            // Octets that follow nevertheless do not belong to the header.
            ("X 1 20 1 / 0 0 / 1 1 b2 0 0 4 | 5", reply(&[B])),
        ] {
            check_header(words, header(Body::Nomsg(Version::One, lists)))?;
        }
        Ok(())
    }

    /// RFC 8166, section 4.5: RDMA_ERROR. Section 7: ERR_VERS is the same in all versions; Linux
    /// answers version 2 with it and leaves the version as it is.
    #[test]
    fn rfc_8166_section_4_5_errors() -> Result {
        for (words, vers, low, high) in [
            ("X 1 20 4 / 1 1 1", 1, 1, 1),
            ("X 1 20 4 / 1 2 3", 1, 2, 3),
            ("X 2 20 4 / 1 1 1", 2, 1, 1),
            ("X 2 20 4 / 1 1 2", 2, 1, 2),
            ("X 0 20 4 / 1 0 0", 0, 0, 0),
            ("X 3 20 4 / 1 1 2", 3, 1, 2),
            (
                "X ffffffff 20 4 / 1 5 ffffffff",
                0xffff_ffff,
                5,
                0xffff_ffff,
            ),
        ] {
            check_header(words, header(Body::ErrVers { vers, low, high }))?;
        }
        check_header("X 1 20 4 / 2", header(Body::ErrChunk))
    }

    /// RFC 8167, section 2: "A Call is designated by the value CALL in the message's msg_type
    /// field". The draft, section 4.2.2: the direction is that of the RPC message, and of an error
    /// "always Responder-to-Requester (REPLY)". Also of messages that are malformed otherwise.
    #[test]
    fn rfc_8167_section_2_direction() -> Result {
        let (call, reply) = (Some(Direction::Call), Some(Direction::Reply));
        for (words, expected) in [
            ("X 1 20 0 / 0 0 0 | X 0 2", call),
            ("X 1 20 0 / 0 0 0 | X 1 0", reply),
            ("X 1 20 0 / 0 0 0 | 1 0 2", call),
            ("X 1 20 0 / 0 0 0 | 1 1 0", reply),
            ("X 1 20 0 / 0 0 0 | X 2", None),
            ("X 1 20 0 / 0 0 0 | X", None),
            ("X 1 20 0 / 0 2 0 | X 1 0", None),
            ("X 1 20 1 / 1 0 a1 1000 1 80000000 0 0 0", call),
            ("X 1 20 1 / 0 0 1 1 a1 1000 1 80000000", None),
            ("X 1 20 1 / 0 0 0", None),
            ("X 1 20 2 / 0 0 0 0 0 | X 0 2", None),
            ("X 1 20 3 / 0 0 0", None),
            ("X 1 20 4 / 2", reply),
            ("X 2 20 0 0 / 0 0 0 | X 0 2", call),
            ("X 2 20 0 1 / 0 0 0 | X 1 0", reply),
            ("X 2 20 0 0 / 0 0 0 | X 1 0", call),
            ("X 2 20 0 1 / 2 0 0", reply),
            ("X 2 20 0 2 / 0 0 0 | X 0 2", None),
            ("X 2 20 1 1 / 0 0 0", reply),
            ("X 2 20 5 0 / 4d 0", call),
            ("X 2 20 5 1 / 4d 9", reply),
            ("X 2 20 3 0 / 0 0", None),
            ("X 3 20 4 / 1 1 2", reply),
            ("X 3 20 0 / 0 0 0", None),
            ("X 1 20", None),
        ] {
            let octets = Octets::new(words)?;
            check(words, direction(octets.all()), expected)?;
            if let Ok((header, payload)) = parse(octets.all()) {
                check(words, header.direction(payload), expected)?;
            }
        }
        Ok(())
    }

    /// RFC 8166, section 4.2.2: the place of the version in a header.
    #[test]
    fn rfc_8166_section_4_2_2_version() -> Result {
        for (words, version) in [
            ("X 1 20 0 / 0 0 0 | X", 1),
            ("X 1 20 1 / 0 0 / 1 0", 1),
            ("X 1 20 4 / 2", 1),
            ("X 2 20 0 / 0 / 0 0 0 | X 0", 2),
            ("X 2 20 1 / 1 / 0 0 / 1 0", 2),
            ("X 2 20 4 / 2", 2),
            ("X 2 20 4 / 3", 2),
            ("X 2 20 5 / 0 0 0", 2),
            ("X 1 20 4 / 1 2 3", 1),
            ("X 2 20 4 / 1 1 1", 2),
            ("X ffffffff 20 4 / 1 1 2", 0xffff_ffff),
        ] {
            let octets = Octets::new(words)?;
            let parsed = parse(octets.all());
            check(
                words,
                parsed.map(|(header, _)| header.version()),
                Ok(version),
            )?;
        }
        Ok(())
    }

    /// The draft, section 5.2: "the requester selects a protocol version in the range of
    /// responder-supported versions".
    #[test]
    fn draft_section_5_2_ranges() -> Result {
        let range = |low, high| Versions { low, high };
        check("all", Versions::ALL, range(1, 2))?;
        check("one", Versions::only(1), range(1, 1))?;
        check("two", Versions::only(2), range(2, 2))?;

        for (low, high, both, one, two) in [
            (1, 1, Some(1), Some(1), None),
            (2, 2, Some(2), None, Some(2)),
            (1, 2, Some(2), Some(1), Some(2)),
            (0, 0, None, None, None),
            (0, 1, Some(1), Some(1), None),
            (0, u32::MAX, Some(2), Some(1), Some(2)),
            (2, 3, Some(2), None, Some(2)),
            (3, 3, None, None, None),
            (3, u32::MAX, None, None, None),
            // Empty ranges.
            (2, 1, None, None, None),
            (u32::MAX, 0, None, None, None),
        ] {
            let theirs = range(low, high);
            let row = CString::try_from_fmt(format_args!("{low} to {high}"))?;
            let row = row.to_str()?;
            for (ours, common) in [
                (Versions::ALL, both),
                (Versions::only(1), one),
                (Versions::only(2), two),
            ] {
                check(row, ours.highest_common(theirs), common)?;
                check(row, theirs.highest_common(ours), common)?;
            }
            check(row, theirs.contains(1), one.is_some())?;
            check(row, theirs.contains(2), two.is_some())?;
        }
        Ok(())
    }

    /// RFC 8166, section 3.4.4: "The length of a chunk is the sum of the lengths of the RDMA
    /// segments that comprise it"; section 3.4.6: a responder "updates each segment length field to
    /// reflect the actual amount of data that is being returned in that segment".
    #[test]
    fn rfc_8166_section_3_4_6_lengths() -> Result {
        let of = |length| Segment { length, ..A };
        let segments = [of(10), of(0), of(u32::MAX), of(20)];
        let chunk = WriteChunk::new(&segments);
        check("length", chunk.length(), 4_294_967_325)?;
        check("none", WriteChunk::EMPTY.length(), 0)?;

        for (octets, lengths) in [
            (0, [0, 0, 0, 0]),
            (1, [1, 0, 0, 0]),
            (10, [10, 0, 0, 0]),
            (11, [10, 0, 1, 0]),
            (4_294_967_305, [10, 0, u32::MAX, 0]),
            (4_294_967_306, [10, 0, u32::MAX, 1]),
            (4_294_967_325, [10, 0, u32::MAX, 20]),
            (4_294_967_326, [10, 0, u32::MAX, 20]),
            (u64::MAX, [10, 0, u32::MAX, 20]),
        ] {
            let filled = chunk.filled(octets);
            check(octets, filled.eq(lengths.map(of)), true)?;
        }
        Ok(())
    }

    /// The draft, section 4.2: the chunk lists of version 1, behind `rdma_direction`.
    #[test]
    fn draft_section_4_2_chunks() -> Result {
        let long = [read(0, M)];
        let chunks = [WriteChunk::new(&[A, B]), WriteChunk::EMPTY];
        let all = ChunkLists {
            reads: List::new(&long),
            writes: List::new(&chunks),
            reply: Some(chunks[0]),
        };
        for (words, body) in [
            (
                "X 2 20 0 / 0 / 0 0 0 | X 0",
                Body::Msg(CALL, ChunkLists::EMPTY),
            ),
            (
                "X 2 20 0 / 1 / 0 0 0 | X 1 0",
                Body::Msg(REPLY, ChunkLists::EMPTY),
            ),
            (
                "X 2 20 0 / 0 / 1 28 b2 0 0 4 0 / 0 0 | X 0",
                Body::Msg(CALL, reads(&[read(40, B)])),
            ),
            (
                "X 2 20 1 / 0 / 1 0 ffffffff ffffffff ffffffff ffffffff 0 / \
                 1 2 a1 1000 1 80000000 b2 0 0 4 1 0 0 / 1 2 a1 1000 1 80000000 b2 0 0 4",
                Body::Nomsg(CALL, all),
            ),
            (
                "X 2 20 1 / 1 / 0 0 / 1 1 b2 0 0 4",
                Body::Nomsg(REPLY, reply(&[B])),
            ),
        ] {
            check_header(words, header(body))?;
        }
        Ok(())
    }

    /// The draft, section 4.2: `rpcrdma2_error`, which has no direction.
    #[test]
    fn draft_section_4_2_errors() -> Result {
        let (vers, low, high) = (2, 1, 2);
        for (words, body) in [
            ("X 2 20 4 / 1 1 2", Body::ErrVers { vers, low, high }),
            ("X 2 20 4 / 2", Body::ErrBadHeader),
            ("X 2 20 4 / 3", Body::ErrInvalidOption),
        ] {
            check_header(words, header(body))?;
        }
        Ok(())
    }

    /// The draft, section 3.1: "The `rdma_optinfo` field carries opaque data"; section 4.2.1: "all,
    /// part of, or no RPC Payload Stream MAY follow".
    #[test]
    fn draft_section_3_1_optional() -> Result {
        for (words, direction, opttype, optinfo) in [
            ("X 2 20 5 / 0 0 0", Direction::Call, 0, &[][..]),
            (
                "X 2 20 5 / 1 ffffffff 1 1000000",
                Direction::Reply,
                0xffff_ffff,
                &[1],
            ),
            ("X 2 20 5 / 0 1 2 1020000", Direction::Call, 1, &[1, 2]),
            (
                "X 2 20 5 / 0 1 3 1020300 | 0",
                Direction::Call,
                1,
                &[1, 2, 3],
            ),
            (
                "X 2 20 5 / 0 1 4 1020304 | 5 6",
                Direction::Call,
                1,
                &[1, 2, 3, 4],
            ),
            (
                "X 2 20 5 / 1 2 5 1020304 5000000 | X",
                Direction::Reply,
                2,
                &[1, 2, 3, 4, 5],
            ),
        ] {
            let body = Body::Optional {
                direction,
                opttype,
                optinfo,
            };
            check_header(words, header(body))?;
        }
        Ok(())
    }
}
