// SPDX-License-Identifier: GPL-2.0

//! RFC 8797: private data.

use crate::case::case;
use crate::case::inconclusive;
use crate::case::skip;
use crate::case::unimplemented;
use crate::case::violation;
use crate::case::Case;
use crate::case::Passed;
use crate::case::Problem;
use crate::case::Verdict;
use crate::cases::rfc8166_chunks::null_with_writes;
use crate::cases::rfc8166_nfs::longer_read;
use crate::engine::Memory;
use crate::engine::Offer;
use crate::peer::fits;
use crate::peer::Link;
use crate::peer::Service;
use crate::peer::Target;
use crate::peer::DEFAULT;
use crate::wire;
use crate::wire::Header;
use crate::wire::Private;
use crate::wire::Segment;
use crate::wire::FORMAT;

const RESERVED: &str =
    "Senders MUST set these bits to zero, and receivers MUST ignore their value.";
const RECONNECTION: &str = "An implementation of the extension described in this document MUST be \
                            prepared for the settings to change upon a reconnection.";
const STAG: &str =
    "Each RDMA Send with Invalidate MUST invalidate an STag associated only with the Transaction \
     ID (XID) in the rdma_xid field of the RPC-over-RDMA Transport Header it carries.";
const ONLY_SEND: &str =
    "When either peer on a connection clears this flag, the responder MUST use only RDMA Send when \
     transmitting RPC Replies.";
const SIZES: &str = "The server uses the smaller of its own send size and the client's reported \
                     receive size as the server-to-client inline threshold.";
const CALLS: &str = "RFC 8797, section 4.2: The client uses the smaller of its own send size and \
                     the server's reported receive size as the client-to-server inline threshold.";
const AS_IF_NONE: &str =
    "RFC 8797, section 5.1: When a peer does not receive a CM Private Data message that conforms \
     to Section 4, … the peer MUST behave as if a Private Data message was received in which (1) \
     bit 15 of the Flags field is zero and (2) both Size fields contain the value zero.";
const SEARCH: &str = "the buffer containing the received Private Data is searched for the Format \
                      Identifier word. The offset of the Format Identifier is not restricted to \
                      any alignment.";
const ABSENT: &str =
    "RFC 8797, section 5.2: If the RPC-over-RDMA version 1 CM Private Data Format Identifier is \
     not present, an RPC-over-RDMA version 1 receiver MUST behave as if no RPC-over-RDMA version 1 \
     CM Private Data has been provided.";
const UNSEEN: &str =
    "no invalidation is seen, and not every iWARP device, siw for one, shows one to programs";
const EXTENDED: &str =
    "New formats would take the form of extensions of the format described in this document with \
     added fields starting at byte eight of the format … RFC 8797, section 5.2: The Format \
     Identifier field … is provided to enable implementations to distinguish the Private Data \
     defined in this document from Private Data inserted at other layers … the receiver should \
     check that … the size of the content does not overrun the length of the buffer.";

/// The message of the server, if it has one.
fn message(target: &Target<'_>) -> Result<(usize, Private), Problem> {
    Private::find(&target.server.private)
        .ok_or(Problem::Unimplemented("the server sends no message".into()))
}

/// Reserved bits set no R, and do not make a message with R void.
fn reserved(target: &mut Target<'_>, flags: u8) -> Verdict {
    let mut private = Private::new(4096, DEFAULT, false);
    private.flags = flags;
    let plain = no_invalidation(target, &private.octets());
    each(plain, valid_with(target, flags))
}

/// A message with R that has an effect has one with these flags, too.
fn valid_with(target: &mut Target<'_>, flags: u8) -> Verdict {
    let mut private = Private::new(262_144, 8192, true);
    private.flags |= flags;
    if acted_upon(target, &shifted(0))? && !acted_upon(target, &private.octets())? {
        let flags = private.flags;
        return violation(format!("a message with flags {flags:#04x} has no effect"));
    }
    Ok(Passed)
}

/// Calls with chunks work, and are answered by plain Sends.
fn no_invalidation(target: &mut Target<'_>, private: &[u8]) -> Verdict {
    {
        let mut link = target.connect(private)?;
        plain_sends(&mut link)?;
    }
    sees_invalidation(target)
}

