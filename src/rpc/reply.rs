// SPDX-License-Identifier: GPL-2.0

//! Replies: handing them over to the calls that wait, and decoding them (RFC 8166, section 4.5).

use kernel::{
    bindings,
    prelude::*, //
};

use super::{
    endpoint::{
        Endpoint,
        EndpointInner, //
    },
    outgoing_call::{
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
                CallOutcome, //
            },
            snapshot::{
                Cause,
                Detail, //
            }, //
        },
        wire::{
            discarded::Fault,
            header::{
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
        messages::arrival::Arrival,
        registration::Registration, //
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
/// the reply does not count. `granted` is the number before the reply.
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

impl EndpointInner {
    /// Takes the credits that the reply with this number grants.
    fn grant(&mut self, number: u64, credits: u32) {
        if self.calls.may_grant(number) {
            self.made.credits_granted = Some(credits);
        }
    }

    /// Hands a reply over to the call that waits for it. Of a reply to a call that was given up,
    /// takes only the credits. All other messages are discarded (RFC 8166, section 4.5). Returns
    /// which call the message answers.
    pub(super) fn take_reply(
        &mut self,
        header: &Header<'_>,
        header_len: usize,
        payload: &[u8],
        arrival: &Arrival,
    ) -> Answered {
        let answered = self.calls.answer(header, header_len, payload, arrival);
        match answered {
            Answered::Waiting(_) => {
                // After ERR_VERS the trial goes on until the caller has handled it.
                if !matches!(header.body, Body::ErrVers { .. }) {
                    self.version.end_trial();
                }
            }
            Answered::GivenUp { number, is_valid } => {
                self.traffic.unexpected_messages += 1;
                // Each valid reply grants credits, even if no caller reads it (RFC 8166, section
                // 3.3.1).
                let granted = self.made.credits_granted;
                let credits = late_grant(header, payload, granted).filter(|_| is_valid);
                if let Some(credits) = credits {
                    self.grant(number, credits);
                }
            }
            Answered::None(fault) => {
                self.traffic.unexpected_messages += 1;
                self.calls.discard(Some(header.xid), fault);
            }
        }
        answered
    }
}

impl Endpoint {
    /// Notes that a message was discarded because of `fault`, for the calls that it may have
    /// answered. `xid` is its XID, if that can be trusted.
    pub(super) fn note_discarded(&self, xid: Option<u32>, fault: Fault) {
        self.inner.lock().calls.discard(xid, fault);
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
    /// Decodes the reply to `call`, the message with these octets. Stores its content in `shown`.
    pub(super) fn decode_reply(
        &self,
        place: &Place<'a>,
        call: &OutgoingCall<'_>,
        reply: &ReceivedReply,
        octets: &[u8],
        shown: &mut CallOutcome,
    ) -> Result<Verdict, Failure> {
        shown.answer = Some(reply.answer);
        let payload = match reply.answer {
            // RFC 8166, section 6.1.
            Answer::Msg | Answer::Nomsg if reply.has_writes => {
                let error = errno(bindings::EPROTO);
                let text = "the reply has a Write list, and none was offered";
                return Err(Failure::new(error, text));
            }
            Answer::Msg => {
                if reply.reply_chunk.is_none() && !call.reply_chunk.is_empty() {
                    self.endpoint.inner.lock().traffic.missing_reply_chunks += 1;
                }
                Payload::Inline(octets.get(reply.header_len..).unwrap_or_default())
            }
            Answer::Nomsg => long_reply(place, reply.reply_chunk)?,
            Answer::ErrVers { low, high } => {
                return Ok(Verdict::Versions(Versions { low, high }));
            }
            Answer::ErrChunk => return Err(refused(bindings::EPROTO, c"ERR_CHUNK")),
            Answer::ErrBadHeader => return Err(refused(bindings::EPROTO, c"BAD_HEADER")),
            Answer::ErrInvalidOption => {
                return Err(refused(bindings::EPROTO, c"INVALID_OPTION"));
            }
        };

        let mut head = [0; rpc_message::REPLY_HEAD_MAX];
        let head = head
            .get_mut(..payload.len().min(rpc_message::REPLY_HEAD_MAX))
            .unwrap_or_default();
        payload.read(0, head);
        let (message, rest) = rpc_message::parse_reply(head).map_err(|_| malformed())?;
        // The header has the XID of the call.
        if message.xid != call.xid {
            return Err(malformed());
        }
        // Only a message that decodes as a reply grants credits.
        self.endpoint
            .inner
            .lock()
            .grant(reply.number, reply.credits);
        let at = head.len() - rest.len();
        shown.status = Some(message.status);
        shown.results = payload.len() - at;
        if message.status == Status::Success
            && !self.request.has_results(call.xid, payload.pieces(at))
        {
            let error = errno(bindings::EBADMSG);
            return Err(Failure::new(error, "the results are not the arguments"));
        }
        Ok(Verdict::Status(message.status))
    }
}

/// Returns the reply that the responder has written to the Reply chunk. `returned` is the length in
/// the returned chunk, which tells how much of it is filled (RFC 8166, section 4.3.3).
fn long_reply<'b>(place: &'b Place<'_>, returned: Option<u64>) -> Result<Payload<'b>, Failure> {
    let len = returned.ok_or(malformed())?;
    let len = usize::try_from(len).map_err(|_| malformed())?;
    let memory = place.reply_chunk.as_ref().and_then(Registration::memory);
    let memory = memory.ok_or(malformed())?;
    if len > memory.len() {
        return Err(malformed());
    }
    Ok(Payload::Long(memory, len))
}
