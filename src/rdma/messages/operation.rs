// SPDX-License-Identifier: GPL-2.0

//! Operations of a queue pair.

use kernel::{
    new_condvar,
    new_spinlock,
    prelude::*,
    sync::{
        atomic::{
            AtomicFlag,
            Relaxed, //
        },
        Arc,
        CondVar,
        SpinLock, //
    }, //
};

use super::fault_handler::{
    FaultHandler,
    HandlerPtr,
    QueuePairFault, //
};
use crate::{
    base::{
        errno::errno,
        wait::wait_while, //
    },
    bindings,
    rdma::verbs::cqe::{
        Cqe,
        Done, //
    }, //
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

/// The operation, other than a Send, that a queue pair performs at present, and whose completion a
/// task waits for.
///
/// It lives as long as the queue pair and serves all these operations: siw can complete a flushed
/// operation twice.
///
/// # Examples
///
/// ```no_run
/// # let operation: &Cqe<Operation<MyEndpoint>> = given();
/// # let mut request = bindings::ib_send_wr::default();
/// operation.begin();
/// request.__bindgen_anon_1.wr_cqe = operation.entry();
/// // ... post the request ...
/// if operation.wait(5000).is_none() {
///     operation.abandon();
/// }
/// ```
#[pin_data]
pub(in crate::rdma) struct Operation<C: FaultHandler> {
    /// The status of its completion; [`None`] before that.
    #[pin]
    status: SpinLock<Option<bindings::ib_wc_status>>,
    /// Notified when it has completed.
    #[pin]
    completed: CondVar,
    abandoned: AtomicFlag,
    handler: HandlerPtr<C>,
}

impl<C: FaultHandler> Operation<C> {
    /// Creates the operation of a queue pair. `handler` is told if it fails. `siw` says whether
    /// the device is soft-iWARP.
    ///
    /// # Safety
    ///
    /// There must be a reference on `handler` until no completion can arrive any more, and the
    /// operation must stay until then.
    pub(in crate::rdma) unsafe fn new(handler: &Arc<C>, siw: bool) -> impl PinInit<Cqe<Self>> {
        // SAFETY: Only completions use it. By the function's requirement there is a reference on
        // the handler until no completion can arrive any more.
        let handler = unsafe { HandlerPtr::new(handler, siw) };
        Cqe::new(pin_init!(Self {
            status <- new_spinlock!(None, "Operation::status"),
            completed <- new_condvar!("Operation::completed"),
            abandoned: AtomicFlag::new(false),
            handler,
        }))
    }

    /// Prepares for the completion of the next operation. Called with the lock that all operations
    /// of the queue pair take.
    pub(in crate::rdma) fn begin(&self) {
        *self.status.lock() = None;
    }

    /// Waits up to `milliseconds` for the completion, and returns its status, or [`None`] if there
    /// was none. May sleep.
    pub(in crate::rdma) fn wait(&self, milliseconds: u32) -> Option<bindings::ib_wc_status> {
        wait_while(&self.completed, &self.status, milliseconds, Option::is_none);
        *self.status.lock()
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

impl<C: FaultHandler> Done for Operation<C> {
    unsafe fn done(this: &Cqe<Self>, completion: &bindings::ib_wc) {
        if completion.status != bindings::ib_wc_status_IB_WC_SUCCESS {
            this.handler.operation_failed(completion.status);
        }
        *this.status.lock() = Some(completion.status);
        this.completed.notify_all();
    }
}
