// SPDX-License-Identifier: GPL-2.0

//! Listening ids.

use core::{
    cell::Cell,
    mem::ManuallyDrop,
    net::SocketAddr,
    ptr::NonNull, //
};

use kernel::{
    error::to_result,
    ffi::c_int,
    impl_has_work,
    new_work,
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    },
    workqueue::{
        Work,
        WorkItem, //
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

/// Handles the events of a listening id. It is dropped when the id has been destroyed.
///
/// # Examples
///
/// ```no_run
/// # pub(super) struct MyServer {
/// #     pub(super) listener: Arc<Mutex<Option<CmListener<Self>>>>,
/// # }
/// impl ListenHandler for MyServer {
///     fn connect_request(&self, request: Request<'_>) {
///         request.reject();
/// #       self.device_removed();
///     }
///
///     fn device_removed(&self) {
///         // Dropping the listener only queues the work that destroys its id. Its owner locks the
///         // mutex before it calls `CmListener::new`, and unlocks it when the listener is stored.
///         *self.listener.lock() = None;
///     }
/// }
/// ```
pub(crate) trait ListenHandler: Send + Sync + 'static {
    /// Handles the request of a peer for a connection. A request that is dropped unanswered is
    /// rejected.
    ///
    /// Called with the handler mutex of the new id held, and with that of the listening id or, if
    /// its address is the wildcard, that of rdma_cm's own listening id for the device. Called in a
    /// queue in which the CM handles the events of the whole machine. So it should not wait for
    /// much memory: see [`Request::defer`].
    fn connect_request(&self, request: Request<'_>);

    /// Handles the removal of the device that the listening id is bound to. The removal waits until
    /// the id is destroyed.
    ///
    /// Called with the handler mutex of the listening id held; may sleep. May be called before
    /// [`CmListener::new`] has returned, or before its caller has stored the listener. It is not
    /// called again, so it must have the listener dropped in these cases, too.
    fn device_removed(&self);
}

/// The context of a listening id. The owner of the id holds a reference until it queues the work,
/// and that holds one until it has destroyed the id.
///
/// # Invariants
///
/// `id` is valid until the work destroys it.
#[pin_data]
struct ListenContext<L: ListenHandler> {
    handler: L,
    id: NonNull<bindings::rdma_cm_id>,
    #[pin]
    teardown: Work<Self>,
    // Dropped last: until then the module stays.
    hold: Hold,
}

// SAFETY: Any thread may destroy an id, whichever made it, and the handler is `Send`.
unsafe impl<L: ListenHandler> Send for ListenContext<L> {}
// SAFETY: The handler is `Sync`. The pointer to the id does not change, and only the owner and the
// work, which follows it, call functions of rdma_cm for the id.
unsafe impl<L: ListenHandler> Sync for ListenContext<L> {}

impl_has_work! {
    impl{L: ListenHandler} HasWork<Self> for ListenContext<L> { self.teardown }
}

impl<L: ListenHandler> WorkItem for ListenContext<L> {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        // With two listeners of one port, rdma_cm may not wait as it promises, which no user of
        // rdma_cm can avoid (reports/cma-unlock-after-free.txt).
        // SAFETY: By the type invariant the id is valid. This is a work, not a handler of the id.
        // The function waits for a handler that runs, and no handler runs afterwards, so the
        // context can be dropped.
        unsafe { bindings::rdma_destroy_id(this.id.as_ptr()) };
    }
}

/// A listening id, as its owner holds it.
///
/// Listening ids have a type of their own: a listener does not connect, and the id of a connection
/// does not listen. Dropping a listener destroys the id, and then drops the handler, in a work
/// queue of this layer. It may be dropped in any context, handlers included. To wait for that, wait
/// until the handler is dropped.
///
/// # Examples
///
/// ```no_run
/// # let (hold, net, address): (&Hold, ARef<Net>, SocketAddr) = given();
/// let listener = CmListener::new(hold, &net, c"my_module", MyServer, address, 128)?;
/// // Requests arrive at `MyServer::connect_request` until:
/// drop(listener);
/// ```
///
/// # Invariants
///
/// The context is that of its id. Its work has not been queued.
pub(crate) struct CmListener<L: ListenHandler>(ManuallyDrop<Arc<ListenContext<L>>>);

