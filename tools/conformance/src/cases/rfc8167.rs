// SPDX-License-Identifier: GPL-2.0

//! RFC 8167: calls in the reverse direction, as a server sees them.

use crate::case::case;
use crate::case::inconclusive;
use crate::case::skip;
use crate::case::violation;
use crate::case::Case;
use crate::case::Passed;
use crate::case::Problem;
use crate::case::Verdict;
use crate::nfs;
use crate::peer::Link;
use crate::peer::Target;
use crate::session::ask_write;
use crate::session::unjudged;
use crate::session::Callback;
use crate::session::Session;
use crate::session::NO_CALLBACKS;
use crate::wire;
use crate::wire::words;
use crate::wire::Header;
use crate::wire::Reader;

/// If a server is not prepared for messages of the reverse direction, "loss of the RDMA connection
/// might result" (section 6).
pub const MATCH: &str =
    "RFC 8167, section 2.4: When receiving a Reply, a Requester matches the XID value in the Reply \
     with a Call it previously sent.";

const VERSION: &str = "The rdma_vers field MUST contain the same value in reverse- and \
                       forward-direction Call messages on the same connection.";
const STARTS: &str =
    "Whether presented inline or as a separate chunk, the ONC RPC Call header MUST start with the \
     same XID value that is present in the RPC-over-RDMA header, and the RPC header's msg_type \
     field MUST contain the value CALL.";
const CREDITS: &str = "The number of requested reverse-direction credits is placed in the \
                       rdma_credit field (see Section 4).";
pub const DISTINCT: &str =
    "RFC 8167, section 2.4.1: Though such concurrent requests use the same XID value, they \
     represent distinct ONC RPC transactions.";
const NO_CHUNKS: &str =
    "If a reverse-direction requester provides a non-empty chunk list to a Responder that does not \
     support chunks, the Responder MUST reply with an RDMA_ERROR message with rdma_err field set to \
     ERR_CHUNK. … RFC 8166, section 4.5: An RDMA_ERROR procedure indicates a permanent error. \
     Receipt of this procedure completes the RPC transaction associated with XID in the rdma_xid \
     field.";
const PREPARED: &str =
    "Therefore, a ULP MUST NOT perform reverse-direction ONC RPC operations until the peer has \
     indicated it is prepared to handle them.";

const FIRST: &str =
    "RFC 8166, section 3.3.3: a Requester MUST NOT assume more than one credit is available \
     and MUST receive a valid reply from the Responder carrying the actual number of available \
     credits, prior to sending its next request.";
const EXCESS: &str =
    "RFC 8166, section 3.3.1: A Requester MUST NOT send unacknowledged requests in excess of the \
     Responder's granted credit limit.";

/// `accept_stat` of an unknown program (RFC 5531, section 9).
const PROG_UNAVAIL: u32 = 1;

fn unmatched(target: &mut Target<'_>, reply: &[u32]) -> Verdict {
    target.on_plain_or_end("a reply to no call", |link| {
        let xid = link.xid();
        let mut rpc = words(&[xid]);
        rpc.extend(words(reply));
        link.refuses_or_discards(xid, &Header::msg(xid).with(&rpc))
    })
}

fn same_xid(target: &mut Target<'_>) -> Verdict {
    target.on_plain_or_end("a reply and a call with one XID", |link| {
        // A reply of this side and a call of this side with one XID are two transactions.
        let xid = link.xid();
        let mut reply = words(&[xid]);
        reply.extend(words(&[1, 0, 0, 0, 0]));
        link.send_ahead(&Header::msg(xid).with(&reply))?;
        let null = link.null_call(xid);
        link.send(&Header::msg(xid).with(&null))?;
        let mut message = link.receive_of(xid)?;
        let refused = link.is_refusal(&message).is_ok();
        if refused {
            message = link.receive_of(xid)?;
        }
        link.decode(xid, &message)?.results()?;
        if let Some(late) = link.receive_if(xid)? {
            if refused {
                return violation("NULL and a reply get three answers");
            }
            link.is_refusal(&late)?;
        }
        link.quiet()?;
        Ok(Passed)
    })
}

