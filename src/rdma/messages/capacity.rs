// SPDX-License-Identifier: GPL-2.0

//! The sizes of a queue pair.

use kernel::prelude::*;

/// The numbers of Receives and Sends of a queue pair, and the largest lengths of its messages in
/// bytes.
///
/// # Examples
///
/// ```no_run
/// // 32 Receives of 4096 bytes, and 16 Sends of up to 1024.
/// let capacity = Capacity::new(32, 4096, 16, 1024)?;
/// ```
///
/// No value can be zero, and the number of completions must fit into a C `int`:
///
/// ```no_run
/// assert_eq!(Capacity::new(0, 4096, 16, 1024).err(), Some(EINVAL));
/// assert_eq!(Capacity::new(u32::MAX, 4096, 16, 1024).err(), Some(EINVAL));
/// ```
///
/// # Invariants
///
/// No value is zero. `completions()` does not overflow, and fits into a C `int`.
#[derive(Clone, Copy)]
pub(crate) struct Capacity {
    receives: u32,
    receive_size: u32,
    sends: u32,
    send_size: u32,
}

impl Capacity {
    /// How many Work Requests can be outstanding besides the Sends: one operation, and the marker
    /// of `ib_drain_qp`. [`Self::TRANSFERS`] counts the transfers, for which rdma_rw posts the Work
    /// Requests.
    const OPERATIONS: u32 = 2;

    /// How many transfers can be outstanding.
    pub(in crate::rdma) const TRANSFERS: u32 = 1;

    /// The Receive whose message is being handled: the peer may send the next message before that
    /// Receive is posted again.
    const SPARE_RECEIVES: u32 = 1;

    /// The Receive that `ib_drain_qp` posts.
    const DRAIN_RECEIVES: u32 = 1;

    /// How many completions there can be besides those of the Receives and Sends. A transfer can
    /// take three Work Requests: its memory may be registered before, and invalidated afterwards.
    const EXTRA_COMPLETIONS: u32 =
        Self::SPARE_RECEIVES + Self::DRAIN_RECEIVES + Self::OPERATIONS + 3 * Self::TRANSFERS;

    /// The capacity for `receives` messages on their way to this end, of `receive_size` bytes each,
    /// and for `sends` Sends of up to `send_size` bytes each.
    ///
    /// Fails with `EINVAL` if a value is zero, or if the number of completions does not fit into a
    /// C `int`.
    pub(crate) fn new(
        receives: u32,
        receive_size: u32,
        sends: u32,
        send_size: u32,
    ) -> Result<Self> {
        let completions = receives
            .checked_add(sends)
            .and_then(|count| count.checked_add(Self::EXTRA_COMPLETIONS));
        let countable = completions.is_some_and(|count| i32::try_from(count).is_ok());
        if receives == 0 || receive_size == 0 || sends == 0 || send_size == 0 || !countable {
            return Err(EINVAL);
        }
        // INVARIANT: Checked above.
        Ok(Self {
            receives,
            receive_size,
            sends,
            send_size,
        })
    }

    /// How many Receives are made and posted.
    #[inline]
    pub(in crate::rdma) fn posted_receives(&self) -> u32 {
        // By the type invariant it does not overflow.
        self.receives + Self::SPARE_RECEIVES
    }

    /// The length in bytes of the longest message that a Receive takes.
    #[inline]
    pub(crate) fn receive_size(&self) -> u32 {
        self.receive_size
    }

    /// How many Sends can be under way at a time.
    #[inline]
    pub(crate) fn sends(&self) -> u32 {
        self.sends
    }

    /// The length in bytes of the longest message that can be sent.
    #[inline]
    pub(crate) fn send_size(&self) -> u32 {
        self.send_size
    }

    /// How many Receives can be posted at a time, with that of `ib_drain_qp`.
    #[inline]
    pub(in crate::rdma) fn max_recv_wr(&self) -> u32 {
        // By the type invariant it does not overflow.
        self.posted_receives() + Self::DRAIN_RECEIVES
    }

    /// How many Sends and other operations can be posted at a time, without those of rdma_rw.
    #[inline]
    pub(in crate::rdma) fn max_send_wr(&self) -> u32 {
        // By the type invariant it does not overflow.
        self.sends + Self::OPERATIONS
    }

    /// How many completions there can be at a time.
    #[inline]
    pub(in crate::rdma) fn completions(&self) -> u32 {
        // By the type invariant it does not overflow.
        self.receives + self.sends + Self::EXTRA_COMPLETIONS
    }
}