/// This side's device shows what a Send invalidates, so that a plain Send is known for one. Not
/// every iWARP device shows it to programs: there the server has to invalidate something first.
fn sees_invalidation(target: &mut Target<'_>) -> Verdict {
    if !target.server.iwarp {
        return Ok(Passed);
    }
    let mut link = target.small_replies(true)?;
    let (_, invalidated) = null_with_chunk(&mut link, false)?;
    match invalidated {
        Some(_) => Ok(Passed),
        None => skip(UNSEEN),
    }
}

/// Two halves of a case. A violation counts more than an inconclusive or a skipped half.
fn each(first: Verdict, second: Verdict) -> Verdict {
    match (first, second) {
        (Ok(_) | Err(Problem::Skip(_)), Err(problem))
        | (Err(Problem::Inconclusive(_)), Err(problem @ Problem::Violation(_))) => Err(problem),
        (first, _) => first,
    }
}

/// The replies to calls with chunks invalidate nothing.
fn plain_sends(link: &mut Link) -> Result<(), Problem> {
    for number in 0..2 {
        is_plain(null_with_chunk(link, number == 1)?.1)?;
    }
    is_plain(with_used_chunk(link)?.1)
}

fn is_plain(invalidated: Option<u32>) -> Result<(), Problem> {
    match invalidated {
        Some(key) => violation(format!("the reply is a Send with Invalidate of {key:#x}")),
        None => Ok(()),
    }
}

/// Exposes memory for results. Where this side has set R, the server may invalidate the memory,
/// which ends the connection if the memory has no window.
fn result_memory(link: &mut Link, length: usize) -> Result<Segment, Problem> {
    let segment = link.writable(length)?;
    let window = link.memories.last().is_some_and(Memory::has_window);
    if link.offers_invalidation && !link.connection.is_iwarp() && !window {
        return skip("this side's device has no memory that can be invalidated remotely");
    }
    Ok(segment)
}

/// Calls NULL with a Reply chunk or a Write chunk. Returns the handle, and the one that the reply
/// invalidated.
fn null_with_chunk(link: &mut Link, reply: bool) -> Result<(u32, Option<u32>), Problem> {
    let xid = link.xid();
    let segment = result_memory(link, 256)?;
    let mut header = Header::msg(xid);
    if reply {
        header.reply = Some(vec![segment]);
    } else {
        header.writes = vec![vec![segment]];
    }
    let rpc = link.null_call(xid);
    let answer = link.call(&header, &rpc)?;
    answer.results()?;
    Ok((segment.handle, answer.invalidated))
}

/// The same with a reply that needs its Reply chunk. The call is NULL if the server has no such
/// procedure, or if the call would have a Read chunk, which the server may invalidate instead.
fn with_used_chunk(link: &mut Link) -> Result<(u32, Option<u32>), Problem> {
    let xid = link.xid();
    // The headers have 52 octets, so the reply exceeds the threshold by 12. Much longer results
    // would need more than the 50 operations that Linux 6.12 takes.
    let results = link.to_client - 40;
    let segment = result_memory(link, results + 256)?;
    let mut header = Header::msg(xid);
    header.reply = Some(vec![segment]);
    let (long, rpc) = match link.server.call_for(xid, results) {
        Ok(rpc) if header.with(&rpc).len() <= link.to_server => (true, rpc),
        _ => (false, link.null_call(xid)),
    };
    let answer = link.call(&header, &rpc)?;
    answer.results()?;
    if long && answer.invalidated.is_none() && answer.header.procedure != wire::NOMSG {
        return inconclusive("a long reply does not use its Reply chunk");
    }
    Ok((segment.handle, answer.invalidated))
}

/// Returns whether the server acts upon a message in this private data: whether it invalidates
/// remotely, or sends a reply of 1500 octets inline that could go by a Reply chunk.
fn acted_upon(target: &mut Target<'_>, private: &[u8]) -> Result<bool, Problem> {
    let mut link = target.connect(private)?;
    let (_, invalidated) = null_with_chunk(&mut link, false)?;
    if invalidated.is_some() {
        return Ok(true);
    }
    let xid = link.xid();
    let Ok(rpc) = target.server.call_for(xid, 1448) else {
        return Ok(false);
    };
    let mut header = Header::msg(xid);
    header.reply = Some(vec![link.writable(4096)?]);
    let answer = link.call(&header, &rpc)?;
    answer.results()?;
    Ok(answer.length > DEFAULT)
}

