// SPDX-License-Identifier: GPL-2.0

//! RFC 8166, section 3.3: credits and inline thresholds.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use crate::case::case;
use crate::case::inconclusive;
use crate::case::skip;
use crate::case::violation;
use crate::case::Case;
use crate::case::Passed;
use crate::case::Problem;
use crate::case::Verdict;
use crate::cases::rfc8166_chunks::no_reply;
use crate::cases::rfc8166_header::DISCARDS_DONE;
use crate::engine::Message;
use crate::engine::Offer;
use crate::engine::SENDS;
use crate::peer::fits;
use crate::peer::fixed;
use crate::peer::Link;
use crate::peer::Target;
use crate::peer::DEFAULT;
use crate::wire;
use crate::wire::words;
use crate::wire::Header;
use crate::wire::ReadSegment;
use crate::wire::Reader;
use crate::wire::Transport;

const NOT_ZERO: &str = "The granted value MUST NOT be zero, since such a value would result in \
                        deadlock.";
const ERRORS_GRANT: &str =
    "Each RPC-over-RDMA message sent from Responder to Requester informs the Requester how many \
     credits the Responder has granted. … The granted value MUST NOT be zero, since such a value \
     would result in deadlock.";
pub const RECEIVERS: &str =
    "RFC 8166, section 3.3.3: Receiver implementations MUST support inline thresholds of 1024 \
     bytes";
pub const EXCHANGE: &str =
    "RFC 8166, section 3.3.3: each RPC-over-RDMA version 1 connection provides the ability to \
     exchange at least one RPC message at a time, whose RPC Call and Reply messages are no more \
     than 1024 bytes in size.";
const SELF_DENIAL: &str =
    "RFC 8166, section 8.1.4: A sender can trigger a self denial of service by exceeding the credit \
     grant repeatedly.";
pub const ABORTED: &str =
    "RFC 8166, section 8.1.4: On the Requester, a malfunctioning application or a malicious user \
     can create a situation where RPCs are continuously initiated and then aborted, resulting in \
     Responder replies that terminate the underlying RPC-over-RDMA connection repeatedly. Such \
     situations can deny service to other users sharing the connection from that Requester.";
const LOST: &str =
    "RFC 8166, section 4.5.4: If a Responder is unable to construct and transmit an RPC Reply or \
     RPC-over-RDMA error message, the Responder MUST close the connection to signal to the \
     Requester that a reply was lost.";
const REMEMBERS: &str =
    "RFC 5531, section 9: NB: The \"xid\" field is only used for clients matching reply messages \
     with call messages or for servers detecting retransmissions; the service side cannot treat \
     this id as any type of sequence number.";
const EXCHANGE_OR_REMEMBERS: &str =
    "RFC 8166, section 3.3.3: each RPC-over-RDMA version 1 connection provides the ability to \
     exchange at least one RPC message at a time, whose RPC Call and Reply messages are no more \
     than 1024 bytes in size. … RFC 5531, section 9: NB: The \"xid\" field is only used for clients \
     matching reply messages with call messages or for servers detecting retransmissions; the \
     service side cannot treat this id as any type of sequence number.";
const CREDIT: &str = "An RPC-over-RDMA version 1 credit is the capability to handle one \
                      RPC-over-RDMA transaction.";
const GRANTED: &str = "An RPC-over-RDMA version 1 credit is the capability to handle one \
                       RPC-over-RDMA transaction. … Each RPC-over-RDMA message sent from Responder \
                       to Requester informs the Requester how many credits the Responder has \
                       granted.";

/// NULL with a credit request is granted something.
fn request(target: &mut Target<'_>, credits: u32) -> Verdict {
    target.on_plain(|link| {
        for _ in 0..2 {
            let xid = link.xid();
            let null = link.null_call(xid);
            let mut header = Header::msg(xid);
            header.credits = credits;
            link.call(&header, &null)?.results()?;
        }
        Ok(Passed)
    })
}

