// SPDX-License-Identifier: GPL-2.0

//! The failures of queue pairs.

use kernel::{
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    }, //
};

/// Why a queue pair has failed.
#[derive(Clone, Copy)]
pub(crate) enum QueuePairFault {
    /// A completion names this error, or a Work Request could not be posted.
    Error(&'static CStr),
    /// This end made the queue pair fail.
    GivenUp(&'static CStr),
    /// A Work Request was flushed, or could not be posted because the connection was being closed
    /// (`ENOTCONN`). Something else was the cause.
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
/// let handler = unsafe { HandlerPtr::new(&endpoint) };
/// MyEndpoint::queue_pair_failed(handler.get(), QueuePairFault::GivenUp(c"too slow"));
/// ```
///
/// # Invariants
///
/// The pointer is of an [`Arc`], on which there is a reference until this is not used any more.
pub(in crate::rdma) struct HandlerPtr<C>(*const C);

// SAFETY: `get` only lends the handler, and a `FaultHandler` is `Send` and `Sync`.
unsafe impl<C: FaultHandler> Send for HandlerPtr<C> {}
// SAFETY: As above.
unsafe impl<C: FaultHandler> Sync for HandlerPtr<C> {}

impl<C: FaultHandler> HandlerPtr<C> {
    /// # Safety
    ///
    /// There must be a reference on `handler` until the returned value is not used any more.
    pub(in crate::rdma) unsafe fn new(handler: &Arc<C>) -> Self {
        // INVARIANT: By the function's requirement.
        Self(Arc::as_ptr(handler))
    }

    pub(in crate::rdma) fn get(&self) -> ArcBorrow<'_, C> {
        // SAFETY: By the type invariant there is a reference, because this is used.
        unsafe { ArcBorrow::from_raw(self.0) }
    }
}
