// SPDX-License-Identifier: GPL-2.0

//! Connection requests (REQ) of peers.

use core::{
    cell::Cell,
    ops::Deref,
    ptr::{
        self,
        NonNull, //
    }, //
};

use kernel::{
    error::to_result,
    prelude::*,
    sync::Arc, //
};

use super::{
    cm_id::CmId,
    context::Context,
    dispatch::connection_event,
    event::{
        private_data,
        ConnectionHandler, //
    },
    id_ref::IdRef, //
};
use crate::{
    base::errno::errno,
    bindings,
    rdma::verbs::{
        capacity::Capacity,
        parameters::Parameters,
        queue_pair::QueuePair, //
    }, //
};

/// A connection request (REQ) of a peer, during the event CONNECT_REQUEST.
///
/// A request is accepted or rejected once. Dropping it rejects it, too.
///
/// # Examples
///
/// ```no_run
/// # struct MyServer {
/// #     capacity: Capacity,
/// # }
/// # impl MyServer {
/// #     fn keep(&self, _: CmId<MyConnection>) {}
/// # }
/// # impl ListenHandler for MyServer {
/// #     fn device_removed(_: ArcBorrow<'_, Self>) {}
/// fn connect_request(this: ArcBorrow<'_, Self>, request: Request<'_>) {
///     let capacity = this.capacity;
///     let endpoint = MyEndpoint::new();
///     match request.accept(PARAMETERS, MyConnection::new(), endpoint, capacity, b"private data") {
///         Ok(id) => this.keep(id),
///         Err(error) => pr_info!("not accepted: {error:?}\n"),
///     }
/// }
/// # }
/// ```
///
/// `accept` and `reject` consume the request, so that a second answer does not compile:
///
/// ```compile_fail,E0382
/// # let request: Request<'_> = given();
/// // error[E0382]: use of moved value: `request`
/// request.reject();
/// request.reject();
/// ```
pub(crate) struct Request<'a> {
    id: IdRef<'a>,
    private_data: &'a [u8],
    initiator_depth: u8,
    responder_resources: u8,
    accepted: &'a Cell<bool>,
}

impl<'a> Deref for Request<'a> {
    type Target = IdRef<'a>;

    fn deref(&self) -> &Self::Target {
        &self.id
    }
}

impl<'a> Request<'a> {
    /// Makes the request of `event`, whose new id is `id`. [`Self::accept`] sets `accepted` if it
    /// succeeds.
    ///
    /// # Safety
    ///
    /// For `'a`, `event` must be a valid CONNECT_REQUEST, `id` must be its valid new id, and the
    /// handler mutex of `id` must be held. If `accepted` is set, the id must not be destroyed by
    /// the caller, nor by rdma_cm after the handler has returned.
    pub(in crate::rdma) unsafe fn new(
        id: NonNull<bindings::rdma_cm_id>,
        event: &'a bindings::rdma_cm_event,
        accepted: &'a Cell<bool>,
    ) -> Self {
        // SAFETY: By the function's requirement the event carries connection parameters.
        let parameters = unsafe { &event.param.conn };
        Self {
            // SAFETY: By the function's requirement the id is valid, and its handler mutex is held,
            // for `'a`.
            id: unsafe { IdRef::new(id) },
            // SAFETY: By the function's requirement the event carries connection parameters, and is
            // valid for `'a`.
            private_data: unsafe { private_data(event) },
            initiator_depth: parameters.initiator_depth,
            responder_resources: parameters.responder_resources,
            accepted,
        }
    }

    /// Returns the private data of the REQ as the transport delivers it: padded on InfiniBand and
    /// RoCE.
    pub(crate) fn private_data(&self) -> &'a [u8] {
        self.private_data
    }

    /// Accepts the connection: makes its queue pair, posts the Receives, and sends a REP with
    /// `private_data`. `handler` handles the events of the connection, and `completions` the
    /// completions of the queue pair. May sleep.
    ///
    /// Fails with `EMSGSIZE` if a REP cannot carry the private data, with `ESHUTDOWN` without an
    /// [`UnloadGuard`](crate::base::unload::UnloadGuard), with `ENOMEM`, or with the error of
    /// rdma_cm or the device. The request is rejected then.
    pub(crate) fn accept<H: ConnectionHandler>(
        self,
        parameters: Parameters,
        handler: H,
        completions: Arc<H::Completions>,
        capacity: Capacity,
        private_data: &[u8],
    ) -> Result<CmId<H>> {
        let device = self.device()?;
        if private_data.len() > device.transport().reply_capacity() {
            return Err(errno(kernel::bindings::EMSGSIZE));
        }
        let mut answer = bindings::rdma_conn_param {
            private_data: private_data.as_ptr().cast(),
            private_data_len: private_data.len().try_into()?,
            initiator_depth: self.initiator_depth.min(device.max_initiator_depth()),
            responder_resources: self
                .responder_resources
                .min(device.max_responder_resources()),
            rnr_retry_count: parameters.rnr_retry_count,
            ..Default::default()
        };

        // SAFETY: The id is valid during the event. If it is accepted below, the teardown of the
        // context destroys it. Otherwise the context is dropped before this returns.
        let context = unsafe { Context::new(self.id.as_non_null(), parameters, handler) }?;
        let (place, id) = (&context.queue_pair, self.id.as_non_null());
        // SAFETY: The id is valid and has no queue pair yet. `place` is drained before the id is
        // destroyed: by the teardown, or when the context is dropped before this returns.
        unsafe { QueuePair::create(place, id, device, completions, capacity, parameters) }?;
        if let Some(queue_pair) = place.access() {
            queue_pair.set_read_depth(answer.initiator_depth);
        }
        // SAFETY: By the type invariant of `IdRef` the id is valid, and its handler mutex is held.
        // The parameters and the private data are copied.
        to_result(unsafe { bindings::rdma_accept(self.as_ptr(), &mut answer) })?;

        let pointer = Arc::as_ptr(&context).cast_mut().cast();
        // SAFETY: The id is valid, and its handler mutex, which is held, guards this member.
        unsafe { (*self.as_ptr()).context = pointer };
        // SAFETY: The id is valid, and its handler mutex, which is held, guards this member. So
        // rdma_cm calls the handler only after this handler has returned, with the context above.
        unsafe { (*self.as_ptr()).event_handler = Some(connection_event::<H>) };
        self.accepted.set(true);
        // SAFETY: The context was set as that of its id, and only this value is made of it:
        // `accepted` is set, so rdma_cm does not destroy the id.
        Ok(unsafe { CmId::from_context(context) })
    }

    /// Rejects the connection (REJ) with the reason that resources are exhausted.
    pub(crate) fn reject(self) {
        // A failure has no consequence: rdma_cm destroys the id in any case, and sends a REJ then.
        // SAFETY: By the type invariant of `IdRef` the id is valid.
        unsafe {
            bindings::rdma_reject(
                self.as_ptr(),
                ptr::null(),
                0,
                bindings::ib_cm_rej_reason_IB_CM_REJ_NO_RESOURCES as u8,
            )
        };
    }
}
