// SPDX-License-Identifier: GPL-2.0

//! RFC 8166, sections 4.2, 4.5 and 4.6: the header, and errors in it.

use crate::case::case;
use crate::case::violation;
use crate::case::Case;
use crate::case::Passed;
use crate::case::Verdict;
use crate::nfs;
use crate::nfs::Compound;
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

const SAME_XID: &str = "This XID MUST be the same as the XID in the RPC message.";
pub const OTHER_XID: &str =
    "RFC 8166, section 4.2.1: This XID MUST be the same as the XID in the RPC message. The \
     receiver MAY perform its processing based solely on the XID in the RPC-over-RDMA header, and \
     thereby ignore the XID in the RPC message, if it so chooses.";
pub const UNPARSED: &str =
    "RFC 8166, section 4.5.2: When a Responder receives a valid RPC-over-RDMA header but the \
     Responder's ULP implementation cannot parse the RPC arguments in the RPC Call message, the \
     Responder SHOULD return an RPC Reply message with status GARBAGE_ARGS, using an RDMA_MSG \
     procedure.";
pub const DISCARDS_DONE: &str =
    "RFC 8166, section 4.6.2: Receivers MUST silently discard RDMA_DONE messages.";
const DISCARD: &str = "A Responder MUST silently discard RDMA_ERROR procedures.";
const TOO_SHORT: &str = "If an incoming RPC-over-RDMA message is not as long as a minimal size \
                         RPC-over-RDMA header (28 bytes), the receiver cannot trust the value of \
                         the XID field; therefore, it MUST silently discard the message before \
                         performing any parsing.";
const VERSIONS: &str = "When a Responder detects an RPC-over-RDMA header version that it does not \
                        support (currently this document defines only version 1), it MUST reply \
                        with an RDMA_ERROR procedure and set the rdma_err value to ERR_VERS, also \
                        providing the low and high inclusive version numbers it does, in fact, \
                        support.";
const NOMSG_WITHOUT_LISTS: &str =
    "RFC 8166, section 4.5.2: Examples of such errors include … an RDMA_NOMSG message where the \
     Read list, Write list, and Reply chunk are marked not present … If the rdma_vers field \
     contains a recognized value, but an XDR parsing error occurs, the Responder MUST reply with \
     an RDMA_ERROR procedure and set the rdma_err value to ERR_CHUNK.";
const PARSING: &str =
    "RFC 8166, section 4.5.2: If the rdma_vers field contains a recognized value, but an XDR \
     parsing error occurs, the Responder MUST reply with an RDMA_ERROR procedure and set the \
     rdma_err value to ERR_CHUNK.";
const BOOLEAN: &str =
    "RFC 4506, section 4.3: It is an error to encode as an enum any integer other than those that \
     have been given assignments in the enum declaration. … RFC 8166, section 4.5.2: If the \
     rdma_vers field contains a recognized value, but an XDR parsing error occurs, the Responder \
     MUST reply with an RDMA_ERROR procedure and set the rdma_err value to ERR_CHUNK.";
const FORM: &str =
    "The rdma_xid field MUST contain the same XID that was in the rdma_xid field in the failing \
     request; … The rdma_vers field MUST contain the same version that was in the rdma_vers field \
     in the failing request; … The rdma_proc field MUST contain the value RDMA_ERROR";

/// NULL with this XID is answered with it.
fn xid(target: &mut Target<'_>, xid: u32) -> Verdict {
    target.on_plain(|link| {
        let null = link.null_call(xid);
        link.call(&Header::msg(xid), &null)?.results()?;
        link.still_answers("that XID")?;
        Ok(Passed)
    })
}

fn short(target: &mut Target<'_>, length: usize) -> Verdict {
    target.discards(|xid, null| Header::msg(xid).with(null)[..length].to_vec())
}

fn version(target: &mut Target<'_>, version: u32) -> Verdict {
    target.on_plain(|link| {
        let xid = link.xid();
        let null = link.null_call(xid);
        link.refuses_version(
            xid,
            version,
            &fixed(xid, version, wire::MSG, &[0, 0, 0], &null),
        )
    })
}

