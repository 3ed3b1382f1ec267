// SPDX-License-Identifier: GPL-2.0

//! The requester's side: calls, and what is made of the replies (RFC 8166, section 3).
//!
//! There is one call at a time on a connection, which is within any responder's credits, and which
//! is all that is allowed before the first reply (RFC 8166, section 3.3.3). A call or a reply that
//! is longer than the inline threshold is a Long Message: it goes through memory that the responder
//! reads or writes (RFC 8166, section 3.5.3).

use core::mem;

use kernel::{
    alloc::flags::__GFP_NOWARN,
    bindings,
    prelude::*,
    sync::{
        Arc,
        ArcBorrow,
        CondVarTimeoutResult, //
    },
    time::{
        msecs_to_jiffies,
        Instant,
        Monotonic, //
    },
    workqueue::WorkItem, //
};

use super::{
    payload::Payload,
    Completions,
    Connection,
    Inner,
    Side,
    GREET, //
};
use crate::{
    failure::Failure,
    protocol::{
        header::{
            self,
            chunks::{
                ChunkLists,
                List,
                ReadSegment,
                Segment, //
            },
            Body,
            Direction,
            Header,
            Version,
            Versions, //
        },
        negotiation::Role,
        program::{
            self,
            Program, //
        },
        rpc::{
            self,
            Call,
            Status, //
        },
        snapshot::{
            Null,
            State, //
        }, //
    },
    rdma::{
        arrival::{
            Arrival,
            Invalidated, //
        },
        cm_id::CmId,
        errno,
        purpose::Purpose,
        queue_pair::QueuePair,
        registration::Registration, //
    }, //
};

/// The longest first message, in octets: the default inline threshold of version 1 (RFC 8166,
/// section 3.3.3; draft-cel-nfsv4-rpcrdma-version-two-01, section 5).
const FIRST_MESSAGE: u32 = 1024;

/// How many pages a memory region has at most, as in rdma_rw.
const REGION_PAGES: u32 = 256;

/// Length in octets of a call's head with AUTH_NONE.
const CALL_HEAD: usize = 40;

/// Length in octets of a reply's head with AUTH_NONE.
const REPLY_HEAD: usize = 24;

/// Length in octets of the longest head of a reply (RFC 5531, sections 8.2 and 9).
const REPLY_HEAD_MAX: usize = 24 + 400;

/// What is called.
#[derive(Clone, Copy)]
pub(crate) struct Procedure {
    pub(crate) program: Program,
    /// How many octets go there and back as `opaque<>`; [`None`] for the NULL procedure.
    pub(crate) echo: Option<u32>,
    /// Whether to offer a Reply chunk even if the reply is short.
    pub(crate) reply_chunk: bool,
}

impl Procedure {
    /// NULL of `program`.
    pub(crate) const fn null(program: Program) -> Self {
        Self {
            program,
            echo: None,
            reply_chunk: false,
        }
    }

    fn call(&self, xid: u32) -> Call {
        Call {
            xid,
            prog: self.program.number,
            vers: self.program.version,
            proc: self.echo.map_or(program::NULL, |_| program::ECHO),
        }
    }

    /// How long the arguments are, and so the results, in octets.
    fn len(&self) -> usize {
        self.echo
            .map_or(0, |size| 4 + (size as usize).next_multiple_of(4))
    }

    /// Writes the arguments from octet `at` of them on into `octets`, by words.
    fn fill(&self, xid: u32, at: usize, octets: &mut [u8]) {
        if let Some(size) = self.echo {
            program::fill_opaque(size, xid, at, octets);
        }
    }
}

/// The memory of a call that does not fit into a message, and that for its reply.
struct Chunks<'a> {
    call: Option<Registration<'a, Completions>>,
    reply: Option<Registration<'a, Completions>>,
}

/// A call that is under way.
pub(super) struct Pending {
    xid: u32,
    version: u32,
    /// Has room for any message; what has arrived is there with the latter.
    octets: KVec<u8>,
    arrival: Option<Arrival>,
}

/// The right to make calls on a connection.
struct Turn<'a>(&'a Connection);

