// SPDX-License-Identifier: GPL-2.0

//! The private data message (RFC 8797, sections 4 to 6).

use core::fmt::Display;

use kernel::prelude::*;

#[kunit_tests(rpcrdma_cm_private_data)]
mod tests {
    use super::*;
    use crate::{
        pure::wire::private_data::{
            parse,
            Offer,
            Offered,
            Parsed,
            PrivateData,
            Rejection,
            Size, //
        },
        rows::{
            check,
            check_display,
            failed, //
        }, //
    };

    /// The meaning of a message, with sizes in octets.
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Message {
        offset: usize,
        version: u8,
        reserved: u8,
        remote_invalidation: bool,
        send_size: u32,
        receive_size: u32,
    }

    /// The message of most rows: R, 4096 octets to send, 8192 to receive.
    const OCTETS: [u8; 8] = *b"\xf6\xab\x0e\x18\x01\x01\x03\x07";

    /// The meaning of [`OCTETS`].
    const MESSAGE: Message = Message {
        offset: 0,
        version: 1,
        reserved: 0,
        remote_invalidation: true,
        send_size: 4096,
        receive_size: 8192,
    };

    fn check_message(row: impl Display, octets: &[u8], expected: Message) -> Result {
        let parsed = parse(octets);
        let Parsed::Present(found) = parsed else {
            return failed(row, format_args!("got {parsed:?}, expected {expected:?}"));
        };
        let offer = parsed.offer();
        let got = Message {
            offset: found.offset,
            version: found.version,
            reserved: found.reserved,
            remote_invalidation: offer.remote_invalidation,
            send_size: offer.send_size.octets(),
            receive_size: offer.receive_size.octets(),
        };
        check(row, got, expected)
    }

    /// Checks the result for octets without a valid message, and that the offer is then the
    /// defaults of RFC 8797, section 5.1.
    fn check_defaults(row: &str, octets: &[u8], expected: Parsed) -> Result {
        let parsed = parse(octets);
        check(row, parsed, expected)?;

        let offer = parsed.offer();
        check(row, offer.remote_invalidation, false)?;
        check(row, offer.send_size.octets(), 1024)?;
        check(row, offer.receive_size.octets(), 1024)
    }

    fn truncated(offset: usize, available: usize) -> Parsed {
        let reason = Rejection::Truncated { available };
        Parsed::Rejected { offset, reason }
    }

    fn version(offset: usize, version: u8) -> Parsed {
        let reason = Rejection::Version(version);
        Parsed::Rejected { offset, reason }
    }

    /// RFC 8797, section 4: the eight octets, built and parsed. "Senders MUST set these bits to
    /// zero", the Reserved ones.
    #[test]
    fn section_4_format() -> Result {
        for (bits, send_size, receive_size, remote_invalidation) in [
            (0xf6ab_0e18_0100_0000_u64, 1024, 1024, false),
            (0xf6ab_0e18_0100_00ff, 1024, 262_144, false),
            (0xf6ab_0e18_0100_ff00, 262_144, 1024, false),
            (0xf6ab_0e18_0100_ffff, 262_144, 262_144, false),
            (0xf6ab_0e18_0101_0000, 1024, 1024, true),
            (0xf6ab_0e18_0101_0307, 4096, 8192, true),
            (0xf6ab_0e18_0101_ffff, 262_144, 262_144, true),
        ] {
            let octets: [u8; 8] = bits.to_be_bytes();
            let offer = Offer {
                send_size: Size::from_octets(send_size).ok_or(EINVAL)?,
                receive_size: Size::from_octets(receive_size).ok_or(EINVAL)?,
                remote_invalidation,
            };
            check(format_args!("{bits:#x}"), offer.to_octets(), octets)?;
            check_message(
                format_args!("{bits:#x}"),
                &octets,
                Message {
                    remote_invalidation,
                    send_size,
                    receive_size,
                    ..MESSAGE
                },
            )?;
        }
        Ok(())
    }

    /// RFC 8797, section 4: the Format Identifier "is always 0xf6ab0e18, in network byte order".
    #[test]
    fn section_4_format_identifier() -> Result {
        for (row, identifier) in [
            ("little endian", 0x180e_abf6_u32),
            ("first octet", 0xf7ab_0e18),
            ("second octet", 0xf6aa_0e18),
            ("third octet", 0xf6ab_0f18),
            ("fourth octet", 0xf6ab_0e19),
        ] {
            let mut octets = OCTETS;
            octets[..4].copy_from_slice(&identifier.to_be_bytes());
            check_defaults(row, &octets, Parsed::Absent)?;
        }
        Ok(())
    }

