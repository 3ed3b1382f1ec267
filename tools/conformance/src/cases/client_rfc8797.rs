// SPDX-License-Identifier: GPL-2.0

//! RFC 8797, for clients.

use std::cell::Cell;
use std::rc::Rc;
use std::thread;

use crate::case::case;
use crate::case::inconclusive;
use crate::case::unimplemented;
use crate::case::violation;
use crate::case::Case;
use crate::case::Passed;
use crate::case::Problem;
use crate::case::Verdict;
use crate::cases::client_rfc8166::HOLD;
use crate::engine::POST_FAILED;
use crate::gateway::Call;
use crate::gateway::Gateway;
use crate::gateway::Invalidate;
use crate::gateway::Next;
use crate::gateway::Seen;
use crate::gateway::Shape;
use crate::gateway::Work;
use crate::gateway::SIZE;
use crate::gateway::WRONG_DATA;
use crate::peer::DEFAULT;
use crate::wire::words;
use crate::wire::Header;
use crate::wire::Private;
use crate::wire::FORMAT;

const RESERVED: &str = "This 7-bit field is unused. Senders MUST set these bits to zero, and \
                        receivers MUST ignore their value.";
const FIRST: &str = "The first eight octets of the CM Private Data field are to be formatted as \
                     follows";
const CHANGE: &str = "An implementation of the extension described in this document MUST be \
                      prepared for the settings to change upon a reconnection.";
const BOTH: &str = "When both connection peers have set this bit flag in their CM Private Data, \
                    the responder MAY use RDMA Send with Invalidate operations when transmitting \
                    RPC Replies.";
const ONLY_SEND: &str =
    "When either peer on a connection clears this flag, the responder MUST use only RDMA Send when \
     transmitting RPC Replies.";
const SMALLER: &str =
    "RFC 8797, section 4.2: The client uses the smaller of its own send size and the server's \
     reported receive size as the client-to-server inline threshold.";
const GUARANTEE: &str = "The inline threshold values provide a pair of 1024-octet-aligned maximum \
                         message lengths that guarantee that Send and Receive operations do not \
                         fail due to length errors.";
const ABSENT: &str =
    "RFC 8797, section 5.1: the peer MUST behave as if a Private Data message was received in \
     which (1) bit 15 of the Flags field is zero and (2) both Size fields contain the value zero.";
const SEARCHED: &str =
    "the buffer containing the received Private Data is searched for the Format Identifier word. \
     The offset of the Format Identifier is not restricted to any alignment.";

/// A server without private data.
pub fn silent() -> Shape {
    with(Vec::new())
}

/// A server with this private data.
fn with(private: Vec<u8>) -> Shape {
    Shape {
        private: vec![private],
        ..Shape::default()
    }
}

/// A server with both sizes 1024.
fn smallest() -> Shape {
    with(Private::new(DEFAULT, DEFAULT, false).octets())
}

/// Returns the client's offer in the private data.
pub fn offer(gateway: &mut Gateway<'_>) -> Result<(usize, Private), Problem> {
    let work = gateway.plain()?;
    match Private::find(&work.first()?.private) {
        Some(found) => Ok(found),
        None => unimplemented("the client sends no private data of RFC 8797"),
    }
}

/// Returns the private data of all connections that have some of RFC 8797.
fn offers(work: &Work) -> impl Iterator<Item = (usize, Private)> + '_ {
    let connections = work.connections.iter();
    connections.filter_map(|seen| Private::find(&seen.private))
}

/// The fewest octets of a header.
const HEADER: usize = 28;

/// Whether the call has a Read list, and more octets than the threshold.
fn is_long(call: &Call, threshold: usize) -> bool {
    !call.header.reads.is_empty() && HEADER + call.rpc.len() > threshold
}

/// Each Send is within the threshold of its connection. Inconclusive unless a client that ignores
/// thresholds would have sent more: there was a longer Send in the work without faults, or there is
/// a call by chunks of up to four times the threshold.
pub fn within(
    gateway: &mut Gateway<'_>,
    work: &Work,
    threshold: fn(&Seen) -> usize,
) -> Result<(), Problem> {
    for seen in &work.connections {
        let (length, most) = (seen.longest, threshold(seen));
        if length > most {
            return violation(format!(
                "a Send has {length} octets, the threshold is {most}"
            ));
        }
    }
    let most = work.connections.iter().map(threshold).min();
    let most = most.unwrap_or_default();
    let chunks = |call: &Call| is_long(call, most) && !is_long(call, 4 * most);
    let plain = gateway.plain()?;
    if !plain.connections.iter().any(|seen| seen.longest > most) && !work.calls.iter().any(chunks) {
        return inconclusive("the client's calls are too short to show its threshold");
    }
    Ok(())
}

