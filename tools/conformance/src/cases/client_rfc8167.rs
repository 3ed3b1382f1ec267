// SPDX-License-Identifier: GPL-2.0

//! RFC 8167, for clients: they answer calls.

use std::cell::Cell;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use crate::case::case;
use crate::case::inconclusive;
use crate::case::violation;
use crate::case::Case;
use crate::case::Passed;
use crate::case::Problem;
use crate::case::Verdict;
use crate::cases::client_rfc8166::ACCESS;
use crate::cases::client_rfc8166::HOLD;
use crate::cases::client_rfc8797::more_connections;
use crate::cases::client_rfc8797::recovered;
use crate::cases::client_rfc8797::undisturbed;
use crate::cases::rfc8166_chunks::UNKNOWN;
use crate::cases::rfc8167::DISTINCT;
use crate::engine::Arrival;
use crate::engine::Connection;
use crate::engine::Memory;
use crate::engine::REMOTE_READ;
use crate::engine::REMOTE_WRITE;
use crate::gateway::Backchannel;
use crate::gateway::Call;
use crate::gateway::Gateway;
use crate::gateway::Next;
use crate::gateway::Shape;
use crate::gateway::Work;
use crate::wire;
use crate::wire::Header;
use crate::wire::Procedure;
use crate::wire::ReadSegment;
use crate::wire::Segment;
use crate::wire::Status;
use crate::wire::Transport;

const FORMS_REPLY: &str =
    "To form a reverse-direction RPC-over-RDMA Reply message, an ONC RPC client endpoint \
     constructs an RPC-over-RDMA header containing a copy of the matching ONC RPC Call's RPC XID \
     in the rdma_xid field";
const VERSION: &str = "The rdma_vers field MUST contain the same value in a reverse-direction \
                       Reply message as in the matching Call message.";
const UNIQUE: &str = "The XID of a Call is arbitrary but is unique among outstanding Calls from \
                      that Requester.";
const CREDITS: &str =
    "RFC 8167, section 5.2: The number of granted reverse-direction credits is placed in the \
     rdma_credit field (see Section 4).";
const SEPARATE: &str =
    "RFC 8167, section 4.1: forward-direction credits and reverse-direction credits on the same \
     connection are accounted separately. Direction-independent credit accounting prevents \
     head-of-line blocking in one direction from impacting operation in the other direction.";
const NO_CHUNKS: &str = "RFC 8167, section 5.3: If a reverse-direction requester provides a \
                         non-empty chunk list to a Responder that does not support chunks, the \
                         Responder MUST reply with an RDMA_ERROR message with rdma_err field set \
                         to ERR_CHUNK.";

/// The XID of the server's own calls.
pub const XID: u32 = 0x7266_6331;
/// How many calls are more than any client grants here.
const MANY_CALLS: u32 = 40;
/// How many calls are more than the Receives that any client posts here, and how many are under way
/// at once, if the client grants as many.
const MANY_IN_TURN: u32 = 200;
const AT_ONCE: u32 = 4;

/// Calls the client once, as soon as it accepts calls, in front of the reply to a call of its own.
/// `octets` gets what the client accepts, and the client's call.
fn called(
    gateway: &mut Gateway<'_>,
    octets: fn(&Backchannel, &Call) -> Vec<u8>,
) -> Result<(Work, u32), Problem> {
    called_by(gateway, Shape::default, octets)
}

/// The same by a server of this shape.
pub fn called_by(
    gateway: &mut Gateway<'_>,
    shape: fn() -> Shape,
    octets: fn(&Backchannel, &Call) -> Vec<u8>,
) -> Result<(Work, u32), Problem> {
    called_with(gateway, shape, move |client, call, _| octets(client, call))
}

