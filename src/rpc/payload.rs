// SPDX-License-Identifier: GPL-2.0

//! The Payload stream of a message, inline or in memory (RFC 8166, section 3.2).

use core::mem;

use crate::rdma::verbs::memory::Memory;

/// A Payload stream: an RPC message.
#[derive(Clone, Copy)]
pub(super) enum Payload<'a> {
    /// It came with the header (RFC 8166, section 3.5.1).
    Inline(&'a [u8]),
    /// It was transferred by RDMA: that many octets at the beginning of the memory (RFC 8166,
    /// section 3.5.3).
    Long(&'a Memory, usize),
}

impl Payload<'_> {
    /// Returns the length in octets.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Inline(octets) => octets.len(),
            Self::Long(_, len) => *len,
        }
    }

    /// Returns the octets from `at` on, in pieces. If `at` and the length are multiples of four, so
    /// are the lengths of all pieces.
    pub(super) fn pieces(&self, at: usize) -> impl Iterator<Item = &[u8]> {
        let (inline, long) = match *self {
            Self::Inline(octets) => (octets.get(at..), None),
            Self::Long(memory, len) => (None, Some(memory.pieces(at, len.saturating_sub(at)))),
        };
        inline.into_iter().chain(long.into_iter().flatten())
    }

    /// Copies the octets from `at` on into `octets`. Octets of `octets` beyond the end of the
    /// stream are not changed.
    pub(super) fn read(&self, at: usize, octets: &mut [u8]) {
        let mut rest = octets;
        for piece in self.pieces(at) {
            let len = piece.len().min(rest.len());
            let Some((to, behind)) = mem::take(&mut rest).split_at_mut_checked(len) else {
                return;
            };
            to.copy_from_slice(piece.get(..len).unwrap_or_default());
            if behind.is_empty() {
                return;
            }
            rest = behind;
        }
    }
}
