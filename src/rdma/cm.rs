// SPDX-License-Identifier: GPL-2.0

//! Ids of rdma_cm: connections, listeners, and the events that happen to them.
//!
//! rdma_cm calls an id's handler with the id's handler mutex held. The handler may sleep. It must
//! not destroy the id, which waits for that mutex; dropping an [`Id`] is therefore legal anywhere,
//! as it only queues the work that destroys the id.
//!
//! C header: [`include/rdma/rdma_cm.h`](srctree/include/rdma/rdma_cm.h)

use core::{
    cell::Cell,
    marker::PhantomData,
    net::SocketAddr,
    ops::Deref,
    ptr::{
        self,
        NonNull, //
    },
    slice, //
};

use kernel::{
    error::{
        from_err_ptr,
        to_result, //
    },
    ffi::{
        c_int,
        c_void, //
    },
    impl_has_work,
    new_condvar,
    new_mutex,
    new_work,
    prelude::*,
    sync::{
        Arc,
        ArcBorrow,
        CondVar,
        Mutex, //
    },
    types::NotThreadSafe,
    workqueue::{
        Work,
        WorkItem, //
    }, //
};

use super::{
    address::{
        Net,
        RawAddress, //
    },
    device::{
        Device,
        Transport, //
    },
    errno,
    queue::Queue,
    queue_pair::{
        CompletionHandler,
        QueuePair,
        Room, //
    },
    revocable::Revocable,
    wait_while,
    OWNER, //
};
use crate::bindings;

/// How often a message is sent again before the connection is given up; as xprtrdma does.
const RETRIES: u8 = 6;

/// How often the peer sends again what finds no Receive: for ever.
const RNR_RETRIES: u8 = 7;

/// How long the peer has for its answer to a disconnection, in milliseconds: InfiniBand's CM asks
/// three times until then, each after four to five seconds, and no more once the id is gone.
const DISCONNECT_MS: u32 = 10_000;

/// What happened to a connection's id.
pub(crate) enum Event<'a> {
    /// The remote address was resolved, and the id is bound to a device.
    AddressResolved,
    /// The route was resolved: time to connect.
    RouteResolved,
    /// The connection is there, with what the peer's answer carried. On the server's side, where
    /// the peer has already said all in its request, it carries nothing.
    Established {
        /// The private data: as the transport delivers it, padded on InfiniBand and RoCE.
        private_data: &'a [u8],
    },
    /// The remote address was not resolved.
    AddressUnresolved(Error),
    /// The route was not resolved, or the peer did not answer.
    Failed(Error),
    /// The peer, or its host, refused the connection.
    Rejected {
        /// What the transport says about it.
        reason: &'static CStr,
    },
    /// The connection is gone.
    Disconnected,
    /// The network interface that the connection runs over has got another hardware address.
    AddressChanged,
    /// The device is going away and waits for the id to be destroyed.
    DeviceRemoved,
}

/// Handles what happens to one id.
pub(crate) trait ConnectionHandler: CompletionHandler {
    /// Runs with the id's handler mutex held, for one event at a time; may sleep.
    fn event(&self, id: &mut HandlerId<'_, Self>, event: Event<'_>)
    where
        Self: Sized;
}

/// Handles what happens to a listening id.
pub(crate) trait ListenHandler: Send + Sync + 'static {
    /// A peer asks for a connection. A request that is dropped unanswered is rejected.
    ///
    /// Runs with the handler mutexes of the listening id and of the new one held; may sleep.
    fn connect_request(this: ArcBorrow<'_, Self>, request: Request<'_>);

    /// The device that the listening id is bound to is going away, and waits for the id to be
    /// dropped. Runs with the id's handler mutex held, so must leave that to somebody else.
    fn device_removed(this: ArcBorrow<'_, Self>);
}

/// What every holder of an id may ask of it.
///
/// # Invariants
///
/// The id is valid for `'a`.
pub(crate) struct IdRef<'a> {
    id: NonNull<bindings::rdma_cm_id>,
    _id: PhantomData<&'a ()>,
    _not_send: NotThreadSafe,
}

impl<'a> IdRef<'a> {
    /// # Safety
    ///
    /// `id` must be valid for `'a`, and its handler mutex held during it.
    unsafe fn new(id: NonNull<bindings::rdma_cm_id>) -> Self {
        // INVARIANT: By the function's requirement.
        Self {
            id,
            _id: PhantomData,
            _not_send: NotThreadSafe,
        }
    }

