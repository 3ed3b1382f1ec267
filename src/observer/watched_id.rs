// SPDX-License-Identifier: GPL-2.0

//! Tells whether the peer ended an iWARP connection of the module's own. rdma_cm reports
//! DISCONNECTED both when FIN or RST has arrived and when the device has closed the connection for
//! a reason of its own. The observer's probe on the iWARP CM sees the difference.

use core::ptr::NonNull;

use crate::bindings;

/// An id of an iWARP device: the disconnect of its peer is noted until this is dropped.
///
/// # Invariants
///
/// The pointer was returned by `rpcrdma_cm_watch`, and belongs to this value.
pub(crate) struct WatchedId(NonNull<bindings::rpcrdma_cm_watched_id>);

// SAFETY: The C functions take the pointer in any thread. They use the address of the id only to
// compare it.
unsafe impl Send for WatchedId {}

// SAFETY: As for `Send`. Through a shared reference, only `peer_closed` is read, with
// READ_ONCE.
unsafe impl Sync for WatchedId {}

impl WatchedId {
    /// Begins to note whether the peer of `id` disconnects, an id of an iWARP device whose
    /// connection is not made yet; process context. Returns [`None`] if the probe is not
    /// registered, or if there is no memory.
    pub(crate) fn new(id: *const bindings::rdma_cm_id) -> Option<Self> {
        // SAFETY: The function takes any pointer: it keeps the address of the id to compare it.
        let watched = unsafe { bindings::rpcrdma_cm_watch(id) };
        // INVARIANT: The function has returned it, and nothing else owns it.
        NonNull::new(watched).map(Self)
    }

    /// Whether the peer may have ended the connection, after DISCONNECTED; any context. Also true
    /// if the probe has been removed.
    pub(crate) fn peer_may_have_disconnected(&self) -> bool {
        let watched = self.0.as_ptr();
        // SAFETY: By the type invariant the pointer is one that the function takes.
        unsafe { bindings::rpcrdma_cm_peer_may_have_disconnected(watched) }
    }
}

impl Drop for WatchedId {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the pointer is one that the function takes, and nothing
        // uses it afterwards.
        unsafe { bindings::rpcrdma_cm_unwatch(self.0.as_ptr()) }
    }
}
