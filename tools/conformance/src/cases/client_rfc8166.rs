// SPDX-License-Identifier: GPL-2.0

//! RFC 8166, for clients.

use std::cell::Cell;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use crate::case::case;
use crate::case::inconclusive;
use crate::case::skip;
use crate::case::unimplemented;
use crate::case::violation;
use crate::case::Case;
use crate::case::Passed;
use crate::case::Problem;
use crate::case::Verdict;
use crate::cases::client_rfc8797::more_connections;
use crate::cases::client_rfc8797::offer;
use crate::cases::client_rfc8797::undisturbed;
use crate::cases::rfc8166_header::DISCARDS_DONE;
use crate::engine::Connection;
use crate::engine::DISCONNECTED;
use crate::gateway::error;
use crate::gateway::error_in;
use crate::gateway::Call;
use crate::gateway::Gateway;
use crate::gateway::Next;
use crate::gateway::Reduction;
use crate::gateway::Seen;
use crate::gateway::Shape;
use crate::gateway::Work;
use crate::gateway::LOAD;
use crate::gateway::STORE;
use crate::gateway::WRONG_DATA;
use crate::peer::ECHO;
use crate::peer::NFS;
use crate::wire;
use crate::wire::room;
use crate::wire::roundup;
use crate::wire::words;
use crate::wire::Header;
use crate::wire::Procedure;
use crate::wire::ReadSegment;
use crate::wire::Segment;
use crate::wire::Transport;

pub const EXCESS: &str = "RFC 8166, section 3.3.1: A Requester MUST NOT send unacknowledged \
                      requests in excess of the Responder's granted credit limit.";
const LOWER: &str = "The number of allowed new requests the Requester may send is then the lower \
                     of the current requested and granted credit values, minus the number of \
                     requests in flight.";
pub const DEADLOCK: &str = "RFC 8166, section 3.3.1: The granted value MUST NOT be zero, since \
                        such a value would result in deadlock.";
const INITIAL: &str = "a Requester MUST NOT assume more than one credit is available and MUST \
                       receive a valid reply from the Responder carrying the actual number of \
                       available credits, prior to sending its next request.";
const DISCARDS: &str = "If errors are detected in the RPC-over-RDMA header of an RPC Reply \
                        message, a Requester MUST silently discard the message.";
const SHORT: &str = "If an incoming RPC-over-RDMA message is not as long as a minimal size \
                     RPC-over-RDMA header (28 bytes), the receiver cannot trust the value of the \
                     XID field; therefore, it MUST silently discard the message";
const UNMATCHED: &str =
    "RFC 8167, section 2.4: When receiving a Reply, a Requester matches the XID value in the Reply \
     with a Call it previously sent. … RFC 8166, section 4.2.4: A Requester MUST NOT send an \
     RPC-over-RDMA header with the RDMA_ERROR procedure.";
const COMPLETES: &str = "RFC 8166, section 4.5: An RDMA_ERROR procedure indicates a permanent \
                         error. Receipt of this procedure completes the RPC transaction associated \
                         with XID in the rdma_xid field.";
const UNDECODED: &str =
    "A receiver MUST silently discard an RDMA_ERROR procedure that it cannot decode.";
const POSITION: &str = "RFC 8166, section 3.4.5: The value in this field MUST be a multiple of \
                        four.";
const RECOVERY: &str = "RPC recovery can handle complete loss and re-establishment of a transport \
                        connection.";
const PROTECTED: &str = "The Requester endpoint must ensure that memory regions associated with \
                         each RPC transaction are protected from Responder access before allowing \
                         upper-layer access to the data contained in them.";
const MAXIMUM: &str = "To accommodate all possible replies for the procedure in the RPC Call message, \
                       a Requester must allocate reply resources based on the maximum possible size \
                       of the expected RPC Reply message.";
pub const ACCESS: &str = "RFC 8166, section 8.1: The use of an RPC-over-RDMA transport protocol \
                      MUST NOT introduce vulnerabilities to system memory contents nor to memory \
                      owned by user processes.";

/// Where calls under way are counted, replies are sent when no call has come for this long. A client
/// that stalls for less shows all calls that it sends at once.
pub const HOLD: Duration = Duration::from_millis(100);

/// Each call of the work without faults has a property.
fn each(gateway: &mut Gateway<'_>, holds: fn(&Call) -> Result<(), String>) -> Verdict {
    let work = gateway.plain()?;
    work.first()?;
    if let Some(why) = work.malformed.first() {
        return violation(why.clone());
    }
    if let Some(why) = work.unreachable.first() {
        return inconclusive(format!("memory of the client cannot be reached: {why}"));
    }
    if work.calls.is_empty() {
        return inconclusive("the client has made no call");
    }
    for call in &work.calls {
        if let Err(why) = holds(call) {
            return violation(format!("call {}: {why}", call.number));
        }
    }
    Ok(Passed)
}

/// The Read chunks of all calls can be read: they are read before the client has a reason to
/// give up the call. A second run shows that another failure was not the cause.
fn are_readable(gateway: &mut Gateway<'_>) -> Result<(), Problem> {
    if gateway.plain()?.unreadable.is_none() {
        return Ok(());
    }
    match gateway.work(Shape::default())?.unreadable {
        Some(why) => violation(format!("a Read chunk cannot be read: {why}")),
        None => inconclusive("a Read chunk could not be read in one of two runs"),
    }
}

/// Whether each Read chunk ends before the next Position. A chunk at Position 0 has the rest of the
/// call around the other ones.
fn are_apart(reads: &[ReadSegment]) -> bool {
    let mut lengths = BTreeMap::new();
    for read in reads {
        *lengths.entry(read.position as usize).or_insert(0) += read.segment.length as usize;
    }
    let mut end = 0;
    lengths.range(1..).all(|(&position, &length)| {
        let apart = position >= end;
        end = position + length.next_multiple_of(4);
        apart
    })
}

/// Returns the Read chunks with data of the call: their Positions, and their lengths in octets.
pub fn data_chunks(call: &Call) -> BTreeMap<usize, usize> {
    let mut lengths = BTreeMap::new();
    for read in call.header.reads.iter().filter(|read| read.position > 0) {
        *lengths.entry(read.position as usize).or_insert(0) += read.segment.length as usize;
    }
    lengths
}

/// Returns the length of the Position Zero Read chunk.
fn position_zero(call: &Call) -> Option<usize> {
    let reads = call.header.reads.iter().filter(|read| read.position == 0);
    let lengths = reads.map(|read| read.segment.length as usize);
    lengths.reduce(|sum, length| sum + length)
}

/// Returns a word of the call, at this offset in octets.
fn word_at(call: &Call, at: usize) -> Option<u32> {
    let octets = call.rpc.get(at..at.checked_add(4)?)?;
    Some(u32::from_be_bytes(octets.try_into().ok()?))
}

/// Returns the procedure, if it is one of NFS or of ECHO whose arguments can be seen: those of
/// AUTH_NONE and AUTH_SYS.
fn seen_procedure(call: &Call) -> Option<Procedure> {
    let plain = word_at(call, 24).is_some_and(|flavor| flavor < 2);
    let known = |procedure: &Procedure| [NFS.program, ECHO.program].contains(&procedure.program);
    call.procedure().filter(known).filter(|_| plain)
}

/// Each Read chunk with data is as long as its item, or has the padding, too, if that is `padded`.
/// The length of an item stands in front of it: all eligible arguments of NFS are variable in their
/// length.
fn are_as_long(call: &Call, padded: bool) -> Result<(), String> {
    if seen_procedure(call).is_none() {
        return Ok(());
    }
    for (position, length) in data_chunks(call) {
        let item = position.checked_sub(4).and_then(|at| word_at(call, at));
        let item = item.unwrap_or_default() as usize;
        if length != item && !(padded && length == roundup(item)) {
            return Err(format!(
                "a Read chunk of {length} octets, for an item of {item}"
            ));
        }
    }
    Ok(())
}

/// Whether the call has a Read chunk for an item whose length is odd: no multiple of four.
fn has_odd_item(call: &Call) -> bool {
    let mut items = data_chunks(call)
        .into_keys()
        .map(|position| position.checked_sub(4));
    seen_procedure(call).is_some()
        && items.any(|at| {
            at.and_then(|at| word_at(call, at))
                .is_some_and(|length| length % 4 != 0)
        })
}

/// Each Read chunk with data has an argument that is eligible (RFC 8267, sections 4 and 6.1).
fn are_eligible(call: &Call) -> Result<(), String> {
    // Operations of NFS 4, and the type of a symbolic link.
    const CREATE: u32 = 6;
    const WRITE: u32 = 38;
    const NF4LNK: u32 = 5;
    // Its Access Control Lists are not eligible (RFC 8267, section 5.2).
    const NFSACL: u32 = 100_227;
    // The octets of `sattr` of NFS 2.
    const ATTRIBUTES2: usize = 32;
    let acl = |procedure: &Procedure| procedure.program == NFSACL;
    let Some(procedure) = seen_procedure(call).or(call.procedure().filter(acl)) else {
        return Ok(());
    };
    for (position, length) in data_chunks(call) {
        let before = |words: usize| word_at(call, position.checked_sub(4 * words)?);
        let last = position + roundup(length) == call.rpc.len();
        let eligible = match (procedure.program, procedure.version, procedure.number) {
            // WRITE and SYMLINK. In NFS 2, the attributes follow the path of a link.
            (100_003, 2, 8) => last,
            (100_003, 2, 13) => position + roundup(length) + ATTRIBUTES2 == call.rpc.len(),
            (100_003, 3, 7 | 10) => last,
            // Behind the number of WRITE are the stateid, the offset, the stability and the length.
            (100_003, 4, 1) => {
                before(9) == Some(WRITE) || (before(3), before(2)) == (Some(CREATE), Some(NF4LNK))
            }
            _ => procedure == STORE && last,
        };
        if !eligible {
            let number = procedure.number;
            return Err(format!(
                "procedure {number} has a Read chunk at {position} without an eligible argument"
            ));
        }
    }
    Ok(())
}

/// Returns how many octets READ or LOAD asks for, and its Write chunk. The count is the last argument.
fn asked(call: &Call) -> Option<(usize, &[Segment])> {
    const READ: u32 = 25;
    let count = word_at(call, call.rpc.len().checked_sub(4)?)? as usize;
    let reads = seen_procedure(call).is_some_and(|procedure| {
        let operation = call.rpc.len().checked_sub(32);
        match (procedure.program, procedure.version, procedure.number) {
            (100_003, 3, 6) => true,
            // READ at the end: behind its number are the stateid, the offset and the count.
            (100_003, 4, 1) => operation.and_then(|at| word_at(call, at)) == Some(READ),
            _ => procedure == LOAD,
        }
    });
    match &call.header.writes[..] {
        [chunk] if reads && room(chunk) > 0 => Some((count, chunk)),
        _ => None,
    }
}

/// The Write chunk of READ or LOAD has no room for the padding of what is asked for: neither in its
/// last segment that is needed, nor in one of its own.
fn has_no_room_for_padding(call: &Call) -> Result<(), String> {
    let Some((count, chunk)) = asked(call) else {
        return Ok(());
    };
    let mut begin = 0;
    let padding = chunk.iter().any(|segment| {
        let own = begin >= count && (1..=4).contains(&segment.length);
        begin += segment.length as usize;
        own
    });
    check(
        count % 4 == 0 || !padding && begin != roundup(count),
        format!("a Write chunk of {begin} octets for {count}"),
    )
}