/// A message with R and large sizes, behind `before` octets of something else.
fn shifted(before: usize) -> Vec<u8> {
    let mut private = vec![0xa5; before];
    private.extend(Private::new(262_144, 8192, true).octets());
    private
}

/// The server acts upon a message at offset 0. One without a message of its own need not.
fn acts(target: &mut Target<'_>) -> Result<(), Problem> {
    if acted_upon(target, &shifted(0))? {
        return Ok(());
    }
    message(target)?;
    inconclusive("at offset 0, too, nothing shows whether the server found the message")
}

fn at_offset(target: &mut Target<'_>, offset: usize) -> Verdict {
    acts(target)?;
    if !acted_upon(target, &shifted(offset))? {
        return violation(format!(
            "the message at offset {offset} has no effect, and the one at offset 0 has"
        ));
    }
    Ok(Passed)
}

/// Private data that holds no message: R clear, and both thresholds 1024.
fn as_if_none(target: &mut Target<'_>, private: &[u8]) -> Verdict {
    let plain = no_invalidation(target, private);
    let mut link = target.connect(private)?;
    link.to_client = DEFAULT;
    each(plain, long_reply(&mut link, DEFAULT))
}

/// A reply of `threshold` + 4 octets goes by the Reply chunk. It invalidates nothing, except if
/// both sides have set R.
fn long_reply(link: &mut Link, threshold: usize) -> Verdict {
    let xid = link.xid();
    let wanted = threshold + 4 - 52;
    let rpc = link.server.call_for(xid, wanted)?;
    let mut header = Header::msg(xid);
    header.reply = Some(vec![link.writable(threshold + 256)?]);
    let answer = link.call(&header, &rpc)?;
    let found = answer.results()?.len();
    fits(answer.length, threshold)?;
    if !link.both_invalidate {
        is_plain(answer.invalidated)?;
    }
    if found < wanted {
        return inconclusive(format!("the results have {found} octets, not {wanted}"));
    }
    Ok(Passed)
}

/// The client's Receive Size exceeds the server's Send Size.
fn own_send_size(target: &mut Target<'_>) -> Verdict {
    message(target)?;
    let size = target.server.offers().send_size();
    // The scratch file has 5000 octets.
    if size > 4096 {
        return skip(format!("the server's Send Size is {size}"));
    }
    // As long as the suite's own Receives.
    longer_reply(target, 8192, size)
}

/// With this Receive Size, a reply longer than `threshold` goes by the Reply chunk. The call is
/// READ if the Send Size is known, because servers of NFS limit the operations of a COMPOUND.
fn longer_reply(target: &mut Target<'_>, receive: usize, threshold: usize) -> Verdict {
    match (&target.server.service, &target.server.export) {
        (Service::Nfs4(_), Some(_)) if message(target).is_ok() => longer_read(target, receive, 4),
        (Service::Nfs4(_), None) => skip("only with --export"),
        _ => {
            let mut link = target.connect(&Private::new(262_144, receive, false).octets())?;
            long_reply(&mut link, threshold)
        }
    }
}

fn reconnection(target: &mut Target<'_>) -> Verdict {
    {
        let mut link = target.connect(&shifted(0))?;
        null_with_chunk(&mut link, false)?;
    }
    let mut link = target.small_replies(false)?;
    let (_, invalidated) = null_with_chunk(&mut link, false)?;
    if invalidated.is_some() {
        return violation("the second connection cleared R, and is answered with Invalidate");
    }
    let short = long_reply(&mut link, DEFAULT);
    each(sees_invalidation(target), short)
}

/// Connects with both R set.
fn both(target: &mut Target<'_>) -> Result<Link, Problem> {
    let link = target.small_replies(true)?;
    if !link.both_invalidate {
        return unimplemented("the server does not set R");
    }
    Ok(link)
}

