// SPDX-License-Identifier: GPL-2.0

//! The user's side of a queue pair's completions.

use kernel::{
    prelude::*,
    sync::ArcBorrow, //
};

/// Why a queue pair has failed.
#[derive(Clone, Copy)]
pub(crate) enum QueuePairFault {
    /// A completion names this error.
    Error(&'static CStr),
    /// This end made the queue pair fail.
    GivenUp(&'static CStr),
    /// A Work Request was flushed, or could not be posted, because of something else.
    Consequence(&'static CStr),
}

/// Handles the completions and the events of a queue pair.
///
/// The queue pair holds a reference on it until it is destroyed. The functions that may sleep must
/// not wait for the end of the connection, which waits for them.
///
/// # Examples
///
/// ```no_run
/// # struct MyEndpoint {
/// #     queue: Arc<WorkQueue>,
/// #     work: Arc<MyWork>,
/// # }
/// impl CompletionHandler for MyEndpoint {
///     fn arrived(this: ArcBorrow<'_, Self>) {
///         // The work takes the message with `QueuePair::next`.
///         let _ = this.queue.enqueue(this.work.clone());
///     }
///
///     fn queue_pair_failed(_this: ArcBorrow<'_, Self>, fault: QueuePairFault) {
///         if let QueuePairFault::Error(reason) = fault {
///             pr_info!("the connection is lost: {reason}\n");
///         }
///     }
///
///     fn queue_pair_event(_this: ArcBorrow<'_, Self>, event: &'static CStr) {
///         pr_info!("the connection is going to be lost: {event}\n");
///     }
/// }
/// ```
pub(crate) trait CompletionHandler: Send + Sync + 'static {
    /// A message has arrived, which [`QueuePair::next`](super::queue_pair::QueuePair::next)
    /// returns. May sleep.
    fn arrived(this: ArcBorrow<'_, Self>);

    /// The queue pair has failed, and nothing more can arrive. Called with the error, if a
    /// completion names one, and for each Receive that is flushed. Also called if this side has
    /// ended the connection. May sleep.
    fn queue_pair_failed(this: ArcBorrow<'_, Self>, fault: QueuePairFault);

    /// The device says by an event, of this name, that the queue pair has failed. Called in any
    /// context; must not sleep. The Receives are flushed, which calls
    /// [`queue_pair_failed`](Self::queue_pair_failed) before or after this.
    fn queue_pair_event(this: ArcBorrow<'_, Self>, event: &'static CStr);
}
