// SPDX-License-Identifier: GPL-2.0

//! The headers of RPC messages (RFC 5531, section 9), compared with a second decoder that works in
//! another way: by patterns of words.

use super::{
    built,
    shown, //
};
use crate::pure::wire::rpc_message::{
    is_reply,
    parse_call,
    parse_reply,
    Call,
    Reply,
    RpcError,
    Status, //
};

/// The words of a message, with zeros behind them.
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

    /// Whether the message begins with the words of `pattern`, where `?` stands for any word.
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

    /// Whether the body of an `opaque_auth`, of `length` octets at word `at`, is that of AUTH_SYS.
    fn are_auth_sys(&self, at: usize, length: u32) -> bool {
        let name = self.0[at + 1];
        if name > 255 {
            return false;
        }
        let uid = at + 2 + name.div_ceil(4) as usize;
        let gids = self.0[uid + 2];
        gids <= 16 && 4 * (uid + 3 - at + gids as usize) == length as usize
    }

    fn has(&self, words: usize) -> bool {
        4 * words <= self.1
    }
}

/// The result of a responder for octets: a call with the offset of its arguments, a reply, or
/// nothing.
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
    if !words.has(verifier) {
        return Called::Nothing;
    }
    if words.0[6] > 1 || words.0[6] == 1 && !words.are_auth_sys(8, words.0[7]) {
        return Called::Answer([xid, 1]);
    }
    if !words.has(verifier + 2) {
        return Called::Nothing;
    }
    let Some(arguments) = words.behind_auth(verifier) else {
        return Called::Answer([xid, 3]);
    };
    if !words.has(arguments) {
        return Called::Nothing;
    }
    if words.0[verifier] != 0 {
        return Called::Answer([xid, 3]);
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
        Err(RpcError::Refused(Reply { xid, status })) => match status {
            Status::RpcMismatch { low: 2, high: 2 } => Called::Answer([xid, 0]),
            Status::AuthError(auth_stat) => Called::Answer([xid, auth_stat]),
            status => panic!("refused with {status}"),
        },
        Err(_) => Called::Nothing,
    }
}

/// Returns the XID and the status of a reply, and the offset of its results.
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

/// RFC 5531, section 9: parsing a built call returns the same call, and leaves the octets behind
/// it.
pub(crate) fn check_call(call: Call, more: &[u8]) -> Vec<u8> {
    let octets = built(|buffer| call.build(buffer));
    assert_eq!(octets.len(), call.len());
    let message = [&octets[..], more].concat();
    assert_eq!(parse_call(&message), Ok((call, more)));
    octets
}

/// RFC 5531, section 9: parsing a built reply returns the same reply.
pub(crate) fn check_reply(reply: Reply, more: &[u8]) -> Vec<u8> {
    let octets = built(|buffer| reply.build(buffer));
    let message = [&octets[..], more].concat();
    assert_eq!(parse_reply(&message), Ok((reply, more)));
    octets
}

/// Checks the results for any octets, as a call and as a reply.
pub(crate) fn check(octets: &[u8]) {
    assert_eq!(called(octets), expected_call(octets), "{octets:02x?}");
    assert_eq!(is_reply(octets), octets.get(4..8) == Some(&[0, 0, 0, 1]));

    let reply = parse_reply(octets)
        .ok()
        .map(|(Reply { xid, status }, results)| {
            assert!(octets.ends_with(results));
            shown(status);
            (xid, status, octets.len() - results.len())
        });
    assert_eq!(reply, expected_reply(octets), "{octets:02x?}");
}