fn own_tags(target: &mut Target<'_>) -> Verdict {
    let mut link = both(target)?;
    let mut used = false;
    for number in 0..6 {
        let (handle, invalidated) = match number % 3 {
            2 => with_used_chunk(&mut link)?,
            kind => null_with_chunk(&mut link, kind == 1)?,
        };
        match invalidated {
            Some(key) if key != handle => {
                return violation(format!("the reply invalidates {key:#x}, not {handle:#x}"))
            }
            Some(_) => used = true,
            None => (),
        }
    }
    invalidates(&link, used)
}

/// Where nothing was invalidated, nothing is known of what the server invalidates.
fn invalidates(link: &Link, seen: bool) -> Verdict {
    if seen {
        Ok(Passed)
    } else if link.connection.is_iwarp() {
        skip(UNSEEN)
    } else {
        unimplemented("the server sets R, and never invalidates")
    }
}

fn tags_of_two_calls(target: &mut Target<'_>) -> Verdict {
    let mut link = both(target)?;
    // Until the first reply, there is one credit.
    if link.null()?.header.credits < 2 {
        return skip("the server grants 1 credit");
    }
    let mut calls = Vec::new();
    for _ in 0..2 {
        let xid = link.xid();
        let segment = result_memory(&mut link, 256)?;
        let mut header = Header::msg(xid);
        header.writes = vec![vec![segment]];
        let octets = header.with(&link.null_call(xid));
        calls.push((xid, segment.handle, octets));
    }
    let messages: Vec<_> = calls.iter().map(|(_, _, octets)| octets.clone()).collect();
    link.send_all(&messages)?;
    let mut used = false;
    for (xid, handle, _) in calls {
        let message = link.receive_of(xid)?;
        match link.decode(xid, &message)?.invalidated {
            Some(key) if key != handle => {
                return violation(format!(
                    "the reply {xid:08x} invalidates {key:#x}; its call had {handle:#x}"
                ))
            }
            Some(_) => used = true,
            None => (),
        }
    }
    invalidates(&link, used)
}

fn without_chunks(target: &mut Target<'_>) -> Verdict {
    let mut link = both(target)?;
    let (_, before) = null_with_chunk(&mut link, false)?;
    for _ in 0..3 {
        if let Some(key) = link.null()?.invalidated {
            return violation(format!(
                "a reply to a call without chunks invalidates {key:#x}"
            ));
        }
    }
    invalidates(&link, before.is_some())
}

/// A call whose first Write chunk is empty has no Steering Tag there. Whether the call succeeds is
/// another case.
fn empty_first_chunk(target: &mut Target<'_>) -> Verdict {
    let mut link = both(target)?;
    let (_, before) = null_with_chunk(&mut link, false)?;
    for shape in [&[0][..], &[0, 1]] {
        let header = null_with_writes(&mut link, shape)?;
        let message = link.receive_of(header.xid).or_else(|problem| {
            inconclusive(format!("of an empty Write chunk: {}", problem.reason()))
        })?;
        let mut own = header.writes.iter().flatten();
        if let Some(key) = message.invalidated {
            if !own.any(|segment| segment.handle == key) {
                return violation(format!(
                    "the reply invalidates {key:#x}, which its call did not have"
                ));
            }
        }
    }
    invalidates(&link, before.is_some())
}

fn server_clears(target: &mut Target<'_>) -> Verdict {
    if target.server.offers().invalidation() {
        return skip("the server sets R");
    }
    no_invalidation(target, &Private::new(4096, DEFAULT, true).octets())
}

fn call_of_receive_size(target: &mut Target<'_>) -> Verdict {
    message(target)?;
    let size = target.server.offers().receive_size();
    let mut link = target.connect(&Private::new(262_144, 4096, false).octets())?;
    let xid = link.xid();
    let header = Header::msg(xid);
    let rpc = target.server.call_of(xid, size - 28)?;
    let mut header = Header {
        reply: None,
        ..header
    };
    let segment = link.writable(size + 256)?;
    // The Reply chunk takes 20 octets of the header.
    header.reply = Some(vec![segment]);
    let rpc = match target.server.call_of(xid, size - header.octets().len()) {
        Ok(shorter) => shorter,
        Err(_) => rpc,
    };
    let octets = header.with(&rpc);
    if octets.len() != size {
        return inconclusive(format!("the call has {} octets, not {size}", octets.len()));
    }
    link.send(&octets)?;
    let message = link.receive_of(xid)?;
    link.decode(xid, &message)?.results()?;
    Ok(Passed)
}