/// Errors grant at least 1 credit and `most` at most, for any request.
fn granted_by_errors(target: &mut Target<'_>, most: u32) -> Verdict {
    for (version, procedure) in [(1, 9), (77, wire::MSG)] {
        for credits in [0, u32::MAX] {
            target.on_plain(|link| {
                let xid = link.xid();
                link.send(&words(&[xid, version, credits, procedure, 0, 0, 0]))?;
                let message = link.receive_of(xid)?;
                match Transport::parse(&message.octets) {
                    Ok(Transport::Error { credits, .. }) if (1..=most).contains(&credits) => {
                        Ok(Passed)
                    }
                    Ok(Transport::Error { credits, .. }) => {
                        violation(format!("the error grants {credits} credits"))
                    }
                    other => violation(format!("the answer is {other:?}")),
                }
            })?;
        }
    }
    Ok(Passed)
}

/// How many calls are sent at once, if as many are granted. Linux 7.2 and 7.3 grant as many.
const AT_ONCE: u32 = 128;

/// Connects with this number of Receives.
fn with_receives(target: &mut Target<'_>, receives: u32) -> Result<Link, Problem> {
    target.connect_offer(&Offer {
        private: wire::Private::new(DEFAULT, DEFAULT, false).octets(),
        receives: receives as usize,
        ..Offer::default()
    })
}

/// Returns the XID of a reply, and removes it from those that wait for one.
fn waited_for(waiting: &mut BTreeSet<u32>, message: &Message) -> Result<u32, Problem> {
    let xid = Reader::new(&message.octets).word().unwrap_or_default();
    if !waiting.remove(&xid) {
        return violation(format!("a reply with XID {xid:08x} that nobody waits for"));
    }
    Ok(xid)
}

/// Sends as many calls at once as are granted, up to `AT_ONCE`. Each is answered once.
fn all_credits(target: &mut Target<'_>, rounds: usize) -> Verdict {
    let mut link = with_receives(target, AT_ONCE)?;
    let xid = link.xid();
    let null = link.null_call(xid);
    let mut header = Header::msg(xid);
    header.credits = AT_ONCE;
    link.call(&header, &null)?;
    for _ in 0..rounds {
        // The server may grant less with each reply.
        let granted = link.granted.min(AT_ONCE);
        let mut waiting = BTreeSet::new();
        let mut messages = Vec::new();
        for _ in 0..granted {
            let xid = link.xid();
            let null = link.null_call(xid);
            let mut header = Header::msg(xid);
            header.credits = AT_ONCE;
            waiting.insert(xid);
            messages.push(header.with(&null));
        }
        link.send_all(&messages)?;
        while !waiting.is_empty() {
            let message = link.receive()?;
            let xid = waited_for(&mut waiting, &message)?;
            link.decode(xid, &message)?.results()?;
        }
    }
    link.quiet()?;
    Ok(Passed)
}

/// Sends more calls at once than are granted, up to what the send queue holds: twice `AT_ONCE`. The
/// server may refuse or lose calls, or end the connection.
fn more_than_granted(target: &mut Target<'_>) -> Verdict {
    let mut link = with_receives(target, SENDS)?;
    let granted = link.null()?.header.credits;
    let count = granted.saturating_mul(4).min(SENDS);
    if count <= granted {
        return skip(format!("the server grants {granted} credits"));
    }
    let mut waiting = BTreeSet::new();
    let mut messages = Vec::new();
    for _ in 0..count {
        let xid = link.xid();
        waiting.insert(xid);
        messages.push(Header::msg(xid).with(&link.null_call(xid)));
    }
    link.send_all(&messages)
        .or_else(|problem| inconclusive(format!("{count} calls at once: {}", problem.reason())))?;
    let mut wait = link.server.limit;
    while let Some(message) = link.receive_within(wait) {
        let xid = waited_for(&mut waiting, &message)?;
        if let Some(answer) = link.processed(xid, &message)? {
            answer.results()?;
        }
        if waiting.is_empty() {
            break;
        }
        wait = link.server.quiet;
    }
    drop(link);
    target.on_plain(|link| {
        link.null()?;
        Ok(Passed)
    })
}

