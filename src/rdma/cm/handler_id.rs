// SPDX-License-Identifier: GPL-2.0

//! The id of a connection during one of its events.

use core::{
    ops::Deref,
    ptr::NonNull, //
};

use kernel::{
    error::to_result,
    prelude::*,
    sync::Arc, //
};

use super::{
    context::Context,
    id_ref::IdRef, //
};
use crate::{
    base::{
        draining::{
            Draining,
            Handle, //
        },
        errno::errno, //
    },
    bindings,
    rdma::verbs::{
        capacity::Capacity,
        completion_handler::CompletionHandler,
        parameters::Parameters,
        queue_pair::QueuePair, //
    }, //
};

/// The id of a connection during one of its events.
///
/// A value of this type proves that the id's handler mutex is held. It has the operations that are
/// legal only with the mutex held. All of them may sleep.
///
/// # Examples
///
/// ```no_run
/// # trait Example {
/// fn event(&self, id: &mut HandlerId<'_, MyEndpoint>, event: CmEvent<'_>) {
///     if let CmEvent::RouteResolved = event {
///         let _ = id.connect(b"private data");
///     }
/// }
/// # }
/// ```
///
/// Only a handler gets a value of this type, so the operations cannot be called without the mutex,
/// and this does not compile:
///
/// ```compile_fail,E0599
/// # let cm_id: CmId<MyConnection> = given();
/// // error[E0599]: no method named `connect` found for struct `CmId`
/// cm_id.connect(b"private data")?;
/// ```
///
/// # Invariants
///
/// `queue_pair` is where the id's queue pair is put. It is drained before the id is destroyed.
pub(crate) struct HandlerId<'a, C: CompletionHandler> {
    queue_pair: &'a Draining<QueuePair<C>>,
    parameters: Parameters,
    id: IdRef<'a>,
}

impl<'a, C: CompletionHandler> Deref for HandlerId<'a, C> {
    type Target = IdRef<'a>;

    fn deref(&self) -> &Self::Target {
        &self.id
    }
}

impl<'a, C: CompletionHandler> HandlerId<'a, C> {
    /// Makes the value for one call of a handler.
    ///
    /// # Safety
    ///
    /// For `'a`, `id` must be valid, `context` must be its context, and its handler mutex must be
    /// held.
    pub(in crate::rdma) unsafe fn new<H>(
        context: &'a Context<H, C>,
        id: NonNull<bindings::rdma_cm_id>,
    ) -> Self {
        // INVARIANT: By the function's requirement. The context drains the queue pair.
        Self {
            queue_pair: &context.queue_pair,
            parameters: context.parameters,
            // SAFETY: By the function's requirement the id is valid, and its handler mutex is held,
            // for `'a`.
            id: unsafe { IdRef::new(id) },
        }
    }

    /// Makes the queue pair and posts its Receives, after the address was resolved. `handler`
    /// handles the completions.
    ///
    /// Fails with `EEXIST` if the id has, or had, a queue pair, with `ENODEV` if the id is not
    /// bound to a device, with `ENOMEM`, or with the error of the device.
    pub(crate) fn create_queue_pair(&mut self, capacity: Capacity, handler: Arc<C>) -> Result {
        let device = self.device()?;
        let (place, id) = (self.queue_pair, self.as_non_null());
        // SAFETY: The id is valid. By the type invariant its queue pair is put into `place` only,
        // and `place` is drained before the id is destroyed.
        unsafe { QueuePair::create(place, id, device, handler, capacity, self.parameters) }
    }

    /// Returns a handle to the queue pair.
    pub(crate) fn queue_pair(&self) -> Handle<QueuePair<C>> {
        self.queue_pair.handle()
    }

    /// Makes the queue pair fail, if there is one, which flushes its Receives. Has no effect if an
    /// operation is under way, or if the device refuses.
    pub(crate) fn flush_queue_pair(&mut self) {
        if let Some(queue_pair) = self.queue_pair.access() {
            queue_pair.fail_if_idle();
        }
    }

    /// Resolves the route, after the address was resolved, within `timeout_ms` milliseconds. The
    /// result is an event.
    ///
    /// Fails with the error of rdma_cm.
    pub(crate) fn resolve_route(&mut self, timeout_ms: u32) -> Result {
        // SAFETY: By the type invariant of `IdRef` the id is valid.
        to_result(unsafe { bindings::rdma_resolve_route(self.as_ptr(), timeout_ms as usize) })
    }

    /// Sends a REQ to the peer, after the route was resolved.
    ///
    /// Fails with `EMSGSIZE` if a REQ cannot carry the private data, otherwise with the error of
    /// rdma_cm.
    pub(crate) fn connect(&mut self, private_data: &[u8]) -> Result {
        let device = self.device()?;
        if private_data.len() > device.transport().request_capacity() {
            return Err(errno(kernel::bindings::EMSGSIZE));
        }
        let mut parameters = bindings::rdma_conn_param {
            private_data: private_data.as_ptr().cast(),
            private_data_len: private_data.len().try_into()?,
            responder_resources: device.max_responder_resources(),
            initiator_depth: match self.parameters.reads {
                true => device.max_initiator_depth(),
                false => 0,
            },
            retry_count: self.parameters.retry_count,
            rnr_retry_count: self.parameters.rnr_retry_count,
            ..Default::default()
        };

        // SAFETY: By the type invariant of `IdRef` the id is valid, and its handler mutex is held.
        // The parameters and the private data are copied.
        to_result(unsafe { bindings::rdma_connect_locked(self.as_ptr(), &mut parameters) })
    }
}