/// Some Write chunk for an odd length has no room for the padding. Others may have it by
/// chance: a buffer whose length is a multiple of four may be longer than what is asked for by
/// one to three.
fn some_without_padding(work: &Work) -> Verdict {
    let odd = |call: &&Call| asked(call).is_some_and(|(count, _)| count % 4 != 0);
    let checks: Vec<_> = work
        .calls
        .iter()
        .filter(odd)
        .map(has_no_room_for_padding)
        .collect();
    match checks.into_iter().reduce(Result::or) {
        Some(Err(why)) => violation(why),
        _ => Ok(Passed),
    }
}

/// The same as `each`, where some call has such a chunk.
fn each_with(
    gateway: &mut Gateway<'_>,
    any: fn(&Call) -> bool,
    holds: fn(&Call) -> Result<(), String>,
) -> Verdict {
    each(gateway, holds)?;
    if gateway.plain()?.calls.iter().any(any) {
        Ok(Passed)
    } else {
        skip("the client has made no call that this is about")
    }
}

/// The same as `each_with`, where one call has the chunk for an odd length.
fn each_odd(
    gateway: &mut Gateway<'_>,
    any: fn(&Call) -> bool,
    odd: fn(&Call) -> bool,
    holds: fn(&Call) -> Result<(), String>,
) -> Verdict {
    each_with(gateway, any, holds)?;
    if gateway.plain()?.calls.iter().any(odd) {
        Ok(Passed)
    } else {
        inconclusive("all chunks are for multiples of four octets")
    }
}

fn has_reads(call: &Call) -> bool {
    !call.header.reads.is_empty()
}

fn is_nomsg(call: &Call) -> bool {
    call.header.procedure == wire::NOMSG
}

/// Whether the call has a Read chunk with data.
fn has_data(call: &Call) -> bool {
    !data_chunks(call).is_empty()
}

fn check(good: bool, why: impl Into<String>) -> Result<(), String> {
    good.then_some(()).ok_or(why.into())
}

fn credits(gateway: &mut Gateway<'_>, grant: u32) -> Verdict {
    credits_from(gateway, Shape::default(), grant)
}

/// A server of this shape grants that many credits. No more calls are under way than are granted. A
/// grant of 2^32-1 shows whether there are more than the client requests.
pub fn credits_from(gateway: &mut Gateway<'_>, shape: Shape, grant: u32) -> Verdict {
    let two = shape.two;
    let work = gateway.work(Shape {
        credits: grant,
        hold: HOLD,
        ..shape
    })?;
    work.first()?;
    for call in &work.calls {
        let mut allowed = call.granted.unwrap_or(1);
        if grant == u32::MAX {
            allowed = allowed.min(call.header.credits).max(1);
        }
        if call.outstanding > allowed as usize {
            return violation(format!(
                "{} calls are under way; {grant} are granted, {} requested",
                call.outstanding, call.header.credits
            ));
        }
    }
    if grant == u32::MAX {
        let requested = |call: &Call| call.outstanding >= call.header.credits as usize;
        if !work.calls.iter().any(requested) {
            return inconclusive("the client has never had as many calls under way as it requests");
        }
    } else if !exceeds(&*many_credits(gateway, two)?, grant as usize) {
        return inconclusive(format!(
            "the client has never had more than {grant} calls under way with more credits"
        ));
    }
    work.succeeded(gateway)?;
    Ok(Passed)
}

/// Lets the client work with many credits, and holds replies back so that its calls are counted.
fn many_credits(gateway: &mut Gateway<'_>, two: bool) -> Result<Rc<Work>, Problem> {
    if two {
        return gateway.shared("many credits of version 2", || Shape {
            hold: HOLD,
            ..Shape::two()
        });
    }
    gateway.shared("many credits", || Shape {
        hold: HOLD,
        ..Shape::default()
    })
}

/// Whether more than `most` calls were under way at some time.
fn exceeds(work: &Work, most: usize) -> bool {
    work.calls.iter().any(|call| call.outstanding > most)
}

/// The grant falls from 32 to 1 after some calls.
fn lowered(gateway: &mut Gateway<'_>) -> Verdict {
    const FULL: usize = 4;
    let work = gateway.work(Shape {
        hold: HOLD,
        on_reply: Box::new(|call, header| {
            if call.number >= FULL {
                header.credits = 1;
            }
        }),
        ..Shape::default()
    })?;
    let mut singles: BTreeMap<usize, usize> = BTreeMap::new();
    for call in &work.calls {
        let singles = singles.entry(call.connection).or_default();
        if call.granted != Some(1) {
            continue;
        }
        // The client may have sent a single call, and calls behind it, before it had the lower grant.
        if call.outstanding > 1 && *singles > 1 {
            return violation(format!(
                "{} calls are under way, 1 is granted",
                call.outstanding
            ));
        }
        *singles += usize::from(call.outstanding == 1);
    }
    if !singles.values().any(|singles| *singles > 1) {
        return inconclusive("the client has made too few calls");
    }
    let later = |call: &Call| call.number > FULL && call.outstanding > 1;
    if !many_credits(gateway, false)?.calls.iter().any(later) {
        return inconclusive("the client has never had two calls under way after its first ones");
    }
    work.succeeded(gateway)?;
    Ok(Passed)
}

/// The first reply is held back.
fn first_reply(gateway: &mut Gateway<'_>) -> Verdict {
    let work = many_credits(gateway, false)?;
    work.first()?;
    for call in &work.calls {
        if call.granted.is_none() && call.outstanding > 1 {
            return violation("the client sends a second call before the first reply");
        }
    }
    if exceeds(&work, 1) {
        Ok(Passed)
    } else {
        inconclusive("the client has never had two calls under way")
    }
}

pub fn grant_zero(gateway: &mut Gateway<'_>, shape: Shape) -> Verdict {
    let work = gateway.work(Shape {
        credits: 0,
        ..shape
    })?;
    if work.calls.len() == 1 {
        return violation(format!("the client stops after one call; {}", work.end()));
    }
    undisturbed(gateway, &work)
}

/// Returns the number of a call behind those with which clients begin: some try these again for
/// minutes.
fn late(gateway: &mut Gateway<'_>) -> Result<usize, Problem> {
    Ok(gateway.plain()?.calls.len() * 2 / 3)
}

/// Whether an RDMA_ERROR with the XID of octets that the client has to discard is a violation.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Silence {
    Always,
    /// A client that accepts calls may take octets that it cannot decode for a call.
    UnlessCalled,
    Never,
}

/// Sends octets in front of the reply to a late call. The client must discard them silently.
fn discards(gateway: &mut Gateway<'_>, octets: fn(&Call) -> Vec<u8>) -> Verdict {
    discards_as(gateway, Shape::default(), Silence::Always, octets)
}

/// The same for octets that need not be a reply.
fn discards_undecodable(gateway: &mut Gateway<'_>, octets: fn(&Call) -> Vec<u8>) -> Verdict {
    discards_as(gateway, Shape::default(), Silence::UnlessCalled, octets)
}

/// The same by a server of this shape. The client may answer.
pub fn discards_from(
    gateway: &mut Gateway<'_>,
    shape: Shape,
    octets: fn(&Call) -> Vec<u8>,
) -> Verdict {
    discards_as(gateway, shape, Silence::Never, octets)
}

/// Sends octets in front of the reply to a call, as a server of this shape. The client must discard
/// them.
///
/// The call has a Write chunk, if the client makes such calls. A client that takes the octets for the
/// reply invalidates its memory, and the RDMA Write that follows fails. Of another call, the client
/// may hide the error.
fn discards_as(
    gateway: &mut Gateway<'_>,
    shape: Shape,
    silence: Silence,
    octets: fn(&Call) -> Vec<u8>,
) -> Verdict {
    let late = late(gateway)?;
    let plain = gateway.plain()?;
    if plain.calls.iter().skip(late / 2).any(has_write_chunk) {
        discards_in(gateway, shape, silence, late / 2, has_write_chunk, octets)
    } else {
        discards_in(gateway, shape, silence, late, |_| true, octets)
    }
}

/// Whether data fits into the first Write chunk of the call.
fn has_write_chunk(call: &Call) -> bool {
    let first = call.header.writes.first();
    first.is_some_and(|chunk| room(chunk) > 0)
}

/// Sends octets in front of the reply to the first call from this number on that suits.
fn discards_in(
    gateway: &mut Gateway<'_>,
    shape: Shape,
    silence: Silence,
    from: usize,
    suits: fn(&Call) -> bool,
    octets: impl Fn(&Call) -> Vec<u8> + 'static,
) -> Verdict {
    let sent: Rc<RefCell<Option<Vec<u8>>>> = Rc::default();
    let own = sent.clone();
    let work = gateway.work(Shape {
        on_call: Box::new(move |call, connection| {
            let mut own = own.borrow_mut();
            if call.number >= from && suits(call) && own.is_none() {
                let _ = connection.send(own.insert(octets(call)));
                // Otherwise the RDMA Write may be done before the client has looked at them.
                thread::sleep(HOLD);
            }
            Next::Serve
        }),
        ..shape
    })?;
    let Some(sent) = sent.take() else {
        return inconclusive("the client has made no late call that suits");
    };
    let called = work.calls.iter().any(|call| call.accepts.is_some());
    match silence {
        Silence::Never => (),
        Silence::UnlessCalled if called => (),
        Silence::Always | Silence::UnlessCalled => is_silent(gateway, &work, &sent)?,
    }
    undisturbed(gateway, &work)
}

/// Whether a message is an RDMA_ERROR.
fn is_error(octets: &[u8]) -> bool {
    octets.get(12..16) == Some(&words(&[wire::ERROR]))
}

/// The client has not answered octets that it has to discard silently.
fn is_silent(gateway: &mut Gateway<'_>, work: &Work, sent: &[u8]) -> Result<(), Problem> {
    let same = |octets: &Vec<u8>| octets.get(..4) == sent.get(..4);
    if work.reverse.iter().any(|it| is_error(it) && same(it)) {
        return violation("the client answers with RDMA_ERROR");
    }
    match work.malformed.first() {
        Some(why) if gateway.plain()?.malformed.is_empty() => violation(why.clone()),
        _ => Ok(()),
    }
}

/// Sends an error with the XID of a call that has been answered, behind the next call on its
/// connection.
fn second_reply(gateway: &mut Gateway<'_>) -> Verdict {
    let sent: Rc<RefCell<Option<Vec<u8>>>> = Rc::default();
    let own = sent.clone();
    let mut earlier = None;
    let work = gateway.work(Shape {
        on_call: Box::new(move |call, connection| {
            let mut own = own.borrow_mut();
            let xid = call.header.xid;
            let suits = call.number > 1 && call.outstanding == 1 && own.is_none();
            match earlier.replace((call.connection, xid)) {
                Some((at, over)) if suits && at == call.connection && over != xid => {
                    let error = words(&[over, wire::REPLY, 0, 0, 0, wire::SYSTEM_ERR]);
                    let _ = connection.send(own.insert(Header::msg(over).with(&error)));
                    // The message has taken the Receive of the reply.
                    thread::sleep(HOLD);
                }
                _ => (),
            }
            Next::Serve
        }),
        ..Shape::default()
    })?;
    let Some(sent) = sent.take() else {
        return inconclusive("no three calls have followed one another on a connection");
    };
    is_silent(gateway, &work, &sent)?;
    undisturbed(gateway, &work)
}

