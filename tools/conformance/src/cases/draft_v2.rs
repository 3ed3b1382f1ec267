// SPDX-License-Identifier: GPL-2.0

//! Version 2 of draft-cel-nfsv4-rpcrdma-version-two-01, only with `--draft-v2`. Its errors are those
//! of RFC 8166, with BAD_HEADER in place of ERR_CHUNK (section 4.2.3).

use crate::case::case;
use crate::case::skip;
use crate::case::unimplemented;
use crate::case::violation;
use crate::case::Case;
use crate::case::Passed;
use crate::case::Problem;
use crate::case::Verdict;
use crate::cases::rfc8166_chunks::read_chunk_of_unknown;
use crate::cases::rfc8166_chunks::UNKNOWN;
use crate::cases::rfc8166_header;
use crate::cases::rfc8166_header::by_header;
use crate::cases::rfc8166_header::unparsed;
use crate::cases::rfc8166_header::OTHER_XID;
use crate::cases::rfc8166_header::UNPARSED;
use crate::cases::rfc8167::MATCH;
use crate::engine::Message;
use crate::peer::fits;
use crate::peer::fixed;
use crate::peer::Link;
use crate::peer::Service;
use crate::peer::Target;
use crate::wire;
use crate::wire::words;
use crate::wire::Header;
use crate::wire::ReadSegment;
use crate::wire::Status;
use crate::wire::Transport;

/// The sentences of the draft that stand in front of those of RFC 8166.
macro_rules! direction {
    ($more:literal) => {
        concat!(
            "When the rdma_proc field has the value RDMA2_MSG or RDMA2_NOMSG, the value of the \
             rdma_direction field MUST be the same as the value of the associated RPC message's \
             msg_type field.",
            $more
        )
    };
}
macro_rules! errors {
    ($more:literal) => {
        concat!(
            "the draft, section 4.2.3: Error handling works the same way in RPC-over-RDMA Version \
             Two as it does in RPC-over-RDMA Version One, with one change described in Section 3.1.",
            $more
        )
    };
}
macro_rules! options {
    ($more:literal) => {
        concat!(
            "When an implementation does not recognize or support the value contained in the \
             rdma_opttype field, it MUST send an RPC-over-RDMA message with the rdma_xid field set \
             to the same value as the erroneous message, the rdma_proc field set to RDMA2_ERROR, \
             and the rdma_err field set to RDMA2_ERR_INVALID_OPTION.",
            $more
        )
    };
}

const SAME_VERSION: &str = "the draft, section 5.3: a responder MUST send Replies with the same \
                            RPC-over-RDMA protocol version that the requester uses to send its \
                            Calls.";
const ERR_VERS: &str = "If the responder does not support RPC-over-RDMA Version Two, \
                        [I-D.ietf-nfsv4-rfc5666bis] REQUIRES that it send an RPC-over-RDMA message \
                        to the requester with the same XID, with RDMA2_ERROR in the rdma_proc \
                        field, and with the error code RDMA2_ERR_VERS.";
pub const DIRECTION: &str = direction!("");
const DIRECTION_REFUSED: &str = direction!(
    " … RFC 8166, section 4.5: If other errors are detected in the RPC-over-RDMA header of an RPC \
     Call message, a Responder MUST send an RDMA_ERROR message back to the Requester."
);
const EITHER_DIRECTION: &str = direction!(
    " … RFC 8166, section 4.5: If other errors are detected in the RPC-over-RDMA header of an RPC \
     Call message, a Responder MUST send an RDMA_ERROR message back to the Requester. If errors \
     are detected in the RPC-over-RDMA header of an RPC Reply message, a Requester MUST silently \
     discard the message."
);
const THRESHOLD: &str =
    "RPC-over-RDMA Version Two receiver implementations MUST support an inline threshold of 4096 \
     bytes";
pub const ASSUMED: &str =
    "In the absence of such a mechanism, senders MUST assume a receiver's inline threshold is 4096 \
     bytes.";
const NEGOTIATED: &str =
    "the draft, section 5.1: Subsequently, both peers use the default inline threshold value for \
     RPC-over-RDMA Version Two connections (4096 bytes).";