    /// RFC 8797, section 4: "receivers MUST ignore their value", that of the Reserved bits. They
    /// are kept for display.
    #[test]
    fn section_4_reserved() -> Result {
        for (flags, reserved, remote_invalidation) in [
            (0x00, 0x00, false),
            (0x01, 0x00, true),
            (0x02, 0x02, false),
            (0x03, 0x02, true),
            (0x80, 0x80, false),
            (0x81, 0x80, true),
            (0xfe, 0xfe, false),
            (0xff, 0xfe, true),
        ] {
            let mut octets = OCTETS;
            octets[5] = flags;
            check_message(
                format_args!("{flags:#04x}"),
                &octets,
                Message {
                    reserved,
                    remote_invalidation,
                    ..MESSAGE
                },
            )?;
        }
        Ok(())
    }

    /// RFC 8797, section 4: a message of version 1 has exactly eight octets, so octets behind it
    /// are ignored.
    #[test]
    fn section_4_exactly_eight_octets() -> Result {
        for padding in [0x00, 0xff] {
            let mut octets = [padding; 196];
            octets[..8].copy_from_slice(&OCTETS);
            // With rdma_cm over InfiniBand, a REQ has 56 octets and a REP 196.
            for len in [8, 9, 56, 196] {
                check_message(len, &octets[..len], MESSAGE)?;
            }
        }
        Ok(())
    }

    /// RFC 8797, section 4.1: the place of the R field.
    #[test]
    fn section_4_1_r_field() -> Result {
        for bit in 0..8u8 {
            let octets = [0xf6, 0xab, 0x0e, 0x18, 1, 1 << bit, 0, 0];
            let offer = parse(&octets).offer();
            check(bit, offer.remote_invalidation, bit == 0)?;
        }

        let mut offer = Offer::DEFAULT;
        check("clear", offer.to_octets()[5], 0x00)?;
        offer.remote_invalidation = true;
        check("set", offer.to_octets()[5], 0x01)
    }

    /// RFC 8797, sections 3.2 and 4.1: a message has R set only if the device supports it. Octets
    /// of `private=` are not changed.
    #[test]
    fn section_4_1_device() -> Result {
        let asking = Offered::Message(parse(&OCTETS).offer());
        let raw = Offered::Raw(PrivateData::truncated(&OCTETS));

        for (row, offered, can_invalidate, flags) in [
            ("asked, and can", asking, true, 0x01),
            ("asked, and cannot", asking, false, 0x00),
            ("not asked", Offered::Message(Offer::DEFAULT), true, 0x00),
            ("as it is, and can", raw, true, 0x01),
            ("as it is, and cannot", raw, false, 0x01),
        ] {
            let data = offered.private_data(can_invalidate);
            check(row, data.octets().len(), 8)?;
            check(row, data.octets()[5], flags)?;
        }

        for can_invalidate in [false, true] {
            let data = Offered::None.private_data(can_invalidate);
            check("nothing", data.octets(), &[])?;
        }
        Ok(())
    }

    /// RFC 8797, section 5.2: the offer that a peer reads in the octets that are sent.
    #[test]
    fn section_5_2_own_offer() -> Result {
        let offer = parse(&OCTETS).offer();
        let behind = PrivateData::truncated(b"\x00\xf6\xab\x0e\x18\x01\x01\x03\x07");
        let cut = PrivateData::truncated(&OCTETS[..7]);

        for (row, offered, expected) in [
            ("a message", Offered::Message(offer), offer),
            ("octets that hold one", Offered::Raw(behind), offer),
            ("octets that hold none", Offered::Raw(cut), Offer::DEFAULT),
            ("nothing", Offered::None, Offer::DEFAULT),
        ] {
            check(row, offered.offer(), expected)?;
        }
        Ok(())
    }

    /// The most octets that the kernel's length field can express.
    #[test]
    fn capacity() -> Result {
        for (len, kept) in [
            (0, 0),
            (1, 1),
            (196, 196),
            (255, 255),
            (256, 255),
            (512, 255),
        ] {
            let octets = [0xaa; 512];
            let mut data = PrivateData::truncated(&octets[..len]);
            check(len, data.octets(), &octets[..kept])?;
            check(len, usize::from(data.len()), kept)?;

            check(len, data.push(0xbb).is_some(), kept < 255)?;
            check(len, data.octets().len(), 255.min(kept + 1))?;
            let last = if kept < 255 { 0xbb } else { 0xaa };
            check(len, data.octets().last(), Some(&last))?;
        }
        check("empty", PrivateData::EMPTY.octets(), &[])?;
        check("most", PrivateData::MAX_LEN, 255)
    }

