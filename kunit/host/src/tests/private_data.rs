// SPDX-License-Identifier: GPL-2.0

//! The message of RFC 8797, sections 4 and 5.

use proptest::{
    collection::vec,
    prelude::*,
    sample::select, //
};

use super::{
    cases,
    for_each_u32, //
};
use crate::{
    checks::{
        offer,
        oracle::{
            self,
            Verdict, //
        },
        private_data::{
            check,
            check_embedded,
            check_offer,
            check_raw,
            check_size,
            has_identifier,
            verdict,
            IDENTIFIER, //
        }, //
    },
    pure::wire::private_data::{
        parse,
        Offer,
        Parsed, //
    }, //
};

/// Writes as much of a message as fits.
fn put(octets: &mut [u8], offset: usize, message: u64) {
    for (octet, from) in octets[offset..].iter_mut().zip(message.to_be_bytes()) {
        *octet = from;
    }
}

/// RFC 8797, section 4: every Version, flags octet, Send Size and Receive Size. Without FULL=1,
/// only some of each Version other than 1.
#[test]
fn section_4_every_message() {
    for_each_u32(
        |high| high >> 8 != 1,
        |fields| {
            let bits = (0xf6ab_0e18 << 32) | u64::from(fields);
            let octets = bits.to_be_bytes();
            assert_eq!(
                Some(verdict(parse(&octets))),
                oracle::message(0, bits, 8),
                "{octets:02x?}"
            );
        },
    );
}

/// RFC 8797, section 4: every offer, built with the Reserved bits zero.
#[test]
fn section_4_every_offer() {
    for fields in 0..=0x1_ffff_u32 {
        let [_, r, send_size, receive_size] = fields.to_be_bytes();
        let offer = offer(send_size, receive_size, r == 1);
        let octets = offer.to_octets();
        assert_eq!(
            u64::from_be_bytes(octets),
            0xf6ab_0e18_0100_0000 | u64::from(fields)
        );
        assert_eq!(parse(&octets).offer(), offer);

        check_offer(offer);
    }
}

/// RFC 8797, section 4.2: every buffer size. Without FULL=1, only some above 1 MiB.
#[test]
fn section_4_2_every_size() {
    for_each_u32(|high| high >= 1 << 4, check_size);
}

/// RFC 8797, section 5.2: every offset in Private Data of every length, whole and cut by its end.
#[test]
fn section_5_2_every_offset_and_length() {
    // The octets around the message. The last three are the first octets of a Format Identifier.
    for other in [
        &[0x00][..],
        &[0xff],
        &[0x18, 0x01],
        &[0xf6],
        &[0xf6, 0xab],
        &[0xf6, 0xab, 0x0e],
    ] {
        for len in 0..=256 {
            for offset in 0..=len {
                let mut octets: Vec<u8> = other.iter().copied().cycle().take(len).collect();
                put(&mut octets, offset, 0xf6ab_0e18_0101_0307);
                let expected = match len - offset {
                    0..=3 => Verdict::Nothing,
                    available @ 4..=7 => Verdict::Overrun { offset, available },
                    _ => Verdict::Message {
                        offset,
                        reserved: 0,
                        r: true,
                        send_size: 4096,
                        receive_size: 8192,
                    },
                };
                assert_eq!(verdict(parse(&octets)), expected, "{octets:02x?}");
            }
        }
    }
}

/// RFC 8797, section 5.2: two Format Identifiers at all offsets, even where they overlap or are
/// cut. Each can be that of a message, or of another version.
#[test]
fn section_5_2_every_pair() {
    let kinds = [
        0xf6ab_0e18_0101_0307,
        0xf6ab_0e18_0100_0000,
        0xf6ab_0e18_0201_0307,
    ];

    for len in 0..=32 {
        for first in 0..len {
            for second in 0..len {
                for one in kinds {
                    for other in kinds {
                        let mut octets = vec![0; len];
                        put(&mut octets, first, one);
                        put(&mut octets, second, other);
                        let expected = oracle::private_data(&octets);
                        assert_eq!(verdict(parse(&octets)), expected, "{octets:02x?}");
                    }
                }
            }
        }
    }
}

fn offers() -> impl Strategy<Value = Offer> {
    any::<(u8, u8, bool)>()
        .prop_map(|(send_size, receive_size, r)| offer(send_size, receive_size, r))
}

/// Octets, many of which begin or continue a message.
fn octets() -> impl Strategy<Value = Vec<u8>> {
    const MESSAGE: [u8; 8] = [0xf6, 0xab, 0x0e, 0x18, 0x01, 0x01, 0x03, 0x07];

    let piece = prop_oneof![
        any::<u8>().prop_map(|octet| vec![octet]),
        select(&MESSAGE).prop_map(|octet| vec![octet]),
        (1..=MESSAGE.len()).prop_map(|len| MESSAGE[..len].to_vec()),
        any::<u32>().prop_map(|fields| [IDENTIFIER, fields.to_be_bytes()].concat()),
    ];
    vec(piece, 0..=64).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(cases(20_000))]

    /// RFC 8797, section 5.2: a built message is found between any other octets.
    #[test]
    fn section_5_2_embedded(mut before in octets(), offer in offers(), after in octets()) {
        check_embedded(&before, offer, &after);
        // Once more without a Format Identifier in front, which would be a candidate of its own.
        before.retain(|octet| *octet != 0x18);
        check_embedded(&before, offer, &after);
    }

    /// RFC 8797, section 5.2: any octets.
    #[test]
    fn section_5_2_any(octets in octets()) {
        check(&octets);
    }

    /// RFC 8797, section 5.2: the octets of `private=`, and the offer that a peer reads in them.
    #[test]
    fn section_5_2_raw(octets in octets(), can_invalidate in any::<bool>()) {
        check_raw(&octets, can_invalidate);
    }

    /// RFC 8797, section 5.2: without an identifier there is no message.
    #[test]
    fn section_5_2_absent(octets in vec(any::<u8>(), 0..=512)) {
        prop_assert_eq!(parse(&octets) == Parsed::Absent, !has_identifier(&octets));
    }
}
