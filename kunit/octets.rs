// SPDX-License-Identifier: GPL-2.0

//! Messages, written as words of 32 bits.

use kernel::prelude::*;

use crate::{
    pure::wire::xdr::NoRoom,
    rows::check, //
};

/// The XID of most messages.
pub(crate) const X: u32 = 0x1122_3344;

/// A message, written in the notation of RFC 8166, section 4.7: its words in hexadecimal, X for
/// [`X`], `/` between the parts of a header, and `|` behind the header.
pub(crate) struct Octets {
    pub(crate) octets: [u8; 256],
    pub(crate) len: usize,
    /// The number of octets before the `|`.
    pub(crate) head: usize,
}

impl Octets {
    pub(crate) fn new(words: &str) -> Result<Self> {
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

    pub(crate) fn all(&self) -> &[u8] {
        &self.octets[..self.len]
    }
}

/// Checks the octets that `build` writes, and that it fails for every buffer that is too short.
pub(crate) fn check_built(
    row: &str,
    expected: &[u8],
    build: impl Fn(&mut [u8]) -> Result<usize, NoRoom>,
) -> Result {
    let needed = expected.len();
    let mut buffer = [0xff; 256];
    for available in 0..needed {
        let built = build(&mut buffer[..available]);
        check(row, built, Err(NoRoom { needed }))?;
    }
    check(row, build(&mut buffer), Ok(needed))?;
    check(row, &buffer[..needed], expected)?;
    check(row, buffer[needed], 0xff)
}