const TOO_LONG: &str =
    "In the absence of such a mechanism, senders MUST assume a receiver's inline threshold is 4096 \
     bytes. … RFC 8166, section 4.5.4: If a Responder is unable to construct and transmit an RPC \
     Reply or RPC-over-RDMA error message, the Responder MUST close the connection to signal to \
     the Requester that a reply was lost. … RFC 8267, section 3.1: If an NFS server finds that the \
     NFS client provided inadequate receive resources to return the whole Reply, it returns an \
     RPC-level error or a transport error, such as ERR_CHUNK.";
pub const ERRORS: &str = errors!("");
const PARSING: &str = errors!(
    " … RFC 8166, section 4.5.2: If the rdma_vers field contains a recognized value, but an XDR \
     parsing error occurs, the Responder MUST reply with an RDMA_ERROR procedure"
);
const BOOLEAN: &str = errors!(
    " … RFC 4506, section 4.3: It is an error to encode as an enum any integer other than those \
     that have been given assignments in the enum declaration. … RFC 8166, section 4.5.2: If the \
     rdma_vers field contains a recognized value, but an XDR parsing error occurs, the Responder \
     MUST reply with an RDMA_ERROR procedure"
);
const BAD_REPLY: &str = errors!(
    " … RFC 8166, section 4.5: If errors are detected in the RPC-over-RDMA header of an RPC Reply \
     message, a Requester MUST silently discard the message."
);
const DISCARDS_ERRORS: &str =
    errors!(" … RFC 8166, section 4.2.4: A Responder MUST silently discard RDMA_ERROR procedures.");
pub const OPTIONS: &str = options!("");
const MALFORMED: &str = options!(
    " … RFC 8166, section 4.5.2: If the rdma_vers field contains a recognized value, but an XDR \
     parsing error occurs, the Responder MUST reply with an RDMA_ERROR procedure"
);
const MALFORMED_REPLY: &str = options!(
    " … RFC 8166, section 4.5: If errors are detected in the RPC-over-RDMA header of an RPC Reply \
     message, a Requester MUST silently discard the message."
);

/// The default threshold of version 2 (section 2.3).
const SIZE: usize = 4096;

/// Whether the message is this error in this version.
fn is_error(message: &Message, version: u32, wanted: u32) -> bool {
    matches!(
        Transport::parse(&message.octets),
        Ok(Transport::Error { version: found, error, .. }) if (found, error) == (version, wanted)
    )
}

/// Connects, and agrees upon version 2 by NULL.
fn agreed(target: &mut Target<'_>) -> Result<Link, Problem> {
    let mut link = target.plain()?;
    let xid = link.xid();
    let null = link.null_call(xid);
    link.version = 2;
    link.send(&Header::two(xid).with(&null))?;
    let message = link.receive_of(xid)?;
    if let Ok(Transport::Error {
        error: wire::ERR_VERS,
        ..
    }) = Transport::parse(&message.octets)
    {
        return unimplemented("the server does not speak version 2");
    }
    link.decode(xid, &message)?.results()?;
    // The server's Receives have that length at least.
    link.to_server = SIZE;
    Ok(link)
}

fn on_agreed(
    target: &mut Target<'_>,
    check: impl FnOnce(&mut Link) -> Result<(), Problem>,
) -> Verdict {
    let mut link = agreed(target)?;
    check(&mut link)?;
    link.still_answers("that")?;
    Ok(Passed)
}

/// The same where the server may answer with an error, and end the connection behind it.
fn on_agreed_or_end(
    target: &mut Target<'_>,
    check: impl FnOnce(&mut Link) -> Result<(), Problem>,
) -> Verdict {
    let mut link = agreed(target)?;
    check(&mut link)?;
    target.goes_on(&mut link, true, "an error")
}

