// SPDX-License-Identifier: GPL-2.0

//! A second implementation of RFC 8797, written from its text in another way: messages are numbers
//! of 64 bits, sizes are octets, and all candidates are judged before one is chosen.

/// The content of Private Data.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    Message {
        offset: usize,
        reserved: u8,
        r: bool,
        send_size: u32,
        receive_size: u32,
    },
    Nothing,
    NotRecognized {
        offset: usize,
        version: u8,
    },
    Overrun {
        offset: usize,
        available: usize,
    },
}

/// The figure of section 4, as bits of a number whose most significant octet comes first.
pub(crate) fn message(offset: usize, bits: u64, available: usize) -> Option<Verdict> {
    if available < 4 || bits >> 32 != 0xf6ab_0e18 {
        return None;
    }
    if available < 8 {
        return Some(Verdict::Overrun { offset, available });
    }
    let version = (bits >> 24) as u8;
    if version != 1 {
        return Some(Verdict::NotRecognized { offset, version });
    }
    Some(Verdict::Message {
        offset,
        reserved: ((bits >> 17) & 0x7f) as u8 * 2,
        r: (bits >> 16) & 1 == 1,
        send_size: decode((bits >> 8) & 0xff),
        receive_size: decode(bits & 0xff),
    })
}

/// Section 4.2: "adds one to the encoded value and then multiplies that result by 1024".
pub(crate) fn decode(encoded: u64) -> u32 {
    (encoded as u32 + 1) << 10
}

/// Section 5.2, for any Private Data.
pub(crate) fn private_data(octets: &[u8]) -> Verdict {
    // `bits` holds eight octets at a time, and moves on by one octet. Zeros follow the last one.
    let mut bits = 0;
    let candidates: Vec<_> = octets
        .iter()
        .chain(&[0; 7])
        .enumerate()
        .filter_map(|(last, octet)| {
            bits = (bits << 8) | u64::from(*octet);
            let offset = last.checked_sub(7)?;
            message(offset, bits, octets.len() - offset)
        })
        .collect();

    candidates
        .iter()
        .find(|candidate| matches!(candidate, Verdict::Message { .. }))
        .or(candidates.first())
        .cloned()
        .unwrap_or(Verdict::Nothing)
}
