// SPDX-License-Identifier: GPL-2.0

//! KUnit tests of the files of `rpcrdma_cm` that know no kernel.
//!
//! A test is named after the section whose rules its rows hold, of RFC 8797 if its suite does not
//! say another document, and what its rows expect is written out from there, not computed. A row
//! that fails is named in the kernel log.

#![crate_name = "rpcrdma_cm_tests"]

use core::fmt::{
    Debug,
    Display, //
};

use kernel::{
    prelude::*,
    str::CString, //
};

#[path = "../src/protocol.rs"]
mod protocol;

use protocol::xdr::NoRoom;

#[cfg(not(CONFIG_KUNIT = "y"))]
compile_error!("without CONFIG_KUNIT=y, #[kunit_tests] leaves every test out");

module! {
    type: RpcrdmaCmKunit,
    name: "rpcrdma_cm_kunit",
    authors: ["The rpcrdma_cm developers"],
    description: "KUnit tests of rpcrdma_cm",
    license: "GPL",
}

struct RpcrdmaCmKunit;

impl kernel::Module for RpcrdmaCmKunit {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        Ok(Self)
    }
}

/// Compares one row of a table.
///
/// An assertion would name the line, which the rows share.
fn check<T: Debug + PartialEq>(row: impl Display, got: T, expected: T) -> Result {
    if got == expected {
        return Ok(());
    }
    failed(row, format_args!("got {got:?}, expected {expected:?}"))
}

/// Compares what one row of a table displays.
fn check_display(row: impl Display, shown: impl Display, expected: &str) -> Result {
    let shown = CString::try_from_fmt(format_args!("{shown}"))?;
    check(row, shown.to_str()?, expected)
}

fn failed(row: impl Display, why: impl Display) -> Result {
    pr_err!("{}\n", format_args!("{row}: {why}"));
    Err(EINVAL)
}

/// The XID of most messages.
const X: u32 = 0x1122_3344;

/// A message, written down as RFC 8166, section 4.7, does: its words in hex, X for [`X`], `/`
/// between parts of a header, and `|` behind the header.
struct Octets {
    octets: [u8; 256],
    len: usize,
    /// How many are before the `|`.
    head: usize,
}

impl Octets {
    fn new(words: &str) -> Result<Self> {
        let (mut octets, mut len, mut head) = ([0; 256], 0, None);
        for word in words.split_ascii_whitespace() {
            let word = match word {
                "/" => continue,
                "|" => {
                    head = Some(len);
                    continue;
                }
                "X" => X,
                _ => u32::from_str_radix(word, 16).map_err(|_| EINVAL)?,
            };
            octets[len..len + 4].copy_from_slice(&word.to_be_bytes());
            len += 4;
        }
        let head = head.unwrap_or(len);
        Ok(Self { octets, len, head })
    }

    fn all(&self) -> &[u8] {
        &self.octets[..self.len]
    }
}

/// Checks what is built, and for which buffers that is too much.
fn check_built(
    row: &str,
    expected: &[u8],
    build: impl Fn(&mut [u8]) -> Result<usize, NoRoom>,
) -> Result {
    let needed = expected.len();
    let mut buffer = [0xff; 256];
    for available in 0..needed {
        let no_room = NoRoom { needed, available };
        check(row, build(&mut buffer[..available]), Err(no_room))?;
    }
    check(row, build(&mut buffer), Ok(needed))?;
    check(row, &buffer[..needed], expected)?;
    check(row, buffer[needed], 0xff)
}

#[kunit_tests(rpcrdma_cm_private_data)]
mod private_data {
    use super::{
        protocol::private_data::{
            parse,
            Offer,
            Offered,
            Parsed,
            PrivateData,
            Rejection,
            Size, //
        },
        *, //
    };

    /// A message as the RFC describes it, sizes in octets.
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Message {
        offset: usize,
        version: u8,
        reserved: u8,
        remote_invalidation: bool,
        send_size: u32,
        receive_size: u32,
    }

    /// What most rows hold: R, 4096 octets to send, 8192 to receive.
    const OCTETS: [u8; 8] = *b"\xf6\xab\x0e\x18\x01\x01\x03\x07";

    /// [`OCTETS`] as the RFC describes them.
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

    /// Checks what does not conform, and that it counts as the defaults of RFC 8797, section 5.1.
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

    /// RFC 8797, section 4: version 1 is exactly eight octets, so what is behind them is not its
    /// concern.
    #[test]
    fn section_4_exactly_eight_octets() -> Result {
        for padding in [0x00, 0xff] {
            let mut octets = [padding; 196];
            octets[..8].copy_from_slice(&OCTETS);
            // Of RDMA_CM over InfiniBand, a request has 56 octets and a reply 196.
            for len in [8, 9, 56, 196] {
                check_message(len, &octets[..len], MESSAGE)?;
            }
        }
        Ok(())
    }

    /// RFC 8797, section 4.1: where the R field is.
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

    /// RFC 8797, sections 3.2 and 4.1: a message says R only where the device can do it. What is to
    /// be sent as it is stays as it is.
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

    /// RFC 8797, section 5.2: what a peer reads in what is sent, a message or not.
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

    /// How many octets there can be, as far as the kernel counts them.
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

    /// RFC 8797, section 5.1: what does not conform to section 4 counts as a message with R clear
    /// and zero in both Size fields.
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
    /// 4096 bytes"; as RFC 8797, section 4.2, encodes it. Nothing there is about the R field.
    #[test]
    fn draft_section_2_3_defaults() -> Result {
        check("size", Size::DEFAULT_TWO.octets(), 4096)?;
        check("encoded", Size::DEFAULT_TWO.encoded(), 0x03)?;
        check("version 1", Size::DEFAULT < Size::DEFAULT_TWO, true)?;

        let defaults = 0xf6ab_0e18_0100_0303_u64.to_be_bytes();
        check("offer", Offer::DEFAULT_TWO.to_octets(), defaults)
    }

    /// The draft of version 2, section 5.1: "both peers use the default inline threshold value for
    /// RPC-over-RDMA Version Two connections (4096 bytes)", where there is nothing valid. A valid
    /// message counts in both versions, also if it says less.
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
        // The last three are a beginning of the Format Identifier each.
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

        // Of how many octets another version has, this one's receiver knows nothing.
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
            // Behind another version's, and inside one.
            (0xf6ab_0e18_0201_0307_f6ab_0e18_0101_0307_u128, 8),
            (0xf6ab_0e18_00f6_ab0e_1801_0103_0700_0000, 5),
            // Behind an identifier alone.
            (0xf6ab_0e18_f6ab_0e18_0101_0307_0000_0000, 4),
            // Before another message, another version's and a cut one.
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

    /// RFC 8797, section 6: what the formats that may come look like to a receiver that knows only
    /// version 1.
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

    /// RFC 8797, section 5.2: why a message was rejected, in the words that `info` shows.
    #[test]
    fn section_5_2_reasons() -> Result {
        let reason = Rejection::Version(2);
        check_display("version", reason, "unrecognized version 2")?;
        let reason = Rejection::Truncated { available: 5 };
        check_display("truncated", reason, "truncated, 5 of 8 octets")
    }
}

#[kunit_tests(rpcrdma_cm_negotiation)]
mod negotiating {
    use super::{
        protocol::{
            negotiation::{
                negotiate,
                Deviation,
                InUse,
                Negotiated,
                Role, //
            },
            private_data::{
                Offer,
                Size, //
            }, //
        },
        *, //
    };

    /// An offer with the values of the Size fields (RFC 8797, section 4.2).
    fn offer(send_size: u8, receive_size: u8, remote_invalidation: bool) -> Offer {
        Offer {
            send_size: Size::from_encoded(send_size),
            receive_size: Size::from_encoded(receive_size),
            remote_invalidation,
        }
    }

    /// Thresholds that differ, without remote invalidation.
    const NEGOTIATED: Negotiated = Negotiated {
        client_to_server_threshold: 4096,
        server_to_client_threshold: 2048,
        remote_invalidation: false,
    };

    /// Checks where `in_use` departs from [`NEGOTIATED`].
    fn check_deviations(
        row: impl Display,
        role: Role,
        in_use: InUse,
        expected: &[Deviation],
    ) -> Result {
        let mut found = KVec::new();
        for deviation in NEGOTIATED.deviations(role, &in_use) {
            found.push(deviation, GFP_KERNEL)?;
        }
        check(row, &*found, expected)
    }

    /// RFC 8797, section 4.2: each side sends up to the threshold and receives up to the other.
    /// What is not known, or is less than allowed, is no departure.
    #[test]
    fn section_4_2_deviations() -> Result {
        let in_use = |inline_send, inline_receive| InUse {
            inline_send,
            inline_receive,
            remote_invalidation: None,
        };
        let send = |in_use, threshold| Deviation::InlineSend { in_use, threshold };
        let receive = |in_use, threshold| Deviation::InlineReceive { in_use, threshold };

        for (role, inline_send, inline_receive, expected) in [
            (Role::Client, None, None, &[][..]),
            (Role::Client, Some(4096), Some(2048), &[]),
            (Role::Client, Some(4095), Some(2048), &[]),
            (Role::Client, Some(4097), Some(2048), &[send(4097, 4096)]),
            (Role::Client, Some(4096), Some(2047), &[receive(2047, 2048)]),
            (Role::Client, Some(4096), Some(2049), &[receive(2049, 2048)]),
            (Role::Server, Some(2048), Some(4096), &[]),
            (Role::Server, Some(1024), Some(4096), &[]),
            (Role::Server, Some(2049), Some(4096), &[send(2049, 2048)]),
            // A server may be ready for more than the client can send.
            (Role::Server, Some(2048), Some(8192), &[]),
            (Role::Server, Some(2048), Some(4095), &[receive(4095, 4096)]),
            (
                Role::Server,
                Some(8192),
                Some(1024),
                &[send(8192, 2048), receive(1024, 4096)],
            ),
        ] {
            check_deviations(
                format_args!("{role} {inline_send:?} {inline_receive:?}"),
                role,
                in_use(inline_send, inline_receive),
                expected,
            )?;
        }
        Ok(())
    }

    /// RFC 8797, section 4.1: the responder "MUST use only RDMA Send" where either side clears R,
    /// and "MAY" invalidate where both set it.
    #[test]
    fn section_4_1_deviations() -> Result {
        for (negotiated, in_use, expected) in [
            (false, None, None),
            (false, Some(false), None),
            (false, Some(true), Some(Deviation::RemoteInvalidation)),
            (true, Some(false), None),
            (true, Some(true), None),
        ] {
            let in_use = InUse {
                remote_invalidation: in_use,
                ..InUse::default()
            };
            let negotiated = Negotiated {
                remote_invalidation: negotiated,
                ..NEGOTIATED
            };
            check(
                format_args!("{negotiated:?} {in_use:?}"),
                negotiated.deviations(Role::Server, &in_use).next(),
                expected,
            )?;
        }
        Ok(())
    }