/// Version 2 is answered by a reply, or by ERR_VERS that names version 1 and not 2.
fn answered(target: &mut Target<'_>) -> Verdict {
    let mut link = target.plain()?;
    let xid = link.xid();
    let null = link.null_call(xid);
    link.send(&Header::two(xid).with(&null))?;
    let message = link.receive_of(xid)?;
    match Transport::parse(&message.octets) {
        Ok(Transport::Error {
            version: 2,
            error: wire::ERR_VERS,
            range: Some((1, 1)),
            ..
        }) => target.goes_on(&mut link, true, "ERR_VERS"),
        Ok(Transport::Chunks(..)) => {
            link.version = 2;
            link.decode(xid, &message)?.results()?;
            Ok(Passed)
        }
        other => violation(format!("the answer is {other:?}")),
    }
}

/// This procedure with these words behind rdma_proc, and NULL if `payload`, gets BAD_HEADER.
fn refused(target: &mut Target<'_>, procedure: u32, rest: &[u32], payload: bool) -> Verdict {
    on_agreed_or_end(target, |link| {
        let xid = link.xid();
        let null = link.null_call(xid);
        let payload = if payload { &null[..] } else { &[] };
        link.send(&fixed(xid, 2, procedure, rest, payload))?;
        link.refused(xid)?;
        Ok(())
    })
}

fn discarded(target: &mut Target<'_>, procedure: u32, rest: &[u32], payload: bool) -> Verdict {
    on_agreed(target, |link| {
        let xid = link.xid();
        let null = link.null_call(xid);
        let payload = if payload { &null[..] } else { &[] };
        link.discards(&fixed(xid, 2, procedure, rest, payload))?;
        Ok(())
    })
}

fn flag_of_two(target: &mut Target<'_>, list: usize) -> Verdict {
    on_agreed_or_end(target, |link| {
        rfc8166_header::flag_of_two(link, list)?;
        Ok(())
    })
}

/// RDMA2_MSG in this direction with an RPC reply to no call.
fn unmatched(link: &mut Link, direction: u32) -> (u32, Vec<u8>) {
    let xid = link.xid();
    let header = Header {
        direction,
        ..Header::two(xid)
    };
    (xid, header.with(&words(&[xid, wire::REPLY, 0, 0, 0, 0])))
}

fn option(target: &mut Target<'_>, rest: &[u32], payload: bool) -> Verdict {
    on_agreed_or_end(target, |link| {
        let xid = link.xid();
        let null = link.null_call(xid);
        let payload = if payload { &null[..] } else { &[] };
        link.send(&fixed(xid, 2, wire::OPTIONAL, rest, payload))?;
        link.error_of(xid, wire::INVALID_OPTION, "INVALID_OPTION")?;
        Ok(())
    })
}

/// A malformed message with an unknown option gets BAD_HEADER, or INVALID_OPTION.
fn malformed_option(target: &mut Target<'_>, rest: &[u32]) -> Verdict {
    on_agreed_or_end(target, |link| {
        let xid = link.xid();
        link.send(&fixed(xid, 2, wire::OPTIONAL, rest, &[]))?;
        let message = link.receive_of(xid)?;
        if is_error(&message, 2, wire::INVALID_OPTION) {
            return Ok(());
        }
        link.is_refusal(&message)
    })
}

/// A malformed message with an unknown option, in the direction of a reply, is discarded or gets
/// INVALID_OPTION.
fn malformed_option_of_reply(link: &mut Link) -> Result<(), Problem> {
    let xid = link.xid();
    let octets = fixed(xid, 2, wire::OPTIONAL, &[1, 77, 9, 1], &[]);
    link.discards_or(xid, &octets, |_, message| {
        if is_error(message, 2, wire::INVALID_OPTION) {
            return Ok(());
        }
        violation(format!(
            "the message is answered: {}",
            crate::trace::words(&message.octets, 64)
        ))
    })?;
    Ok(())
}

/// A call of exactly 4096 octets.
fn longest_call(link: &mut Link) -> Result<(), Problem> {
    let xid = link.xid();
    let header = Header::two(xid);
    let rpc = link.server.call_of(xid, SIZE - header.octets().len())?;
    link.send(&header.with(&rpc))?;
    let message = link.receive_of(xid)?;
    link.decode(xid, &message)?;
    Ok(())
}

