// SPDX-License-Identifier: GPL-2.0

//! The user's side of a queue pair's completions.

use kernel::{
    prelude::*,
    sync::ArcBorrow, //
};

use super::{
    arrival::Arrival,
    completion_context::CompletionContext,
    fault_handler::FaultHandler, //
};

/// Handles the completions and the events of a queue pair.
///
/// The queue pair holds a reference on it until it is destroyed. The functions that may sleep must
/// not wait for the end of the connection, which waits for them.
///
/// # Examples
///
/// ```no_run
/// # pub(super) struct MyEndpoint;
/// impl FaultHandler for MyEndpoint {
///     fn queue_pair_failed(_this: ArcBorrow<'_, Self>, fault: QueuePairFault) {
///         if let QueuePairFault::Error(reason) = fault {
///             pr_info!("the connection is lost: {reason}\n");
///         }
///     }
/// }
///
/// impl CompletionHandler for MyEndpoint {
///     fn arrived(
///         _this: ArcBorrow<'_, Self>,
///         context: &CompletionContext<'_, Self>,
///         bytes: &[u8],
///         _arrival: &Arrival,
///     ) -> bool {
///         if let Ok(send) = context.begin_send() {
///             let copy = |buffer: &mut [u8]| buffer.copy_from_slice(bytes);
///             let _ = send.post(1024, None, |message| message.append(bytes.len()).map(copy));
///         }
///         true
///     }
///
///     fn queue_pair_event(_this: ArcBorrow<'_, Self>, event: &'static CStr) {
///         pr_info!("the connection is going to be lost: {event}\n");
///     }
/// }
/// ```
pub(crate) trait CompletionHandler: FaultHandler {
    /// A message has arrived, of these bytes. Called for one message after the other, in their
    /// order: where completions are handled or, for a message that was not taken at first, by the
    /// task that calls [`MessageQueuePair::resume`]. May sleep, which delays other completions, and
    /// must not wait for any. Must not take a lock that is held during an operation: one that is
    /// late waits for this function without a limit. The Receive is posted again afterwards.
    ///
    /// Returns whether the handler has taken the message. If not, that message and all later ones
    /// wait for [`MessageQueuePair::resume`].
    ///
    /// [`MessageQueuePair::resume`]: super::message_queue_pair::MessageQueuePair::resume
    fn arrived(
        this: ArcBorrow<'_, Self>,
        context: &CompletionContext<'_, Self>,
        bytes: &[u8],
        arrival: &Arrival,
    ) -> bool
    where
        Self: Sized;

    /// The device says by an event, of this name, that the queue pair has failed. Called in any
    /// context; must not sleep. The Receives are flushed, which calls
    /// [`queue_pair_failed`](FaultHandler::queue_pair_failed) before or after this. Not called over
    /// siw for `IB_EVENT_QP_FATAL` and `IB_EVENT_QP_REQ_ERR`: a disconnect of the peer causes them.
    fn queue_pair_event(this: ArcBorrow<'_, Self>, event: &'static CStr);
}
