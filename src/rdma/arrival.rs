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

/// A Steering Tag of this side's that the peer has invalidated (RFC 8797, section 4.1).
///
/// Only the completion of a Receive makes one, so that
/// [`Registration::invalidate`](super::registration::Registration::invalidate) can rely on it: the
/// peer has no access any more.
///
/// # Examples
///
/// ```ignore
/// reply.invalidate(arrival.invalidated)?;
/// ```
///
/// A user cannot make one up:
///
/// ```compile_fail
/// // error[E0451]: field `stag` of struct `Invalidated` is private
/// reply.invalidate(Some(Invalidated { stag: 0x100 }))?;
/// ```
#[derive(Clone, Copy, Debug)]
pub(crate) struct Invalidated {
    pub(super) stag: u32,
}

/// A message that has arrived.
///
/// # Examples
///
/// ```ignore
/// queue_pair.next(|octets, arrival| {
///     if let Some(invalidated) = arrival.invalidated {
///         pr_info!("{} octets, and {invalidated:x?}\n", octets.len());
///     }
/// });
/// ```
#[derive(Clone, Copy)]
pub(crate) struct Arrival {
    /// Which Receive it is in.
    pub(super) receive: usize,
    pub(super) len: usize,
    /// The Steering Tag that the peer has invalidated with it.
    pub(crate) invalidated: Option<Invalidated>,
    /// When it arrived.
    pub(crate) at: Instant<Monotonic>,
}

/// The messages that have arrived and not been taken yet, the oldest one first. It has room for one
/// in each Receive.
pub(super) type Arrivals = Mutex<KVec<Arrival>>;