/// The same. `octets` gets the connection, too. If that is lost without an answer, perhaps for
/// another reason, the client is called once more.
fn called_with(
    gateway: &mut Gateway<'_>,
    shape: fn() -> Shape,
    octets: impl FnMut(&Backchannel, &Call, &mut Connection) -> Vec<u8> + 'static,
) -> Result<(Work, u32), Problem> {
    let octets: Octets = Rc::new(RefCell::new(octets));
    let (work, xid) = called_once(gateway, shape(), octets.clone())?;
    if answers(&work, xid).is_empty() && more_connections(gateway, &work) {
        return called_once(gateway, shape(), octets);
    }
    Ok((work, xid))
}

/// Returns the octets of a call for what the client accepts, its call and its connection.
type Octets = Rc<RefCell<dyn FnMut(&Backchannel, &Call, &mut Connection) -> Vec<u8>>>;

fn called_once(
    gateway: &mut Gateway<'_>,
    shape: Shape,
    octets: Octets,
) -> Result<(Work, u32), Problem> {
    let sent = Rc::new(RefCell::new(None));
    let own = sent.clone();
    let work = gateway.work(Shape {
        on_call: Box::new(move |call, connection| {
            let mut sent = own.borrow_mut();
            if let (Some(client), None) = (&call.accepts, *sent) {
                let octets = (octets.borrow_mut())(client, call, connection);
                *sent = octets
                    .get(..4)
                    .and_then(|xid| Some(u32::from_be_bytes(xid.try_into().ok()?)));
                let _ = connection.send(&octets);
            }
            Next::Serve
        }),
        ..shape
    })?;
    work.first()?;
    let xid = *sent.borrow();
    match xid {
        Some(xid) => Ok((work, xid)),
        None => work.not_called(),
    }
}

/// Returns the client's answers with this XID.
fn answers(work: &Work, xid: u32) -> Vec<&Vec<u8>> {
    let own = |octets: &&Vec<u8>| octets.get(..4) == Some(&xid.to_be_bytes());
    work.reverse.iter().filter(own).collect()
}

/// Returns the only answer with this XID.
pub fn only_answer<'a>(
    gateway: &Gateway<'_>,
    work: &'a Work,
    xid: u32,
) -> Result<&'a [u8], Problem> {
    match answers(work, xid)[..] {
        [octets] => Ok(octets),
        [] if more_connections(gateway, work) => violation(
            "each time that it is called, the client ends the connection without an answer",
        ),
        ref found => violation(format!("the client gives {} answers", found.len())),
    }
}

/// Returns the header and the status of the only answer.
pub fn answer(gateway: &Gateway<'_>, work: &Work, xid: u32) -> Result<(Header, Status), Problem> {
    match Transport::parse(only_answer(gateway, work, xid)?) {
        Ok(Transport::Chunks(header, rpc)) => match wire::parse_reply(&rpc) {
            Ok((payload, status)) if payload == xid => Ok((header, status)),
            Ok((payload, _)) => violation(format!("the RPC reply has XID {payload:08x}")),
            Err(why) => violation(format!("the RPC reply is malformed: {why}")),
        },
        Ok(other) => violation(format!("the answer is {other:?}")),
        Err(why) => violation(format!("the answer is malformed: {why}")),
    }
}

/// Returns an error if the client has refused the credential of the call: it need not allow
/// that.
fn authorized(_: &Work, status: &Status) -> Result<(), Problem> {
    match status {
        Status::AuthError(_) => inconclusive("the client refuses the credential of the call"),
        _ => Ok(()),
    }
}

/// The same for the version of the program: the client need not have it (`CALLBACK_VERSION`).
pub fn accepted(work: &Work, status: &Status) -> Result<(), Problem> {
    authorized(work, status)?;
    let mut clients = work.calls.iter().filter_map(|call| call.accepts.as_ref());
    match (status, clients.next()) {
        (&Status::ProgMismatch(low, high), Some(client))
            if !(low..=high).contains(&client.null.version) =>
        {
            inconclusive("the client does not have the version of the program")
        }
        _ => Ok(()),
    }
}

