// SPDX-License-Identifier: GPL-2.0

//! Connection requests (REQ) of peers, after their event.

use core::{
    cell::Cell,
    ops::Deref,
    ptr::NonNull, //
};

use kernel::{
    error::to_result,
    impl_has_work,
    new_work,
    prelude::*,
    sync::Arc,
    workqueue::{
        Work,
        WorkItem, //
    }, //
};

use super::{
    cm_id::CmId,
    connection_queue_pair::{
        self,
        ConnectionQueuePair, //
    },
    context::Context,
    dispatch::connection_event,
    event::ConnectionHandler,
    id_ref::IdRef,
    parameters::Parameters, //
};
use crate::{
    base::{
        errno::errno,
        unload::Hold, //
    },
    bindings, //
};

/// The capacity for the private data of a request. The kernel's length is a `u8`.
const PRIVATE_DATA: usize = 255;

/// A connection request (REQ) of a peer, in the work that accepts it, or in the handler over
/// soft-iWARP.
///
/// Only [`Request::defer`](super::request::Request::defer) makes values of this type. The request
/// is rejected unless the function that gets the value accepts it.
///
/// # Examples
///
/// It is accepted once, so this does not compile:
///
/// ```compile_fail,E0382
/// # let (request, setup): (PendingRequest<'_>, Setup<MyEndpoint>) = given();
/// request.accept(PARAMETERS, MyConnection::new(), setup, b"")?;
/// // error[E0382]: use of moved value: `request`
/// request.accept(PARAMETERS, MyConnection::new(), setup, b"")?;
/// ```
///
/// The owner of the connection may destroy its id, after which its device may be removed, so this
/// does not compile:
///
/// ```compile_fail,E0505
/// # let (request, setup): (PendingRequest<'_>, Setup<MyEndpoint>) = given();
/// # let out: &mut dyn fmt::Write = given();
/// let port = request.port()?;
/// // error[E0505]: cannot move out of `request` because it is borrowed
/// request.accept(PARAMETERS, MyConnection::new(), setup, b"")?;
/// writeln!(out, "{}", port.name())?;
/// ```
///
/// # Invariants
///
/// As long as this is there, the id is that of a request, which nobody else accepts, and has no
/// queue pair. This task holds the handler mutex of the id if and only if `locked` is set. If
/// `accepted` is set, only the teardown of a context destroys the id.
pub(crate) struct PendingRequest<'a> {
    id: IdRef<'a>,
    private_data: &'a [u8],
    initiator_depth: u8,
    responder_resources: u8,
    hold: &'a Hold,
    accepted: &'a Cell<bool>,
    locked: bool,
}

impl<'a> Deref for PendingRequest<'a> {
    type Target = IdRef<'a>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.id
    }
}

impl<'a> PendingRequest<'a> {
    /// Creates the request of `id`. [`Self::accept`] sets `accepted` if it succeeds.
    ///
    /// # Safety
    ///
    /// As long as the value is there, `id` must be valid, that of a request that nobody else
    /// accepts, and without a queue pair, and this task must hold its handler mutex if and only if
    /// `locked` is set. If `accepted` is set, the caller and rdma_cm must not destroy the id.
    pub(super) unsafe fn new(
        id: NonNull<bindings::rdma_cm_id>,
        private_data: &'a [u8],
        (initiator_depth, responder_resources): (u8, u8),
        hold: &'a Hold,
        accepted: &'a Cell<bool>,
        locked: bool,
    ) -> Self {
        // INVARIANT: By the function's requirement.
        Self {
            // SAFETY: By the function's requirement the id is valid. The addresses and the device
            // of a request's id do not change.
            id: unsafe { IdRef::new(id) },
            private_data,
            initiator_depth,
            responder_resources,
            hold,
            accepted,
            locked,
        }
    }

