// SPDX-License-Identifier: GPL-2.0

//! The directions of transfers.

use kernel::dma::DataDirection;

/// The direction of a transfer (RFC 8166, section 2.3.2).
///
/// # Examples
///
/// ```no_run
/// # let (queue_pair, rkey, remote): (&MessageQueuePair<MyEndpoint>, u32, u64) = given();
/// let mut memory = Memory::new();
/// memory.grow(1000)?;
/// queue_pair.transfer(Transfer::Read, &mut memory, 0, 1000, rkey, remote)?;
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Transfer {
    /// RDMA Read: from the peer's memory.
    Read,
    /// RDMA Write: to the peer's memory.
    Write,
}

impl Transfer {
    /// Returns the direction for the mapping of the local memory: whether the device reads or
    /// writes it.
    pub(in crate::rdma) fn direction(self) -> DataDirection {
        match self {
            Self::Read => DataDirection::FromDevice,
            Self::Write => DataDirection::ToDevice,
        }
    }
}
