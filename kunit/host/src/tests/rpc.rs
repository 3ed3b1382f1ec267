// SPDX-License-Identifier: GPL-2.0

//! What RPC messages begin with (RFC 5531, section 9), against a second decoder that is made
//! differently: of a message it knows the words alone, and where the results begin.

use proptest::{
    collection::vec,
    prelude::*, //
};

use super::cases;
use crate::wire::{
    rpc::{
        parse_call,
        parse_reply,
        Call,
        Error,
        Reply,
        Status, //
    },
    xdr::NoRoom,
};

/// The words of a message, and zeros as far as anybody looks behind it.
struct Words(Vec<u32>, usize);

impl Words {
    fn new(octets: &[u8]) -> Self {
        let padded = [octets, &[0; 1024]].concat();
        let words = padded
            .chunks_exact(4)
            .map(|word| u32::from_be_bytes(word.try_into().unwrap()))
            .collect();
        Self(words, octets.len())
    }

    /// Whether there are that many words, and these are the first ones, in a pattern where `?` is
    /// any word.
    fn are(&self, pattern: &str) -> bool {
        let pattern: Vec<_> = pattern.split_whitespace().collect();
        4 * pattern.len() <= self.1
            && pattern.iter().zip(&self.0).all(|(pattern, word)| {
                *pattern == "?" || pattern.parse() == Ok(*word) //
            })
    }

    /// The word behind the `opaque_auth` at `at`; [`None`] if that is too long.
    fn behind_auth(&self, at: usize) -> Option<usize> {
        let units = self.0[at + 1].checked_add(3)? / 4;
        (self.0[at + 1] <= 400).then_some(at + 2 + units as usize)
    }

    fn has(&self, words: usize) -> bool {
        4 * words <= self.1
    }
}

/// What a responder makes of octets: a call and where its arguments begin, a reply, or nothing.
#[derive(Debug, PartialEq)]
enum Called {
    Call([u32; 4], usize),
    Answer([u32; 2]),
    Nothing,
}

fn expected_call(octets: &[u8]) -> Called {
    let words = Words::new(octets);
    if !words.are("? 0 ?") {
        return Called::Nothing;
    }
    let xid = words.0[0];
    if words.0[2] != 2 {
        return Called::Answer([xid, 0]);
    }
    if !words.are("? 0 2 ? ? ? ? ?") {
        return Called::Nothing;
    }
    let Some(verifier) = words.behind_auth(6) else {
        return Called::Answer([xid, 1]);
    };
    if !words.has(verifier + 2) {
        return Called::Nothing;
    }
    let Some(arguments) = words.behind_auth(verifier) else {
        return Called::Answer([xid, 3]);
    };
    if !words.has(arguments) {
        return Called::Nothing;
    }
    Called::Call([xid, words.0[3], words.0[4], words.0[5]], 4 * arguments)
}

fn called(octets: &[u8]) -> Called {
    match parse_call(octets) {
        Ok((call, arguments)) => {
            assert!(octets.ends_with(arguments));
            Called::Call(
                [call.xid, call.prog, call.vers, call.proc],
                octets.len() - arguments.len(),
            )
        }
        Err(Error::Refused(Reply { xid, status })) => match status {
            Status::RpcMismatch { low: 2, high: 2 } => Called::Answer([xid, 0]),
            Status::AuthError(auth_stat) => Called::Answer([xid, auth_stat]),
            status => panic!("refused with {status}"),
        },
        Err(_) => Called::Nothing,
    }
}

/// The status of a reply, and where its results begin.
fn expected_reply(octets: &[u8]) -> Option<(u32, Status, usize)> {
    let words = Words::new(octets);
    let xid = words.0[0];
    let (at, status) = if words.are("? 1 1 0 ? ?") {
        let (low, high) = (words.0[4], words.0[5]);
        (6, Status::RpcMismatch { low, high })
    } else if words.are("? 1 1 1 ?") {
        (5, Status::AuthError(words.0[4]))
    } else if words.are("? 1 0 ? ?") {
        let at = words.behind_auth(3)?;
        let (low, high) = (words.0[at + 1], words.0[at + 2]);
        match words.0[at] {
            0 => (at + 1, Status::Success),
            1 => (at + 1, Status::ProgUnavail),
            2 => (at + 3, Status::ProgMismatch { low, high }),
            3 => (at + 1, Status::ProcUnavail),
            4 => (at + 1, Status::GarbageArgs),
            5 => (at + 1, Status::SystemErr),
            _ => return None,
        }
    } else {
        return None;
    };
    words.has(at).then_some((xid, status, 4 * at))
}