/// Lets the server recall a delegation, checks its call, and answers.
fn recall(
    target: &mut Target<'_>,
    check: impl FnOnce(&mut Session, &Callback) -> Verdict,
) -> Verdict {
    Session::within(target, true, |session| {
        let callback = session.recalled()?;
        let found = check(session, &callback);
        let accepted = session.accept(&callback);
        found.and_then(|Passed| accepted.map(|()| Passed))
    })
}

/// The server takes the reply to its call: it reports no fault of the callback channel, the
/// delegation can be returned, so that the other connection can write, and the server makes the next
/// call. `before` runs before that reply.
fn reply_counts(
    target: &mut Target<'_>,
    before: impl FnOnce(&mut Session, &Callback) -> Verdict,
) -> Verdict {
    let mut writer = target.plain().map_err(unjudged)?;
    Session::within(target, true, |session| {
        let callback = session.recalled()?;
        before(session, &callback)?;
        session.accept(&callback)?;
        session.link.still_answers("the reply to a callback")?;
        session.give_back()?;
        if session.flags & NO_CALLBACKS != 0 {
            return violation(format!(
                "SEQUENCE says that callbacks fail: flags {:#x}",
                session.flags
            ));
        }
        let status = session.write_at_last()?;
        if status != 0 {
            return violation(format!("with the delegation returned, WRITE gets {status}"));
        }
        if session
            .callback_within(session.link.server.quiet)?
            .is_some()
        {
            return violation("the server repeats a call that was answered");
        }
        // A server that has lost the reply may grant no other delegation.
        let path = session
            .opens_another()
            .or_else(|problem| inconclusive(problem.reason()))?;
        let xid = ask_write(&mut writer, &path).map_err(unjudged)?;
        match session.callback_within(session.link.server.limit)? {
            Some(callback) => session.accept(&callback).map(|()| Passed),
            None => no_call(&mut writer, xid),
        }
    })
}

/// The server makes no call because of this WRITE. That tells nothing if the WRITE has failed for
/// another reason than a delegation, or has no reply.
fn no_call(writer: &mut Link, xid: u32) -> Verdict {
    let Some(message) = writer.receive_if(xid).map_err(unjudged)? else {
        return inconclusive("the server makes no call, and does not answer the second WRITE");
    };
    let answer = writer.decode(xid, &message).map_err(unjudged)?;
    let results = answer.results().map_err(unjudged)?;
    match Reader::new(results).word() {
        Ok(nfs::DELAY | 0) => {
            violation("the server makes no call after the reply to the first one")
        }
        other => inconclusive(format!("the server makes no call: WRITE gets {other:?}")),
    }
}

/// Refuses a callback. The server may make it again until the session ends.
fn refused(
    target: &mut Target<'_>,
    refuse: impl FnOnce(&mut Session, &Callback) -> Result<(), Problem>,
) -> Verdict {
    Session::within_and_end(target, |session| {
        let callback = session.recalled()?;
        refuse(session, &callback)?;
        session.link.still_answers("a refused callback")?;
        Ok(Passed)
    })
}

/// Makes a call of its own with the XID of the server's call.
fn same_xid_as_callback(target: &mut Target<'_>) -> Verdict {
    reply_counts(target, |session, callback| {
        let xid = callback.header.xid;
        let null = session.link.null_call(xid);
        session.link.call(&Header::msg(xid), &null)?.results()?;
        Ok(Passed)
    })
}

/// The connection of the session is not for callbacks.
fn not_prepared(target: &mut Target<'_>) -> Verdict {
    Session::within(target, false, |session| {
        // A server that cannot recall a delegation may delay the WRITE until that is returned.
        if session.is_delegated() {
            session.begin_write()?;
        } else {
            session.write()?;
        }
        session.link.quiet()?;
        Ok(Passed)
    })
}