/// A call by a Read chunk whose results have `length` octets.
fn reply_of(link: &mut Link, length: usize, chunk: bool) -> Result<u32, Problem> {
    if let Service::Nfs4(_) = link.server.service {
        // Of Linux, the COMPOUND would have some 200 operations: a server need not execute as many.
        return skip("only the echo program has replies of any length");
    }
    let xid = link.xid();
    let rpc = link.server.call_for(xid, length)?;
    let segment = link.readable(&rpc)?;
    let position = 0;
    let mut header = Header {
        procedure: wire::NOMSG,
        reads: vec![ReadSegment { position, segment }],
        ..Header::two(xid)
    };
    if chunk {
        header.reply = Some(vec![link.writable(length + 24)?]);
    }
    link.send(&header.octets())?;
    Ok(xid)
}

fn longest_reply(link: &mut Link) -> Result<(), Problem> {
    let xid = reply_of(link, SIZE - Header::two(0).octets().len() - 24, false)?;
    let message = link.receive_of(xid)?;
    link.decode(xid, &message)?.results()?;
    if message.octets.len() != SIZE {
        return violation(format!("the reply has {} octets", message.octets.len()));
    }
    Ok(())
}

fn too_long_reply(target: &mut Target<'_>) -> Verdict {
    let mut link = agreed(target)?;
    let xid = reply_of(&mut link, SIZE - Header::two(0).octets().len() - 20, false)?;
    let message = link.receive_or_end(xid)?;
    if let Some(message) = &message {
        fits(message.octets.len(), SIZE)?;
        if let Some(answer) = link.processed(xid, message)? {
            return violation(format!("the call gets {:?}", answer.status));
        }
    }
    let answered = message.is_some();
    target.goes_on(&mut link, answered, "a reply that was too long")
}

fn long_messages(link: &mut Link) -> Result<(), Problem> {
    let xid = reply_of(link, 6000, true)?;
    let message = link.receive_of(xid)?;
    let answer = link.decode(xid, &message)?;
    if answer.header.procedure != wire::NOMSG || answer.results()?.len() != 6000 {
        return violation("the reply is not the Long Reply");
    }
    Ok(())
}

/// A Long Call that holds an RPC reply.
fn reply_in_long_call(link: &mut Link) -> Result<(), Problem> {
    let xid = link.xid();
    let segment = link.readable(&words(&[xid, wire::REPLY, 0, 0, 0, 0]))?;
    let position = 0;
    let header = Header {
        procedure: wire::NOMSG,
        reads: vec![ReadSegment { position, segment }],
        ..Header::two(xid)
    };
    link.send(&header.octets())?;
    link.refused(xid)?;
    Ok(())
}

/// RDMA2_MSG with these words behind rdma_proc gets BAD_HEADER, or a status that fits.
fn refused_or(
    target: &mut Target<'_>,
    rest: &[u32],
    payload: bool,
    fits: impl FnOnce(&Status) -> bool,
) -> Verdict {
    on_agreed_or_end(target, |link| {
        let xid = link.xid();
        let null = link.null_call(xid);
        let payload = if payload { &null[..] } else { &[] };
        link.refuses_or(xid, &fixed(xid, 2, wire::MSG, rest, payload), fits)?;
        Ok(())
    })
}

fn reduced(link: &mut Link) -> Result<(), Problem> {
    let xid = link.xid();
    let null = link.null_call(xid);
    let segment = link.readable(&[7; 4])?;
    let position = 40;
    let header = Header {
        reads: vec![ReadSegment { position, segment }],
        ..Header::two(xid)
    };
    link.refuses_or_garbage(xid, &header.with(&null))?;
    Ok(())
}

/// Calls in version 1 and 2 in turn. Version 2 is meant for the rest of the connection (the draft,
/// section 5.2).
fn both_versions(link: &mut Link) -> Result<(), Problem> {
    for version in [1, 2, 1, 2] {
        link.version = version;
        let xid = link.xid();
        let octets = link.header(xid).with(&link.null_call(xid));
        link.send(&octets)?;
        let message = link.receive_of(xid)?;
        if is_error(&message, version, wire::ERR_VERS) {
            return unimplemented("the server keeps to one version on a connection");
        }
        link.decode(xid, &message)?.results()?;
    }
    Ok(())
}

