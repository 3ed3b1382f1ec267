// SPDX-License-Identifier: GPL-2.0

//! RFC 8166: chunks, wrong and unreachable ones, too; RFC 8267, section 6.4.2: their limits.

use std::time::Duration;

use crate::case::case;
use crate::case::inconclusive;
use crate::case::unimplemented;
use crate::case::violation;
use crate::case::Case;
use crate::case::Passed;
use crate::case::Problem;
use crate::case::Verdict;
use crate::cases::rfc8166_credits::ABORTED;
use crate::cases::rfc8166_header::by_header;
use crate::cases::rfc8166_header::unparsed;
use crate::cases::rfc8166_header::OTHER_XID;
use crate::cases::rfc8166_header::UNPARSED;
use crate::cases::rfc8167::MATCH;
use crate::engine::Message;
use crate::engine::Offer;
use crate::nfs;
use crate::peer::fits;
use crate::peer::Answer;
use crate::peer::Link;
use crate::peer::Service;
use crate::peer::Target;
use crate::peer::DEFAULT;
use crate::peer::NFS;
use crate::wire;
use crate::wire::words;
use crate::wire::Header;
use crate::wire::Private;
use crate::wire::Procedure;
use crate::wire::ReadSegment;
use crate::wire::Segment;
use crate::wire::Status;

/// The octets of the results of a Long Reply: with both headers, more than 1024. They need 49
/// operations of an NFS server of Linux, and Linux 6.12 and older take 50.
const LONG_RESULTS: usize = 984;

const NO_LIMIT: &str =
    "RFC 8267, section 6.4.2: The RPC-over-RDMA version 1 protocol does not place any limit on the \
     number of chunks or segments that may appear in Read or Write lists.";
pub const UNUSED: &str =
    "RFC 8166, section 4.3.2.2: If this is the last or only Write chunk available and it remains \
     unconsumed, the Responder MUST return this Write chunk as an unused Write chunk";
const COPY: &str = "RFC 8166, section 3.4.6: The Responder MUST copy the segment count and all \
                    segments from the Requester-provided Write chunk into the RPC Reply message's \
                    Transport header.";
const REPLY_COPY: &str = "RFC 8166, section 4.3.3: When a Requester provides a Reply chunk in an \
                          RPC Call message, the Responder MUST copy that chunk into the Transport \
                          header of the RPC Reply message.";
const ACTUAL: &str = "RFC 8166, section 4.3.3: the Responder modifies the copied Reply chunk in \
                      the RPC Reply message to reflect the actual amount of data that is being \
                      returned in the Reply chunk.";
const USE: &str =
    "If a Reply chunk was provided and the reduced Payload stream is larger than the reply inline \
     threshold, the Responder MUST use the Requester-provided Reply chunk for the reply. … RFC \
     8166, section 4.2.4: the total length of the gathered buffers cannot exceed the inline \
     threshold.";
const LONG_CALL: &str = "Though the purpose of a Long Message is to handle large RPC messages, \
                         Requesters MAY use a Long Message at any time to convey an RPC Call \
                         message.";
const CONCATENATE: &str = "RFC 8166, section 3.4.5: The Responder reconstructs the transferred \
                           chunk data by concatenating the contents of each RDMA segment, in list \
                           order, into the received Payload stream";
const NO_READS: &str = "Responders MUST leave the Read list empty in all replies.";
const INVALID_OR_UNPARSED: &str =
    "RFC 8166, section 4.5.2: If the rdma_vers field contains a recognized value, but an XDR \
     parsing error occurs, the Responder MUST reply with an RDMA_ERROR procedure and set the \
     rdma_err value to ERR_CHUNK. … When a Responder receives a valid RPC-over-RDMA header but the \
     Responder's ULP implementation cannot parse the RPC arguments in the RPC Call message, the \
     Responder SHOULD return an RPC Reply message with status GARBAGE_ARGS, using an RDMA_MSG \
     procedure.";
const NOT_ELIGIBLE: &str = "A Requester reduces a non-DDP-eligible argument data item. The Responder \
                            MUST NOT process this RPC Call message and MUST report the violation as \
                            described in Section 4.5.2.";
pub const UNKNOWN: &str =
    "RFC 5531, section 9: PROG_UNAVAIL = 1, /* remote hasn't exported program */";
const TOO_SMALL: &str =
    "RFC 8166, sections 4.5.3 and 4.5.4: If the Requester-provided Reply chunk is too small to \
     accommodate a large RPC Reply message, a Remote Access Error occurs. A Responder might detect \
     this problem before attempting to write past the end of the Reply chunk. … If a Responder is \
     unable to construct and transmit an RPC Reply or RPC-over-RDMA error message, the Responder \
     MUST close the connection to signal to the Requester that a reply was lost. … RFC 8267, \
     section 3.1: If an NFS server finds that the NFS client provided inadequate receive resources \
     to return the whole Reply, it returns an RPC-level error or a transport error, such as \
     ERR_CHUNK.";
/// For a server of another program, the last sentence holds.
macro_rules! limits {
    ($copy:literal) => {
        concat!(
            "An NFS version 4 server SHOULD return one of the following responses to a client \
             that has sent an RPC transaction via RPC-over-RDMA version 1, which cannot be \
             processed due to chunk list complexity limits on the server",
            $copy,
            " … RFC 8166, section 4.5: If other errors are detected in the RPC-over-RDMA header \
             of an RPC Call message, a Responder MUST send an RDMA_ERROR message back to the \
             Requester."
        )
    };
}
const LIMITS: &str = limits!("");
const EMPTY_SEGMENTS: &str =
    "RFC 8166, section 3.4.3: An \"empty segment\" is an RDMA segment with the value zero (0) in \
     its length field. … RFC 8267, section 6.4.2: The RPC-over-RDMA version 1 protocol does not \
     place any limit on the number of chunks or segments that may appear in Read or Write lists.";
const WRITE_LIMITS: &str = limits!(
    " … RFC 8166, section 3.4.6: The Responder MUST copy the segment count and all segments from \
     the Requester-provided Write chunk into the RPC Reply message's Transport header."
);
const REPLY_LIMITS: &str = limits!(
    " … RFC 8166, section 4.3.3: When a Requester provides a Reply chunk in an RPC Call message, \
     the Responder MUST copy that chunk into the Transport header of the RPC Reply message."
);
pub const SEGMENTS: &str = "NFS version 4 servers MUST accept and process such requests. … Any \
                            chunk can contain up to sixteen RDMA segments.";
pub const PADDED: &str =
    "As these chunks contain a Payload stream, such chunks MUST include appropriate XDR roundup \
     padding to maintain proper XDR alignment of their contents.";
const UNREACHABLE: &str =
    "RFC 8166, sections 8.1 and 4.5.4: The use of an RPC-over-RDMA transport protocol MUST NOT \
     introduce vulnerabilities to system memory contents nor to memory owned by user processes. … \
     If a Responder is unable to construct and transmit an RPC Reply or RPC-over-RDMA error \
     message, the Responder MUST close the connection to signal to the Requester that a reply was \
     lost.";

/// The lengths of the segments of a chunk.
fn lengths(chunk: &[Segment]) -> Vec<usize> {
    chunk
        .iter()
        .map(|segment| segment.length as usize)
        .collect()
}

/// A returned chunk has the segments that were offered, with any lengths up to theirs.
pub(super) fn same_segments(offered: &[Segment], returned: &[Segment]) -> Result<(), Problem> {
    if offered.len() != returned.len() {
        return violation(format!(
            "{} segments were offered, {} come back",
            offered.len(),
            returned.len()
        ));
    }
    for (offered, returned) in offered.iter().zip(returned) {
        if (offered.handle, offered.offset) != (returned.handle, returned.offset) {
            return violation("a segment comes back with another handle or offset");
        }
        if returned.length > offered.length {
            return violation("a segment comes back longer than it was offered");
        }
    }
    Ok(())
}