/// A Long Call among as many calls as are granted. The replies may arrive in any order.
fn long_call_among_others(target: &mut Target<'_>) -> Verdict {
    target.on_plain(|link| {
        let granted = link.null()?.header.credits.min(32);
        let mut xids = Vec::new();
        let mut messages = Vec::new();
        for number in 0..granted {
            let xid = link.xid();
            let null = link.null_call(xid);
            let mut header = Header::msg(xid);
            if number == 0 {
                let (position, segment) = (0, link.readable(&null)?);
                header.procedure = wire::NOMSG;
                header.reads.push(ReadSegment { position, segment });
                messages.push(header.octets());
            } else {
                messages.push(header.with(&null));
            }
            xids.push(xid);
        }
        link.send_all(&messages)?;
        for xid in xids {
            let message = link.receive_of(xid)?;
            link.decode(xid, &message)?.results()?;
        }
        Ok(Passed)
    })
}

/// An inline call of exactly 1024 octets succeeds.
fn call_of_1024(target: &mut Target<'_>, private: &[u8]) -> Verdict {
    let mut link = target.connect(private)?;
    let xid = link.xid();
    let mut header = Header::msg(xid);
    header.reply = Some(vec![link.writable(4096)?]);
    let length = DEFAULT - header.octets().len();
    let rpc = target.server.call_of(xid, length)?;
    let octets = header.with(&rpc);
    if octets.len() != DEFAULT {
        return Err(Problem::Inconclusive(format!(
            "the call has {} octets",
            octets.len()
        )));
    }
    link.send(&octets)?;
    let message = link.receive_of(xid)?;
    link.decode(xid, &message)?.results()?;
    Ok(Passed)
}

/// A reply of exactly 1024 octets may be inline; without a Reply chunk it must be.
fn reply_of_1024(target: &mut Target<'_>) -> Verdict {
    let mut link = target.small_replies(false)?;
    let xid = link.xid();
    let rpc = target.server.call_for(xid, DEFAULT - 52)?;
    let answer = link.call(&Header::msg(xid), &rpc)?;
    answer.results()?;
    if answer.length != DEFAULT {
        return Err(Problem::Inconclusive(format!(
            "the reply has {} octets",
            answer.length
        )));
    }
    Ok(Passed)
}

/// A reply of 1028 octets without a Reply chunk cannot be sent.
fn reply_of_1028(target: &mut Target<'_>) -> Verdict {
    let mut link = target.small_replies(false)?;
    let xid = link.xid();
    let results = DEFAULT + 4 - 52;
    let rpc = target.server.call_for(xid, results)?;
    link.ask(&Header::msg(xid), &rpc)?;
    let message = link.receive_or_end(xid)?;
    if let Some(message) = &message {
        fits(message.octets.len(), DEFAULT)?;
        no_reply(target, &mut link, message, xid, results)?;
    }
    target.goes_on(&mut link, message.is_some(), "a reply that was too long")
}

/// The same call twice: a server may drop the second one.
fn duplicate(target: &mut Target<'_>) -> Verdict {
    target.on_plain_or_end("the same call twice", |link| {
        if link.null()?.header.credits < 2 {
            return skip("the server grants 1 credit");
        }
        let xid = link.xid();
        let null = link.null_call(xid);
        let octets = Header::msg(xid).with(&null);
        link.send_all(&[octets.clone(), octets])?;
        let message = link.receive_of(xid)?;
        link.decode(xid, &message)?.results()?;
        let xid = link.xid();
        let null = link.null_call(xid);
        link.call(&Header::msg(xid), &null)?.results()?;
        Ok(Passed)
    })
}

/// The same call many times at once: a server may drop all but one.
fn many_duplicates(target: &mut Target<'_>) -> Verdict {
    target.on_plain_or_end("calls with one XID", |link| {
        let count = link.null()?.header.credits.min(16);
        if count < 2 {
            return skip("the server grants 1 credit");
        }
        let xid = link.xid();
        let octets = Header::msg(xid).with(&link.null_call(xid));
        link.send_all(&vec![octets; count as usize])?;
        let first = link.receive_of(xid)?;
        link.decode(xid, &first)?.results()?;
        let mut replies = 1;
        while let Some(message) = link.receive_if(xid)? {
            link.decode(xid, &message)?.results()?;
            replies += 1;
        }
        if replies > count {
            return violation(format!("{count} calls get {replies} replies"));
        }
        link.still_answers("calls with one XID")?;
        Ok(Passed)
    })
}