    fn as_ptr(&self) -> *mut bindings::rdma_cm_id {
        self.id.as_ptr()
    }

    /// Returns the device that the id is bound to.
    pub(crate) fn device(&self) -> Result<Device<'a>> {
        // SAFETY: By the type invariant the id is valid.
        let device = unsafe { (*self.as_ptr()).device };
        // SAFETY: As above.
        let port = unsafe { (*self.as_ptr()).port_num };
        // SAFETY: A bound id keeps its device; the port is one of the device's.
        unsafe { Device::new(device, port) }.ok_or(ENODEV)
    }

    /// Returns the address of this end; [`None`] before the id has one.
    pub(crate) fn local(&self) -> Option<SocketAddr> {
        // SAFETY: By the type invariant the id is valid.
        let address = unsafe { bindings::shim_local_addr(self.as_ptr()) };
        // SAFETY: The address has room for any family.
        unsafe { RawAddress::read(address) }
    }

    /// Returns the address of the other end; [`None`] before the id has one.
    pub(crate) fn remote(&self) -> Option<SocketAddr> {
        // SAFETY: By the type invariant the id is valid.
        let address = unsafe { bindings::shim_remote_addr(self.as_ptr()) };
        // SAFETY: The address has room for any family.
        unsafe { RawAddress::read(address) }
    }
}

/// What the context of a connection's id points to.
///
/// # Invariants
///
/// `id` is valid until it is destroyed, which is the last thing before the context goes. `closed`
/// is accessed only with the id's handler mutex held. `queue_pair` has none any more when the
/// context goes, as that points to `handler`.
#[pin_data(PinnedDrop)]
struct Context<H: ConnectionHandler> {
    queue_pair: Arc<Revocable<QueuePair<H>>>,
    handler: H,
    id: NonNull<bindings::rdma_cm_id>,
    queue: Arc<Queue>,
    closed: Cell<bool>,
    /// Whether there is a peer that does not know yet that the connection is over.
    #[pin]
    connected: Mutex<bool>,
    /// Notified when it does, or need not.
    #[pin]
    disconnected: CondVar,
    #[pin]
    teardown: Work<Self>,
}

// SAFETY: All parts may be sent: the handler and the queue pair are `Send`, an id has no thread.
unsafe impl<H: ConnectionHandler> Send for Context<H> {}
// SAFETY: The handler and the queue pair are `Sync`. By the type invariant the cell is never
// accessed by two threads at a time.
unsafe impl<H: ConnectionHandler> Sync for Context<H> {}

impl_has_work! {
    impl{H: ConnectionHandler} HasWork<Self> for Context<H> { self.teardown }
}

impl<H: ConnectionHandler> Context<H> {
    fn new(
        id: NonNull<bindings::rdma_cm_id>,
        queue: Arc<Queue>,
        handler: H,
    ) -> Result<Pin<KBox<Self>>> {
        let queue_pair = Arc::pin_init(Revocable::new(), GFP_KERNEL)?;
        KBox::pin_init(
            pin_init!(Self {
                queue_pair,
                handler,
                id,
                queue,
                closed: Cell::new(false),
                connected <- new_mutex!(false, "Context::connected"),
                disconnected <- new_condvar!("Context::disconnected"),
                teardown <- new_work!("rpcrdma_cm::teardown"),
            }),
            GFP_KERNEL,
        )
    }

    /// Makes the queue pair; with the handler mutex of the id held.
    ///
    /// Fails with `EEXIST` where there is or has been one.
    fn create_queue_pair(&self, device: Device<'_>, room: Room) -> Result {
        if self.queue_pair.is_used() {
            return Err(EEXIST);
        }
        let handler = NonNull::from(&self.handler);
        // SAFETY: The id has no other queue pair. By the type invariant it is valid and, like the
        // handler, goes after this one.
        let queue_pair = unsafe { QueuePair::new(self.id, device, handler, room) }?;
        self.queue_pair.put(queue_pair).map_err(|_| EEXIST)
    }

    fn set_connected(&self, connected: bool) {
        *self.connected.lock() = connected;
        self.disconnected.notify_all();
    }

    /// Waits until the peer knows that the connection is over, but not for ever.
    fn wait_disconnected(&self) {
        let mut connected = self.connected.lock();
        wait_while(&self.disconnected, &mut connected, DISCONNECT_MS, |&c| c);
    }
}

