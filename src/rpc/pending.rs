// SPDX-License-Identifier: GPL-2.0

//! Calls that have not been answered.

use core::mem;

use kernel::{
    prelude::*,
    time::{
        Instant,
        Monotonic, //
    }, //
};

use crate::{
    pure::{
        text::outcome::Answer,
        wire::{
            discarded::Fault,
            header::{
                chunks::{
                    ChunkLists,
                    List,
                    Segment, //
                },
                direction::Direction,
                Body,
                Header,
                Version, //
            },
            rpc_message, //
        }, //
    },
    rdma::messages::arrival::Arrival, //
};

/// The state of a place.
#[derive(Clone, Copy)]
enum PlaceState {
    /// The place has no call.
    Free,
    /// The call waits for its reply.
    Waiting,
    /// The reply has arrived.
    Answered(ReceivedReply),
}

/// A message that was discarded while a call waited for its reply.
#[derive(Clone, Copy)]
pub(super) struct Discarded {
    pub(super) fault: Fault,
    /// Whether it can only have been the answer to this call.
    pub(super) certain: bool,
    pub(super) at: Instant<Monotonic>,
}

/// A place, with the call whose caller waits for it.
struct Pending {
    state: PlaceState,
    xid: u32,
    version: u32,
    /// The segments of the Reply chunk that was offered; empty if none was.
    reply_chunk: KVec<Segment>,
    /// The first message that was discarded and may have been the answer. A certain one replaces an
    /// uncertain one.
    discarded: Option<Discarded>,
    /// The buffer for the reply: has the capacity for any message while the call waits, and holds
    /// the reply after that.
    octets: KVec<u8>,
}

impl Pending {
    const FREE: Self = Self {
        state: PlaceState::Free,
        xid: 0,
        version: 0,
        reply_chunk: KVec::new(),
        discarded: None,
        octets: KVec::new(),
    };
}

/// A call that was given up: no caller waits for it any more.
struct GivenUp {
    xid: u32,
    version: u32,
    reply_chunk: KVec<Segment>,
}

/// A reply to a call whose caller waits, by its header.
#[derive(Clone, Copy)]
pub(super) struct ReceivedReply {
    pub(super) arrival: Arrival,
    /// The number of the reply among all replies, in the order of their arrival.
    pub(super) number: u64,
    pub(super) answer: Answer,
    /// The credits that it grants.
    pub(super) credits: u32,
    pub(super) has_writes: bool,
    /// The length in octets that the Reply chunk returns, if the reply has one.
    pub(super) reply_chunk: Option<u64>,
    /// The length of the header in octets.
    pub(super) header_len: usize,
}

impl ReceivedReply {
    /// Returns [`None`] if the message is no answer.
    fn new(header: &Header<'_>, header_len: usize, arrival: &Arrival, number: u64) -> Option<Self> {
        let lists = match header.body {
            Body::Msg(_, lists) | Body::Nomsg(_, lists) => lists,
            _ => ChunkLists::EMPTY,
        };
        Some(Self {
            arrival: *arrival,
            number,
            answer: Answer::of(header)?,
            credits: header.credit,
            has_writes: !lists.writes.is_empty(),
            reply_chunk: lists.reply.map(|chunk| chunk.length()),
            header_len,
        })
    }
}

/// The calls of an endpoint that have not been answered, by their XIDs. Each holds a credit (RFC
/// 8166, section 3.3.1), so their number is limited by the credits that this end requests.
pub(super) struct Calls {
    /// The places. The caller chooses the place of each call.
    pending: KVec<Pending>,
    given_up: KVec<GivenUp>,
    /// The number of replies that have arrived, to calls that were given up, too.
    answered: u64,
    /// The number of the latest reply that granted credits.
    granted: u64,
    /// Whether the peer may send nothing but replies, because this end answers no calls.
    only_replies: bool,
}

