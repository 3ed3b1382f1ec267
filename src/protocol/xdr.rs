// SPDX-License-Identifier: GPL-2.0

//! The External Data Representation (RFC 4506), as far as RPC and its transport headers need it.

use core::fmt;

/// The basic block size in octets, of which all data are multiples (RFC 4506, section 3).
const UNIT: usize = 4;

/// What is left to read of some octets (RFC 4506, section 3).
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    /// How many octets there were at first.
    len: usize,
}

impl<'a> Reader<'a> {
    /// Reads `octets` from their first on.
    pub(crate) fn new(octets: &'a [u8]) -> Self {
        Self {
            rest: octets,
            len: octets.len(),
        }
    }

    /// Returns how many octets have been read.
    pub(crate) fn at(&self) -> usize {
        self.len.saturating_sub(self.rest.len())
    }

    /// Returns the octets that have not been read.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Reads an unsigned integer, or what is encoded as one (RFC 4506, section 4.2); [`None`] where
    /// there is no whole one.
    pub(crate) fn word(&mut self) -> Option<u32> {
        let (&word, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(u32::from_be_bytes(word))
    }

    /// Reads `len` octets of opaque data, and the octets that fill up its last unit (RFC 4506,
    /// section 4.9); [`None`] where they are not all there.
    pub(crate) fn opaque(&mut self, len: usize) -> Option<(&'a [u8], &'a [u8])> {
        let (data, rest) = self.rest.split_at_checked(len)?;
        let (residual, rest) = rest.split_at_checked(residual(len))?;
        self.rest = rest;
        Some((data, residual))
    }
}

/// Returns how many octets fill up the last unit of `len` octets (RFC 4506, section 3).
fn residual(len: usize) -> usize {
    len.wrapping_neg() % UNIT
}

/// Writes into a buffer, and counts on where that ends (RFC 4506, section 3).
pub(crate) struct Writer<'a> {
    buffer: &'a mut [u8],
    len: usize,
}

impl<'a> Writer<'a> {
    /// Writes into `buffer` from its first octet on.
    pub(crate) fn new(buffer: &'a mut [u8]) -> Self {
        Self { buffer, len: 0 }
    }

    /// Writes an unsigned integer, or what is encoded as one (RFC 4506, section 4.2).
    pub(crate) fn word(&mut self, word: u32) {
        self.octets(&word.to_be_bytes());
    }

    /// Writes the number of elements of what has a variable length (RFC 4506, sections 4.10 and
    /// 4.13).
    pub(crate) fn count(&mut self, count: usize) {
        match u32::try_from(count) {
            Ok(count) => self.word(count),
            // There is no room anywhere for what XDR cannot count.
            Err(_) => self.len = usize::MAX,
        }
    }

    /// Writes opaque data, and zeros that fill up its last unit (RFC 4506, section 4.9).
    pub(crate) fn opaque(&mut self, data: &[u8]) {
        self.octets(data);
        for _ in 0..residual(data.len()) {
            self.octets(&[0]);
        }
    }

    fn octets(&mut self, octets: &[u8]) {
        let end = self.len.saturating_add(octets.len());
        if let Some(room) = self.buffer.get_mut(self.len..end) {
            for (to, from) in room.iter_mut().zip(octets) {
                *to = *from;
            }
        }
        self.len = end;
    }

    /// Returns how many octets were written.
    ///
    /// # Errors
    ///
    /// Fails if the buffer is shorter than that.
    pub(crate) fn finish(self) -> Result<usize, NoRoom> {
        let available = self.buffer.len();
        if self.len > available {
            return Err(NoRoom {
                needed: self.len,
                available,
            });
        }
        Ok(self.len)
    }
}

/// A buffer is too short for what is to be written into it; what it holds then means nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct NoRoom {
    /// How many octets it takes.
    pub(crate) needed: usize,
    /// How many octets the buffer has.
    pub(crate) available: usize,
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { needed, available } = self;
        write!(f, "{needed} octets needed, {available} available")
    }
}
