// SPDX-License-Identifier: GPL-2.0

//! The context of a connection's id, which lives as long as the id.

use core::{
    cell::Cell,
    ptr::NonNull,
    slice, //
};

use kernel::{
    error::{
        from_err_ptr,
        to_result, //
    },
    ffi::c_void,
    impl_has_work,
    new_condvar,
    new_mutex,
    new_work,
    prelude::*,
    sync::{
        CondVar,
        Mutex, //
    },
    workqueue::{
        Work,
        WorkItem, //
    }, //
};

use crate::{
    base::{
        draining::Draining,
        net::Net,
        unload::Hold,
        wait::wait_while, //
    },
    bindings,
    rdma::verbs::{
        completion_handler::CompletionHandler,
        parameters::Parameters,
        queue_pair::QueuePair, //
    }, //
};

/// The context of a connection's id: `H` handles its events, `C` the completions of its queue pair.
///
/// # Invariants
///
/// `id` is valid until the teardown destroys it, as its last step before the context is dropped. A
/// context that is dropped without a teardown does not outlive its id. `closed` is accessed only
/// with the id's handler mutex held.
#[pin_data]
pub(in crate::rdma) struct Context<H, C: CompletionHandler> {
    // Drained before the id is destroyed. Without a teardown, because a request was not accepted,
    // it is dropped before the other fields.
    pub(in crate::rdma) queue_pair: Draining<QueuePair<C>>,
    pub(in crate::rdma) handler: H,
    pub(in crate::rdma) id: NonNull<bindings::rdma_cm_id>,
    pub(in crate::rdma) parameters: Parameters,
    /// Whether the teardown has begun. The handler is not called any more then.
    pub(in crate::rdma) closed: Cell<bool>,
    /// Whether there is a peer that does not know yet that the connection is over.
    #[pin]
    connected: Mutex<bool>,
    /// Notified when `connected` has changed.
    #[pin]
    disconnected: CondVar,
    #[pin]
    teardown: Work<Self>,
    // Dropped last: until then the module stays.
    pub(in crate::rdma) hold: Hold,
}

// SAFETY: The handler and the queue pair are `Send`, and an id belongs to no thread.
unsafe impl<H: Send, C: CompletionHandler> Send for Context<H, C> {}
// SAFETY: The handler and the queue pair are `Sync`. The id is not changed once the context is
// shared. By the type invariant the cell is never accessed by two threads at a time.
unsafe impl<H: Sync, C: CompletionHandler> Sync for Context<H, C> {}

impl_has_work! {
    impl{H, C: CompletionHandler} HasWork<Self> for Context<H, C> { self.teardown }
}

impl<H, C: CompletionHandler> Context<H, C> {
    /// Makes a context for `id`, without setting it as the context of `id`. May sleep.
    ///
    /// Fails with `ESHUTDOWN` without an [`UnloadGuard`](crate::base::unload::UnloadGuard), and
    /// with `ENOMEM`.
    ///
    /// # Safety
    ///
    /// `id` must be valid, or be replaced before use, until the teardown destroys it or, without a
    /// teardown, until the context has been dropped.
    pub(in crate::rdma) unsafe fn new(
        id: NonNull<bindings::rdma_cm_id>,
        parameters: Parameters,
        handler: H,
    ) -> Result<Pin<KBox<Self>>> {
        let hold = Hold::new()?;
        let queue_pair = Draining::new()?;
        // INVARIANT: By the function's requirement.
        KBox::pin_init(
            pin_init!(Self {
                queue_pair,
                handler,
                id,
                parameters,
                closed: Cell::new(false),
                connected <- new_mutex!(false, "Context::connected"),
                disconnected <- new_condvar!("Context::disconnected"),
                teardown <- new_work!("Context::teardown"),
                hold,
            }),
            GFP_KERNEL,
        )
    }

    /// Notes whether there is a peer that has yet to learn that the connection is over. May sleep.
    pub(in crate::rdma) fn set_connected(&self, connected: bool) {
        *self.connected.lock() = connected;
        self.disconnected.notify_all();
    }

    /// Waits until the peer knows that the connection is over, for
    /// [`Parameters::disconnect_ms`] at most.
    fn wait_disconnected(&self) {
        let limit = self.parameters.disconnect_ms;
        wait_while(&self.disconnected, &self.connected, limit, |&connected| {
            connected
        });
    }
}

impl<H, C: CompletionHandler> WorkItem for Context<H, C> {
    type Pointer = Pin<KBox<Self>>;