fn version_of_unknown_body(target: &mut Target<'_>) -> Verdict {
    target.on_plain(|link| {
        let xid = link.xid();
        // The body of an unknown version cannot be parsed.
        link.refuses_version(xid, 77, &fixed(xid, 77, 9, &[5; 20], &[]))
    })
}

/// The error has the form of section 4.5. Zeros may fill it up to 28 octets.
fn form(target: &mut Target<'_>) -> Verdict {
    target.on_plain(|link| {
        let xid = 0xfedc_ba98;
        link.send(&fixed(xid, 1, 9, &[0, 0, 0], &[]))?;
        let message = link.receive()?;
        match Transport::parse(&message.octets) {
            Ok(Transport::Error {
                xid: found,
                version: 1,
                error: wire::ERR_CHUNK,
                ..
            }) if found == xid => Ok(Passed),
            other => violation(format!("the answer is {other:?}")),
        }
    })
}

/// RDMA_MSG with these words of lists, then NULL.
fn lists(target: &mut Target<'_>, lists: &[u32]) -> Verdict {
    target.refuses(|xid, null| fixed(xid, 1, wire::MSG, lists, null))
}

/// RDMA_MSG with a segment in its Read list (0), Write list (1) or Reply chunk (2). In front of
/// it, 2 stands in place of TRUE. A server that takes 2 for TRUE finds no other error.
pub fn flag_of_two(link: &mut Link, list: usize) -> Verdict {
    let xid = link.xid();
    let null = link.null_call(xid);
    let mut header = link.header(xid);
    let first = header.octets().len() / 4 - 3;
    match list {
        0 => header.reads.push(ReadSegment {
            position: null.len() as u32,
            segment: link.readable(&[0; 4])?,
        }),
        1 => header.writes.push(vec![link.writable(256)?]),
        _ => header.reply = Some(vec![link.writable(256)?]),
    }
    let mut octets = header.with(&null);
    octets[4 * (first + list) + 3] = 2;
    link.refuses(xid, &octets)
}

/// RDMA_MSG that ends with these words.
fn ends(target: &mut Target<'_>, lists: &[u32]) -> Verdict {
    target.refuses(|xid, _| fixed(xid, 1, wire::MSG, lists, &[]))
}

/// RDMA_MSG with the first octets of NULL only.
fn cut_off(target: &mut Target<'_>, length: usize) -> Verdict {
    target.on_plain(|link| {
        let xid = link.xid();
        let null = link.null_call(xid);
        let octets = Header::msg(xid).with(&null[..length]);
        link.refuses_or(xid, &octets, unparsed)
    })
}

/// A call whose first argument, `opaque<>` of nine octets, ends behind the eighth.
fn arguments_cut_off(target: &mut Target<'_>) -> Verdict {
    target.on_plain(|link| {
        let xid = link.xid();
        let rpc = match link.server.service {
            Service::Echo(procedure) => wire::call(xid, procedure, &words(&[9, 0, 0])),
            // The tag of COMPOUND.
            Service::Nfs4(_) => Compound::new(b"").call_without_tag(xid, 9).0,
            Service::Null => return link.server.lacks("no procedure with arguments"),
        };
        match link.call(&Header::msg(xid), &rpc)?.status {
            Status::GarbageArgs => (),
            Status::Success(results) if results.get(..4) == Some(&nfs::BADXDR.to_be_bytes()) => (),
            other => return violation(format!("the call gets {other:?}")),
        }
        link.still_answers("an RPC error")?;
        Ok(Passed)
    })
}

/// A status of a call that is cut off.
pub fn unparsed(status: &Status) -> bool {
    matches!(status, Status::GarbageArgs | Status::AuthError(_))
}

/// The status from a server that goes by the XID of the header: SUCCESS. `decode` has found that
/// XID in the header and in the reply.
pub fn by_header(status: &Status) -> bool {
    matches!(status, Status::Success(_))
}

