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

use super::fault_handler::{
    FaultHandler,
    QueuePairFault, //
};
use crate::{
    base::errno::errno,
    bindings, //
};

/// The reason of a failure: the transport has not acknowledged a message or ended an operation.
pub(in crate::rdma) const TOO_LONG: &CStr = c"an operation took too long";

/// The error of an operation that has lost the connection.
pub(in crate::rdma) fn lost() -> Error {
    errno(kernel::bindings::ECONNRESET)
}

/// Returns the fault that `error` is: that of a Work Request that could not be posted.
pub(in crate::rdma) fn post_fault(error: Error, reason: &'static CStr) -> QueuePairFault {
    // siw returns ENOTCONN while it closes the connection.
    if error == errno(kernel::bindings::ENOTCONN) {
        QueuePairFault::Consequence(reason)
    } else {
        QueuePairFault::Error(reason)
    }
}

/// Returns the fault that the status of a failed completion shows.
pub(in crate::rdma) fn fault(status: bindings::ib_wc_status) -> QueuePairFault {
    // SAFETY: The function takes any value.
    let message = unsafe { bindings::ib_wc_status_msg(status) };
    // SAFETY: It returns a static string, and never NULL.
    let message = unsafe { CStr::from_char_ptr(message) };
    match status {
        bindings::ib_wc_status_IB_WC_WR_FLUSH_ERR => QueuePairFault::Consequence(message),
        _ => QueuePairFault::Error(message),
    }
}

/// The operation, other than a Send, that a queue pair performs at present, and whose completion a
/// task waits for.
///
/// It lives as long as the queue pair and serves all these operations: siw can complete a flushed
/// operation twice.
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
/// more. `cqe` and `done` are initialized.
#[pin_data]
pub(in crate::rdma) struct Operation<C: FaultHandler> {
    #[pin]
    cqe: Opaque<bindings::ib_cqe>,
    #[pin]
    done: Opaque<kernel::bindings::completion>,
    status: Atomic<bindings::ib_wc_status>,
    abandoned: AtomicFlag,
    handler: *const C,
}

impl<C: FaultHandler> Operation<C> {
    /// Creates the operation of a queue pair. `handler` is told if it fails.
    ///
    /// # Safety
    ///
    /// `handler` must be of an [`Arc`](kernel::sync::Arc) that is held until no completion can
    /// arrive any more, and the operation must stay until then.
    pub(in crate::rdma) unsafe fn new(handler: *const C) -> impl PinInit<Self> {
        // INVARIANT: `handler` is such by the function's requirement. `cqe` and `done` are
        // initialized here.
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

    /// Handles the completion of an operation.
    ///
    /// # Safety
    ///
    /// Called only by the RDMA core, with the completion of a Work Request that carries the
    /// completion entry of an operation.
    unsafe extern "C" fn done(_: *mut bindings::ib_cq, completion: *mut bindings::ib_wc) {
        // SAFETY: By the function's requirement the completion is valid during the call.
        let completion = unsafe { &*completion };
        // SAFETY: By the function's requirement the Work Request carries a completion entry, so
        // this is the member in use.
        let cqe = unsafe { completion.__bindgen_anon_1.wr_cqe };
        // SAFETY: By the function's requirement the entry is that of an operation. By the
        // requirement of `new` the operation is still there.
        let this = unsafe { &*container_of!(cqe.cast::<Opaque<bindings::ib_cqe>>(), Self, cqe) };
        if completion.status != bindings::ib_wc_status_IB_WC_SUCCESS {
            // SAFETY: By the type invariant the handler is of an `Arc` that is still held, as this
            // is a completion.
            let handler = unsafe { ArcBorrow::from_raw(this.handler) };
            C::queue_pair_failed(handler, fault(completion.status));
        }
        this.status.store(completion.status, Relaxed);
        // SAFETY: By the type invariant it is initialized.
        unsafe { kernel::bindings::complete(this.done.get()) };
    }

    /// Returns the completion entry, from which the function `done` gets back to the operation.
    pub(in crate::rdma) fn cqe(&self) -> *mut bindings::ib_cqe {
        let this = ptr::from_ref(self);
        // SAFETY: `self` is valid. The pointer is derived from one to the whole, so `done` may use
        // it to access the whole.
        unsafe { &raw const (*this).cqe }.cast_mut().cast()
    }

    /// Prepares for the completion of the next operation. Called with the lock that all operations
    /// of the queue pair take.
    pub(in crate::rdma) fn begin(&self) {
        // SAFETY: By the type invariant it is initialized.
        unsafe { bindings::shim_reinit_completion(self.done.get()) };
    }

    /// Waits up to `milliseconds` for the completion, and returns whether there was one. May sleep.
    pub(in crate::rdma) fn wait(&self, milliseconds: u32) -> bool {
        let jiffies = msecs_to_jiffies(milliseconds);
        // SAFETY: By the type invariant it is initialized.
        let left =
            unsafe { kernel::bindings::wait_for_completion_timeout(self.done.get(), jiffies) };
        left > 0
    }

    /// Returns the status of the latest completion.
    pub(in crate::rdma) fn status(&self) -> bindings::ib_wc_status {
        self.status.load(Relaxed)
    }

    /// Gives up waiting for the completion. The device may still perform the operation, so there
    /// can be no other operation, and everything that this one uses has to stay.
    pub(in crate::rdma) fn abandon(&self) {
        self.abandoned.store(true, Relaxed);
    }

    /// Whether the device may still perform an operation that was abandoned.
    pub(in crate::rdma) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Relaxed)
    }
}
