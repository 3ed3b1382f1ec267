// SPDX-License-Identifier: GPL-2.0

//! The headers of RPC messages (RFC 5531, section 9).

use proptest::{
    collection::vec,
    prelude::*, //
};

use super::{
    cases,
    for_each_u32, //
};
use crate::{
    checks::rpc::{
        check,
        check_call,
        check_reply, //
    },
    pure::wire::rpc_message::{
        parse_call,
        parse_reply,
        xid,
        Call,
        Reply,
        Status,
        REPLY_HEAD_MAX, //
    }, //
};

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

/// Words that are mostly meaningful, and some octets.
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

/// RFC 5531, section 9: all combinations of a few words with small values.
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

/// The number of the call with this XID: undoes the steps of `xid`, the last one first.
fn number(xid: u32) -> u32 {
    // Each step doubles the number of the low bits that are right.
    let inverse = |factor: u32| {
        (0..5).fold(1_u32, |inverse, _| {
            inverse.wrapping_mul(2_u32.wrapping_sub(factor.wrapping_mul(inverse)))
        })
    };
    let mut number = xid ^ (xid >> 16);
    number = number.wrapping_mul(inverse(0xc2b2_ae35));
    number ^= (number >> 13) ^ (number >> 26);
    number = number.wrapping_mul(inverse(0x85eb_ca6b));
    number ^ (number >> 16)
}

/// RFC 8167, section 2.4: the XIDs of different calls differ, because each has one number.
#[test]
fn section_2_4_xids_differ() {
    for_each_u32(|_| true, |of| assert_eq!(number(xid(of)), of));
}

/// RFC 5531, sections 8.2 and 9: the longest head of a reply.
#[test]
fn section_9_longest_reply() {
    let octets = |words: &[u32]| words.iter().flat_map(|word| word.to_be_bytes()).collect();
    let head: Vec<u8> = octets(&[7, 1, 0, 6, 400]);
    let mismatch: Vec<u8> = octets(&[2, 3, 4]);
    let reply = [&head[..], &[0; 400], &mismatch].concat();
    let status = Status::ProgMismatch { low: 3, high: 4 };

    assert_eq!(reply.len(), REPLY_HEAD_MAX);
    assert_eq!(parse_reply(&reply), Ok((Reply { xid: 7, status }, &[][..])));
}

proptest! {
    #![proptest_config(cases(20_000))]

    /// RFC 5531, section 9: parsing a built header returns the same header. A truncated one is not
    /// valid.
    #[test]
    fn section_9_round_trip(
        (xid, prog, vers, proc) in any::<(u32, u32, u32, u32)>(),
        status in statuses(),
        more in vec(any::<u8>(), 0..=9),
    ) {
        let call = Call { xid, prog, vers, proc };
        let octets = check_call(call, &more);
        check(&[&octets[..], &more].concat());
        for length in 0..octets.len() {
            prop_assert!(parse_call(&octets[..length]).is_err());
            check(&octets[..length]);
        }

        let reply = Reply { xid, status };
        let octets = check_reply(reply, &more);
        check(&[&octets[..], &more].concat());
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

    /// Words that are mostly meaningful.
    #[test]
    fn section_9_any_words(octets in messages()) {
        check(&octets);
    }

    /// RFC 5531, appendix A: credentials of AUTH_SYS, whose length may be wrong.
    #[test]
    fn appendix_a_auth_sys(
        (name, gids) in (0..=257_usize, 0..=17_usize),
        wrong in prop_oneof![4 => Just(0_i32), 1 => -9..=9_i32],
    ) {
        let words = |words: &[u32]| -> Vec<u8> {
            words.iter().flat_map(|word| word.to_be_bytes()).collect()
        };
        let padded = vec![0; name.next_multiple_of(4)];
        let body = [
            words(&[1, name as u32]),
            padded,
            words(&[2, 3, gids as u32]),
            vec![0; 4 * gids],
        ]
        .concat();
        let length = body.len() as i32 + wrong;
        let mut call = [words(&[7, 0, 2, 8, 9, 10, 1, length as u32]), body].concat();
        call.resize(32 + (length as usize).next_multiple_of(4), 0);
        call.extend(words(&[0, 0]));
        let is_call = wrong == 0 && name <= 255 && gids <= 16 && length <= 400;
        prop_assert_eq!(parse_call(&call).is_ok(), is_call);
        check(&call);
    }

    /// RFC 5531, section 8.2: credentials and verifiers of any length, mostly there.
    #[test]
    fn section_8_2_any_authentication(
        flavors in (0..=2_u32, 0..=1_u32),
        lens in (0..=405_u32, 0..=405_u32),
        more in vec(any::<u8>(), 780..=830),
    ) {
        let unit = |len: u32| len.div_ceil(4) as usize * 4;
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_be_bytes()).collect();
        let head: Vec<u8> = words(&[7, 0, 2, 8, 9, 10, flavors.0, lens.0]);
        let verifier: Vec<u8> = words(&[flavors.1, lens.1]);
        let call = [&head[..], &more[..unit(lens.0)], &verifier, &more[..unit(lens.1)]].concat();
        check(&[&call[..], &more].concat());
        check(&call);
        check(&call[..call.len() - 1]);
    }
}
