// SPDX-License-Identifier: GPL-2.0

//! Ids of connections.

use core::ptr::NonNull;

use super::{
    context::from_raw,
    event::{
        ConnectionHandler,
        ContextOf, //
    }, //
};
use crate::{
    base::draining::Handle,
    rdma::verbs::queue_pair::QueuePair, //
};

/// The id of a connection, as its owner holds it.
///
/// A client gets one from [`UnresolvedId`](super::unresolved_id::UnresolvedId), a server from
/// [`Request::accept`](super::request::Request::accept). Dropping it ends the connection, destroys
/// the id, and drops the handler, in this order and in a work queue of this layer. It may be
/// dropped in any context, handlers included. Unloading waits until it is dropped: see
/// [`UnloadGuard`](crate::base::unload::UnloadGuard).
///
/// # Examples
///
/// ```no_run
/// # let (net, address): (Net, SocketAddr) = given();
/// let id = UnresolvedId::new(&net, PARAMETERS, MyConnection::new())?;
/// let id = id.resolve_address(None, address, 2000)?;
/// // Events arrive at `MyConnection::event`. When the connection is established:
/// if let Some(queue_pair) = id.queue_pair().access() {
///     queue_pair.send(1024, None, |message| Ok(message.append(4)?.copy_from_slice(b"ping")))?;
/// }
/// drop(id);
/// ```
///
/// # Invariants
///
/// The pointer is to a pinned [`Context`](super::context::Context), which this owns. It is the
/// context of its id.
pub(crate) struct CmId<H: ConnectionHandler>(NonNull<ContextOf<H>>);

// SAFETY: The context is `Send`.
unsafe impl<H: ConnectionHandler> Send for CmId<H> {}
// SAFETY: The context is `Sync`.
unsafe impl<H: ConnectionHandler> Sync for CmId<H> {}

impl<H: ConnectionHandler> CmId<H> {
    /// # Safety
    ///
    /// `context` must come from [`into_raw`](super::context::into_raw), be the context of its id,
    /// and not be used to make another [`CmId`].
    pub(in crate::rdma) unsafe fn from_context(context: NonNull<ContextOf<H>>) -> Self {
        // INVARIANT: By the function's requirement.
        Self(context)
    }

    pub(in crate::rdma) fn context(&self) -> &ContextOf<H> {
        // SAFETY: By the type invariant the context is valid.
        unsafe { self.0.as_ref() }
    }

    /// Returns a handle to its queue pair. The queue pair is there from the event in which it is
    /// made until this is dropped.
    pub(crate) fn queue_pair(&self) -> Handle<QueuePair<H::Completions>> {
        self.context().queue_pair.handle()
    }
}

impl<H: ConnectionHandler> Drop for CmId<H> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant this owns the context, which came from `into_raw`. This
        // value is not used again, so the context is taken back once.
        let context = unsafe { from_raw(self.0) };
        // The work may run, and drop the hold of the context, before the call has returned.
        let hold = context.hold.clone();
        hold.enqueue(context);
    }
}
