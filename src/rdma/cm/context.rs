// SPDX-License-Identifier: GPL-2.0

//! The context of a connection's id, which lives as long as the id.

use core::{
    cell::Cell,
    ptr::{
        self,
        NonNull, //
    }, //
};

use kernel::{
    error::{
        from_err_ptr,
        to_result, //
    },
    impl_has_work,
    new_spinlock,
    new_work,
    prelude::*,
    sync::{
        Arc,
        ArcBorrow,
        SpinLock, //
    },
    workqueue::{
        impl_has_delayed_work,
        new_delayed_work,
        DelayedWork,
        Work,
        WorkItem, //
    }, //
};

use super::{
    connection_queue_pair::ConnectionQueuePair,
    event::{
        ClientHandler,
        ConnectionHandler, //
    },
    parameters::{
        ClientParameters,
        Parameters, //
    },
    resolved_id::ResolvedId, //
};
use crate::{
    base::{
        draining::Draining,
        net::Net,
        unload::Hold,
        work_queue::WorkQueue, //
    },
    bindings, //
};

/// How far the teardown of an id is.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Phase {
    /// It has not begun.
    Open,
    /// The connection is being ended.
    Closing,
    /// The peer has been sent a DREQ, and has yet to answer it.
    Disconnecting,
    /// The id is being destroyed, or has been.
    Destroyed,
}

/// The part of a context that works and handlers change.
struct State<H: ConnectionHandler> {
    phase: Phase,
    /// Whether there is a peer that does not know yet that the connection is over.
    connected: bool,
    /// Whether [`ClientHandler::connect`] is queued or running.
    connecting: bool,
    /// The teardown, if it came while `connecting` was set. It begins when the handler has
    /// returned.
    postponed: Option<Arc<Context<H>>>,
}

/// The part of a context that only a client's id has.
pub(super) struct Client<H: ConnectionHandler> {
    pub(super) parameters: ClientParameters,
    connect_queue: fn(&H) -> &WorkQueue,
    connect: fn(&H, ResolvedId<'_, H::QueuePair>),
}

impl<H: ClientHandler> Client<H> {
    pub(super) fn new(parameters: ClientParameters) -> Self {
        Self {
            parameters,
            connect_queue: H::connect_queue,
            connect: H::connect,
        }
    }
}

/// The context of a connection's id, whose events `H` handles.
///
/// The owner of the id holds a reference until it queues the teardown, and that holds one until it
/// has destroyed the id.
///
/// # Invariants
///
/// `id` is valid until the teardown destroys it, and has no queue pair except in `queue_pair`. A
/// context that is dropped without a teardown does not outlive its id. `closed` is accessed only
/// with the id's handler mutex held.
#[pin_data]
pub(super) struct Context<H: ConnectionHandler> {
    // Drained before the id is destroyed. Without a teardown, because a request was not accepted,
    // it is dropped before the other fields.
    pub(super) queue_pair: Draining<H::QueuePair>,
    pub(super) handler: H,
    pub(super) id: NonNull<bindings::rdma_cm_id>,
    /// [`Parameters::disconnect_ms`].
    disconnect_ms: u32,
    /// [`None`] for a server's id.
    pub(super) client: Option<Client<H>>,
    /// Whether the teardown has begun. The handler is not called any more then.
    pub(super) closed: Cell<bool>,
    #[pin]
    state: SpinLock<State<H>>,
    #[pin]
    connect: Work<Self, CONNECT>,
    #[pin]
    teardown: DelayedWork<Self, TEARDOWN>,
    // Dropped last: until then the module stays.
    hold: Hold,
}

/// The number of the work that connects.
const CONNECT: u64 = 0;
/// The number of the work that ends the connection and destroys the id.
const TEARDOWN: u64 = 1;

// SAFETY: Any thread may use and destroy an id, whichever made it. The other fields are `Send`.
unsafe impl<H: ConnectionHandler> Send for Context<H> {}
// SAFETY: The pointer to the id does not change. By the type invariant the handler mutex of the id
// guards the cell. The other fields are `Sync`.
unsafe impl<H: ConnectionHandler> Sync for Context<H> {}

impl_has_work! {
    impl{H: ConnectionHandler} HasWork<Self, CONNECT> for Context<H> { self.connect }
}

impl_has_delayed_work! {
    impl{H: ConnectionHandler} HasDelayedWork<Self, TEARDOWN> for Context<H> { self.teardown }
}

impl<H: ConnectionHandler> Context<H> {
    /// Creates a context for `id`, without setting it as the context of `id`. May sleep.
    ///
    /// Fails with `ENOMEM`.
    ///
    /// # Safety
    ///
    /// `id` must be valid until the teardown destroys it or, without a teardown, until the context
    /// has been dropped.
    pub(super) unsafe fn new(
        id: NonNull<bindings::rdma_cm_id>,
        parameters: &Parameters,
        client: Option<Client<H>>,
        handler: H,
        hold: Hold,
    ) -> Result<Arc<Self>> {
        let queue_pair = Draining::new()?;
        // INVARIANT: By the function's requirement.
        Arc::pin_init(
            pin_init!(Self {
                queue_pair,
                handler,
                id,
                disconnect_ms: parameters.disconnect_ms,
                client,
                closed: Cell::new(false),
                state <- new_spinlock!(
                    State {
                        phase: Phase::Open,
                        connected: false,
                        connecting: false,
                        postponed: None,
                    },
                    "Context::state"
                ),
                connect <- new_work!("Context::connect"),
                teardown <- new_delayed_work!("Context::teardown"),
                hold,
            }),
            GFP_KERNEL,
        )
    }

