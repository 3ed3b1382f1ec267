// SPDX-License-Identifier: GPL-2.0

//! Calls that have not been answered.

use core::mem;

use kernel::prelude::*;

use crate::{
    pure::wire::{
        header::{
            direction::Direction,
            Body,
            Header,
            Version, //
        },
        rpc_message, //
    },
    rdma::verbs::arrival::Arrival, //
};

/// The state of a place.
#[derive(Clone, Copy)]
enum State {
    /// The place has no call.
    Free,
    /// The call waits for its reply.
    Waiting,
    /// The reply with this number has arrived.
    Answered(Arrival, u64),
}

/// A place, with the call whose caller waits for it.
struct Pending {
    state: State,
    xid: u32,
    version: u32,
    /// The buffer for the reply: has the capacity for any message while the call waits, and holds
    /// the reply after that.
    octets: KVec<u8>,
}

impl Pending {
    const FREE: Self = Self {
        state: State::Free,
        xid: 0,
        version: 0,
        octets: KVec::new(),
    };
}

/// A reply to a call whose caller waits.
pub(super) struct ReceivedReply {
    pub(super) arrival: Arrival,
    /// The number of the reply among all replies, in the order of their arrival.
    pub(super) number: u64,
    pub(super) octets: KVec<u8>,
}

/// The calls of an endpoint that have not been answered, by their XIDs. Each holds a credit (RFC
/// 8166, section 3.3.1), so their number is limited by the credits that this end requests.
pub(super) struct Calls {
    /// The places. The caller chooses the place of each call.
    pending: KVec<Pending>,
    /// The XIDs and versions of calls that were given up: no caller waits for them any more.
    given_up: KVec<(u32, u32)>,
    /// The number of replies that have arrived, to calls that were given up, too.
    answered: u64,
    /// The number of the latest reply that granted credits.
    granted: u64,
}

impl Calls {
    /// Makes a place for each of `credits`; process context. Fails with `ENOMEM`.
    pub(super) fn new(credits: u32) -> Result<Self> {
        let credits = credits as usize;
        let mut pending = KVec::with_capacity(credits, GFP_KERNEL)?;
        for _ in 0..credits {
            pending.push(Pending::FREE, GFP_KERNEL)?;
        }
        Ok(Self {
            pending,
            given_up: KVec::with_capacity(credits, GFP_KERNEL)?,
            answered: 0,
            granted: 0,
        })
    }

    /// Returns how many calls hold a credit: those that wait for a reply, and these together with
    /// those that were given up.
    pub(super) fn count(&self) -> (usize, usize) {
        let is_waiting = |pending: &&Pending| matches!(pending.state, State::Waiting);
        let waiting = self.pending.iter().filter(is_waiting).count();
        (waiting, waiting + self.given_up.len())
    }

    /// Whether an outstanding call has this XID. Calls that were given up count.
    pub(super) fn has(&self, xid: u32) -> bool {
        let is_waiting =
            |pending: &Pending| matches!(pending.state, State::Waiting) && pending.xid == xid;
        self.pending.iter().any(is_waiting) || self.given_up.iter().any(|call| call.0 == xid)
    }

    /// Takes the reply buffer of a free place, to be used again.
    pub(super) fn take_room(&mut self, place: usize) -> KVec<u8> {
        let pending = self.pending.get_mut(place);
        pending.map_or(KVec::new(), |pending| mem::take(&mut pending.octets))
    }

    /// Puts a call that waits for its reply at `place`. `room` is the buffer for the reply.
    pub(super) fn begin(&mut self, place: usize, xid: u32, version: u32, room: KVec<u8>) {
        if let Some(pending) = self.pending.get_mut(place) {
            *pending = Pending {
                state: State::Waiting,
                xid,
                version,
                octets: room,
            };
        }
    }

