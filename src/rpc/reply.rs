// SPDX-License-Identifier: GPL-2.0

//! Replies: handing them over to the calls that wait, and decoding them (RFC 8166, section 4.5).

use kernel::{
    bindings,
    prelude::*, //
};

use super::{
    endpoint::{
        Endpoint,
        Inner, //
    },
    outgoing_call::{
        call_failure,
        Caller,
        OutgoingCall,
        Place, //
    },
    payload::Payload,
    pending::{
        Answered,
        Discarded,
        ReceivedReply, //
    }, //
};
use crate::{
    base::errno::errno,
    failure::Failure,
    pure::{
        text::{
            outcome::{
                Answer,
                CallOutcome,
                RESULTS_SHOWN, //
            },
            snapshot::{
                Cause,
                Detail, //
            }, //
        },
        wire::{
            discarded::Fault,
            header::{
                self,
                chunks::ChunkLists,
                Body,
                Header,
                Versions, //
            },
            negotiation::Role,
            rpc_message::{
                self,
                Status, //
            }, //
        }, //
    },
    rdma::{
        registration::Registration,
        verbs::arrival::Arrival, //
    }, //
};

/// A responder's answer to a call.
pub(super) enum Verdict {
    Status(Status),
    /// ERR_VERS: the responder speaks only these versions.
    Versions(Versions),
}

fn refused(error: u32, detail: &'static CStr) -> Failure {
    Failure::with_detail(errno(error), "the responder answered", detail)
}

pub(super) fn malformed() -> Failure {
    Failure::new(errno(bindings::EPROTO), "the reply is malformed")
}

/// Returns the caller's result for the status of a reply.
pub(super) fn check_status(status: Status) -> Result<(), Failure> {
    let unsupported = bindings::EOPNOTSUPP;
    Err(match status {
        Status::Success => return Ok(()),
        Status::ProgUnavail => refused(unsupported, c"PROG_UNAVAIL"),
        Status::ProgMismatch { .. } => refused(unsupported, c"PROG_MISMATCH"),
        Status::ProcUnavail => refused(unsupported, c"PROC_UNAVAIL"),
        Status::GarbageArgs => refused(bindings::EINVAL, c"GARBAGE_ARGS"),
        Status::SystemErr => refused(bindings::EREMOTEIO, c"SYSTEM_ERR"),
        Status::RpcMismatch { .. } => refused(unsupported, c"RPC_MISMATCH"),
        Status::AuthError(_) => refused(bindings::EACCES, c"AUTH_ERROR"),
    })
}

/// Returns how many credits are granted after a reply to a call that was given up, or [`None`] if
/// the reply does not count. Before the reply, `granted` were.
fn late_grant(header: &Header<'_>, payload: &[u8], granted: Option<u32>) -> Option<u32> {
    match header.body {
        Body::Msg(_, lists) => {
            let is_valid = lists.writes.is_empty() && rpc_message::parse_reply(payload).is_ok();
            is_valid.then_some(header.credit)
        }
        // The memory of the call was invalidated, so nobody can tell whether a Long Reply is valid.
        // It can only withdraw credits.
        Body::Nomsg(..) => granted.map(|granted| granted.min(header.credit)),
        _ => None,
    }
}

impl Inner {
    /// Takes the credits that the reply with this number grants.
    fn grant(&mut self, number: u64, credits: u32) {
        if self.calls.may_grant(number) {
            self.made.credits_granted = Some(credits);
        }
    }
}

impl Endpoint {
    /// Hands a reply over to the call that waits for it. Other replies are discarded (RFC 8166,
    /// section 4.5). Returns whether the message answered a call.
    pub(super) fn take_reply(
        &self,
        header: &Header<'_>,
        payload: &[u8],
        octets: &[u8],
        arrival: &Arrival,
    ) -> bool {
        let mut inner = self.inner.lock();
        let answered = inner.calls.answer(header, payload, octets, arrival);
        let is_answer = !matches!(answered, Answered::None(_));
        match answered {
            Answered::Waiting => {
                // After ERR_VERS the trial goes on until the caller has handled it.
                if !matches!(header.body, Body::ErrVers { .. }) {
                    inner.version.end_trial();
                }
            }
            Answered::GivenUp { number, is_valid } => {
                inner.traffic.unexpected_messages += 1;
                // Each valid reply grants credits, even if no caller reads it (RFC 8166, section
                // 3.3.1).
                let granted = inner.made.credits_granted;
                let credits = late_grant(header, payload, granted).filter(|_| is_valid);
                if let Some(credits) = credits {
                    inner.grant(number, credits);
                }
            }
            Answered::None(fault) => {
                inner.traffic.unexpected_messages += 1;
                let only_replies = !self.configuration.answers;
                inner.calls.discard(Some(header.xid), fault, only_replies);
            }
        }
        // Callers are woken even if no call waited: a call that was given up may have returned its
        // credit.
        self.changed.notify_all();
        is_answer
    }