    /// Notes whether there is a peer that has yet to learn that the connection is over. If there is
    /// none, the teardown does not wait any longer. Any context in which a spin lock can be taken.
    pub(super) fn set_connected(self: ArcBorrow<'_, Self>, connected: bool) {
        let mut state = self.state.lock();
        state.connected = connected;
        if !connected && state.phase == Phase::Disconnecting {
            // SAFETY: The context has a hold.
            unsafe { self.hold.reschedule::<_, TEARDOWN>(self.into(), 0) };
        }
    }

    /// Has a work call [`ClientHandler::connect`], unless the teardown has begun, or the id is that
    /// of a server. Any context in which a spin lock can be taken.
    pub(super) fn begin_connect(self: ArcBorrow<'_, Self>) {
        let Some(client) = &self.client else {
            return;
        };
        {
            let mut state = self.state.lock();
            if state.phase != Phase::Open || state.connecting {
                return;
            }
            state.connecting = true;
        }
        // Cannot fail: the work is queued only here, and `connecting` was not set.
        let queue = (client.connect_queue)(&self.handler);
        let _ = queue.enqueue::<_, CONNECT>(Arc::from(self));
    }

    /// Has a work end the connection, destroy the id and drop the context. Any context.
    pub(super) fn tear_down(self: Arc<Self>) {
        // The work may run, and drop the hold of the context, before the call has returned.
        let hold = self.hold.clone();
        // SAFETY: The context has a hold.
        unsafe { hold.reschedule::<_, TEARDOWN>(self, 0) };
    }

    /// Disconnects, and destroys the queue pair. Returns whether rdma_cm took the call, which does
    /// not tell whether a DREQ was sent: over InfiniBand and RoCE, `rdma_disconnect` returns 0 even
    /// if neither a DREQ nor a DREP could be sent.
    fn disconnect(&self) -> bool {
        let id = self.id.as_ptr();

        // SAFETY: By the type invariant the id is valid. This is a work of its own, so the mutex
        // is not held by this task.
        unsafe { bindings::rdma_lock_handler(id) };
        self.closed.set(true);
        // SAFETY: It was locked above.
        unsafe { bindings::rdma_unlock_handler(id) };

        // Otherwise operations that are under way would wait for the peer. Before disconnecting:
        // siw forgets an RDMA Read that is under way when it disconnects, but flushes it when the
        // queue pair fails.
        if let Some(queue_pair) = self.queue_pair.access() {
            // If the device refuses, operations end by themselves (`ConnectionQueuePair`).
            let _ = queue_pair.fail();
        }
        // SAFETY: The id is valid. The call fails if the id has neither connected nor accepted.
        let told = to_result(unsafe { bindings::rdma_disconnect(id) }).is_ok();
        self.queue_pair.drain();
        told
    }
}

impl<H: ConnectionHandler> WorkItem<CONNECT> for Context<H> {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        if let Some(client) = &this.client {
            // SAFETY: The id is valid, and bound to a device, because its route was resolved. The
            // teardown destroys neither the id nor the queue pair as long as `connecting` is set,
            // and that is reset below; it drains `queue_pair` first. No other task connects
            // meanwhile. This is a work, so this task does not hold the handler mutex.
            let id = unsafe {
                ResolvedId::new(this.id, &this.queue_pair, client.parameters, &this.hold)
            };
            (client.connect)(&this.handler, id);
        }

