// SPDX-License-Identifier: GPL-2.0

//! Connection requests (REQ) of peers, during their event.

use core::{
    cell::Cell,
    ops::Deref,
    ptr::{
        self,
        NonNull, //
    }, //
};

use kernel::prelude::*;

use super::{
    dispatch::ignore_event,
    event::private_data,
    id_ref::IdRef,
    pending_request::{
        PendingRequest,
        RequestWork, //
    }, //
};
use crate::{
    base::{
        unload::Hold,
        work_queue::WorkQueue, //
    },
    bindings, //
};

/// A connection request (REQ) of a peer, during the event CONNECT_REQUEST.
///
/// It is rejected, or a work accepts it later. Dropping it rejects it, too. [`Self::defer`] names
/// an exception.
///
/// # Examples
///
/// ```no_run
/// # pub(super) struct MyServer {
/// #     pub(super) queue: Arc<WorkQueue>,
/// # }
/// # impl MyServer {
/// #     fn keep(&self, id: CmId<MyConnection>) { keep(id) }
/// # }
/// # pub(super) struct MyHandler {
/// #     pub(super) server: Arc<MyServer>,
/// # }
/// # impl ListenHandler for MyHandler {
/// #     fn device_removed(&self) {}
/// fn connect_request(&self, request: Request<'_>) {
///     let server = self.server.clone();
///     let result = request.defer(&server.queue.clone(), move |request| {
///         let accepted = MyEndpoint::setup().and_then(|setup| {
///             request.accept(PARAMETERS, MyConnection::new(), setup, b"private data")
///         });
///         match accepted {
///             Ok(id) => server.keep(id),
///             Err(error) => pr_info!("not accepted: {error:?}\n"),
///         }
///     });
///     if let Err(error) = result {
///         pr_info!("no memory for a request: {error:?}\n");
///     }
/// }
/// # }
/// ```
///
/// `defer` and `reject` consume the request, so that a second answer does not compile:
///
/// ```compile_fail,E0382
/// # let request: Request<'_> = given();
/// // error[E0382]: use of moved value: `request`
/// request.reject();
/// request.reject();
/// ```
///
/// A handler should not make a queue pair, so it cannot accept:
///
/// ```compile_fail,E0599
/// # let (request, setup): (Request<'_>, Setup<MyEndpoint>) = given();
/// // error[E0599]: no method named `accept` found for struct `Request`
/// request.accept(PARAMETERS, MyConnection::new(), setup, b"")?;
/// ```
pub(crate) struct Request<'a> {
    id: IdRef<'a>,
    private_data: &'a [u8],
    initiator_depth: u8,
    responder_resources: u8,
    deferred: &'a Cell<bool>,
    hold: &'a Hold,
}

impl<'a> Deref for Request<'a> {
    type Target = IdRef<'a>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.id
    }
}

impl<'a> Request<'a> {
    /// Creates the request of `event`, whose new id is `id`. [`Self::defer`] sets `deferred` if
    /// the id has another owner afterwards, which gets a hold of its own from `hold`.
    ///
    /// # Safety
    ///
    /// For `'a`, `event` must be a valid CONNECT_REQUEST, `id` must be its valid new id, and the
    /// handler mutex of `id` must be held. If `deferred` is set, the id must not be destroyed by
    /// the caller, nor by rdma_cm after the handler has returned.
    pub(super) unsafe fn new(
        id: NonNull<bindings::rdma_cm_id>,
        event: &'a bindings::rdma_cm_event,
        deferred: &'a Cell<bool>,
        hold: &'a Hold,
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
            deferred,
            hold,
        }
    }

    /// Has a work of `queue` call `accept`, because the handler should not wait for memory. The
    /// request is rejected unless `accept` accepts it.
    ///
    /// Over soft-iWARP (siw), `accept` has been called when this returns. siw has two faults while
    /// it accepts: it may overlook the first message (reports/siw-first-message.txt), and another
    /// one is withheld (SECURITY.md). Clients on this host meet neither: iw_cm reports their events
    /// in the ordered queue in which this handler runs, so only after it has returned.
    ///
    /// Fails with `ENODEV` if the protocol of the port is unknown, and with `ENOMEM`. The request
    /// is rejected then.
    pub(crate) fn defer<F>(self, queue: &WorkQueue, accept: F) -> Result
    where
        F: FnOnce(PendingRequest<'_>) + Send + 'static,
    {
        let id = self.id.as_non_null();
        let depths = (self.initiator_depth, self.responder_resources);
        if self.port()?.is_siw() {
            // SAFETY: The id is that of a request, and its handler mutex is held. If it is
            // accepted, `deferred` is set, so that nobody else destroys it.
            accept(unsafe {
                PendingRequest::new(
                    id,
                    self.private_data,
                    depths,
                    self.hold,
                    self.deferred,
                    true,
                )
            });
            return Ok(());
        }
        let hold = self.hold.clone();
        // SAFETY: The id is valid. Only the work destroys it, once that is queued.
        let work = unsafe { RequestWork::new(id, self.private_data, depths, accept, hold) }?;

        // SAFETY: The id is valid, and its handler mutex, which is held, guards this member.
        unsafe { (*id.as_ptr()).context = ptr::null_mut() };
        // SAFETY: As above. The handler expects no context.
        unsafe { (*id.as_ptr()).event_handler = Some(ignore_event) };
        self.deferred.set(true);
        queue.enqueue(work);
        Ok(())
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
