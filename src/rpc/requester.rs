// SPDX-License-Identifier: GPL-2.0

//! The requester: calls, and what is made of the replies (RFC 8166, section 3).
//!
//! An endpoint makes one call at a time, which is within any responder's credits, and which is all
//! that is allowed before the first reply (RFC 8166, section 3.3.3). A call or a reply that is
//! longer than the inline threshold is a Long Message: it goes through memory that the responder
//! reads or writes (RFC 8166, section 3.5.3).

use core::mem;

use kernel::{
    alloc::flags::__GFP_NOWARN,
    bindings,
    prelude::*,
    sync::{
        Arc,
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
    endpoint::{
        too_long,
        Endpoint,
        Inner,
        Link,
        FIRST_CALL, //
    },
    payload::Payload,
    pending::Pending, //
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
            ReverseDirection, //
        }, //
    },
    rdma::{
        arrival::{
            Arrival,
            Invalidated, //
        },
        errno,
        purpose::Purpose,
        queue_pair::QueuePair,
        registration::Registration,
        send_buffer::SendBuffer, //
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

/// Memory for the responder.
type Chunk<'a> = Registration<'a, Endpoint>;

/// A call to be made: its procedure and how it is to be sent.
#[derive(Clone, Copy)]
pub(crate) struct CallRequest {
    pub(crate) program: Program,
    pub(crate) procedure: u32,
    /// How many octets go there and back as `opaque<>`; [`None`] for a procedure without
    /// arguments and results.
    pub(crate) echo: Option<u32>,
    /// Whether to offer a Reply chunk even if the reply is short.
    pub(crate) reply_chunk: bool,
}

impl CallRequest {
    /// NULL of `program`.
    pub(crate) const fn null(program: Program) -> Self {
        Self {
            program,
            procedure: program::NULL,
            echo: None,
            reply_chunk: false,
        }
    }

    fn call(&self, xid: u32) -> Call {
        Call {
            xid,
            prog: self.program.number,
            vers: self.program.version,
            proc: self.procedure,
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

/// The right to make calls, held by one caller at a time.
struct CallGuard<'a>(&'a Endpoint);

impl<'a> CallGuard<'a> {
    /// Waits until nobody else makes calls. Fails with `EINTR` on a signal.
    fn take(endpoint: &'a Endpoint) -> Result<Self, Failure> {
        let mut inner = endpoint.inner.lock();
        while inner.calling {
            if endpoint.changed.wait_interruptible(&mut inner) {
                return Err(Failure::new(EINTR, "interrupted"));
            }
        }
        inner.calling = true;
        Ok(Self(endpoint))
    }
}

impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        self.0.inner.lock().calling = false;
        self.0.changed.notify_all();
    }
}

/// A responder's answer to a call.
enum Verdict {
    Status(Status),
    /// It speaks only these versions.
    Versions(Versions),
}

/// Returns the failure of a call where there is no connection.
pub(crate) fn not_connected() -> Failure {
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

fn malformed() -> Failure {
    Failure::new(errno(bindings::EPROTO), "the reply makes no sense")
}

/// Returns what a reply's status means to the caller.
fn check_status(status: Status) -> Result<(), Failure> {
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

impl Inner {
    /// Whether a call with this XID has not been answered, also where nobody waits for it any more.
    pub(super) fn is_outstanding(&self, xid: u32) -> bool {
        let waits = |pending: &Pending| pending.xid == xid && pending.arrival.is_none();
        self.pending.as_ref().is_some_and(waits)
            || self.unanswered.iter().any(|&(other, _)| other == xid)
    }
}

impl Endpoint {
    /// Hands a reply over to the call that waits for it. All others are discarded (RFC 8166,
    /// section 4.5).
    pub(super) fn take_reply(
        &self,
        header: &Header<'_>,
        payload: &[u8],
        octets: &[u8],
        arrival: &Arrival,
    ) {
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        match &mut inner.pending {
            Some(pending)
                if pending.xid == header.xid
                    && pending.arrival.is_none()
                    && is_answer(header, payload, pending.version)
                    && octets.len() <= pending.octets.capacity() =>
            {
                // There is room.
                let _ = pending.octets.extend_from_slice(octets, GFP_KERNEL);
                pending.arrival = Some(*arrival);
                if !matches!(header.body, Body::ErrVers { .. }) {
                    inner.falls_back = false;
                }
                self.changed.notify_all();
            }
            _ => {
                inner.traffic.unexpected_messages += 1;
                inner.unanswered.retain(|&mut (xid, version)| {
                    xid != header.xid || !is_answer(header, payload, version)
                });
            }
        }
    }

    /// Makes `count` calls, one after the other, and waits for the replies; process context.
    ///
    /// Fails with `EOPNOTSUPP` where this end may make no calls, `ENOTCONN`, `ETIMEDOUT`, `EINTR` on a signal,
    /// `ECONNRESET` where the connection is lost, `EPROTO` and `EPROTONOSUPPORT` where the
    /// responder does not understand the message, `EBADMSG` where the results are not the
    /// arguments, or with what the status of the reply means.
    pub(crate) fn call(&self, request: &CallRequest, count: u32) -> Result<(), Failure> {
        self.check_may_call()?;
        let _guard = CallGuard::take(self)?;
        let link = self.inner.lock().link().cloned();
        let link = link.ok_or(not_connected())?;
        let queue_pair = link.queue_pair.access().ok_or(not_connected())?;
        let mut caller = Caller {
            endpoint: self,
            link: &link,
            queue_pair: &queue_pair,
            request,
            call_chunk: None,
            reply_chunk: None,
        };
        (0..count).try_for_each(|_| caller.call_once())
    }

    /// Runs `change` while the endpoint is started.
    fn started<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> Result<T, Failure> {
        let mut inner = self.inner.lock();
        match inner.link() {
            Some(_) => Ok(change(&mut inner)),
            None => Err(not_connected()),
        }
    }

    /// Waits until the call that is under way has been answered.
    fn wait_reply(&self) -> Result<(), Failure> {
        let mut jiffies = msecs_to_jiffies(self.configuration.timeout_ms);
        let mut inner = self.inner.lock();
        loop {
            if matches!(&inner.pending, Some(pending) if pending.arrival.is_some()) {
                return Ok(());
            }
            if let Some(failure) = inner.end() {
                return Err(failure);
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
}

/// A call in one version, ready to be sent.
struct OutgoingCall<'a> {
    request: &'a CallRequest,
    xid: u32,
    credits: u32,
    version: Version,
    /// The most octets that the message may have.
    limit: u32,
    /// The Read chunk of a Long Call; empty for one that is sent inline.
    read_chunk: KVec<ReadSegment>,
    /// The Reply chunk; empty where none is offered.
    reply_chunk: KVec<Segment>,
}

impl OutgoingCall<'_> {
    fn is_inline(&self) -> bool {
        self.read_chunk.is_empty()
    }

    fn header(&self) -> Header<'_> {
        let lists = ChunkLists {
            reads: List::new(&self.read_chunk),
            reply: (!self.reply_chunk.is_empty()).then_some(List::new(&self.reply_chunk)),
            ..ChunkLists::EMPTY
        };
        Header {
            xid: self.xid,
            credit: self.credits,
            body: match self.is_inline() {
                true => Body::Msg(self.version, lists),
                false => Body::Nomsg(self.version, lists),
            },
        }
    }

    /// Writes the message.
    fn build(&self, message: &mut SendBuffer<'_>) -> Result {
        message.append_with(|room| self.header().build(room).map_err(too_long))?;
        if !self.is_inline() {
            return Ok(());
        }
        let payload = message.append(CALL_HEAD + self.request.len())?;
        let call = self.request.call(self.xid);
        let head = call.build(payload).map_err(too_long)?;
        let arguments = payload.get_mut(head..).unwrap_or_default();
        self.request.fill(self.xid, 0, arguments);
        Ok(())
    }
}

/// Makes calls of one kind, one after the other.
struct Caller<'a> {
    endpoint: &'a Endpoint,
    link: &'a Link,
    queue_pair: &'a QueuePair<Endpoint>,
    request: &'a CallRequest,
    /// The memory of a call that does not fit into a message.
    call_chunk: Option<Chunk<'a>>,
    /// The memory for its reply.
    reply_chunk: Option<Chunk<'a>>,
}

impl<'a> Caller<'a> {
    /// Makes one call; in version 2 first, where it is not known what the responder speaks.
    fn call_once(&mut self) -> Result<(), Failure> {
        let endpoint = self.endpoint;
        let versions = endpoint.configuration.versions;
        let version_cache = &endpoint.services.only_version_one;
        let agreed = self.begin()?;
        let mut version = agreed.unwrap_or(versions.high);
        let only_one = |remote| version_cache.contains(remote);
        if agreed.is_none() && versions.contains(1) && self.link.remote.is_some_and(only_one) {
            version = 1;
        }

        loop {
            let may_fall_back = agreed.is_none() && version > 1 && versions.contains(1);
            endpoint.started(|inner| inner.falls_back = may_fall_back)?;
            let verdict = self.send_and_wait(version, agreed);
            if let (Err(failure), true) = (&verdict, may_fall_back) {
                if failure.error == ETIMEDOUT {
                    endpoint.fail(*failure);
                }
            }
            // An endpoint that has ended has read it.
            endpoint.inner.lock().falls_back = false;
            match verdict? {
                Verdict::Status(status) => {
                    // The peer may have answered and closed.
                    let _ = endpoint.started(|inner| inner.version = Some(version));
                    if let Some(remote) = self.link.remote.filter(|_| version > 1) {
                        version_cache.remove(remote);
                    }
                    return check_status(status);
                }
                Verdict::Versions(theirs) => {
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
                    if let Some(remote) = self.link.remote {
                        version_cache.add(remote);
                    }
                }
            }
        }
    }

    /// Checks that a call may be made now, and returns the version that has been agreed upon.
    fn begin(&self) -> Result<Option<u32>, Failure> {
        let credits = self.endpoint.configuration.requests();
        let (agreed, free) = self.endpoint.started(|inner| {
            // A call that nobody waits for any more has its credit until it is answered (RFC 8166,
            // section 3.3.1).
            let granted = inner.traffic.credits_granted.unwrap_or(1);
            let granted = granted.min(credits).max(1) as usize;
            (inner.version, inner.unanswered.len() < granted)
        })?;
        if !free {
            return Err(Failure::new(
                EBUSY,
                "all credits are taken by calls without an answer",
            ));
        }
        Ok(agreed)
    }

    /// Sends a call in `version`, waits for the reply, and decodes that.
    fn send_and_wait(&mut self, version: u32, agreed: Option<u32>) -> Result<Verdict, Failure> {
        let endpoint = self.endpoint;
        let call = self.prepare(version, agreed)?;
        self.arm_reply(call.xid, version)?;
        let start: Instant<Monotonic> = Instant::now();
        let sent = self.send(&call);
        let answered = sent.and_then(|()| endpoint.wait_reply());
        let (pending, answered) = {
            let mut inner = endpoint.inner.lock();
            let pending = inner.pending.take();
            // It may have come just when its time was over.
            let answered = match &pending {
                Some(pending) if pending.arrival.is_some() => Ok(()),
                _ => answered,
            };
            if sent.is_ok() && answered.is_err() {
                // There is room, or there would have been no call.
                let _ = inner.unanswered.push_within_capacity((call.xid, version));
            }
            (pending, answered)
        };
        let arrival = pending.as_ref().and_then(|pending| pending.arrival);
        self.invalidate(arrival.and_then(|arrival| arrival.invalidated))?;
        answered?;
        if let (Some(arrival), program::NULL) = (arrival, self.request.procedure) {
            let took = (arrival.at - start).as_micros_ceil();
            endpoint.inner.lock().traffic.null_us = Some(took);
        }
        let octets = pending.map(|pending| pending.octets).unwrap_or_default();
        let verdict = self.decode_reply(&call, &octets);
        endpoint.inner.lock().reply_room = octets;
        verdict
    }

    /// Decides how to send a call in `version`, and registers the memory that it needs.
    fn prepare(&mut self, version: u32, agreed: Option<u32>) -> Result<OutgoingCall<'a>, Failure> {
        let request = self.request;
        let role = self.endpoint.configuration.role;
        let (xid, negotiated) = self.endpoint.started(|inner| {
            inner.xid = inner.xid.wrapping_add(1);
            (inner.xid, inner.negotiated(role))
        })?;
        let negotiated = negotiated.ok_or(not_connected())?;
        let mut limit = negotiated.threshold(role);
        if agreed.is_none() {
            limit = limit.min(FIRST_MESSAGE);
        }
        let mut call = OutgoingCall {
            request,
            xid,
            credits: self.endpoint.configuration.requests(),
            version: match version {
                1 => Version::One,
                _ => Version::Two(Direction::Call),
            },
            limit,
            read_chunk: KVec::new(),
            reply_chunk: KVec::new(),
        };

        // What fits by itself does not need a chunk.
        let reply_len = REPLY_HEAD + request.len();
        let threshold = negotiated.threshold(role.peer()) as usize;
        if request.reply_chunk || call.header().len() + reply_len > threshold {
            let queue_pair = self.queue_pair;
            let chunk = make(queue_pair, &mut self.reply_chunk, Purpose::Write, reply_len)?;
            chunk.register(xid).map_err(call_failure)?;
            for segment in segments(chunk) {
                let pushed = call.reply_chunk.push(segment, GFP_KERNEL);
                pushed.map_err(|error| call_failure(error.into()))?;
            }
        }

        let call_len = CALL_HEAD + request.len();
        if call.header().len() + call_len > limit as usize {
            let queue_pair = self.queue_pair;
            let chunk = make(queue_pair, &mut self.call_chunk, Purpose::Read, call_len)?;
            write_call(chunk, request, xid).map_err(call_failure)?;
            chunk.register(xid).map_err(call_failure)?;
            for target in segments(chunk) {
                let segment = ReadSegment {
                    position: 0,
                    target,
                };
                let pushed = call.read_chunk.push(segment, GFP_KERNEL);
                pushed.map_err(|error| call_failure(error.into()))?;
            }
        }
        Ok(call)
    }

    /// Makes ready for the reply to call `xid`.
    fn arm_reply(&self, xid: u32, version: u32) -> Result<(), Failure> {
        let mut octets = mem::take(&mut self.endpoint.inner.lock().reply_room);
        let room = self.queue_pair.capacity().receive_size() as usize;
        octets.clear();
        octets
            .reserve(room, GFP_KERNEL | __GFP_NOWARN)
            .map_err(|error| call_failure(error.into()))?;
        self.endpoint.inner.lock().pending = Some(Pending {
            xid,
            version,
            octets,
            arrival: None,
        });
        Ok(())
    }

    fn send(&self, call: &OutgoingCall<'_>) -> Result<(), Failure> {
        let endpoint = self.endpoint;
        endpoint
            .send(self.queue_pair, call.limit, None, |message| {
                call.build(message)
            })
            .map_err(call_failure)?;
        let mut inner = endpoint.inner.lock();
        match call.is_inline() && call.reply_chunk.is_empty() {
            true => inner.traffic.inline_calls += 1,
            false => inner.traffic.chunked_calls += 1,
        }
        Ok(())
    }

    /// Takes the access to the memory of a call from the responder, which has taken that for
    /// `invalidated` from itself.
    fn invalidate(&mut self, invalidated: Option<Invalidated>) -> Result<(), Failure> {
        let chunks = [&mut self.call_chunk, &mut self.reply_chunk];
        for chunk in chunks.into_iter().flatten() {
            let locally = chunk.invalidate(invalidated).map_err(call_failure)?;
            self.endpoint.inner.lock().traffic.local_invalidations += u64::from(locally);
        }
        Ok(())
    }

    /// Decodes the reply to `call`, whose header has been parsed before.
    fn decode_reply(&self, call: &OutgoingCall<'_>, octets: &[u8]) -> Result<Verdict, Failure> {
        let (header, payload) = header::parse(octets).map_err(|_| malformed())?;
        let payload = match header.body {
            Body::Msg(..) => Payload::Inline(payload),
            Body::Nomsg(_, lists) => self.long_reply(call, &lists)?,
            Body::ErrVers { low, high, .. } => {
                return Ok(Verdict::Versions(Versions { low, high }));
            }
            Body::ErrChunk => return Err(refused(bindings::EPROTO, c"ERR_CHUNK")),
            Body::ErrBadHeader => return Err(refused(bindings::EPROTO, c"BAD_HEADER")),
            Body::ErrInvalidOption | Body::Optional { .. } => {
                return Err(refused(bindings::EPROTO, c"INVALID_OPTION"));
            }
        };
        self.endpoint.inner.lock().traffic.credits_granted = Some(header.credit);

        let mut head = [0; REPLY_HEAD_MAX];
        let head = head
            .get_mut(..payload.len().min(REPLY_HEAD_MAX))
            .unwrap_or_default();
        payload.read(0, head);
        let (reply, results) = rpc::parse_reply(head).map_err(|_| malformed())?;
        if reply.xid != header.xid {
            return Err(malformed());
        }
        if reply.status == Status::Success {
            let at = head.len() - results.len();
            if !has_results(call.request, reply.xid, &payload, at) {
                let error = errno(bindings::EBADMSG);
                return Err(Failure::new(error, "the results are not the arguments"));
            }
        }
        Ok(Verdict::Status(reply.status))
    }

    /// Returns the reply that the responder has written to the Reply chunk. It returns the chunk,
    /// and says how much of it is filled (RFC 8166, section 4.3.3).
    fn long_reply(
        &self,
        call: &OutgoingCall<'_>,
        lists: &ChunkLists<'_>,
    ) -> Result<Payload<'_>, Failure> {
        let returned = lists.reply.ok_or(malformed())?;
        let ours = List::new(&call.reply_chunk);
        let len = usize::try_from(returned.length()).map_err(|_| malformed())?;
        let memory = self.reply_chunk.as_ref().and_then(Registration::memory);
        let memory = memory.ok_or(malformed())?;
        if !returned.iter().eq(ours.filled(returned.length())) || len > memory.len() {
            return Err(malformed());
        }
        Ok(Payload::Long(memory, len))
    }
}

