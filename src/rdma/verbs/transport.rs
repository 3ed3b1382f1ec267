// SPDX-License-Identifier: GPL-2.0

//! The transports of RDMA.

use crate::bindings;

/// The protocol that a port of a device speaks.
///
/// # Examples
///
/// ```no_run
/// # let (id, private_data): (&IdRef<'_>, &[u8]) = given();
/// let fits = private_data.len() <= id.port()?.transport().request_capacity();
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Transport {
    /// InfiniBand.
    InfiniBand,
    /// RoCE: InfiniBand over Ethernet, or over UDP.
    Roce,
    /// iWARP: RDMA over TCP.
    Iwarp,
}

impl Transport {
    /// Takes a value that `shim_transport` of shim.h returns; [`None`] for unknown protocols.
    pub(crate) fn from_raw(transport: bindings::rpcrdma_cm_transport) -> Option<Self> {
        match transport {
            bindings::rpcrdma_cm_transport_RPCRDMA_CM_INFINIBAND => Some(Self::InfiniBand),
            bindings::rpcrdma_cm_transport_RPCRDMA_CM_ROCE => Some(Self::Roce),
            bindings::rpcrdma_cm_transport_RPCRDMA_CM_IWARP => Some(Self::Iwarp),
            _ => None,
        }
    }

    /// Returns how many bytes of private data a REQ can carry.
    ///
    /// InfiniBand has 92 (`IB_CM_REQ_PRIVATE_DATA_SIZE`). rdma_cm takes 36 of them for its own
    /// header if the addresses are IP addresses. On iWARP the kernel counts private data in one
    /// byte, and MPAv2 (RFC 6581, section 9) puts 4 bytes in front of it.
    pub(in crate::rdma) const fn request_capacity(self) -> usize {
        match self {
            Self::InfiniBand | Self::Roce => 92 - 36,
            Self::Iwarp => 255 - 4,
        }
    }

    /// Returns how many bytes of private data a REP can carry: on InfiniBand
    /// `IB_CM_REP_PRIVATE_DATA_SIZE`.
    pub(in crate::rdma) const fn reply_capacity(self) -> usize {
        match self {
            Self::InfiniBand | Self::Roce => 196,
            Self::Iwarp => self.request_capacity(),
        }
    }
}