    /// Ends the connection and destroys its id.
    fn run(this: Pin<KBox<Self>>) {
        let id = this.id.as_ptr();

        // SAFETY: By the type invariant the id is valid. This is a work of its own, so the mutex
        // is not held by this task.
        unsafe { bindings::rdma_lock_handler(id) };
        this.closed.set(true);
        // SAFETY: It was locked above.
        unsafe { bindings::rdma_unlock_handler(id) };

        // Otherwise operations that are under way would wait for the peer. Before disconnecting:
        // siw forgets an RDMA Read that is under way when it disconnects, but flushes it when the
        // queue pair fails.
        if let Some(queue_pair) = this.queue_pair.access() {
            // If the device refuses, operations end at their time limits.
            let _ = queue_pair.fail();
        }
        // SAFETY: The id is valid. The call fails if there is no connection to be ended.
        let told = to_result(unsafe { bindings::rdma_disconnect(id) }).is_ok();
        this.queue_pair.drain();
        if told {
            this.wait_disconnected();
        }
        // After the event ADDR_RESOLVED or ADDR_ERROR, rdma_cm unlocks the id without a reference
        // on it, so the id must not be freed meanwhile (reports/cma-unlock-after-free.txt).
        // SAFETY: The id is valid, and this is not called by the resolver's work.
        unsafe { bindings::shim_stop_resolver(id) };
        // SAFETY: The id is valid, and its queue pair is gone. The function waits for a handler
        // that runs. No handler runs afterwards, so the context can be dropped.
        unsafe { bindings::rdma_destroy_id(id) };
    }
}

/// Gives up the owning pointer to a context.
pub(in crate::rdma) fn into_raw<H, C: CompletionHandler>(
    context: Pin<KBox<Context<H, C>>>,
) -> NonNull<Context<H, C>> {
    // SAFETY: The pointer is not used to move the context. `from_raw` pins it again.
    let context = KBox::into_raw(unsafe { Pin::into_inner_unchecked(context) });
    // SAFETY: A box is not NULL.
    unsafe { NonNull::new_unchecked(context) }
}

/// Takes the owning pointer to a context back.
///
/// # Safety
///
/// `context` must come from [`into_raw`], and must be taken back only once.
pub(in crate::rdma) unsafe fn from_raw<H, C: CompletionHandler>(
    context: NonNull<Context<H, C>>,
) -> Pin<KBox<Context<H, C>>> {
    // SAFETY: By the function's requirement the pointer comes from `KBox::into_raw`, and nobody
    // else owns it.
    let context = unsafe { KBox::from_raw(context.as_ptr()) };
    // SAFETY: It was pinned before, and has not been moved.
    unsafe { Pin::new_unchecked(context) }
}

/// Makes an id in `net`, which the resource tracker lists under the name `owner`. May sleep.
///
/// # Safety
///
/// `context` must be of the type that `handler` expects, and stay valid until the id has been
/// destroyed.
pub(in crate::rdma) unsafe fn create_id(
    net: &Net,
    owner: &'static CStr,
    handler: bindings::rdma_cm_event_handler,
    context: *mut c_void,
) -> Result<NonNull<bindings::rdma_cm_id>> {
    // SAFETY: The namespace is valid, and the id takes a reference of its own on it. The name is
    // static. By this function's requirement the handler can be called with the context.
    let id = unsafe {
        bindings::__rdma_create_kernel_id(
            net.as_ptr(),
            handler,
            context,
            bindings::rdma_ucm_port_space_RDMA_PS_TCP,
            bindings::ib_qp_type_IB_QPT_RC,
            owner.as_char_ptr(),
        )
    };
    NonNull::new(from_err_ptr(id)?).ok_or(ENOMEM)
}

/// Returns the private data of an event, as the transport delivered it; empty if it delivered none.
///
/// # Safety
///
/// `event` must be one that rdma_cm delivers, be of a type that carries connection parameters, and
/// be valid for `'a`.
pub(in crate::rdma) unsafe fn private_data<'a>(event: &'a bindings::rdma_cm_event) -> &'a [u8] {
    // SAFETY: By the function's requirement this is the member in use.
    let parameters = unsafe { &event.param.conn };
    let octets: *const u8 = parameters.private_data.cast();

    // siw delivers a pointer and the length 0 if the peer sent none.
    if octets.is_null() || parameters.private_data_len == 0 {
        return &[];
    }
    // SAFETY: rdma_cm delivers that many octets, which stay as long as the event.
    unsafe { slice::from_raw_parts(octets, parameters.private_data_len.into()) }
}