impl<'a> Turn<'a> {
    /// Waits until nobody else makes calls. Fails with `EINTR` on a signal.
    fn take(connection: &'a Connection) -> Result<Self, Failure> {
        let mut inner = connection.inner.lock();
        while inner.calling {
            if connection.changed.wait_interruptible(&mut inner) {
                return Err(Failure::new(EINTR, "interrupted"));
            }
        }
        inner.calling = true;
        Ok(Self(connection))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.inner.lock().calling = false;
        self.0.changed.notify_all();
    }
}

/// What a responder made of a call.
enum Answer {
    Reply(Status),
    /// It speaks only these versions.
    Versions(Versions),
}

fn not_connected() -> Failure {
    Failure::new(errno(bindings::ENOTCONN), "not connected")
}

fn call_failure(error: Error) -> Failure {
    if error == ENOMEM {
        return Failure::new(error, "no memory for a call");
    }
    if error == errno(bindings::EMSGSIZE) {
        return Failure::new(error, "the header is longer than the inline threshold");
    }
    Failure::new(error, "the connection was lost")
}

fn refused(error: u32, detail: &'static CStr) -> Failure {
    Failure::with_detail(errno(error), "the responder answered", detail)
}

/// Says what a reply's status means to who called.
fn outcome(status: Status) -> Result<(), Failure> {
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

/// Whether the message with this header answers a call that was made in `version`.
fn is_answer(header: &Header<'_>, payload: &[u8], version: u32) -> bool {
    let same_version = header.version() == version;
    match header.body {
        // Calls in the other direction have XIDs of their own (RFC 8167, section 4.1).
        Body::Msg(Version::One, _) => same_version && rpc::is_reply(payload),
        Body::Msg(Version::Two(direction), _) => same_version && direction == Direction::Reply,
        Body::Nomsg(of_version, lists) => {
            let is_call = of_version == Version::Two(Direction::Call);
            same_version && !is_call && lists.reads.is_empty() && lists.reply.is_some()
        }
        Body::ErrVers { .. } | Body::ErrChunk | Body::ErrBadHeader | Body::ErrInvalidOption => true,
        Body::Optional { .. } => false,
    }
}

impl Connection {
    /// Hands a message over to who waits for it. All others are discarded (RFC 8166, section 4.5);
    /// what is to be answered to one of them is returned.
    pub(super) fn take_reply(&self, octets: &[u8], arrival: &Arrival) -> Option<Header<'static>> {
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        if arrival.invalidated.is_some() {
            inner.traffic.remote_invalidations_received += 1;
        }
        let Ok((header, payload)) = header::parse(octets) else {
            inner.traffic.bad_headers += 1;
            return None;
        };
        match &mut inner.pending {
            Some(pending)
                if pending.xid == header.xid
                    && pending.arrival.is_none()
                    && is_answer(&header, payload, pending.version)
                    && octets.len() <= pending.octets.capacity() =>
            {
                // There is room.
                let _ = pending.octets.extend_from_slice(octets, GFP_KERNEL);
                pending.arrival = Some(*arrival);
                if !matches!(header.body, Body::ErrVers { .. }) {
                    inner.falls_back = false;
                }
                self.changed.notify_all();
                return None;
            }
            _ => {}
        }
        inner.traffic.unexpected_messages += 1;
        inner.unanswered.retain(|&mut (xid, version)| {
            xid != header.xid || !is_answer(&header, payload, version)
        });
        let asks = matches!(
            header.body,
            Body::Optional {
                direction: Direction::Call,
                ..
            }
        );
        asks.then_some(Header {
            xid: header.xid,
            credit: self.terms.credits,
            body: Body::ErrInvalidOption,
        })
    }

    /// Makes `count` calls, one after the other, and waits for the replies; process context.
    ///
    /// Fails with `EOPNOTSUPP` on a server's end, `ENOTCONN`, `ETIMEDOUT`, `EINTR` on a signal,
    /// `ECONNRESET` where the connection is lost, `EPROTO` and `EPROTONOSUPPORT` where the
    /// responder does not understand the message, `EBADMSG` where the results are not the
    /// arguments, or with what the status of the reply means.
    pub(crate) fn call(
        self: ArcBorrow<'_, Self>,
        procedure: &Procedure,
        count: u32,
    ) -> Result<(), Failure> {
        if self.role() == Role::Server {
            let error = errno(bindings::EOPNOTSUPP);
            return Err(Failure::new(error, "the responder's end makes no calls"));
        }
        let _turn = Turn::take(&self)?;
        let (attempt, queue_pair) = {
            let inner = self.inner.lock();
            let queue_pair = inner.id.as_ref().map(CmId::queue_pair);
            (inner.attempt, queue_pair.ok_or(not_connected())?)
        };
        let queue_pair = queue_pair.access().ok_or(not_connected())?;
        let mut chunks = Chunks {
            call: None,
            reply: None,
        };
        (0..count).try_for_each(|_| self.call_once(&queue_pair, attempt, procedure, &mut chunks))
    }

    /// Runs `change` if attempt number `attempt` has led to the connection that there is.
    fn on<T>(&self, attempt: u32, change: impl FnOnce(&mut Inner) -> T) -> Result<T, Failure> {
        let mut inner = self.inner.lock();
        if inner.attempt == attempt && inner.state == State::Established {
            return Ok(change(&mut inner));
        }
        Err(not_connected())
    }

    /// Makes one call; in version 2 first, where it is not known what the responder speaks.
    fn call_once<'a>(
        self: ArcBorrow<'_, Self>,
        queue_pair: &'a QueuePair<Completions>,
        attempt: u32,
        procedure: &Procedure,
        chunks: &mut Chunks<'a>,
    ) -> Result<(), Failure> {
        let (agreed, remote, free) = self.on(attempt, |inner| {
            // Also what nobody waits for any more has its credit until it is answered (RFC 8166,
            // section 3.3.1).
            let granted = inner.traffic.credits_granted.unwrap_or(1);
            let credits = granted.min(self.terms.credits).max(1) as usize;
            let free = inner.unanswered.len() < credits;
            (inner.exchange.version, inner.exchange.remote, free)
        })?;
        if !free {
            return Err(Failure::new(
                EBUSY,
                "all credits are taken by calls without an answer",
            ));
        }
        let versions = self.terms.versions;
        let mut version = agreed.unwrap_or(versions.high);
        let only_one = |remote| self.shared.only_version_one.contains(remote);
        if agreed.is_none() && versions.contains(1) && remote.is_some_and(only_one) {
            version = 1;
        }

        loop {
            let may_fall_back = agreed.is_none() && version > 1 && versions.contains(1);
            self.on(attempt, |inner| inner.falls_back = may_fall_back)?;
            let answer = self.transact(queue_pair, attempt, version, agreed, procedure, chunks);
            if let (Err(failure), true) = (&answer, may_fall_back) {
                if failure.error == ETIMEDOUT {
                    self.end(Some(attempt), Some(*failure));
                }
            }
            // Where the connection is lost, it has been made use of.
            let _ = self.on(attempt, |inner| inner.falls_back = false);
            let answer = answer?;
            match answer {
                Answer::Reply(status) => {
                    // The peer may have answered and closed.
                    let _ = self.on(attempt, |inner| inner.exchange.version = Some(version));
                    if let Some(remote) = remote.filter(|_| version > 1) {
                        self.shared.only_version_one.remove(remote);
                    }
                    return outcome(status);
                }
                Answer::Versions(theirs) => {
                    // Each version is tried once.
                    let ours = Versions {
                        high: 1,
                        ..versions
                    };
                    let next = ours.highest_common(theirs).filter(|_| may_fall_back);
                    version = next.ok_or(Failure::new(
                        errno(bindings::EPROTONOSUPPORT),
                        "the responder speaks other versions of RPC-over-RDMA",
                    ))?;
                    if let Some(remote) = remote {
                        self.shared.only_version_one.add(remote);
                    }
                }
            }
        }
    }

    /// Sends a call in `version` and waits for what is answered.
    fn transact<'a>(
        &self,
        queue_pair: &'a QueuePair<Completions>,
        attempt: u32,
        version: u32,
        agreed: Option<u32>,
        procedure: &Procedure,
        chunks: &mut Chunks<'a>,
    ) -> Result<Answer, Failure> {
        let (xid, negotiated) = self.on(attempt, |inner| {
            inner.xid = inner.xid.wrapping_add(1);
            (inner.xid, inner.exchange.negotiated(Role::Client))
        })?;
        let negotiated = negotiated.ok_or(call_failure(errno(bindings::ENOTCONN)))?;
        let mut limit = negotiated.client_to_server_threshold;
        if agreed.is_none() {
            limit = limit.min(FIRST_MESSAGE);
        }
        let of_version = match version {
            1 => Version::One,
            _ => Version::Two(Direction::Call),
        };
        let header = |body| Header {
            xid,
            credit: self.terms.credits,
            body,
        };

        // What fits by itself does not need a chunk.
        let plain = header(Body::Msg(of_version, ChunkLists::EMPTY)).len();
        let reply_len = REPLY_HEAD + procedure.len();
        let short_reply = plain + reply_len <= negotiated.server_to_client_threshold as usize;
        let reply = match procedure.reply_chunk || !short_reply {
            true => Some(prepare(
                queue_pair,
                &mut chunks.reply,
                Purpose::Write,
                reply_len,
            )?),
            false => None,
        };
        let reply_segments = match reply {
            Some(reply) => {
                reply.register(xid).map_err(call_failure)?;
                segments(reply).map_err(call_failure)?
            }
            None => KVec::new(),
        };
        let lists = ChunkLists {
            reply: (!reply_segments.is_empty()).then_some(List::new(&reply_segments)),
            ..ChunkLists::EMPTY
        };

        let call_len = CALL_HEAD + procedure.len();
        let inline = header(Body::Msg(of_version, lists)).len() + call_len <= limit as usize;
        let mut reads = KVec::new();
        if !inline {
            let call = prepare(queue_pair, &mut chunks.call, Purpose::Read, call_len)?;
            write_call(call, procedure, xid).map_err(call_failure)?;
            call.register(xid).map_err(call_failure)?;
            for target in &segments(call).map_err(call_failure)? {
                let segment = ReadSegment {
                    position: 0,
                    target: *target,
                };
                reads
                    .push(segment, GFP_KERNEL)
                    .map_err(|error| call_failure(error.into()))?;
            }
        }
        let header = header(match inline {
            true => Body::Msg(of_version, lists),
            false => Body::Nomsg(
                of_version,
                ChunkLists {
                    reads: List::new(&reads),
                    ..lists
                },
            ),
        });

        self.expect(xid, version)?;
        let start: Instant<Monotonic> = Instant::now();
        let sent = queue_pair.send(limit, None, |message| {
            let too_long = |_| errno(bindings::EMSGSIZE);
            message.append_with(|room| header.build(room).map_err(too_long))?;
            if !inline {
                return Ok(());
            }
            let payload = message.append(call_len)?;
            let head = procedure.call(xid).build(payload).map_err(too_long)?;
            procedure.fill(xid, 0, payload.get_mut(head..).unwrap_or_default());
            Ok(())
        });
        let answered = match sent {
            Ok(()) => {
                let mut inner = self.inner.lock();
                inner.traffic.sends += 1;
                match inline && reply_segments.is_empty() {
                    true => inner.traffic.inline_calls += 1,
                    false => inner.traffic.chunked_calls += 1,
                }
                drop(inner);
                self.wait_reply(attempt)
            }
            Err(error) => Err(call_failure(error)),
        };
        let (pending, answered) = {
            let mut inner = self.inner.lock();
            let pending = inner.pending.take();
            // It may have come just when its time was over.
            let answered = match &pending {
                Some(pending) if pending.arrival.is_some() => Ok(()),
                _ => answered,
            };
            if sent.is_ok() && answered.is_err() && inner.attempt == attempt {
                // There is room, or there would have been no call.
                let _ = inner.unanswered.push_within_capacity((xid, version));
            }
            (pending, answered)
        };
        let arrival = pending.as_ref().and_then(|pending| pending.arrival);
        self.invalidate(chunks, arrival.and_then(|arrival| arrival.invalidated))?;
        answered?;
        if let (Some(arrival), None) = (arrival, procedure.echo) {
            let took = (arrival.at - start).as_micros_ceil();
            self.inner.lock().traffic.null_us = Some(took);
        }
        let octets = pending.map(|pending| pending.octets).unwrap_or_default();
        let answer = self.understand(procedure, &octets, &reply_segments, chunks.reply.as_ref());
        self.inner.lock().reply_room = octets;
        answer
    }

    /// Makes ready for the reply to call `xid`.
    fn expect(&self, xid: u32, version: u32) -> Result<(), Failure> {
        let mut inner = self.inner.lock();
        let capacity = inner.exchange.sent.map(|sent| self.terms.capacity(&sent));
        let mut octets = mem::take(&mut inner.reply_room);
        drop(inner);
        let capacity = capacity.transpose().map_err(call_failure)?;
        let room = capacity.map_or(0, |capacity| capacity.receive_size() as usize);
        octets.clear();
        octets
            .reserve(room, GFP_KERNEL | __GFP_NOWARN)
            .map_err(|error| call_failure(error.into()))?;
        self.inner.lock().pending = Some(Pending {
            xid,
            version,
            octets,
            arrival: None,
        });
        Ok(())
    }

    /// Waits until the call that is under way has been answered.
    fn wait_reply(&self, attempt: u32) -> Result<(), Failure> {
        let mut jiffies = msecs_to_jiffies(self.timeout_ms());
        let mut inner = self.inner.lock();
        loop {
            if matches!(&inner.pending, Some(pending) if pending.arrival.is_some()) {
                return Ok(());
            }
            if inner.attempt != attempt || inner.state != State::Established {
                let lost = Failure::new(errno(bindings::ECONNRESET), "the connection was closed");
                return Err(inner.failure.unwrap_or(lost));
            }
            match self.changed.wait_interruptible_timeout(&mut inner, jiffies) {
                CondVarTimeoutResult::Woken { jiffies: rest } => jiffies = rest,
                CondVarTimeoutResult::Timeout => {
                    return Err(Failure::new(ETIMEDOUT, "no reply in time"));
                }
                CondVarTimeoutResult::Signal { .. } => {
                    return Err(Failure::new(EINTR, "interrupted"));
                }
            }
        }
    }

    fn timeout_ms(&self) -> u32 {
        match &self.side {
            Side::Client(target) => target.timeout_ms,
            Side::Server { .. } => 0,
        }
    }

    /// Takes the access to the memory of a call from the responder, which has taken that for
    /// `invalidated` from itself.
    fn invalidate(
        &self,
        chunks: &mut Chunks<'_>,
        invalidated: Option<Invalidated>,
    ) -> Result<(), Failure> {
        for chunk in [&mut chunks.call, &mut chunks.reply].into_iter().flatten() {
            let locally = chunk.invalidate(invalidated).map_err(call_failure)?;
            self.inner.lock().traffic.local_invalidations += u64::from(locally);
        }
        Ok(())
    }

    /// Reads an answer, which has been parsed before.
    fn understand(
        &self,
        procedure: &Procedure,
        octets: &[u8],
        reply_chunk: &[Segment],
        memory: Option<&Registration<'_, Completions>>,
    ) -> Result<Answer, Failure> {
        let malformed = Failure::new(errno(bindings::EPROTO), "the reply makes no sense");
        let (header, payload) = header::parse(octets).map_err(|_| malformed)?;
        let payload = match header.body {
            Body::Msg(..) => Payload::Inline(payload),
            Body::Nomsg(_, lists) => {
                // The responder returns the chunk, and says how much of it is filled (RFC 8166,
                // section 4.3.3).
                let returned = lists.reply.ok_or(malformed)?;
                let ours = List::new(reply_chunk);
                let len = usize::try_from(returned.length()).map_err(|_| malformed)?;
                let memory = memory.and_then(Registration::memory).ok_or(malformed)?;
                if !returned.iter().eq(ours.filled(returned.length())) || len > memory.len() {
                    return Err(malformed);
                }
                Payload::Long(memory, len)
            }
            Body::ErrVers { low, high, .. } => return Ok(Answer::Versions(Versions { low, high })),
            Body::ErrChunk => return Err(refused(bindings::EPROTO, c"ERR_CHUNK")),
            Body::ErrBadHeader => return Err(refused(bindings::EPROTO, c"BAD_HEADER")),
            Body::ErrInvalidOption | Body::Optional { .. } => {
                return Err(refused(bindings::EPROTO, c"INVALID_OPTION"));
            }
        };
        self.inner.lock().traffic.credits_granted = Some(header.credit);

        let mut head = [0; REPLY_HEAD_MAX];
        let head = head
            .get_mut(..payload.len().min(REPLY_HEAD_MAX))
            .unwrap_or_default();
        payload.read(0, head);
        let (reply, results) = rpc::parse_reply(head).map_err(|_| malformed)?;
        if reply.xid != header.xid {
            return Err(malformed);
        }
        if reply.status == Status::Success {
            let at = head.len() - results.len();
            if !has_results(procedure, reply.xid, &payload, at) {
                let error = errno(bindings::EBADMSG);
                return Err(Failure::new(error, "the results are not the arguments"));
            }
        }
        Ok(Answer::Reply(reply.status))
    }
}