/// Lets the server recall two delegations, before or after its first call has had a reply that grants
/// one credit.
fn one_at_a_time(target: &mut Target<'_>, granted: bool) -> Verdict {
    let mut other = || target.plain().map_err(unjudged);
    let mut writers = [other()?, other()?];
    Session::within(target, true, |session| {
        if session.slots < 2 {
            return skip("the server makes one callback at a time, by the slots of its session");
        }
        if granted {
            let callback = session.recalled()?;
            session.accept(&callback)?;
        }
        let paths = [session.opens_another()?, session.opens_another()?];
        for (writer, path) in writers.iter_mut().zip(&paths) {
            ask_write(writer, path).map_err(unjudged)?;
        }
        let first = session.callback()?;
        session.link.quiet()?;
        session.accept(&first)?;
        match session.accept_others()? {
            0 => inconclusive("the server recalls one delegation of two"),
            _ => Ok(Passed),
        }
    })
}

pub const CASES: &[Case] = &[
    case!("rfc8167/2.4/1", "a reply to no call is refused or discarded", Should, MATCH,
        sends "RDMA_MSG with an RPC reply, SUCCESS, of an unknown XID",
        accepts "ERR_CHUNK or nothing, or the end of this connection; NULL succeeds",
        fault "any-message-type", |target| unmatched(target, &[1, 0, 0, 0, 0])),
    case!("rfc8167/2.4/2", "a denied reply to no call is refused or discarded", Should, MATCH,
        sends "RDMA_MSG with an RPC reply, AUTH_ERROR, of an unknown XID",
        accepts "ERR_CHUNK or nothing, or the end of this connection; NULL succeeds",
        fault "any-message-type", |target| unmatched(target, &[1, 1, 1, 1])),
    case!("rfc8167/2.4/3", "a reply and a call with the same XID are two transactions", Must,
        DISTINCT,
        sends "an RPC reply and NULL with one XID",
        accepts "ERR_CHUNK or nothing to the first, one reply to NULL; or the end of this \
                 connection: NULL succeeds on another one",
        fault "any-message-type", same_xid),
    case!("rfc8167/6/1", "no call before the client is prepared for it", Must,
    PREPARED,
    sends "NULL, then nothing for a while", accepts "the reply, and nothing else",
    fault "calls-unasked",
    |target| target.on_plain(|link| {
        link.null()?;
        link.quiet()?;
        Ok(Passed)
    })),
    case!("rfc8167/6/2", "no callback on the connection of a session without callbacks", Must, PREPARED,
        sends "CREATE_SESSION without CONN_BACK_CHAN, OPEN; WRITE on another connection",
        accepts "nothing more on the first connection", fault "calls-unasked", needs [Export],
        not_prepared),
    case!("rfc8167/5.1/2", "a callback has the version of the client's calls", Must, VERSION,
    sends "OPEN for a delegation; WRITE on another connection", accepts "a call in version 1",
    fault "calls-in-version-2", needs [Export],
    |target| recall(target, |_, callback| match callback.header.version {
        1 => Ok(Passed),
        other => violation(format!("the call has version {other}")),
    })),
    case!("rfc8167/5.1/3", "a callback begins with its XID and is a call", Must, STARTS,
    sends "OPEN for a delegation; WRITE on another connection", accepts "an RPC call with the XID of the header",
    fault "calls-with-other-xid", needs [Export],
    |target| recall(target, |_, callback| {
        let mut reader = Reader::new(&callback.rpc);
        match (reader.word(), reader.word()) {
            (Ok(xid), Ok(wire::CALL)) if xid == callback.header.xid => Ok(Passed),
            other => violation(format!("the RPC message begins with {other:?}")),
        }
    })),
    case!("rfc8167/5.1/4", "a callback requests credits", Should, CREDITS,
    sends "OPEN for a delegation; WRITE on another connection", accepts "rdma_credit of at least 1",
    fault "calls-without-credit", needs [Export],
    |target| recall(target, |_, callback| match callback.header.credits {
        0 => violation("the call requests no credits"),
        _ => Ok(Passed),
    })),
    case!("rfc8167/4.1/1", "no second callback before the reply to the first", Must, FIRST,
        sends "OPEN for delegations; WRITE into two files on other connections; nothing for a while, \
               then NFS4_OK to CB_RECALL",
        accepts "the second call follows that",
        fault "assumes-credits", needs [Export], |target| one_at_a_time(target, false)),
    case!("rfc8167/4.1/2", "no more callbacks at once than the client grants", Must, EXCESS,
        sends "OPEN for a delegation; WRITE on another connection; NFS4_OK to CB_RECALL, granting one \
               credit; the same with two files",
        accepts "the second call of these follows the reply to the first",
        fault "calls-beyond-grant", needs [Export], |target| one_at_a_time(target, true)),
    case!("rfc8267/6.5.2/1", "a callback has no chunks", Must,
    "When an NFS version 4.1 client can support Long Calls in its backchannel, it reports a \
     backchannel ca_maxrequestsize that is larger than the connection's inline thresholds. \
     Otherwise, an NFS version 4 server MUST use only Short messages to convey backchannel \
     operations.",
    sends "OPEN for a delegation; WRITE on another connection", accepts "RDMA_MSG without chunks",
    fault "calls-with-chunks", needs [Export],
    |target| recall(target, |_, callback| {
        let Header { procedure, reads, writes, reply, .. } = &callback.header;
        match (*procedure, reads.is_empty() && writes.is_empty() && reply.is_none()) {
            (wire::MSG, true) => Ok(Passed),
            _ => violation(format!("the header of the call is {:?}", callback.header)),
        }
    })),
    case!("rfc8167/5.2/1", "the reply to a callback is taken", Must, MATCH,
        sends "OPEN for a delegation; WRITE on another connection; NFS4_OK to CB_RECALL, then \
               DELEGRETURN and the WRITE again; OPEN and WRITE of another file",
        accepts "SEQUENCE without a fault of the callback channel; WRITE succeeds; a second call",
        fault "loses-replies", needs [Export], |target| reply_counts(target, |_, _| Ok(Passed))),
    case!("rfc8167/5.2/2", "an RPC error to a callback harms no other call", Must, MATCH,
        sends "OPEN for a delegation; WRITE on another connection; PROG_UNAVAIL to CB_RECALL, then \
               NULL, DELEGRETURN, CLOSE, REMOVE and DESTROY_SESSION",
        accepts "all succeed",
        fault "dies-of-refused-calls", needs [Export],
        |target| refused(target, |session, callback| session.answer(callback, PROG_UNAVAIL, &[]))),
    case!("rfc8167/5.3/1", "ERR_CHUNK to a callback harms no other call", Must, NO_CHUNKS,
    sends "OPEN for a delegation; WRITE on another connection; ERR_CHUNK to CB_RECALL, then NULL, \
           DELEGRETURN, CLOSE, REMOVE and DESTROY_SESSION",
    accepts "all succeed",
    fault "dies-of-callback-errors", needs [Export],
    |target| refused(target, |session, callback| {
        let Header { xid, version, .. } = callback.header;
        session.link.send(&words(&[xid, version, 1, wire::ERROR, wire::ERR_CHUNK]))
    })),
    case!("rfc8167/2.4.1/1", "a call with the XID of a callback under way", Must, DISTINCT,
        sends "OPEN for a delegation; WRITE on another connection; NULL with the XID of CB_RECALL, \
               then NFS4_OK to that, DELEGRETURN and the WRITE again; OPEN and WRITE of another file",
        accepts "NULL succeeds; SEQUENCE without a fault of the callback channel; WRITE succeeds; a \
                 second call",
        fault "one-xid-space", needs [Export], same_xid_as_callback),
];