        let postponed = {
            let mut state = this.state.lock();
            state.connecting = false;
            state.postponed.take()
        };
        if let Some(teardown) = postponed {
            teardown.tear_down();
        }
    }
}

impl<H: ConnectionHandler> WorkItem<TEARDOWN> for Context<H> {
    type Pointer = Arc<Self>;

    /// Ends the connection. Destroys the id in the same run or, if the peer has yet to answer the
    /// DREQ, in another one: when the peer has answered, or after [`Parameters::disconnect_ms`].
    fn run(this: Arc<Self>) {
        let begins = {
            let mut state = this.state.lock();
            match state.phase {
                Phase::Open if state.connecting => {
                    state.postponed = Some(this.clone());
                    return;
                }
                Phase::Open => {
                    state.phase = Phase::Closing;
                    true
                }
                Phase::Disconnecting => {
                    state.phase = Phase::Destroyed;
                    false
                }
                // The peer answered just when the time was over.
                Phase::Closing | Phase::Destroyed => return,
            }
        };
        if begins {
            let told = this.disconnect();
            let mut state = this.state.lock();
            if told && state.connected {
                state.phase = Phase::Disconnecting;
                let limit = this.disconnect_ms;
                // SAFETY: The context has a hold.
                unsafe { this.hold.reschedule::<_, TEARDOWN>(this.clone(), limit) };
                return;
            }
            state.phase = Phase::Destroyed;
        }

        let id = this.id.as_ptr();
        // After the event ADDR_RESOLVED or ADDR_ERROR, rdma_cm unlocks the id without a reference
        // on it, so the id must not be freed meanwhile (reports/cma-unlock-after-free.txt).
        // SAFETY: By the type invariant the id is valid, and this is not called by the resolver's
        // work.
        unsafe { bindings::workaround_stop_resolver(id) };
        // SAFETY: The id is valid, and its queue pair is gone: `disconnect` has drained its place,
        // and what was dropped there owned it (`ConnectionQueuePair`). This is a work, not a
        // handler of the id. The function waits for a handler that runs. No handler runs
        // afterwards, so the context can be dropped.
        unsafe { bindings::rdma_destroy_id(id) };
    }
}

/// Creates an id in `net`, which the resource tracker lists under the name `owner`, and the context
/// that `make` makes for it. May sleep.
///
/// Fails with the error of rdma_cm or of `make`. The id is destroyed then.
///
/// # Safety
///
/// `handler` must expect a context of this type. If this succeeds, there must be a reference on the
/// context until the id has been destroyed.
pub(super) unsafe fn create_id<T>(
    net: &Net,
    owner: &'static CStr,
    handler: bindings::rdma_cm_event_handler,
    make: impl FnOnce(NonNull<bindings::rdma_cm_id>) -> Result<Arc<T>>,
) -> Result<Arc<T>> {
    // SAFETY: The namespace is valid, and the id takes a reference of its own on it. The name is
    // static. There are no events before an address is bound or resolved, so no handler is needed
    // yet.
    let id = unsafe {
        bindings::__rdma_create_kernel_id(
            net.as_ptr(),
            None,
            ptr::null_mut(),
            bindings::rdma_ucm_port_space_RDMA_PS_TCP,
            bindings::ib_qp_type_IB_QPT_RC,
            owner.as_char_ptr(),
        )
    };
    let id = NonNull::new(from_err_ptr(id)?).ok_or(ENOMEM)?;
    let context = make(id).inspect_err(|_| {
        // SAFETY: The id was made above, and nobody else destroys it.
        unsafe { bindings::rdma_destroy_id(id.as_ptr()) }
    })?;
    // SAFETY: The id is valid. Nobody else accesses it: there are no events yet.
    unsafe { (*id.as_ptr()).context = Arc::as_ptr(&context).cast_mut().cast() };
    // SAFETY: As above. By this function's requirement the handler can be called with the context.
    unsafe { (*id.as_ptr()).event_handler = handler };
    Ok(context)
}