    /// RFC 8797, section 4.2: "dividing its actual buffer size, in octets, by 1024 and subtracting
    /// one from the result".
    #[test]
    fn section_4_2_encode() -> Result {
        for (octets, encoded) in [
            (0, None),
            (1, None),
            (1023, None),
            (1024, Some(0x00)),
            (1025, Some(0x00)),
            (2047, Some(0x00)),
            (2048, Some(0x01)),
            (4096, Some(0x03)),
            (65_536, Some(0x3f)),
            (262_143, Some(0xfe)),
            (262_144, Some(0xff)),
            (262_145, None),
            (263_168, None),
            (u32::MAX, None),
        ] {
            let size = Size::from_octets(octets);
            check(octets, size.map(Size::encoded), encoded)?;
        }
        check("minimum", Size::MIN_OCTETS, 1024)?;
        check("maximum", Size::MAX_OCTETS, 262_144)
    }

    /// RFC 8797, section 4.2: "adds one to the encoded value and then multiplies that result by
    /// 1024".
    #[test]
    fn section_4_2_decode() -> Result {
        for (encoded, octets) in [
            (0x00, 1024),
            (0x01, 2048),
            (0x03, 4096),
            (0x7f, 131_072),
            (0x80, 132_096),
            (0xfe, 261_120),
            (0xff, 262_144),
        ] {
            check(encoded, Size::from_encoded(encoded).octets(), octets)?;
        }
        Ok(())
    }

    /// RFC 8797, section 5.1: octets that do not conform to section 4 count as a message with R
    /// clear and zero in both Size fields.
    #[test]
    fn section_5_1_defaults() -> Result {
        let defaults = 0xf6ab_0e18_0100_0000_u64.to_be_bytes();
        check("defaults", Offer::DEFAULT.to_octets(), defaults)?;

        check_defaults("none", &[], Parsed::Absent)?;
        check_defaults("one octet", &OCTETS[..1], Parsed::Absent)?;
        check_defaults("padding alone", &[0; 56], Parsed::Absent)?;
        check_defaults("all ones", &[0xff; 255], Parsed::Absent)?;
        check_defaults("cut", &OCTETS[..7], truncated(0, 7))?;

        let mut octets = OCTETS;
        octets[4] = 2;
        check_defaults("another version", &octets, version(0, 2))
    }

    /// The draft of version 2, section 2.3: "senders MUST assume a receiver's inline threshold is
    /// 4096 bytes". RFC 8797, section 4.2, has the encoding. The draft says nothing about R.
    #[test]
    fn draft_section_2_3_defaults() -> Result {
        check("size", Size::DEFAULT_TWO.octets(), 4096)?;
        check("encoded", Size::DEFAULT_TWO.encoded(), 0x03)?;
        check("version 1", Size::DEFAULT < Size::DEFAULT_TWO, true)?;

        let defaults = 0xf6ab_0e18_0100_0303_u64.to_be_bytes();
        check("offer", Offer::DEFAULT_TWO.to_octets(), defaults)
    }

    /// The draft of version 2, section 5.1: "both peers use the default inline threshold value for
    /// RPC-over-RDMA Version Two connections (4096 bytes)", if there is no valid message. A valid
    /// message counts in both versions, also with smaller sizes.
    #[test]
    fn draft_section_5_1_defaults() -> Result {
        let least = b"\xf6\xab\x0e\x18\x01\x00\x00\x00";
        let version = b"\xf6\xab\x0e\x18\x02\x01\x07\x07";
        let behind = b"\x00\xf6\xab\x0e\x18\x01\x01\x03\x07";

        // Send Size, Receive Size and R, in version 1 and in version 2.
        let one = (1024, 1024, false);
        let two = (4096, 4096, false);
        let said = (4096, 8192, true);
        for (row, octets, in_one, in_two) in [
            ("none", &[][..], one, two),
            ("padding alone", &[0; 56], one, two),
            ("cut", &OCTETS[..7], one, two),
            ("another version", version, one, two),
            ("a message", &OCTETS, said, said),
            ("behind an octet", behind, said, said),
            ("the least", least, one, one),
        ] {
            let parsed = parse(octets);
            for (default, expected) in [(Offer::DEFAULT, in_one), (Offer::DEFAULT_TWO, in_two)] {
                let offer = parsed.offer_or(default);
                let got = (
                    offer.send_size.octets(),
                    offer.receive_size.octets(),
                    offer.remote_invalidation,
                );
                check(row, got, expected)?;
            }
            check(row, parsed.offer(), parsed.offer_or(Offer::DEFAULT))?;
        }
        Ok(())
    }

