// SPDX-License-Identifier: GPL-2.0

//! The context in which a completion is handled.

use kernel::prelude::*;

use super::{
    fault_handler::{
        FaultHandler,
        QueuePairFault, //
    },
    operation::{
        lost,
        TOO_LONG, //
    },
    send_queue::{
        BegunSend,
        SendQueue, //
    }, //
};

/// The context in which a completion is handled: what may be done there with the queue pair. It has
/// no function that waits for another completion, which would be handled after this one. Nor does
/// it give [`MayWait`](crate::base::wait::MayWait), without which there is no access to the
/// [`MessageQueuePair`](super::message_queue_pair::MessageQueuePair).
///
/// # Examples
///
/// ```no_run
/// # let context: &CompletionContext<'_, MyEndpoint> = given();
/// let send = context.begin_send()?;
/// send.post(1024, None, |message| message.append(4).map(|to| to.copy_from_slice(b"pong")))?;
/// ```
///
/// It cannot transfer, so this does not compile:
///
/// ```compile_fail,E0599
/// # let (context, rkey): (&CompletionContext<'_, MyEndpoint>, u32) = given();
/// # let mut memory: Memory = given();
/// // error[E0599]: no method named `transfer` found for reference
/// context.transfer(Transfer::Read, &mut memory, 0, 1000, rkey, 0)?;
/// ```
///
/// # Invariants
///
/// The queue pair of `sends` has not been destroyed.
pub(crate) struct CompletionContext<'a, C: FaultHandler> {
    sends: &'a SendQueue<C>,
}

impl<'a, C: FaultHandler> CompletionContext<'a, C> {
    /// # Safety
    ///
    /// The queue pair of `sends` must not be destroyed for `'a`.
    pub(in crate::rdma) unsafe fn new(sends: &'a SendQueue<C>) -> Self {
        // INVARIANT: By the function's requirement.
        Self { sends }
    }

    /// Begins a Send. May sleep.
    ///
    /// Fails with `EBUSY` if all Sends are under way. Fails with `ECONNRESET` if the queue pair has
    /// failed, or if no Send that is under way has completed in time: the queue pair fails then.
    pub(crate) fn begin_send(&self) -> Result<BegunSend<'a, C>> {
        // SAFETY: By the type invariant there is the queue pair.
        match unsafe { self.sends.begin() } {
            Err(error) if error == ETIMEDOUT => {
                self.fail_because(TOO_LONG);
                Err(lost())
            }
            begun => begun,
        }
    }

    /// Makes the queue pair fail, as [`fail_because`] of a queue pair does. May sleep.
    ///
    /// [`fail_because`]: super::message_queue_pair::MessageQueuePair::fail_because
    pub(crate) fn fail_because(&self, reason: &'static CStr) {
        // SAFETY: By the type invariant there is the queue pair.
        unsafe { self.sends.fail_with(QueuePairFault::GivenUp(reason)) };
    }
}