/// A call that has been answered, once more behind another one.
fn equal_later(target: &mut Target<'_>) -> Verdict {
    target.on_plain_or_end("a call that was answered before", |link| {
        let xid = link.xid();
        let null = link.null_call(xid);
        link.call(&Header::msg(xid), &null)?.results()?;
        link.null()?;
        link.send_ahead(&Header::msg(xid).with(&null))?;
        link.still_answers("a call that was answered before")?;
        if let Some(message) = link.receive_if(xid)? {
            link.decode(xid, &message)?.results()?;
        }
        Ok(Passed)
    })
}

/// The Receives are posted when the server has tried to send the reply.
fn late_receives(target: &mut Target<'_>) -> Verdict {
    let mut link = target.connect_offer(&Offer {
        private: wire::Private::new(DEFAULT, DEFAULT, false).octets(),
        posts_receives: false,
        ..Offer::default()
    })?;
    if link.connection.is_iwarp() {
        return skip("over iWARP, a message without a Receive ends the connection");
    }
    // The server's device tries again after 0.66 s.
    link.server.limit = link.server.limit.max(Duration::from_secs(3));
    let xid = link.xid();
    let null = link.null_call(xid);
    link.send(&Header::msg(xid).with(&null))?;
    thread::sleep(Duration::from_millis(500));
    link.connection.post_receives().or_else(inconclusive)?;
    let message = link.receive_or_end(xid)?;
    if let Some(message) = &message {
        link.decode(xid, message)?.results()?;
    }
    target.goes_on(&mut link, message.is_some(), "late Receives")
}

/// Calls follow a DREQ. They arrive before the server has handled it, or afterwards.
fn calls_behind_dreq(target: &mut Target<'_>) -> Verdict {
    for _ in 0..4 {
        let mut link = target.plain()?;
        if link.connection.is_iwarp() {
            return skip("iWARP has no DREQ");
        }
        link.null()?;
        link.connection.send_dreq().or_else(inconclusive)?;
        for number in 0..4 {
            let xid = link.xid();
            let octets = Header::msg(xid).with(&link.null_call(xid));
            match link.connection.post_send(&octets) {
                Err(why) if number == 0 => return inconclusive(why),
                // The DREP may have ended the connection.
                _ => (),
            }
        }
        link.connection.wait_closed(Duration::from_secs(1));
    }
    target.on_plain(|link| {
        link.null()?;
        Ok(Passed)
    })
}

/// The same call on two connections: a server may take one of them for a retransmission.
fn two_connections(target: &mut Target<'_>) -> Verdict {
    let mut first = target.plain()?;
    let mut second = target.plain()?;
    let xid = first.xid();
    let null = first.null_call(xid);
    let octets = Header::msg(xid).with(&null);
    first.send(&octets)?;
    second.send(&octets)?;
    let mut lost = false;
    for link in [&mut first, &mut second] {
        match link.receive_or_nothing(xid)? {
            Some(message) => {
                link.decode(xid, &message)?.results()?;
            }
            None if lost => return violation("neither call has a reply"),
            None => lost = true,
        }
    }
    Ok(Passed)
}

fn malformed_keep_credits(target: &mut Target<'_>) -> Verdict {
    target.on_plain(|link| {
        let mut left = 2 * link.null()?.header.credits.min(512) + 8;
        while left > 0 {
            // Discarded messages have no answer, and must not use up the server's Receives. It need
            // have no more of them than it grants, so NULL has one of them each time. It may grant
            // less with each reply.
            let each = link.granted.min(32).saturating_sub(1).clamp(1, left);
            for _ in 0..each {
                let xid = link.xid();
                link.send_ahead(&fixed(xid, 1, wire::DONE, &[0, 0, 0], &[]))?;
            }
            link.still_answers("discarded messages")?;
            // With one credit, each message takes the time of silence.
            left = (left - each).min(link.granted.saturating_mul(2).saturating_add(8));
        }
        link.quiet()?;
        Ok(Passed)
    })
}