fn unknown_version(link: &mut Link) -> Result<(), Problem> {
    let xid = link.xid();
    let null = link.null_call(xid);
    link.send(&fixed(xid, 3, wire::MSG, &[0, 0, 0], &null))?;
    let message = link.receive_of(xid)?;
    match Transport::parse(&message.octets) {
        Ok(Transport::Error {
            version: 3,
            error: wire::ERR_VERS,
            range: Some((1, 2)),
            ..
        }) => Ok(()),
        other => violation(format!("the answer is {other:?}")),
    }
}

/// A case whose RDMA2_MSG is malformed: its words from the direction on, and whether NULL follows.
macro_rules! bad {
    ($id:literal, $name:literal, $sends:literal, $procedure:expr, $rest:expr, $payload:expr) => {
        case!($id, $name, Must, PARSING, sends $sends, accepts "BAD_HEADER; NULL succeeds",
            fault "drops-malformed", needs [DraftV2],
            |target| refused(target, $procedure, &$rest, $payload))
    };
}

pub const CASES: &[Case] = &[
    case!("draft-v2/5.2/1", "version 2 gets a reply, or ERR_VERS that names version 1", Must, ERR_VERS,
        sends "NULL in version 2",
        accepts "SUCCESS in version 2, or ERR_VERS 1..1 in version 2 and SUCCESS to NULL in version 1",
        fault "drops-version-2", needs [DraftV2], answered),
    case!("draft-v2/5.3/1", "the reply has version 2", Must, SAME_VERSION,
        sends "NULL in version 2", accepts "SUCCESS in version 2",
        fault "wrong-version", needs [DraftV2], |target| on_agreed(target, |_| Ok(()))),
    case!("draft-v2/5.3/2", "each reply has the version of its call", Must, SAME_VERSION,
        sends "NULL in versions 2, 1, 2, 1 and 2",
        accepts "SUCCESS in the same versions; a server need not take both versions on a connection",
        fault "wrong-version", needs [DraftV2], |target| on_agreed(target, both_versions)),
    case!("draft-v2/5/1", "ERR_VERS names versions 1 and 2", Must,
        "the draft, section 5.2: This message also reports a range of protocol versions that the \
         responder supports.",
        sends "NULL in version 3", accepts "ERR_VERS 1..2",
        fault "hides-version-2", needs [DraftV2], |target| on_agreed_or_end(target, unknown_version)),
    case!("draft-v2/4.2.2/1", "the reply has the direction REPLY", Must, DIRECTION,
        sends "NULL in version 2", accepts "SUCCESS in the direction 1",
        fault "replies-are-calls", needs [DraftV2], |target| on_agreed(target, |_| Ok(()))),
    case!("draft-v2/4.2.2/2", "a call in an unknown direction gets BAD_HEADER", Must, DIRECTION_REFUSED,
        sends "NULL in the direction 2", accepts "BAD_HEADER; NULL succeeds",
        fault "any-direction", needs [DraftV2],
        |target| refused(target, wire::MSG, &[2, 0, 0, 0], true)),
    case!("draft-v2/4.2.2/3", "a call in the direction of a reply is refused or discarded", Must,
    EITHER_DIRECTION,
    sends "NULL in the direction 1", accepts "BAD_HEADER or nothing; NULL succeeds",
    fault "any-direction", needs [DraftV2],
    |target| on_agreed_or_end(target, |link| {
        let xid = link.xid();
        let null = link.null_call(xid);
        link.refuses_or_discards(xid, &fixed(xid, 2, wire::MSG, &[1, 0, 0, 0], &null))?;
        Ok(())
    })),
    case!("draft-v2/4.2.2/4", "a reply in the direction of a call gets BAD_HEADER", Must,
    DIRECTION_REFUSED,
    sends "an RPC reply, SUCCESS, in the direction 0", accepts "BAD_HEADER; NULL succeeds",
    fault "drops-malformed", needs [DraftV2],
    |target| on_agreed_or_end(target, |link| {
        let (xid, octets) = unmatched(link, wire::CALL);
        link.send(&octets)?;
        link.refused(xid)?;
        Ok(())
    })),
    case!("draft-v2/4.2.2/5", "a reply to no call is discarded", Should, MATCH,
    sends "an RPC reply, SUCCESS, in the direction 1", accepts "nothing; NULL succeeds",
    fault "answers-replies", needs [DraftV2],
    |target| on_agreed(target, |link| {
        let (_, octets) = unmatched(link, wire::REPLY);
        link.discards(&octets)?;
        Ok(())
    })),
    case!("draft-v2/4.2.2/6", "a malformed reply is discarded", Must, BAD_REPLY,
        sends "a Read list that begins with 2, in the direction 1", accepts "nothing; NULL succeeds",
        fault "answers-replies", needs [DraftV2],
        |target| discarded(target, wire::MSG, &[1, 2, 0, 0], true)),
    case!("draft-v2/4.2.2/7", "a Long Call of version 2 that holds a reply gets BAD_HEADER", Must,
        DIRECTION_REFUSED,
        sends "RDMA2_NOMSG in the direction 0 with an RPC reply in its Read chunk",
        accepts "BAD_HEADER; NULL succeeds", fault "drops-malformed", needs [DraftV2],
        |target| on_agreed_or_end(target, reply_in_long_call)),
    case!("draft-v2/4.2.3/1", "RDMA2_ERROR with INVALID_OPTION is discarded", Must, DISCARDS_ERRORS,
        sends "RDMA2_ERROR, error 3, in 28 octets", accepts "nothing; NULL succeeds",
        fault "answers-errors", needs [DraftV2],
        |target| discarded(target, wire::ERROR, &[3, 0, 0], false)),
    case!("draft-v2/4.2.3/2", "RDMA2_ERROR with ERR_VERS is discarded", Must, DISCARDS_ERRORS,
        sends "RDMA2_ERROR, ERR_VERS, 1, 1", accepts "nothing; NULL succeeds",
        fault "answers-errors", needs [DraftV2],
        |target| discarded(target, wire::ERROR, &[1, 1, 1], false)),
    bad!(
        "draft-v2/4.2.3/3",
        "version 2 has no RDMA_MSGP",
        "procedure 2",
        wire::MSGP,
        [0, 0, 0, 0, 0, 0],
        true
    ),
    bad!(
        "draft-v2/4.2.3/4",
        "version 2 has no RDMA_DONE",
        "procedure 3",
        wire::DONE,
        [0, 0, 0, 0],
        true
    ),
    bad!(
        "draft-v2/4.2.3/5",
        "procedure 6 gets BAD_HEADER",
        "procedure 6",
        6,
        [0, 0, 0, 0],
        true
    ),
    bad!(
        "draft-v2/4.2.3/6",
        "procedure 0xffffffff gets BAD_HEADER",
        "procedure 0xffffffff",
        u32::MAX,
        [0, 0, 0, 0],
        true
    ),
    bad!(
        "draft-v2/4.2.3/7",
        "RDMA2_NOMSG without a chunk",
        "RDMA2_NOMSG without chunks",
        wire::NOMSG,
        [0, 0, 0, 0],
        false
    ),
    case!("draft-v2/4.2.1/1", "RDMA2_MSG without an RPC message", Should, UNPARSED,
        sends "RDMA2_MSG that ends with its header",
        accepts "BAD_HEADER, GARBAGE_ARGS or AUTH_ERROR; NULL succeeds",
        fault "drops-malformed", needs [DraftV2],
        |target| refused_or(target, &[0, 0, 0, 0], false, unparsed)),
    case!("draft-v2/4.2.3/8", "the XIDs of header and RPC message differ in version 2", Must,
    OTHER_XID,
    sends "NULL with XID X + 4096 behind XID X",
    accepts "BAD_HEADER, or SUCCESS with XID X in the header and in the reply; NULL succeeds",
    fault "no-xid-check", needs [DraftV2],
    |target| on_agreed_or_end(target, |link| {
        let xid = link.xid();
        let null = link.null_call(xid.wrapping_add(4096));
        link.refuses_or(xid, &Header::two(xid).with(&null), by_header)?;
        Ok(())
    })),
    case!("draft-v2/4.2.3/9", "version 2: a Read list that begins with 2", Should, BOOLEAN,
        sends "2, a Read segment behind NULL, 0 0 0, and NULL", accepts "BAD_HEADER; NULL succeeds",
        fault "any-boolean", needs [DraftV2], |target| flag_of_two(target, 0)),
    case!("draft-v2/4.2.3/10", "version 2: a Position that is no multiple of four", Should, ERRORS,
    sends "Position 42", accepts "BAD_HEADER or GARBAGE_ARGS; NULL succeeds",
    fault "drops-malformed", needs [DraftV2],
    |target| {
        let words = [0, 1, 42, 1, 4, 0, 0, 0, 0, 0];
        refused_or(target, &words, true, |status| *status == Status::GarbageArgs)
    }),
    bad!(
        "draft-v2/4.2.3/11",
        "version 2: a header that ends within a Read segment",
        "1 and three words of the segment",
        wire::MSG,
        [0, 1, 0, 1, 4],
        false
    ),
    bad!(
        "draft-v2/4.2.3/12",
        "version 2: a Read list without an end",
        "a Read segment, and no more",
        wire::MSG,
        [0, 1, 0, 1, 4, 0, 0],
        false
    ),
    case!("draft-v2/4.2.3/13", "version 2: a Write list that begins with 2", Should, BOOLEAN,
        sends "0 2, a Write chunk of a segment, 0 0, and NULL", accepts "BAD_HEADER; NULL succeeds",
        fault "any-boolean", needs [DraftV2], |target| flag_of_two(target, 1)),
    bad!(
        "draft-v2/4.2.3/14",
        "version 2: a Write chunk of more segments than there are",
        "99 segments",
        wire::MSG,
        [0, 0, 1, 99, 1, 4, 0, 0, 0, 0],
        true
    ),
    bad!(
        "draft-v2/4.2.3/15",
        "version 2: a Write chunk of 0x10000000 segments",
        "that chunk, and NULL",
        wire::MSG,
        [0, 0, 1, 0x1000_0000, 1, 4, 0, 0, 0, 0],
        true
    ),
    case!("draft-v2/4.2.3/16", "version 2: a Reply chunk that begins with 2", Should, BOOLEAN,
        sends "0 0 2, a Reply chunk of a segment, and NULL", accepts "BAD_HEADER; NULL succeeds",
        fault "any-boolean", needs [DraftV2], |target| flag_of_two(target, 2)),
    bad!(
        "draft-v2/4.2.3/17",
        "version 2: a Reply chunk of 0xffffffff segments",
        "that chunk, and NULL",
        wire::MSG,
        [0, 0, 0, 1, u32::MAX, 1, 4, 0, 0],
        true
    ),
    bad!(
        "draft-v2/4.2.3/18",
        "version 2: a header that ends before the Reply chunk",
        "an empty Write chunk",
        wire::MSG,
        [0, 0, 1, 0, 0],
        false
    ),
    case!("draft-v2/4.2.3/19", "version 2: a Read chunk of a call without eligible arguments", Must, ERRORS,
        sends "NULL with a Read segment at Position 40",
        accepts "BAD_HEADER or GARBAGE_ARGS; NULL succeeds",
        fault "ignores-reads", needs [DraftV2], |target| on_agreed_or_end(target, reduced)),
    case!("draft-v2/4.2.3/20", "version 2: a Read chunk of a call of an unknown program", Should, UNKNOWN,
        sends "NULL of program 0x3fffffff with a Read segment at Position 40",
        accepts "PROG_UNAVAIL, BAD_HEADER or GARBAGE_ARGS; NULL succeeds",
        fault "any-program", needs [DraftV2], |target| on_agreed_or_end(target, read_chunk_of_unknown)),
    case!("draft-v2/3.1/1", "an unknown option gets INVALID_OPTION", Must, OPTIONS,
        sends "RDMA2_OPTIONAL, option 77, no octets", accepts "INVALID_OPTION; NULL succeeds",
        fault "drops-options", needs [DraftV2], |target| option(target, &[0, 77, 0], false)),
    case!("draft-v2/3.1/2", "an unknown option with octets and a call", Must, OPTIONS,
        sends "RDMA2_OPTIONAL, option 78, five octets, NULL", accepts "INVALID_OPTION; NULL succeeds",
        fault "drops-options", needs [DraftV2],
        |target| option(target, &[0, 78, 5, 1, 0x0200_0000], true)),
    case!("draft-v2/3.1/3", "an unknown option in the direction of a reply", Must, OPTIONS,
        sends "RDMA2_OPTIONAL, option 77, in the direction 1", accepts "INVALID_OPTION; NULL succeeds",
        fault "drops-options", needs [DraftV2], |target| option(target, &[1, 77, 0], false)),
    case!("draft-v2/3.1/4", "an unknown option of fewer octets than it says is refused", Must, MALFORMED,
        sends "RDMA2_OPTIONAL, option 77, four of nine octets",
        accepts "BAD_HEADER or INVALID_OPTION; NULL succeeds",
        fault "drops-options", needs [DraftV2], |target| malformed_option(target, &[0, 77, 9, 1])),
    case!("draft-v2/3.1/5", "an unknown option that is not padded with zeros is refused", Should,
        MALFORMED,
        sends "RDMA2_OPTIONAL, option 77, three octets and a one",
        accepts "BAD_HEADER or INVALID_OPTION; NULL succeeds",
        fault "drops-options", needs [DraftV2], |target| malformed_option(target, &[0, 77, 3, 1])),
    case!("draft-v2/3.1/6", "an unknown option in an unknown direction is refused", Must, MALFORMED,
        sends "RDMA2_OPTIONAL, option 77, in the direction 2",
        accepts "BAD_HEADER or INVALID_OPTION; NULL succeeds",
        fault "drops-options", needs [DraftV2], |target| malformed_option(target, &[2, 77, 0])),
    case!("draft-v2/3.1/7", "a malformed option in the direction of a reply does not get BAD_HEADER",
        Must, MALFORMED_REPLY,
        sends "RDMA2_OPTIONAL, option 77, four of nine octets, in the direction 1",
        accepts "nothing or INVALID_OPTION; NULL succeeds", fault "answers-options", needs [DraftV2],
        |target| on_agreed_or_end(target, malformed_option_of_reply)),
    case!("draft-v2/2.3/1", "a call of 4096 octets, even where the private data says 1024", Must, THRESHOLD,
        sends "sizes 1024; NULL in version 2; a call of 4096 octets", accepts "a reply",
        fault "small-version-2", needs [DraftV2], |target| on_agreed(target, longest_call)),
    case!("draft-v2/2.3/2", "a reply of 4096 octets, even where the private data says 1024", Must, NEGOTIATED,
        sends "sizes 1024; NULL in version 2; a call whose reply has 4096 octets",
        accepts "a reply without a Reply chunk",
        fault "small-version-2", needs [DraftV2], |target| on_agreed(target, longest_reply)),
    case!("draft-v2/2.3/3", "a longer reply without a Reply chunk", Must, TOO_LONG,
        sends "a call whose reply is four octets longer than the threshold",
        accepts "BAD_HEADER, GARBAGE_ARGS, SYSTEM_ERR or the end of this connection; NULL succeeds",
        fault "ignores-threshold", needs [DraftV2], too_long_reply),
    case!("draft-v2/2.2/1", "a Long Call and a Long Reply of version 2", Must,
        "the draft, section 2.1: A connection's inline threshold determines when full RDMA Read or \
         Write operations are required because the RPC message to be sent is larger than the \
         peer's Receive buffer.",
        sends "RDMA2_NOMSG with a Read chunk and a Reply chunk of 6024 octets", accepts "the reply in it",
        fault "no-long-calls", needs [DraftV2], |target| on_agreed(target, long_messages)),
];