/// Whether the call has a credential of RPCSEC_GSS: such a call differs when it is sent again (RFC
/// 2203, section 5.3.3.1).
fn is_gss(rpc: &[u8]) -> bool {
    rpc.get(24..28).is_some_and(|flavor| flavor == [0, 0, 0, 6])
}

/// The connection ends within the fourth call, and replies are held back. `bad` gets each call that
/// has the XID of an earlier one, the earlier one, and whether that had a reply. A call that was lost
/// with its connection is under way only if it is sent again.
fn xids(gateway: &mut Gateway<'_>, bad: fn(&Call, &Call, bool) -> bool) -> Verdict {
    let known: Rc<RefCell<BTreeMap<u32, (Call, bool)>>> = Rc::default();
    let replied = known.clone();
    let found = Rc::new(RefCell::new(Vec::new()));
    let own = found.clone();
    let work = gateway.work(Shape {
        hold: HOLD,
        on_call: Box::new(move |call, _| {
            let mut known = known.borrow_mut();
            let xid = call.header.xid;
            if let Some((earlier, answered)) = known.get(&xid) {
                if bad(call, earlier, *answered) {
                    let lost = !answered && call.connection != earlier.connection;
                    own.borrow_mut().push((call.number, earlier.clone(), lost));
                }
            }
            known.insert(xid, (call.clone(), false));
            match (call.connection, call.on_connection) {
                (0, 3) => Next::Disconnect,
                _ => Next::Serve,
            }
        }),
        on_reply: Box::new(move |call, _| {
            if let Some((_, answered)) = replied.borrow_mut().get_mut(&call.header.xid) {
                *answered = true;
            }
        }),
        ..Shape::default()
    })?;
    work.first()?;
    let found = found.take();
    for (number, earlier, lost) in &found {
        let mut later = work.calls.iter().skip(number + 1);
        if !lost || later.any(|call| call.rpc == earlier.rpc) {
            let xid = earlier.header.xid;
            return violation(format!("two calls have the XID {xid:08x}"));
        }
    }
    if !found.is_empty() {
        return inconclusive("a call has the XID of one that the client may have given up");
    }
    if !more_connections(gateway, &work) {
        return inconclusive(format!(
            "the client has not connected again; {}",
            work.end()
        ));
    }
    Ok(Passed)
}

fn null(client: &Backchannel, _: &Call) -> Vec<u8> {
    Header::msg(XID).with(&client.call(XID))
}

fn null_succeeds(gateway: &mut Gateway<'_>) -> Verdict {
    status(gateway, null, accepted, |status| {
        matches!(status, Status::Success(_))
    })
}

fn header(gateway: &mut Gateway<'_>, holds: fn(&Header) -> Result<(), String>) -> Verdict {
    let (work, xid) = called(gateway, null)?;
    if answers(&work, xid).is_empty() {
        return inconclusive("the client gives no answer");
    }
    let (header, _) = answer(gateway, &work, xid)?;
    holds(&header).or_else(violation)?;
    Ok(Passed)
}

fn same_xid(gateway: &mut Gateway<'_>) -> Verdict {
    let (work, xid) = called(gateway, |client, call| {
        let xid = call.header.xid;
        Header::msg(xid).with(&client.call(xid))
    })?;
    answer(gateway, &work, xid)?;
    undisturbed(gateway, &work)
}

/// Calls the client. `allowed` excuses statuses that are not good.
fn status(
    gateway: &mut Gateway<'_>,
    octets: fn(&Backchannel, &Call) -> Vec<u8>,
    allowed: fn(&Work, &Status) -> Result<(), Problem>,
    good: fn(&Status) -> bool,
) -> Verdict {
    let (work, xid) = called(gateway, octets)?;
    let (_, status) = answer(gateway, &work, xid)?;
    if !good(&status) {
        allowed(&work, &status)?;
        return violation(format!("the call gets {status:?}"));
    }
    undisturbed(gateway, &work)
}