fn disconnect_within_call(target: &mut Target<'_>) -> Verdict {
    for number in 0..4 {
        let mut link = target.plain()?;
        let xid = link.xid();
        let null = link.null_call(xid);
        let octets = Header::msg(xid).with(&null);
        // The call arrives, or it may be lost.
        if number % 2 == 0 {
            link.send(&octets)?;
        } else {
            let _ = link.connection.post_send(&octets);
        }
        link.connection.disconnect();
    }
    let mut link = target.plain()?;
    link.null()?;
    Ok(Passed)
}

pub const CASES: &[Case] = &[
    case!("rfc8166/3.3.1/1", "a request of 1 credit is granted at least 1", Must, NOT_ZERO,
        sends "NULL that requests 1 credit, twice", accepts "rdma_credit of at least 1",
        fault "grants-zero", |target| request(target, 1)),
    case!("rfc8166/3.3.1/2", "a request of 0 credits is granted at least 1", Must, NOT_ZERO,
        sends "NULL that requests 0 credits, twice", accepts "rdma_credit of at least 1",
        fault "grants-as-requested", |target| request(target, 0)),
    case!("rfc8166/3.3.1/3", "a request of 0xffffffff credits is granted at least 1", Must, NOT_ZERO,
        sends "NULL that requests 0xffffffff credits, twice", accepts "rdma_credit of at least 1",
        fault "grants-zero", |target| request(target, u32::MAX)),
    case!("rfc8166/3.3.1/4", "as many calls at once as are granted are answered", Must, GRANTED,
        sends "as many NULL at once as are granted, at most 128", accepts "one SUCCESS to each",
        fault "grants-too-many", |target| all_credits(target, 1)),
    case!("rfc8166/3.3.1/5", "credits come back with the replies", Must, GRANTED,
        sends "as many NULL at once as are granted, four times",
        accepts "one SUCCESS to each; the grant may fall",
        fault "grants-too-many", |target| all_credits(target, 4)),
    case!("rfc8166/3.3.1/6", "a huge request is not granted as it is", Should,
    CREDIT,
    sends "NULL that requests 0xffffffff credits", accepts "a grant of at most 65536",
    fault "grants-as-requested",
    |target| target.on_plain(|link| {
        let xid = link.xid();
        let null = link.null_call(xid);
        let mut header = Header::msg(xid);
        header.credits = u32::MAX;
        let granted = link.call(&header, &null)?.header.credits;
        if granted > 65536 {
            return violation(format!("the server grants {granted} credits"));
        }
        Ok(Passed)
    })),
    case!("rfc8166/3.3.1/17", "errors grant at least 1 credit", Must, ERRORS_GRANT,
        sends "procedure 9, and version 77, that request 0 and 0xffffffff credits",
        accepts "RDMA_ERROR with rdma_credit of at least 1", fault "grants-zero",
        |target| granted_by_errors(target, u32::MAX)),
    case!("rfc8166/3.3.1/18", "errors do not grant a huge request as it is", Should, CREDIT,
        sends "procedure 9, and version 77, that request 0 and 0xffffffff credits",
        accepts "RDMA_ERROR with rdma_credit of at least 1 and at most 65536",
        fault "grants-as-requested", |target| granted_by_errors(target, 65536)),
    case!("rfc8166/3.3.1/7", "discarded messages keep the Receives posted", Must,
        DISCARDS_DONE,
        sends "twice as many RDMA_DONE as are granted and 8, at most 1032, and NULL whenever no more \
               may be under way",
        accepts "nothing to RDMA_DONE, SUCCESS to each NULL; the grant may fall",
        fault "discards-use-receives", malformed_keep_credits),
    case!("rfc8166/3.3.3/1", "the first call may have 1024 octets, without private data", Must, RECEIVERS,
        sends "no private data, RDMA_MSG of 1024 octets", accepts "SUCCESS",
        fault "tiny-receives", |target| call_of_1024(target, &[])),
    case!("rfc8166/3.3.3/2", "a call of 1024 octets, with private data", Must, RECEIVERS,
        sends "both sizes 1024, RDMA_MSG of 1024 octets", accepts "SUCCESS",
        fault "tiny-receives",
        |target| call_of_1024(target, &wire::Private::new(1024, 1024, false).octets())),
    case!("rfc8166/3.3.3/3", "a reply of 1024 octets is inline", Must, EXCHANGE,
        sends "a call without a Reply chunk whose reply has 1024 octets", accepts "RDMA_MSG of 1024 octets",
        fault "refuses-1024", reply_of_1024),
    case!("rfc8166/3.3.2/1", "a reply of 1028 octets without a Reply chunk is not sent", Must,
        "RFC 8166, sections 3.3.2 and 4.5.4: An \"inline threshold\" value is the largest message \
         size (in octets) that can be conveyed in one direction between peer implementations using \
         RDMA Send and Receive. … If a Responder is unable to construct and transmit an RPC Reply \
         or RPC-over-RDMA error message, the Responder MUST close the connection to signal to the \
         Requester that a reply was lost. … RFC 8267, section 3.1: If an NFS server finds that the \
         NFS client provided inadequate receive resources to return the whole Reply, it returns an \
         RPC-level error or a transport error, such as ERR_CHUNK.",
        sends "Receive Size 1024, a call without a Reply chunk whose reply has 1028 octets",
        accepts "ERR_CHUNK, GARBAGE_ARGS, SYSTEM_ERR, an error of NFS or the end of \
                 this connection; NULL succeeds",
        fault "ignores-threshold", reply_of_1028),
    case!("rfc8166/3.3.1/12", "more calls than are granted harm no other connection", Must, SELF_DENIAL,
        sends "four times as many NULL at once as are granted, at most 256",
        accepts "SUCCESS, ERR_CHUNK, GARBAGE_ARGS, SYSTEM_ERR or nothing to each, or the end of \
                 this connection; others go on",
        fault "dies-of-excess", more_than_granted),
    case!("rfc8166/3.3.1/13", "a Long Call among as many calls as are granted", Must, GRANTED,
        sends "as many NULL at once as are granted, at most 32, the first one as a Long Call",
        accepts "one SUCCESS to each", fault "no-long-calls", long_call_among_others),
    case!("rfc8166/3.3.1/8", "the same call twice does no harm", Should,
        "RFC 5531, section 5: The server may choose to remember this ID after executing a call and \
         not execute calls with the same ID, in order to achieve some degree of \
         execute-at-most-once semantics.",
        sends "one NULL twice, with one XID",
        accepts "one or two replies, or the end of this connection; NULL succeeds",
        fault "dies-of-duplicates", duplicate),
    case!("rfc8166/3.3.1/9", "one XID on two connections does no harm", Should, EXCHANGE_OR_REMEMBERS,
        sends "NULL with the same XID on two connections",
        accepts "SUCCESS on one; SUCCESS or nothing on the other, or the end of this connection",
        fault "refuses-old-calls", two_connections),
    case!("rfc8166/3.3.3/4", "a client that leaves within its first call harms nobody", Must, ABORTED,
        sends "NULL and a disconnect, four times, then NULL on a new connection", accepts "SUCCESS",
        fault "dies-of-disconnects", disconnect_within_call),
    case!("rfc8166/3.3.1/14", "a reply that finds no Receive at first is not lost in silence", Must, LOST,
        sends "NULL, and 0.5 s later the Receives",
        accepts "SUCCESS or the end of this connection; NULL succeeds",
        fault "dies-of-slow-replies", late_receives),
    case!("rfc8166/3.3.1/15", "sixteen calls with one XID do no harm", Should, REMEMBERS,
        sends "one NULL sixteen times at once, or as often as is granted",
        accepts "SUCCESS to one, SUCCESS or nothing to each other one, or the end of this \
                 connection; NULL succeeds",
        fault "dies-of-duplicates", many_duplicates),
    case!("rfc8166/3.3.1/16", "a call that was answered, once more", Should, REMEMBERS,
        sends "NULL, another NULL, and the first one once more",
        accepts "SUCCESS or nothing to the last one, or the end of this connection; NULL succeeds",
        fault "refuses-old-calls", equal_later),
    case!("rfc8166/3.3.3/5", "a client that sends behind its DREQ harms nobody", Must, ABORTED,
        sends "a DREQ and four NULL, four times, then NULL on a new connection", accepts "SUCCESS",
        fault "dies-of-disconnects", calls_behind_dreq),
];