#[pinned_drop]
impl<H: ConnectionHandler> PinnedDrop for Context<H> {
    fn drop(self: Pin<&mut Self>) {
        // Where the id has been accepted or kept, it is gone already.
        drop(self.queue_pair.revoke());
    }
}

impl<H: ConnectionHandler> WorkItem for Context<H> {
    type Pointer = Pin<KBox<Self>>;

    /// Ends the connection and destroys its id.
    fn run(this: Pin<KBox<Self>>) {
        let id = this.id.as_ptr();

        // SAFETY: By the type invariant the id is valid, and no handler calls this.
        unsafe { bindings::rdma_lock_handler(id) };
        this.closed.set(true);
        // SAFETY: It was locked above.
        unsafe { bindings::rdma_unlock_handler(id) };

        // So that nobody who uses it waits for the peer. First: siw forgets an RDMA Read that is
        // under way when it disconnects, but not when the queue pair fails.
        if let Some(queue_pair) = this.queue_pair.access() {
            queue_pair.fail();
        }
        // SAFETY: The id is valid. The call fails where there is no connection: nothing to do then.
        let told = to_result(unsafe { bindings::rdma_disconnect(id) }).is_ok();
        drop(this.queue_pair.revoke());
        if told {
            this.wait_disconnected();
        }
        // Where rdma_cm unlocks the id after its address has been resolved, it does not keep it, as
        // it does elsewhere (reports/cma-unlock-after-free.txt).
        // SAFETY: The id is valid, and this is not called by the resolver's work.
        unsafe { bindings::shim_stop_resolver(id) };
        // SAFETY: The id is valid and its queue pair is gone. The function waits for a handler that
        // runs; none does afterwards, so that the context can go.
        unsafe { bindings::rdma_destroy_id(id) };
    }
}

/// The id of a connection, as its owner holds it.
///
/// Dropping it ends the connection, destroys the id, and drops the handler, in this order and in
/// the work queue that it was made with. It may be dropped in any context, handlers included.
///
/// # Invariants
///
/// The pointer is to a pinned [`Context`] that this owns, and that its id points to.
pub(crate) struct Id<H: ConnectionHandler>(NonNull<Context<H>>);

// SAFETY: The context is `Send`.
unsafe impl<H: ConnectionHandler> Send for Id<H> {}
// SAFETY: The context is `Sync`.
unsafe impl<H: ConnectionHandler> Sync for Id<H> {}

impl<H: ConnectionHandler> Id<H> {
    /// Makes an id that is going to connect from within `net`. Process context.
    pub(crate) fn new(net: &Net, queue: Arc<Queue>, handler: H) -> Result<Self> {
        let context = into_raw(Context::new(NonNull::dangling(), queue, handler)?);
        let pointer = context.as_ptr().cast();
        // SAFETY: The context outlives the id; nothing happens to the id before it is used.
        match unsafe { create_id(net, Some(connection_event::<H>), pointer) } {
            Ok(id) => {
                // SAFETY: The context is valid, and nobody else knows of it yet.
                unsafe { (*context.as_ptr()).id = id };
                // INVARIANT: The id was made with this context, which is ours.
                Ok(Self(context))
            }
            Err(error) => {
                // SAFETY: It came from `into_raw` above, and no id points to it.
                drop(unsafe { from_raw(context) });
                Err(error)
            }
        }
    }

    /// Resolves the remote address, and with it the device and, where `from` is [`None`], the local
    /// address. What comes of it is an event. Process context.
    pub(crate) fn resolve_address(
        &self,
        from: Option<SocketAddr>,
        to: SocketAddr,
        timeout_ms: u32,
    ) -> Result {
        // SAFETY: By the type invariant the context is valid.
        let id = unsafe { self.0.as_ref() }.id.as_ptr();

        // Apart from resolving, which warns if the device is removed right after its binding.
        if let Some(from) = from {
            let mut from = RawAddress::from(from);
            // SAFETY: The id is valid as long as its context is; the address is copied.
            to_result(unsafe { bindings::rdma_bind_addr(id, from.as_mut_ptr()) })?;
        }
        let to = RawAddress::from(to);
        // SAFETY: As above.
        to_result(unsafe {
            bindings::rdma_resolve_addr(id, ptr::null_mut(), to.as_ptr(), timeout_ms as usize)
        })
    }
}

