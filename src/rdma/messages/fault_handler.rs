// SPDX-License-Identifier: GPL-2.0

//! The failures of queue pairs.

use kernel::{
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    }, //
};

use crate::bindings;

/// Why a queue pair has failed.
#[derive(Clone, Copy)]
pub(crate) enum QueuePairFault {
    /// A completion names this error, or a Work Request could not be posted.
    Error(&'static CStr),
    /// This end made the queue pair fail.
    GivenUp(&'static CStr),
    /// A Work Request was flushed, or could not be posted because the connection was being closed
    /// (`ENOTCONN`), or failed over siw by `IB_WC_LOC_QP_OP_ERR`, as a Send does that is under way
    /// when the peer disconnects. Something else was the cause.
    Consequence(&'static CStr),
}

/// Is told why a queue pair has failed.
pub(crate) trait FaultHandler: Send + Sync + 'static {
    /// The queue pair has failed, or is about to: messages that completed before can still arrive.
    /// Called for each completion with an error or a flush, for each Work Request of a connection
    /// that could not be posted, and before this end makes the queue pair fail for a reason of its
    /// own ([`QueuePairFault::GivenUp`]). If the id disconnects, only the flushes are reported. May
    /// sleep.
    fn queue_pair_failed(this: ArcBorrow<'_, Self>, fault: QueuePairFault);
}

/// The handler of a queue pair, for completions. This has no reference on it, so that the handler
/// is dropped even if a device keeps the queue pair, and with it everything that completions use.
///
/// # Examples
///
/// ```no_run
/// # let endpoint: Arc<MyEndpoint> = given();
/// // SAFETY: `endpoint` is dropped after the pointer.
/// let handler = unsafe { HandlerPtr::new(&endpoint, false) };
/// MyEndpoint::queue_pair_failed(handler.get(), QueuePairFault::GivenUp(c"too slow"));
/// ```
///
/// # Invariants
///
/// `handler` is of an [`Arc`], on which there is a reference until this is not used any more.
pub(in crate::rdma) struct HandlerPtr<C> {
    handler: *const C,
    /// Whether the device of the queue pair is soft-iWARP.
    siw: bool,
}

// SAFETY: `get` only lends the handler, and a `FaultHandler` is `Send` and `Sync`.
unsafe impl<C: FaultHandler> Send for HandlerPtr<C> {}
// SAFETY: As above.
unsafe impl<C: FaultHandler> Sync for HandlerPtr<C> {}

impl<C: FaultHandler> HandlerPtr<C> {
    /// # Safety
    ///
    /// There must be a reference on `handler` until the returned value is not used any more.
    pub(in crate::rdma) unsafe fn new(handler: &Arc<C>, siw: bool) -> Self {
        // INVARIANT: By the function's requirement.
        Self {
            handler: Arc::as_ptr(handler),
            siw,
        }
    }

    pub(in crate::rdma) fn get(&self) -> ArcBorrow<'_, C> {
        // SAFETY: By the type invariant there is a reference, because this is used.
        unsafe { ArcBorrow::from_raw(self.handler) }
    }

    /// Tells the handler what the status of a failed completion shows. May sleep.
    pub(in crate::rdma) fn operation_failed(&self, status: bindings::ib_wc_status) {
        // SAFETY: The function takes any value.
        let message = unsafe { bindings::ib_wc_status_msg(status) };
        // SAFETY: It returns a static string, and never NULL.
        let message = unsafe { CStr::from_char_ptr(message) };
        let fault = match status {
            bindings::ib_wc_status_IB_WC_WR_FLUSH_ERR => QueuePairFault::Consequence(message),
            bindings::ib_wc_status_IB_WC_LOC_QP_OP_ERR if self.siw => {
                QueuePairFault::Consequence(message)
            }
            _ => QueuePairFault::Error(message),
        };
        C::queue_pair_failed(self.get(), fault);
    }
}