/// Returns the memory of a chunk, which is made where it is not there yet.
fn prepare<'a, 'b>(
    queue_pair: &'a QueuePair<Completions>,
    chunk: &'b mut Option<Registration<'a, Completions>>,
    purpose: Purpose,
    len: usize,
) -> Result<&'b mut Registration<'a, Completions>, Failure> {
    let made = match chunk.take() {
        Some(made) => made,
        None => Registration::new(queue_pair, purpose, len, REGION_PAGES).map_err(call_failure)?,
    };
    Ok(chunk.insert(made))
}

/// Returns registered memory as chunks have it.
fn segments(registration: &Registration<'_, Completions>) -> Result<KVec<Segment>> {
    let mut segments = KVec::new();
    for piece in registration.pieces() {
        let segment = Segment {
            handle: piece.stag,
            length: piece.len,
            offset: piece.offset,
        };
        segments.push(segment, GFP_KERNEL)?;
    }
    Ok(segments)
}

/// Writes a whole call.
fn write_call(
    memory: &mut Registration<'_, Completions>,
    procedure: &Procedure,
    xid: u32,
) -> Result {
    let mut head = [0; CALL_HEAD];
    // It has just the room.
    let _ = procedure.call(xid).build(&mut head);
    memory.write(0, &head)?;
    let mut at = 0;
    for piece in memory.pieces_mut(CALL_HEAD, procedure.len())? {
        procedure.fill(xid, at, piece);
        at += piece.len();
    }
    Ok(())
}

