// SPDX-License-Identifier: GPL-2.0

//! Operations of a queue pair.

use core::ptr;

use kernel::{
    container_of,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            AtomicFlag,
            Relaxed, //
        },
        ArcBorrow, //
    },
    time::msecs_to_jiffies,
    types::Opaque, //
};

use super::completion_handler::CompletionHandler;
use crate::bindings;

/// Returns a text for the status of a completion.
pub(super) fn status_message(status: bindings::ib_wc_status) -> &'static CStr {
    // SAFETY: The function takes any value.
    let message = unsafe { bindings::ib_wc_status_msg(status) };
    // SAFETY: It returns a static string.
    unsafe { CStr::from_char_ptr(message) }
}

/// The operation that a queue pair performs at present, whose completion is waited for.
///
/// There is one for the life of the queue pair: siw can complete a flushed operation twice.
///
/// # Examples
///
/// ```no_run
/// # let operation: &Operation<MyEndpoint> = given();
/// # let mut request = bindings::ib_send_wr::default();
/// operation.begin();
/// request.__bindgen_anon_1.wr_cqe = operation.cqe();
/// // ... post the request ...
/// if !operation.wait(5000) {
///     operation.abandon();
/// }
/// ```
///
/// # Invariants
///
/// `handler` is of an [`Arc`](kernel::sync::Arc) that is held until no completion can arrive any
/// more.
#[pin_data]
pub(super) struct Operation<C: CompletionHandler> {
    #[pin]
    cqe: Opaque<bindings::ib_cqe>,
    #[pin]
    done: Opaque<kernel::bindings::completion>,
    status: Atomic<bindings::ib_wc_status>,
    abandoned: AtomicFlag,
    handler: *const C,
}

impl<C: CompletionHandler> Operation<C> {
    /// # Safety
    ///
    /// `handler` must be of an [`Arc`](kernel::sync::Arc) that is held until no completion can
    /// arrive any more, and the operation must stay until then.
    pub(super) unsafe fn new(handler: *const C) -> impl PinInit<Self> {
        // INVARIANT: By the function's requirement.
        pin_init!(Self {
            cqe <- Opaque::ffi_init(|cqe: *mut bindings::ib_cqe| {
                // SAFETY: `cqe` is valid for writes.
                unsafe { (*cqe).done = Some(Self::done) }
            }),
            done <- Opaque::ffi_init(|done| {
                // SAFETY: `done` is valid for writes.
                unsafe { kernel::bindings::init_completion(done) }
            }),
            status: Atomic::new(bindings::ib_wc_status_IB_WC_SUCCESS),
            abandoned: AtomicFlag::new(false),
            handler,
        })
    }

    /// # Safety
    ///
    /// Called only by the RDMA core, with the completion of an operation.
    unsafe extern "C" fn done(_: *mut bindings::ib_cq, completion: *mut bindings::ib_wc) {
        // SAFETY: By the function's requirement the completion is valid during the call.
        let completion = unsafe { &*completion };
        // SAFETY: Operations carry a completion entry, never a number.
        let cqe = unsafe { completion.__bindgen_anon_1.wr_cqe };
        // SAFETY: By the function's requirement the entry is that of an operation, which goes after
        // the queue pair.
        let this = unsafe { &*container_of!(cqe.cast::<Opaque<bindings::ib_cqe>>(), Self, cqe) };
        if completion.status != bindings::ib_wc_status_IB_WC_SUCCESS {
            // Before the Receives that are flushed because of it.
            // SAFETY: By the type invariant it is of an `Arc` that is held, as this is a
            // completion.
            let handler = unsafe { ArcBorrow::from_raw(this.handler) };
            C::queue_pair_failed(handler, status_message(completion.status));
        }
        this.status.store(completion.status, Relaxed);
        // SAFETY: It is initialized.
        unsafe { kernel::bindings::complete(this.done.get()) };
    }

    /// Returns the completion entry, from which a completion gets back to the whole.
    pub(super) fn cqe(&self) -> *mut bindings::ib_cqe {
        let this = ptr::from_ref(self);
        // SAFETY: `self` is valid. The pointer is made from one to the whole, so that it may be
        // used for that, too.
        unsafe { &raw const (*this).cqe }.cast_mut().cast()
    }

    /// Makes ready for another completion.
    pub(super) fn begin(&self) {
        // SAFETY: It is initialized, and nobody waits for it.
        unsafe { bindings::shim_reinit_completion(self.done.get()) };
    }

    /// Waits up to `milliseconds` for the completion, and returns whether there was one.
    pub(super) fn wait(&self, milliseconds: u32) -> bool {
        let jiffies = msecs_to_jiffies(milliseconds);
        // SAFETY: It is initialized.
        let left =
            unsafe { kernel::bindings::wait_for_completion_timeout(self.done.get(), jiffies) };
        left > 0
    }

    /// Returns the status of the completion that there was.
    pub(super) fn status(&self) -> bindings::ib_wc_status {
        self.status.load(Relaxed)
    }

    /// Gives up waiting for the completion. It may still come, so that there can be no other
    /// operation, and all that this one uses has to stay.
    pub(super) fn abandon(&self) {
        self.abandoned.store(true, Relaxed);
    }

    /// Whether the device may still be performing an operation that nobody waits for.
    pub(super) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Relaxed)
    }
}