    /// Notes that a message was discarded because of `fault`, for the calls that it may have
    /// answered. `xid` is its XID, if that can be trusted.
    pub(super) fn note_discarded(&self, xid: Option<u32>, fault: Fault) {
        let only_replies = !self.configuration.answers;
        let mut inner = self.inner.lock();
        inner.calls.discard(xid, fault, only_replies);
        drop(inner);
        self.changed.notify_all();
    }

    /// Returns the failure of a call that has no reply because of `failure`, where `discarded` may
    /// have been the answer: that message is the root cause.
    pub(super) fn without_reply(&self, failure: Failure, discarded: Option<Discarded>) -> Failure {
        let Some(discarded) = discarded else {
            return failure;
        };
        let timed_out = failure.error == ETIMEDOUT;
        let (error, text) = match (discarded.certain, self.configuration.role) {
            (true, _) if failure.error == EINTR => return failure,
            (true, Role::Client) => (failure.error, "the server answered with"),
            (true, Role::Server) => (failure.error, "the client answered with"),
            (false, _) if !timed_out => return failure,
            (false, Role::Client) => (ETIMEDOUT, "no reply in time; the server sent"),
            (false, Role::Server) => (ETIMEDOUT, "no reply in time; the client sent"),
        };
        let error = if timed_out && discarded.certain {
            errno(bindings::EPROTO)
        } else {
            error
        };
        Failure {
            error,
            cause: Cause {
                text,
                detail: Some(Detail::Message(discarded.fault)),
            },
        }
    }
}

impl<'a> Caller<'a> {
    /// Decodes the reply to `call`, whose header was parsed before without errors. Stores its
    /// content in `shown` and `results`.
    pub(super) fn decode_reply(
        &self,
        place: &Place<'a>,
        call: &OutgoingCall<'_>,
        arrived: &ReceivedReply,
        shown: &mut CallOutcome,
        results: &mut KVec<u8>,
    ) -> Result<Verdict, Failure> {
        let (header, payload) = header::parse(&arrived.octets).map_err(|_| malformed())?;
        shown.answer = Answer::of(&header);
        let payload = match header.body {
            // RFC 8166, section 6.1.
            Body::Msg(_, lists) | Body::Nomsg(_, lists) if !lists.writes.is_empty() => {
                let error = errno(bindings::EPROTO);
                let text = "the reply has a Write list, and none was offered";
                return Err(Failure::new(error, text));
            }
            Body::Msg(_, lists) => {
                if lists.reply.is_none() && !call.reply_chunk.is_empty() {
                    self.endpoint.inner.lock().traffic.missing_reply_chunks += 1;
                }
                Payload::Inline(payload)
            }
            Body::Nomsg(_, lists) => long_reply(place, &lists)?,
            Body::ErrVers { low, high, .. } => {
                return Ok(Verdict::Versions(Versions { low, high }));
            }
            Body::ErrChunk => return Err(refused(bindings::EPROTO, c"ERR_CHUNK")),
            Body::ErrBadHeader => return Err(refused(bindings::EPROTO, c"BAD_HEADER")),
            Body::ErrInvalidOption | Body::Optional { .. } => {
                return Err(refused(bindings::EPROTO, c"INVALID_OPTION"));
            }
        };

        let mut head = [0; rpc_message::REPLY_HEAD_MAX];
        let head = head
            .get_mut(..payload.len().min(rpc_message::REPLY_HEAD_MAX))
            .unwrap_or_default();
        payload.read(0, head);
        let (reply, rest) = rpc_message::parse_reply(head).map_err(|_| malformed())?;
        if reply.xid != header.xid {
            return Err(malformed());
        }
        // Only a message that decodes as a reply grants credits.
        self.endpoint
            .inner
            .lock()
            .grant(arrived.number, header.credit);
        let at = head.len() - rest.len();
        shown.status = Some(reply.status);
        shown.results = payload.len() - at;
        for piece in payload.pieces(at) {
            let room = RESULTS_SHOWN - results.len();
            let piece = piece.get(..piece.len().min(room)).unwrap_or_default();
            let kept = results.extend_from_slice(piece, GFP_KERNEL);
            kept.map_err(|error| call_failure(error.into()))?;
        }
        if reply.status == Status::Success
            && !self.request.has_results(reply.xid, payload.pieces(at))
        {
            let error = errno(bindings::EBADMSG);
            return Err(Failure::new(error, "the results are not the arguments"));
        }
        Ok(Verdict::Status(reply.status))
    }
}

/// Returns the reply that the responder has written to the Reply chunk. The lengths in the returned
/// chunk tell how much of it is filled (RFC 8166, section 4.3.3).
fn long_reply<'b>(place: &'b Place<'_>, lists: &ChunkLists<'_>) -> Result<Payload<'b>, Failure> {
    let len = lists.reply.ok_or(malformed())?.length();
    let len = usize::try_from(len).map_err(|_| malformed())?;
    let memory = place.reply_chunk.as_ref().and_then(Registration::memory);
    let memory = memory.ok_or(malformed())?;
    if len > memory.len() {
        return Err(malformed());
    }
    Ok(Payload::Long(memory, len))
}