impl<H: ConnectionHandler> Id<H> {
    /// Returns its queue pair, which is there from the event on that makes it to the end of the id.
    pub(crate) fn queue_pair(&self) -> Arc<Revocable<QueuePair<H>>> {
        // SAFETY: By the type invariant the context is valid.
        unsafe { self.0.as_ref() }.queue_pair.clone()
    }
}

impl<H: ConnectionHandler> Drop for Id<H> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the context is ours, and nobody uses this value again.
        let context = unsafe { from_raw(self.0) };
        // The work may free the context before the call has returned.
        let queue = context.queue.clone();
        queue.enqueue(context);
    }
}

/// Takes a context out of the hands of its owner.
fn into_raw<H: ConnectionHandler>(context: Pin<KBox<Context<H>>>) -> NonNull<Context<H>> {
    // SAFETY: It is not moved as long as it is away, and comes back pinned.
    let context = KBox::into_raw(unsafe { Pin::into_inner_unchecked(context) });
    // SAFETY: A box is not NULL.
    unsafe { NonNull::new_unchecked(context) }
}

/// Gives it back.
///
/// # Safety
///
/// It must come from [`into_raw`], and be given back once.
unsafe fn from_raw<H: ConnectionHandler>(context: NonNull<Context<H>>) -> Pin<KBox<Context<H>>> {
    // SAFETY: By the function's requirement.
    let context = unsafe { KBox::from_raw(context.as_ptr()) };
    // SAFETY: It was pinned before, and has not been moved.
    unsafe { Pin::new_unchecked(context) }
}

/// The id of a connection during one of its events.
///
/// It proves that the id's handler mutex is held.
///
/// # Invariants
///
/// The context is valid, and the handler mutex of its id is held, for `'a`.
pub(crate) struct HandlerId<'a, H: ConnectionHandler> {
    context: &'a Context<H>,
    id: IdRef<'a>,
}

impl<'a, H: ConnectionHandler> Deref for HandlerId<'a, H> {
    type Target = IdRef<'a>;

    fn deref(&self) -> &Self::Target {
        &self.id
    }
}

impl<H: ConnectionHandler> HandlerId<'_, H> {
    /// Makes the queue pair and posts its Receives; after the address was resolved.
    pub(crate) fn create_queue_pair(&mut self, room: Room) -> Result {
        let device = self.device()?;
        self.context.create_queue_pair(device, room)
    }

    /// Resolves the route; after the address was resolved.
    pub(crate) fn resolve_route(&mut self, timeout_ms: u32) -> Result {
        // SAFETY: By the type invariant the id is valid.
        to_result(unsafe { bindings::rdma_resolve_route(self.as_ptr(), timeout_ms as usize) })
    }

    /// Asks the peer for a connection; after the route was resolved.
    ///
    /// Fails with `EMSGSIZE` where a request cannot carry the private data.
    pub(crate) fn connect(&mut self, private_data: &[u8]) -> Result {
        let device = self.device()?;
        if private_data.len() > device.transport().request_capacity() {
            return Err(errno(kernel::bindings::EMSGSIZE));
        }
        let mut parameters = bindings::rdma_conn_param {
            private_data: private_data.as_ptr().cast(),
            private_data_len: private_data.len().try_into()?,
            responder_resources: device.max_responder_resources(),
            retry_count: RETRIES,
            rnr_retry_count: RNR_RETRIES,
            ..Default::default()
        };

        // SAFETY: The id is valid and its handler mutex held; the private data is copied.
        to_result(unsafe { bindings::rdma_connect_locked(self.as_ptr(), &mut parameters) })
    }
}

/// A peer's request for a connection, during the event that brings it.
///
/// It is answered once; a request that is dropped is rejected.
pub(crate) struct Request<'a> {
    id: IdRef<'a>,
    private_data: &'a [u8],
    initiator_depth: u8,
    accepted: &'a Cell<bool>,
}

impl<'a> Deref for Request<'a> {
    type Target = IdRef<'a>;

    fn deref(&self) -> &Self::Target {
        &self.id
    }
}

