// SPDX-License-Identifier: GPL-2.0

//! The XIDs of the module's calls (RFC 5531, section 9).

use kernel::sync::atomic::{
    Atomic,
    Relaxed, //
};

use crate::{
    bindings::random,
    pure::wire::rpc_message, //
};

/// The XIDs of all calls that the module makes.
///
/// A call's XID is unique among the outstanding calls of its requester, on all connections (RFC
/// 8167, section 2.4). The numbers of calls begin at random when the module is loaded, and go on
/// over all connections, because a server may answer a call from its cache that has the XID of a
/// call on an earlier connection, even of another boot.
pub(super) struct Xids(
    /// The number of the next call.
    Atomic<u32>,
);

impl Xids {
    pub(super) fn new() -> Self {
        Self(Atomic::new(random()))
    }

    /// Returns an XID that none of the 2^32 - 1 calls before had.
    pub(super) fn next(&self) -> u32 {
        rpc_message::xid(self.0.fetch_add(1, Relaxed))
    }
}
