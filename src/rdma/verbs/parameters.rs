// SPDX-License-Identifier: GPL-2.0

//! Limits and times that the user of this layer chooses.

use kernel::prelude::*;

/// The configuration of ids and their queue pairs.
///
/// # Examples
///
/// ```no_run
/// const PARAMETERS: Parameters = Parameters {
///     owner: c"my_module",
///     retry_count: 6,
///     rnr_retry_count: 7,
///     operation_ms: 5000,
///     flush_ms: 5000,
///     disconnect_ms: 10_000,
///     reads: false,
/// };
/// ```
#[derive(Clone, Copy)]
pub(crate) struct Parameters {
    /// The name under which the resource tracker lists ids, queue pairs and their other objects.
    pub(crate) owner: &'static CStr,
    /// How often the transport retransmits a message before the connection is lost: 0 to 7.
    pub(crate) retry_count: u8,
    /// How often the transport retransmits a message for which the peer had posted no Receive: 0 to
    /// 6, or 7 for no limit.
    pub(crate) rnr_retry_count: u8,
    /// How long one operation of a queue pair may take before the queue pair fails, in
    /// milliseconds.
    pub(crate) operation_ms: u32,
    /// How long a device may take to flush an operation once the queue pair has failed, in
    /// milliseconds.
    pub(crate) flush_ms: u32,
    /// How long the peer may take to answer a DREQ, in milliseconds.
    pub(crate) disconnect_ms: u32,
    /// Whether a client's queue pair may read the memory of its peer. For servers this must be
    /// `false`: their queue pairs may always do that.
    pub(crate) reads: bool,
}