/// The chunks of NULL come back: Write chunks unused, a Reply chunk with the octets in it.
fn come_back(offered: &Header, answer: &Answer) -> Result<(), Problem> {
    let returned = &answer.header.writes;
    if returned.len() != offered.writes.len() {
        return violation(format!(
            "{} Write chunks were offered, {} come back",
            offered.writes.len(),
            returned.len()
        ));
    }
    for (offered, returned) in offered.writes.iter().zip(returned) {
        same_segments(offered, returned)?;
        if lengths(returned).iter().any(|&length| length != 0) {
            return violation("a Write chunk of NULL comes back with octets in it");
        }
    }
    let (offered, returned) = match (&offered.reply, &answer.header.reply) {
        (Some(offered), Some(returned)) => (offered, returned),
        (Some(_), None) => return violation("the Reply chunk does not come back"),
        (None, Some(_)) => return violation("a Reply chunk comes back that was not offered"),
        (None, None) => return Ok(()),
    };
    same_segments(offered, returned)?;
    let used: usize = lengths(returned).iter().sum();
    let expected = if answer.header.procedure == wire::NOMSG {
        24
    } else {
        0
    };
    if used != expected {
        return violation(format!(
            "the Reply chunk comes back with {used} octets, not with {expected}"
        ));
    }
    Ok(())
}

/// Calls NULL with Write chunks of so many segments each. Returns the header of the call.
pub fn null_with_writes(link: &mut Link, shape: &[usize]) -> Result<Header, Problem> {
    let xid = link.xid();
    let mut header = Header::msg(xid);
    for &count in shape {
        let mut chunk = Vec::new();
        for _ in 0..count {
            chunk.push(link.writable(64)?);
        }
        header.writes.push(chunk);
    }
    let null = link.null_call(xid);
    link.send(&header.with(&null))?;
    Ok(header)
}

/// NULL of this program has no results that could be eligible, so that the server need not take
/// Write chunks (RFC 8166, section 4.3.2).
fn may_refuse_writes(link: &Link) -> bool {
    link.server.service == Service::Null && link.server.null.program != NFS.program
}

/// NULL with Write chunks of these segments, all of which come back unused. A server of NFS need
/// take only one chunk; but if it takes as many, it takes them with an empty one among them.
fn unused_writes(target: &mut Target<'_>, shape: &[usize]) -> Verdict {
    let mut link = target.plain()?;
    let header = null_with_writes(&mut link, shape)?;
    let one = shape.len() > 1 && !matches!(link.server.service, Service::Echo(_));
    let message = if one || may_refuse_writes(&link) {
        link.receive_unless_refused(header.xid)?
    } else {
        Some(link.receive_of(header.xid)?)
    };
    let Some(message) = message else {
        if shape.contains(&0) {
            let full: Vec<_> = shape.iter().map(|&count| count.max(1)).collect();
            // The server may have ended the connection.
            let mut link = target.plain()?;
            let header = null_with_writes(&mut link, &full)?;
            if let Some(message) = link.receive_unless_refused(header.xid)? {
                link.decode(header.xid, &message)?.results()?;
                return violation("as many Write chunks are taken if none of them is empty");
            }
        }
        return unimplemented(match shape {
            [_] => "the server does not take the Write chunk",
            _ => "the server does not take as many Write chunks",
        });
    };
    let answer = link.decode(header.xid, &message)?;
    answer.results()?;
    come_back(&header, &answer)?;
    link.still_answers("Write chunks")?;
    Ok(Passed)
}

/// The answer to a call with these segments. A server need not take an empty one.
fn answer_to(
    link: &mut Link,
    header: &Header,
    octets: &[u8],
    shape: &[usize],
) -> Result<Answer, Problem> {
    link.send(octets)?;
    let message = link.receive_of(header.xid)?;
    if shape.contains(&0) && link.is_declined(header.xid, &message) {
        link.answers_or_ends("an empty segment")?;
        return unimplemented("the server takes no empty segments");
    }
    link.decode(header.xid, &message)
}

/// NULL with a Write chunk of segments of these lengths, which comes back unused.
fn write_chunk_of_null(target: &mut Target<'_>, shape: &[usize]) -> Verdict {
    target.on_plain(|link| {
        let xid = link.xid();
        let mut header = Header::msg(xid);
        let mut chunk = Vec::new();
        for &length in shape {
            chunk.push(link.writable(length)?);
        }
        header.writes = vec![chunk];
        let octets = header.with(&link.null_call(xid));
        let answer = answer_to(link, &header, &octets, shape)?;
        answer.results()?;
        come_back(&header, &answer)?;
        Ok(Passed)
    })
}

/// NULL with a Reply chunk of segments of these lengths.
fn reply_chunk_of_null(target: &mut Target<'_>, shape: &[usize]) -> Verdict {
    target.on_plain(|link| {
        let xid = link.xid();
        let mut header = Header::msg(xid);
        let mut chunk = Vec::new();
        for &length in shape {
            chunk.push(link.writable(length)?);
        }
        header.reply = Some(chunk);
        let octets = header.with(&link.null_call(xid));
        let answer = answer_to(link, &header, &octets, shape)?;
        answer.results()?;
        come_back(&header, &answer)?;
        Ok(Passed)
    })
}

/// A Long Reply of 1008 octets, by segments of these lengths. If they are too short, one more
/// segment has the rest.
fn long_reply(target: &mut Target<'_>, shape: &[usize]) -> Verdict {
    let mut link = target.small_replies(false)?;
    let xid = link.xid();
    let rpc = target.server.call_for(xid, LONG_RESULTS)?;
    let length = 24 + LONG_RESULTS;
    let mut chunk = Vec::new();
    let mut room = 0;
    for &part in shape {
        chunk.push(link.writable(part)?);
        room += part;
    }
    if room < length {
        chunk.push(link.writable(length - room)?);
    }
    let mut header = Header::msg(xid);
    header.reply = Some(chunk.clone());
    let octets = link.form(&header, &rpc)?;
    let answer = answer_to(&mut link, &header, &octets, shape)?;
    let found = answer.results()?.len();
    // The server may take fewer operations of NFS: then the reply is short.
    if found < LONG_RESULTS {
        return inconclusive(format!(
            "the results have {found} octets, not {LONG_RESULTS}"
        ));
    }
    if answer.header.procedure != wire::NOMSG {
        return violation(format!("the reply of {} octets is inline", answer.length));
    }
    if found > LONG_RESULTS {
        return violation(format!(
            "the segments come back with {} octets, the reply has {length}",
            found + 24
        ));
    }
    let returned = answer.header.reply.clone().unwrap_or_default();
    same_segments(&chunk, &returned)?;
    // Filled in order: a segment is full before the next one is used.
    let mut left = length;
    for (offered, returned) in chunk.iter().zip(&returned) {
        let expected = left.min(offered.length as usize);
        if returned.length as usize != expected {
            return violation(format!(
                "a segment comes back with {} octets, not with {expected}",
                returned.length
            ));
        }
        left -= expected;
    }
    link.still_answers("a Long Reply")?;
    Ok(Passed)
}

