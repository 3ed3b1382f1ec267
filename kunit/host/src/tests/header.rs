// SPDX-License-Identifier: GPL-2.0

//! The transport headers of RFC 8166, section 4, and of the draft, section 4.

use proptest::{
    collection::vec,
    option,
    prelude::*,
    sample::{
        select,
        Index, //
    }, //
};

use super::cases;
use crate::{
    checks::header::{
        body,
        check,
        check_answers,
        check_filled,
        check_len,
        check_room,
        check_round_trip,
        Owned, //
    },
    pure::wire::header::{
        chunks::{
            ReadSegment,
            Segment, //
        },
        error::{
            HeaderError,
            Reason, //
        },
        parse,
        Versions, //
    }, //
};

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
        any::<usize>(),
        any::<u32>(),
        prop_oneof![0..4_u32, any::<u32>()],
        any::<u32>(),
    )
        .prop_map(|(which, one, other, third)| body(which, one, other, third));
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

/// A word that has a meaning somewhere in a header, or any word.
fn telling() -> impl Strategy<Value = u32> {
    prop_oneof![
        8 => 0..7_u32,
        1 => select(&[8, 16, 0x0fff_ffff, 0x1000_0000, 0x4000_0000, 0x8000_0000, !0][..]),
        1 => any::<u32>(),
    ]
}

/// Messages whose first words are mostly meaningful.
fn messages() -> impl Strategy<Value = Vec<u8>> {
    (vec(telling(), 0..40), vec(any::<u8>(), 0..4)).prop_map(|(words, more)| {
        let mut octets: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        octets.extend(more);
        octets
    })
}

/// A change of a message at one of its words.
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

/// RFC 8166, section 4.1.2, and the draft, section 4.2: all combinations of a few words with small
/// values, in each version, the ones below and above, and of each procedure.
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

    /// Parsing a built header returns the same header, and leaves the octets behind it.
    #[test]
    fn section_4_round_trip(owned in headers(), more in vec(any::<u8>(), 0..=9)) {
        check_round_trip(&owned, &more);
    }

    /// Building fails with an error if the buffer is too short. Nothing is written behind the
    /// header.
    #[test]
    fn section_4_room(owned in headers(), available in 0..400_usize) {
        check_room(&owned, available);
    }

    /// The length of a header is the same by four ways of counting.
    #[test]
    fn section_4_len(owned in headers()) {
        check_len(&owned);
    }

    /// RFC 8166, section 4.5: a message that is cut anywhere is not valid, with the right error.
    #[test]
    fn section_4_5_every_truncation(owned in headers()) {
        let (octets, _) = owned.message();
        let is_error = octets[12..16] == [0, 0, 0, 4];
        for length in 0..octets.len() {
            let cut = &octets[..length];
            match parse(cut) {
                Err(HeaderError::Short { length: reported }) => {
                    prop_assert_eq!(reported, length);
                    prop_assert!(length < 16 || (length < 28 && !is_error));
                }
                Err(HeaderError::Malformed(fixed, malformed)) => {
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

    /// Any octets: no panic, and building a valid header again makes the same octets.
    #[test]
    fn section_4_any_octets(octets in vec(any::<u8>(), 0..=300)) {
        check(&octets);
    }

    /// Words that are often meaningful.
    #[test]
    fn section_4_any_words(octets in messages()) {
        check(&octets);
    }

    /// Valid fixed fields, followed by words that are often meaningful.
    #[test]
    fn section_4_any_body(vers in 1..=2_u32, proc in 0..6_u32, body in messages()) {
        let fixed = [3, vers, 5, proc].map(u32::to_be_bytes).concat();
        let octets = [fixed, body].concat();
        check(&octets);
    }

    /// Valid messages with changes, which make most of them invalid.
    #[test]
    fn section_4_mutated(owned in headers(), mutations in vec(mutations(), 1..4)) {
        let (mut octets, _) = owned.message();
        for mutation in mutations {
            mutation.apply(&mut octets);
        }
        check(&octets);
    }

    /// RFC 8166, section 4.5: an answer has the XID and the version of its message, can be parsed,
    /// and is never answered itself, whole or truncated.
    #[test]
    fn section_4_5_answers(octets in messages()) {
        check_answers(&octets);
    }

    /// The draft, section 5.2: the highest common version of two ranges, compared with all versions
    /// in them.
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

    /// RFC 8166, section 3.4.6: the handles, offsets and lengths of a returned chunk.
    #[test]
    fn section_3_4_6_filled(
        chunk in vec(segments(), 0..6),
        octets in (any::<u64>(), 0..64).prop_map(|(octets, shift)| octets >> shift),
    ) {
        check_filled(&chunk, octets);
    }
}