/// Makes more calls at once than the client grants, as Long Calls with `long`. Each is answered, or
/// the connection ends. The client works on. Only version 1 requires answers, to calls with chunks.
pub fn excess(gateway: &mut Gateway<'_>, shape: Shape, long: bool) -> Verdict {
    let version = 1 + u32::from(shape.two);
    let must_answer = long && !shape.two;
    let sent = Rc::new(Cell::new(false));
    let own = sent.clone();
    let exposed = Rc::new(Cell::new(true));
    let all = exposed.clone();
    let mut memories = Vec::new();
    let work = gateway.work(Shape {
        on_call: Box::new(move |call, connection| {
            let (Some(client), false) = (&call.accepts, own.get()) else {
                return Next::Serve;
            };
            own.set(true);
            let mut messages = Vec::new();
            for xid in XID..XID + MANY_CALLS {
                let mut header = Header {
                    version,
                    ..Header::msg(xid)
                };
                let rpc = client.call(xid);
                match connection.expose(&rpc, REMOTE_READ) {
                    Ok(memory) if long => {
                        header.procedure = wire::NOMSG;
                        header.reads.push(ReadSegment {
                            position: 0,
                            segment: Segment {
                                handle: memory.key(),
                                length: rpc.len() as u32,
                                offset: memory.offset(),
                            },
                        });
                        memories.push(memory);
                        messages.push(header.octets());
                    }
                    Err(_) if long => all.set(false),
                    _ => messages.push(header.with(&rpc)),
                }
            }
            let _ = connection.send_all(&messages);
            Next::Serve
        }),
        ..shape
    })?;
    work.first()?;
    if !sent.get() {
        return work.not_called();
    }
    if !exposed.get() {
        return inconclusive("this device does not register as many chunks");
    }
    let answered = (XID..XID + MANY_CALLS).filter(|&xid| answers(&work, xid).len() == 1);
    let count = answered.count();
    // Calls and answers are lost with a connection.
    if more_connections(gateway, &work) {
        let later = |call: &Call| call.connection >= gateway.client.connections;
        if work.calls.iter().any(later) {
            return recovered(gateway, &work);
        }
        return inconclusive("the client makes no call on another connection");
    }
    if count < MANY_CALLS as usize {
        let why = format!(
            "the client answers {count} of {MANY_CALLS} calls, and makes no other connection; {}",
            work.end()
        );
        if must_answer {
            return violation(why);
        }
        work.succeeded(gateway)?;
        return inconclusive(why);
    }
    work.succeeded(gateway)?;
    Ok(Passed)
}

/// The grant while the client is called, and how many calls may be under way then.
const FEW: u32 = 2;

/// While as many calls are under way as are granted, NULL arrives that requests many more credits.
fn request_is_no_grant(gateway: &mut Gateway<'_>) -> Verdict {
    let plain = gateway.shared("many credits", || Shape {
        hold: HOLD,
        ..Shape::default()
    })?;
    let accepts = |call: &&Call| call.accepts.is_some();
    if !plain.calls.iter().any(|call| accepts(&call)) {
        return plain.not_called();
    }
    let busy = plain.calls.iter().filter(accepts);
    let Some(busy) = busy
        .into_iter()
        .find(|call| call.outstanding > FEW as usize)
    else {
        return inconclusive("the client has never had three calls under way");
    };
    let from = busy.number - FEW as usize;
    let sent = Rc::new(Cell::new(None));
    let own = sent.clone();
    let work = gateway.work(Shape {
        credits: FEW,
        hold: HOLD,
        on_call: Box::new(move |call, connection| {
            let full = call.number >= from && call.outstanding == FEW as usize;
            if let (Some(client), true, None) = (&call.accepts, full, own.get()) {
                own.set(Some(call.number));
                let _ = connection.send(&null(client, call));
                // The client has time to handle it before the next reply.
                thread::sleep(10 * HOLD);
            }
            Next::Serve
        }),
        ..Shape::default()
    })?;
    work.first()?;
    let Some(number) = sent.get() else {
        return inconclusive("the client has never had two calls under way");
    };
    if let Some(call) = work
        .calls
        .iter()
        .find(|call| call.outstanding > FEW as usize)
    {
        return violation(format!(
            "{} calls are under way, {FEW} are granted",
            call.outstanding
        ));
    }
    if work.calls.len() == number + 1 {
        return inconclusive("the client has made no call behind that");
    }
    work.succeeded(gateway)?;
    Ok(Passed)
}