    /// Hands a message to the call that waits for it. A message for a call that was given up only
    /// returns the credit of that call.
    pub(super) fn answer(
        &mut self,
        header: &Header<'_>,
        payload: &[u8],
        octets: &[u8],
        arrival: &Arrival,
    ) -> Answered {
        let answers = |xid, version| xid == header.xid && is_answer(header, payload, version);
        let number = self.answered;
        let pending = self.pending.iter_mut().find(|pending| {
            matches!(pending.state, State::Waiting)
                && answers(pending.xid, pending.version)
                && octets.len() <= pending.octets.capacity()
        });
        if let Some(pending) = pending {
            // Cannot fail: the capacity was checked above.
            let _ = pending.octets.extend_from_slice(octets, GFP_KERNEL);
            pending.state = State::Answered(*arrival, number);
            self.answered = number.wrapping_add(1);
            return Answered::Waiting;
        }
        let outstanding = self.given_up.len();
        self.given_up
            .retain(|&mut (xid, version)| !answers(xid, version));
        if self.given_up.len() == outstanding {
            return Answered::None;
        }
        self.answered = number.wrapping_add(1);
        Answered::GivenUp(number)
    }

    /// Whether the reply with this number grants credits: the latest one counts (RFC 8166, section
    /// 3.3.1), and a reply to a call that was given up is read before those that still wait for
    /// their caller.
    pub(super) fn may_grant(&mut self, number: u64) -> bool {
        let may = number >= self.granted;
        if may {
            self.granted = number;
        }
        may
    }

    /// Returns the place of the call whose reply arrived first.
    pub(super) fn first_answered(&self) -> Option<usize> {
        let answered = (0..)
            .zip(&self.pending)
            .filter_map(|(at, pending)| match pending.state {
                State::Answered(_, number) => Some((number, at)),
                State::Free | State::Waiting => None,
            });
        answered.min().map(|(_, at)| at)
    }

    /// Frees a place, and returns the reply if it has arrived. A call that was `sent` and has no
    /// reply yet is given up, and keeps its credit.
    pub(super) fn end(&mut self, place: usize, sent: bool) -> Option<ReceivedReply> {
        let pending = self.pending.get_mut(place)?;
        let state = mem::replace(&mut pending.state, State::Free);
        match state {
            State::Answered(arrival, number) => Some(ReceivedReply {
                arrival,
                number,
                octets: mem::take(&mut pending.octets),
            }),
            State::Waiting if sent => {
                // Cannot fail: the call holds one of the credits, and `given_up` has capacity for
                // all of them.
                let call = (pending.xid, pending.version);
                let _ = self.given_up.push_within_capacity(call);
                None
            }
            State::Waiting | State::Free => None,
        }
    }

    /// Gives a reply buffer back to its place, for the next call there.
    pub(super) fn put_room(&mut self, place: usize, room: KVec<u8>) {
        if let Some(pending) = self.pending.get_mut(place) {
            pending.octets = room;
        }
    }

    /// Frees the reply buffers of all places except the first one, which the next call needs.
    pub(super) fn shrink(&mut self) {
        for pending in self.pending.iter_mut().skip(1) {
            pending.octets = KVec::new();
        }
    }
}

/// The call that a message answers.
pub(super) enum Answered {
    /// A call whose caller waits.
    Waiting,
    /// A call that was given up, by the reply or error with this number.
    GivenUp(u64),
    /// No call.
    None,
}

/// Whether the message with this header answers a call that was made in `version`.
fn is_answer(header: &Header<'_>, payload: &[u8], version: u32) -> bool {
    let same_version = header.version() == version;
    match header.body {
        // Calls in the other direction have XIDs of their own (RFC 8167, section 2.4.1).
        Body::Msg(Version::One, _) => same_version && rpc_message::is_reply(payload),
        // A Long Call has a Read chunk, a Long Reply a Reply chunk.
        Body::Nomsg(Version::One, lists) => {
            same_version && lists.reads.is_empty() && lists.reply.is_some()
        }
        Body::Msg(Version::Two(direction), _) | Body::Nomsg(Version::Two(direction), _) => {
            same_version && direction == Direction::Reply
        }
        // ERR_VERS may have another version (RFC 8166, section 7).
        Body::ErrVers { .. } => true,
        // An error has the version of the call (RFC 8166, section 4.5; the draft, section 5.3).
        Body::ErrChunk | Body::ErrBadHeader | Body::ErrInvalidOption => same_version,
        Body::Optional { .. } => false,
    }
}