impl Calls {
    /// Creates a place for each of `credits`; process context. Fails with `ENOMEM`.
    pub(super) fn new(credits: u32, only_replies: bool) -> Result<Self> {
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
            only_replies,
        })
    }

    /// Returns how many calls hold a credit: those that wait for a reply, and these together with
    /// those that were given up.
    pub(super) fn count(&self) -> (usize, usize) {
        let is_waiting = |pending: &&Pending| matches!(pending.state, PlaceState::Waiting);
        let waiting = self.pending.iter().filter(is_waiting).count();
        (waiting, waiting + self.given_up.len())
    }

    /// Whether an outstanding call has this XID. Calls that were given up count.
    pub(super) fn has(&self, xid: u32) -> bool {
        let is_waiting =
            |pending: &Pending| matches!(pending.state, PlaceState::Waiting) && pending.xid == xid;
        self.pending.iter().any(is_waiting) || self.given_up.iter().any(|call| call.xid == xid)
    }

    /// Takes the reply buffer of a free place, to be used again.
    pub(super) fn take_room(&mut self, place: usize) -> KVec<u8> {
        let pending = self.pending.get_mut(place);
        pending.map_or(KVec::new(), |pending| mem::take(&mut pending.octets))
    }

    /// Puts a call that waits for its reply at `place`. It offers `reply_chunk`. `room` is the
    /// buffer for the reply.
    pub(super) fn begin(
        &mut self,
        place: usize,
        xid: u32,
        version: u32,
        reply_chunk: KVec<Segment>,
        room: KVec<u8>,
    ) {
        if let Some(pending) = self.pending.get_mut(place) {
            *pending = Pending {
                state: PlaceState::Waiting,
                xid,
                version,
                reply_chunk,
                discarded: None,
                octets: room,
            };
        }
    }

    /// Hands a message to the call that waits for it. The caller of this function then stores its
    /// octets, by [`Self::store`]. A message for a call that was given up only returns the
    /// credit of that call. Any other message is to be discarded.
    pub(super) fn answer(
        &mut self,
        header: &Header<'_>,
        header_len: usize,
        payload: &[u8],
        arrival: &Arrival,
    ) -> Answered {
        let number = self.answered;
        let mut pending = self.pending.iter_mut().enumerate();
        let waiting = pending.find(|(_, pending)| {
            matches!(pending.state, PlaceState::Waiting) && pending.xid == header.xid
        });
        if let Some((place, pending)) = waiting {
            let checked = check_answer(header, payload, pending.version)
                .and_then(|()| check_chunks(header, &pending.reply_chunk));
            let reply = ReceivedReply::new(header, header_len, arrival, number);
            match checked.and(reply.ok_or(Fault::Type)) {
                Ok(reply) => pending.state = PlaceState::Answered(reply),
                Err(fault) => return Answered::None(fault),
            }
            self.answered = number.wrapping_add(1);
            return Answered::Waiting(place);
        }
        let mut given_up = self.given_up.iter().enumerate();
        let Some((place, call)) = given_up.find(|(_, call)| call.xid == header.xid) else {
            return Answered::None(Fault::Xid(header.xid));
        };
        if let Err(fault) = check_answer(header, payload, call.version) {
            return Answered::None(fault);
        }
        let is_valid = check_chunks(header, &call.reply_chunk).is_ok();
        let _ = self.given_up.remove(place);
        self.answered = number.wrapping_add(1);
        Answered::GivenUp { number, is_valid }
    }

    /// Notes that a message was discarded because of `fault`, for the calls that it may have
    /// answered: for the call with its XID, if there is one, otherwise for all that wait.
    ///
    /// The XID of a message that is too short cannot be trusted (RFC 8166, section 4.5). If the
    /// peer may send nothing but replies, the message can only have been the answer to the one
    /// outstanding call.
    pub(super) fn discard(&mut self, xid: Option<u32>, fault: Fault) {
        let (waiting, outstanding) = self.count();
        let alone = waiting == 1 && outstanding == 1;
        let known = xid.filter(|&xid| self.has(xid));
        let certain =
            known.is_some() || (self.only_replies && alone && matches!(fault, Fault::Short(_)));
        for pending in &mut self.pending {
            let concerned = known.is_none_or(|xid| pending.xid == xid);
            if !concerned || !matches!(pending.state, PlaceState::Waiting) {
                continue;
            }
            if pending
                .discarded
                .is_none_or(|noted| certain && !noted.certain)
            {
                pending.discarded = Some(Discarded {
                    fault,
                    certain,
                    at: Instant::now(),
                });
            }
        }
    }

    /// Returns what was discarded while the call at `place` waited.
    pub(super) fn discarded(&self, place: usize) -> Option<Discarded> {
        self.pending.get(place)?.discarded
    }

    /// Returns whether the reply with this number grants credits. If it does, no earlier reply does
    /// so afterwards: the latest one counts (RFC 8166, section 3.3.1), and a reply to a call that
    /// was given up is read before those that still wait for their caller.
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
                PlaceState::Answered(reply) => Some((reply.number, at)),
                PlaceState::Free | PlaceState::Waiting => None,
            });
        answered.min().map(|(_, at)| at)
    }

    /// Frees a place, and returns the reply with the whole message if it has arrived. A call that
    /// was `sent` and has no reply yet is given up, and keeps its credit.
    pub(super) fn end(&mut self, place: usize, sent: bool) -> Option<(ReceivedReply, KVec<u8>)> {
        let pending = self.pending.get_mut(place)?;
        let state = mem::replace(&mut pending.state, PlaceState::Free);
        match state {
            PlaceState::Answered(reply) => Some((reply, mem::take(&mut pending.octets))),
            PlaceState::Waiting if sent => {
                // Cannot fail: the call holds one of the credits, and `given_up` has capacity for
                // all of them.
                let call = GivenUp {
                    xid: pending.xid,
                    version: pending.version,
                    reply_chunk: mem::take(&mut pending.reply_chunk),
                };
                let _ = self.given_up.push_within_capacity(call);
                None
            }
            PlaceState::Waiting | PlaceState::Free => None,
        }
    }

    /// Stores the message that answers the call at `place`.
    pub(super) fn store(&mut self, place: usize, message: &[u8]) {
        if let Some(pending) = self.pending.get_mut(place) {
            // Cannot fail: there is the capacity for any message.
            let _ = pending.octets.extend_from_slice(message, GFP_KERNEL);
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
    /// The call at this place, whose caller waits.
    Waiting(usize),
    /// A call that was given up, by the reply or error with this number. `is_valid` says whether it
    /// has the chunks that it must have.
    GivenUp { number: u64, is_valid: bool },
    /// No call: the message is to be discarded.
    None(Fault),
}

/// Checks that the message with this header answers a call that was made in `version`.
fn check_answer(header: &Header<'_>, payload: &[u8], version: u32) -> Result<(), Fault> {
    let is_answer = match header.body {
        // Calls in the other direction have XIDs of their own (RFC 8167, section 2.4.1).
        Body::Msg(Version::One, _) => rpc_message::is_reply(payload),
        Body::Msg(Version::Two(direction), _) | Body::Nomsg(Version::Two(direction), _) => {
            direction == Direction::Reply
        }
        // ERR_VERS must have the version of the call (RFC 8166, section 4.5). Any version is
        // accepted, because the layout is the same in all of them (section 7).
        Body::ErrVers { .. } => return Ok(()),
        Body::Optional { .. } => false,
        // A Long Call has a Read chunk, which `check_chunks` finds.
        Body::Nomsg(Version::One, _)
        | Body::ErrChunk
        | Body::ErrBadHeader
        | Body::ErrInvalidOption => true,
    };
    // A reply and an error have the version of the call (RFC 8166, section 4.5; the draft, section
    // 5.3).
    match header.version() {
        other if other != version => Err(Fault::OtherVersion {
            version: other,
            called: version,
        }),
        _ if !is_answer => Err(Fault::Type),
        _ => Ok(()),
    }
}

/// Checks that a reply has no Read chunk, and no Reply chunk except the `offered` one (RFC 8166,
/// sections 4.3.1 and 4.3.3). A reply inline may leave that out: illumos' server does.
///
/// A Write list is left to the caller, whose call it terminates (RFC 8166, section 6.1).
fn check_chunks(header: &Header<'_>, offered: &[Segment]) -> Result<(), Fault> {
    let check = |lists: &ChunkLists<'_>, is_long: bool| {
        if !lists.reads.is_empty() {
            return Err(Fault::ReadList);
        }
        let Some(returned) = lists.reply else {
            return if is_long {
                Err(Fault::OtherReplyChunk)
            } else {
                Ok(())
            };
        };
        let filled = if is_long { returned.length() } else { 0 };
        if offered.is_empty() {
            return Err(Fault::ReplyChunk);
        }
        if returned.iter().eq(List::new(offered).filled(filled)) {
            Ok(())
        } else {
            Err(Fault::OtherReplyChunk)
        }
    };
    match &header.body {
        Body::Msg(_, lists) => check(lists, false),
        Body::Nomsg(_, lists) => check(lists, true),
        _ => Ok(()),
    }
}