impl<'a> Request<'a> {
    /// Returns the private data that the request carries: as the transport delivers it, padded on
    /// InfiniBand and RoCE.
    pub(crate) fn private_data(&self) -> &'a [u8] {
        self.private_data
    }

    /// Accepts the connection: makes its queue pair, posts the Receives, and answers with
    /// `private_data`. What happens to the connection goes to `handler`.
    ///
    /// Fails with `EMSGSIZE` where the answer cannot carry the private data.
    pub(crate) fn accept<H: ConnectionHandler>(
        self,
        queue: Arc<Queue>,
        handler: H,
        room: Room,
        private_data: &[u8],
    ) -> Result<Id<H>> {
        let device = self.device()?;
        if private_data.len() > device.transport().reply_capacity() {
            return Err(errno(kernel::bindings::EMSGSIZE));
        }
        let mut parameters = bindings::rdma_conn_param {
            private_data: private_data.as_ptr().cast(),
            private_data_len: private_data.len().try_into()?,
            initiator_depth: self.initiator_depth.min(device.max_initiator_depth()),
            rnr_retry_count: RNR_RETRIES,
            ..Default::default()
        };

        let context = Context::new(self.id.id, queue, handler)?;
        context.create_queue_pair(device, room)?;
        // SAFETY: The id is valid and its handler mutex held; the private data is copied.
        to_result(unsafe { bindings::rdma_accept(self.as_ptr(), &mut parameters) })?;

        let context = into_raw(context);
        // SAFETY: The id is valid, and its handler mutex, which is held, guards this member.
        unsafe { (*self.as_ptr()).context = context.as_ptr().cast() };
        // SAFETY: As above. The first event comes when the mutex has been released.
        unsafe { (*self.as_ptr()).event_handler = Some(connection_event::<H>) };
        self.accepted.set(true);
        // INVARIANT: The id points to the context since above. It is ours, as the handler is going
        // to return that it was accepted.
        Ok(Id(context))
    }

    /// Rejects the connection for want of resources.
    pub(crate) fn reject(self) {
        // SAFETY: The id is valid. Failing has no consequence: it is destroyed in any case, and
        // that rejects, too.
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

/// A listening id, as its owner holds it.
///
/// Dropping it waits for its handlers, so must not be done in one; nor with a lock held that they
/// take.
///
/// # Invariants
///
/// The pointer is to an id that this owns. The id's context is `_handler`.
pub(crate) struct ListenId<L: ListenHandler> {
    id: NonNull<bindings::rdma_cm_id>,
    _handler: Arc<L>,
}

// SAFETY: An id belongs to no thread, and the handler is `Send` and `Sync`.
unsafe impl<L: ListenHandler> Send for ListenId<L> {}
// SAFETY: As above.
unsafe impl<L: ListenHandler> Sync for ListenId<L> {}

impl<L: ListenHandler> ListenId<L> {
    /// Listens at `address` of `net`. Process context.
    ///
    /// Fails with what rdma_cm says, such as `EADDRINUSE`. Requests may arrive before this returns.
    pub(crate) fn new(
        net: &Net,
        handler: Arc<L>,
        address: SocketAddr,
        backlog: c_int,
    ) -> Result<Self> {
        let context = Arc::as_ptr(&handler).cast_mut().cast();
        // SAFETY: The handler, which the returned value holds, outlives the id.
        let id = unsafe { create_id(net, Some(listen_event::<L>), context) }?;
        // INVARIANT: Made above.
        let this = Self {
            id,
            _handler: handler,
        };

        let unavailable = errno(kernel::bindings::EADDRNOTAVAIL);
        match this.bind(address) {
            // rdma_cm says so, too, where one of two addresses that share a port is for all.
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

impl<L: ListenHandler> Drop for ListenId<L> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the id is ours. The function waits for a handler that runs.
        unsafe { bindings::rdma_destroy_id(self.id.as_ptr()) };
    }
}

/// # Safety
///
/// `context` must be what `handler` expects, and stay valid until the id has been destroyed.
unsafe fn create_id(
    net: &Net,
    handler: bindings::rdma_cm_event_handler,
    context: *mut c_void,
) -> Result<NonNull<bindings::rdma_cm_id>> {
    // SAFETY: The id takes a reference on the namespace of its own; the name is static; the rest is
    // this function's requirement.
    let id = unsafe {
        bindings::__rdma_create_kernel_id(
            net.as_ptr(),
            handler,
            context,
            bindings::rdma_ucm_port_space_RDMA_PS_TCP,
            bindings::ib_qp_type_IB_QPT_RC,
            OWNER.as_char_ptr(),
        )
    };
    NonNull::new(from_err_ptr(id)?).ok_or(ENOMEM)
}

/// Returns the private data of an event; empty where the transport delivered none.
///
/// # Safety
///
/// `event` must be of a type that carries connection parameters, and be valid for `'a`.
unsafe fn private_data<'a>(event: &'a bindings::rdma_cm_event) -> &'a [u8] {
    // SAFETY: By the function's requirement this is the member in use.
    let parameters = unsafe { &event.param.conn };
    let octets: *const u8 = parameters.private_data.cast();

    // siw delivers a pointer to no octets where the peer sent none.
    if octets.is_null() || parameters.private_data_len == 0 {
        return &[];
    }
    // SAFETY: rdma_cm delivers that many octets, which stay for the time of the event.
    unsafe { slice::from_raw_parts(octets, parameters.private_data_len.into()) }
}