/// The client stays within the default threshold.
fn defaults(gateway: &mut Gateway<'_>, name: &'static str, shape: fn() -> Shape) -> Verdict {
    let work = gateway.shared(name, shape)?;
    work.first()?;
    within(gateway, &work, |_| DEFAULT)?;
    work.succeeded(gateway)?;
    Ok(Passed)
}

/// The client has understood the server's message: it sends more than 1024 octets inline.
fn understood(gateway: &mut Gateway<'_>, private: Vec<u8>) -> Verdict {
    is_larger(gateway)?;
    let work = gateway.work(with(private))?;
    work.first()?;
    larger(&work)?;
    work.succeeded(gateway)?;
    Ok(Passed)
}

/// Without faults, the client sends more than 1024 octets inline.
fn is_larger(gateway: &mut Gateway<'_>) -> Result<(), Problem> {
    larger(&*gateway.plain()?)
        .or_else(|_| inconclusive("the client sends nothing longer than 1024 octets inline"))
}

fn larger(work: &Work) -> Result<(), Problem> {
    if work.connections.iter().any(|seen| seen.longest > DEFAULT) {
        return Ok(());
    }
    violation("the client sends at most 1024 octets inline: it has not found the message")
}

/// The server's message behind other octets.
fn behind(length: usize) -> Vec<u8> {
    let mut octets = vec![0x5a; length];
    octets.extend(Private::new(SIZE, SIZE, false).octets());
    octets
}

fn reserved(gateway: &mut Gateway<'_>) -> Verdict {
    offer(gateway)?;
    for (_, found) in offers(&*gateway.plain()?) {
        if found.flags & 0xfe != 0 {
            return violation(format!("the flags are {:#04x}", found.flags));
        }
    }
    Ok(Passed)
}

fn first_octets(gateway: &mut Gateway<'_>) -> Verdict {
    offer(gateway)?;
    for (offset, _) in offers(&*gateway.plain()?) {
        if offset != 0 {
            return violation(format!("the message is at offset {offset}"));
        }
    }
    Ok(Passed)
}

/// The connection ends behind a call. The next one has other settings.
fn change(gateway: &mut Gateway<'_>) -> Verdict {
    is_larger(gateway)?;
    let shape = Shape {
        private: vec![Private::new(SIZE, SIZE, true).octets(), Vec::new()],
        on_call: Box::new(|call, _| match (call.connection, call.on_connection) {
            (0, 3) => Next::Disconnect,
            _ => Next::Serve,
        }),
        ..Shape::default()
    };
    let work = gateway.work(shape)?;
    if !more_connections(gateway, &work) {
        return inconclusive(format!("the client does not connect again; {}", work.end()));
    }
    let mut later = work.connections.iter().skip(1);
    if let Some(seen) = later.find(|seen| seen.longest > DEFAULT) {
        return violation(format!(
            "a Send on a later connection has {} octets, the threshold is 1024",
            seen.longest
        ));
    }
    if let Some(why) = work.too_long.first() {
        return violation(why.clone());
    }
    let mut later = work.calls.iter().filter(|call| call.connection > 0);
    if !later.any(|call| is_long(call, DEFAULT)) {
        return inconclusive(
            "the calls on later connections are too short to show their threshold",
        );
    }
    recovered(gateway, &work)
}

/// A Send of as many octets as the client says it can receive. No call has its XID.
fn longest_send(gateway: &mut Gateway<'_>) -> Verdict {
    offer(gateway)?;
    let sent = Rc::new(Cell::new(false));
    let own = sent.clone();
    let shape = Shape {
        private: vec![Private::new(262_144, SIZE, true).octets()],
        on_call: Box::new(move |call, connection| {
            let found = Private::find(connection.private());
            if let (1, Some((_, found))) = (call.on_connection, found) {
                let xid = call.header.xid ^ 0x8000_0000;
                let mut octets = Header::msg(xid).with(&words(&[xid, 1, 0, 0, 0, 0]));
                octets.resize(found.receive_size(), 0);
                let _ = connection.send(&octets);
                own.set(true);
                // The message has taken the Receive of the reply.
                thread::sleep(HOLD);
            }
            Next::Serve
        }),
        ..Shape::default()
    };
    let work = gateway.work(shape)?;
    work.first()?;
    if !sent.get() {
        return inconclusive("the client has made no second call on a connection");
    }
    undisturbed(gateway, &work)
}