impl<L: ListenHandler> CmListener<L> {
    /// Listens at `address` of `net`; process context. The resource tracker lists the id under the
    /// name `owner`. On iWARP, up to `backlog` requests wait to be handled, or as many as iw_cm has
    /// by default if it is 0. Requests may arrive before this returns.
    ///
    /// Fails with `ENODEV` if the device was removed meanwhile, or if rdma_listen() returns
    /// `EINVAL`. Otherwise fails with `ENOMEM`, or with the error of rdma_cm, such as `EADDRINUSE`.
    pub(crate) fn new(
        hold: &Hold,
        net: &Net,
        owner: &'static CStr,
        handler: L,
        address: SocketAddr,
        backlog: u16,
    ) -> Result<Self> {
        let hold = hold.clone();
        let make = |id| {
            // INVARIANT: `create_id` has made the id. Without a context it destroys that.
            Arc::pin_init(
                pin_init!(ListenContext {
                    handler,
                    id,
                    teardown <- new_work!("ListenContext::teardown"),
                    hold,
                }),
                GFP_KERNEL,
            )
        };
        // SAFETY: `listen_event::<L>` expects this type of context. The owner below holds a
        // reference, and its work destroys the id before it drops that.
        let context = unsafe { create_id(net, owner, Some(listen_event::<L>), make) }?;
        // INVARIANT: `create_id` has made the context for its id. Only `drop` queues the work.
        let this = Self(ManuallyDrop::new(context));

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
        // SAFETY: By the type invariant the id is valid. The backlog is not negative: with a
        // negative one, iw_cm would allocate entries without end.
        match to_result(unsafe { bindings::rdma_listen(this.0.id.as_ptr(), backlog.into()) }) {
            // The id is bound, so only the removal of its device can have changed its state.
            Err(error) if error == EINVAL => Err(ENODEV),
            result => result.map(|()| this),
        }
    }

    fn bind(&self, address: SocketAddr) -> Result {
        let mut address = RawAddress::from(address);
        // SAFETY: By the type invariant the id is valid; the address is copied.
        to_result(unsafe { bindings::rdma_bind_addr(self.0.id.as_ptr(), address.as_mut_ptr()) })
    }
}

impl<L: ListenHandler> Drop for CmListener<L> {
    fn drop(&mut self) {
        // SAFETY: The value is not used again.
        let context = unsafe { ManuallyDrop::take(&mut self.0) };
        // The work may run, and drop the hold of the context, before the call has returned.
        let hold = context.hold.clone();
        // Cannot fail: by the type invariant the work has not been queued.
        let _ = hold.enqueue(context);
    }
}

/// Handles an event of a listening id, or the request of a peer, for which rdma_cm has made a new
/// id with the same context. Returns 0 if rdma_cm is to keep the id, otherwise 1.
///
/// # Safety
///
/// Called only by rdma_cm, with an id whose context is a [`ListenContext<L>`] of an [`Arc`], and
/// with its handler mutex held.
unsafe extern "C" fn listen_event<L: ListenHandler>(
    id: *mut bindings::rdma_cm_id,
    event: *mut bindings::rdma_cm_event,
) -> c_int {
    // SAFETY: rdma_cm passes a valid id, which is not NULL.
    let id = unsafe { NonNull::new_unchecked(id) };
    // SAFETY: rdma_cm passes a valid id, and the handler mutex, which is held, guards this member.
    let context = unsafe { (*id.as_ptr()).context };
    // SAFETY: By the function's requirement the context is of this type. A reference is held until
    // the listening id has been destroyed, which waits for its handlers.
    let context = unsafe { ArcBorrow::from_raw(context.cast::<ListenContext<L>>()) };
    // SAFETY: rdma_cm passes an event that is valid during the call.
    let event = unsafe { &*event };

    match event.event {
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_CONNECT_REQUEST => {
            let deferred = Cell::new(false);
            // SAFETY: The event is a CONNECT_REQUEST, and `id` is its new id, whose handler mutex
            // is held. If the request is deferred, the value returned below makes rdma_cm keep the
            // id.
            let request = unsafe { Request::new(id, event, &deferred, &context.hold) };
            context.handler.connect_request(request);
            // With 1, rdma_cm destroys the new id, which rejects the request.
            c_int::from(!deferred.get())
        }
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_DEVICE_REMOVAL => {
            context.handler.device_removed();
            0
        }
        _ => 0,
    }
}