/// Handles an event of a connection's id.
///
/// # Safety
///
/// Called only by rdma_cm, with an id whose context is a [`Context<H>`], and its handler mutex
/// held.
unsafe extern "C" fn connection_event<H: ConnectionHandler>(
    id: *mut bindings::rdma_cm_id,
    event: *mut bindings::rdma_cm_event,
) -> c_int {
    // SAFETY: rdma_cm calls with an id.
    let id = unsafe { NonNull::new_unchecked(id) };
    // SAFETY: By the function's requirement the id is valid.
    let context = unsafe { (*id.as_ptr()).context };
    // SAFETY: By the function's requirement the context is one, and goes only after the id.
    let context = unsafe { &*context.cast::<Context<H>>() };
    // SAFETY: By the function's requirement the event is valid during the call.
    let event = unsafe { &*event };
    match event.event {
        // TCP, which iWARP uses, does not forget what it has to tell the peer.
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_ESTABLISHED => {
            // SAFETY: The id is valid and its handler mutex held during the call.
            let device = unsafe { IdRef::new(id) }.device();
            let iwarp = device.is_ok_and(|device| device.transport() == Transport::Iwarp);
            context.set_connected(!iwarp);
        }
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_REJECTED
        | bindings::rdma_cm_event_type_RDMA_CM_EVENT_DISCONNECTED
        | bindings::rdma_cm_event_type_RDMA_CM_EVENT_DEVICE_REMOVAL => context.set_connected(false),
        _ => {}
    }
    if context.closed.get() {
        if event.event == bindings::rdma_cm_event_type_RDMA_CM_EVENT_ESTABLISHED {
            // It was not yet a connection when the teardown disconnected it.
            // SAFETY: The id is valid and its handler mutex held during the call.
            unsafe { bindings::rdma_disconnect(id.as_ptr()) };
        }
        return 0;
    }

    let status = to_result(event.status).err().unwrap_or(EIO);
    let what = match event.event {
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_ADDR_RESOLVED => Event::AddressResolved,
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_ROUTE_RESOLVED => Event::RouteResolved,
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_ESTABLISHED => Event::Established {
            // SAFETY: This type of event carries connection parameters.
            private_data: unsafe { private_data(event) },
        },
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_ADDR_ERROR => Event::AddressUnresolved(status),
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_ROUTE_ERROR
        | bindings::rdma_cm_event_type_RDMA_CM_EVENT_CONNECT_ERROR
        | bindings::rdma_cm_event_type_RDMA_CM_EVENT_UNREACHABLE => Event::Failed(status),
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_REJECTED => {
            // SAFETY: The id is valid, and the function takes any status.
            let reason = unsafe { bindings::rdma_reject_msg(id.as_ptr(), event.status) };
            Event::Rejected {
                // SAFETY: The function returns a static string.
                reason: unsafe { CStr::from_char_ptr(reason) },
            }
        }
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_DISCONNECTED => Event::Disconnected,
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_ADDR_CHANGE => Event::AddressChanged,
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_DEVICE_REMOVAL => Event::DeviceRemoved,
        _ => return 0,
    };
    // INVARIANT: The handler mutex is held during the call.
    let mut handler_id = HandlerId {
        context,
        // SAFETY: The id is valid and its handler mutex held during the call.
        id: unsafe { IdRef::new(id) },
    };
    context.handler.event(&mut handler_id, what);

    // Not zero would have rdma_cm destroy the id, whose owner does that.
    0
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
            // SAFETY: This type of event carries connection parameters.
            let parameters = unsafe { &event.param.conn };
            let request = Request {
                // SAFETY: The id is valid and its handler mutex held during the call.
                id: unsafe { IdRef::new(id) },
                // SAFETY: As above.
                private_data: unsafe { private_data(event) },
                initiator_depth: parameters.initiator_depth,
                accepted: &accepted,
            };
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
