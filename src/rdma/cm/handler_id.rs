// SPDX-License-Identifier: GPL-2.0

//! The id of a connection during one of its events.

use core::ops::Deref;

use kernel::{
    error::to_result,
    prelude::*, //
};

use super::{
    connection_queue_pair::ConnectionQueuePair,
    id_ref::IdRef, //
};
use crate::{
    base::draining::{
        Draining,
        Handle, //
    },
    bindings, //
};

/// The id of a connection during one of its events.
///
/// A value of this type proves that the id's handler mutex is held. It has the operations that are
/// meant for handlers.
///
/// # Examples
///
/// ```no_run
/// # pub(super) trait Example {
/// fn event(
///     &self,
///     id: &mut HandlerId<'_, MessageQueuePair<MyEndpoint>>,
///     event: CmEvent<'_>,
/// ) {
///     if let CmEvent::AddressResolved = event {
///         let _ = id.resolve_route(2000);
///     }
/// }
/// # }
/// ```
///
/// Only a handler gets a value of this type, so this does not compile:
///
/// ```compile_fail,E0599
/// # let cm_id: CmId<MyConnection> = given();
/// // error[E0599]: no method named `resolve_route` found for struct `CmId`
/// cm_id.resolve_route(2000)?;
/// ```
///
/// A handler must not wait for the peer, so it cannot connect. [`ClientHandler::connect`] does:
///
/// ```compile_fail,E0599
/// # let id: &mut HandlerId<'_, MessageQueuePair<MyEndpoint>> = given();
/// // error[E0599]: no method named `connect` found for mutable reference `&mut HandlerId`
/// id.connect(b"private data")?;
/// ```
///
/// [`ClientHandler::connect`]: super::event::ClientHandler::connect
pub(crate) struct HandlerId<'a, Q: ConnectionQueuePair> {
    queue_pair: &'a Draining<Q>,
    id: IdRef<'a>,
}

impl<'a, Q: ConnectionQueuePair> Deref for HandlerId<'a, Q> {
    type Target = IdRef<'a>;

    fn deref(&self) -> &Self::Target {
        &self.id
    }
}

impl<'a, Q: ConnectionQueuePair> HandlerId<'a, Q> {
    /// Creates the value for one call of a handler. `queue_pair` is that of `id`, whose handler
    /// mutex is held.
    pub(super) fn new(queue_pair: &'a Draining<Q>, id: IdRef<'a>) -> Self {
        Self { queue_pair, id }
    }

    /// Returns a handle to the queue pair.
    pub(crate) fn queue_pair(&self) -> Handle<Q> {
        self.queue_pair.handle()
    }

    /// Makes the queue pair fail, if there is one, which flushes its Receives. Has no effect if
    /// something else is under way, or if the device refuses.
    pub(crate) fn flush_queue_pair(&mut self) {
        if let Some(queue_pair) = self.queue_pair.access() {
            queue_pair.fail_if_idle();
        }
    }

    /// Resolves the route, after the address was resolved, within `timeout_ms` milliseconds. If
    /// that fails, there is an event. May sleep.
    ///
    /// Fails with the error of rdma_cm.
    pub(crate) fn resolve_route(&mut self, timeout_ms: u32) -> Result {
        // SAFETY: By the type invariant of `IdRef` the id is valid.
        to_result(unsafe { bindings::rdma_resolve_route(self.as_ptr(), timeout_ms as usize) })
    }
}