/// Sends in front of the reply to a call that suits an RPC error, whose chunks are those of the call,
/// all of them filled, and then changed.
fn discards_chunks(
    gateway: &mut Gateway<'_>,
    suits: fn(&Call) -> bool,
    change: fn(&Call, &mut Header),
) -> Verdict {
    let from = late(gateway)? / 2;
    if !gateway.plain()?.calls.iter().skip(from).any(suits) {
        return skip("the client has made no late call with such a chunk");
    }
    discards_in(
        gateway,
        Shape::default(),
        Silence::Always,
        from,
        suits,
        move |call| {
            let xid = call.header.xid;
            let mut header = Header {
                writes: call.header.writes.clone(),
                ..call.unused()
            };
            change(call, &mut header);
            match header.procedure {
                wire::NOMSG => header.octets(),
                _ => header.with(&words(&[xid, wire::REPLY, 0, 0, 0, wire::SYSTEM_ERR])),
            }
        },
    )
}

/// Makes the first segment of the chunk longer.
fn lengthen(chunk: &mut [Segment]) {
    chunk[0].length = chunk[0].length.saturating_add(4);
}

/// Returns a reply, an RPC error, that has a header of these words.
fn reply(call: &Call, header: &[u32]) -> Vec<u8> {
    words(
        &[
            &[call.header.xid],
            header,
            &[call.header.xid, wire::REPLY, 0, 0, 0, wire::SYSTEM_ERR],
        ]
        .concat(),
    )
}

/// A client that has completed the call may pause for this much longer than in the work without
/// faults. A client that waits for another reply pauses for seconds.
const PROMPT: Duration = Duration::from_secs(1);

/// Answers a late call with an error. That completes the call: it is not sent again.
fn completes(gateway: &mut Gateway<'_>, rest: &'static [u32]) -> Verdict {
    completes_from(gateway, Shape::default, move |xid| error(xid, 32, rest))
}

/// The same, by a server of this shape, and with these octets for an XID.
pub fn completes_from(
    gateway: &mut Gateway<'_>,
    shape: fn() -> Shape,
    octets: impl Fn(u32) -> Vec<u8> + 'static,
) -> Verdict {
    let any = |_: &Call| true;
    completes_by(gateway, shape, any, move |call, connection| {
        let _ = connection.send(&octets(call.header.xid));
    })
}

/// The most runs, each with one error, until a call is seen to be over.
const TRIES: usize = 3;

/// Lets `answer` send an error to a late call that suits. If the client pauses behind it, another
/// call gets the error in another run.
pub fn completes_by(
    gateway: &mut Gateway<'_>,
    shape: fn() -> Shape,
    suits: fn(&Call) -> bool,
    answer: impl Fn(&Call, &mut Connection) + 'static,
) -> Verdict {
    let late = late(gateway)?;
    let plain = gateway.plain()?;
    let answer = Rc::new(answer);
    let mut from = in_turn(&plain, suits, late).unwrap_or(late);
    let mut verdict = inconclusive("the client has made no late call that could get an error");
    for _ in 0..TRIES {
        let failed = Rc::new(Cell::new(None));
        let (own, answer) = (failed.clone(), answer.clone());
        let work = gateway.work(Shape {
            on_call: Box::new(move |call, connection| {
                if call.number < from || own.get().is_some() || !suits(call) {
                    return Next::Serve;
                }
                own.set(Some(call.number));
                answer(call, connection);
                Next::Answered
            }),
            ..shape()
        })?;
        let Some(number) = failed.get() else {
            break;
        };
        verdict = not_again(&plain, &work, number);
        if !matches!(verdict, Err(Problem::Inconclusive(_))) {
            break;
        }
        // Any other call may be one that nothing waits for.
        let Some(next) = in_turn(&plain, suits, number + 1) else {
            break;
        };
        from = next;
    }
    verdict
}

/// Returns the number of a call that suits, not before `start`, among several that the client makes
/// one at a time: what the client does next follows from an error.
fn in_turn(plain: &Work, suits: fn(&Call) -> bool, start: usize) -> Option<usize> {
    let is_single = |number: usize, before: usize, behind: usize| {
        let calls = plain.calls.iter().take(number + 1 + behind);
        calls
            .skip(number.saturating_sub(before))
            .all(|call| call.outstanding == 1)
    };
    let first = |before, behind| {
        (start..plain.calls.len())
            .find(|&number| suits(&plain.calls[number]) && is_single(number, before, behind))
    };
    // Between calls of which some are under way together, the error may hit one that another thread
    // needs. Another call may follow the first one of several at once before the error arrives.
    first(2, 2).or_else(|| first(0, 1))
}

/// The call with this number is over: it is not sent again. A long pause behind it may be that of a
/// client that has ignored the answer, and has given up the call. Clients also pause for other
/// reasons, so that such a pause decides nothing. The client may have made other calls before the
/// pause.
fn not_again(plain: &Work, work: &Work, number: usize) -> Verdict {
    let failed = work.calls[number].header.xid;
    let again = work.calls[number + 1..]
        .iter()
        .any(|call| call.header.xid == failed);
    if again {
        let mut known = BTreeSet::new();
        if !plain.calls.iter().all(|call| known.insert(call.header.xid)) {
            return inconclusive("the client uses XIDs again without the error, too");
        }
        return violation(format!(
            "the client has sent XID {failed:08x} again after the error"
        ));
    }
    let usual = plain.pauses().into_iter().max();
    let usual = usual.unwrap_or_default();
    let pause = work.pauses().into_iter().skip(number).max();
    let pause = pause.unwrap_or_default();
    if pause > usual + PROMPT {
        return inconclusive(format!(
            "the client pauses for {} ms behind the error, and {} ms at most without it: it may \
             have given up the call by itself",
            pause.as_millis(),
            usual.as_millis()
        ));
    }
    Ok(Passed)
}

/// Answers a late call that has chunks with ERR_CHUNK, by a Send that invalidates its first tag.
fn error_invalidates(gateway: &mut Gateway<'_>) -> Verdict {
    if !offer(gateway)?.1.invalidation() {
        return unimplemented("the client does not set R");
    }
    let has_key = |call: &Call| call.key().is_some();
    completes_by(gateway, Shape::default, has_key, |call, connection| {
        if let Some(key) = call.key() {
            let octets = error(call.header.xid, 32, &[wire::ERR_CHUNK]);
            let _ = connection.send_invalidate(key, &octets);
        }
    })
}

/// Sends an inline reply to a late call twice, first with another XID in its RPC message. Both have
/// the true results: the client may take either of them.
fn two_xids(gateway: &mut Gateway<'_>) -> Verdict {
    let late = late(gateway)?;
    let sent = Rc::new(Cell::new(None));
    let own = sent.clone();
    let work = gateway.work(Shape {
        in_front: Box::new(move |call, octets| {
            if call.number < late || own.get().is_some() {
                return None;
            }
            match Transport::parse(octets) {
                Ok(Transport::Chunks(header, mut rpc)) if header.procedure == wire::MSG => {
                    rpc[0] ^= 0x40;
                    own.set(Some((call.connection, call.number, Instant::now())));
                    Some(header.with(&rpc))
                }
                _ => None,
            }
        }),
        ..Shape::default()
    })?;
    let Some((connection, number, at)) = sent.get() else {
        return inconclusive("no late call has had an inline reply");
    };
    let before = work.calls.iter().take(number + 1);
    let highest = before.map(|call| call.connection).max();
    let mut behind = work.calls.iter().skip(number + 1);
    let next = behind.find(|it| it.connection == connection || Some(it.connection) > highest);
    // A client that has completed the call need not have a Receive for the second reply.
    // Without one, iWARP ends the connection; elsewhere the client ends it later, when a call
    // has no reply.
    let lost = match next {
        Some(call) => call.connection != connection,
        None => work.status.is_some_and(|status| status != 0),
    };
    let refused = |seen: &Seen| {
        let soon = seen.ended_at.is_some_and(|end| end < at + PROMPT);
        let by_client = seen.ended.as_deref() == Some(DISCONNECTED);
        soon && by_client && !seen.iwarp
    };
    // Without faults, this may be the last call on its connection, or the command may fail,
    // too.
    let unusual = match next {
        Some(_) => more_connections(gateway, &work),
        None => gateway.client.works,
    };
    if lost && unusual && work.connections.get(connection).is_some_and(refused) {
        return violation(format!("the client disconnects; {}", work.end()));
    }
    if lost {
        return inconclusive(format!(
            "the connection ends behind the two replies: the second one may have found no Receive; {}",
            work.end()
        ));
    }
    undisturbed(gateway, &work)
}

/// How many calls have a Write chunk, as those whose data the client reads.
fn with_write_chunks(work: &Work) -> usize {
    let chunks = work
        .calls
        .iter()
        .filter(|call| !call.header.writes.is_empty());
    chunks.count()
}

/// The work ends with this status where a call has to fail. `again` tells that there were more
/// calls of that kind than without the fault.
fn reports_error(status: Option<i32>, again: bool) -> Verdict {
    match status {
        None => inconclusive("without --run it cannot be seen whether the client succeeds"),
        Some(0) if again => {
            inconclusive("the work succeeds, with more calls that have a Write chunk")
        }
        Some(0) => violation("the work succeeds: the client has reported no error"),
        Some(status) if status == i32::from(WRONG_DATA) => {
            violation("the client has reported no error, and the command has wrong data")
        }
        Some(_) => Ok(Passed),
    }
}

/// A reply whose data the client cannot find where it belongs. The call is over, and fails.
fn fails(gateway: &mut Gateway<'_>, how: Reduction) -> Verdict {
    let plain = gateway.plain()?;
    let failed = Rc::new(Cell::new(None));
    let own = failed.clone();
    let work = gateway.work(Shape {
        reduces: Box::new(move |call| match own.get() {
            Some(_) => Reduction::Data,
            None => {
                own.set(Some(call.number));
                how
            }
        }),
        ..Shape::default()
    })?;
    let Some(number) = failed.get() else {
        return skip("the client has offered no Write chunk whose data has room elsewhere");
    };
    not_again(&plain, &work, number)?;
    if let Err(Problem::Skip(why)) = work.succeeded(gateway) {
        return skip(why);
    }
    let again = with_write_chunks(&work) > with_write_chunks(&plain);
    reports_error(work.status, again)
}

/// Whether the call has a Reply chunk with room for PROG_MISMATCH.
fn has_reply_chunk(call: &Call) -> bool {
    call.header.reply.as_deref().map(room) >= Some(PROG_MISMATCH)
}

/// The octets of an RPC reply with PROG_MISMATCH, the longest error (RFC 5531, section 9), with an
/// empty verifier.
const PROG_MISMATCH: usize = 32;