/// The message tells that the results of a call cannot be returned, which have `length` octets: by
/// ERR_CHUNK, or by an error of RPC or of NFS (RFC 8267, section 3.1).
pub fn no_reply(
    target: &mut Target<'_>,
    link: &mut Link,
    message: &Message,
    xid: u32,
    length: usize,
) -> Result<(), Problem> {
    let Some(answer) = link.processed(xid, message)? else {
        return Ok(());
    };
    let results = match answer.status {
        Status::Success(results) if results.len() < length => results,
        Status::Success(results) => {
            return violation(format!(
                "the call succeeds, with {} octets of results",
                results.len()
            ))
        }
        other => return violation(format!("the call gets {other:?}")),
    };
    let of_nfs = matches!(target.server.service, Service::Nfs4(_));
    let fails = nfs::Results::parse(&results).is_ok_and(|found| found.status != 0);
    // Such a call may fail for a reason of its own: then it also fails with room for its reply.
    if of_nfs && fails && succeeds(target, length)? {
        return Ok(());
    }
    inconclusive(format!(
        "the results have {} octets, not {length}",
        results.len()
    ))
}

/// Whether a call has results of this length, with room for the reply.
fn succeeds(target: &mut Target<'_>, length: usize) -> Result<bool, Problem> {
    let mut link = target.small_replies(false)?;
    let xid = link.xid();
    let rpc = target.server.call_for(xid, length)?;
    let mut header = Header::msg(xid);
    header.reply = Some(vec![link.writable(24 + length)?]);
    Ok(link.call(&header, &rpc)?.results()?.len() == length)
}

/// A reply that does not fit into the Reply chunk is replaced by an error, or ends the connection.
fn reply_chunk_too_small(target: &mut Target<'_>, missing: usize) -> Verdict {
    let mut link = target.small_replies(false)?;
    let xid = link.xid();
    let rpc = target.server.call_for(xid, LONG_RESULTS)?;
    let segment = link.writable(24 + LONG_RESULTS)?;
    let offered = Segment {
        length: segment.length - missing as u32,
        ..segment
    };
    let mut header = Header::msg(xid);
    header.reply = Some(vec![offered]);
    link.ask(&header, &rpc)?;
    let message = link.receive_or_end(xid)?;
    let octets = link.gather(&[segment])?;
    if octets[offered.length as usize..]
        .iter()
        .any(|&octet| octet != 0xee)
    {
        return violation("octets behind the Reply chunk were written");
    }
    if let Some(message) = &message {
        no_reply(target, &mut link, message, xid, LONG_RESULTS)?;
    }
    target.goes_on(&mut link, message.is_some(), "a reply that did not fit")
}

/// NULL as a Long Call, in segments of these lengths; the last one takes the rest.
fn long_null(
    target: &mut Target<'_>,
    shape: &[usize],
    more: impl FnOnce(&mut Link, &mut Header) -> Result<(), Problem>,
) -> Verdict {
    target.on_plain(|link| {
        let xid = link.xid();
        let null = link.null_call(xid);
        let mut header = Header::nomsg(xid);
        let mut rest = &null[..];
        for &length in shape.iter().chain(&[usize::MAX]) {
            let (part, behind) = rest.split_at(length.min(rest.len()));
            rest = behind;
            let segment = link.readable(part)?;
            header.reads.push(ReadSegment {
                position: 0,
                segment,
            });
        }
        more(link, &mut header)?;
        link.send(&header.octets())?;
        let message = if !header.writes.is_empty() && may_refuse_writes(link) {
            match link.receive_unless_refused(xid)? {
                Some(message) => message,
                None => return unimplemented("the server takes no Write chunks"),
            }
        } else {
            link.receive_of(xid)?
        };
        let answer = link.decode(xid, &message)?;
        answer.results()?;
        come_back(&header, &answer)?;
        link.still_answers("a Long Call")?;
        Ok(Passed)
    })
}

/// A call of 3000 octets by a Position Zero Read chunk, and a reply by a Reply chunk if it is long.
fn long_call(target: &mut Target<'_>, parts: usize) -> Verdict {
    let mut link = target.plain()?;
    let (rpc, results) = long_call_in(&mut link, parts)?;
    match target.server.service {
        Service::Echo(_) if results != rpc[40..] => {
            return violation("the octets that come back are others");
        }
        Service::Nfs4(_) => {
            let whole = match parts {
                1 => results.clone(),
                _ => long_call_in(&mut link, 1)?.1,
            };
            // A server may take fewer operations.
            let status = nfs::Results::parse(&whole).or_else(violation)?.status;
            if status != 0 {
                return inconclusive(format!("in one segment, the COMPOUND ends with {status}"));
            }
            if results != whole {
                return violation("the results are others than those of one segment");
            }
        }
        _ => (),
    }
    link.still_answers("a Long Call")?;
    Ok(Passed)
}

/// Makes that call in so many segments. Returns it and its results.
fn long_call_in(link: &mut Link, parts: usize) -> Result<(Vec<u8>, Vec<u8>), Problem> {
    let xid = link.xid();
    let rpc = link.server.call_of(xid, 3000)?;
    let mut header = Header::nomsg(xid);
    for part in rpc.chunks(3000_usize.div_ceil(parts)) {
        let segment = link.readable(part)?;
        header.reads.push(ReadSegment {
            position: 0,
            segment,
        });
    }
    header.reply = Some(vec![link.writable(4096)?]);
    link.send(&header.octets())?;
    let message = link.receive_of(xid)?;
    let answer = link.decode(xid, &message)?;
    let results = answer.results()?.to_vec();
    Ok((rpc, results))
}

/// RDMA_NOMSG with this content of the Position Zero Read chunk gets ERR_CHUNK, or a status that
/// fits.
fn long_call_of(
    target: &mut Target<'_>,
    content: impl FnOnce(Vec<u8>) -> Vec<u8>,
    fits: impl FnOnce(&Status) -> bool,
) -> Verdict {
    target.on_plain(|link| {
        let xid = link.xid();
        let null = link.null_call(xid);
        let segment = link.readable(&content(null))?;
        let mut header = Header::nomsg(xid);
        header.reads.push(ReadSegment {
            position: 0,
            segment,
        });
        link.refuses_or(xid, &header.octets(), fits)
    })
}

/// A Long Call that holds an RPC reply: a malformed call, or a reply to no call.
fn long_call_of_reply(target: &mut Target<'_>) -> Verdict {
    target.on_plain_or_end("a Long Call that holds a reply", |link| {
        let xid = link.xid();
        let segment = link.readable(&words(&[xid, wire::REPLY, 0, 0, 0, 0]))?;
        let mut header = Header::nomsg(xid);
        header.reads.push(ReadSegment {
            position: 0,
            segment,
        });
        link.refuses_or_discards(xid, &header.octets())
    })
}

/// A Long Call in two Position Zero segments, with another chunk between them.
fn chunk_between(target: &mut Target<'_>) -> Verdict {
    target.on_plain(|link| {
        let xid = link.xid();
        let null = link.null_call(xid);
        let mut header = Header::nomsg(xid);
        for (position, part) in [(0, &null[..20]), (40, &[0; 4]), (0, &null[20..])] {
            let segment = link.readable(part)?;
            header.reads.push(ReadSegment { position, segment });
        }
        link.refuses_or_garbage(xid, &header.octets())
    })
}

/// A message with Read segments that cannot be read. The server may end this connection.
fn unreadable(
    target: &mut Target<'_>,
    segments: impl FnOnce(&mut Link) -> Result<Vec<Segment>, Problem>,
) -> Verdict {
    let mut link = target.plain()?;
    let xid = link.xid();
    let mut header = Header::nomsg(xid);
    header.reads = segments(&mut link)?
        .into_iter()
        .map(|segment| ReadSegment {
            position: 0,
            segment,
        })
        .collect();
    link.send(&header.octets())?;
    if let Some(message) = link.receive_or_end(xid)? {
        no_reply(target, &mut link, &message, xid, 0)?;
    }
    target.on_plain(|link| {
        link.null()?;
        Ok(Passed)
    })
}