    /// The words that `info` shows.
    #[test]
    fn deviations_in_words() -> Result {
        let send = Deviation::InlineSend {
            in_use: 4096,
            threshold: 1024,
        };
        check_display(
            "send",
            send,
            "may send 4096 octets inline, where the threshold is 1024 (RFC 8797, section 4.2)",
        )?;
        let receive = Deviation::InlineReceive {
            in_use: 1024,
            threshold: 4096,
        };
        check_display(
            "receive",
            receive,
            "expects up to 1024 octets inline, where the threshold is 4096 (RFC 8797, section 4.2)",
        )?;
        check_display(
            "remote invalidation",
            Deviation::RemoteInvalidation,
            "uses RDMA Send with Invalidate, although not both sides support remote invalidation \
             (RFC 8797, section 4.1)",
        )
    }

    /// Checks what each side makes of the two offers.
    fn check_both(
        row: impl Display + Copy,
        client: Offer,
        server: Offer,
        expected: Negotiated,
    ) -> Result {
        check(row, negotiate(Role::Client, client, server), expected)?;
        check(row, negotiate(Role::Server, server, client), expected)
    }

    /// RFC 8797, section 4.1: "When both connection peers have set this bit flag"; "When either
    /// peer on a connection clears this flag, the responder MUST use only RDMA Send".
    #[test]
    fn section_4_1_remote_invalidation() -> Result {
        for (row, client, server, remote_invalidation) in [
            ("neither", false, false, false),
            ("the client", true, false, false),
            ("the server", false, true, false),
            ("both", true, true, true),
        ] {
            check_both(
                row,
                offer(0, 0, client),
                offer(0, 0, server),
                Negotiated {
                    client_to_server_threshold: 1024,
                    server_to_client_threshold: 1024,
                    remote_invalidation,
                },
            )?;
        }
        Ok(())
    }

    /// RFC 8797, section 4.2: a threshold is "the smaller of its own send size and the server's
    /// reported receive size", and the other way round.
    #[test]
    fn section_4_2_thresholds() -> Result {
        // Each side's Send Size and Receive Size; client-to-server, server-to-client in octets.
        for (row, client, server, to_server, to_client) in [
            ("least", (0, 0), (0, 0), 1024, 1024),
            ("most", (255, 255), (255, 255), 262_144, 262_144),
            ("client sends least", (0, 255), (255, 255), 1024, 262_144),
            ("client takes least", (255, 0), (255, 255), 262_144, 1024),
            ("server sends least", (255, 255), (0, 255), 262_144, 1024),
            ("server takes least", (255, 255), (255, 0), 1024, 262_144),
            ("senders decide", (1, 15), (7, 3), 2048, 8192),
            ("receivers decide", (3, 7), (15, 1), 2048, 8192),
        ] {
            check_both(
                row,
                offer(client.0, client.1, false),
                offer(server.0, server.1, false),
                Negotiated {
                    client_to_server_threshold: to_server,
                    server_to_client_threshold: to_client,
                    remote_invalidation: false,
                },
            )?;
        }
        Ok(())
    }

    /// RFC 8797, section 5.1: what holds with a peer that sent nothing valid.
    #[test]
    fn section_5_1_defaults() -> Result {
        let defaults = Negotiated {
            client_to_server_threshold: 1024,
            server_to_client_threshold: 1024,
            remote_invalidation: false,
        };
        let most = offer(255, 255, true);
        check_both("server", most, Offer::DEFAULT, defaults)?;
        check_both("client", Offer::DEFAULT, most, defaults)
    }

    /// The draft of version 2, sections 2.3 and 5.1: what holds in version 2 where both sides, or
    /// one of them, said nothing valid.
    #[test]
    fn draft_section_5_1_defaults() -> Result {
        // What the other side says; client-to-server, server-to-client in octets.
        let absent = Offer::DEFAULT_TWO;
        for (row, said, to_absent, from_absent) in [
            ("both", absent, 4096, 4096),
            ("least", offer(0, 0, true), 1024, 1024),
            ("less", offer(1, 2, true), 2048, 3072),
            ("as much", offer(3, 3, true), 4096, 4096),
            ("more", offer(4, 7, true), 4096, 4096),
            ("most", offer(255, 255, true), 4096, 4096),
            ("sends more", offer(255, 0, true), 4096, 1024),
            ("takes more", offer(0, 255, true), 1024, 4096),
        ] {
            let expected = Negotiated {
                client_to_server_threshold: to_absent,
                server_to_client_threshold: from_absent,
                remote_invalidation: false,
            };
            check_both(format_args!("server: {row}"), said, absent, expected)?;

            let expected = Negotiated {
                client_to_server_threshold: from_absent,
                server_to_client_threshold: to_absent,
                remote_invalidation: false,
            };
            check_both(format_args!("client: {row}"), absent, said, expected)?;
        }
        Ok(())
    }

    /// RFC 8797, section 4: the sides, in the words that `info` shows.
    #[test]
    fn section_4_roles() -> Result {
        check_display("client", Role::Client, "client")?;
        check_display("server", Role::Server, "server")?;

        // In a column of `connections`.
        let padded = CString::try_from_fmt(format_args!("{:8}|", Role::Client))?;
        check("padded", padded.to_str()?, "client  |")
    }
}