/// Answers the last call that has a Reply chunk with PROG_MISMATCH, by that chunk.
fn mismatch_in_reply_chunk(gateway: &mut Gateway<'_>) -> Verdict {
    let plain = gateway.plain()?;
    let mut left = plain
        .calls
        .iter()
        .filter(|call| has_reply_chunk(call))
        .count();
    if left == 0 {
        return inconclusive("the client has offered no Reply chunk");
    }
    let failed = Rc::new(Cell::new(None));
    let own = failed.clone();
    let work = gateway.work(Shape {
        on_call: Box::new(move |call, connection| {
            left -= usize::from(left > 0 && has_reply_chunk(call));
            if left > 0 || own.get().is_some() || !has_reply_chunk(call) {
                return Next::Serve;
            }
            let xid = call.header.xid;
            let other = call
                .procedure()
                .map_or(77, |procedure| procedure.version + 1);
            let reply = words(&[xid, wire::REPLY, 0, 0, 0, 2, other, other]);
            let mut chunk = call.header.reply.clone().unwrap_or_default();
            let mut rest = &reply[..];
            for segment in &mut chunk {
                let (part, behind) = rest.split_at(rest.len().min(segment.length as usize));
                rest = behind;
                segment.length = part.len() as u32;
                if !part.is_empty()
                    && connection
                        .write(segment.handle, segment.offset, part)
                        .is_err()
                {
                    return Next::Serve;
                }
            }
            let header = Header {
                procedure: wire::NOMSG,
                reply: Some(chunk),
                ..call.unused()
            };
            let _ = connection.send(&header.octets());
            own.set(Some(call.number));
            Next::Answered
        }),
        ..Shape::default()
    })?;
    let Some(number) = failed.get() else {
        return inconclusive("there was no call to try that");
    };
    not_again(&plain, &work, number)?;
    if let Err(Problem::Skip(why)) = work.succeeded(gateway) {
        return skip(why);
    }
    // Of another program than ECHO, the client may ignore that this call fails.
    let called = work.calls.get(number).and_then(Call::procedure);
    let ignored = called.is_none_or(|procedure| procedure.program != ECHO.program);
    if work.status == Some(0) && ignored {
        return inconclusive("the work succeeds, and may not need the call that fails");
    }
    reports_error(work.status, false)
}

/// The grant while the client gives up a call, and how many more calls may be under way then.
const FEW: u32 = 2;

/// A call stays without a reply until the client gives it up: it makes another call, although it
/// never has two under way there. A reply follows that has a Reply chunk which the client did not
/// offer, and a larger grant.
fn late_grant(gateway: &mut Gateway<'_>) -> Verdict {
    let plain = many_credits(gateway, false)?;
    let busy = plain.calls.iter().position(|call| call.outstanding > 1);
    let Some(number) = busy.and_then(|busy| busy.checked_sub(2)) else {
        return inconclusive("the client has never had two calls under way behind a single one");
    };
    if !plain.calls[number..]
        .iter()
        .any(|call| call.outstanding > FEW as usize)
    {
        return inconclusive("the client has never had three calls under way behind that");
    }
    let sent = Rc::new(Cell::new(None));
    let own = sent.clone();
    let mut lost: Option<Call> = None;
    let work = gateway.work(Shape {
        credits: FEW,
        hold: HOLD,
        on_call: Box::new(move |call, connection| match &lost {
            None if call.number == number => {
                lost = Some(call.clone());
                Next::Answered
            }
            // Again in front of each later call: the reply to that grants few credits.
            Some(first) if call.connection == first.connection => {
                let xid = first.header.xid;
                if call.header.xid == xid {
                    return Next::Answered;
                }
                own.set(own.get().or(Some(call.number)));
                let reply = Segment {
                    handle: 0x4000,
                    length: 24,
                    offset: 0,
                };
                let header = Header {
                    reply: Some(vec![reply]),
                    ..Header::msg(xid)
                };
                let late = header.with(&words(&[xid, wire::REPLY, 0, 0, 0, 0]));
                let _ = connection.send(&late);
                Next::Serve
            }
            _ => Next::Serve,
        }),
        ..Shape::default()
    })?;
    let Some(first) = sent.get() else {
        return inconclusive(format!(
            "the client has not given up the call on its connection; {}",
            work.end()
        ));
    };
    let calls = &work.calls[first..];
    if let Some(call) = calls.iter().find(|call| call.outstanding > FEW as usize) {
        return violation(format!(
            "{} calls are under way, {FEW} are granted",
            call.outstanding
        ));
    }
    let many = plain.calls.len() - number;
    if calls.len() * 2 < many {
        return inconclusive(format!("the client has made too few calls; {}", work.end()));
    }
    Ok(Passed)
}

/// Whether memory of a call that is over can still be read when the client has had some time to
/// handle the reply. Another thread of the client may make calls meanwhile.
fn stays_readable(connection: &mut Connection, segment: Segment) -> bool {
    stays(|| connection.read(segment.handle, segment.offset, 1).is_ok())
}

/// The same for writing, of the last octet: replies seldom fill a chunk. A client that is still
/// handling the reply may use the memory. Over iWARP, only what follows a refused Write fails.
fn stays_writable(connection: &mut Connection, segment: Segment) -> bool {
    thread::sleep(HOLD);
    let last = segment.offset + u64::from(segment.length) - 1;
    stays(|| connection.write(segment.handle, last, &[0]).is_ok())
}

fn stays(mut reached: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + Duration::from_secs(5);
    while reached() {
        if Instant::now() > until {
            return true;
        }
        thread::sleep(Duration::from_millis(100));
    }
    false
}

/// Two calls are under way, in any order. The reply to the first one is an RPC error, and invalidates
/// a tag of the second one. The memory of the first call must then be out of reach, too. If the client
/// ends the connection at once, siw may report that the reply failed, although it has sent it. Another
/// connection tells.
fn tag_of_another_call(gateway: &mut Gateway<'_>) -> Verdict {
    if !offer(gateway)?.1.invalidation() {
        return unimplemented("the client does not set R");
    }
    let mut failed = String::new();
    for _ in 0..4 {
        match invalidate_tag_of_another_call(gateway)? {
            Ok(passed) => return Ok(passed),
            Err(why) => failed = why,
        }
    }
    inconclusive(format!(
        "the reply that invalidates another call's tag could not be sent: {failed}"
    ))
}

/// Judges whether the memory of the first call is in reach behind such a reply. Returns why no such
/// reply could be sent on the first three connections.
fn invalidate_tag_of_another_call(
    gateway: &mut Gateway<'_>,
) -> Result<Result<Passed, String>, Problem> {
    let under_way: Rc<RefCell<Vec<Call>>> = Rc::default();
    let replied = under_way.clone();
    let reached = Rc::new(Cell::new(None));
    let own = reached.clone();
    let failed: Rc<RefCell<Option<String>>> = Rc::default();
    let own_failed = failed.clone();
    let readable = |call: &Call| call.readable().find(|segment| segment.length > 0);
    let work = gateway.work(Shape {
        hold: 10 * HOLD,
        holds: |call| call.readable().next().is_some(),
        on_call: Box::new(move |call, connection| {
            if own.get().is_some() || call.connection >= 3 {
                return Next::Serve;
            }
            let mut under_way = under_way.borrow_mut();
            under_way.retain(|other| other.connection == call.connection);
            under_way.push(call.clone());
            let found = under_way.iter().find_map(|first| {
                let others = under_way
                    .iter()
                    .filter(|other| other.header.xid != first.header.xid);
                let segment = readable(first)?;
                let key = others
                    .filter_map(Call::key)
                    .find(|key| *key != segment.handle)?;
                Some((first, segment, key))
            });
            let Some((first, segment, key)) = found else {
                return Next::Serve;
            };
            let xid = first.header.xid;
            let error = words(&[xid, wire::REPLY, 0, 0, 0, wire::SYSTEM_ERR]);
            let reply = first.unused().with(&error);
            match connection.send_invalidate(key, &reply) {
                Ok(()) => {
                    let reached = stays_readable(connection, segment);
                    own.set(Some(Access::new(call, segment, reached)));
                }
                Err(why) => *own_failed.borrow_mut() = Some(why),
            }
            Next::Serve
        }),
        on_reply: Box::new(move |call, _| {
            let mut replied = replied.borrow_mut();
            replied.retain(|one| one.header.xid != call.header.xid);
        }),
        ..Shape::default()
    })?;
    let wrong =
        "memory of a call that is over can still be read: its reply has invalidated another tag";
    match (reached.get(), failed.take()) {
        (Some(access), _) => access.verdict(&work, wrong).map(Ok),
        (None, Some(why)) => Ok(Err(why)),
        (None, None) => inconclusive(format!(
            "none of the first connections has had two calls with chunks under way, one of them \
             with a Read chunk; {}",
            work.end()
        )),
    }
}

/// The work succeeds, on one connection or on several.
fn goes_on(gateway: &mut Gateway<'_>, shape: Shape) -> Result<Work, Problem> {
    let work = gateway.work(shape)?;
    work.first()?;
    work.succeeded(gateway)?;
    Ok(work)
}

/// The Receives are posted when the client's first call has found none.
fn late_receives(gateway: &mut Gateway<'_>) -> Verdict {
    if gateway.client.iwarp {
        return skip("over iWARP, a message without a Receive ends the connection");
    }
    goes_on(
        gateway,
        Shape {
            receives_after: Some(Duration::from_secs(1)),
            ..Shape::default()
        },
    )?;
    Ok(Passed)
}

/// A reply to no call follows the DREQ.
fn reply_behind_dreq(gateway: &mut Gateway<'_>) -> Verdict {
    if gateway.client.iwarp {
        return skip("iWARP has no DREQ");
    }
    let sent = Rc::new(Cell::new(None));
    let own = sent.clone();
    goes_on(
        gateway,
        Shape {
            on_call: Box::new(move |call, connection| {
                if (call.connection, call.on_connection) != (0, 2) {
                    return Next::Serve;
                }
                let xid = call.header.xid ^ 0x4000_0000;
                own.set(Some(connection.send_dreq()));
                let reply = Header::msg(xid).with(&words(&[xid, wire::REPLY, 0, 0, 0, 0]));
                let _ = connection.post_send(&reply);
                connection.wait_closed(Duration::from_secs(1));
                Next::Disconnect
            }),
            ..Shape::default()
        },
    )?;
    match sent.take() {
        Some(Ok(())) => Ok(Passed),
        Some(Err(why)) => inconclusive(why),
        None => inconclusive("the first connection has had fewer than three calls"),
    }
}

/// The connection ends within the call with this number.
fn recovers(gateway: &mut Gateway<'_>, number: usize) -> Verdict {
    let work = gateway.work(Shape {
        on_call: Box::new(move |call, _| match (call.connection, call.on_connection) {
            (0, at) if at == number => Next::Disconnect,
            _ => Next::Serve,
        }),
        ..Shape::default()
    })?;
    let mut first = work.calls.iter().filter(|call| call.connection == 0);
    let Some(lost) = first.find(|call| call.on_connection == number) else {
        return inconclusive("the client has made too few calls on its first connection");
    };
    // The credential of RPCSEC_GSS is another one when the call is sent again.
    let same = |call: &Call| call.rpc.get(..24) == lost.rpc.get(..24);
    let mut later = work.calls.iter().skip(lost.number + 1);
    let again = later.any(|call| call.connection > 0 && same(call));
    if !again {
        return violation(format!(
            "the client does not send the call again on another connection; {}",
            work.end()
        ));
    }
    work.succeeded(gateway)?;
    Ok(Passed)
}