/// How long an answer may take. Clients may end the connection if their own call has no reply for
/// three seconds.
const ANSWER: Duration = Duration::from_secs(2);

/// Calls the client within the first of its calls that lets it be called. If `ask` fails, `failed` is
/// what becomes of that call.
fn within_call(
    gateway: &mut Gateway<'_>,
    shape: Shape,
    failed: Next,
    ask: fn(&mut Connection, &Backchannel) -> Verdict,
) -> Verdict {
    let found = Rc::new(RefCell::new(None));
    let own = found.clone();
    let work = gateway.work(Shape {
        on_call: Box::new(move |call, connection| {
            let mut found = own.borrow_mut();
            let (Some(client), None) = (&call.accepts, found.as_ref()) else {
                return Next::Serve;
            };
            match found.insert(ask(connection, client)) {
                Ok(Passed) => Next::Serve,
                Err(_) => failed,
            }
        }),
        ..shape
    })?;
    work.first()?;
    match found.take() {
        Some(verdict) => verdict?,
        None => return work.not_called(),
    };
    undisturbed(gateway, &work)
}

/// With a grant of 1, and a call under way, the client has no credit left. It answers NULL, if it does
/// so with credits.
fn answers_without_credit(gateway: &mut Gateway<'_>) -> Verdict {
    let shape = Shape {
        credits: 1,
        ..Shape::default()
    };
    let verdict = within_call(gateway, shape, Next::Serve, answers_one);
    let Err(Problem::Violation(why)) = &verdict else {
        return verdict;
    };
    match within_call(gateway, Shape::default(), Next::Serve, answers_one) {
        Err(Problem::Violation(again)) if again == *why => {
            inconclusive(format!("with 32 credits, too: {why}"))
        }
        _ => verdict,
    }
}

/// Makes one call. It has an answer.
fn answers_one(connection: &mut Connection, client: &Backchannel) -> Verdict {
    let _ = connection.send(&Header::msg(XID).with(&client.call(XID)));
    match connection.receive_answer(XID, ANSWER) {
        Arrival::Message(_) => Ok(Passed),
        Arrival::Closed(why) => {
            inconclusive(format!("the connection has ended before an answer: {why}"))
        }
        Arrival::Nothing => violation("the client does not answer while its own call has no reply"),
    }
}

/// Calls the client many times within one call of its own. A client without a Receive would have no
/// reply to that, either.
fn many_in_turn(gateway: &mut Gateway<'_>) -> Verdict {
    within_call(gateway, Shape::default(), Next::Disconnect, answers_all)
}

/// Makes calls, as many at once as the client grants, up to a few. Each has an answer.
fn answers_all(connection: &mut Connection, client: &Backchannel) -> Verdict {
    let begun = Instant::now();
    let (mut answered, mut grant) = (0, 1);
    let mut slowest = Duration::ZERO;
    while answered < MANY_IN_TURN {
        let sent = Instant::now();
        let xids = XID + answered..XID + MANY_IN_TURN.min(answered + grant.clamp(1, AT_ONCE));
        for xid in xids.clone() {
            // Without a Receive of the client it does not complete.
            connection
                .post_send(&Header::msg(xid).with(&client.call(xid)))
                .or_else(inconclusive)?;
        }
        for xid in xids {
            let left = ANSWER.saturating_sub(begun.elapsed());
            match connection.receive_answer(xid, left) {
                Arrival::Message(message) => {
                    let credits = message.octets.get(8..12).and_then(|it| it.try_into().ok());
                    grant = credits.map_or(1, u32::from_be_bytes);
                    answered += 1;
                    slowest = slowest.max(sent.elapsed());
                }
                Arrival::Closed(why) if answered == 0 => {
                    return inconclusive(format!(
                        "the connection has ended before an answer: {why}"
                    ));
                }
                Arrival::Closed(why) => {
                    return violation(format!("the connection ends after {answered} calls: {why}"));
                }
                // The answers may be slow.
                Arrival::Nothing if left < (4 * slowest).max(ANSWER / 4) => {
                    return inconclusive(format!(
                        "only {answered} calls have had an answer within {} ms",
                        ANSWER.as_millis()
                    ));
                }
                Arrival::Nothing => {
                    return violation(format!(
                        "the client answers {answered} calls, and not the next one"
                    ));
                }
            }
        }
    }
    Ok(Passed)
}