fn longest(target: &mut Target<'_>) -> Verdict {
    let room = target.server.request_room();
    let mut private = Private::new(4096, 4096, false).octets();
    private.resize(room, 0xff);
    let mut link = target.connect(&private)?;
    link.null()?;
    Ok(Passed)
}

fn connects_only(target: &mut Target<'_>, private: &[u8]) -> Verdict {
    let mut link = target.connect_offer(&Offer {
        private: private.to_vec(),
        ..Offer::default()
    })?;
    link.null()?;
    Ok(Passed)
}

/// Octets of a message that ends too early, at the end of what the transport carries.
fn truncated(target: &mut Target<'_>, length: usize) -> Verdict {
    let message = Private::new(262_144, 262_144, true).octets();
    if target.server.iwarp {
        return as_if_none(target, &message[..length]);
    }
    // The transport fills the private data up to its length with zeros, so the message ends at
    // that length.
    let mut private = vec![0; target.server.request_room() - length];
    private.extend(&message[..length]);
    as_if_none(target, &private)
}

fn of_version(target: &mut Target<'_>, version: u8) -> Verdict {
    let mut private = Private::new(262_144, 262_144, true).octets();
    private[4] = version;
    as_if_none(target, &private)
}

fn second_message(target: &mut Target<'_>) -> Verdict {
    acts(target)?;
    let mut private = FORMAT.to_vec();
    private.extend([9, 0, 0, 0]);
    private.extend(shifted(0));
    if !acted_upon(target, &private)? {
        return unimplemented("the search ends at the first Format Identifier");
    }
    Ok(Passed)
}

fn extended(target: &mut Target<'_>) -> Verdict {
    let mut private = shifted(0);
    private.extend([0xff; 16]);
    if !acted_upon(target, &shifted(0))? {
        return connects_only(target, &private);
    }
    if !acted_upon(target, &private)? {
        return violation("octets behind the message make it void");
    }
    Ok(Passed)
}