/// Calls with a Reply chunk that cannot be written. Returns whether the server answers with an error,
/// or false if it ends the connection.
fn declines(
    target: &mut Target<'_>,
    link: &mut Link,
    xid: u32,
    chunk: &[Segment],
) -> Result<bool, Problem> {
    let rpc = target.server.call_for(xid, LONG_RESULTS)?;
    let mut header = Header::msg(xid);
    header.reply = Some(chunk.to_vec());
    let octets = link.form(&header, &rpc)?;
    link.send(&octets)?;
    let Some(message) = link.receive_or_end(xid)? else {
        return Ok(false);
    };
    no_reply(target, link, &message, xid, LONG_RESULTS)?;
    Ok(true)
}

/// Chunks that cannot be written. The server may end this connection.
fn unwritable(
    target: &mut Target<'_>,
    chunk: impl FnOnce(&mut Link) -> Result<Vec<Segment>, Problem>,
) -> Verdict {
    let mut link = target.small_replies(false)?;
    let chunk = chunk(&mut link)?;
    let xid = link.xid();
    declines(target, &mut link, xid, &chunk)?;
    target.on_plain(|link| {
        link.null()?;
        Ok(Passed)
    })
}

/// Makes the same call again on a new connection if the first one ends.
fn unwritable_again(target: &mut Target<'_>) -> Verdict {
    let chunk = [Segment {
        length: 4096,
        ..BOGUS
    }];
    let mut link = target.small_replies(false)?;
    let xid = link.xid();
    if declines(target, &mut link, xid, &chunk)? {
        return Ok(Passed);
    }
    let mut link = target.small_replies(false)?;
    if !declines(target, &mut link, xid, &chunk)? {
        return violation("the second connection ends, too");
    }
    Ok(Passed)
}

fn read_chunk_of_null(target: &mut Target<'_>) -> Verdict {
    target.on_plain(|link| {
        let xid = link.xid();
        let null = link.null_call(xid);
        let segment = link.readable(&[7; 16])?;
        let mut header = Header::msg(xid);
        header.reads.push(ReadSegment {
            position: null.len() as u32,
            segment,
        });
        link.refuses_or_garbage(xid, &header.with(&null))
    })
}

/// NULL of an unknown program with a Read chunk behind it.
pub fn read_chunk_of_unknown(link: &mut Link) -> Result<(), Problem> {
    let xid = link.xid();
    let unknown = Procedure {
        program: 0x3fff_ffff,
        ..link.server.null
    };
    let rpc = wire::call(xid, unknown, &[]);
    let segment = link.readable(&[7; 4])?;
    let position = rpc.len() as u32;
    let mut header = link.header(xid);
    header.reads.push(ReadSegment { position, segment });
    link.ask(&header, &rpc)?;
    let message = link.receive_of(xid)?;
    // No argument of an unknown program is known to be eligible.
    if link.is_declined(xid, &message) {
        return link.answers_or_ends("an error");
    }
    let status = link.decode(xid, &message)?.status;
    if status != Status::ProgUnavail {
        return violation(format!("the call gets {status:?}"));
    }
    link.still_answers("an error")
}

fn message_and_position_zero(target: &mut Target<'_>) -> Verdict {
    target.on_plain(|link| {
        let xid = link.xid();
        let null = link.null_call(xid);
        let segment = link.readable(&null)?;
        let mut header = Header::msg(xid);
        header.reads.push(ReadSegment {
            position: 0,
            segment,
        });
        link.refuses_or_garbage(xid, &header.with(&null))
    })
}

/// With the Reply chunk in its header the reply does not fit inline, without it it would.
fn header_makes_it_long(target: &mut Target<'_>) -> Verdict {
    let mut link = target.small_replies(false)?;
    let xid = link.xid();
    let rpc = target.server.call_for(xid, DEFAULT - 52)?;
    let chunk = vec![link.writable(2048)?];
    let mut header = Header::msg(xid);
    header.reply = Some(chunk.clone());
    let answer = link.call(&header, &rpc)?;
    let found = answer.results()?.len();
    fits(answer.length, DEFAULT)?;
    if found != DEFAULT - 52 {
        return inconclusive(format!("the results have {found} octets"));
    }
    let Some(returned) = &answer.header.reply else {
        return violation("the Reply chunk does not come back");
    };
    same_segments(&chunk, returned)?;
    Ok(Passed)
}

fn padded(target: &mut Target<'_>) -> Verdict {
    let mut link = target.plain()?;
    let crate::peer::Service::Echo(procedure) = target.server.service else {
        return crate::case::skip("needs the echo program");
    };
    // The server may send the short reply inline, and has to use the Reply chunk for the long one.
    for length in [5, 1201] {
        let xid = link.xid();
        let results = wire::Writer::new().opaque(&vec![b'x'; length]).0;
        let rpc = wire::call(xid, procedure, &results);
        let chunk = vec![link.writable(24 + results.len())?];
        let mut header = Header::msg(xid);
        header.reply = Some(chunk.clone());
        let answer = link.call(&header, &rpc)?;
        if answer.results()? != results {
            return violation("the results are not padded with zeros");
        }
        let returned = answer.header.reply.clone().unwrap_or_default();
        same_segments(&chunk, &returned)?;
        let used: usize = lengths(&returned).iter().sum();
        let long = answer.header.procedure == wire::NOMSG;
        let expected = if long { 24 + results.len() } else { 0 };
        if used != expected {
            return violation(format!(
                "the Reply chunk comes back with {used} octets, not with {expected}"
            ));
        }
    }
    Ok(Passed)
}

fn long_write_and_reply(target: &mut Target<'_>) -> Verdict {
    let mut link = target.small_replies(false)?;
    let xid = link.xid();
    let rpc = target.server.call_for(xid, LONG_RESULTS)?;
    // A server of NFS need take only one Write chunk.
    let writes = vec![vec![link.writable(64)?, link.writable(64)?]];
    let reply = vec![link.writable(2048)?];
    let mut header = Header::msg(xid);
    header.writes = writes.clone();
    header.reply = Some(reply.clone());
    let answer = link.call(&header, &rpc)?;
    let found = answer.results()?.len();
    fits(answer.length, DEFAULT)?;
    if found != LONG_RESULTS {
        return inconclusive(format!(
            "the results have {found} octets, not {LONG_RESULTS}"
        ));
    }
    if answer.header.procedure != wire::NOMSG {
        return violation("the reply is no RDMA_NOMSG");
    }
    if answer.header.writes.len() != writes.len() {
        return violation("the Write list of the reply has another length");
    }
    for (offered, returned) in writes.iter().zip(&answer.header.writes) {
        same_segments(offered, returned)?;
        if lengths(returned).iter().sum::<usize>() != 0 {
            return violation("an unused Write chunk comes back with octets in it");
        }
    }
    let returned = answer.header.reply.clone().unwrap_or_default();
    same_segments(&reply, &returned)?;
    let used: usize = lengths(&returned).iter().sum();
    if used != 24 + LONG_RESULTS {
        return violation(format!(
            "the Reply chunk comes back with {used} octets, not with {}",
            24 + LONG_RESULTS
        ));
    }
    Ok(Passed)
}

