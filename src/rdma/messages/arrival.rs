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

use super::seqno::Seqno;

/// The proof that the peer has invalidated an rkey of this side (RFC 8797, section 4.1).
///
/// Only the completion of a Receive makes one, so [`Registration::invalidate`] can rely on it: the
/// peer has no access any more. It holds for one queue pair and one moment. A copy that is kept
/// does no harm: it has no effect on a later registration under the same rkey, nor on one of
/// another queue pair.
///
/// [`Registration::invalidate`]: crate::rdma::registration::Registration::invalidate
///
/// # Examples
///
/// ```no_run
/// # let (mut reply, arrival): (Registration<'_, MyEndpoint>, Arrival) = given();
/// reply.invalidate(arrival.invalidated)?;
/// ```
///
/// A user cannot make one up:
///
/// ```compile_fail,E0451
/// # let (mut reply, invalidated): (Registration<'_, MyEndpoint>, Invalidated) = given();
/// // error[E0451]: field `rkey` of struct `Invalidated` is private
/// reply.invalidate(Some(Invalidated { rkey: 0x100, ..invalidated }))?;
/// ```
///
/// An old one does not take effect again:
///
/// ```no_run
/// # let (mut reply, invalidated): (Registration<'_, MyEndpoint>, Invalidated) = given();
/// reply.invalidate(Some(invalidated))?;
/// for xid in 0..256 {
///     reply.register(xid)?;
///     // The last one of these has the rkey again that the peer invalidated. Each of them
///     // returns 1: the region was invalidated by this side.
///     assert_eq!(reply.invalidate(Some(invalidated))?, 1);
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub(crate) struct Invalidated {
    /// The number of the queue pair that the message arrived on.
    queue_pair: Seqno,
    /// When the message arrived.
    at: Seqno,
    rkey: u32,
}

impl Invalidated {
    /// Notes that a message that invalidated `rkey` has arrived now, on the queue pair whose number
    /// is `queue_pair`.
    pub(in crate::rdma) fn now(queue_pair: Seqno, rkey: u32) -> Self {
        Self {
            queue_pair,
            at: Seqno::next(),
            rkey,
        }
    }

    /// Whether this has ended the access that the peer was given under `rkey` at `registered`, on
    /// the queue pair whose number is `queue_pair`.
    pub(in crate::rdma) fn has_ended(
        &self,
        queue_pair: Seqno,
        rkey: u32,
        registered: Seqno,
    ) -> bool {
        self.queue_pair == queue_pair && self.rkey == rkey && registered < self.at
    }
}

/// A message that has arrived.
///
/// # Examples
///
/// ```no_run
/// # let (bytes, arrival): (&[u8], &Arrival) = given();
/// if let Some(invalidated) = arrival.invalidated {
///     pr_info!("{} bytes, and {invalidated:x?}\n", bytes.len());
/// }
/// ```
#[derive(Clone, Copy)]
pub(crate) struct Arrival {
    /// The number of the Receive that holds the message.
    pub(in crate::rdma) receive: usize,
    /// The length of the message in bytes.
    pub(in crate::rdma) len: usize,
    /// The rkey that the peer has invalidated with the message, if any.
    pub(crate) invalidated: Option<Invalidated>,
    /// When the message arrived.
    pub(crate) at: Instant<Monotonic>,
}

/// The messages that the handler has not taken yet.
pub(in crate::rdma) struct Held {
    /// The messages, the oldest one first. There is capacity for one message for each Receive.
    pub(in crate::rdma) messages: KVec<Arrival>,
    /// The queue pair is going to be destroyed: completions may not use it any more.
    pub(in crate::rdma) closed: bool,
}

/// The lock that is held while the handler takes a message.
pub(in crate::rdma) type Arrivals = Mutex<Held>;