/// Calls the client with a chunk of that many octets. `add` puts it into the header, and gets the
/// length of the RPC message.
fn called_with_chunk(
    gateway: &mut Gateway<'_>,
    room: usize,
    access: u32,
    add: fn(&mut Header, Segment, u32),
) -> Result<(Work, u32, Memory), Problem> {
    let memory: Rc<RefCell<Option<Memory>>> = Rc::default();
    let own = memory.clone();
    let (work, xid) = called_with(gateway, Shape::default, move |client, _, connection| {
        let mut header = Header::msg(XID);
        let rpc = client.call(XID);
        if let Ok(memory) = connection.expose(&vec![0; room], access) {
            let segment = Segment {
                handle: memory.key(),
                length: room as u32,
                offset: memory.offset(),
            };
            add(&mut header, segment, rpc.len() as u32);
            own.replace(Some(memory));
        }
        header.with(&rpc)
    })?;
    match memory.take() {
        Some(memory) => Ok((work, xid, memory)),
        None => inconclusive("this device does not register the chunk"),
    }
}

fn read_chunk(gateway: &mut Gateway<'_>) -> Verdict {
    let (work, xid, _) =
        called_with_chunk(gateway, 4, REMOTE_READ, |header, segment, position| {
            header.reads.push(ReadSegment { position, segment });
        })?;
    match Transport::parse(only_answer(gateway, &work, xid)?) {
        Ok(Transport::Error {
            error: wire::ERR_CHUNK,
            version: 1,
            ..
        }) => undisturbed(gateway, &work),
        Ok(Transport::Chunks(..)) => match answer(gateway, &work, xid)? {
            // Of a client that has chunks, and finds none of the arguments to be eligible.
            (_, Status::GarbageArgs) => undisturbed(gateway, &work),
            (_, Status::Success(_)) => {
                inconclusive("the client may have read the chunk, which NULL does not need")
            }
            (_, other) => {
                accepted(&work, &other)?;
                violation(format!("the call gets {other:?}"))
            }
        },
        other => violation(format!("the answer is {other:?}")),
    }
}

/// Calls the client with a Reply chunk. One that has no chunks answers ERR_CHUNK. One that has them
/// answers inline, or by that chunk.
fn reply_chunk(gateway: &mut Gateway<'_>) -> Verdict {
    let (work, xid, memory) =
        called_with_chunk(gateway, 256, REMOTE_WRITE, |header, segment, _| {
            header.reply = Some(vec![segment]);
        })?;
    let (header, rpc) = match Transport::parse(only_answer(gateway, &work, xid)?) {
        Ok(Transport::Error {
            error: wire::ERR_CHUNK,
            version: 1,
            ..
        }) => return undisturbed(gateway, &work),
        Ok(Transport::Chunks(header, rpc)) => (header, rpc),
        other => return violation(format!("the answer is {other:?}")),
    };
    let Some([returned]) = header.reply.as_deref() else {
        return violation("the reply lacks the Reply chunk");
    };
    let rpc = if header.procedure == wire::NOMSG {
        let mut octets = memory.octets();
        octets.truncate(returned.length as usize);
        octets
    } else {
        rpc
    };
    let reply = wire::parse_reply(&rpc);
    if let Ok((_, status)) = &reply {
        accepted(&work, status)?;
    }
    match reply {
        Ok((payload, Status::Success(_))) if payload == xid => undisturbed(gateway, &work),
        other => violation(format!("NULL gets {other:?}")),
    }
}