fn reply_chunks(gateway: &mut Gateway<'_>) -> Verdict {
    let work = gateway.work(Shape {
        reply_chunk: true,
        ..Shape::default()
    })?;
    if work.first()?.long_replies == 0 {
        return inconclusive("the client has offered no Reply chunk");
    }
    undisturbed(gateway, &work)
}

/// A Reply chunk that was offered, and is not needed, is missing in the reply.
fn lost_reply_chunk(gateway: &mut Gateway<'_>) -> Verdict {
    let work = gateway.work(Shape {
        on_reply: Box::new(|_, header| {
            if header.procedure == wire::MSG {
                header.reply = None;
            }
        }),
        ..Shape::default()
    })?;
    if work.first()?.short_replies == 0 {
        return inconclusive("the client has offered no Reply chunk that is not needed");
    }
    undisturbed(gateway, &work)
}

/// Memory is out of reach. `segment` finds the memory of a call on the first connection. With `over`,
/// the suite tries to access it by `reaches` within a later call when no reply is due, and within its
/// own call otherwise. `wrong` is the violation if that succeeds.
fn reach(
    gateway: &mut Gateway<'_>,
    over: bool,
    segment: fn(&Call) -> Option<Segment>,
    reaches: fn(&mut Connection, Segment) -> Option<bool>,
    wrong: &str,
) -> Verdict {
    let work = gateway.plain()?;
    if work.calls.iter().all(|call| segment(call).is_none()) {
        return inconclusive("the client has made no call with such a chunk");
    }
    let mut old: Option<Segment> = None;
    let tried = Rc::new(Cell::new(None));
    let own = tried.clone();
    let work = gateway.work(Shape {
        on_call: Box::new(move |call, connection| {
            if own.get().is_some() || call.connection > 0 {
                return Next::Serve;
            }
            let found = match old {
                _ if !over => segment(call),
                Some(old) => Some(old).filter(|old| is_over(call, old.handle)),
                None => {
                    old = segment(call);
                    None
                }
            };
            if let Some(segment) = found {
                let reached = reaches(connection, segment);
                own.set(reached.map(|reached| Access::new(call, segment, reached)));
            }
            Next::Serve
        }),
        ..Shape::default()
    })?;
    match tried.get() {
        Some(access) => access.verdict(&work, wrong),
        None => inconclusive(format!("there was no call to try that; {}", work.end())),
    }
}

/// Whether no other call is under way, and this one does not advertise the memory.
fn is_over(call: &Call, handle: u32) -> bool {
    let mut segments = call.readable().chain(call.writable());
    call.outstanding == 1 && segments.all(|segment| segment.handle != handle)
}

/// A try to access memory of a call that is over, within a later call.
#[derive(Clone, Copy)]
struct Access {
    connection: usize,
    number: usize,
    segment: Segment,
    reached: bool,
}

impl Access {
    fn new(call: &Call, segment: Segment, reached: bool) -> Self {
        Access {
            connection: call.connection,
            number: call.number,
            segment,
            reached,
        }
    }

    fn verdict(&self, work: &Work, wrong: &str) -> Verdict {
        if !self.reached {
            return Ok(Passed);
        }
        let begin = self.segment.offset;
        let end = begin.saturating_add(u64::from(self.segment.length));
        let same = |other: Segment| {
            other.handle == self.segment.handle
                && other.offset < end
                && begin < other.offset.saturating_add(u64::from(other.length))
        };
        let later = work.calls.iter().skip(self.number + 1);
        let mut meanwhile = later
            .filter(|call| call.connection == self.connection)
            .take_while(|call| call.outstanding > 1);
        if meanwhile.any(|call| call.readable().chain(call.writable()).any(same)) {
            return inconclusive("the client has advertised the memory again meanwhile");
        }
        violation(wrong)
    }
}

/// Whether memory that the client lets be read can be written. The same octets are written. `None` if
/// it cannot be read.
fn writes_back(connection: &mut Connection, segment: Segment) -> Option<bool> {
    let Segment { handle, offset, .. } = segment;
    let octets = connection.read(handle, offset, 4).ok()?;
    let wrote = connection.write(handle, offset, &octets).is_ok();
    // Over iWARP a Write completes before the client refuses it. Then a Read behind it fails.
    Some(wrote && connection.read(handle, offset, 4).is_ok())
}

/// The memory that calls on a connection have advertised.
#[derive(Default)]
struct Advertised {
    /// By its handle: the XID of the latest call, the memory, and whether it can be written.
    latest: BTreeMap<u32, (u32, Segment, bool)>,
    /// Memory of a call that is over, whose handle a later call has advertised.
    again: Option<(Segment, bool)>,
}

impl Advertised {
    fn add(&mut self, call: &Call) {
        let reads = call.readable().map(|segment| (segment, false));
        let writes = call.writable().map(|segment| (segment, true));
        // Four octets may be those of a padding.
        for (segment, written) in reads.chain(writes).filter(|(it, _)| it.length > 4) {
            let xid = call.header.xid;
            match self.latest.insert(segment.handle, (xid, segment, written)) {
                Some((other, earlier, written)) if other != xid && call.outstanding == 1 => {
                    self.again = Some((earlier, written));
                }
                _ => (),
            }
        }
    }
}

/// Calls that follow one another on a connection advertise other memory. A handle that comes again may
/// be that of another registration: then the earlier memory is out of reach.
fn is_not_persistent(gateway: &mut Gateway<'_>) -> Verdict {
    let plain = gateway.plain()?;
    let mut advertised: BTreeMap<usize, Advertised> = BTreeMap::new();
    let mut any = false;
    for call in &plain.calls {
        let known = advertised.entry(call.connection).or_default();
        any |= call.outstanding == 1 && call.key().is_some() && !known.latest.is_empty();
        known.add(call);
    }
    if !any {
        return inconclusive("no two calls with chunks have followed one another");
    }
    if advertised.values().all(|known| known.again.is_none()) {
        return Ok(Passed);
    }
    let mut advertised: BTreeMap<usize, Advertised> = BTreeMap::new();
    let tried = Rc::new(Cell::new(None));
    let own = tried.clone();
    let work = gateway.work(Shape {
        on_call: Box::new(move |call, connection| {
            let known = advertised.entry(call.connection).or_default();
            known.add(call);
            match known.again {
                Some((segment, written))
                    if own.get().is_none() && is_over(call, segment.handle) =>
                {
                    let reached = if written {
                        stays_writable(connection, segment)
                    } else {
                        stays_readable(connection, segment)
                    };
                    own.set(Some(Access::new(call, segment, reached)));
                }
                _ => (),
            }
            Next::Serve
        }),
        ..Shape::default()
    })?;
    let wrong =
        "memory whose handle comes again can be reached within a call that does not advertise it";
    match tried.get() {
        Some(access) => access.verdict(&work, wrong),
        None => inconclusive(format!(
            "handles come again, and there was no single call without them; {}",
            work.end()
        )),
    }
}

/// The connection ends while three calls are under way.
fn first_reply_again(gateway: &mut Gateway<'_>) -> Verdict {
    let lost = Rc::new(Cell::new(None));
    let own = lost.clone();
    let mut highest = 0;
    let work = gateway.work(Shape {
        hold: HOLD,
        on_call: Box::new(move |call, _| {
            highest = highest.max(call.connection);
            if call.connection > 0 || call.outstanding < 3 {
                return Next::Serve;
            }
            own.set(Some(highest));
            Next::Disconnect
        }),
        ..Shape::default()
    })?;
    work.first()?;
    let Some(highest) = lost.get() else {
        return inconclusive("the client has never had three calls under way");
    };
    let later = work.calls.iter().filter(|call| call.connection > highest);
    let mut several = later.filter(|call| call.outstanding > 1).peekable();
    if several.peek().is_none() {
        return inconclusive(format!(
            "the client has not had two calls under way on another connection; {}",
            work.end()
        ));
    }
    match several.find(|call| call.granted.is_none()) {
        Some(_) => violation("the client sends a second call before the first reply"),
        None => Ok(Passed),
    }
}

fn header_error(call: &Call, reads: Vec<ReadSegment>, change: impl FnOnce(&mut Header)) -> Vec<u8> {
    let mut header = Header::msg(call.header.xid);
    header.reads = reads;
    change(&mut header);
    header.with(&words(&[
        call.header.xid,
        wire::REPLY,
        0,
        0,
        0,
        wire::SYSTEM_ERR,
    ]))
}

