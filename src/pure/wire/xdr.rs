// SPDX-License-Identifier: GPL-2.0

//! The part of the External Data Representation (RFC 4506) that RPC and its transport headers use.

/// The basic block size in octets. The length of every data item is a multiple of it (RFC 4506,
/// section 3).
const UNIT: usize = 4;

/// Reads data items from octets, one after the other (RFC 4506, section 3).
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    /// How many octets there were at the beginning.
    len: usize,
}

impl<'a> Reader<'a> {
    /// Creates a reader that begins with the first of `octets`.
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

    /// Reads an unsigned integer, or an item that is encoded as one (RFC 4506, section 4.2).
    /// Returns [`None`] if fewer than four octets are left.
    pub(crate) fn word(&mut self) -> Option<u32> {
        let (&word, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(u32::from_be_bytes(word))
    }

    /// Reads `len` octets of opaque data, and the octets that fill up its last block (RFC 4506,
    /// section 4.9). Returns [`None`] if fewer octets are left.
    pub(crate) fn opaque(&mut self, len: usize) -> Option<(&'a [u8], &'a [u8])> {
        let (data, rest) = self.rest.split_at_checked(len)?;
        let (residual, rest) = rest.split_at_checked(residual(len))?;
        self.rest = rest;
        Some((data, residual))
    }
}

/// Returns how many octets fill up the last block of `len` octets (RFC 4506, section 3).
fn residual(len: usize) -> usize {
    len.wrapping_neg() % UNIT
}

/// Writes data items into a buffer (RFC 4506, section 3). Behind the end of the buffer it only
/// counts octets, so that [`Self::finish`] can say how many are needed.
pub(crate) struct Writer<'a> {
    buffer: &'a mut [u8],
    len: usize,
}

impl<'a> Writer<'a> {
    /// Creates a writer that begins with the first octet of `buffer`.
    pub(crate) fn new(buffer: &'a mut [u8]) -> Self {
        Self { buffer, len: 0 }
    }

    /// Writes an unsigned integer, or an item that is encoded as one (RFC 4506, section 4.2).
    pub(crate) fn word(&mut self, word: u32) {
        self.octets(&word.to_be_bytes());
    }

    /// Writes the number of elements of an item of variable length (RFC 4506, sections 4.10 and
    /// 4.13).
    pub(crate) fn count(&mut self, count: usize) {
        match u32::try_from(count) {
            Ok(count) => self.word(count),
            // XDR cannot express the count, so that `finish` has to fail.
            Err(_) => self.len = usize::MAX,
        }
    }

    /// Writes opaque data, and zeros that fill up its last block (RFC 4506, section 4.9).
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
    /// Fails if they did not all fit into the buffer.
    pub(crate) fn finish(self) -> Result<usize, NoRoom> {
        let needed = self.len;
        if needed > self.buffer.len() {
            return Err(NoRoom { needed });
        }
        Ok(needed)
    }
}

/// The error of a write into a buffer that is too short. The content of the buffer is meaningless.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct NoRoom {
    /// How many octets the write needs.
    pub(crate) needed: usize,
}
