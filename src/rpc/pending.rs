// SPDX-License-Identifier: GPL-2.0

//! Calls that wait for their replies.

use kernel::prelude::*;

use crate::rdma::arrival::Arrival;

/// The reply that a call waits for.
pub(super) struct Pending {
    pub(super) xid: u32,
    pub(super) version: u32,
    /// Has room for any message; holds the reply once that has arrived.
    pub(super) octets: KVec<u8>,
    /// How the reply arrived; [`None`] until then.
    pub(super) arrival: Option<Arrival>,
}