/// NULL with so many Write chunks of one segment: it succeeds, or is declined (RFC 8267, section
/// 6.4.2).
fn many_chunks(target: &mut Target<'_>, count: usize) -> Verdict {
    target.on_plain(|link| {
        let xid = link.xid();
        let segment = link.writable(64)?;
        let mut header = Header::msg(xid);
        header.writes = vec![vec![segment]; count];
        let null = link.null_call(xid);
        link.send(&header.with(&null))?;
        let message = link.receive_of(xid)?;
        if link.is_declined(xid, &message) {
            link.answers_or_ends("many chunks")?;
            return Ok(Passed);
        }
        let answer = link.decode(xid, &message)?;
        answer.results()?;
        come_back(&header, &answer)?;
        link.still_answers("many chunks")?;
        Ok(Passed)
    })
}

fn many_segments(target: &mut Target<'_>, count: usize) -> Verdict {
    target.on_plain(|link| {
        let xid = link.xid();
        let null = link.null_call(xid);
        let whole = link.readable(&null)?;
        let mut header = Header::nomsg(xid);
        // The call, and then empty segments.
        for number in 0..count {
            let mut segment = whole;
            if number > 0 {
                segment.length = 0;
            }
            header.reads.push(ReadSegment {
                position: 0,
                segment,
            });
        }
        link.send(&header.octets())?;
        let message = link.receive_of(xid)?;
        if link.is_declined(xid, &message) {
            link.answers_or_ends("many segments")?;
            return Ok(Passed);
        }
        link.decode(xid, &message)?.results()?;
        link.still_answers("many segments")?;
        Ok(Passed)
    })
}

/// Only a server of NFS 4 has to take this.
fn of_nfs4(target: &mut Target<'_>, check: impl FnOnce(&mut Target<'_>) -> Verdict) -> Verdict {
    match target.server.service {
        Service::Nfs4(_) => check(target),
        _ => target.server.lacks("only for NFS 4"),
    }
}

/// Adds a chunk of so many segments to the header of a call of NULL.
type WithSegments = fn(&mut Link, &mut Header, usize) -> Result<(), Problem>;

/// Finds the largest number of segments that the server takes, and sends one more: that is
/// declined. No more than `limit` are tried, and no more than fit into a header.
fn most_segments(target: &mut Target<'_>, limit: usize, add: WithSegments) -> Verdict {
    let private = Private::new(262_144, 8192, false).octets();
    let mut link = target.connect(&private)?;
    // The chunks come back with the reply. A Read segment has 24 octets; the rest of the header and
    // NULL have less than 128.
    let threshold = link.to_server.min(link.to_client);
    let limit = limit.min((threshold - 128) / 24);
    let (mut most, mut declined) = (0, limit + 1);
    while most + 1 < declined {
        let count = if declined > limit {
            (2 * most).clamp(1, limit)
        } else {
            (most + declined) / 2
        };
        match takes(&mut link, count, add) {
            Ok(true) => most = count,
            Ok(false) => {
                declined = count;
                if link.connection.closed().is_some() {
                    link = target.connect(&private)?;
                }
            }
            Err(Problem::Violation(why)) => {
                return violation(format!("a chunk of {count} segments: {why}"))
            }
            Err(other) => return Err(other),
        }
    }
    if most == 0 {
        return violation("a chunk of one segment is declined");
    }
    Ok(Passed)
}

/// Whether the server takes a call with so many segments. If not, it may end the connection.
fn takes(link: &mut Link, count: usize, add: WithSegments) -> Result<bool, Problem> {
    let mut header = Header::msg(link.xid());
    add(link, &mut header, count)?;
    let octets = match header.procedure {
        wire::NOMSG => header.octets(),
        _ => header.with(&link.null_call(header.xid)),
    };
    link.send(&octets)?;
    let message = link.receive_of(header.xid)?;
    if link.is_declined(header.xid, &message) {
        link.answers_or_ends("that")?;
        return Ok(false);
    }
    let answer = link.decode(header.xid, &message)?;
    answer.results()?;
    come_back(&header, &answer)?;
    link.still_answers("that")?;
    Ok(true)
}

fn write_segments(link: &mut Link, header: &mut Header, count: usize) -> Result<(), Problem> {
    header.writes = vec![vec![link.writable(64)?; count]];
    Ok(())
}

fn reply_segments(link: &mut Link, header: &mut Header, count: usize) -> Result<(), Problem> {
    header.reply = Some(vec![link.writable(64)?; count]);
    Ok(())
}

/// How many segments of one octet NULL has.
const NULL_SEGMENTS: usize = 40;

/// A Long Call of NULL in segments of one octet; the last one has the rest.
fn read_segments(link: &mut Link, header: &mut Header, count: usize) -> Result<(), Problem> {
    let null = link.null_call(header.xid);
    let whole = link.readable(&null)?;
    header.procedure = wire::NOMSG;
    header.reads = (0..count)
        .map(|number| {
            let last = number + 1 == count;
            let segment = Segment {
                length: if last {
                    (null.len() - number) as u32
                } else {
                    1
                },
                offset: whole.offset + number as u64,
                ..whole
            };
            ReadSegment {
                position: 0,
                segment,
            }
        })
        .collect();
    Ok(())
}

const BOGUS: Segment = Segment {
    handle: 0x1234_5600,
    length: 64,
    offset: 0x1000,
};

/// Sends octets by which the connection may end. Others go on.
fn only_this_ends(
    target: &mut Target<'_>,
    offer: Offer,
    octets: fn(u32, &[u8]) -> Vec<u8>,
) -> Verdict {
    let mut link = target.connect_offer(&offer)?;
    let xid = link.xid();
    let null = link.null_call(xid);
    let _ = link.connection.send(&octets(xid, &null));
    if let Some(why) = link.connection.unregistered() {
        return inconclusive(why);
    }
    link.connection.wait_closed(Duration::from_secs(2));
    drop(link);
    target.on_plain(|other| {
        other.null()?;
        // The server may notice the end of the first connection only now.
        other.quiet()?;
        other.null()?;
        Ok(Passed)
    })
}