/// Returns the memory of a chunk, which is made where it is not there yet.
fn make<'a, 'b>(
    queue_pair: &'a QueuePair<Endpoint>,
    chunk: &'b mut Option<Chunk<'a>>,
    purpose: Purpose,
    len: usize,
) -> Result<&'b mut Chunk<'a>, Failure> {
    let made = match chunk.take() {
        Some(made) => made,
        None => Registration::new(queue_pair, purpose, len, REGION_PAGES).map_err(call_failure)?,
    };
    Ok(chunk.insert(made))
}

/// Returns the segments of registered memory.
fn segments<'a>(chunk: &'a Chunk<'a>) -> impl Iterator<Item = Segment> + use<'a> {
    chunk.pieces().map(|piece| Segment {
        handle: piece.stag,
        length: piece.len,
        offset: piece.offset,
    })
}

/// Writes a whole call.
fn write_call(memory: &mut Chunk<'_>, request: &CallRequest, xid: u32) -> Result {
    let mut head = [0; CALL_HEAD];
    // It has just the room.
    let _ = request.call(xid).build(&mut head);
    memory.write(0, &head)?;
    let mut at = 0;
    for piece in memory.pieces_mut(CALL_HEAD, request.len())? {
        request.fill(xid, at, piece);
        at += piece.len();
    }
    Ok(())
}

/// Whether `payload` has from `at` on the results that this call must have.
fn has_results(request: &CallRequest, xid: u32, payload: &Payload<'_>, at: usize) -> bool {
    let mut wanted = [0; 256];
    let mut from = 0;
    let same = payload.pieces(at).all(|piece| {
        piece.chunks(wanted.len()).all(|found| {
            request.fill(xid, from, &mut wanted);
            from += found.len();
            wanted.starts_with(found)
        })
    });
    same && from == request.len()
}

impl WorkItem<FIRST_CALL> for Endpoint {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        if let Some(program) = this.configuration.null {
            let result = this.call(&CallRequest::null(program), 1);
            this.inner.lock().traffic.null = match result {
                Ok(()) => Null::Answered,
                Err(failure) => Null::Failed(failure.cause),
            };
        }
        if this.configuration.binds() {
            let bind = CallRequest {
                procedure: program::BIND,
                ..CallRequest::null(Program::ECHO)
            };
            let result = this.call(&bind, 1);
            this.inner.lock().traffic.reverse_direction = match result {
                Ok(()) => ReverseDirection::Yes,
                Err(failure) => ReverseDirection::Failed(failure.cause),
            };
        }
    }
}