pub const CASES: &[Case] = &[
    case!(client "rfc8166/3.3.1/c1", "every call requests a credit", Should,
        "Each RPC-over-RDMA message sent from Requester to Responder requests a number of credits \
         from the Responder.",
        sends "nothing", accepts "rdma_credit of at least 1 in each call", fault "requests-zero",
        |gateway| each(gateway, |call| check(call.header.credits > 0, "it requests 0 credits"))),
    case!(client "rfc8166/3.3.1/c2", "with 1 credit one call is under way", Must, EXCESS,
        sends "a grant of 1; replies after 100 ms without a call", accepts "one call under way at a time; the work succeeds",
        fault "ignores-grant", |gateway| credits(gateway, 1)),
    case!(client "rfc8166/3.3.1/c3", "with 3 credits three calls are under way at most", Must, EXCESS,
        sends "a grant of 3; replies after 100 ms without a call", accepts "at most three calls under way; the work succeeds",
        fault "ignores-grant", |gateway| credits(gateway, 3)),
    case!(client "rfc8166/3.3.1/c4", "a grant larger than the request is not used up", Must, LOWER,
        sends "a grant of 0xffffffff; replies after 100 ms without a call",
        accepts "no more calls under way than requested; the work succeeds",
        fault "ignores-own-request", |gateway| credits(gateway, u32::MAX)),
    case!(client "rfc8166/3.3.1/c5", "a grant that falls is heeded", Must, EXCESS,
        sends "grants of 32, then of 1; replies after 100 ms without a call", accepts "at last one call under way at a time; the work succeeds",
        fault "keeps-first-grant", lowered),
    case!(client "rfc8166/3.3.1/c6", "a grant of 0 does not stop the client", Should, DEADLOCK,
        sends "a grant of 0 in each reply", accepts "the work succeeds on one connection",
        fault "stops-at-zero", |gateway| grant_zero(gateway, Shape::default())),
    case!(client "rfc8166/3.3.3/c1", "one call until the first reply", Must, INITIAL,
        sends "replies after 100 ms without a call", accepts "the second call after the first reply",
        fault "hasty", first_reply),
    case!(client "rfc8166/3.3.3/c2", "one call until the first reply on another connection", Must, INITIAL,
        sends "replies after 100 ms without a call; a disconnect while three calls are under way",
        accepts "the second call on each connection after the first reply there",
        fault "keeps-grant", first_reply_again),
    case!(client "rfc8166/3.4.5/c1", "Positions are multiples of four", Must, POSITION,
    sends "nothing", accepts "Positions of 0, 4, 8 …; skipped without one", fault "odd-positions",
    |gateway| each_with(gateway, has_reads, |call| {
        check(call.header.reads.iter().all(|read| read.position % 4 == 0), "an odd Position")
    })),
    case!(client "rfc8166/3.4.5/c2", "the Read chunks make up the call", Must,
    "All RDMA read segments belonging to the same Read chunk have the same value in their Position field.",
    sends "nothing", accepts "memory that can be read: an RPC call where the segments of each Position are joined; Positions in any \
                               order; skipped without a Read chunk",
    fault "two-positions",
    |gateway| {
        are_readable(gateway)?;
        each_with(gateway, has_reads, |call| {
            // Behind the XID stand the type and the version of RPC.
            let head = call.rpc.get(4..12) == Some(&words(&[wire::CALL, 2]));
            check(head || !has_reads(call), "its Read chunks make up no RPC call")?;
            check(are_apart(&call.header.reads), "a Read chunk begins within another one")
        })
    }),
    case!(client "rfc8166/3.4.5.2/c1", "a Read chunk is as long as its item", Must,
    "If the sender chooses not to include roundup padding in the chunk, the chunk's total length \
     MUST be the same as the encoded length of the data item.",
    sends "nothing",
    accepts "Read chunks with data as long as the item, or as the item and its padding; skipped without one",
    fault "longer-chunks", |gateway| each_with(gateway, has_data, |call| are_as_long(call, true))),
    case!(client "rfc8166/3.4.5.2/c2", "a Read chunk has no padding", Should,
    "When reducing a variable-length argument data item, the Requester SHOULD NOT include the data \
     item's XDR roundup padding in the chunk.",
    sends "nothing", accepts "Read chunks with data as long as the item, one of them odd",
    fault "pads-chunks", |gateway| each_odd(gateway, has_data, has_odd_item, |call| are_as_long(call, false))),
    case!(client "rfc8166/3.4.6.2/c1", "a Write chunk has no room for padding", Should,
    "When provisioning a Write chunk for a variable-length result data item, the Requester SHOULD \
     NOT include additional space for XDR roundup padding.",
    sends "nothing", accepts "of the Write chunks for odd lengths, at least one as long as READ or LOAD \
                              asks for, or longer by more than the padding; no segment is for the padding \
                              alone",
    fault "room-for-padding",
    |gateway| each_odd(gateway, |call| asked(call).is_some(),
        |call| asked(call).is_some_and(|(count, _)| count % 4 != 0), |_| Ok(()))
        .and_then(|_| some_without_padding(&*gateway.plain()?))),
    case!(client "rfc8166/6.1/c3", "only eligible arguments are in Read chunks", Must,
    "Senders MUST NOT reduce data items that are not DDP-eligible. … RFC 8267, sections 4 and 6.1: \
     All other argument or result data items in NFS versions 2 and 3 are not DDP-eligible. … Only \
     the following XDR data items in the COMPOUND procedure of all NFS version 4 minor versions \
     are DDP-eligible … RFC 8267, section 5.2: Thus, no data item in this upper-layer protocol is \
     DDP-eligible.",
    sends "nothing",
    accepts "Read chunks with the data of WRITE or STORE or the path of a symbolic link, or none",
    fault "reduces-arguments", |gateway| each(gateway, are_eligible)),
    case!(client "rfc8166/3.5.3/c1", "a Long Call has a Position Zero chunk", Must,
    "Every RDMA read segment in this chunk MUST contain zero in its Position field.",
    sends "nothing", accepts "an RDMA_NOMSG with a segment at Position 0, an RDMA_MSG without it; skipped \
                               without an RDMA_NOMSG or a Position 0",
    fault "long-call-position",
    |gateway| each_with(gateway, |call| position_zero(call).is_some() || is_nomsg(call),
        |call| check(position_zero(call).is_some() == is_nomsg(call), "its Position Zero chunk"))),
    case!(client "rfc8166/3.5.3/c2", "a Position Zero chunk has the padding of its items", Must,
    "As these chunks contain a Payload stream, such chunks MUST include appropriate XDR roundup \
     padding to maintain proper XDR alignment of their contents.",
    sends "nothing", accepts "Position Zero chunks of a multiple of four octets", fault "cuts-padding",
    |gateway| each_with(gateway, |call| position_zero(call).is_some(), |call| {
        let length = position_zero(call).unwrap_or_default();
        check(length % 4 == 0, format!("a Position Zero chunk of {length} octets"))
    })),
    case!(client "rfc8166/4.2.4/c1", "nothing follows the header of an RDMA_NOMSG", Must,
    "RDMA_NOMSG = 1 indicates that after the chunk lists there is no Payload stream.",
    sends "nothing", accepts "no octets behind the lists; skipped without an RDMA_NOMSG",
    fault "nomsg-with-payload",
    |gateway| each_with(gateway, is_nomsg,
        |call| check(!is_nomsg(call) || call.inline == 0, "octets follow the lists"))),
    case!(client "rfc8166/4.2.1/c1", "rdma_xid is the XID of the call", Must,
    "This XID MUST be the same as the XID in the RPC message.",
    sends "nothing", accepts "the same XID in both headers", fault "wrong-xid",
    |gateway| each(gateway, |call| {
        check(call.rpc.starts_with(&call.header.xid.to_be_bytes()), "two XIDs")
    })),
    case!(client "rfc8166/4.2.2/c1", "calls have version 1", Must,
        "For RPC-over-RDMA version 1, this field MUST contain the value one (1).",
        sends "nothing", accepts "rdma_vers 1", fault "wrong-version",
        |gateway| each(gateway, |call| check(call.header.version == 1, "another version"))),
    case!(client "rfc8166/4.6/c1", "the client sends neither RDMA_MSGP, RDMA_DONE nor RDMA_ERROR", Must,
    "RFC 8166, sections 4.6.1, 4.6.2 and 4.2.4: senders MUST NOT send RDMA_MSGP procedures. … senders \
     MUST NOT send RDMA_DONE messages. … A Requester MUST NOT send an RPC-over-RDMA header with the \
     RDMA_ERROR procedure.",
    sends "nothing", accepts "RDMA_MSG and RDMA_NOMSG only", fault "sends-done",
    |gateway| {
        let work = gateway.plain()?;
        if work.reverse.iter().any(|octets| is_error(octets)) {
            return violation("the client sends RDMA_ERROR");
        }
        each(gateway, |_| Ok(()))
    }),
    case!(client "rfc8166/4.3.3/c1", "a Reply chunk where the reply may be too long", Must,
    "A Requester MUST provide a Reply chunk whenever the maximum possible size of the RPC Reply \
     message's Transport and Payload streams is larger than the inline threshold for messages from \
     Responder to Requester.",
    sends "sizes 4096", accepts "a Reply chunk wherever the reply does not fit inline; one such reply", fault "no-reply-chunk",
    |gateway| {
        let work = gateway.plain()?;
        work.first()?;
        if let Some(why) = work.too_long.first() {
            return violation(why.clone());
        }
        if work.connections.iter().all(|seen| seen.long_replies == 0) {
            return inconclusive("no reply has needed a Reply chunk");
        }
        Ok(Passed)
    }),
    case!(client "rfc8166/4.3.3/c2", "a Reply chunk may be used for a short reply", Must,
        "the Responder MAY return the RPC Reply message as a Short message rather than using the \
         Requester-provided Reply chunk.",
        sends "RDMA_NOMSG to each call with a Reply chunk", accepts "the work succeeds on one connection",
        fault "ignores-nomsg", reply_chunks),
    case!(client "rfc8166/4.3.3/c3", "a reply without the Reply chunk that was offered", May,
        "RFC 8166, section 4.3.3: When a Requester provides a Reply chunk in an RPC Call message, \
         the Responder MUST copy that chunk into the Transport header of the RPC Reply message.",
        sends "RDMA_MSG without a Reply chunk to calls with one", accepts "the work succeeds on one connection",
        fault "needs-reply-chunk", lost_reply_chunk),
    // The sentence does not say that the client reports the error: so this is a SHOULD.
    case!(client "rfc8166/4.3.3/c4", "PROG_MISMATCH by a Reply chunk is reported", Should,
        "RFC 8166, section 3.5.3: the Requester provides a single special Write chunk in advance, \
         known as the \"Reply chunk\", that will contain the RPC Reply message's Payload stream.",
        sends "PROG_MISMATCH by RDMA_NOMSG to the last call with a Reply chunk",
        accepts "the call is not sent again; the command ends with a failure other than wrong data",
        fault "ignores-refusals", mismatch_in_reply_chunk),
    // The sentence does not say that RPC errors are among the replies "for the procedure": so this
    // is a SHOULD.
    case!(client "rfc8166/6.2/c1", "a Reply chunk has room for PROG_MISMATCH", Should, MAXIMUM,
    sends "nothing", accepts "at least 32 octets in each Reply chunk", fault "tiny-reply-chunks",
    |gateway| {
        let work = gateway.plain()?;
        if work.calls.iter().all(|call| call.header.reply.is_none()) {
            return inconclusive("the client has offered no Reply chunk");
        }
        each(gateway, |call| {
            check(call.header.reply.is_none() || has_reply_chunk(call), "a shorter Reply chunk")
        })
    }),
    case!(client "rfc8166/6.1/c1", "a reply with a boolean in the Write chunk ends the call",
        Must,
        "A Responder reduces a non-DDP-eligible result data item. The Requester MUST terminate the \
         pending RPC transaction and report an appropriate permanent error to the RPC consumer.",
        sends "eof of READ, the status of READLINK (of NFS 3: the word in front of its length) or the \
               boolean of LOAD in the Write chunk of the call, and its data inline",
        accepts "the call is not sent again; the command ends with a failure other than wrong data",
        fault "misplaces-data", |gateway| fails(gateway, Reduction::Other)),
    case!(client "rfc8166/6.1/c2", "a reply that does not use the Write chunk ends the call", Must,
        "A Responder does not reduce a DDP-eligible result data item into an available Write \
         chunk. The Requester MUST terminate the pending RPC transaction and report an appropriate \
         permanent error to the RPC consumer.",
        sends "the data of READ, READLINK or LOAD inline, and an unused Write chunk",
        accepts "the call is not sent again; the command ends with a failure other than wrong data",
        fault "takes-inline-data", |gateway| fails(gateway, Reduction::Nothing)),
    case!(client "rfc8166/4.4.1/c1", "memory of a call that is over is out of reach", Must, PROTECTED,
        sends "RDMA Reads of a Read chunk of an earlier call, for 5 s", accepts "an RDMA Read fails",
        fault "leaves-registered",
        |gateway| reach(gateway, true, |call| call.readable().find(|segment| segment.length > 0),
            |connection, segment| Some(stays_readable(connection, segment)),
            "memory of a call that is over can still be read")),
    case!(client "rfc8166/4.4.1/c3", "memory of a reply that is over cannot be written", Must, PROTECTED,
        sends "RDMA Writes of an octet to the end of a Write or Reply chunk of an earlier call, for 5 s",
        accepts "an RDMA Write fails", fault "leaves-registered",
        // Four octets may be those of a padding, which no upper layer sees.
        |gateway| reach(gateway, true, |call| call.writable().find(|segment| segment.length > 4),
            |connection, segment| Some(stays_writable(connection, segment)),
            "memory of a call that is over can still be written")),
    case!(client "rfc8166/8.1.2/c1", "no memory is advertised persistently", Should,
        "Advertising a continuously registered memory region allows a remote host to read or write \
         to that region even when an RPC involving that memory is not under way. Therefore, \
         implementations should avoid advertising persistently registered memory.",
        sends "if a handle comes again, RDMA Reads or Writes of the earlier memory within a call without it, for 5 s",
        accepts "no handle that an earlier call on the connection had, or an RDMA Read or Write that fails",
        fault "one-key", is_not_persistent),
    case!(client "rfc8166/4.4.1/c2", "a reply that invalidates another call's tag ends no protection", Must, PROTECTED,
        sends "an RPC error to one of two calls, which invalidates the first Steering Tag of the other one; \
               an RDMA Read of a Read chunk of the first one",
        accepts "the RDMA Read fails, or the connection has ended",
        fault "trusts-invalidation", tag_of_another_call),
    case!(client "rfc8166/8.1/c1", "memory of a Read chunk cannot be written", Should, ACCESS,
        sends "an RDMA Write of the same octets into a Read chunk", accepts "the RDMA Write fails",
        fault "writable-reads",
        |gateway| reach(gateway, false, |call| call.readable().find(|segment| segment.length >= 4),
            writes_back, "memory of a Read chunk can be written")),
    case!(client "rfc8166/4.5/c1", "a message of no octets is discarded", Must, SHORT,
        sends "a Send of 0 octets, then the reply",
        accepts "the work succeeds on one connection, and no RDMA_ERROR in answer",
        fault "trusts-short", |gateway| discards(gateway, |_| Vec::new())),
    case!(client "rfc8166/4.5/c2", "a message of 24 octets is discarded", Must, SHORT,
        sends "the XID of the call in 24 octets, then the reply",
        accepts "the work succeeds on one connection, and no RDMA_ERROR in answer",
        fault "trusts-short",
        |gateway| discards(gateway, |call| words(&[call.header.xid, 1, 32, 0, 0, 0]))),
    case!(client "rfc8166/4.5/c3", "a reply whose Read list has a wrong discriminator is discarded", Must, DISCARDS,
        sends "a Read list that begins with 2, then the reply",
        accepts "the work succeeds on one connection, and no RDMA_ERROR in answer unless the client accepts calls",
        fault "trusts-malformed", |gateway| discards_undecodable(gateway, |call| reply(call, &[1, 32, 0, 2, 0, 0]))),
    case!(client "rfc8166/4.5/c4", "a reply whose Write list is cut off is discarded", Must, DISCARDS,
        sends "a Write list whose only chunk is missing, then the reply",
        accepts "the work succeeds on one connection, and no RDMA_ERROR in answer unless the client accepts calls",
        fault "trusts-malformed",
        |gateway| discards_undecodable(gateway, |call| words(&[call.header.xid, 1, 32, 0, 0, 1, 0x4000]))),
    case!(client "rfc8166/4.5/c5", "a reply whose Reply chunk has 2^32-1 segments is discarded", Must, DISCARDS,
        sends "a Reply chunk of 0xffffffff segments, then the reply",
        accepts "the work succeeds on one connection, and no RDMA_ERROR in answer unless the client accepts calls",
        fault "trusts-malformed",
        |gateway| discards_undecodable(gateway, |call| reply(call, &[1, 32, 1, 0, 0, 1, u32::MAX]))),
    case!(client "rfc8166/4.5/c6", "a reply with a Read list is discarded", Should, DISCARDS,
    sends "a reply with a Read list, then the reply",
    accepts "the work succeeds on one connection, and no RDMA_ERROR in answer",
    fault "trusts-read-lists",
    |gateway| discards(gateway, |call| {
        let read = ReadSegment {
            position: 0,
            segment: Segment { handle: 1, length: 4, offset: 0 },
        };
        header_error(call, vec![read], |_| ())
    })),
    case!(client "rfc8166/4.5/c7", "a reply of procedure 9 is discarded", Must, DISCARDS,
        sends "rdma_proc 9, then the reply",
        accepts "the work succeeds on one connection, and no RDMA_ERROR in answer unless the client accepts calls",
        fault "trusts-malformed", |gateway| discards_undecodable(gateway, |call| reply(call, &[1, 32, 9, 0, 0, 0]))),
    case!(client "rfc8166/4.5/c8", "a reply in version 7 is discarded", Must, DISCARDS,
        sends "a reply in version 7, then the reply",
        accepts "the work succeeds on one connection, and no RDMA_ERROR in answer unless the client accepts calls",
        fault "trusts-versions",
        |gateway| discards_undecodable(gateway, |call| header_error(call, vec![], |it| it.version = 7))),
    case!(client "rfc8166/4.5/c9", "an RDMA_NOMSG without a Reply chunk is discarded", Must, DISCARDS,
        sends "RDMA_NOMSG without chunks, then the reply",
        accepts "the work succeeds on one connection, and no RDMA_ERROR in answer unless the client accepts calls",
        fault "trusts-empty-nomsg",
        |gateway| discards_undecodable(gateway, |call| Header::nomsg(call.header.xid).octets())),
    case!(client "rfc8166/4.5/c10", "a reply to no call is discarded", Must,
    UNMATCHED,
    sends "a reply with an XID of no call, then the reply",
    accepts "the work succeeds on one connection, and no RDMA_ERROR in answer",
    fault "answers-replies",
    |gateway| discards(gateway, |call| {
        let xid = call.header.xid ^ 0x4000_0000;
        Header::msg(xid).with(&words(&[xid, wire::REPLY, 0, 0, 0, wire::SYSTEM_ERR]))
    })),
    case!(client "rfc8166/4.5/c11", "a second reply to an earlier call is discarded", Must, UNMATCHED,
        sends "SYSTEM_ERR with the XID of the call before, which has been answered, then the reply",
        accepts "the work succeeds on one connection, and no RDMA_ERROR in answer",
        fault "trusts-xids", second_reply),
    case!(client "rfc8166/4.5/c12", "RDMA_ERROR with an unknown error is discarded", Must, UNDECODED,
        sends "rdma_err 77, then the reply",
        accepts "the work succeeds on one connection, and no RDMA_ERROR in answer",
        fault "trusts-errors", |gateway| discards(gateway, |call| error(call.header.xid, 32, &[77, 0, 0]))),
    case!(client "rfc8166/4.5/c13", "RDMA_ERROR that is cut off is discarded", Must, UNDECODED,
        sends "ERR_VERS without its versions, then the reply",
        accepts "the work succeeds on one connection, and no RDMA_ERROR in answer",
        fault "trusts-errors", |gateway| discards(gateway, |call| error(call.header.xid, 32, &[1]))),
    case!(client "rfc8166/4.5/c14", "RDMA_ERROR for no call is discarded", Must, UNMATCHED,
        sends "ERR_VERS with an XID of no call, then the reply",
        accepts "the work succeeds on one connection, and no RDMA_ERROR in answer",
        fault "trusts-xids",
        |gateway| discards(gateway, |call| error(call.header.xid ^ 0x4000_0000, 32, &[wire::ERR_VERS, 2, 2]))),
    case!(client "rfc8166/4.5/c16", "RDMA_ERROR in version 3 for no call is discarded", Must, UNMATCHED,
        sends "ERR_VERS 1..1 in version 3 with an XID of no call, then the reply",
        accepts "the work succeeds on one connection, and no RDMA_ERROR in answer", fault "trusts-versions",
        |gateway| discards(gateway,
            |call| error_in(3, call.header.xid ^ 0x4000_0000, 32, &[wire::ERR_VERS, 1, 1]))),
    case!(client "rfc8166/4.5/c17", "ERR_CHUNK for no call is discarded", Must, UNMATCHED,
        sends "ERR_CHUNK with an XID of no call, then the reply",
        accepts "the work succeeds on one connection, and no RDMA_ERROR in answer",
        fault "trusts-xids",
        |gateway| discards(gateway, |call| error(call.header.xid ^ 0x4000_0000, 32, &[wire::ERR_CHUNK]))),
    case!(client "rfc8166/4.5/c18", "a reply whose Write chunk has 2^28 segments is discarded", Must, DISCARDS,
        sends "a Write chunk of 0x10000000 segments, then the reply",
        accepts "the work succeeds on one connection, and no RDMA_ERROR in answer unless the client accepts calls",
        fault "trusts-malformed",
        |gateway| discards_undecodable(gateway, |call| reply(call, &[1, 32, 0, 0, 1, 0x1000_0000, 0]))),
    case!(client "rfc8166/4.5/c19", "a reply whose Reply chunk is cut off is discarded", Must, DISCARDS,
        sends "a Reply chunk of 9 segments with less, then the reply",
        accepts "the work succeeds on one connection, and no RDMA_ERROR in answer unless the client accepts calls",
        fault "trusts-malformed",
        |gateway| discards_undecodable(gateway, |call| reply(call, &[1, 32, 0, 0, 0, 1, 9]))),
    // A header whose segments are others is not said to be an error that a client has to
    // detect: so c22 and c24 to c26 are a SHOULD. In c23, the length is that of the RPC
    // message: a client that trusts it takes what stands behind its own memory for a part of
    // the reply.
    case!(client "rfc8166/4.5/c22", "a reply whose Write chunk is longer than offered is discarded", Should, DISCARDS,
        sends "a Write chunk whose first segment is longer by 4, then the reply",
        accepts "the work succeeds on one connection, and no RDMA_ERROR in answer", fault "trusts-lengths",
        |gateway| discards_chunks(gateway, has_write_chunk, |_, header| lengthen(&mut header.writes[0]))),
    case!(client "rfc8166/4.5/c23", "a reply whose Reply chunk is longer than offered is discarded", Must, DISCARDS,
    sends "RDMA_NOMSG with a Reply chunk whose first segment is longer by 4, then the reply",
    accepts "the work succeeds on one connection, and no RDMA_ERROR in answer", fault "trusts-lengths",
    |gateway| discards_chunks(gateway, has_reply_chunk, |call, header| {
        *header = Header { reply: call.header.reply.clone(), procedure: wire::NOMSG, ..call.unused() };
        header.reply.iter_mut().for_each(|chunk| lengthen(chunk));
    })),
    case!(client "rfc8166/4.5/c24", "a reply whose Write chunk has another handle is discarded", Should, DISCARDS,
        sends "a Write chunk with another handle, then the reply",
        accepts "the work succeeds on one connection, and no RDMA_ERROR in answer",
        fault "trusts-handles",
        |gateway| discards_chunks(gateway, has_write_chunk, |_, header| header.writes[0][0].handle ^= 0x4000)),
    case!(client "rfc8166/4.5/c25", "a reply whose Write chunk has a segment more is discarded", Should, DISCARDS,
    sends "a Write chunk with its first segment once more in front, with no octets, then the reply",
    accepts "the work succeeds on one connection, and no RDMA_ERROR in answer",
    fault "trusts-counts",
    |gateway| discards_chunks(gateway, has_write_chunk, |_, header| {
        let first = header.writes[0][0];
        header.writes[0].insert(0, Segment { length: 0, ..first });
    })),
    case!(client "rfc8166/4.5/c26", "a reply with a Write chunk more is discarded", Should, DISCARDS,
    sends "the Write chunk twice, then the reply",
    accepts "the work succeeds on one connection, and no RDMA_ERROR in answer",
    fault "trusts-counts",
    |gateway| discards_chunks(gateway, has_write_chunk, |_, header| {
        let first = header.writes[0].clone();
        header.writes.push(first);
    })),
    case!(client "rfc8166/4.2.1/c2", "a reply with two XIDs does no harm", Must,
    "This XID MUST be the same as the XID in the RPC message. The receiver MAY perform its \
     processing based solely on the XID in the RPC-over-RDMA header, and thereby ignore the XID in \
     the RPC message, if it so chooses.",
    sends "the reply with another XID in its RPC message, then the reply",
    accepts "the work succeeds on one connection: the first one is discarded or completes the call",
    fault "refuses-two-xids", two_xids),
    // The header of ERR_CHUNK has 20 octets (section 4.1.2), and a message of less than 28 octets
    // must be discarded (section 4.5). The XDR has no longer form. ERR_VERS has 28 octets.
    case!(client "rfc8166/4.5/c15", "ERR_CHUNK completes the call", May, COMPLETES,
        sends "ERR_CHUNK to a call, which is shorter than 28 octets", accepts "the call is not sent again; the command ends",
        fault "retries-errors", |gateway| completes(gateway, &[wire::ERR_CHUNK])),
    case!(client "rfc8166/4.5/c20", "ERR_CHUNK that invalidates a tag of the call completes it once", May, COMPLETES,
        sends "ERR_CHUNK to a call with chunks, which invalidates its first Steering Tag",
        accepts "the call is not sent again; the command ends",
        fault "retries-errors", error_invalidates),
    // The client no longer knows what it offered.
    case!(client "rfc8166/4.5/c21", "the grant of a late reply with a wrong Reply chunk is discarded", Should, DISCARDS,
        sends "a grant of 2; no reply to a call until the client has given it up; then a reply with a Reply \
               chunk that was not offered, and a grant of 32",
        accepts "at most two more calls under way", fault "takes-late-grants", late_grant),
    case!(client "rfc8166/4.5.1/c1", "ERR_VERS completes the call", Must, COMPLETES,
        sends "ERR_VERS 7..7 to a call", accepts "the call is not sent again; the command ends",
        fault "retries-errors", |gateway| completes(gateway, &[wire::ERR_VERS, 7, 7])),
    case!(client "rfc8166/4.5.5/c1", "a call whose connection is lost is sent again", Should, RECOVERY,
        sends "a disconnect in place of the third reply", accepts "the same call on another connection; the work succeeds",
        fault "gives-up", |gateway| recovers(gateway, 2)),
    case!(client "rfc8166/4.5.5/c2", "a first call that finds no Receive is not lost", Should, RECOVERY,
        sends "the Receives of the first connection 1 s after its REP",
        accepts "the work succeeds, on one connection or on several", fault "impatient", late_receives),
    case!(client "rfc8166/4.5.5/c3", "a first call whose connection is lost is sent again", Should, RECOVERY,
        sends "a disconnect in place of the first reply", accepts "the same call on another connection; the work succeeds",
        fault "gives-up", |gateway| recovers(gateway, 0)),
    case!(client "rfc8166/4.5.5/c4", "a message behind the DREQ does no harm", Should, RECOVERY,
        sends "a DREQ in place of the third reply, and a reply to no call behind it",
        accepts "the work succeeds on another connection", fault "gives-up", reply_behind_dreq),
    case!(client "rfc8166/4.6.1/c1", "RDMA_MSGP is discarded", Must,
        "When receiving an RDMA_MSGP procedure, Responders SHOULD reply with an RDMA_ERROR \
         procedure, setting the rdma_err field to ERR_CHUNK; Requesters MUST silently discard the \
         message.",
        sends "a reply by RDMA_MSGP, then the reply",
        accepts "the work succeeds on one connection, and no RDMA_ERROR in answer unless the client accepts calls",
        fault "trusts-malformed",
        |gateway| discards_undecodable(gateway, |call| reply(call, &[1, 32, 2, 0, 0, 0, 0, 0]))),
    case!(client "rfc8166/4.6.2/c1", "RDMA_DONE is discarded", Must,
        DISCARDS_DONE,
        sends "RDMA_DONE with the XID of the call, then the reply",
        accepts "the work succeeds on one connection, and no RDMA_ERROR in answer",
        fault "trusts-malformed", |gateway| discards(gateway, |call| reply(call, &[1, 32, 3, 0, 0, 0]))),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_chunks_are_apart() {
        for (chunks, apart) in [
            (&[][..], true),
            (&[(0, 300)], true),
            (&[(0, 300), (40, 8), (52, 8)], true),
            (&[(40, 4), (40, 3), (48, 8)], true),
            (&[(40, 4), (40, 5), (48, 8)], false),
            (&[(48, 8), (40, 8)], true),
            (&[(48, 8), (40, 12)], false),
        ] {
            let read = |&(position, length)| ReadSegment {
                position,
                segment: Segment {
                    length,
                    ..Segment::default()
                },
            };
            let reads: Vec<ReadSegment> = chunks.iter().map(read).collect();
            assert_eq!(are_apart(&reads), apart, "{chunks:?}");
        }
    }

    /// A call with a Read chunk of `length` octets in front of its last `behind` ones, with AUTH_NONE.
    fn reducing(procedure: Procedure, arguments: &[u32], behind: usize, length: u32) -> Call {
        let rpc = wire::call(7, procedure, &words(arguments));
        let read = ReadSegment {
            position: (rpc.len() - behind) as u32,
            segment: Segment {
                length,
                ..Segment::default()
            },
        };
        let mut header = Header::msg(7);
        header.reads.push(read);
        Call::example(header, rpc)
    }

    const COMPOUND: Procedure = Procedure { number: 1, ..NFS };

    #[test]
    fn a_read_chunk_is_as_long_as_its_item() {
        for (length, padded, good) in [
            (5, true, true),
            (8, true, true),
            (5, false, true),
            (8, false, false),
            (4, true, false),
            (12, true, false),
        ] {
            let call = reducing(ECHO, &[5, 0, 0], 8, length);
            assert_eq!(are_as_long(&call, padded).is_ok(), good, "{length}");
        }
        // Nothing is known of other programs.
        let other = Procedure {
            program: 100_227,
            ..ECHO
        };
        assert!(are_as_long(&reducing(other, &[5, 0, 0], 8, 4), true).is_ok());
    }

    #[test]
    fn errors_go_to_calls_in_turn() {
        for (outstanding, start, number) in [
            (&[1, 1, 1, 1, 1, 1][..], 2, Some(2)),
            // Two calls in front of it, and two behind it.
            (&[1, 2, 1, 1, 1, 1, 1], 0, Some(4)),
            (&[1, 2, 1, 1], 1, Some(2)),
            (&[1, 2, 1], 0, Some(2)),
            (&[1, 2, 1, 2], 0, None),
            (&[1, 1, 1], 3, None),
            (&[2, 2], 0, None),
            (&[], 0, None),
        ] {
            let call = |&outstanding| Call {
                outstanding,
                ..Call::example(Header::msg(7), Vec::new())
            };
            let mut plain = Work::default();
            plain.calls = outstanding.iter().map(call).collect();
            assert_eq!(in_turn(&plain, |_| true, start), number, "{outstanding:?}");
            assert_eq!(in_turn(&plain, |_| false, start), None);
        }
    }

    // RFC 8881, sections 18.32.1 and 18.4.1; RFC 1813, sections 3.3.7 and 3.3.10.
    #[test]
    fn eligible_arguments_are_found() {
        let write = [0, 0, 2, 22, 0, 38, 0, 0, 0, 0, 0, 0, 2, 5, 0, 0, 9];
        let link = [0, 0, 1, 6, 5, 5, 0, 0, 1, 0, 0];
        let directory = [0, 0, 1, 6, 2, 5, 0, 0, 1, 0, 0];
        let version3 = |number| Procedure {
            version: 3,
            number,
            ..NFS
        };
        let link2 = Procedure {
            version: 2,
            number: 13,
            ..NFS
        };
        let acl = Procedure {
            program: 100_227,
            ..version3(2)
        };
        for (procedure, arguments, behind, eligible) in [
            (COMPOUND, &write[..], 12, true),
            (COMPOUND, &write[..], 16, false),
            (COMPOUND, &link[..], 20, true),
            (COMPOUND, &directory[..], 20, false),
            (version3(7), &[0, 0, 0, 5, 2, 5, 0, 0][..], 8, true),
            (version3(7), &[0, 0, 0, 5, 2, 5, 0, 0][..], 12, false),
            (version3(10), &[0, 0, 5, 0, 0][..], 8, true),
            (
                link2,
                &[0, 0, 5, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8][..],
                40,
                true,
            ),
            (
                link2,
                &[0, 0, 5, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8][..],
                36,
                false,
            ),
            (acl, &[0, 0, 5, 0, 0][..], 8, false),
            (version3(3), &[0, 5, 0, 0][..], 8, false),
            (ECHO, &[5, 0, 0][..], 8, false),
        ] {
            let call = reducing(procedure, arguments, behind, 5);
            let found = are_eligible(&call);
            assert_eq!(found.is_ok(), eligible, "{procedure:?}: {found:?}");
        }
        // A Position Zero Read chunk has the whole call.
        let call = reducing(ECHO, &[], 40, 40);
        assert!(are_eligible(&call).is_ok());
    }

    #[test]
    fn room_for_padding_is_found() {
        let read = [0, 0, 1, 25, 0, 0, 0, 0, 0, 0];
        let read3 = Procedure {
            version: 3,
            number: 6,
            ..NFS
        };
        for (procedure, arguments) in [(LOAD, &[][..]), (read3, &[0, 0, 0]), (COMPOUND, &read)] {
            for (count, lengths, good) in [
                (5, &[5][..], true),
                (5, &[8], false),
                (8, &[8], true),
                (5, &[4096], true),
                (5, &[5, 4], false),
                (5, &[4, 1], true),
                (5, &[4, 4], false),
                (5, &[5, 0], true),
                (5, &[4096, 4096], true),
                (8, &[8, 4], true),
            ] {
                let mut call = reducing(procedure, &[arguments, &[count]].concat(), 0, 0);
                let segment = |&length: &u32| Segment {
                    length,
                    ..Segment::default()
                };
                call.header.writes = vec![lengths.iter().map(segment).collect()];
                let found = has_no_room_for_padding(&call).is_ok();
                assert_eq!(found, good, "{procedure:?}, {count}, {lengths:?}");
            }
        }
    }

    #[test]
    fn wrong_data_is_no_reported_error() {
        let is_violation = |found| matches!(found, Err(Problem::Violation(_)));
        let is_inconclusive = |found| matches!(found, Err(Problem::Inconclusive(_)));
        assert!(reports_error(Some(1), false).is_ok());
        assert!(is_violation(reports_error(Some(0), false)));
        assert!(is_violation(reports_error(
            Some(i32::from(WRONG_DATA)),
            false
        )));
        assert!(is_violation(reports_error(
            Some(i32::from(WRONG_DATA)),
            true
        )));
        assert!(is_inconclusive(reports_error(Some(0), true)));
        assert!(is_inconclusive(reports_error(None, false)));
    }
}