fn check(octets: &[u8]) {
    assert_eq!(called(octets), expected_call(octets), "{octets:02x?}");

    let reply = parse_reply(octets).ok();
    let reply = reply.map(|(Reply { xid, status }, results)| {
        assert!(octets.ends_with(results));
        (xid, status, octets.len() - results.len())
    });
    assert_eq!(reply, expected_reply(octets), "{octets:02x?}");
}

fn built(build: impl Fn(&mut [u8]) -> Result<usize, NoRoom>) -> Vec<u8> {
    let Err(NoRoom {
        needed,
        available: 0,
    }) = build(&mut [])
    else {
        panic!("built in no octets");
    };
    let mut octets = vec![0; needed];
    assert_eq!(build(&mut octets), Ok(needed));
    octets
}

fn statuses() -> impl Strategy<Value = Status> {
    (0..8_usize, any::<(u32, u32)>()).prop_map(|(which, (low, high))| {
        [
            Status::Success,
            Status::ProgUnavail,
            Status::ProgMismatch { low, high },
            Status::ProcUnavail,
            Status::GarbageArgs,
            Status::SystemErr,
            Status::RpcMismatch { low, high },
            Status::AuthError(low),
        ][which]
    })
}

/// Words that mostly mean something, and some octets.
fn messages() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        8 => 0..7_u32,
        1 => 396..=404_u32,
        1 => any::<u32>(),
    ];
    (vec(word, 0..16), vec(any::<u8>(), 0..900), any::<bool>()).prop_map(|(words, more, long)| {
        let mut octets: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        octets.extend(&more[..if long { more.len() } else { more.len() % 4 }]);
        octets
    })
}

/// RFC 5531, section 9: all that a few words of small values can be.
#[test]
fn section_9_every_small_message() {
    for len in 0..=9 {
        for digits in 0..4_u32.pow(len) {
            let words = (0..len).map(|place| digits / 4_u32.pow(place) % 4);
            let octets: Vec<u8> = words.flat_map(u32::to_be_bytes).collect();
            check(&octets);
        }
    }
}

proptest! {
    #![proptest_config(cases(20_000))]

    /// RFC 5531, section 9: what is built is what is parsed, and no beginning of it is.
    #[test]
    fn section_9_round_trip(
        (xid, prog, vers, proc) in any::<(u32, u32, u32, u32)>(),
        status in statuses(),
        more in vec(any::<u8>(), 0..=9),
    ) {
        let call = Call { xid, prog, vers, proc };
        let octets = built(|buffer| call.build(buffer));
        let message = [&octets[..], &more].concat();
        prop_assert_eq!(parse_call(&message), Ok((call, &more[..])));
        check(&message);
        for length in 0..octets.len() {
            prop_assert!(parse_call(&octets[..length]).is_err());
            check(&octets[..length]);
        }

        let reply = Reply { xid, status };
        let octets = built(|buffer| reply.build(buffer));
        let message = [&octets[..], &more].concat();
        prop_assert_eq!(parse_reply(&message), Ok((reply, &more[..])));
        check(&message);
        for length in 0..octets.len() {
            prop_assert!(parse_reply(&octets[..length]).is_err());
            check(&octets[..length]);
        }
    }

    /// Any octets.
    #[test]
    fn section_9_any_octets(octets in vec(any::<u8>(), 0..=500)) {
        check(&octets);
    }

    /// Words that mostly mean something.
    #[test]
    fn section_9_any_words(octets in messages()) {
        check(&octets);
    }

    /// RFC 5531, section 8.2: credentials and verifiers of any length, mostly there.
    #[test]
    fn section_8_2_any_authentication(
        lens in (0..=405_u32, 0..=405_u32),
        more in vec(any::<u8>(), 780..=830),
    ) {
        let unit = |len: u32| len.div_ceil(4) as usize * 4;
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_be_bytes()).collect();
        let head: Vec<u8> = words(&[7, 0, 2, 8, 9, 10, 1, lens.0]);
        let verifier: Vec<u8> = words(&[1, lens.1]);
        let call = [&head[..], &more[..unit(lens.0)], &verifier, &more[..unit(lens.1)]].concat();
        check(&[&call[..], &more].concat());
        check(&call);
        check(&call[..call.len() - 1]);
    }
}