    /// RFC 8797, section 5.2: "The offset of the Format Identifier is not restricted to any
    /// alignment."
    #[test]
    fn section_5_2_any_offset() -> Result {
        // The last three are the first octets of a Format Identifier.
        for before in [&b""[..], b"\xff", b"\xf6", b"\xf6\xab", b"\xf6\xab\x0e"] {
            for offset in before.len()..=188 {
                let mut octets = [0; 196];
                octets[offset - before.len()..offset].copy_from_slice(before);
                octets[offset..offset + 8].copy_from_slice(&OCTETS);
                check_message(offset, &octets, Message { offset, ..MESSAGE })?;
            }
        }

        // The enhanced RDMA connection establishment data of RFC 6581, section 9.
        let behind_mpa = b"\x80\x10\x80\x10\xf6\xab\x0e\x18\x01\x01\x03\x07";
        let offset = 4;
        check_message("MPA", behind_mpa, Message { offset, ..MESSAGE })
    }

    /// RFC 8797, section 5.2: "the size of the content does not overrun the length of the buffer".
    #[test]
    fn section_5_2_overrun() -> Result {
        for offset in 0..=188 {
            let mut octets = [0; 196];
            octets[offset..offset + 8].copy_from_slice(&OCTETS);

            for len in 0..=3 {
                let cut = &octets[..offset + len];
                check_defaults("no whole identifier", cut, Parsed::Absent)?;
            }
            for len in 4..=7 {
                let cut = &octets[..offset + len];
                check_defaults("no whole message", cut, truncated(offset, len))?;
            }
            let whole = &octets[..offset + 8];
            check_message(offset, whole, Message { offset, ..MESSAGE })?;
        }

        // A receiver of version 1 does not know the length of another version's message.
        let cut = b"\xf6\xab\x0e\x18\x02";
        check_defaults("cut, and another version", cut, truncated(0, 5))
    }

    /// RFC 8797, section 5.2: "a valid and recognized version number".
    #[test]
    fn section_5_2_version() -> Result {
        for number in 0..=255 {
            let mut octets = OCTETS;
            octets[4] = number;
            if number == 1 {
                check_message(number, &octets, MESSAGE)?;
            } else {
                check_defaults("another version", &octets, version(0, number))?;
            }
        }
        Ok(())
    }

    /// RFC 8797, sections 5.2 and 7: the Format Identifier may occur by chance, which must not
    /// hide the message behind it.
    #[test]
    fn section_5_2_several_identifiers() -> Result {
        for (octets, offset) in [
            // Behind a message of another version, and inside of one.
            (0xf6ab_0e18_0201_0307_f6ab_0e18_0101_0307_u128, 8),
            (0xf6ab_0e18_00f6_ab0e_1801_0103_0700_0000, 5),
            // Behind an identifier alone.
            (0xf6ab_0e18_f6ab_0e18_0101_0307_0000_0000, 4),
            // In front of another message, of one of another version, and of a truncated one.
            (0xf6ab_0e18_0101_0307_f6ab_0e18_0100_0000, 0),
            (0xf6ab_0e18_0101_0307_f6ab_0e18_0201_0307, 0),
            (0x0000_f6ab_0e18_0101_0307_f6ab_0e18_0101, 2),
        ] {
            check_message(
                format_args!("{octets:#x}"),
                &octets.to_be_bytes(),
                Message { offset, ..MESSAGE },
            )?;
        }

        // Without a message, the first identifier is the one to report.
        let octets = 0xf6ab_0e18_0200_0000_f6ab_0e18_0300_0000_u128.to_be_bytes();
        check_defaults("two versions", &octets, version(0, 2))?;
        let octets = 0x00f6_ab0e_1802_0000_0000_f6ab_0e18_0101_u128.to_be_bytes();
        check_defaults("a version, a cut one", &octets, version(1, 2))
    }

    /// RFC 8797, section 6: other formats, as a receiver sees them that knows only version 1.
    #[test]
    fn section_6_other_formats() -> Result {
        let octets = b"\xf6\xab\x0e\x1a\x01\x01\x03\x07";
        check_defaults("another identifier", octets, Parsed::Absent)?;

        let octets = b"\xf6\xab\x0e\x18\x02\x01\x03\x07\x00\x10";
        check_defaults("a version with more fields", octets, version(0, 2))?;

        let octets = b"\xf6\xab\x0e\x18\x01\x01\x03\x07\x00\x10";
        check_message("a field at octet eight", octets, MESSAGE)?;

        let octets = b"\xf6\xab\x0e\x18\x01\x03\x03\x07";
        let reserved = 0x02;
        check_message(
            "a Reserved bit",
            octets,
            Message {
                reserved,
                ..MESSAGE
            },
        )
    }

    /// RFC 8797, section 5.2: the reason of a rejection, as `info` shows it.
    #[test]
    fn section_5_2_reasons() -> Result {
        let reason = Rejection::Version(2);
        check_display("version", reason, "unrecognized version 2")?;
        let reason = Rejection::Truncated { available: 5 };
        check_display("truncated", reason, "truncated, 5 of 8 octets")
    }
}