pub const CASES: &[Case] = &[
    case!("rfc8166/4.3.2.3/1", "an empty Write chunk comes back empty", Must, COPY,
        sends "NULL with a Write chunk of no segments",
        accepts "SUCCESS with a Write list 1 0 0; a server of which only NULL of another program \
                 than NFS is known need take no Write chunks",
        fault "loses-empty-chunks", |target| unused_writes(target, &[0])),
    case!("rfc8166/4.3.2.2/1", "an unused Write chunk of one segment", Must, UNUSED,
        sends "NULL with a Write chunk of one segment",
        accepts "the same chunk, length 0; a server of which only NULL of another program than NFS \
                 is known need take no Write chunks",
        fault "unused-keep-length", |target| unused_writes(target, &[1])),
    case!("rfc8166/4.3.2.2/2", "an unused Write chunk of three segments", Must, UNUSED,
        sends "NULL with a Write chunk of three segments",
        accepts "the same chunk, lengths 0; a server of which only NULL of another program than \
                 NFS is known need take no Write chunks",
        fault "unused-keep-length", |target| unused_writes(target, &[3])),
    case!("rfc8166/4.3.2.2/3", "two Write chunks of one and two segments, in order", Must, COPY,
        sends "NULL with Write chunks of one and two segments",
        accepts "the same chunks in order, lengths 0; a server of NFS need take only one chunk: an \
                 error or the end of this connection is no failure",
        fault "write-list-reversed", |target| unused_writes(target, &[1, 2])),
    case!("rfc8166/4.3.2.2/4", "three Write chunks, in order", Must, COPY,
        sends "NULL with Write chunks of two, one and two segments",
        accepts "the same chunks in order, lengths 0; a server of NFS need take only one chunk: an \
                 error or the end of this connection is no failure",
        fault "one-write-chunk", |target| unused_writes(target, &[2, 1, 2])),
    case!("rfc8166/4.3.2.3/2", "an empty Write chunk between two others", Must, COPY,
        sends "NULL with Write chunks of one, no and one segment",
        accepts "the same chunks in order, lengths 0; a server of NFS need take only one chunk: an \
                 error or the end of this connection is no failure",
        fault "loses-empty-chunks", |target| unused_writes(target, &[1, 0, 1])),
    case!("rfc8166/4.3.2.3/4", "an empty Write chunk in front of another one", Must, COPY,
        sends "NULL with Write chunks of no and one segment",
        accepts "the same chunks in order, lengths 0; a server of NFS need take only one chunk: an \
                 error or the end of this connection is no failure",
        fault "ends-at-empty-chunk", needs [Destructive], |target| unused_writes(target, &[0, 1])),
    case!("rfc8166/4.3.2.2/6", "an empty segment of an unused Write chunk comes back", Must, COPY,
        sends "NULL with a Write chunk of 64, 0 and 64 octets",
        accepts "the same segments, lengths 0; a server need not take empty segments: ERR_CHUNK or \
                 GARBAGE_ARGS is no failure",
        fault "drops-empty-segments", |target| write_chunk_of_null(target, &[64, 0, 64])),
    case!("rfc8166/4.3.3/1", "the Reply chunk of a short reply comes back", Must, REPLY_COPY,
        sends "NULL with a Reply chunk", accepts "it comes back: lengths 0 inline, 24 with RDMA_NOMSG",
        fault "loses-reply-chunk", |target| reply_chunk_of_null(target, &[256])),
    case!("rfc8166/4.3.3/2", "a Reply chunk without segments comes back", Must, REPLY_COPY,
        sends "NULL with a Reply chunk of no segments", accepts "RDMA_MSG with a Reply chunk 1 0",
        fault "loses-empty-chunks", |target| reply_chunk_of_null(target, &[])),
    case!("rfc8166/4.3.3/3", "the Reply chunk of three segments of a short reply comes back", Must, ACTUAL,
        sends "NULL with a Reply chunk of 12, 12 and 100 octets", accepts "the same segments with the octets used",
        fault "loses-reply-chunk", |target| reply_chunk_of_null(target, &[12, 12, 100])),
    case!("rfc8166/4.3.3/5", "an empty segment of the Reply chunk of a short reply comes back",
        Must, REPLY_COPY,
        sends "NULL with a Reply chunk of 12, 0 and 100 octets",
        accepts "the same segments with the octets used; a server need not take empty segments: \
                 ERR_CHUNK or GARBAGE_ARGS is no failure",
        fault "drops-empty-segments", |target| reply_chunk_of_null(target, &[12, 0, 100])),
    case!("rfc8166/3.5.3/1", "a Long Reply in a Reply chunk of just its length", Must, USE,
        sends "a reply of 1008 octets, a Reply chunk of as many", accepts "RDMA_NOMSG, the reply, its length",
        fault "ignores-threshold", |target| long_reply(target, &[])),
    case!("rfc8166/3.5.3/2", "a Long Reply in a longer Reply chunk", Must, ACTUAL,
        sends "a reply of 1008 octets, a Reply chunk of 4096", accepts "RDMA_NOMSG, the reply, its length",
        fault "reply-keeps-length", |target| long_reply(target, &[4096])),
    case!("rfc8166/3.5.3/3", "a Long Reply in three segments, filled in order", Must,
        "RFC 8166, section 3.4.6: filling the chunk contiguously and in segment array order",
        sends "a reply of 1008 octets, a Reply chunk of 400, 400 and 2000", accepts "lengths 400, 400, 208",
        fault "fills-backwards", |target| long_reply(target, &[400, 400, 2000])),
    case!("rfc8166/3.5.3/4", "a Long Reply in segments whose lengths are no multiples of four", Must,
        "RFC 8166, section 3.4.6: filling the chunk contiguously and in segment array order",
        sends "a reply of 1008 octets, a Reply chunk of 401, 3 and 2000", accepts "lengths 401, 3, 604",
        fault "fills-backwards", |target| long_reply(target, &[401, 3, 2000])),
    case!("rfc8166/3.5.3/5", "a Long Reply in eight segments", Must, ACTUAL,
        sends "a reply of 1008 octets, a Reply chunk of eight segments", accepts "all filled in order",
        fault "fills-backwards", |target| long_reply(target, &[128; 8])),
    case!("rfc8166/3.5.3/6", "segments that are not needed come back empty", Must, ACTUAL,
        sends "a reply of 1008 octets, a Reply chunk of 2000, 100 and 100", accepts "lengths 1008, 0, 0",
        fault "reply-keeps-length", |target| long_reply(target, &[2000, 100, 100])),
    case!("rfc8166/3.5.3/11", "a Long Reply in the segments around an empty one", Must, ACTUAL,
        sends "a reply of 1008 octets, a Reply chunk of 400, 0 and 2000",
        accepts "lengths 400, 0, 608; a server need not take empty segments: ERR_CHUNK or \
                 GARBAGE_ARGS is no failure",
        fault "drops-empty-segments", |target| long_reply(target, &[400, 0, 2000])),
    case!("rfc8166/4.3.2/1", "Write list and Reply chunk of a Long Reply", Must, UNUSED,
        sends "a reply of 1008 octets, a Write chunk of two segments and a Reply chunk",
        accepts "RDMA_NOMSG, the Write chunk with lengths 0, the reply in the Reply chunk",
        fault "unused-keep-length", long_write_and_reply),
    case!("rfc8166/4.5.3/1", "a Reply chunk four octets too short is not overrun", Must, TOO_SMALL,
        sends "a reply of 1008 octets, a Reply chunk of 1004",
        accepts "ERR_CHUNK, GARBAGE_ARGS, SYSTEM_ERR, an error of NFS or the end of \
                 this connection; nothing written behind the chunk; NULL succeeds",
        fault "overruns-reply-chunk", |target| reply_chunk_too_small(target, 4)),
    case!("rfc8166/4.5.3/2", "a Reply chunk one octet too short is not overrun", Must, TOO_SMALL,
        sends "a reply of 1008 octets, a Reply chunk of 1007",
        accepts "ERR_CHUNK, GARBAGE_ARGS, SYSTEM_ERR, an error of NFS or the end of \
                 this connection; nothing written behind the chunk; NULL succeeds",
        fault "overruns-reply-chunk", |target| reply_chunk_too_small(target, 1)),
    case!("rfc8166/4.5.3/3", "a Reply chunk of 100 octets for 1008 is not overrun", Must, TOO_SMALL,
        sends "a reply of 1008 octets, a Reply chunk of 100",
        accepts "ERR_CHUNK, GARBAGE_ARGS, SYSTEM_ERR, an error of NFS or the end of \
                 this connection; nothing written behind the chunk; NULL succeeds",
        fault "overruns-reply-chunk", |target| reply_chunk_too_small(target, 908)),
    case!("rfc8166/4.3.3/4", "a reply that only the returned Reply chunk makes too long", Must,
        "RFC 8166, section 4.2.4: the total length of the gathered buffers cannot exceed the \
         inline threshold.",
        sends "a reply of 1024 octets without the Reply chunk in its header",
        accepts "no Send of more than 1024 octets",
        fault "forgets-header-length", header_makes_it_long),
    case!("rfc8166/3.5.3/7", "the Payload stream in a chunk is padded", Must, PADDED,
        sends "ECHO of 5 and of 1201 octets with a Reply chunk of the reply's length, Receive Size 1024",
        accepts "results with three octets of zero, and the length of the Reply chunk with them",
        fault "unpadded", padded),
    case!("rfc8166/3.5.3/8", "a short call as a Long Call", Must, LONG_CALL,
        sends "RDMA_NOMSG, NULL in a Position Zero Read chunk", accepts "SUCCESS",
        fault "no-long-calls", |target| long_null(target, &[], |_, _| Ok(()))),
    case!("rfc8166/3.4.5/1", "a Long Call in two segments", Must, CONCATENATE,
        sends "NULL in segments of 12 and 28 octets", accepts "SUCCESS",
        fault "first-segment-only", |target| long_null(target, &[12], |_, _| Ok(()))),
    case!("rfc8166/3.4.5/2", "a Long Call in segments whose lengths are no multiples of four", Must, CONCATENATE,
        sends "NULL in segments of 1, 2, 3 and 34 octets", accepts "SUCCESS",
        fault "first-segment-only", |target| long_null(target, &[1, 2, 3], |_, _| Ok(()))),
    case!("rfc8166/3.4.5/3", "a Long Call with an unused Write chunk", Must, UNUSED,
    sends "NULL as a Long Call, and a Write chunk",
    accepts "SUCCESS with the same chunk, length 0; a server of which only NULL of another program \
             than NFS is known need take no Write chunks",
    fault "unused-keep-length",
    |target| long_null(target, &[], |link, header| {
        header.writes = vec![vec![link.writable(64)?]];
        Ok(())
    })),
    case!("rfc8166/3.4.5/4", "a Long Call with a Reply chunk", Must, REPLY_COPY,
    sends "NULL as a Long Call, and a Reply chunk",
    accepts "SUCCESS; the chunk comes back: length 0 inline, 24 with RDMA_NOMSG",
    fault "loses-reply-chunk",
    |target| long_null(target, &[], |link, header| {
        header.reply = Some(vec![link.writable(64)?]);
        Ok(())
    })),
    case!("rfc8166/3.5.3/9", "a Long Call of 3000 octets", Must,
        "the RDMA transport MUST use RDMA Read or Write operations to convey the Payload stream itself.",
        sends "3000 octets in one segment, and a Reply chunk",
        accepts "SUCCESS; ECHO returns the same; a COMPOUND that fails shows nothing",
        fault "no-long-calls", |target| long_call(target, 1)),
    case!("rfc8166/3.5.3/10", "a Long Call of 3000 octets in seven segments", Must, CONCATENATE,
        sends "3000 octets in seven segments, and a Reply chunk; COMPOUND in one segment, too",
        accepts "SUCCESS; ECHO returns the same, COMPOUND what it returns in one segment",
        fault "first-segment-only", |target| long_call(target, 7)),
    case!("rfc8166/4.3.1/1", "the Read list of a reply is empty", Must, NO_READS,
        sends "NULL as a Long Call", accepts "a reply without a Read list",
        fault "returns-reads", |target| long_null(target, &[], |_, _| Ok(()))),
    case!("rfc8166/4.5.2/20", "a Long Call whose XID is another one", Must, OTHER_XID,
    sends "RDMA_NOMSG with XID X, NULL with XID X ^ 1 in its chunk",
    accepts "ERR_CHUNK, or SUCCESS with XID X in the header and in the reply; NULL succeeds",
    fault "no-xid-check",
    |target| long_call_of(target, |mut null| {
        null[3] ^= 1;
        null
    }, by_header)),
    case!("rfc8166/4.5.2/21", "a Long Call of three octets", Should, UNPARSED,
        sends "RDMA_NOMSG with a Read chunk of 3 octets",
        accepts "ERR_CHUNK, GARBAGE_ARGS or AUTH_ERROR; NULL succeeds",
        fault "drops-malformed", needs [Destructive],
        |target| long_call_of(target, |null| null[..3].to_vec(), unparsed)),
    case!("rfc8166/4.5.2/24", "a Long Call of no octets", Should, UNPARSED,
        sends "RDMA_NOMSG with a Read chunk of 0 octets",
        accepts "ERR_CHUNK, GARBAGE_ARGS or AUTH_ERROR; NULL succeeds",
        fault "drops-malformed", needs [Destructive],
        |target| long_call_of(target, |_| Vec::new(), unparsed)),
    case!("rfc8167/5.1/1", "a Long Call that holds a reply is refused or discarded", Must, MATCH,
        sends "RDMA_NOMSG with an RPC reply, SUCCESS, in its Read chunk",
        accepts "ERR_CHUNK or nothing, or the end of this connection; NULL succeeds",
        fault "any-message-type", needs [Destructive], long_call_of_reply),
    case!("rfc8166/6.1/2", "a Read chunk within a Long Call without eligible arguments", Must, NOT_ELIGIBLE,
        sends "NULL as a Long Call in segments of Positions 0, 40 and 0",
        accepts "ERR_CHUNK or GARBAGE_ARGS; NULL succeeds",
        fault "drops-malformed", needs [Destructive], chunk_between),
    case!("rfc8166/4.5.2/22", "RDMA_MSG with a message and a Position Zero segment", Should,
        INVALID_OR_UNPARSED,
        sends "NULL inline, and a Read segment at Position 0",
        accepts "ERR_CHUNK or GARBAGE_ARGS; NULL succeeds",
        fault "ignores-reads", needs [Destructive], message_and_position_zero),
    case!("rfc8166/6.1/1", "a Read chunk of a call without eligible arguments", Must, NOT_ELIGIBLE,
        sends "NULL with a Read chunk behind its last octet",
        accepts "ERR_CHUNK or GARBAGE_ARGS; NULL succeeds",
        fault "ignores-reads", read_chunk_of_null),
    case!("rfc8166/6.1/3", "a Read chunk of a call of an unknown program", Should,
    "A Requester reduces a non-DDP-eligible argument data item. The Responder MUST NOT process this \
     RPC Call message and MUST report the violation as described in Section 4.5.2. … RFC 5531, \
     section 9: PROG_UNAVAIL = 1, /* remote hasn't exported program */",
    sends "NULL of program 0x3fffffff with a Read chunk behind its last octet",
    accepts "PROG_UNAVAIL, ERR_CHUNK or GARBAGE_ARGS; NULL succeeds", fault "any-program",
    |target| target.on_plain(|link| {
        read_chunk_of_unknown(link)?;
        Ok(Passed)
    })),
    case!("rfc8166/4.5.3/4", "a Read chunk of memory that is not registered", Must, UNREACHABLE,
        sends "RDMA_NOMSG with an unknown handle",
        accepts "ERR_CHUNK, GARBAGE_ARGS, SYSTEM_ERR or the end of this connection; others go on",
        fault "dies-of-access-errors", needs [Destructive], |target| unreadable(target, |_| Ok(vec![BOGUS]))),
    case!("rfc8166/4.5.3/5", "a Reply chunk of memory that is not registered", Must, UNREACHABLE,
        sends "a Reply chunk with an unknown handle",
        accepts "ERR_CHUNK, GARBAGE_ARGS, SYSTEM_ERR, an error of NFS or the end of \
                 this connection; others go on",
        fault "dies-of-access-errors", needs [Destructive],
        |target| unwritable(target, |_| Ok(vec![Segment { length: 4096, ..BOGUS }]))),
    case!("rfc8166/4.5.3/6", "a retransmission does not end the next connection, too", Should,
        "To avoid a retransmission loop and repeated connection loss that deadlocks the connection, \
         once the Requester has re-established a connection, the Responder should send an RDMA_ERROR \
         reply with an rdma_err value of ERR_CHUNK to indicate that no RPC-level reply is possible \
         for that XID.",
        sends "a Reply chunk with an unknown handle; the same again if the connection ends",
        accepts "ERR_CHUNK, GARBAGE_ARGS, SYSTEM_ERR or an error of NFS, to the second at the latest",
        fault "forgets-failed-calls", needs [Destructive], unwritable_again),
    case!("rfc8166/4.5.3/7", "a Read chunk that is longer than its memory", Must, UNREACHABLE,
    sends "RDMA_NOMSG with a segment of 4096 octets, of which 64 are registered",
    accepts "ERR_CHUNK, GARBAGE_ARGS, SYSTEM_ERR or the end of this connection; others go on",
    fault "dies-of-access-errors", needs [Destructive],
    |target| unreadable(target, |link| {
        Ok(vec![Segment { length: 4096, ..link.readable(&[7; 64])? }])
    })),
    case!("rfc8166/4.5.3/8", "a Reply chunk that is longer than its memory", Must, UNREACHABLE,
    sends "a reply of 1008 octets, a Reply chunk of 4096 octets, of which 64 are registered",
    accepts "ERR_CHUNK, GARBAGE_ARGS, SYSTEM_ERR, an error of NFS or the end of \
             this connection; others go on",
    fault "dies-of-access-errors", needs [Destructive],
    |target| unwritable(target, |link| {
        Ok(vec![Segment { length: 4096, ..link.writable(64)? }])
    })),
    case!("rfc8166/8.1.4/1", "a Read chunk of 4 GiB", Must, UNREACHABLE,
        sends "RDMA_NOMSG with a segment of 0xffffffff octets",
        accepts "ERR_CHUNK, GARBAGE_ARGS, SYSTEM_ERR or the end of this connection; others go on",
        fault "dies-of-huge-chunks", needs [Destructive],
        |target| unreadable(target, |_| Ok(vec![Segment { length: u32::MAX, ..BOGUS }]))),
    case!("rfc8166/8.1.4/2", "a Read chunk whose length overflows 32 bits", Must, UNREACHABLE,
        sends "RDMA_NOMSG with two segments of 0xffffffff octets",
        accepts "ERR_CHUNK, GARBAGE_ARGS, SYSTEM_ERR or the end of this connection; others go on",
        fault "dies-of-huge-chunks", needs [Destructive],
        |target| unreadable(target, |_| Ok(vec![Segment { length: u32::MAX, ..BOGUS }; 2]))),
    case!("rfc8166/8.1.4/3", "a Reply chunk whose length overflows 32 bits does no harm", Must, UNREACHABLE,
        sends "a reply of 1008 octets, a Reply chunk of two segments of 0xffffffff octets",
        accepts "ERR_CHUNK, GARBAGE_ARGS, SYSTEM_ERR, an error of NFS or the end of \
                 this connection; others go on",
        fault "dies-of-huge-chunks", needs [Destructive],
        |target| unwritable(target, |_| Ok(vec![Segment { length: u32::MAX, ..BOGUS }; 2]))),
    case!("rfc8166/3.3.2/2", "a Send longer than the server's Receives harms no other connection", Must,
    "RFC 8167, section 5.3: Sending an inline message larger than the inline threshold can result in \
     loss of connection.",
    sends "a Send of 300000 octets", accepts "NULL on another connection succeeds",
    fault "dies-of-disconnects", needs [Destructive],
    |target| only_this_ends(target, Offer::default(), |xid, null| {
        let mut octets = Header::msg(xid).with(null);
        octets.resize(300_000, 0);
        octets
    })),
    case!("rfc8166/3.3.1/10", "a client without Receives harms no other connection", Must, ABORTED,
    sends "NULL, without a Receive for the reply", accepts "NULL on another connection succeeds",
    fault "dies-of-disconnects", needs [Destructive],
    |target| only_this_ends(target, Offer { receives: 0, rnr_retries: 0, ..Offer::default() },
        |xid, null| Header::msg(xid).with(null))),
    case!("rfc8166/3.3.1/11", "a client whose Receives are too short harms no other connection", Must, ABORTED,
    sends "NULL, with Receives of 16 octets", accepts "NULL on another connection succeeds",
    fault "dies-of-disconnects", needs [Destructive],
    |target| only_this_ends(target, Offer { receive_size: 16, ..Offer::default() },
        |xid, null| Header::msg(xid).with(null))),
    case!("rfc8166/3.4.4/1", "sixteen Write chunks", Should, NO_LIMIT,
        sends "NULL with sixteen Write chunks",
        accepts "SUCCESS with all of them, ERR_CHUNK or GARBAGE_ARGS; NULL succeeds",
        fault "one-write-chunk", |target| many_chunks(target, 16)),
    case!("rfc8166/3.4.4/2", "thirty-five Write chunks", Should, NO_LIMIT,
        sends "NULL with thirty-five Write chunks",
        accepts "SUCCESS with all of them, ERR_CHUNK or GARBAGE_ARGS; NULL succeeds",
        fault "one-write-chunk", |target| many_chunks(target, 35)),
    case!("rfc8166/3.4.4/3", "a Long Call with fifteen empty segments behind it", Should,
        EMPTY_SEGMENTS,
        sends "NULL as a Long Call in sixteen segments, fifteen of them empty",
        accepts "SUCCESS, ERR_CHUNK or GARBAGE_ARGS; NULL succeeds",
        fault "drops-long-calls", needs [Destructive], |target| many_segments(target, 16)),
    case!("rfc8166/3.4.4/4", "a Long Call with thirty-nine empty segments behind it", Should,
        EMPTY_SEGMENTS,
        sends "NULL as a Long Call in forty segments, thirty-nine of them empty",
        accepts "SUCCESS, ERR_CHUNK or GARBAGE_ARGS; NULL succeeds",
        fault "drops-long-calls", needs [Destructive], |target| many_segments(target, 40)),
    case!("rfc8267/6.4.2/3", "a Write chunk of more segments than the server takes", Should,
        WRITE_LIMITS,
        sends "NULL with a Write chunk of more and more segments, as far as the threshold allows",
        accepts "SUCCESS with all of them to a number, ERR_CHUNK or GARBAGE_ARGS to more; NULL \
                 succeeds",
        fault "ends-at-segments", |target| most_segments(target, usize::MAX, write_segments)),
    case!("rfc8267/6.4.2/4", "a Reply chunk of more segments than the server takes", Should,
        REPLY_LIMITS,
        sends "NULL with a Reply chunk of more and more segments, as far as the threshold allows",
        accepts "SUCCESS with all of them to a number, ERR_CHUNK or GARBAGE_ARGS to more; NULL \
                 succeeds",
        fault "ends-at-segments", |target| most_segments(target, usize::MAX, reply_segments)),
    case!("rfc8267/6.4.2/5", "a Long Call of more segments than the server takes", Should, LIMITS,
        sends "NULL as a Long Call in more and more segments of one octet, as far as the threshold \
               allows, 40 at most",
        accepts "SUCCESS to a number, ERR_CHUNK or GARBAGE_ARGS to more; NULL succeeds",
        fault "ends-at-segments", needs [Destructive],
        |target| most_segments(target, NULL_SEGMENTS, read_segments)),
    case!("rfc8267/6.4.2/6", "a Long Reply in sixteen segments", Must, SEGMENTS,
        sends "a reply of 1008 octets, a Reply chunk of sixteen segments of 64",
        accepts "RDMA_NOMSG, the reply, all segments filled in order",
        fault "takes-eight-segments",
        |target| of_nfs4(target, |target| long_reply(target, &[64; 16]))),
    case!("rfc8267/6.4.2/7", "a Long Call in sixteen segments", Must, SEGMENTS,
        sends "COMPOUND of 3000 octets in sixteen segments and in one, and a Reply chunk",
        accepts "SUCCESS, and the same results", fault "fills-long-calls", |target| of_nfs4(target, |target| long_call(target, 16))),
];
