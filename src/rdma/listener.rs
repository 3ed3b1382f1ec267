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
    address::RawAddress,
    context::create_id,
    errno,
    net::Net,
    request::Request,
    unload::Hold, //
};
use crate::bindings;

/// Handles the events of a listening id.
///
/// # Examples
///
/// ```no_run
/// # struct MyServer {
/// #     queue: Arc<Queue>,
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
    /// A peer asks for a connection. A request that is dropped unanswered is rejected.
    ///
    /// Runs with the handler mutexes of the listening id and of the new one held; may sleep.
    fn connect_request(this: ArcBorrow<'_, Self>, request: Request<'_>);

    /// The device that the listening id is bound to is going away, and waits for the id to be
    /// dropped. Runs with the id's handler mutex held, so must leave that to somebody else.
    fn device_removed(this: ArcBorrow<'_, Self>);
}

/// A listening id, as its owner holds it.
///
/// Listening has its own type: a listener does not connect, and a connection's id does not listen.
/// Dropping it waits for its handlers. It must not be dropped in one of them, nor with a lock held
/// that they take.
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
    /// Listens at `address` of `net`. Process context.
    ///
    /// The resource tracker lists the id under the name `owner`. Requests may arrive before this
    /// returns. Fails with the error of rdma_cm, such as `EADDRINUSE`.
    pub(crate) fn new(
        net: &Net,
        owner: &'static CStr,
        handler: Arc<L>,
        address: SocketAddr,
        backlog: c_int,
    ) -> Result<Self> {
        let hold = Hold::new()?;
        let context = Arc::as_ptr(&handler).cast_mut().cast();
        // SAFETY: The handler, which the returned value holds, outlives the id.
        let id = unsafe { create_id(net, owner, Some(listen_event::<L>), context) }?;
        // INVARIANT: Made above.
        let this = Self {
            id,
            _handler: handler,
            _hold: hold,
        };

        let unavailable = errno(kernel::bindings::EADDRNOTAVAIL);
        match this.bind(address) {
            // rdma_cm returns this error, too, where one of two addresses that share a port is the
            // wildcard.
            Err(error) if error == unavailable => {
                let any_port = SocketAddr::new(address.ip(), 0);
                this.bind(any_port)?;
                return Err(errno(kernel::bindings::EADDRINUSE));
            }
            result => result?,
        }
        // SAFETY: The id is valid.
        to_result(unsafe { bindings::rdma_listen(id.as_ptr(), backlog) })?;
        Ok(this)
    }

    fn bind(&self, address: SocketAddr) -> Result {
        let mut address = RawAddress::from(address);
        // SAFETY: By the type invariant the id is valid; the address is copied.
        to_result(unsafe { bindings::rdma_bind_addr(self.id.as_ptr(), address.as_mut_ptr()) })
    }
}

impl<L: ListenHandler> Drop for CmListener<L> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the id is ours. The function waits for a handler that runs.
        unsafe { bindings::rdma_destroy_id(self.id.as_ptr()) };
    }
}

/// Handles an event of a listening id, or of a new one that a peer's request has made.
///
/// # Safety
///
/// Called only by rdma_cm, with an id whose context is an `L`, and its handler mutex held.
unsafe extern "C" fn listen_event<L: ListenHandler>(
    id: *mut bindings::rdma_cm_id,
    event: *mut bindings::rdma_cm_event,
) -> c_int {
    // SAFETY: rdma_cm calls with an id.
    let id = unsafe { NonNull::new_unchecked(id) };
    // SAFETY: By the function's requirement the id is valid.
    let context = unsafe { (*id.as_ptr()).context };
    // SAFETY: By the function's requirement the context is one, from an `Arc` that is held until
    // the listening id has been destroyed, which waits for its handlers.
    let handler = unsafe { ArcBorrow::from_raw(context.cast::<L>()) };
    // SAFETY: By the function's requirement the event is valid during the call.
    let event = unsafe { &*event };

    match event.event {
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_CONNECT_REQUEST => {
            let accepted = Cell::new(false);
            // SAFETY: The event is a request for the new id, whose handler mutex is held. The
            // return value below has rdma_cm keep the id where it was accepted.
            let request = unsafe { Request::new(id, event, &accepted) };
            L::connect_request(handler, request);
            // Not zero has rdma_cm destroy the new id, which rejects the request.
            c_int::from(!accepted.get())
        }
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_DEVICE_REMOVAL => {
            L::device_removed(handler);
            0
        }
        _ => 0,
    }
}