pub const CASES: &[Case] = &[
    case!("rfc8797/4/1", "the Reserved bits of the REP are zero", Must, RESERVED,
    sends "a REQ with a message",
    accepts "a flags octet of 0 or 1; without a message in the REP the case is unimplemented",
    fault "rep-reserved",
    |target| {
        let (_, found) = message(target)?;
        if found.flags & 0xfe != 0 {
            return violation(format!("the flags octet is {:#04x}", found.flags));
        }
        Ok(Passed)
    }),
    case!("rfc8797/4/2", "the REP's Format Identifier is in network byte order", Must,
    "the value of this field is always 0xf6ab0e18, in network byte order.",
    sends "a REQ with a message",
    accepts "a message without octets 18 0e ab f6; without one the case is unimplemented",
    fault "rep-little-endian",
    |target| {
        let mut reversed = FORMAT;
        reversed.reverse();
        if target.server.private.windows(4).any(|window| window == reversed) {
            return violation("the REP holds 18 0e ab f6");
        }
        message(target)?;
        Ok(Passed)
    }),
    case!("rfc8797/4/3", "Reserved bit 1 of the REQ is ignored", Must, RESERVED,
        sends "a REQ with flags 0x02, and one with 0x03; calls with chunks",
        accepts "REP, SUCCESS by plain Sends; with R, the effect that R alone has, if any",
        fault "any-flag-is-r", |target| reserved(target, 0x02)),
    case!("rfc8797/4/4", "Reserved bit 2 of the REQ is ignored", Must, RESERVED,
        sends "a REQ with flags 0x04, and one with 0x05; calls with chunks",
        accepts "REP, SUCCESS by plain Sends; with R, the effect that R alone has, if any",
        fault "any-flag-is-r", |target| reserved(target, 0x04)),
    case!("rfc8797/4/5", "Reserved bit 3 of the REQ is ignored", Must, RESERVED,
        sends "a REQ with flags 0x08, and one with 0x09; calls with chunks",
        accepts "REP, SUCCESS by plain Sends; with R, the effect that R alone has, if any",
        fault "any-flag-is-r", |target| reserved(target, 0x08)),
    case!("rfc8797/4/6", "Reserved bit 4 of the REQ is ignored", Must, RESERVED,
        sends "a REQ with flags 0x10, and one with 0x11; calls with chunks",
        accepts "REP, SUCCESS by plain Sends; with R, the effect that R alone has, if any",
        fault "any-flag-is-r", |target| reserved(target, 0x10)),
    case!("rfc8797/4/7", "Reserved bit 5 of the REQ is ignored", Must, RESERVED,
        sends "a REQ with flags 0x20, and one with 0x21; calls with chunks",
        accepts "REP, SUCCESS by plain Sends; with R, the effect that R alone has, if any",
        fault "any-flag-is-r", |target| reserved(target, 0x20)),
    case!("rfc8797/4/8", "Reserved bit 6 of the REQ is ignored", Must, RESERVED,
        sends "a REQ with flags 0x40, and one with 0x41; calls with chunks",
        accepts "REP, SUCCESS by plain Sends; with R, the effect that R alone has, if any",
        fault "any-flag-is-r", |target| reserved(target, 0x40)),
    case!("rfc8797/4/9", "Reserved bit 7 of the REQ is ignored", Must, RESERVED,
        sends "a REQ with flags 0x80, and one with 0x81; calls with chunks",
        accepts "REP, SUCCESS by plain Sends; with R, the effect that R alone has, if any",
        fault "any-flag-is-r", |target| reserved(target, 0x80)),
    case!("rfc8797/4/10", "all Reserved bits of the REQ are ignored", Must, RESERVED,
        sends "a REQ with flags 0xfe, and one with 0xff; calls with chunks",
        accepts "REP, SUCCESS by plain Sends; with R, the effect that R alone has, if any",
        fault "rejects-reserved", |target| reserved(target, 0xfe)),
    case!("rfc8797/4/11", "settings change upon a reconnection", Must, RECONNECTION,
        sends "a connection with R and 8192 octets, then one without R and with 1024 octets",
        accepts "plain Sends of at most 1024 octets on the second one",
        fault "settings-stay", reconnection),
    case!("rfc8797/4.1/1", "a reply invalidates a Steering Tag of its own call", Must, STAG,
        sends "NULL with a Write chunk or a Reply chunk, and calls whose replies need the Reply \
               chunk, both R set",
        accepts "Send with Invalidate of a handle of that call; a server that only sends is \
                 unimplemented",
        fault "wrong-stag", own_tags),
    case!("rfc8797/4.1/2", "two calls under way: each reply invalidates its own tag", Must, STAG,
        sends "two NULL with a Write chunk each, both R set",
        accepts "Sends with Invalidate of a handle of the same call, or Sends; a server that never \
                 invalidates is unimplemented",
        fault "wrong-stag", tags_of_two_calls),
    case!("rfc8797/4.1/3", "a reply to a call without chunks invalidates nothing", Must, STAG,
        sends "NULL with a Write chunk, then NULL without chunks, both R set",
        accepts "Send for the calls without chunks; a server that never invalidates is \
                 unimplemented",
        fault "wrong-stag", without_chunks),
    case!("rfc8797/4.1/4", "the client clears R: only Send", Must, ONLY_SEND,
        sends "a REQ with R clear, NULL with chunks, and a call whose reply needs its Reply chunk",
        accepts "SUCCESS by Send", fault "invalidates-used-chunks",
        |target| no_invalidation(target, &Private::new(4096, DEFAULT, false).octets())),
    case!("rfc8797/4.1/5", "the server clears R, and the client sets it: only Send", Must, ONLY_SEND,
        sends "a REQ with R set, NULL with chunks, and a call whose reply needs its Reply chunk",
        accepts "SUCCESS by Send",
        fault "hidden-r", server_clears),
    case!("rfc8797/4.1/6", "a call whose first chunk is empty invalidates no tag of another one",
        Must, STAG,
        sends "NULL with a Write chunk, then with an empty one, alone and in front of another one, \
               both R set",
        accepts "Send with Invalidate of a handle of that call; a server that only sends is \
                 unimplemented",
        fault "wrong-stag", needs [Destructive], empty_first_chunk),
    case!("rfc8797/4.2/1", "a call as long as the server's Receive Size arrives", Must, CALLS,
        sends "an RDMA_MSG of exactly that many octets, with a Reply chunk",
        accepts "SUCCESS; without a message in the REP the case is unimplemented",
        fault "small-receives", call_of_receive_size),
    case!("rfc8797/4.2/2", "a reply longer than the client's Receive Size is no Send", Must, SIZES,
    sends "Receive Size 1024, a call with a Reply chunk, a reply of 1028 octets",
    accepts "RDMA_NOMSG, and the reply in the chunk",
    fault "ignores-threshold",
    |target| {
        let mut link = target.small_replies(false)?;
        long_reply(&mut link, DEFAULT)
    }),
    case!("rfc8797/4.2/3", "Receive Size 2048: a reply of 2052 octets is no Send", Must, SIZES,
    sends "Receive Size 2048, a call with a Reply chunk, a reply of 2052 octets",
    accepts "RDMA_NOMSG, and the reply in the chunk",
    fault "ignores-threshold", |target| longer_reply(target, 2048, 2048)),
    case!("rfc8797/4.2/4", "the largest sizes are accepted", Must,
        "Inline threshold sizes from 1024 to 262144 octets can be represented in the Send Size and \
         Receive Size fields.",
        sends "a REQ with both sizes 262144, NULL", accepts "SUCCESS",
        fault "rejects-large-sizes",
        |target| connects_only(target, &Private::new(262_144, 262_144, false).octets())),
    case!("rfc8797/4.2/5", "a reply longer than the server's Send Size is no Send", Must, SIZES,
        sends "Receive Size 8192, a call with a Reply chunk, a reply that is four octets longer than \
               the server's Send Size",
        accepts "RDMA_NOMSG, and the reply in the chunk; without a message in the REP the case is \
                 unimplemented",
        fault "ignores-own-send-size", own_send_size),
    case!("rfc8797/5.1/1", "no private data: R clear, thresholds 1024", Must, AS_IF_NONE,
        sends "a REQ without private data, NULL with chunks, a reply of 1028 octets",
        accepts "plain Sends of at most 1024 octets",
        fault "default-large", |target| as_if_none(target, &[])),
    case!("rfc8797/5.1/2", "private data of something else: as if none", Must, ABSENT,
        sends "a REQ with other octets, NULL with chunks, a reply of 1028 octets",
        accepts "plain Sends of at most 1024 octets",
        fault "default-large", |target| as_if_none(target, &[0x5a; 24])),
    case!("rfc8797/5.1/3", "a Format Identifier in the other byte order is none", Must, ABSENT,
        sends "a REQ with 18 0e ab f6 01 01 ff ff, NULL with chunks, a reply of 1028 octets",
        accepts "plain Sends of at most 1024 octets",
        fault "default-large",
        |target| as_if_none(target, &[0x18, 0x0e, 0xab, 0xf6, 1, 1, 255, 255])),
    case!("rfc8797/5.2/1", "the message is found at offset 1", Should, SEARCH,
        sends "a message with R behind 1 other octet", accepts "the same effect as at offset 0",
        fault "offset-0-only", |target| at_offset(target, 1)),
    case!("rfc8797/5.2/2", "the message is found at offset 2", Should, SEARCH,
        sends "a message with R behind 2 other octets", accepts "the same effect as at offset 0",
        fault "offset-0-only", |target| at_offset(target, 2)),
    case!("rfc8797/5.2/3", "the message is found at offset 3", Should, SEARCH,
        sends "a message with R behind 3 other octets", accepts "the same effect as at offset 0",
        fault "offset-0-only", |target| at_offset(target, 3)),
    case!("rfc8797/5.2/4", "the message is found at offset 4", Should, SEARCH,
        sends "a message with R behind 4 other octets", accepts "the same effect as at offset 0",
        fault "offset-0-only", |target| at_offset(target, 4)),
    case!("rfc8797/5.2/5", "the message is found at offset 7", Should, SEARCH,
        sends "a message with R behind 7 other octets", accepts "the same effect as at offset 0",
        fault "offset-0-only", |target| at_offset(target, 7)),
    case!("rfc8797/5.2/6", "the message is found at offset 16", Should, SEARCH,
        sends "a message with R behind 16 other octets", accepts "the same effect as at offset 0",
        fault "offset-0-only", |target| at_offset(target, 16)),
    case!("rfc8797/5.2/7", "the message is found at offset 36", Should, SEARCH,
        sends "a message with R behind 36 other octets", accepts "the same effect as at offset 0",
        fault "offset-0-only", |target| at_offset(target, 36)),
    case!("rfc8797/5.2/8", "the message is found at offset 48", Should, SEARCH,
        sends "a message with R behind 48 other octets", accepts "the same effect as at offset 0",
        fault "offset-0-only", |target| at_offset(target, 48)),
    case!("rfc8797/5.2/9", "a message of version 0 is none", Must, AS_IF_NONE,
        sends "a message of version 0 with R and 262144 octets, NULL with chunks, a reply of 1028 octets",
        accepts "plain Sends of at most 1024 octets",
        fault "any-message-version", |target| of_version(target, 0)),
    case!("rfc8797/5.2/10", "a message of version 2 is none", Must, AS_IF_NONE,
        sends "a message of version 2 with R and 262144 octets, NULL with chunks, a reply of 1028 octets",
        accepts "plain Sends of at most 1024 octets",
        fault "any-message-version", |target| of_version(target, 2)),
    case!("rfc8797/5.2/11", "a message of version 255 is none", Must, AS_IF_NONE,
        sends "a message of version 255 with R and 262144 octets, NULL with chunks, a reply of 1028 octets",
        accepts "plain Sends of at most 1024 octets",
        fault "any-message-version", |target| of_version(target, 255)),
    case!("rfc8797/5.2/12", "four octets of a message at the end of the private data", Must, AS_IF_NONE,
        sends "the Format Identifier alone at the end, NULL with chunks, a reply of 1028 octets",
        accepts "plain Sends of at most 1024 octets",
        fault "overruns", |target| truncated(target, 4)),
    case!("rfc8797/5.2/13", "five octets of a message at the end of the private data", Must, AS_IF_NONE,
        sends "a message without its last three octets, NULL with chunks, a reply of 1028 octets",
        accepts "plain Sends of at most 1024 octets",
        fault "overruns", |target| truncated(target, 5)),
    case!("rfc8797/5.2/14", "six octets of a message at the end of the private data", Must, AS_IF_NONE,
        sends "a message without its last two octets, NULL with chunks, a reply of 1028 octets",
        accepts "plain Sends of at most 1024 octets",
        fault "overruns", |target| truncated(target, 6)),
    case!("rfc8797/5.2/15", "seven octets of a message at the end of the private data", Must, AS_IF_NONE,
        sends "a message without its last octet, NULL with chunks, a reply of 1028 octets",
        accepts "plain Sends of at most 1024 octets",
        fault "overruns", |target| truncated(target, 7)),
    case!("rfc8797/5.2/16", "the longest private data is accepted", Must,
        "RFC 8797, section 5: Implementations that use this extension must also interoperate fully \
         with RDMA implementations that use CM Private Data for other purposes.",
        sends "a REQ with as many octets as the transport carries, NULL", accepts "SUCCESS",
        fault "rejects-long-private-data", longest),
    case!("rfc8797/5.2/17", "a valid message behind one of another version is found", May, SEARCH,
        sends "a message of version 9, and a valid one behind it", accepts "the effect of the valid one",
        fault "offset-0-only", second_message),
    case!("rfc8797/6/1", "octets behind the message are ignored", Should, EXTENDED,
        sends "a message and 16 octets of ones",
        accepts "the effect of the message; SUCCESS to NULL if no message has an effect",
        fault "exact-length", extended),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_tried_is_no_pass() {
        let skipped = || skip("no long reply");
        assert!(each(Ok(Passed), Ok(Passed)).is_ok());
        for (first, second) in [(Ok(Passed), skipped()), (skipped(), Ok(Passed))] {
            assert!(matches!(each(first, second), Err(Problem::Skip(_))));
        }
        let unclear = || inconclusive("a short reply");
        for (first, second) in [
            (violation("R"), unclear()),
            (unclear(), violation("R")),
            (violation("R"), skipped()),
            (skipped(), violation("R")),
            (Ok(Passed), violation("R")),
        ] {
            assert!(matches!(each(first, second), Err(Problem::Violation(_))));
        }
    }
}
