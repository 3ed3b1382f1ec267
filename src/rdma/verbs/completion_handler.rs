// SPDX-License-Identifier: GPL-2.0

//! The user's side of a queue pair's completions.

use kernel::{
    prelude::*,
    sync::ArcBorrow, //
};

/// Handles the completions of a queue pair.
///
/// The queue pair holds a reference on it until it is destroyed. Both functions may sleep. They
/// must not wait for the end of the connection, which waits for them.
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
///     fn queue_pair_failed(_this: ArcBorrow<'_, Self>, reason: &'static CStr) {
///         pr_info!("the connection is lost: {reason}\n");
///     }
/// }
/// ```
pub(crate) trait CompletionHandler: Send + Sync + 'static {
    /// A message has arrived, which [`QueuePair::next`](super::queue_pair::QueuePair::next)
    /// returns.
    fn arrived(this: ArcBorrow<'_, Self>);

    /// The queue pair has failed, and nothing more can arrive. Called first with the `reason` for
    /// that, if it is known, then for each Receive that is flushed. Also called if this side has
    /// ended the connection.
    fn queue_pair_failed(this: ArcBorrow<'_, Self>, reason: &'static CStr);
}
