// SPDX-License-Identifier: GPL-2.0

//! The sizes, time limits and handler that a queue pair for messages is created with.

use kernel::sync::Arc;

use super::{
    capacity::Capacity,
    completion_handler::CompletionHandler, //
};

/// How long devices may take. If a device exceeds `operation_ms`, the connection is lost. If it
/// then exceeds `flush_ms`, too, the memory of its operation is leaked. So the limits must exceed
/// the times of any working device.
#[derive(Clone, Copy)]
pub(crate) struct TimeLimits {
    /// How long one operation of a queue pair may take before the queue pair fails, in
    /// milliseconds.
    pub(crate) operation_ms: u32,
    /// How long a device may take to flush an operation once the queue pair has failed, in
    /// milliseconds.
    pub(crate) flush_ms: u32,
}

/// The arguments from which a
/// [`MessageQueuePair`](super::message_queue_pair::MessageQueuePair) is created.
///
/// # Examples
///
/// ```no_run
/// let setup = Setup {
///     // 32 Receives of 4096 bytes, and 16 Sends of up to 1024.
///     capacity: Capacity::new(32, 4096, 16, 1024)?,
///     limits: TimeLimits {
///         operation_ms: 5000,
///         flush_ms: 5000,
///     },
///     handler: MyEndpoint::new()?,
/// };
/// ```
pub(crate) struct Setup<C: CompletionHandler> {
    /// How many messages there may be, and of which size.
    pub(crate) capacity: Capacity,
    /// How long operations may take.
    pub(crate) limits: TimeLimits,
    /// Handles the completions.
    pub(crate) handler: Arc<C>,
}
