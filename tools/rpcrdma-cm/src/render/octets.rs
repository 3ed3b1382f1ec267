// SPDX-License-Identifier: GPL-2.0

//! Private data as a hexdump, with the RFC 8797 message in it explained.

use std::fmt::Write;

/// The Format Identifier (RFC 8797, section 4).
const IDENTIFIER: [u8; 4] = [0xf6, 0xab, 0x0e, 0x18];

/// The hexdump; below it, the fields of the message at `offset`.
///
/// Zeros at the end are left out: InfiniBand and RoCE pad with them.
pub(crate) fn annotated(octets: &[u8], offset: Option<u64>) -> String {
    let mut out = String::new();
    let used = octets
        .iter()
        .rposition(|octet| *octet != 0)
        .map_or(0, |last| last.saturating_add(1));
    // The message is shown as a whole, even if it ends with zeros.
    let offset = offset.and_then(|offset| usize::try_from(offset).ok());
    let used = offset
        .and_then(|offset| offset.checked_add(8))
        .map_or(used, |end| used.max(end))
        .min(octets.len());
    let (shown, zeros) = octets.split_at_checked(used).unwrap_or((octets, &[]));
    for (index, line) in shown.chunks(16).enumerate() {
        let _ = write!(out, "  {:04x} ", index.saturating_mul(16));
        for octet in line {
            let _ = write!(out, " {octet:02x}");
        }
        out.push('\n');
    }
    if !zeros.is_empty() {
        let _ = writeln!(out, "  and {} octets of zeros", zeros.len());
    }
    let message = offset
        .and_then(|offset| octets.get(offset..))
        .and_then(|rest| rest.first_chunk::<8>());
    if let Some([a, b, c, d, version, flags, send, receive]) = message {
        if [*a, *b, *c, *d] != IDENTIFIER {
            return out;
        }
        let r = if flags & 1 == 1 { "set" } else { "clear" };
        let reserved = flags & !1;
        let _ = writeln!(out, "  {a:02x} {b:02x} {c:02x} {d:02x}  Format Identifier");
        let _ = writeln!(out, "  {version:02x}           Version {version}");
        let _ = write!(out, "  {flags:02x}           R {r}");
        if reserved != 0 {
            let _ = write!(out, ", reserved bits {reserved:#04x}");
        }
        let _ = writeln!(out, "\n  {send:02x}           Send Size {}", size(*send));
        let _ = writeln!(
            out,
            "  {receive:02x}           Receive Size {}",
            size(*receive)
        );
    }
    out
}

/// The offset of the first Format Identifier that a whole message can follow.
pub(crate) fn find(octets: &[u8]) -> Option<u64> {
    octets
        .windows(8)
        .position(|window| window.starts_with(&IDENTIFIER))
        .and_then(|offset| u64::try_from(offset).ok())
}

/// Whether there is a message of version 1, at any offset (RFC 8797, section 5.2).
pub(crate) fn has_message(octets: &[u8]) -> bool {
    octets
        .windows(8)
        .any(|window| window.starts_with(&IDENTIFIER) && window.get(4) == Some(&1))
}

/// The size in octets. It is sent in units of 1024, minus one (RFC 8797, section 4.2).
fn size(octet: u8) -> u64 {
    (u64::from(octet) + 1) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_and_its_padding() {
        let mut octets = vec![0xf6, 0xab, 0x0e, 0x18, 1, 1, 3, 0];
        octets.resize(56, 0);
        assert_eq!(find(&octets), Some(0));
        assert_eq!(
            annotated(&octets, Some(0)),
            "  0000  f6 ab 0e 18 01 01 03 00\n  and 48 octets of zeros\n  \
             f6 ab 0e 18  Format Identifier\n  01           Version 1\n  01           R set\n  \
             03           Send Size 4096\n  00           Receive Size 1024\n"
        );
    }

    #[test]
    fn reserved_bits_and_an_offset() {
        let octets = [9, 0xf6, 0xab, 0x0e, 0x18, 1, 0xfe, 0xff, 0xff];
        let text = annotated(&octets, find(&octets));
        assert!(text.contains("R clear, reserved bits 0xfe\n"), "{text}");
        assert!(text.contains("Send Size 262144\n"), "{text}");
    }

    #[test]
    fn no_message() {
        assert_eq!(annotated(&[], None), "");
        assert_eq!(annotated(&[], Some(u64::MAX)), "");
        assert_eq!(annotated(&[0; 56], None), "  and 56 octets of zeros\n");
        assert_eq!(
            annotated(&[0xf6, 0xab, 0x0e, 0x18], Some(0)),
            "  0000  f6 ab 0e 18\n"
        );
        // `info` may name an offset without a message.
        assert_eq!(
            annotated(&[1; 8], Some(0)),
            "  0000  01 01 01 01 01 01 01 01\n"
        );
        assert_eq!(find(&[0xf6, 0xab, 0x0e, 0x18, 1, 1, 3]), None);
    }
}