    /// Returns the private data of the REQ as the transport delivers it: padded on InfiniBand and
    /// RoCE.
    #[inline]
    pub(crate) fn private_data(&self) -> &'a [u8] {
        self.private_data
    }

    /// Accepts the connection: makes its queue pair of `setup`, and sends a REP with
    /// `private_data`. `handler` handles the events of the connection, which may arrive before this
    /// returns. May sleep.
    ///
    /// Fails with `EMSGSIZE` if a REP cannot carry the private data, with `ENOMEM`, or with the
    /// error of rdma_cm or the device, such as `EINVAL` if the peer has given up. The request is
    /// rejected then.
    pub(crate) fn accept<H: ConnectionHandler>(
        self,
        parameters: Parameters,
        handler: H,
        setup: <H::QueuePair as ConnectionQueuePair>::Setup,
        private_data: &[u8],
    ) -> Result<CmId<H>> {
        let port = self.port()?;
        if private_data.len() > port.transport().reply_capacity() {
            return Err(errno(kernel::bindings::EMSGSIZE));
        }
        let mut answer = bindings::rdma_conn_param {
            private_data: private_data.as_ptr().cast(),
            private_data_len: private_data.len().try_into()?,
            initiator_depth: self.initiator_depth.min(port.max_initiator_depth()),
            responder_resources: self.responder_resources.min(port.max_responder_resources()),
            rnr_retry_count: parameters.rnr_retry_count,
            ..Default::default()
        };

        // SAFETY: By the type invariant the id is valid. If it is accepted below, the teardown of
        // the context destroys it. Otherwise the context is dropped before this returns.
        let context = unsafe {
            Context::new(
                self.id.as_non_null(),
                &parameters,
                None,
                handler,
                self.hold.clone(),
            )
        }?;
        let (place, id) = (&context.queue_pair, self.id.as_non_null());
        // SAFETY: By the type invariant the id is valid and has no queue pair yet. `place` is
        // drained before the id is destroyed: by the teardown, or when the context is dropped
        // before this returns.
        unsafe {
            connection_queue_pair::create(place, id, &port, parameters.owner, setup, self.hold)
        }?;
        if let Some(queue_pair) = place.access() {
            queue_pair.set_read_depth(answer.initiator_depth);
        }
        self.reply(&mut answer, &context)?;
        // SAFETY: The context was set as that of its id, and only this value is made of it:
        // `accepted` is set, so nobody else destroys the id.
        Ok(unsafe { CmId::from_context(context) })
    }

    /// Sends the REP and, if that succeeds, makes `context` that of the id.
    fn reply<H: ConnectionHandler>(
        &self,
        answer: &mut bindings::rdma_conn_param,
        context: &Arc<Context<H>>,
    ) -> Result {
        let id = self.id.as_ptr();

        if !self.locked {
            // SAFETY: By the type invariant the id is valid, and its handler mutex is not held by
            // this task.
            unsafe { bindings::rdma_lock_handler(id) };
        }
        // SAFETY: The id is valid, and its handler mutex is held. The parameters and the private
        // data are copied.
        let result = to_result(unsafe { bindings::rdma_accept(id, answer) });
        if result.is_ok() {
            // SAFETY: The id is valid, and its handler mutex, which is held, guards this member.
            unsafe { (*id).context = Arc::as_ptr(context).cast_mut().cast() };
            // SAFETY: As above. So rdma_cm calls the handler only after the mutex has been
            // released, with the context above. The caller, then the owner of the new `CmId`, and
            // then the teardown holds a reference to that until the id has been destroyed.
            unsafe { (*id).event_handler = Some(connection_event::<H>) };
            self.accepted.set(true);
        }
        if !self.locked {
            // SAFETY: It was locked above.
            unsafe { bindings::rdma_unlock_handler(id) };
        }
        result
    }
}

/// The work that accepts a request by calling `F`. It owns the id from the event on.
///
/// # Invariants
///
/// The id is that of a request, has no queue pair, and is valid until the work has run. Before
/// that, nobody else accepts or destroys it.
#[pin_data]
pub(super) struct RequestWork<F> {
    id: NonNull<bindings::rdma_cm_id>,
    private_data: [u8; PRIVATE_DATA],
    private_data_len: usize,
    initiator_depth: u8,
    responder_resources: u8,
    accept: Cell<Option<F>>,
    #[pin]
    work: Work<Self>,
    // Dropped last: until then the module stays.
    hold: Hold,
}

// SAFETY: An id belongs to no thread, and `F` is `Send`.
unsafe impl<F: Send> Send for RequestWork<F> {}

impl_has_work! {
    impl{F: FnOnce(PendingRequest<'_>) + Send + 'static} HasWork<Self> for RequestWork<F> {
        self.work
    }
}

impl<F> RequestWork<F>
where
    F: FnOnce(PendingRequest<'_>) + Send + 'static,
{
    /// Creates the work for `id`; copies at most 255 bytes of private data. `depths` are the
    /// initiator depth and the responder resources of the REQ.
    ///
    /// Fails with `ENOMEM`.
    ///
    /// # Safety
    ///
    /// `id` must be the valid id of a request, without a queue pair. Once the work is queued,
    /// nobody else may accept or destroy it.
    pub(super) unsafe fn new(
        id: NonNull<bindings::rdma_cm_id>,
        received: &[u8],
        (initiator_depth, responder_resources): (u8, u8),
        accept: F,
        hold: Hold,
    ) -> Result<Pin<KBox<Self>>> {
        let mut private_data = [0; PRIVATE_DATA];
        let private_data_len = received.len().min(PRIVATE_DATA);
        for (to, from) in private_data.iter_mut().zip(received) {
            *to = *from;
        }
        // INVARIANT: By the function's requirement.
        KBox::pin_init(
            pin_init!(Self {
                id,
                private_data,
                private_data_len,
                initiator_depth,
                responder_resources,
                accept: Cell::new(Some(accept)),
                work <- new_work!("RequestWork::work"),
                hold,
            }),
            GFP_KERNEL,
        )
    }
}

impl<F> WorkItem for RequestWork<F>
where
    F: FnOnce(PendingRequest<'_>) + Send + 'static,
{
    type Pointer = Pin<KBox<Self>>;

    fn run(this: Pin<KBox<Self>>) {
        let accepted = Cell::new(false);
        if let Some(accept) = this.accept.take() {
            let bytes = this.private_data.get(..this.private_data_len);
            let bytes = bytes.unwrap_or_default();
            let depths = (this.initiator_depth, this.responder_resources);
            // SAFETY: The id is that of a request, by the type invariant. The closure is called
            // once, and its argument does not outlive the call. This is a work, so the handler
            // mutex is not held by this task. If `accepted` is set, the id is not destroyed below.
            accept(unsafe {
                PendingRequest::new(this.id, bytes, depths, &this.hold, &accepted, false)
            });
        }
        if !accepted.get() {
            // Rejects the request. On iWARP devices other than siw, rdma_cm may still be unlocking
            // the id after its event (reports/cma-unlock-after-free.txt).
            // SAFETY: By the type invariant the id is valid, and nobody else destroys it: it has
            // not been accepted. It has no queue pair: `accept` has dropped that. This is a work,
            // not a handler of the id.
            unsafe { bindings::rdma_destroy_id(this.id.as_ptr()) };
        }
    }
}