/// Whether `payload` has from `at` on the results that this procedure must have.
fn has_results(procedure: &Procedure, xid: u32, payload: &Payload<'_>, at: usize) -> bool {
    let mut wanted = [0; 256];
    let mut from = 0;
    let same = payload.pieces(at).all(|piece| {
        piece.chunks(wanted.len()).all(|found| {
            procedure.fill(xid, from, &mut wanted);
            from += found.len();
            wanted.starts_with(found)
        })
    });
    same && from == procedure.len()
}

impl WorkItem<GREET> for Connection {
    type Pointer = Arc<Self>;

    /// Makes the first call.
    fn run(this: Arc<Self>) {
        let Side::Client(target) = &this.side else {
            return;
        };
        let Some(program) = target.null else {
            return;
        };
        let attempt = {
            let inner = this.inner.lock();
            if inner.id.is_none() || !matches!(inner.traffic.null, Null::Pending) {
                return;
            }
            inner.attempt
        };
        let result = this.as_arc_borrow().call(&Procedure::null(program), 1);
        let mut inner = this.inner.lock();
        // It may be another by now, with a first call of its own.
        if inner.attempt == attempt {
            inner.traffic.null = match result {
                Ok(()) => Null::Answered,
                Err(failure) => Null::Failed(failure.cause),
            };
        }
    }
}