/// Whether the client has made more connections than for the work without faults. Some make several
/// there: one of them is no sign that another one was lost.
pub fn more_connections(gateway: &Gateway<'_>, work: &Work) -> bool {
    work.connections.len() > gateway.client.connections
}

/// The client has connected again. It may have given up a call that was lost, so that only
/// wrong data is a violation.
pub fn recovered(gateway: &Gateway<'_>, work: &Work) -> Verdict {
    match work.succeeded(gateway) {
        Err(Problem::Violation(why)) if work.status != Some(i32::from(WRONG_DATA)) => {
            inconclusive(why)
        }
        result => result.map(|()| Passed),
    }
}

/// The client has gone on, on the connections that it has made.
pub fn undisturbed(gateway: &Gateway<'_>, work: &Work) -> Verdict {
    work.first()?;
    if work.calls.len() < 2 {
        return inconclusive("the client has made fewer than two calls");
    }
    let failed = work
        .connections
        .iter()
        .filter_map(|seen| seen.ended.as_ref())
        .find(|why| !why.contains("disconnected") && !why.contains("is over"));
    if let Some(why) = failed {
        return violation(format!("the connection ends: {why}"));
    }
    if more_connections(gateway, work) {
        return violation(format!(
            "the client has made {} connections, {} without faults",
            work.connections.len(),
            gateway.client.connections
        ));
    }
    if let Some(xid) = work.repeated.first() {
        return violation(format!("the client has sent XID {xid:08x} twice"));
    }
    work.succeeded(gateway)?;
    Ok(Passed)
}

fn invalidation(gateway: &mut Gateway<'_>) -> Verdict {
    if !offer(gateway)?.1.invalidation() {
        return unimplemented("the client does not set R");
    }
    let work = gateway.work(Shape {
        invalidate: Invalidate::IfAgreed,
        ..Shape::default()
    })?;
    completed(gateway, &work)
}

/// Replies invalidate Steering Tags of their calls, although one side has cleared R.
fn unasked_invalidation(gateway: &mut Gateway<'_>) -> Verdict {
    let client_sets_r = Private::find(&gateway.plain()?.first()?.private)
        .is_some_and(|(_, found)| found.invalidation());
    let work = gateway.work(Shape {
        invalidate: Invalidate::Always,
        ..with(Private::new(SIZE, SIZE, !client_sets_r).octets())
    })?;
    completed(gateway, &work)
}

/// Replies that invalidate a Steering Tag have completed their calls.
fn completed(gateway: &Gateway<'_>, work: &Work) -> Verdict {
    work.first()?;
    let unposted = |why: &&String| why.starts_with(POST_FAILED);
    if let Some(why) = work.not_invalidated.as_ref().filter(unposted) {
        return inconclusive(format!("this device cannot send with invalidate: {why}"));
    }
    if work.connections.iter().all(|seen| seen.invalidated == 0) {
        return inconclusive("the client has made no call with chunks");
    }
    undisturbed(gateway, work)
}

fn no_invalidation(gateway: &mut Gateway<'_>) -> Verdict {
    if !offer(gateway)?.1.invalidation() {
        return unimplemented("the client does not set R");
    }
    let work = gateway.plain()?;
    if work.calls.iter().all(|call| call.key().is_none()) {
        return inconclusive("the client has made no call with chunks");
    }
    if !gateway.client.works {
        let other = gateway.work(Shape {
            invalidate: Invalidate::IfAgreed,
            ..Shape::default()
        })?;
        if other.status == Some(0) {
            return violation("the work succeeds only if replies invalidate");
        }
    }
    undisturbed(gateway, &work)
}

fn sizes(gateway: &mut Gateway<'_>, private: Private) -> Verdict {
    offer(gateway)?;
    let work = gateway.work(with(private.octets()))?;
    work.first()?;
    within(gateway, &work, |seen| seen.to_server)?;
    work.succeeded(gateway)?;
    Ok(Passed)
}

/// The client offers a Reply chunk wherever the reply may exceed the threshold.
fn replies_fit(gateway: &mut Gateway<'_>, work: &Rc<Work>) -> Verdict {
    work.first()?;
    if let Some(why) = work.too_long.first() {
        return violation(why.clone());
    }
    if work.connections.iter().all(|seen| seen.long_replies == 0) {
        return inconclusive("no reply has exceeded the threshold");
    }
    work.succeeded(gateway)?;
    Ok(Passed)
}