/// RFC 8166, and the draft of version 2: draft-cel-nfsv4-rpcrdma-version-two-01.
#[kunit_tests(rpcrdma_cm_header)]
mod headers {
    use super::{
        protocol::header::{
            chunks::{
                ChunkLists,
                List,
                ReadSegment,
                Segment,
                WriteChunk, //
            },
            error::{
                Error,
                Malformed,
                Part,
                Reason, //
            },
            parse,
            Body,
            Direction,
            Fixed,
            Header,
            Version,
            Versions, //
        },
        *, //
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

    /// Checks what a message means, and that its header is built from that and as long.
    fn check_header(words: &str, expected: Header<'_>) -> Result {
        let octets = Octets::new(words)?;
        let (head, payload) = octets.all().split_at(octets.head);
        check(words, parse(octets.all()), Ok((expected, payload)))?;

        check(words, expected.len(), head.len())?;
        check_built(words, head, |buffer| expected.build(buffer))
    }

    /// Checks why a message is none, also in words, and what a responder that grants 7 and speaks
    /// all versions answers.
    fn check_error(words: &str, expected: Error, shown: &str, answer: Option<&str>) -> Result {
        let octets = Octets::new(words)?;
        check(words, parse(octets.all()), Err(expected))?;
        check_display(words, expected, shown)?;

        match (expected.answer(7, Versions::ALL), answer) {
            (Some(header), Some(answer)) => check_header(answer, header),
            (header, answer) => check(words, header.is_some(), answer.is_some()),
        }
    }

    /// Checks why a message of a known version is none.
    fn check_malformed(
        words: &str,
        part: Part,
        at: usize,
        reason: Reason,
        shown: &str,
        answer: Option<&str>,
    ) -> Result {
        let octets = Octets::new(words)?;
        let word = |at| match octets.all()[at..] {
            [a, b, c, d, ..] => u32::from_be_bytes([a, b, c, d]),
            _ => 0,
        };
        let fixed = Fixed {
            xid: word(0),
            vers: word(4),
            credit: word(8),
            proc: word(12),
        };
        let malformed = Malformed { part, at, reason };
        check_error(words, Error::Malformed(fixed, malformed), shown, answer)
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
            // What follows nevertheless is not the header's.
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

    /// RFC 8166, section 4.5: "not as long as a minimal size RPC-over-RDMA header (28 bytes)".
    #[test]
    fn rfc_8166_section_4_5_short() -> Result {
        for words in [
            "X 1 20 0 / 0 0 0",
            "X 1 20 1 / 0 0 0",
            "X 1 20 2 / 0 0 0",
            "X 1 20 3 / 0 0 0",
            "X 1 20 5 / 0 0 0",
            "X 2 20 0 / 0 0 0",
            "X 2 20 5 / 0 0 0",
            "X 3 20 0 / 0 0 0",
        ] {
            let octets = Octets::new(words)?;
            for length in 0..28 {
                let short = Error::Short { length };
                check(words, parse(&octets.all()[..length]), Err(short))?;
            }
        }
        let length = 27;
        let short = Error::Short { length };
        check("answer", short.answer(7, Versions::ALL), None)?;
        check_display("words", short, "27 octets, fewer than any header has")
    }

    /// RFC 8166, section 4.5.1: a responder "MUST reply with an RDMA_ERROR procedure and set the
    /// rdma_err value to ERR_VERS"; section 4.5: with the same XID and version.
    #[test]
    fn rfc_8166_section_4_5_1_version() -> Result {
        for vers in [0, 3, 0x100, 0x0100_0000, u32::MAX] {
            for proc in [0, 1, 2, 3, 5, 6, u32::MAX] {
                let words = CString::try_from_fmt(format_args!("X {vers:x} 20 {proc:x} / 9 9 9"))?;
                let fixed = Fixed {
                    xid: X,
                    vers,
                    credit: 0x20,
                    proc,
                };
                let shown = CString::try_from_fmt(format_args!("unknown version {vers}"))?;
                let answer = CString::try_from_fmt(format_args!("X {vers:x} 7 4 / 1 1 2"))?;
                check_error(
                    words.to_str()?,
                    Error::Version(fixed),
                    shown.to_str()?,
                    Some(answer.to_str()?),
                )?;
            }
        }
        Ok(())
    }

    /// RFC 8166, section 4.5.1: "also providing the low and high inclusive version numbers it does,
    /// in fact, support". What it does not support, it cannot find fault with.
    #[test]
    fn rfc_8166_section_4_5_1_range() -> Result {
        // What responders answer that speak 1, 2, and both.
        for (words, answers) in [
            ("X 1 20 0 / 0 0 0 | X", ["", "X 1 7 4 / 1 2 2", ""]),
            ("X 1 20 1 / 0 0 / 1 0", ["", "X 1 7 4 / 1 2 2", ""]),
            ("X 2 20 0 / 0 / 0 0 0 | X 0", ["X 2 7 4 / 1 1 1", "", ""]),
            ("X 2 20 0 / 1 / 0 0 0 | X 1", ["X 2 7 4 / 1 1 1", "", ""]),
            ("X 2 20 1 / 0 / 0 0 / 1 0", ["X 2 7 4 / 1 1 1", "", ""]),
            ("X 2 20 5 / 0 0 0", ["X 2 7 4 / 1 1 1", "", ""]),
            (
                "X 3 20 0 / 0 0 0",
                ["X 3 7 4 / 1 1 1", "X 3 7 4 / 1 2 2", "X 3 7 4 / 1 1 2"],
            ),
            (
                "X 0 20 3 / 0 0 0",
                ["X 0 7 4 / 1 1 1", "X 0 7 4 / 1 2 2", "X 0 7 4 / 1 1 2"],
            ),
            // Malformed, in the eyes of those who know.
            (
                "X 1 20 0 / 2 0 0",
                ["X 1 7 4 / 2", "X 1 7 4 / 1 2 2", "X 1 7 4 / 2"],
            ),
            (
                "X 1 20 2 / 0 0 0",
                ["X 1 7 4 / 2", "X 1 7 4 / 1 2 2", "X 1 7 4 / 2"],
            ),
            ("X 1 20 3 / 0 0 0", ["", "X 1 7 4 / 1 2 2", ""]),
            (
                "X 2 20 0 / 0 0 0",
                ["X 2 7 4 / 1 1 1", "X 2 7 4 / 2", "X 2 7 4 / 2"],
            ),
            (
                "X 2 20 3 / 0 0 0",
                ["X 2 7 4 / 1 1 1", "X 2 7 4 / 2", "X 2 7 4 / 2"],
            ),
            // Section 4.5: too short; section 4.2.4: errors, whatever they are.
            ("X 1 20 0 / 0 0", ["", "", ""]),
            ("X 2 20 0 / 0 0", ["", "", ""]),
            ("X 1 20 4 / 1 1 1", ["", "", ""]),
            ("X 2 20 4 / 1 1 1", ["", "", ""]),
            ("X 3 20 4 / 1 1 1", ["", "", ""]),
            ("X 1 20 4 / 2", ["", "", ""]),
            ("X 2 20 4 / 2", ["", "", ""]),
            ("X 2 20 4 / 3", ["", "", ""]),
            ("X 1 20 4 / 9", ["", "", ""]),
            ("X 2 20 4", ["", "", ""]),
        ] {
            let octets = Octets::new(words)?;
            let spoken = [Versions::only(1), Versions::only(2), Versions::ALL];
            for (versions, answer) in spoken.into_iter().zip(answers) {
                let header = match parse(octets.all()) {
                    Ok((header, _)) => header.version_error(7, versions),
                    Err(error) => error.answer(7, versions),
                };
                match header {
                    Some(header) => check_header(answer, header)?,
                    None => check(words, "", answer)?,
                }
            }
        }
        Ok(())
    }

    /// RFC 8166, section 4.2.2: where a header says its version.
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
            // There are none in these.
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

    /// RFC 8166, section 4.5.2: "the Responder MUST reply with an RDMA_ERROR procedure and set the
    /// rdma_err value to ERR_CHUNK".
    #[test]
    fn rfc_8166_section_4_5_2_xdr_errors() -> Result {
        for (words, part, at, reason, shown) in [
            // "an invalid value in the rdma_proc field"
            (
                "X 1 20 5 / 0 0 0",
                Part::Proc,
                12,
                Reason::Value(5),
                "rdma_proc at octet 12: illegal value 5",
            ),
            (
                "X 1 20 ffffffff / 0 0 0",
                Part::Proc,
                12,
                Reason::Value(0xffff_ffff),
                "rdma_proc at octet 12: illegal value 4294967295",
            ),
            // "an RDMA_NOMSG message where the Read list, Write list, and Reply chunk are marked
            // not present"
            (
                "X 1 20 1 / 0 0 0",
                Part::Proc,
                12,
                Reason::NoChunk,
                "rdma_proc at octet 12: RDMA_NOMSG without a chunk",
            ),
            // "the value of the rdma_xid field does not match the value of the XID field in the
            // accompanying RPC message"
            (
                "X 1 20 0 / 0 0 0 | 11223345",
                Part::Payload,
                28,
                Reason::Xid(0x1122_3345),
                "Payload stream at octet 28: XID 0x11223345 is not the header's",
            ),
            (
                "X 1 20 0 / 0 0 0 |",
                Part::Payload,
                28,
                Reason::Truncated,
                "Payload stream at octet 28: truncated",
            ),
            // Section 3.4.5: a Position "MUST be a multiple of four".
            (
                "X 1 20 0 / 1 29 a1 0 0 0 0 / 0 0 | X",
                Part::ReadList,
                20,
                Reason::Position(41),
                "Read list at octet 20: Position 41 is not a multiple of four",
            ),
            (
                "X 1 20 1 / 1 0 0 0 0 0 1 ffffffff 0 0 0 0 0 / 0 0",
                Part::ReadList,
                44,
                Reason::Position(0xffff_ffff),
                "Read list at octet 44: Position 4294967295 is not a multiple of four",
            ),
            // RFC 4506, section 4.19: optional-data is there, 1, or not, 0.
            (
                "X 1 20 0 / 2 / 0 0 | X",
                Part::ReadList,
                16,
                Reason::Value(2),
                "Read list at octet 16: illegal value 2",
            ),
            (
                "X 1 20 0 / 1 0 0 0 0 0 ffffffff / 0 0 | X",
                Part::ReadList,
                40,
                Reason::Value(0xffff_ffff),
                "Read list at octet 40: illegal value 4294967295",
            ),
            (
                "X 1 20 0 / 0 / 2 / 0 | X",
                Part::WriteList,
                20,
                Reason::Value(2),
                "Write list at octet 20: illegal value 2",
            ),
            (
                "X 1 20 0 / 0 / 1 0 3 / 0 | X",
                Part::WriteList,
                28,
                Reason::Value(3),
                "Write list at octet 28: illegal value 3",
            ),
            (
                "X 1 20 0 / 0 0 / 1000000 | X",
                Part::ReplyChunk,
                24,
                Reason::Value(0x0100_0000),
                "Reply chunk at octet 24: illegal value 16777216",
            ),
            // RFC 4506, section 4.13: as many elements as the count says.
            (
                "X 1 20 0 / 0 / 1 2 a1 0 0 0 b2 0 0",
                Part::WriteList,
                24,
                Reason::Count(2),
                "Write list at octet 24: a count of 2 is more than there is",
            ),
            (
                "X 1 20 0 / 0 / 1 10000000 0 0",
                Part::WriteList,
                24,
                Reason::Count(0x1000_0000),
                "Write list at octet 24: a count of 268435456 is more than there is",
            ),
            (
                "X 1 20 0 / 0 0 / 1 ffffffff",
                Part::ReplyChunk,
                28,
                Reason::Count(0xffff_ffff),
                "Reply chunk at octet 28: a count of 4294967295 is more than there is",
            ),
            // What is not there.
            (
                "X 1 20 0 / 1 28 a1",
                Part::ReadList,
                28,
                Reason::Truncated,
                "Read list at octet 28: truncated",
            ),
            (
                "X 1 20 0 / 1 28 a1 0 0 0",
                Part::ReadList,
                40,
                Reason::Truncated,
                "Read list at octet 40: truncated",
            ),
            (
                "X 1 20 0 / 0 / 1 0",
                Part::WriteList,
                28,
                Reason::Truncated,
                "Write list at octet 28: truncated",
            ),
            (
                "X 1 20 0 / 0 0 / 1",
                Part::ReplyChunk,
                28,
                Reason::Truncated,
                "Reply chunk at octet 28: truncated",
            ),
        ] {
            check_malformed(words, part, at, reason, shown, Some("X 1 7 4 / 2"))?;
        }
        Ok(())
    }

    /// RFC 8166, section 4.5: "A receiver MUST silently discard an RDMA_ERROR procedure that it
    /// cannot decode"; section 4.2.4: a responder discards all of them.
    #[test]
    fn rfc_8166_section_4_5_undecodable() -> Result {
        let value = Reason::Value;
        for (words, at, reason, shown) in [
            ("X 1 20 4", 16, Reason::Truncated, "16: truncated"),
            ("X 1 20 4 / 0 1 1", 16, value(0), "16: illegal value 0"),
            ("X 1 20 4 / 3 1 1", 16, value(3), "16: illegal value 3"),
            ("X 2 20 4 / 4 1 1", 16, value(4), "16: illegal value 4"),
            // Of other versions, ERR_VERS is all that is known.
            ("X 0 20 4 / 2", 16, value(2), "16: illegal value 2"),
            ("X 3 20 4 / 2 1 1", 16, value(2), "16: illegal value 2"),
            ("X 1 20 4 / 1", 20, Reason::Truncated, "20: truncated"),
            ("X 2 20 4 / 1 1", 24, Reason::Truncated, "24: truncated"),
        ] {
            let shown = CString::try_from_fmt(format_args!("rdma_error at octet {shown}"))?;
            check_malformed(words, Part::Err, at, reason, shown.to_str()?, None)?;
        }
        Ok(())
    }

    /// RFC 8166, section 4.6: "Responders SHOULD reply with an RDMA_ERROR procedure, setting the
    /// rdma_err field to ERR_CHUNK", and "Receivers MUST silently discard RDMA_DONE messages".
    #[test]
    fn rfc_8166_section_4_6_no_longer_supported() -> Result {
        check_malformed(
            // With rdma_align and rdma_thresh.
            "X 1 20 2 / 0 0 / 0 0 0 | X",
            Part::Proc,
            12,
            Reason::Msgp,
            "rdma_proc at octet 12: RDMA_MSGP is not to be used",
            Some("X 1 7 4 / 2"),
        )?;
        check_malformed(
            "X 1 20 3 / 0 0 0",
            Part::Proc,
            12,
            Reason::Done,
            "rdma_proc at octet 12: RDMA_DONE is not to be used",
            None,
        )
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

    /// The draft, section 4.2.3: "Error handling works the same way in RPC-over-RDMA Version Two",
    /// with RDMA2_ERR_BAD_HEADER.
    #[test]
    fn draft_section_4_2_3_bad_header() -> Result {
        for (words, part, at, reason, shown) in [
            // Without RDMA_MSGP and RDMA_DONE.
            (
                "X 2 20 2 / 0 / 0 0 0",
                Part::Proc,
                12,
                Reason::Value(2),
                "rdma_proc at octet 12: illegal value 2",
            ),
            (
                "X 2 20 3 / 0 / 0 0 0",
                Part::Proc,
                12,
                Reason::Value(3),
                "rdma_proc at octet 12: illegal value 3",
            ),
            (
                "X 2 20 6 / 0 / 0 0 0",
                Part::Proc,
                12,
                Reason::Value(6),
                "rdma_proc at octet 12: illegal value 6",
            ),
            (
                "X 2 20 1 / 0 / 0 0 0",
                Part::Proc,
                12,
                Reason::NoChunk,
                "rdma_proc at octet 12: RDMA_NOMSG without a chunk",
            ),
            (
                "X 2 20 0 / 2 / 0 0 0 | X 2",
                Part::Direction,
                16,
                Reason::Value(2),
                "direction at octet 16: illegal value 2",
            ),
            (
                "X 2 20 5 / ffffffff 0 0",
                Part::Direction,
                16,
                Reason::Value(0xffff_ffff),
                "direction at octet 16: illegal value 4294967295",
            ),
            // Of version 1, the shortest.
            (
                "X 2 20 0 / 0 0 0",
                Part::ReplyChunk,
                28,
                Reason::Truncated,
                "Reply chunk at octet 28: truncated",
            ),
            (
                "X 2 20 0 / 0 / 5 / 0 0 | X 0",
                Part::ReadList,
                20,
                Reason::Value(5),
                "Read list at octet 20: illegal value 5",
            ),
            (
                "X 2 20 0 / 0 / 1 2 0 0 0 0 0 / 0 0 | X 0",
                Part::ReadList,
                24,
                Reason::Position(2),
                "Read list at octet 24: Position 2 is not a multiple of four",
            ),
            (
                "X 2 20 0 / 0 / 0 / 1 1 0 0 0",
                Part::WriteList,
                28,
                Reason::Count(1),
                "Write list at octet 28: a count of 1 is more than there is",
            ),
            (
                "X 2 20 0 / 0 / 0 0 0 | eeddccbb 0",
                Part::Payload,
                32,
                Reason::Xid(0xeedd_ccbb),
                "Payload stream at octet 32: XID 0xeeddccbb is not the header's",
            ),
            // Section 4.2.2: "MUST be the same as the value of the associated RPC message's
            // msg_type field".
            (
                "X 2 20 0 / 0 / 0 0 0 | X 1",
                Part::Payload,
                36,
                Reason::MsgType(1),
                "Payload stream at octet 36: msg_type 1 is not the direction",
            ),
            (
                "X 2 20 0 / 1 / 0 0 0 | X 0",
                Part::Payload,
                36,
                Reason::MsgType(0),
                "Payload stream at octet 36: msg_type 0 is not the direction",
            ),
            (
                "X 2 20 0 / 1 / 0 0 0 | X",
                Part::Payload,
                36,
                Reason::Truncated,
                "Payload stream at octet 36: truncated",
            ),
            // RFC 4506, section 4.10.
            (
                "X 2 20 5 / 0 1 1",
                Part::Optional,
                24,
                Reason::Count(1),
                "rdma_optional at octet 24: a count of 1 is more than there is",
            ),
            (
                "X 2 20 5 / 0 1 5 0",
                Part::Optional,
                24,
                Reason::Count(5),
                "rdma_optional at octet 24: a count of 5 is more than there is",
            ),
            (
                "X 2 20 5 / 0 1 ffffffff 0",
                Part::Optional,
                24,
                Reason::Count(0xffff_ffff),
                "rdma_optional at octet 24: a count of 4294967295 is more than there is",
            ),
            (
                "X 2 20 5 / 0 1 3 1020301",
                Part::Optional,
                24,
                Reason::Residual,
                "rdma_optional at octet 24: residual octets are not zero",
            ),
        ] {
            check_malformed(words, part, at, reason, shown, Some("X 2 7 4 / 2"))?;
        }
        Ok(())
    }

    /// RFC 8166, sections 4.5 and 4.5.2: no beginning of a message is a message.
    #[test]
    fn rfc_8166_section_4_5_2_every_truncation() -> Result {
        for (words, fewest) in [
            // The XID of the RPC message counts, and in version 2 its type.
            ("X 1 20 0 / 1 0 a1 0 0 0 0 / 1 1 b2 0 0 0 0 / 1 0 | X", 28),
            (
                "X 2 20 0 / 0 / 1 0 a1 0 0 0 0 / 1 1 b2 0 0 0 0 / 1 0 | X 0",
                28,
            ),
            ("X 1 20 1 / 0 0 / 1 2 0 0 0 0 0 0 0 0", 28),
            ("X 2 20 5 / 0 1 5 0 0", 28),
            // An error is short.
            ("X 1 20 4 / 2", 16),
            ("X 2 20 4 / 3", 16),
            ("X 3 20 4 / 1 1 2", 16),
        ] {
            let octets = Octets::new(words)?;
            let octets = octets.all();
            check(words, parse(octets).is_ok(), true)?;
            for length in 0..octets.len() {
                match parse(&octets[..length]) {
                    Err(Error::Short { length: got }) if length < fewest => {
                        check(words, got, length)?;
                    }
                    Err(Error::Malformed(_, malformed)) if length >= fewest => {
                        check(words, malformed.at <= length, true)?;
                    }
                    parsed => {
                        return failed(words, format_args!("cut at {length}: got {parsed:?}"));
                    }
                }
            }
        }
        Ok(())
    }

    #[test]
    fn no_room() -> Result {
        let (needed, available) = (28, 27);
        let no_room = NoRoom { needed, available };
        check_display("words", no_room, "28 octets needed, 27 available")
    }
}

/// RFC 5531. A message is written down as a transport header is.
#[kunit_tests(rpcrdma_cm_rpc)]
mod rpcs {
    use super::{
        protocol::rpc::{
            is_reply,
            parse_call,
            parse_reply,
            Call,
            Error,
            Reply,
            Status, //
        },
        *, //
    };

    /// RFC 5531, section 9: `call_body`; section 10.1: AUTH_NONE.
    #[test]
    fn section_9_call() -> Result {
        for (words, prog, vers, proc) in [
            ("X 0 2 186a3 3 0 / 0 0 / 0 0 |", 100_003, 3, 0),
            ("X 0 2 186a3 4 0 / 0 0 / 0 0 | 1 2", 100_003, 4, 0),
            (
                "X 0 2 ffffffff ffffffff ffffffff / 0 0 / 0 0 | 1",
                u32::MAX,
                u32::MAX,
                u32::MAX,
            ),
        ] {
            let octets = Octets::new(words)?;
            let (head, arguments) = octets.all().split_at(octets.head);
            let call = Call {
                xid: X,
                prog,
                vers,
                proc,
            };
            check(words, parse_call(octets.all()), Ok((call, arguments)))?;
            check_built(words, head, |buffer| call.build(buffer))?;
        }
        Ok(())
    }

    /// RFC 5531, section 8.2: `opaque_auth`, whatever it holds.
    #[test]
    fn section_8_2_authentication() -> Result {
        for words in [
            // AUTH_SYS: stamp, machinename, uid, gid, gids.
            "X 0 2 186a3 3 7 / 1 18 0 4 61626364 0 0 0 / 0 0 | 8",
            "X 0 2 186a3 3 7 / 6 1 1000000 / 6 5 1020304 5000000 | 8",
            "X 0 2 186a3 3 7 / ffffffff 0 / 0 4 0 | 8",
        ] {
            let octets = Octets::new(words)?;
            let call = Call {
                xid: X,
                prog: 100_003,
                vers: 3,
                proc: 7,
            };
            let parsed = parse_call(octets.all());
            check(words, parsed, Ok((call, &[0, 0, 0, 8][..])))?;
        }

        // "opaque body<400>"
        let (low, high) = (2, 2);
        for (words, status, shown) in [
            (
                "X 0 2 186a3 3 7 / 1 191",
                Status::AuthError(1),
                "refused with AUTH_ERROR 1",
            ),
            (
                "X 0 2 186a3 3 7 / 1 ffffffff",
                Status::AuthError(1),
                "refused with AUTH_ERROR 1",
            ),
            (
                "X 0 2 186a3 3 7 / 0 0 / 0 191",
                Status::AuthError(3),
                "refused with AUTH_ERROR 3",
            ),
            // Section 9: "rpcvers MUST be equal to 2".
            (
                "X 0 3",
                Status::RpcMismatch { low, high },
                "refused with RPC_MISMATCH, 2 to 2",
            ),
            (
                "X 0 1 186a3 3 0 / 0 0 / 0 0",
                Status::RpcMismatch { low, high },
                "refused with RPC_MISMATCH, 2 to 2",
            ),
        ] {
            let octets = Octets::new(words)?;
            let error = Error::Refused(Reply { xid: X, status });
            check(words, parse_call(octets.all()), Err(error))?;
            check_display(words, error, shown)?;
        }

        let mut longest = [0; 40 + 400];
        let words = "X 0 2 186a3 3 7 / 1 190";
        longest[..32].copy_from_slice(Octets::new(words)?.all());
        let rest = parse_call(&longest).map(|(_, rest)| rest.len());
        check("400", rest, Ok(0))?;
        let at = 40 + 400 - 4;
        let truncated = Err(Error::Truncated { at });
        check("399", parse_call(&longest[..439]), truncated)
    }

    /// RFC 5531, section 9: `msg_type`, whatever follows.
    #[test]
    fn section_9_is_reply() -> Result {
        for (octets, expected) in [
            (&[0, 0, 0, 9, 0, 0, 0, 1][..], true),
            (&[0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0], true),
            (&[0, 0, 0, 9, 0, 0, 0, 0], false),
            (&[0, 0, 0, 9, 0, 0, 0, 2], false),
            (&[0, 0, 0, 9, 1, 0, 0, 1], false),
            (&[0, 0, 0, 9, 0, 0, 0], false),
            (&[], false),
        ] {
            check(octets.len(), is_reply(octets), expected)?;
        }
        Ok(())
    }

    /// RFC 5531, section 9: `accepted_reply` and `rejected_reply`.
    #[test]
    fn section_9_reply() -> Result {
        for (words, status, shown) in [
            ("X 1 0 / 0 0 / 0 | 5", Status::Success, "SUCCESS"),
            ("X 1 0 / 0 0 / 1", Status::ProgUnavail, "PROG_UNAVAIL"),
            (
                "X 1 0 / 0 0 / 2 3 4",
                Status::ProgMismatch { low: 3, high: 4 },
                "PROG_MISMATCH, 3 to 4",
            ),
            ("X 1 0 / 0 0 / 3", Status::ProcUnavail, "PROC_UNAVAIL"),
            ("X 1 0 / 0 0 / 4", Status::GarbageArgs, "GARBAGE_ARGS"),
            ("X 1 0 / 0 0 / 5", Status::SystemErr, "SYSTEM_ERR"),
            (
                "X 1 1 / 0 2 3",
                Status::RpcMismatch { low: 2, high: 3 },
                "RPC_MISMATCH, 2 to 3",
            ),
            ("X 1 1 / 1 5", Status::AuthError(5), "AUTH_ERROR 5"),
        ] {
            let octets = Octets::new(words)?;
            let (head, results) = octets.all().split_at(octets.head);
            let reply = Reply { xid: X, status };
            check(words, parse_reply(octets.all()), Ok((reply, results)))?;
            check_built(words, head, |buffer| reply.build(buffer))?;
            check_display(words, status, shown)?;
        }

        let octets = Octets::new("X 1 0 / 6 3 1020300 / 0")?;
        let status = Status::Success;
        let reply = Reply { xid: X, status };
        check("verifier", parse_reply(octets.all()), Ok((reply, &[][..])))
    }

    /// RFC 5531, section 9: what is no call, and no reply.
    #[test]
    fn section_9_values() -> Result {
        for (words, at, value) in [("X 1", 4, 1), ("X 2 2", 4, 2), ("X ffffffff", 4, !0)] {
            let octets = Octets::new(words)?;
            let error = Err(Error::Value { at, value });
            check(words, parse_call(octets.all()), error)?;
        }
        for (words, at, value) in [
            ("X 0 0 / 0 0 / 0", 4, 0),
            ("X 2 0 / 0 0 / 0", 4, 2),
            ("X 1 2 / 0 0 / 0", 8, 2),
            ("X 1 0 / 0 0 / 6", 20, 6),
            ("X 1 0 / 6 4 0 / 6", 24, 6),
            ("X 1 0 / 6 191 0 / 0", 16, 401),
            ("X 1 1 / 2", 12, 2),
        ] {
            let octets = Octets::new(words)?;
            let error = Err(Error::Value { at, value });
            check(words, parse_reply(octets.all()), error)?;
        }
        let (at, value) = (12, 2);
        check_display(
            "value",
            Error::Value { at, value },
            "illegal value 2 at octet 12",
        )?;
        check_display(
            "truncated",
            Error::Truncated { at },
            "truncated at octet 12",
        )
    }

    /// RFC 5531, section 9: no beginning of a head is one.
    #[test]
    fn section_9_every_truncation() -> Result {
        let words = "X 0 2 186a3 3 7 / 6 1 1000000 / 6 5 1020304 5000000";
        let octets = Octets::new(words)?;
        for length in 0..octets.len {
            let parsed = parse_call(&octets.all()[..length]);
            let is_truncated = matches!(parsed, Err(Error::Truncated { at }) if at <= length);
            check(length, is_truncated, true)?;
        }
        for words in [
            "X 1 0 / 6 3 1020300 / 2 3 4",
            "X 1 1 / 0 2 2",
            "X 1 1 / 1 1",
        ] {
            let octets = Octets::new(words)?;
            for length in 0..octets.len {
                let parsed = parse_reply(&octets.all()[..length]);
                let is_truncated = matches!(parsed, Err(Error::Truncated { at }) if at <= length);
                check(words, is_truncated, true)?;
            }
        }
        Ok(())
    }
}

/// RFC 5531.
#[kunit_tests(rpcrdma_cm_program)]
mod programs {
    use super::{
        protocol::{
            program::{
                fill_opaque,
                is_opaque,
                serve,
                Procedure,
                Program,
                ECHO,
                ECHO_PROGRAM,
                ECHO_VERSION,
                NFS_PROGRAM,
                NFS_VERSION,
                NULL, //
            },
            rpc::{
                Call,
                Status, //
            }, //
        },
        *, //
    };

    /// RFC 5531, section 8.3: "0x20000000 - 0x3fffffff"; section 12.1: procedure 0. RFC 7530,
    /// section 17.2: NFS4_PROGRAM, version 4.
    #[test]
    fn section_8_3_numbers() -> Result {
        for (row, got, expected) in [
            ("echo", ECHO_PROGRAM, 0x2000_8797),
            ("echo version", ECHO_VERSION, 1),
            ("echo procedure", ECHO, 1),
            ("null procedure", NULL, 0),
            ("NFS", NFS_PROGRAM, 100_003),
            ("NFS version", NFS_VERSION, 4),
        ] {
            check(row, got, expected)?;
        }
        Ok(())
    }

    /// RFC 4506, section 4.10: the arguments of ECHO, and what is too short or too long for them.
    #[test]
    fn section_4_10_opaque() -> Result {
        for (count, len, expected) in [
            (0, 4, true),
            (1, 8, true),
            (4, 8, true),
            (5, 12, true),
            (1 << 20, (1 << 20) + 4, true),
            (0, 0, false),
            (0, 3, false),
            (0, 8, false),
            (1, 4, false),
            (1, 5, false),
            (4, 12, false),
            (9, 8, false),
            (u32::MAX, 4, false),
            (u32::MAX - 3, 0, false),
        ] {
            check(count, is_opaque(count, len), expected)?;
        }
        Ok(())
    }

    /// RFC 4506, section 4.10: the length, the octets, which may be any, and zeros that make them a
    /// multiple of four.
    #[test]
    fn section_4_10_arguments() -> Result {
        for (size, at, expected) in [
            (0, 0, [0, 0, 0, 0, 0, 0, 0, 0]),
            (3, 0, [0, 0, 0, 3, 0xfe, 0xff, 0xff, 0]),
            (4, 0, [0, 0, 0, 4, 0xfe, 0xff, 0xff, 0xff]),
            (6, 4, [0xfe, 0xff, 0xff, 0xff, 0xfd, 0xff, 0, 0]),
        ] {
            let mut octets = [0xee; 8];
            fill_opaque(size, u32::MAX, at, &mut octets);
            check(size, octets, expected)?;
        }
        Ok(())
    }

    /// RFC 5531, section 8.1: a program has a number and a version; which the two are. The module
    /// serves its own.
    #[test]
    fn section_8_1_programs() -> Result {
        for (row, program, number, version, echo) in [
            ("NFS", Program::NFS, 100_003, 4, Err(Status::ProgUnavail)),
            ("echo", Program::ECHO, 0x2000_8797, 1, Ok(Procedure::Echo)),
        ] {
            check(row, program, Program { number, version })?;

            for (proc, expected) in [(0, Ok(Procedure::Null)), (1, echo)] {
                let call = Call {
                    xid: X,
                    prog: program.number,
                    vers: program.version,
                    proc,
                };
                check(row, serve(&call), expected)?;
            }
        }
        Ok(())
    }

    /// RFC 5531, section 9: `accept_stat`; section 12.1: "procedure 0 of any RPC protocol".
    #[test]
    fn section_9_served() -> Result {
        let mismatch = Err(Status::ProgMismatch { low: 1, high: 1 });
        for (prog, vers, proc, expected) in [
            (0x2000_8797, 1, 0, Ok(Procedure::Null)),
            (0x2000_8797, 2, 0, Ok(Procedure::Null)),
            (100_003, 4, 0, Ok(Procedure::Null)),
            (100_003, 3, 0, Ok(Procedure::Null)),
            (0, 0, 0, Ok(Procedure::Null)),
            (u32::MAX, u32::MAX, 0, Ok(Procedure::Null)),
            (0x2000_8797, 1, 1, Ok(Procedure::Echo)),
            (0x2000_8797, 1, 2, Err(Status::ProcUnavail)),
            (0x2000_8797, 1, u32::MAX, Err(Status::ProcUnavail)),
            (0x2000_8797, 0, 1, mismatch),
            (0x2000_8797, 2, 1, mismatch),
            (0x2000_8797, u32::MAX, 1, mismatch),
            (0x2000_8797, 2, 2, mismatch),
            (0x2000_8796, 1, 1, Err(Status::ProgUnavail)),
            (0x2000_8798, 1, 1, Err(Status::ProgUnavail)),
            (100_003, 4, 1, Err(Status::ProgUnavail)),
            (100_003, 1, 1, Err(Status::ProgUnavail)),
            (0, 1, 1, Err(Status::ProgUnavail)),
            (u32::MAX, 1, 1, Err(Status::ProgUnavail)),
        ] {
            let call = Call {
                xid: X,
                prog,
                vers,
                proc,
            };
            check(format_args!("{call:?}"), serve(&call), expected)?;
        }
        Ok(())
    }
}

#[kunit_tests(rpcrdma_cm_control)]
mod controlling {
    use super::{
        protocol::{
            control::{
                parse_call,
                parse_close,
                parse_connect,
                parse_listen,
                parse_probe,
                Address,
                Call,
                Close,
                Connect,
                Listen,
                Refusal,
                Rpc,
                SocketAddr,
                What,
                Zone, //
            },
            header::Versions,
            private_data::{
                Offer,
                Offered,
                Size, //
            },
            program::Program, //
        },
        *, //
    };

    use core::net::{
        Ipv4Addr,
        Ipv6Addr, //
    };

    /// Keys, and what they change.
    type Row<T> = (&'static str, fn(&mut T));

    /// What `192.0.2.1:1` asks of `connect` and `probe`.
    const CONNECT: Connect = Connect {
        to: v4(1),
        from: None,
        offer: UNTOLD,
        rpc: RPC,
        reconnect: false,
        timeout_ms: 5000,
        null: Some(NFS),
    };

    /// What `192.0.2.1:1` asks of `listen`.
    const LISTEN: Listen = Listen {
        at: v4(1),
        offer: UNTOLD,
        rpc: RPC,
        max: 64,
        answer: true,
    };

    /// All versions and eight credits.
    const RPC: Rpc = Rpc {
        versions: Versions { low: 1, high: 2 },
        credits: 8,
    };

    /// NFS version 4.
    const NFS: Program = Program {
        number: 100_003,
        version: 4,
    };

    /// 4096 octets each way and R clear.
    const UNTOLD: Offered = message(3, 3, false);

    /// A message with the values of the Size fields (RFC 8797, section 4.2).
    const fn message(send_size: u8, receive_size: u8, remote_invalidation: bool) -> Offered {
        Offered::Message(Offer {
            send_size: Size::from_encoded(send_size),
            receive_size: Size::from_encoded(receive_size),
            remote_invalidation,
        })
    }

    /// A program whose NULL is called.
    fn program(number: u32, version: u32) -> Option<Program> {
        Some(Program { number, version })
    }

    /// 192.0.2.1 and a port.
    const fn v4(port: u16) -> SocketAddr {
        SocketAddr {
            address: Address::V4(Ipv4Addr::new(192, 0, 2, 1)),
            port,
        }
    }

    /// fe80::1, a zone and port 1.
    const fn v6(zone: Option<Zone>) -> SocketAddr {
        SocketAddr {
            address: Address::V6 {
                address: Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1),
                zone,
            },
            port: 1,
        }
    }

    /// Checks what `connect`, `probe` and `listen` make of a line.
    fn check_all(line: &str, address: SocketAddr, offer: Offered) -> Result {
        let connect = Connect {
            to: address,
            offer,
            ..CONNECT
        };
        let listen = Listen {
            at: address,
            offer,
            ..LISTEN
        };
        check(line, parse_connect(line.as_bytes()), Ok(connect))?;
        check(line, parse_probe(line.as_bytes()), Ok(connect))?;
        check(line, parse_listen(line.as_bytes()), Ok(listen))
    }

    /// Checks what `connect`, `probe` and `listen` say of a line.
    fn check_all_refuse(line: &str, refusal: &str) -> Result {
        check_refusal(line, parse_connect(line.as_bytes()), refusal)?;
        check_refusal(line, parse_probe(line.as_bytes()), refusal)?;
        check_refusal(line, parse_listen(line.as_bytes()), refusal)
    }

    fn check_refusal<T: Debug>(
        row: impl Display,
        parsed: core::result::Result<T, Refusal<'_>>,
        expected: &str,
    ) -> Result {
        match parsed {
            Ok(value) => failed(row, format_args!("got {value:?}, expected {expected}")),
            Err(refusal) => check_display(row, refusal, expected),
        }
    }

    /// Puts an address before the keys of a row.
    fn line(keys: impl Display) -> Result<CString> {
        CString::try_from_fmt(format_args!("192.0.2.1:1 {keys}"))
    }

    /// What a refusal looks like that names a word.
    fn refusal(word: &str, reason: &str) -> Result<CString> {
        CString::try_from_fmt(format_args!("{word}: {reason}"))
    }

    #[test]
    fn addresses() -> Result {
        const SHORT: Zone = Zone::Name(*b"e\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
        const LONG: Zone = Zone::Name(*b"15octets-is-all\0");

        for (line, address) in [
            ("192.0.2.1:1", v4(1)),
            ("192.0.2.1:65535", v4(65_535)),
            ("[fe80::1]:1", v6(None)),
            ("[FE80:0:0:0:0:0:0.0.0.1]:1", v6(None)),
            ("[fe80::1%1]:1", v6(Some(Zone::Index(1)))),
            ("[fe80::1%4294967295]:1", v6(Some(Zone::Index(u32::MAX)))),
            ("[fe80::1%e]:1", v6(Some(SHORT))),
            ("[fe80::1%15octets-is-all]:1", v6(Some(LONG))),
        ] {
            check_all(line, address, UNTOLD)?;
        }
        Ok(())
    }

    #[test]
    fn addresses_refused() -> Result {
        const NO_PORT: &str = "expected :PORT behind the address";
        const PORT: &str = "port is not 1 to 65535";
        const ADDRESS: &str = "expected an IPv4 address, or an IPv6 address in brackets";
        const ZONE: &str = "zone is not an interface's index or name of up to 15 octets";

        for (word, reason) in [
            ("192.0.2.1", NO_PORT),
            ("[fe80::1]", NO_PORT),
            ("[fe80::1]1", NO_PORT),
            ("[fe80::1%]]:1", ZONE),
            ("192.0.2.1:", PORT),
            ("192.0.2.1:0", PORT),
            ("192.0.2.1:65536", PORT),
            ("192.0.2.1:+1", PORT),
            ("192.0.2.1:1x", PORT),
            ("192.0.2.1:1:1", PORT),
            ("192.0.2.1:18446744073709551617", PORT),
            ("[fe80::1]:0", PORT),
            (":1", ADDRESS),
            ("send=4096", ADDRESS),
            ("server:1", ADDRESS),
            ("192.0.2:1", ADDRESS),
            ("192.0.2.256:1", ADDRESS),
            ("192.0.2.01:1", ADDRESS),
            ("192.0.2.1%1:1", ADDRESS),
            ("[192.0.2.1]:1", ADDRESS),
            ("fe80::1:1", ADDRESS),
            ("[fe80::1:1", ADDRESS),
            ("fe80::1]:1", ADDRESS),
            ("[fe80::1::]:1", ADDRESS),
            ("[]:1", ADDRESS),
            ("[%1]:1", ADDRESS),
            ("[fe80::1%]:1", ZONE),
            ("[fe80::1%0]:1", ZONE),
            ("[fe80::1%4294967296]:1", ZONE),
            ("[fe80::1%one-octet-longer]:1", ZONE),
        ] {
            let line = CString::try_from_fmt(format_args!("{word} inv=1"))?;
            check_all_refuse(line.to_str()?, refusal(word, reason)?.to_str()?)?;
        }

        // There is no word to name.
        for line in ["", "\n", " \t "] {
            check_all_refuse(line, ADDRESS)?;
        }
        Ok(())
    }

    /// RFC 8797, sections 4.1 and 4.2: what the message is to say.
    #[test]
    fn section_4_offers() -> Result {
        for (keys, offer) in [
            ("send=1024", message(0, 3, false)),
            ("send=2048", message(1, 3, false)),
            ("send=262144", message(255, 3, false)),
            ("recv=1024", message(3, 0, false)),
            ("recv=2048", message(3, 1, false)),
            ("recv=262144", message(3, 255, false)),
            ("inv=0", message(3, 3, false)),
            ("inv=1", message(3, 3, true)),
            ("inv=1 recv=8192 send=65536", message(63, 7, true)),
            ("private=none", Offered::None),
        ] {
            check_all(line(keys)?.to_str()?, v4(1), offer)?;
        }
        Ok(())
    }

    /// RFC 8797, section 4.2: sizes that the message cannot say.
    #[test]
    fn section_4_2_sizes_refused() -> Result {
        const MULTIPLE: &str = "not a multiple of 1024 octets";
        const RANGE: &str = "not 1024 to 262144 octets";

        for key in ["send", "recv"] {
            for (value, reason) in [
                ("0", RANGE),
                ("1", MULTIPLE),
                ("1000", MULTIPLE),
                ("1023", MULTIPLE),
                ("1025", MULTIPLE),
                ("262143", MULTIPLE),
                ("262145", MULTIPLE),
                ("263168", RANGE),
                ("4294968320", RANGE),
                ("18446744073709552640", RANGE),
                ("-1024", RANGE),
                ("+1024", RANGE),
                ("1024x", RANGE),
                ("0x400", RANGE),
                ("1k", RANGE),
                ("", "no value"),
            ] {
                let word = CString::try_from_fmt(format_args!("{key}={value}"))?;
                let word = word.to_str()?;
                check_all_refuse(line(word)?.to_str()?, refusal(word, reason)?.to_str()?)?;
            }
        }
        Ok(())
    }

    /// Checks the octets that a line has sent as they are.
    fn check_raw(line: &[u8], octets: &[u8]) -> Result {
        let parsed = parse_connect(line);
        match parsed {
            Ok(Connect {
                offer: Offered::Raw(data),
                ..
            }) => check(line.len(), data.octets(), octets),
            _ => failed(line.len(), format_args!("got {parsed:?}")),
        }
    }

    #[test]
    fn private_data() -> Result {
        for (keys, octets) in [
            ("private=00", &[0x00][..]),
            ("private=f6", &[0xf6]),
            ("private=0123456789", &[0x01, 0x23, 0x45, 0x67, 0x89]),
            ("private=abcdef", &[0xab, 0xcd, 0xef]),
            ("private=ABCDEF", &[0xab, 0xcd, 0xef]),
            ("private=aBfF", &[0xab, 0xff]),
        ] {
            check_raw(line(keys)?.to_bytes(), octets)?;
        }
        Ok(())
    }

    #[test]
    fn private_data_refused() -> Result {
        const ODD: &str = "an odd number of hex digits";
        const HEX: &str = "neither pairs of hex digits nor none";

        for (word, reason) in [
            ("private=", "no value"),
            ("private=f", ODD),
            ("private=f6a", ODD),
            ("private=fg", HEX),
            ("private=gf", HEX),
            ("private=+f", HEX),
            ("private=0xf6", HEX),
            ("private=@`", HEX),
            ("private=/:", HEX),
            ("private=None", HEX),
        ] {
            check_all_refuse(line(word)?.to_str()?, refusal(word, reason)?.to_str()?)?;
        }
        Ok(())
    }

    #[test]
    fn private_data_capacity() -> Result {
        const BEGINNING: &[u8] = b"192.0.2.1:1 private=";
        const LEN: usize = BEGINNING.len();
        let mut line = [b'a'; LEN + 512];
        line[..LEN].copy_from_slice(BEGINNING);

        check_raw(&line[..LEN + 508], &[0xaa; 254])?;
        check_raw(&line[..LEN + 510], &[0xaa; 255])?;

        // The first 64 octets of the word are shown.
        for (digits, reason, is_too_many) in [
            (511, "an odd number of hex digits", false),
            (
                512,
                "more than 255 octets, which no transport can carry",
                true,
            ),
        ] {
            let parsed = parse_connect(&line[..LEN + digits]);
            let Err(refusal) = parsed else {
                return failed(digits, format_args!("got {parsed:?}"));
            };
            check(digits, refusal.is_too_many_octets(), is_too_many)?;
            let word = "private=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...";
            let shown = CString::try_from_fmt(format_args!("{word}: {reason}"))?;
            check_display(digits, refusal, shown.to_str()?)?;
        }
        Ok(())
    }

    #[test]
    fn connect_keys() -> Result {
        // What is expected is large, and the stack small: a row says what is different.
        let rows: &[Row<Connect>] = &[
            ("from=192.0.2.1", |c| c.from = Some(c.to.address)),
            ("reconnect=0", |c| c.reconnect = false),
            ("reconnect=1", |c| c.reconnect = true),
            ("timeout_ms=1", |c| c.timeout_ms = 1),
            ("timeout_ms=600000", |c| c.timeout_ms = 600_000),
            ("private=none", |c| c.offer = Offered::None),
            ("rpcvers=1", |c| c.rpc.versions = Versions::only(1)),
            ("rpcvers=2", |c| c.rpc.versions = Versions::only(2)),
            ("rpcvers=auto", |c| c.rpc.versions = Versions::ALL),
            ("credits=1", |c| c.rpc.credits = 1),
            ("credits=64", |c| c.rpc.credits = 64),
            ("null=0", |c| c.null = None),
            ("null=1", |c| c.null = Some(NFS)),
            ("program=0", |c| c.null = program(0, 4)),
            ("program=4294967295", |c| c.null = program(u32::MAX, 4)),
            ("version=0", |c| c.null = program(100_003, 0)),
            ("version=4294967295 null=1", |c| {
                c.null = program(100_003, u32::MAX);
            }),
        ];
        for (keys, change) in rows {
            let line = line(keys)?;
            let mut connect = CONNECT;
            change(&mut connect);
            check(keys, parse_connect(line.to_bytes()), Ok(connect))?;
        }

        let line = "[fe80::1%2]:1 from=[fe80::1%2] reconnect=1 timeout_ms=7 \
                    rpcvers=2 credits=3 program=5 version=6 null=1 inv=1";
        let to = v6(Some(Zone::Index(2)));
        let connect = Connect {
            to,
            from: Some(to.address),
            offer: message(3, 3, true),
            rpc: Rpc {
                versions: Versions::only(2),
                credits: 3,
            },
            reconnect: true,
            timeout_ms: 7,
            null: program(5, 6),
        };
        check(line, parse_connect(line.as_bytes()), Ok(connect))
    }

    /// The keys of `connect`, without those that a probe has no use for.
    #[test]
    fn probe_keys() -> Result {
        let all = "[fe80::1%2]:1 from=[fe80::1%2] timeout_ms=7 credits=3 program=5 version=6 \
                    private=none";
        let to = v6(Some(Zone::Index(2)));
        let connect = Connect {
            to,
            from: Some(to.address),
            offer: Offered::None,
            rpc: Rpc { credits: 3, ..RPC },
            timeout_ms: 7,
            null: program(5, 6),
            ..CONNECT
        };
        check(all, parse_probe(all.as_bytes()), Ok(connect))?;

        for (word, reason) in [
            ("reconnect=0", "unknown key"),
            ("reconnect=1", "unknown key"),
            ("null=0", "unknown key"),
            ("null=1", "unknown key"),
            ("rpcvers=auto", "unknown key"),
            ("rpcvers=1", "unknown key"),
            ("max=1", "unknown key"),
            ("timeout_ms=0", "not 1 to 600000 milliseconds"),
            ("from=[fe80::1]", "not of the destination's address family"),
            ("program=4294967296", "not 0 to 4294967295"),
            ("version=-1", "not 0 to 4294967295"),
        ] {
            let line = line(word)?;
            let refusal = refusal(word, reason)?;
            check_refusal(word, parse_probe(line.to_bytes()), refusal.to_str()?)?;
        }
        Ok(())
    }

    #[test]
    fn connect_keys_refused() -> Result {
        const ADDRESS: &str = "expected an IPv4 address, or an IPv6 address in brackets";
        const FAMILY: &str = "not of the destination's address family";
        const FLAG: &str = "not 0 or 1";
        const TIMEOUT: &str = "not 1 to 600000 milliseconds";
        const WORD: &str = "not 0 to 4294967295";

        for (word, reason) in [
            ("from=", "no value"),
            ("from=fe80::1", ADDRESS),
            ("from=192.0.2.2:1", "more than an address"),
            ("from=[fe80::1]:1", "more than an address"),
            ("from=[fe80::1]", FAMILY),
            ("reconnect=2", FLAG),
            ("reconnect=01", FLAG),
            ("timeout_ms=0", TIMEOUT),
            ("timeout_ms=600001", TIMEOUT),
            ("timeout_ms=4294967297", TIMEOUT),
            ("timeout_ms=-1", TIMEOUT),
            ("null=2", FLAG),
            ("null=auto", FLAG),
            ("program=", "no value"),
            ("program=4294967296", WORD),
            ("program=-1", WORD),
            ("program=nfs", WORD),
            ("version=4294967296", WORD),
            ("version=4.1", WORD),
            ("max=1", "unknown key"),
            ("chunks=1", "unknown key"),
        ] {
            let line = line(word)?;
            let refusal = refusal(word, reason)?;
            check_refusal(word, parse_connect(line.to_bytes()), refusal.to_str()?)?;
        }

        let refusal = refusal("from=192.0.2.1", FAMILY)?;
        let parsed = parse_connect(b"[fe80::1]:1 from=192.0.2.1");
        check_refusal("IPv4 to IPv6", parsed, refusal.to_str()?)
    }

    #[test]
    fn listen_keys() -> Result {
        let rows: &[Row<Listen>] = &[
            ("max=1", |l| l.max = 1),
            ("max=65536", |l| l.max = 65_536),
            ("answer=0", |l| l.answer = false),
            ("answer=1", |l| l.answer = true),
            ("rpcvers=1", |l| l.rpc.versions = Versions::only(1)),
            ("rpcvers=2", |l| l.rpc.versions = Versions::only(2)),
            ("rpcvers=auto", |l| l.rpc.versions = Versions::ALL),
            ("credits=1", |l| l.rpc.credits = 1),
            ("credits=64", |l| l.rpc.credits = 64),
            ("credits=64 max=7 rpcvers=1", |l| {
                l.max = 7;
                l.rpc.versions = Versions::only(1);
                l.rpc.credits = 64;
            }),
        ];
        for (keys, change) in rows {
            let line = line(keys)?;
            let mut listen = LISTEN;
            change(&mut listen);
            check(keys, parse_listen(line.to_bytes()), Ok(listen))?;
        }
        Ok(())
    }

    /// RFC 8166, sections 4.2.2 and 4.2.3: of both sides.
    #[test]
    fn rpc_keys_refused() -> Result {
        const VERSIONS: &str = "not 1, 2 or auto";
        const CREDITS: &str = "not 1 to 64 credits";

        for (word, reason) in [
            ("credits=", "no value"),
            ("credits=0", CREDITS),
            ("credits=65", CREDITS),
            ("credits=4294967297", CREDITS),
            ("credits=-1", CREDITS),
            ("credits=auto", CREDITS),
        ] {
            check_all_refuse(line(word)?.to_str()?, refusal(word, reason)?.to_str()?)?;
        }
        for (word, reason) in [
            ("rpcvers=", "no value"),
            ("rpcvers=0", VERSIONS),
            ("rpcvers=3", VERSIONS),
            ("rpcvers=01", VERSIONS),
            ("rpcvers=1-2", VERSIONS),
            ("rpcvers=Auto", VERSIONS),
        ] {
            let line = line(word)?;
            let refusal = refusal(word, reason)?;
            check_refusal(word, parse_connect(line.to_bytes()), refusal.to_str()?)?;
            check_refusal(word, parse_listen(line.to_bytes()), refusal.to_str()?)?;
        }
        Ok(())
    }

    #[test]
    fn listen_keys_refused() -> Result {
        const MAX: &str = "not 1 to 65536 connections";

        for (word, reason) in [
            ("max=", "no value"),
            ("max=0", MAX),
            ("max=65537", MAX),
            ("max=4294967297", MAX),
            ("max=-1", MAX),
            ("answer=", "no value"),
            ("answer=2", "not 0 or 1"),
            ("from=192.0.2.1", "unknown key"),
            ("reconnect=1", "unknown key"),
            ("timeout_ms=1", "unknown key"),
            ("null=1", "unknown key"),
            ("program=1", "unknown key"),
            ("version=1", "unknown key"),
        ] {
            let line = line(word)?;
            let refusal = refusal(word, reason)?;
            check_refusal(word, parse_listen(line.to_bytes()), refusal.to_str()?)?;
        }
        Ok(())
    }

    #[test]
    fn spaces() -> Result {
        for line in [
            "192.0.2.1:1\n",
            " 192.0.2.1:1",
            "\t192.0.2.1:1 \n",
            "192.0.2.1:1 send=4096 recv=4096 inv=0",
            "  192.0.2.1:1\t\tsend=4096 \trecv=4096   inv=0\t\n",
        ] {
            check_all(line, v4(1), UNTOLD)?;
        }
        Ok(())
    }

    #[test]
    fn longest_line() -> Result {
        const LINE: &str = "192.0.2.1:1";
        let mut spaces = [b' '; 2049];
        spaces[..LINE.len()].copy_from_slice(LINE.as_bytes());

        let longest = core::str::from_utf8(&spaces[..2048])?;
        check_all(longest, v4(1), UNTOLD)?;
        let longer = core::str::from_utf8(&spaces)?;
        check_all_refuse(longer, "longer than 2048 octets")?;

        let mut spaces = [b' '; 2049];
        spaces[..3].copy_from_slice(b"all");
        check("longest", parse_close(&spaces[..2048]), Ok(Close::All))?;
        check_refusal("longer", parse_close(&spaces), "longer than 2048 octets")?;
        check_refusal("longer", parse_call(&spaces), "longer than 2048 octets")
    }

    #[test]
    fn words_refused() -> Result {
        const TEXT: &str = "not printable text on one line";
        const FLAG: &str = "not 0 or 1";

        for (keys, word, reason) in [
            ("inv=1\n\n", "inv=1\\x0a", TEXT),
            ("inv=1\r\n", "inv=1\\x0d", TEXT),
            ("inv=1\n recv=1024", "inv=1\\x0a", TEXT),
            ("\n inv=1", "\\x0a", TEXT),
            ("inv=\x7f", "inv=\\x7f", TEXT),
            ("inv=\u{b9}", "inv=\\xc2\\xb9", FLAG),
            ("inv=\\x31", "inv=\\x5cx31", FLAG),
            ("inv=2", "inv=2", FLAG),
            ("inv=yes", "inv=yes", FLAG),
            ("inv=00", "inv=00", FLAG),
            ("inv=1,", "inv=1,", FLAG),
            ("inv=1=1", "inv=1=1", FLAG),
            ("inv", "inv", "not key=value"),
            ("inv =1", "inv", "not key=value"),
            ("192.0.2.2:1", "192.0.2.2:1", "not key=value"),
            ("inv=", "inv=", "no value"),
            ("inv= 1", "inv=", "no value"),
            ("=1", "=1", "unknown key"),
            ("INV=1", "INV=1", "unknown key"),
            // The first word that does not fit is the one to name.
            ("size=1 inv=2", "size=1", "unknown key"),
        ] {
            check_all_refuse(line(keys)?.to_str()?, refusal(word, reason)?.to_str()?)?;
        }

        // What a CString cannot hold, and no str.
        for (line, word) in [
            (&b"192.0.2.1:1\0"[..], "192.0.2.1:1\\x00"),
            (b"192.0.2.1:1 inv=1\0", "inv=1\\x00"),
            (b"192.0.2.1:1 \0", "\\x00"),
            (b"192.0.2.1:1 inv=\xff", "inv=\\xff"),
        ] {
            let refusal = refusal(word, TEXT)?;
            check_refusal(word, parse_connect(line), refusal.to_str()?)?;
            check_refusal(word, parse_probe(line), refusal.to_str()?)?;
            check_refusal(word, parse_listen(line), refusal.to_str()?)?;
        }
        Ok(())
    }

    #[test]
    fn keys_that_exclude_each_other() -> Result {
        const TWICE: &str = "given twice";
        const ALL: &str = "private= says all that is sent, send=, recv= and inv= do not go with it";

        for (first, second, reason) in [
            ("send=1024", "send=1024", TWICE),
            ("recv=1024", "recv=2048", TWICE),
            ("inv=0", "inv=1", TWICE),
            ("private=none", "private=f6", TWICE),
            ("credits=8", "credits=8", TWICE),
            ("private=f6", "send=4096", ALL),
            ("private=f6", "recv=4096", ALL),
            ("private=none", "inv=0", ALL),
            ("send=4096", "private=f6", ALL),
            ("recv=4096", "private=f6", ALL),
            ("inv=0", "private=none", ALL),
        ] {
            let line = line(format_args!("{first} {second}"))?;
            let refusal = refusal(second, reason)?;
            check_all_refuse(line.to_str()?, refusal.to_str()?)?;
        }

        for (first, second) in [
            ("null=0", "program=100003"),
            ("null=0", "version=4"),
            ("program=1", "null=0"),
            ("version=1", "null=0"),
        ] {
            const NONE: &str = "null=0 makes no call, program= and version= do not go with it";

            let line = line(format_args!("{first} {second}"))?;
            let refusal = refusal(second, NONE)?;
            check_refusal(first, parse_connect(line.to_bytes()), refusal.to_str()?)?;
        }

        for word in [
            "from=192.0.2.2",
            "reconnect=0",
            "timeout_ms=1",
            "rpcvers=auto",
            "null=0",
            "null=1",
            "program=1",
            "version=1",
        ] {
            let line = line(format_args!("{word} {word}"))?;
            let refusal = refusal(word, TWICE)?;
            check_refusal(word, parse_connect(line.to_bytes()), refusal.to_str()?)?;
        }
        let parsed = parse_listen(b"192.0.2.1:1 max=1 max=1");
        check_refusal("max", parsed, "max=1: given twice")?;
        let parsed = parse_listen(b"192.0.2.1:1 rpcvers=1 rpcvers=2");
        check_refusal("rpcvers", parsed, "rpcvers=2: given twice")
    }

    #[test]
    fn call() -> Result {
        let null = |connection, number, version, chunks| Call {
            connection,
            what: What::Null(Program { number, version }),
            chunks,
        };
        let echo = |size, count, chunks| Call {
            connection: 7,
            what: What::Echo { size, count },
            chunks,
        };

        for (line, call) in [
            ("connection 1 null", null(1, 100_003, 4, false)),
            (" connection\t0  null \n", null(0, 100_003, 4, false)),
            (
                "connection 18446744073709551615 null",
                null(u64::MAX, 100_003, 4, false),
            ),
            ("connection 1 null program=0", null(1, 0, 4, false)),
            (
                "connection 1 null program=4294967295",
                null(1, u32::MAX, 4, false),
            ),
            ("connection 1 null version=0", null(1, 100_003, 0, false)),
            (
                "connection 1 null version=4294967295",
                null(1, 100_003, u32::MAX, false),
            ),
            ("connection 1 null chunks=0", null(1, 100_003, 4, false)),
            (
                "connection 1 null chunks=1 version=3 program=2",
                null(1, 2, 3, true),
            ),
            ("connection 7 echo", echo(1024, 1, false)),
            ("\tconnection 7 \techo\t\n", echo(1024, 1, false)),
            ("connection 7 echo size=0", echo(0, 1, false)),
            ("connection 7 echo size=1", echo(1, 1, false)),
            ("connection 7 echo size=1048576", echo(1_048_576, 1, false)),
            ("connection 7 echo count=1", echo(1024, 1, false)),
            (
                "connection 7 echo count=1000000",
                echo(1024, 1_000_000, false),
            ),
            ("connection 7 echo chunks=0", echo(1024, 1, false)),
            ("connection 7 echo chunks=1", echo(1024, 1, true)),
            (
                "connection 7 echo count=3 chunks=1 size=5",
                echo(5, 3, true),
            ),
        ] {
            check(line, parse_call(line.as_bytes()), Ok(call))?;
        }
        Ok(())
    }

    #[test]
    fn call_refused() -> Result {
        const CONNECTION: &str = "expected connection ID";
        const ID: &str = "expected a decimal ID";
        const WHAT: &str = "expected null or echo";
        const UNKNOWN: &str = "unknown key";
        const TWICE: &str = "given twice";
        const WORD: &str = "not 0 to 4294967295";
        const SIZE: &str = "not 0 to 1048576 octets";
        const COUNT: &str = "not 1 to 1000000 calls";
        const FLAG: &str = "not 0 or 1";

        for (line, word, reason) in [
            ("1 null", "1", CONNECTION),
            ("listener 1 null", "listener", CONNECTION),
            ("null connection 1", "null", CONNECTION),
            ("192.0.2.1:1 null", "192.0.2.1:1", CONNECTION),
            ("connection null", "null", ID),
            ("connection -1 null", "-1", ID),
            (
                "connection 18446744073709551616 echo",
                "18446744073709551616",
                ID,
            ),
            ("connection 1 all", "all", WHAT),
            ("connection 1 Null", "Null", WHAT),
            ("connection 1 size=1", "size=1", WHAT),
            ("connection 1 null\n\n", "null\\x0a", WHAT),
            ("connection 1 null echo", "echo", "not key=value"),
            ("connection 1 echo 5", "5", "not key=value"),
            ("connection 1 echo size=", "size=", "no value"),
            // What either call does not have.
            ("connection 1 null size=1", "size=1", UNKNOWN),
            ("connection 1 null count=1", "count=1", UNKNOWN),
            ("connection 1 null null=1", "null=1", UNKNOWN),
            ("connection 1 null rpcvers=1", "rpcvers=1", UNKNOWN),
            ("connection 1 null credits=1", "credits=1", UNKNOWN),
            ("connection 1 echo program=1", "program=1", UNKNOWN),
            ("connection 1 echo version=1", "version=1", UNKNOWN),
            ("connection 1 echo send=1024", "send=1024", UNKNOWN),
            ("connection 1 echo timeout_ms=1", "timeout_ms=1", UNKNOWN),
            // Values.
            (
                "connection 1 null program=4294967296",
                "program=4294967296",
                WORD,
            ),
            (
                "connection 1 null version=4294967296",
                "version=4294967296",
                WORD,
            ),
            ("connection 1 null version=x", "version=x", WORD),
            ("connection 1 null chunks=2", "chunks=2", FLAG),
            ("connection 1 echo chunks=yes", "chunks=yes", FLAG),
            ("connection 1 echo size=1048577", "size=1048577", SIZE),
            ("connection 1 echo size=4294967296", "size=4294967296", SIZE),
            ("connection 1 echo size=-1", "size=-1", SIZE),
            ("connection 1 echo size=1k", "size=1k", SIZE),
            ("connection 1 echo count=0", "count=0", COUNT),
            ("connection 1 echo count=1000001", "count=1000001", COUNT),
            (
                "connection 1 echo count=4294967297",
                "count=4294967297",
                COUNT,
            ),
            // Words that were there.
            ("connection 1 null program=1 program=1", "program=1", TWICE),
            ("connection 1 null version=1 version=2", "version=2", TWICE),
            ("connection 1 null chunks=0 chunks=1", "chunks=1", TWICE),
            ("connection 1 echo size=1 size=2", "size=2", TWICE),
            ("connection 1 echo count=1 count=2", "count=2", TWICE),
            ("connection 1 echo chunks=0 chunks=0", "chunks=0", TWICE),
            // The first word that does not fit is the one to name.
            ("connection x all", "x", ID),
            ("connection 1 echo size=x count=x", "size=x", SIZE),
        ] {
            let refusal = refusal(word, reason)?;
            check_refusal(line, parse_call(line.as_bytes()), refusal.to_str()?)?;
        }

        // There is no word to name.
        for (line, refusal) in [
            ("", CONNECTION),
            ("\n", CONNECTION),
            ("connection", ID),
            ("connection 1 \n", WHAT),
        ] {
            check_refusal(line, parse_call(line.as_bytes()), refusal)?;
        }
        Ok(())
    }

    #[test]
    fn close() -> Result {
        for (line, close) in [
            ("all", Close::All),
            (" all\t\n", Close::All),
            ("connection 1", Close::Connection(1)),
            ("connection \t 0\n", Close::Connection(0)),
            (
                "connection 18446744073709551615",
                Close::Connection(u64::MAX),
            ),
            ("listener 1", Close::Listener(1)),
            ("listener 18446744073709551615", Close::Listener(u64::MAX)),
        ] {
            check(line, parse_close(line.as_bytes()), Ok(close))?;
        }
        Ok(())
    }

    #[test]
    fn close_refused() -> Result {
        const WHAT: &str = "expected connection ID, listener ID or all";
        const ID: &str = "expected a decimal ID";
        const TOO_MANY: &str = "one word too many";

        for (line, word, reason) in [
            ("1", "1", WHAT),
            ("All", "All", WHAT),
            ("al\0l", "al\\x00l", WHAT),
            ("connection=1", "connection=1", WHAT),
            ("connection all", "all", ID),
            ("connection -1", "-1", ID),
            ("connection +1", "+1", ID),
            ("listener 0x1", "0x1", ID),
            ("listener 18446744073709551616", "18446744073709551616", ID),
            (
                "connection 1\n\n",
                "1\\x0a",
                "not printable text on one line",
            ),
            ("connection 1 2", "2", TOO_MANY),
            ("listener 1 all", "all", TOO_MANY),
            ("all 1", "1", TOO_MANY),
        ] {
            let refusal = refusal(word, reason)?;
            check_refusal(line, parse_close(line.as_bytes()), refusal.to_str()?)?;
        }

        // There is no word to name.
        for (line, refusal) in [
            ("", WHAT),
            ("\n", WHAT),
            ("connection", ID),
            ("listener \n", ID),
        ] {
            check_refusal(line, parse_close(line.as_bytes()), refusal)?;
        }
        Ok(())
    }
}
