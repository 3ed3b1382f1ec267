// SPDX-License-Identifier: GPL-2.0

//! Messages that have arrived.

use kernel::{
    prelude::*,
    sync::Mutex,
    time::{
        Instant,
        Monotonic, //
    }, //
};

/// A message that has arrived.
///
/// # Examples
///
/// ```ignore
/// queue_pair.next(|octets, arrival| {
///     if let Some(stag) = arrival.invalidated {
///         pr_info!("{} octets, and {stag:#x} is invalid now\n", octets.len());
///     }
/// });
/// ```
#[derive(Clone, Copy)]
pub(crate) struct Arrival {
    /// Which Receive it is in.
    pub(super) receive: usize,
    pub(super) len: usize,
    /// The Steering Tag that the peer has invalidated with it (RFC 8797, section 4.1).
    pub(crate) invalidated: Option<u32>,
    /// When it arrived.
    pub(crate) at: Instant<Monotonic>,
}

/// The messages that have arrived and not been taken yet, the oldest one first. It has room for one
/// in each Receive.
pub(super) type Arrivals = Mutex<KVec<Arrival>>;