fn other_version(gateway: &mut Gateway<'_>) -> Verdict {
    let (work, xid) = called(gateway, |client, _| {
        let mut header = Header::msg(XID);
        header.version = 77;
        header.with(&client.call(XID))
    })?;
    match Transport::parse(only_answer(gateway, &work, xid)?) {
        Ok(Transport::Error {
            error: wire::ERR_VERS,
            version: 77,
            range: Some((low, high)),
            ..
        }) if low <= 1 && (1..77).contains(&high) => undisturbed(gateway, &work),
        other => violation(format!("the answer is {other:?}")),
    }
}

pub const CASES: &[Case] = &[
    case!(client "rfc8167/5.2/c1", "the client answers NULL", Must, FORMS_REPLY,
        sends "NULL of the client's program, once the client accepts calls", accepts "SUCCESS; the work succeeds",
        fault "no-answers", null_succeeds),
    case!(client "rfc8167/5.2/c2", "the client's reply has the version of the call", Must, VERSION,
    sends "NULL in version 1", accepts "rdma_vers 1", fault "answers-in-version-2",
    |gateway| header(gateway, |header| {
        (header.version == 1).then_some(()).ok_or(format!("version {}", header.version))
    })),
    case!(client "rfc8167/4.1/c1", "the client's reply grants a credit", Must, CREDITS,
    sends "NULL that requests 32 credits", accepts "rdma_credit of at least 1", fault "answers-without-credit",
    |gateway| header(gateway, |header| {
        (header.credits > 0).then_some(()).ok_or("the reply grants no credit".into())
    })),
    case!(client "rfc8167/4.1/c2", "more calls at once than the client grants", Must, ACCESS,
        sends "forty NULL at once, once the client accepts calls",
        accepts "one answer to each and the work succeeds, or calls on another connection; no wrong data",
        fault "dies-of-excess", |gateway| excess(gateway, Shape::default(), false)),
    case!(client "rfc8167/4.1/c3", "more Long Calls at once than the client grants", Must, NO_CHUNKS,
        sends "forty NULL at once as Long Calls, once the client accepts calls",
        accepts "one reply or ERR_CHUNK to each and the work succeeds, or calls on another connection; \
                 no wrong data",
        fault "dies-of-excess", |gateway| excess(gateway, Shape::default(), true)),
    case!(client "rfc8167/4.1/c4", "the credits that the server requests are no grant", Must,
        SEPARATE,
        sends "a grant of 2; NULL that requests 32 credits while two calls are under way; replies \
               after 100 ms without a call",
        accepts "at most two calls under way; the work succeeds", fault "one-credit-count",
        request_is_no_grant),
    case!(client "rfc8167/4.1/c5", "the client answers while its own credits are used up", Must,
        SEPARATE,
        sends "a grant of 1; NULL within a call of the client, whose reply follows the answer; if there is \
               no answer, the same with a grant of 32",
        accepts "an answer within 2 s; the work succeeds on one connection",
        fault "answers-need-credit", answers_without_credit),
    case!(client "rfc8167/4.3.1/c1", "calls of the server do not use up the Receives", Must,
        "To receive incoming reverse-direction Calls, an RPC-over-RDMA client endpoint posts enough \
         additional Receive buffers to match its advertised reverse-direction credit value.",
        sends "200 NULL within a call of the client: one at a time, or up to four if it grants as many",
        accepts "answers to all of them within 2 s; the work succeeds on one connection",
        fault "keeps-receives", many_in_turn),
    case!(client "rfc8167/5.2/c3", "the client's reply has no chunks", Must,
    "RFC 8167, section 5.3: They operate the same way as in the forward direction. … RFC 8166, \
     section 4.3: Often, an RPC-over-RDMA message has no associated chunks. In this case, the Read \
     list, Write list, and Reply chunk are all marked \"not present\". … RFC 8166, section 4.3.1: \
     Responders MUST leave the Read list empty in all replies.",
    sends "NULL without chunks", accepts "empty lists", fault "answers-with-read-list",
    |gateway| header(gateway, |header| {
        let empty = header.reads.is_empty() && header.writes.is_empty() && header.reply.is_none();
        empty.then_some(()).ok_or("the reply has chunks".into())
    })),
    case!(client "rfc8167/2.4/c1", "calls under way have different XIDs", Must, UNIQUE,
    sends "a disconnect in place of the fourth reply; replies after 100 ms without a call",
    accepts "no call with the XID of another one that has no reply, on any connection",
    fault "one-xid",
    |gateway| xids(gateway, |call, earlier, answered| {
        !answered && call.rpc != earlier.rpc && !is_gss(&earlier.rpc)
    })),
    case!(client "rfc8167/2.4/c2", "another connection does not begin with the XIDs of the first one", May, UNIQUE,
    sends "a disconnect in place of the fourth reply; replies after 100 ms without a call",
    accepts "no call with the XID of one that was answered on an earlier connection",
    fault "xids-restart",
    |gateway| xids(gateway, |call, earlier, answered| {
        answered && call.connection > earlier.connection && call.rpc != earlier.rpc
    })),
    case!(client "rfc8167/2.4.1/c1", "a call with the XID of the client's own call", Must, DISTINCT,
        sends "NULL with the XID of the client's call under way", accepts "a reply to it; the work succeeds",
        fault "one-xid-space", same_xid),
    case!(client "rfc8167/5.2/c4", "an unknown program of the client gets an error", Must,
        UNKNOWN,
        sends "NULL of program 0x3fffffff", accepts "PROG_UNAVAIL; the work succeeds", fault "any-program",
        |gateway| status(gateway, |client, _| {
            let program = 0x3fff_ffff;
            let null = Procedure { program, ..client.null };
            Header::msg(XID).with(&client.call_of(null, XID))
        }, authorized, |status| *status == Status::ProgUnavail)),
    case!(client "rfc8167/5.2/c5", "an unknown procedure of the client gets an error", Must,
        "RFC 5531, section 9: PROC_UNAVAIL = 3, /* program can't support procedure */",
        sends "procedure 9999", accepts "PROC_UNAVAIL; the work succeeds", fault "any-procedure",
        |gateway| status(gateway, |client, _| {
            let unknown = Procedure { number: 9999, ..client.null };
            Header::msg(XID).with(&client.call_of(unknown, XID))
        }, accepted, |status| *status == Status::ProcUnavail)),
    case!(client "rfc8167/5.3/c1", "a call with a chunk gets an error", Must, NO_CHUNKS,
        sends "NULL with a Read chunk of four octets",
        accepts "ERR_CHUNK, or GARBAGE_ARGS of a client that has chunks; the work succeeds",
        fault "drops-chunks", read_chunk),
    case!(client "rfc8167/5.3/c2", "a call with a Reply chunk gets an answer", Must, NO_CHUNKS,
        sends "NULL with a Reply chunk",
        accepts "ERR_CHUNK, or SUCCESS inline or by that chunk; the work succeeds",
        fault "drops-chunks", reply_chunk),
    // A header of an unknown version has no known form. The client cannot tell that it is a call,
    // and discards malformed replies (RFC 8166, section 4.5). So this is a SHOULD.
    case!(client "rfc8167/5.1/c1", "a call in version 77 gets ERR_VERS", Should,
        "RFC 8166, section 4.5.1: When a Responder detects an RPC-over-RDMA header version that it does \
         not support … it MUST reply with an RDMA_ERROR procedure and set the rdma_err value to \
         ERR_VERS",
        sends "NULL in version 77",
        accepts "ERR_VERS in version 77, with a range that holds 1 and not 77; the work succeeds",
        fault "drops-versions", other_version),
];