pub const CASES: &[Case] = &[
    case!(client "rfc8797/4/c1", "the client's reserved bits are zero", Must, RESERVED,
        sends "nothing", accepts "all bits of the flags of the REQ are zero, except R",
        fault "reserved-bits", reserved),
    case!(client "rfc8797/4/c2", "the client's message is at the beginning of the private data", Should, FIRST,
        sends "nothing", accepts "the Format Identifier at offset 0 of the REQ",
        fault "shifted-private", first_octets),
    case!(client "rfc8797/4/c3", "the server's reserved bits are ignored", Must, RESERVED,
    sends "sizes 4096 with all reserved bits set",
    accepts "an inline call of more than 1024 octets; the work succeeds",
    fault "rejects-reserved",
    |gateway| {
        let mut private = Private::new(SIZE, SIZE, false);
        private.flags = 0xfe;
        understood(gateway, private.octets())
    }),
    case!(client "rfc8797/4/c4", "a reconnection without private data has the default sizes", Must, CHANGE,
        sends "sizes 4096; disconnects behind the fourth call; then no private data",
        accepts "calls on later connections, without a Send of more than 1024 octets, and a Reply \
                 chunk where the reply may exceed 1024 octets; no wrong data",
        fault "settings-stay", change),
    case!(client "rfc8797/4.1/c1", "Send with Invalidate completes calls", Must, BOTH,
        sends "R; replies to calls with chunks invalidate their first Steering Tag",
        accepts "the work succeeds on one connection", fault "refuses-invalidation", invalidation),
    case!(client "rfc8797/4.1/c2", "a plain Send completes calls although both have set R", Must, BOTH,
        sends "R; all replies by Send; if the work fails then, the same with replies that invalidate",
        accepts "the work succeeds on one connection",
        fault "needs-invalidation", no_invalidation),
    case!(client "rfc8797/4.1/c3", "Send with Invalidate completes calls although R is clear", May, ONLY_SEND,
        sends "R if the client clears it; replies to calls with chunks invalidate their first Steering Tag",
        accepts "the work succeeds on one connection", fault "refuses-invalidation", unasked_invalidation),
    case!(client "rfc8797/4.2/c1", "Receive Size 1024 of the server is the threshold", Must, SMALLER,
        sends "Send Size 4096, Receive Size 1024",
        accepts "no Send of more than 1024 octets; the work succeeds",
        fault "ignores-receive-size", |gateway| sizes(gateway, Private::new(SIZE, DEFAULT, true))),
    case!(client "rfc8797/4.2/c2", "Receive Size 2048 of the server is the threshold", Must, SMALLER,
        sends "Send Size 4096, Receive Size 2048",
        accepts "no Send of more than 2048 octets; the work succeeds",
        fault "ignores-receive-size", |gateway| sizes(gateway, Private::new(SIZE, 2048, true))),
    case!(client "rfc8797/4.2/c3", "the client keeps its own Send Size", Must, SMALLER,
        sends "Send Size 4096, Receive Size 16384",
        accepts "no Send longer than the client's Send Size; the work succeeds",
        fault "ignores-own-size", |gateway| sizes(gateway, Private::new(SIZE, 16384, true))),
    case!(client "rfc8797/4.2/c4", "the client receives as much as it says", Must, GUARANTEE,
        sends "a Send of the client's Receive Size, with an XID of no call",
        accepts "the work succeeds on one connection",
        fault "small-receives", longest_send),
    case!(client "rfc8797/4.2/c5", "Send Size 1024 of the server makes the client offer Reply chunks", Must,
    "The server uses the smaller of its own send size and the client's reported receive size as the \
     server-to-client inline threshold.",
    sends "both sizes 1024",
    accepts "a Reply chunk where the reply may exceed 1024 octets; the work succeeds",
    fault "no-reply-chunk",
    |gateway| {
        let work = gateway.shared("smallest", smallest)?;
        replies_fit(gateway, &work)
    }),
    case!(client "rfc8797/5.1/c1", "without private data the threshold for calls is 1024", Must, ABSENT,
        sends "no private data", accepts "no Send of more than 1024 octets; the work succeeds",
        fault "default-large", |gateway| defaults(gateway, "silent", silent)),
    case!(client "rfc8797/5.1/c2", "without private data the client expects replies of 1024 octets", Must, ABSENT,
    sends "no private data",
    accepts "a Reply chunk where the reply may exceed 1024 octets; the work succeeds",
    fault "no-reply-chunk",
    |gateway| {
        let work = gateway.shared("silent", silent)?;
        replies_fit(gateway, &work)
    }),
    case!(client "rfc8797/5.1/c3", "with both sizes 1024 the threshold for calls is 1024", Must, SMALLER,
        sends "both sizes 1024", accepts "no Send of more than 1024 octets; the work succeeds",
        fault "ignores-receive-size", |gateway| defaults(gateway, "smallest", smallest)),
    case!(client "rfc8797/5.2/c1", "a server's message at offset 1 is found", Should, SEARCHED,
        sends "an octet and the message, sizes 4096",
        accepts "an inline call of more than 1024 octets; the work succeeds",
        fault "offset-0-only", |gateway| understood(gateway, behind(1))),
    case!(client "rfc8797/5.2/c2", "a server's message at offset 4 is found", Should, SEARCHED,
        sends "four octets and the message, sizes 4096",
        accepts "an inline call of more than 1024 octets; the work succeeds",
        fault "offset-0-only", |gateway| understood(gateway, behind(4))),
    case!(client "rfc8797/5.2/c3", "a server's message at the end of the REP is found", Should, SEARCHED,
        sends "188 octets and the message, sizes 4096",
        accepts "an inline call of more than 1024 octets; the work succeeds",
        fault "offset-0-only", |gateway| understood(gateway, behind(188))),
    case!(client "rfc8797/5.2/c4", "octets behind the server's message are ignored", Should,
    "distinguish the Private Data defined in this document from Private Data inserted at other \
     layers … RFC 8797, section 4: The value \"1\" in this field indicates that exactly eight octets \
     are present",
    sends "the message, sizes 4096, and 100 octets",
    accepts "an inline call of more than 1024 octets; the work succeeds",
    fault "exact-length",
    |gateway| {
        let mut private = Private::new(SIZE, SIZE, false).octets();
        private.extend([0xa5; 100]);
        understood(gateway, private)
    }),
    case!(client "rfc8797/5.2/c5", "private data without the Format Identifier counts as none", Must,
    "RFC 8797, section 5.2: If the RPC-over-RDMA version 1 CM Private Data Format Identifier is \
     not present, an RPC-over-RDMA version 1 receiver MUST behave as if no RPC-over-RDMA version 1 \
     CM Private Data has been provided.",
    sends "eight octets with the identifier in the wrong order, sizes 16384",
    accepts "no Send of more than 1024 octets; the work succeeds", fault "any-identifier",
    |gateway| defaults(gateway, "wrong-order", || {
        let mut private = Private::new(16384, 16384, true).octets();
        private[..4].reverse();
        with(private)
    })),
    case!(client "rfc8797/5.2/c6", "a message of version 2 counts as none", Must, ABSENT,
    sends "a message of version 2, sizes 16384",
    accepts "no Send of more than 1024 octets; the work succeeds",
    fault "any-message-version",
    |gateway| defaults(gateway, "version-2", || {
        let mut private = Private::new(16384, 16384, true).octets();
        private[4] = 2;
        with(private)
    })),
    case!(client "rfc8797/5.2/c7", "a message of version 0 counts as none", Must, ABSENT,
    sends "a message of version 0, sizes 16384",
    accepts "no Send of more than 1024 octets; the work succeeds",
    fault "any-message-version",
    |gateway| defaults(gateway, "version-0", || {
        let mut private = Private::new(16384, 16384, true).octets();
        private[4] = 0;
        with(private)
    })),
    case!(client "rfc8797/5.2/c8", "a message that is cut off counts as none", Must, ABSENT,
    sends "private data that ends within the message",
    accepts "no Send of more than 1024 octets; the work succeeds",
    fault "overruns",
    |gateway| {
        if gateway.client.iwarp {
            return defaults(gateway, "cut-off", || with([&FORMAT[..], &[1]].concat()));
        }
        // The REP of InfiniBand has 196 octets, and those that are not sent are zero.
        defaults(gateway, "cut-off", || {
            let mut private = vec![0; 191];
            private.extend(FORMAT);
            private.push(1);
            with(private)
        })
    }),
    case!(client "rfc8797/5.2/c9", "the first valid message counts, behind an invalid one", May, SEARCHED,
    sends "a message of version 9, then one with sizes 4096",
    accepts "an inline call of more than 1024 octets; the work succeeds",
    fault "first-identifier-only",
    |gateway| {
        let mut private = Private::new(DEFAULT, DEFAULT, false).octets();
        private[4] = 9;
        private.extend(Private::new(SIZE, SIZE, false).octets());
        understood(gateway, private)
    }),
];
