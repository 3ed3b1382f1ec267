// SPDX-License-Identifier: GPL-2.0

//! The access that a peer gets to registered memory.

use kernel::dma::DataDirection;

use crate::bindings;

/// The access that the peer gets to registered memory.
///
/// # Examples
///
/// ```no_run
/// # let (queue_pair, len): (&MessageQueuePair<MyEndpoint>, usize) = given();
/// let call = Registration::new(queue_pair, RemoteAccess::Read, len, 256)?;
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum RemoteAccess {
    /// The peer may read it: a Read chunk.
    Read,
    /// The peer may write it: a Write chunk or the Reply chunk.
    Write,
}

impl RemoteAccess {
    pub(in crate::rdma) fn flags(self) -> bindings::ib_access_flags {
        match self {
            Self::Read => bindings::ib_access_flags_IB_ACCESS_REMOTE_READ,
            // The verbs require local write access for remote write access.
            Self::Write => {
                bindings::ib_access_flags_IB_ACCESS_REMOTE_WRITE
                    | bindings::ib_access_flags_IB_ACCESS_LOCAL_WRITE
            }
        }
    }

    pub(in crate::rdma) fn direction(self) -> DataDirection {
        match self {
            Self::Read => DataDirection::ToDevice,
            Self::Write => DataDirection::FromDevice,
        }
    }
}