fn procedure(target: &mut Target<'_>, procedure: u32) -> Verdict {
    target.refuses(|xid, null| fixed(xid, 1, procedure, &[0, 0, 0], null))
}

fn error(target: &mut Target<'_>, rest: &[u32]) -> Verdict {
    target.discards(|xid, _| fixed(xid, 1, wire::ERROR, rest, &[]))
}

fn many_errors(target: &mut Target<'_>) -> Verdict {
    let mut link = target.plain()?;
    // Each one takes a Receive, which the server has to post again.
    for _ in 0..40 {
        let xid = link.xid();
        link.refuses(xid, &fixed(xid, 1, 9, &[0, 0, 0], &[]))?;
        if link.connection.closed().is_some() {
            link = target.plain()?;
        }
    }
    target.goes_on(&mut link, true, "40 malformed messages")
}

pub const CASES: &[Case] = &[
    case!("rfc8166/4.2.1/1", "XID 0", Must, SAME_XID,
        sends "NULL with XID 0", accepts "SUCCESS with XID 0, in the header and in the reply",
        fault "wrong-xid", |target| xid(target, 0)),
    case!("rfc8166/4.2.1/2", "XID 0xffffffff", Must, SAME_XID,
        sends "NULL with XID 0xffffffff", accepts "SUCCESS with that XID, in the header and in the reply",
        fault "wrong-xid", |target| xid(target, u32::MAX)),
    case!("rfc8166/4.2.1/3", "XID 0x80000000", Must, SAME_XID,
        sends "NULL with XID 0x80000000", accepts "SUCCESS with that XID, in the header and in the reply",
        fault "wrong-xid", |target| xid(target, 0x8000_0000)),
    case!("rfc8166/4.2.1/4", "the XIDs of header and RPC message differ", Must, OTHER_XID,
    sends "RDMA_MSG with XID X, NULL with XID X + 4096",
    accepts "ERR_CHUNK, or SUCCESS with XID X in the header and in the reply; NULL succeeds",
    fault "no-xid-check",
    |target| target.on_plain(|link| {
        let xid = link.xid();
        let null = link.null_call(xid.wrapping_add(4096));
        link.refuses_or(xid, &Header::msg(xid).with(&null), by_header)
    })),
    case!("rfc8166/4.2.2/1", "the reply has version 1", Must,
        "For RPC-over-RDMA version 1, this field MUST contain the value one (1).",
        sends "NULL", accepts "rdma_vers 1", fault "wrong-version",
        |target| target.on_plain(|link| { link.null()?; Ok(Passed) })),
    case!("rfc8166/4.2.4/1", "RDMA_ERROR with ERR_VERS is discarded", Must, DISCARD,
        sends "RDMA_ERROR, ERR_VERS, 1, 1", accepts "nothing; NULL succeeds",
        fault "answers-errors", |target| error(target, &[1, 1, 1])),
    case!("rfc8166/4.2.4/2", "RDMA_ERROR with ERR_CHUNK is discarded", Must, DISCARD,
        sends "RDMA_ERROR, ERR_CHUNK, in 28 octets", accepts "nothing; NULL succeeds",
        fault "answers-errors", |target| error(target, &[2, 0, 0])),
    case!("rfc8166/4.2.4/3", "RDMA_ERROR with an unknown error is discarded", Must, DISCARD,
        sends "RDMA_ERROR, error 99", accepts "nothing; NULL succeeds",
        fault "answers-errors", |target| error(target, &[99, 0, 0])),
    case!("rfc8166/4.5/1", "a message of no octets is discarded", Must, TOO_SHORT,
        sends "a Send of 0 octets", accepts "nothing; NULL succeeds",
        fault "answers-short", needs [Destructive],
        |target| short(target, 0)),
    case!("rfc8166/4.5/2", "a message of 1 octet is discarded", Must, TOO_SHORT,
        sends "a Send of 1 octet", accepts "nothing; NULL succeeds",
        fault "answers-short", needs [Destructive],
        |target| short(target, 1)),
    case!("rfc8166/4.5/3", "a message of 4 octets is discarded", Must, TOO_SHORT,
        sends "the first 4 octets of a call", accepts "nothing; NULL succeeds",
        fault "answers-short", needs [Destructive],
        |target| short(target, 4)),
    case!("rfc8166/4.5/4", "a message of 15 octets is discarded", Must, TOO_SHORT,
        sends "the first 15 octets of a call", accepts "nothing; NULL succeeds",
        fault "answers-short", needs [Destructive],
        |target| short(target, 15)),
    case!("rfc8166/4.5/5", "a message of 16 octets is discarded", Must, TOO_SHORT,
        sends "the first 16 octets of a call", accepts "nothing; NULL succeeds",
        fault "answers-short", needs [Destructive],
        |target| short(target, 16)),
    case!("rfc8166/4.5/6", "a message of 20 octets is discarded", Must, TOO_SHORT,
        sends "the first 20 octets of a call", accepts "nothing; NULL succeeds",
        fault "answers-short", needs [Destructive],
        |target| short(target, 20)),
    case!("rfc8166/4.5/7", "a message of 24 octets is discarded", Must, TOO_SHORT,
        sends "the first 24 octets of a call", accepts "nothing; NULL succeeds",
        fault "answers-short", needs [Destructive],
        |target| short(target, 24)),
    case!("rfc8166/4.5/8", "a message of 27 octets is discarded", Must, TOO_SHORT,
        sends "the first 27 octets of a call", accepts "nothing; NULL succeeds",
        fault "answers-short", needs [Destructive],
        |target| short(target, 27)),
    case!("rfc8166/4.5/9", "an error has the XID and the version of the request", Must, FORM,
        sends "procedure 9 with XID 0xfedcba98", accepts "that XID, version 1, RDMA_ERROR, ERR_CHUNK",
        fault "wrong-error-xid", form),
    case!("rfc8166/4.5/10", "forty malformed messages use up no resources", Must,
        "If other errors are detected in the RPC-over-RDMA header of an RPC Call message, a \
         Responder MUST send an RDMA_ERROR message back to the Requester.",
        sends "procedure 9 and NULL, forty times",
        accepts "ERR_CHUNK, behind which the server may end the connection; NULL succeeds",
        fault "errors-use-receives", many_errors),
    case!("rfc8166/4.5.1/1", "version 0 gets ERR_VERS", Must, VERSIONS,
        sends "NULL in version 0",
        accepts "ERR_VERS in version 0, with a range that holds 1 and not 0; NULL succeeds",
        fault "ignores-version", |target| version(target, 0)),
    case!("rfc8166/4.5.1/2", "version 3 gets ERR_VERS", Must, VERSIONS,
        sends "NULL in version 3",
        accepts "ERR_VERS in version 3, with a range that holds 1 and not 3; NULL succeeds",
        fault "ignores-version", |target| version(target, 3)),
    case!("rfc8166/4.5.1/3", "version 255 gets ERR_VERS", Must, VERSIONS,
        sends "NULL in version 255",
        accepts "ERR_VERS in version 255, with a range that holds 1 and not 255; NULL succeeds",
        fault "wrong-versions", |target| version(target, 255)),
    case!("rfc8166/4.5.1/4", "version 0xffffffff gets ERR_VERS", Must, VERSIONS,
        sends "NULL in version 0xffffffff",
        accepts "ERR_VERS in that version, with a range that holds 1 and not it; NULL succeeds",
        fault "error-in-version-1", |target| version(target, u32::MAX)),
    case!("rfc8166/4.5.1/5", "ERR_VERS where the body of that version is unknown", Must, VERSIONS,
        sends "version 77, procedure 9, and 20 words",
        accepts "ERR_VERS in version 77, with a range that holds 1 and not 77; NULL succeeds",
        fault "ignores-version", version_of_unknown_body),
    case!("rfc8166/4.5.2/1", "procedure 5 gets ERR_CHUNK", Must, PARSING,
        sends "rdma_proc 5", accepts "ERR_CHUNK; NULL succeeds",
        fault "drops-malformed", |target| procedure(target, 5)),
    case!("rfc8166/4.5.2/2", "procedure 0xffffffff gets ERR_CHUNK", Must, PARSING,
        sends "rdma_proc 0xffffffff", accepts "ERR_CHUNK; NULL succeeds",
        fault "drops-malformed", |target| procedure(target, u32::MAX)),
    case!("rfc8166/4.5.2/3", "RDMA_NOMSG without chunks gets ERR_CHUNK", Must, NOMSG_WITHOUT_LISTS,
        sends "RDMA_NOMSG with empty lists", accepts "ERR_CHUNK; NULL succeeds",
        fault "drops-malformed",
        |target| target.refuses(|xid, _| fixed(xid, 1, wire::NOMSG, &[0, 0, 0], &[]))),
    case!("rfc8166/4.5.2/4", "RDMA_NOMSG without a Read list, with a message behind it", Must, NOMSG_WITHOUT_LISTS,
        sends "RDMA_NOMSG with empty lists and NULL inline", accepts "ERR_CHUNK; NULL succeeds",
        fault "nomsg-is-msg",
        |target| target.refuses(|xid, null| fixed(xid, 1, wire::NOMSG, &[0, 0, 0], null))),
    case!("rfc8166/4.5.2/5", "a Read list that begins with 2", Should, BOOLEAN,
        sends "2, a Read segment behind NULL, 0 0 0, and NULL", accepts "ERR_CHUNK; NULL succeeds",
        fault "any-boolean", |target| target.on_plain(|link| flag_of_two(link, 0))),
    case!("rfc8166/4.5.2/6", "a Write list that begins with 2", Should, BOOLEAN,
        sends "0 2, a Write chunk of a segment, 0 0, and NULL", accepts "ERR_CHUNK; NULL succeeds",
        fault "any-boolean", |target| target.on_plain(|link| flag_of_two(link, 1))),
    case!("rfc8166/4.5.2/7", "a Reply chunk that begins with 2", Should, BOOLEAN,
        sends "0 0 2, a Reply chunk of a segment, and NULL", accepts "ERR_CHUNK; NULL succeeds",
        fault "any-boolean", |target| target.on_plain(|link| flag_of_two(link, 2))),
    case!("rfc8166/4.5.2/8", "a header that ends behind a Read segment", Must, PARSING,
        sends "1, a Read segment, and nothing", accepts "ERR_CHUNK; NULL succeeds",
        fault "drops-malformed", |target| ends(target, &[1, 0, 7, 40, 0, 0])),
    case!("rfc8166/4.5.2/9", "a header that ends within a Read segment", Must, PARSING,
        sends "1 and three words", accepts "ERR_CHUNK; NULL succeeds",
        fault "drops-malformed", |target| ends(target, &[1, 0, 7, 40])),
    case!("rfc8166/4.5.2/10", "a header that ends within the Write list", Must, PARSING,
        sends "a Write chunk of two segments with one", accepts "ERR_CHUNK; NULL succeeds",
        fault "drops-malformed", |target| ends(target, &[0, 1, 2, 7, 40, 0, 0])),
    case!("rfc8166/4.5.2/11", "a header that ends behind a Write chunk", Must, PARSING,
        sends "a Write chunk, and nothing", accepts "ERR_CHUNK; NULL succeeds",
        fault "drops-malformed", |target| ends(target, &[0, 1, 1, 7, 40, 0, 0])),
    case!("rfc8166/4.5.2/12", "a header that ends within the Reply chunk", Must, PARSING,
        sends "a Reply chunk of one segment with three words", accepts "ERR_CHUNK; NULL succeeds",
        fault "drops-malformed", |target| ends(target, &[0, 0, 1, 1, 7, 40, 0])),
    case!("rfc8166/4.5.2/13", "a header that ends behind the Reply chunk's 1", Must, PARSING,
        sends "0 0 1", accepts "ERR_CHUNK; NULL succeeds",
        fault "drops-malformed", |target| ends(target, &[0, 0, 1])),
    case!("rfc8166/4.5.2/14", "a Write chunk of 0xffffffff segments", Must, PARSING,
        sends "0 1 0xffffffff and NULL", accepts "ERR_CHUNK; NULL succeeds",
        fault "drops-malformed", |target| lists(target, &[0, 1, u32::MAX, 0])),
    case!("rfc8166/4.5.2/15", "a Write chunk of 0x10000000 segments", Must, PARSING,
        sends "0 1 0x10000000 and NULL", accepts "ERR_CHUNK; NULL succeeds",
        fault "drops-malformed", |target| lists(target, &[0, 1, 0x1000_0000, 0])),
    case!("rfc8166/4.5.2/16", "a Reply chunk of 0x10000001 segments", Must, PARSING,
        sends "0 0 1 0x10000001, one segment, and NULL", accepts "ERR_CHUNK; NULL succeeds",
        fault "drops-malformed", |target| lists(target, &[0, 0, 1, 0x1000_0001, 7, 40, 0, 0])),
    case!("rfc8166/4.5.2/17", "RDMA_MSG without an RPC message", Should, UNPARSED,
        sends "a header of 28 octets, and nothing",
        accepts "ERR_CHUNK, GARBAGE_ARGS or AUTH_ERROR; NULL succeeds",
        fault "drops-malformed", |target| cut_off(target, 0)),
    case!("rfc8166/4.5.2/18", "a Position that is no multiple of four", Should,
    "RFC 8166, section 3.4.5: The value in this field MUST be a multiple of four.",
    sends "a Read segment at Position 41, and NULL",
    accepts "ERR_CHUNK or GARBAGE_ARGS; NULL succeeds",
    fault "odd-positions",
    |target| target.on_plain(|link| {
        let xid = link.xid();
        let null = link.null_call(xid);
        let mut header = Header::msg(xid);
        let segment = link.readable(&[0; 4])?;
        header.reads.push(ReadSegment { position: 41, segment });
        link.refuses_or_garbage(xid, &header.with(&null))
    })),
    case!("rfc8166/4.5.2/19", "an RPC call that ends within its header", Should, UNPARSED,
        sends "RDMA_MSG with the first 24 octets of NULL",
        accepts "ERR_CHUNK, GARBAGE_ARGS or AUTH_ERROR; NULL succeeds",
        fault "drops-garbage", |target| cut_off(target, 24)),
    case!("rfc8166/4.5.2/23", "arguments that are cut off get GARBAGE_ARGS", Should, UNPARSED,
        sends "ECHO, or COMPOUND of NFS 4.0, whose first argument has 8 of 9 octets",
        accepts "GARBAGE_ARGS, or NFS4ERR_BADXDR; NULL succeeds",
        fault "drops-garbage", arguments_cut_off),
    case!("rfc8166/4.6.1/1", "RDMA_MSGP gets ERR_CHUNK", Should,
        "When receiving an RDMA_MSGP procedure, Responders SHOULD reply with an RDMA_ERROR \
         procedure, setting the rdma_err field to ERR_CHUNK",
        sends "RDMA_MSGP with NULL", accepts "ERR_CHUNK; NULL succeeds",
        fault "drops-malformed",
        |target| target.refuses(|xid, null| fixed(xid, 1, wire::MSGP, &[0, 0, 0, 0, 0], null))),
    case!("rfc8166/4.6.2/1", "RDMA_DONE is discarded", Must,
        DISCARDS_DONE,
        sends "RDMA_DONE of 28 octets", accepts "nothing; NULL succeeds",
        fault "answers-done",
        |target| target.discards(|xid, _| fixed(xid, 1, wire::DONE, &[0, 0, 0], &[]))),
    case!("rfc8166/4.6.2/2", "RDMA_DONE in front of a call is discarded", Must,
    DISCARDS_DONE,
    sends "RDMA_DONE with octets of a call", accepts "nothing; NULL succeeds",
    fault "answers-done",
    |target| target.discards(|xid, null| {
        let mut octets = words(&[xid, 1, 32, wire::DONE]);
        octets.extend(words(&[0, 0, 0]));
        octets.extend(null);
        octets
    })),
];
