// SPDX-License-Identifier: GPL-2.0

//! Ids of connections.

use core::mem::ManuallyDrop;

use kernel::sync::Arc;

use super::{
    context::Context,
    event::ConnectionHandler, //
};
use crate::base::draining::Handle;

/// The id of a connection, as its owner holds it.
///
/// A client gets one from [`UnresolvedId`](super::unresolved_id::UnresolvedId), a server from
/// [`PendingRequest::accept`](super::pending_request::PendingRequest::accept). Dropping it only
/// queues a work of this layer, so it may be dropped in any context, handlers included. The work
/// ends the connection, destroys the id, and drops its reference on the handler, in this order. If
/// the work that calls [`ClientHandler::connect`](super::event::ClientHandler::connect) has not
/// returned by then, that work drops the last reference. So dropping the handler must not wait for
/// its `connect_queue`. Unloading waits until the id is destroyed: see
/// [`UnloadGuard`](crate::base::unload::UnloadGuard).
///
/// # Examples
///
/// ```no_run
/// # let (net, address): (ARef<Net>, SocketAddr) = given();
/// let id = UnresolvedId::new(&net, CLIENT_PARAMETERS, MyConnection::new())?;
/// let id = id.resolve_address(None, address, 2000)?;
/// // Events arrive at `MyConnection::event`. When the connection is established:
/// # let may_wait: &MayWait = given();
/// # wait_established()?;
/// if let Some(queue_pair) = id.queue_pair().access(may_wait) {
///     queue_pair.send(1024, None, |message| {
///         message.append(4)?.copy_from_slice(b"ping");
///         Ok(())
///     })?;
/// }
/// drop(id);
/// ```
///
/// Nothing forces safe code to drop it. The id stays then, with all that its handler uses, the code
/// of the module included: unloading does not end, and nothing is freed too early.
///
/// ```no_run
/// # let id: CmId<MyConnection> = given();
/// core::mem::forget(id);
/// ```
///
/// # Invariants
///
/// The context is that of its id. No teardown of it has been queued.
pub(crate) struct CmId<H: ConnectionHandler>(ManuallyDrop<Arc<Context<H>>>);

impl<H: ConnectionHandler> CmId<H> {
    /// # Safety
    ///
    /// `context` must be the context of its id, and not be used to make another [`CmId`].
    pub(super) unsafe fn from_context(context: Arc<Context<H>>) -> Self {
        // INVARIANT: By the function's requirement. Only `drop` queues the teardown.
        Self(ManuallyDrop::new(context))
    }

    pub(super) fn context(&self) -> &Context<H> {
        &self.0
    }

    /// Returns a handle to its queue pair. The queue pair is there from the time at which it is
    /// made until this is dropped.
    pub(crate) fn queue_pair(&self) -> Handle<H::QueuePair> {
        self.0.queue_pair.handle()
    }
}

impl<H: ConnectionHandler> Drop for CmId<H> {
    fn drop(&mut self) {
        // SAFETY: The value is not used again.
        let context = unsafe { ManuallyDrop::take(&mut self.0) };
        // The work gets the reference, and drops the handler. This function does not drop it.
        context.tear_down();
    }
}
