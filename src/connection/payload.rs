// SPDX-License-Identifier: GPL-2.0

//! Where the Payload stream of a message is (RFC 8166, section 3.2).

use crate::rdma::memory::Memory;

/// A Payload stream: an RPC message.
#[derive(Clone, Copy)]
pub(super) enum Payload<'a> {
    /// It came with the header (RFC 8166, section 3.5.1).
    Inline(&'a [u8]),
    /// It came by RDMA: so many octets from the beginning of the memory (RFC 8166, section 3.5.3).
    Long(&'a Memory, usize),
}

impl Payload<'_> {
    /// Returns how many octets it has.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Inline(octets) => octets.len(),
            Self::Long(_, len) => *len,
        }
    }

    /// Reads what is at `at` into `octets`; what would lie beyond the end stays as it is.
    pub(super) fn read(&self, at: usize, octets: &mut [u8]) {
        match self {
            Self::Inline(payload) => {
                let from = payload.get(at..).unwrap_or_default();
                octets
                    .iter_mut()
                    .zip(from)
                    .for_each(|(to, from)| *to = *from);
            }
            Self::Long(memory, _) => memory.read(at, octets),
        }
    }
}
