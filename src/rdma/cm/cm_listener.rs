// SPDX-License-Identifier: GPL-2.0

//! Listening ids.

use core::{
    cell::Cell,
    net::SocketAddr,
    ptr::NonNull, //
};

use kernel::{
    error::to_result,
    ffi::c_int,
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    }, //
};

use super::{
    context::create_id,
    request::Request, //
};
use crate::{
    base::{
        address::RawAddress,
        errno::errno,
        net::Net,
        unload::Hold, //
    },
    bindings, //
};

/// Handles the events of a listening id.
///
/// # Examples
///
/// ```no_run
/// # struct MyServer {
/// #     queue: Arc<WorkQueue>,
/// #     work: Arc<MyWork>,
/// # }
/// impl ListenHandler for MyServer {
///     fn connect_request(_this: ArcBorrow<'_, Self>, request: Request<'_>) {
///         request.reject();
///     }
///
///     fn device_removed(this: ArcBorrow<'_, Self>) {
///         // The work drops the listener.
///         let _ = this.queue.enqueue(this.work.clone());
///     }
/// }
/// ```
pub(crate) trait ListenHandler: Send + Sync + 'static {
    /// Handles the request of a peer for a connection. A request that is dropped unanswered is
    /// rejected.
    ///
    /// Called with the handler mutexes of the listening id and of the new one held, in a queue in
    /// which rdma_cm handles the events of the whole machine. So it must not wait for much memory:
    /// see [`Request::defer`].
    fn connect_request(this: ArcBorrow<'_, Self>, request: Request<'_>);

    /// Handles the removal of the device that the listening id is bound to. The removal waits until
    /// the listener is dropped.
    ///
    /// Called with the handler mutex of the listening id held; may sleep. It must not drop the
    /// listener itself, but have a work do that.
    fn device_removed(this: ArcBorrow<'_, Self>);
}

/// A listening id, as its owner holds it.
///
/// Listening ids have a type of their own: a listener does not connect, and the id of a connection
/// does not listen. Dropping a listener waits for its handlers. It must not be dropped in one of
/// them, nor with a lock held that they take.
///
/// # Examples
///
/// ```no_run
/// # let (net, address): (Net, SocketAddr) = given();
/// let server = Arc::new(MyServer, GFP_KERNEL)?;
/// let listener = CmListener::new(&net, c"my_module", server, address, 128)?;
/// // Requests arrive at `MyServer::connect_request` until:
/// drop(listener);
/// ```
///
/// # Invariants
///
/// The pointer is to an id that this owns. The id's context is `_handler`.
pub(crate) struct CmListener<L: ListenHandler> {
    id: NonNull<bindings::rdma_cm_id>,
    _handler: Arc<L>,
    // Dropped last: until then the module stays.
    _hold: Hold,
}

// SAFETY: An id belongs to no thread, and the handler is `Send` and `Sync`.
unsafe impl<L: ListenHandler> Send for CmListener<L> {}
// SAFETY: As above.
unsafe impl<L: ListenHandler> Sync for CmListener<L> {}

impl<L: ListenHandler> CmListener<L> {
    /// Listens at `address` of `net`; process context. The resource tracker lists the id under the
    /// name `owner`. On iWARP, up to `backlog` requests wait to be handled. Requests may arrive
    /// before this returns.
    ///
    /// Fails with `ESHUTDOWN` without an [`UnloadGuard`](crate::base::unload::UnloadGuard), with
    /// `ENODEV` if the device was removed meanwhile, otherwise with the error of rdma_cm, such as
    /// `EADDRINUSE`.
    pub(crate) fn new(
        net: &Net,
        owner: &'static CStr,
        handler: Arc<L>,
        address: SocketAddr,
        backlog: c_int,
    ) -> Result<Self> {
        let hold = Hold::new()?;
        let context = Arc::as_ptr(&handler).cast_mut().cast();
        // SAFETY: `listen_event::<L>` expects an `L`, which `handler` points to. The returned value
        // holds the handler, and destroys the id before it drops the handler.
        let id = unsafe { create_id(net, owner, Some(listen_event::<L>), context) }?;
        // INVARIANT: The id was made above, and its context is `handler`.
        let this = Self {
            id,
            _handler: handler,
            _hold: hold,
        };

        let unavailable = errno(kernel::bindings::EADDRNOTAVAIL);
        match this.bind(address) {
            // rdma_cm also returns this error if another id has the port, and one of both has the
            // wildcard address.
            Err(error) if error == unavailable => {
                let any_port = SocketAddr::new(address.ip(), 0);
                this.bind(any_port)?;
                return Err(errno(kernel::bindings::EADDRINUSE));
            }
            result => result?,
        }
        // SAFETY: The id was made above, and nothing has destroyed it.
        match to_result(unsafe { bindings::rdma_listen(id.as_ptr(), backlog) }) {
            // The id is bound, so only the removal of its device can have changed its state.
            Err(error) if error == EINVAL => Err(ENODEV),
            result => result.map(|()| this),
        }
    }

    fn bind(&self, address: SocketAddr) -> Result {
        let mut address = RawAddress::from(address);
        // SAFETY: By the type invariant the id is valid; the address is copied.
        to_result(unsafe { bindings::rdma_bind_addr(self.id.as_ptr(), address.as_mut_ptr()) })
    }
}

impl<L: ListenHandler> Drop for CmListener<L> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant this owns the id. The function waits for a handler that
        // runs, and no handler runs afterwards, so the handler can be dropped.
        unsafe { bindings::rdma_destroy_id(self.id.as_ptr()) };
    }
}

/// Handles an event of a listening id, or the request of a peer, for which rdma_cm has made a new
/// id with the same context. Returns 0 if rdma_cm is to keep the id, otherwise 1.
///
/// # Safety
///
/// Called only by rdma_cm, with an id whose context is an `L`, and with its handler mutex held.
unsafe extern "C" fn listen_event<L: ListenHandler>(
    id: *mut bindings::rdma_cm_id,
    event: *mut bindings::rdma_cm_event,
) -> c_int {
    // SAFETY: rdma_cm passes a valid id, which is not NULL.
    let id = unsafe { NonNull::new_unchecked(id) };
    // SAFETY: rdma_cm passes a valid id, and the handler mutex, which is held, guards this member.
    let context = unsafe { (*id.as_ptr()).context };
    // SAFETY: By the function's requirement the context is an `L`. It is that of an `Arc` that is
    // held until the listening id has been destroyed, which waits for its handlers.
    let handler = unsafe { ArcBorrow::from_raw(context.cast::<L>()) };
    // SAFETY: rdma_cm passes an event that is valid during the call.
    let event = unsafe { &*event };

    match event.event {
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_CONNECT_REQUEST => {
            let deferred = Cell::new(false);
            // SAFETY: The event is a CONNECT_REQUEST, and `id` is its new id, whose handler mutex
            // is held. If the request is deferred, the value returned below makes rdma_cm keep the
            // id.
            let request = unsafe { Request::new(id, event, &deferred) };
            L::connect_request(handler, request);
            // With 1, rdma_cm destroys the new id, which rejects the request.
            c_int::from(!deferred.get())
        }
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_DEVICE_REMOVAL => {
            L::device_removed(handler);
            0
        }
        _ => 0,
    }
}
