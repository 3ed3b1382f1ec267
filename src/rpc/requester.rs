// SPDX-License-Identifier: GPL-2.0

//! The requester: makes calls, and decodes the replies (RFC 8166, section 3).
//!
//! One caller at a time makes calls on an endpoint. It has as many calls under way as it wants and
//! the responder grants (RFC 8166, section 3.3.1), and only one before the first reply (section
//! 3.3.3). Replies may arrive in any order. A call or a reply that is longer than the inline
//! threshold is a Long Message: it is transferred through memory that the responder reads or writes
//! (RFC 8166, section 3.5.3).

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
        UsedVersion,
        FIRST_CALL, //
    },
    payload::Payload,
    pending::{
        Answered,
        Discarded,
        ReceivedReply, //
    }, //
};
use crate::{
    base::errno::errno,
    failure::Failure,
    pure::{
        text::{
            outcome::{
                Answer,
                CallOutcome,
                CommandOutcome,
                RESULTS_SHOWN, //
            },
            snapshot::{
                Cause,
                Detail,
                Null,
                ReverseDirection, //
            }, //
        },
        wire::{
            call_request::{
                CallRequest,
                CalledProcedure, //
            },
            discarded::Fault,
            ending::Evidence,
            header::{
                self,
                chunks::{
                    ChunkLists,
                    List,
                    ReadSegment,
                    Segment, //
                },
                direction::Direction,
                Body,
                Header,
                Version,
                Versions, //
            },
            negotiation::Role,
            program::{
                self,
                Program, //
            },
            rpc_message::{
                self,
                Status, //
            }, //
        }, //
    },
    rdma::{
        registration::{
            purpose::Purpose,
            Registration, //
        },
        verbs::{
            arrival::{
                Arrival,
                Invalidated, //
            },
            queue_pair::QueuePair,
            send_buffer::SendBuffer, //
        }, //
    }, //
};

/// The longest first message, in octets: the default inline threshold of version 1 (RFC 8166,
/// section 3.3.3; draft-cel-nfsv4-rpcrdma-version-two-01, section 5).
const FIRST_MESSAGE: u32 = 1024;

/// How much longer a call waits, in milliseconds, after a message that was discarded and can only
/// have been its answer. A valid reply behind that message still completes the call (RFC 8166,
/// section 4.5).
const GRACE_MS: i64 = 1000;

/// The largest number of pages of a memory region, as in rdma_rw.
const REGION_PAGES: u32 = 256;

/// Length in octets of the longest head of a call that the module makes.
const OWN_CALL_HEAD_MAX: usize = 64;

/// Memory that is registered for the responder.
type Chunk<'a> = Registration<'a, Endpoint>;

/// The outcome of the calls of one command.
pub(crate) struct CallResult {
    pub(crate) outcome: CommandOutcome,
    /// The first octets of the results of the call that is shown.
    pub(crate) results: KVec<u8>,
}

impl CallResult {
    /// Creates a result without calls.
    pub(crate) const fn new() -> Self {
        Self {
            outcome: CommandOutcome::NONE,
            results: KVec::new(),
        }
    }
}

/// The right to make calls, held by one caller at a time.
struct CallGuard<'a>(&'a Endpoint);

impl<'a> CallGuard<'a> {
    /// Waits until no other task makes calls. Fails with `EINTR` on a signal.
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
        let mut inner = self.0.inner.lock();
        inner.calling = false;
        inner.calls.shrink();
        drop(inner);
        self.0.changed.notify_all();
    }
}

/// A responder's answer to a call.
enum Verdict {
    Status(Status),
    /// ERR_VERS: the responder speaks only these versions.
    Versions(Versions),
}

/// Returns the failure of a call without a connection.
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
    if error == errno(bindings::ECONNRESET) {
        return Failure::new(error, "the connection was lost");
    }
    Failure::new(error, "the device cannot register the memory of a call")
}

fn refused(error: u32, detail: &'static CStr) -> Failure {
    Failure::with_detail(errno(error), "the responder answered", detail)
}

fn malformed() -> Failure {
    Failure::new(errno(bindings::EPROTO), "the reply is malformed")
}

/// Returns the caller's result for the status of a reply.
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

/// Returns how many credits are granted after a reply to a call that was given up, or [`None`] if
/// the reply does not count. Before the reply, `granted` were.
fn late_grant(header: &Header<'_>, payload: &[u8], granted: Option<u32>) -> Option<u32> {
    match header.body {
        Body::Msg(_, lists) => {
            let is_valid = lists.writes.is_empty() && rpc_message::parse_reply(payload).is_ok();
            is_valid.then_some(header.credit)
        }
        // The memory of the call was invalidated, so nobody can tell whether a Long Reply is valid.
        // It can only withdraw credits.
        Body::Nomsg(..) => granted.map(|granted| granted.min(header.credit)),
        _ => None,
    }
}

impl Inner {
    /// Takes the credits that the reply with this number grants.
    fn grant(&mut self, number: u64, credits: u32) {
        if self.calls.may_grant(number) {
            self.made.credits_granted = Some(credits);
        }
    }
}

impl Endpoint {
    /// Hands a reply over to the call that waits for it. Other replies are discarded (RFC 8166,
    /// section 4.5). Returns whether the message answered a call.
    pub(super) fn take_reply(
        &self,
        header: &Header<'_>,
        payload: &[u8],
        octets: &[u8],
        arrival: &Arrival,
    ) -> bool {
        let mut inner = self.inner.lock();
        let answered = inner.calls.answer(header, payload, octets, arrival);
        let is_answer = !matches!(answered, Answered::None(_));
        match answered {
            Answered::Waiting => {
                // After ERR_VERS the trial goes on until the caller has handled it.
                if !matches!(header.body, Body::ErrVers { .. }) {
                    inner.version.end_trial();
                }
            }
            Answered::GivenUp { number, is_valid } => {
                inner.traffic.unexpected_messages += 1;
                // Each valid reply grants credits, even if no caller reads it (RFC 8166, section
                // 3.3.1).
                let granted = inner.made.credits_granted;
                let credits = late_grant(header, payload, granted).filter(|_| is_valid);
                if let Some(credits) = credits {
                    inner.grant(number, credits);
                }
            }
            Answered::None(fault) => {
                inner.traffic.unexpected_messages += 1;
                let only_replies = !self.configuration.answers;
                inner.calls.discard(Some(header.xid), fault, only_replies);
            }
        }
        // Callers are woken even if no call waited: a call that was given up may have returned its
        // credit.
        self.changed.notify_all();
        is_answer
    }

    /// Notes that a message was discarded because of `fault`, for the calls that it may have
    /// answered. `xid` is its XID, if that can be trusted.
    pub(super) fn note_discarded(&self, xid: Option<u32>, fault: Fault) {
        let only_replies = !self.configuration.answers;
        let mut inner = self.inner.lock();
        inner.calls.discard(xid, fault, only_replies);
        drop(inner);
        self.changed.notify_all();
    }

    /// Returns the failure of a call that has no reply because of `failure`, where `discarded` may
    /// have been the answer: that message is the root cause.
    fn without_reply(&self, failure: Failure, discarded: Option<Discarded>) -> Failure {
        let Some(discarded) = discarded else {
            return failure;
        };
        let timed_out = failure.error == ETIMEDOUT;
        let (error, text) = match (discarded.certain, self.configuration.role) {
            (true, _) if failure.error == EINTR => return failure,
            (true, Role::Client) => (failure.error, "the server answered with"),
            (true, Role::Server) => (failure.error, "the client answered with"),
            (false, _) if !timed_out => return failure,
            (false, Role::Client) => (ETIMEDOUT, "no reply in time; the server sent"),
            (false, Role::Server) => (ETIMEDOUT, "no reply in time; the client sent"),
        };
        let error = if timed_out && discarded.certain {
            errno(bindings::EPROTO)
        } else {
            error
        };
        Failure {
            error,
            cause: Cause {
                text,
                detail: Some(Detail::Message(discarded.fault)),
            },
        }
    }

    /// Makes calls, and waits for the replies; process context. Sets `result` to the outcome, even
    /// on failure. After a call has failed, no further call is begun.
    ///
    /// Fails with the failure of the first call that had no results: `EOPNOTSUPP` if this end may
    /// make no calls, `ENOTCONN`, `EBUSY` if all credits are taken by calls that were given up,
    /// `ETIMEDOUT`, `EINTR` on a signal, `ECONNRESET` if the connection is lost, `EPROTO` and
    /// `EPROTONOSUPPORT` if the responder does not understand the message, `EBADMSG` if the results
    /// are not the arguments, or the errno of the reply's status. Before a call is sent, fails with
    /// `ENOMEM`, with `EMSGSIZE` if its header is longer than the inline threshold, and with `EIO`
    /// or `EOPNOTSUPP` if the device cannot register its memory.
    pub(crate) fn call(
        &self,
        request: &CallRequest<'_>,
        result: &mut CallResult,
    ) -> Result<(), Failure> {
        self.check_may_call()?;
        let _guard = CallGuard::take(self)?;
        let link = self.inner.lock().link().cloned();
        let link = link.ok_or(not_connected())?;
        let queue_pair = link.queue_pair.access().ok_or(not_connected())?;
        let mut places = KVec::new();
        let credits = self.configuration.requests();
        for _ in 0..request.jobs.min(request.count).min(credits) {
            let place = Place::default();
            let pushed = places.push(place, GFP_KERNEL);
            pushed.map_err(|error| call_failure(error.into()))?;
        }
        let caller = Caller {
            endpoint: self,
            link: &link,
            queue_pair: &queue_pair,
            request,
        };
        let start: Instant<Monotonic> = Instant::now();
        let called = caller.call(&mut places, result);
        result.outcome.us = start.elapsed().as_micros_ceil();
        called
    }

    /// Runs `change` while the endpoint is started.
    fn started<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> Result<T, Failure> {
        let mut inner = self.inner.lock();
        match inner.link() {
            Some(_) => Ok(change(&mut inner)),
            None => Err(not_connected()),
        }
    }

    /// Waits until the state of the endpoint changes. Returns the place of a call whose reply has
    /// arrived or whose time is over, if there is one.
    fn wait_any(&self, places: &[Place<'_>]) -> Result<Option<Over>, Failure> {
        let timeout_ms = i64::from(self.configuration.timeout_ms);
        let mut inner = self.inner.lock();
        if let Some(at) = inner.calls.first_answered() {
            return Ok(Some((at, Ok(()))));
        }
        if let Some(failure) = inner.end() {
            return Err(failure);
        }
        let calls = (0..)
            .zip(places)
            .filter_map(|(at, place)| Some((at, place.call.as_ref()?)));
        let left = calls.map(|(at, call)| {
            let left = timeout_ms - call.sent.elapsed().as_millis();
            match inner.calls.discarded(at) {
                Some(discarded) if discarded.certain => {
                    (left.min(GRACE_MS - discarded.at.elapsed().as_millis()), at)
                }
                _ => (left, at),
            }
        });
        let (left, at) = left.min().ok_or(not_connected())?;
        let left = match u32::try_from(left) {
            Ok(left) if left > 0 => left,
            _ => {
                let failure = Failure::new(ETIMEDOUT, "no reply in time");
                return Ok(Some((at, Err(failure))));
            }
        };
        let jiffies = msecs_to_jiffies(left);
        match self.changed.wait_interruptible_timeout(&mut inner, jiffies) {
            CondVarTimeoutResult::Signal { .. } => Err(Failure::new(EINTR, "interrupted")),
            CondVarTimeoutResult::Woken { .. } | CondVarTimeoutResult::Timeout => Ok(None),
        }
    }
}

/// The place of a call that is over, and the result of waiting for its reply.
type Over = (usize, Result<(), Failure>);

/// A call in one version, ready to be sent.
struct OutgoingCall<'a> {
    request: &'a CallRequest<'a>,
    xid: u32,
    credits: u32,
    version: Version,
    /// The largest length of the message, in octets.
    limit: u32,
    /// The Read chunk of a Long Call; empty if the call is sent inline.
    read_chunk: KVec<ReadSegment>,
    /// The Reply chunk; empty if none is offered.
    reply_chunk: KVec<Segment>,
}

impl OutgoingCall<'_> {
    fn version(&self) -> u32 {
        self.header().version()
    }

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
            body: if self.is_inline() {
                Body::Msg(self.version, lists)
            } else {
                Body::Nomsg(self.version, lists)
            },
        }
    }

    /// Writes the message.
    fn build(&self, message: &mut SendBuffer<'_>) -> Result {
        message.append_with(|room| self.header().build(room).map_err(too_long))?;
        if !self.is_inline() {
            return Ok(());
        }
        let (request, xid) = (self.request, self.xid);
        let (call, credentials) = (request.call(xid), request.credentials());
        message.append_with(|room| call.build(credentials, room).map_err(too_long))?;
        request.fill(xid, 0, message.append(request.arguments())?);
        Ok(())
    }
}

/// A call that has been sent.
struct SentCall<'a> {
    call: OutgoingCall<'a>,
    /// Whether version 1 is tried if the responder does not speak the version of this call.
    may_fall_back: bool,
    /// The time before the call was sent.
    start: Instant<Monotonic>,
    /// The time when the transport had acknowledged the message. The timeout begins here.
    sent: Instant<Monotonic>,
}

/// A place for one of the calls under way, with its memory. Later calls use the memory again.
#[derive(Default)]
struct Place<'a> {
    call: Option<SentCall<'a>>,
    /// The memory of the call if it does not fit into a message.
    call_chunk: Option<Chunk<'a>>,
    /// The memory for a Long Reply.
    reply_chunk: Option<Chunk<'a>>,
}

/// Makes calls of one kind.
struct Caller<'a> {
    endpoint: &'a Endpoint,
    link: &'a Link,
    queue_pair: &'a QueuePair<Endpoint>,
    request: &'a CallRequest<'a>,
}

impl<'a> Caller<'a> {
    /// Makes all calls. The number of `places` and the credits limit how many are under way at a
    /// time.
    fn call(&self, places: &mut [Place<'a>], result: &mut CallResult) -> Result<(), Failure> {
        let mut left = self.request.count;
        let mut called = Ok(());
        // The results of calls that end after the first failure. They are not shown.
        let mut others = CallResult::new();
        loop {
            let free = places.iter().position(|place| place.call.is_none());
            if let Some(at) = free.filter(|_| left > 0 && called.is_ok()) {
                match self.agreed() {
                    Ok(Some(agreed)) => {
                        left -= 1;
                        called = self.begin(at, places, agreed);
                        result.outcome.calls += u32::from(called.is_ok());
                        continue;
                    }
                    Ok(None) => {}
                    Err(failure) => called = Err(failure),
                }
            }
            if places.iter().all(|place| place.call.is_none()) {
                return called;
            }
            let (over, waited) = match self.endpoint.wait_any(places) {
                Ok(None) => continue,
                Ok(Some((at, waited))) => (at..at + 1, waited),
                Err(failure) => (0..places.len(), Err(failure)),
            };
            for at in over {
                let shown = match called {
                    Ok(()) => &mut *result,
                    Err(_) => &mut others,
                };
                match self.finish(at, places, waited, shown) {
                    Ok(replied) => result.outcome.replies += u32::from(replied),
                    Err(failure) => called = called.and(Err(failure)),
                }
            }
        }
    }

    /// Returns the version that has been agreed upon, or `Some(None)` if none has been yet. Returns
    /// [`None`] if a reply has arrived, or if there is no credit for another call until a call
    /// under way ends.
    fn agreed(&self) -> Result<Option<Option<u32>>, Failure> {
        let inner = self.endpoint.inner.lock();
        // A reply that has arrived is handled before a call is begun, because it grants credits.
        if inner.calls.first_answered().is_some() {
            return Ok(None);
        }
        // If replies arrive fast, the caller never sleeps, so that no wait is interrupted by a
        // signal.
        if current!().signal_pending() {
            return Err(Failure::new(EINTR, "interrupted"));
        }
        if inner.link().is_none() {
            return Err(not_connected());
        }
        // Before the first reply there is one credit (RFC 8166, section 3.3.3).
        let granted = inner
            .made
            .credits_granted
            .filter(|_| inner.version.known().is_some());
        let credits = self.endpoint.configuration.requests();
        let granted = granted.unwrap_or(1).min(credits).max(1);
        match inner.calls.count() {
            (_, taken) if taken < granted as usize => Ok(Some(inner.version.known())),
            // A call that was given up keeps its credit until it is answered (RFC 8166, section
            // 3.3.1).
            (0, _) => Err(Failure::new(
                EBUSY,
                "all credits are taken by calls without an answer",
            )),
            _ => Ok(None),
        }
    }

    /// Makes a call, in version 2 first if the version that the responder speaks is not known.
    fn begin(
        &self,
        at: usize,
        places: &mut [Place<'a>],
        agreed: Option<u32>,
    ) -> Result<(), Failure> {
        let versions = self.endpoint.configuration.rpc.versions;
        let version_cache = &self.endpoint.services.only_version_one;
        let only_one = |remote| version_cache.contains(remote);
        let version = match agreed {
            Some(version) => version,
            None if versions.contains(1) && self.link.remote.is_some_and(only_one) => 1,
            None => versions.high,
        };
        self.start(at, places, version, agreed)
    }

    /// Makes a call in `version`.
    fn start(
        &self,
        at: usize,
        places: &mut [Place<'a>],
        version: u32,
        agreed: Option<u32>,
    ) -> Result<(), Failure> {
        let endpoint = self.endpoint;
        let place = places.get_mut(at).ok_or(not_connected())?;
        let versions = endpoint.configuration.rpc.versions;
        let may_fall_back = agreed.is_none() && version > 1 && versions.contains(1);
        let start = Instant::now();
        let sent = self.prepare(place, version, agreed).and_then(|call| {
            self.arm_reply(at, &call)?;
            if may_fall_back {
                endpoint.started(|inner| inner.version = UsedVersion::Tried)?;
            }
            self.send(&call)?;
            Ok(call)
        });
        match sent {
            Ok(call) => {
                place.call = Some(SentCall {
                    call,
                    may_fall_back,
                    start,
                    sent: Instant::now(),
                });
                Ok(())
            }
            Err(failure) => {
                // Before the trial ends: if the connection is lost meanwhile, version 1 is tried.
                let failure = endpoint.cause_of(failure);
                {
                    let mut inner = endpoint.inner.lock();
                    inner.calls.end(at, false);
                    inner.version.end_trial();
                }
                // Its own failure would be a consequence.
                let _ = self.invalidate(place, None);
                Err(failure)
            }
        }
    }

    /// Ends the call at this place, if there is one. `waited` is the result of waiting for its
    /// reply. Returns whether the call had results. If it had none, it was made again in another
    /// version.
    fn finish(
        &self,
        at: usize,
        places: &mut [Place<'a>],
        waited: Result<(), Failure>,
        result: &mut CallResult,
    ) -> Result<bool, Failure> {
        let endpoint = self.endpoint;
        let Some(place) = places.get_mut(at) else {
            return Ok(false);
        };
        let Some(sent) = place.call.take() else {
            return Ok(false);
        };
        let verdict = self.end(at, place, &sent, waited, result);
        let verdict = verdict.map_err(|failure| endpoint.cause_of(failure));
        if let (Err(failure), true) = (&verdict, sent.may_fall_back) {
            let is_discarded = matches!(failure.cause.detail, Some(Detail::Message(_)));
            if failure.error == ETIMEDOUT || is_discarded {
                endpoint.fail(Evidence::Disconnect, *failure);
            }
        }
        endpoint.inner.lock().version.end_trial();
        match verdict? {
            Verdict::Status(status) => {
                let version = sent.call.version();
                // Fails if the peer has answered and then closed the connection.
                let _ = endpoint.started(|inner| inner.version = UsedVersion::Known(version));
                if let Some(remote) = self.link.remote.filter(|_| version > 1) {
                    endpoint.services.only_version_one.remove(remote);
                }
                check_status(status).map(|()| true)
            }
            Verdict::Versions(theirs) => {
                // Each version is tried once.
                let ours = Versions {
                    high: 1,
                    ..endpoint.configuration.rpc.versions
                };
                let next = ours.highest_common(theirs).filter(|_| sent.may_fall_back);
                let version = next.ok_or(Failure::new(
                    errno(bindings::EPROTONOSUPPORT),
                    "the responder speaks other versions of RPC-over-RDMA",
                ))?;
                if let Some(remote) = self.link.remote {
                    endpoint.services.only_version_one.add(remote);
                }
                self.start(at, places, version, None).map(|()| false)
            }
        }
    }

    /// Takes the reply to a call, if there is one, and invalidates the memory of the call.
    fn end(
        &self,
        at: usize,
        place: &mut Place<'a>,
        sent: &SentCall<'a>,
        waited: Result<(), Failure>,
        result: &mut CallResult,
    ) -> Result<Verdict, Failure> {
        result.results.clear();
        let shown = result.outcome.shown.insert(CallOutcome {
            xid: sent.call.xid,
            version: sent.call.version(),
            answer: None,
            status: None,
            results: 0,
        });
        // The reply may have arrived just when the time of the call was over.
        let (discarded, reply) = {
            let mut inner = self.endpoint.inner.lock();
            (inner.calls.discarded(at), inner.calls.end(at, true))
        };
        let invalidated = reply.as_ref().and_then(|reply| reply.arrival.invalidated);
        let locally = self.invalidate(place, invalidated)?;
        let segments = sent.call.read_chunk.len() + sent.call.reply_chunk.len();
        if invalidated.is_some() && locally as usize == segments {
            // It may be memory of a call that is still under way.
            return Err(self.lose(c"a reply invalidated memory of another call"));
        }
        let Some(reply) = reply else {
            let failure = waited.err().unwrap_or(malformed());
            return Err(self.endpoint.without_reply(failure, discarded));
        };
        if let CalledProcedure::Null(_) = self.request.procedure {
            let took = (reply.arrival.at - sent.start).as_micros_ceil();
            self.endpoint.inner.lock().traffic.null_us = Some(took);
        }
        let verdict = self.decode_reply(place, &sent.call, &reply, shown, &mut result.results);
        self.endpoint.inner.lock().calls.put_room(at, reply.octets);
        verdict
    }

    /// Decides how to send a call in `version`, and registers the memory that it needs.
    fn prepare(
        &self,
        place: &mut Place<'a>,
        version: u32,
        agreed: Option<u32>,
    ) -> Result<OutgoingCall<'a>, Failure> {
        let request = self.request;
        let configuration = &self.endpoint.configuration;
        let xid = self.endpoint.services.xids.next();
        let negotiated = self
            .endpoint
            .started(|inner| inner.negotiated(configuration.role, inner.version.known()))?;
        let negotiated = negotiated.ok_or(not_connected())?;
        let mut limit = negotiated.threshold(configuration.role);
        let threshold = negotiated.threshold(configuration.role.peer());
        if agreed.is_none() {
            limit = limit.min(FIRST_MESSAGE);
        }
        let mut call = OutgoingCall {
            request,
            xid,
            credits: configuration.requests(),
            version: match version {
                1 => Version::One,
                _ => Version::Two(Direction::Call),
            },
            limit,
            read_chunk: KVec::new(),
            reply_chunk: KVec::new(),
        };

        // A message that fits inline needs no chunk.
        let reply_len = request.longest_reply();
        if request.chunks || call.header().len() + reply_len > threshold as usize {
            let queue_pair = self.queue_pair;
            let chunk = make(
                queue_pair,
                &mut place.reply_chunk,
                Purpose::Write,
                reply_len,
            )?;
            call.reply_chunk = register(chunk, xid, |segment| segment).map_err(call_failure)?;
        }

        let call_len = request.call(xid).len(request.credentials()) + request.arguments();
        if call.header().len() + call_len > limit as usize {
            let queue_pair = self.queue_pair;
            let chunk = make(queue_pair, &mut place.call_chunk, Purpose::Read, call_len)?;
            write_call(chunk, request, xid).map_err(call_failure)?;
            let at_start = |target| ReadSegment {
                position: 0,
                target,
            };
            call.read_chunk = register(chunk, xid, at_start).map_err(call_failure)?;
        }
        Ok(call)
    }

    /// Prepares the place for the reply to `call`. Fails with `ENOMEM`.
    fn arm_reply(&self, at: usize, call: &OutgoingCall<'_>) -> Result<(), Failure> {
        let mut room = self.endpoint.inner.lock().calls.take_room(at);
        let len = self.queue_pair.capacity().receive_size() as usize;
        room.clear();
        room.reserve(len, GFP_KERNEL | __GFP_NOWARN)
            .map_err(|error| call_failure(error.into()))?;
        let mut reply_chunk = KVec::new();
        reply_chunk
            .extend_from_slice(&call.reply_chunk, GFP_KERNEL)
            .map_err(|error| call_failure(error.into()))?;
        let mut inner = self.endpoint.inner.lock();
        let (xid, version) = (call.xid, call.version());
        inner.calls.begin(at, xid, version, reply_chunk, room);
        Ok(())
    }

    /// Ends the connection, and returns the failure of the call that found the `reason`.
    fn lose(&self, reason: &'static CStr) -> Failure {
        self.queue_pair.fail_because(reason);
        Failure::with_detail(errno(bindings::ECONNRESET), "the queue pair failed", reason)
    }

    fn send(&self, call: &OutgoingCall<'_>) -> Result<(), Failure> {
        let endpoint = self.endpoint;
        endpoint
            .send(self.queue_pair, call.limit, None, |message| {
                call.build(message)
            })
            .map_err(call_failure)?;
        let mut inner = endpoint.inner.lock();
        if call.is_inline() && call.reply_chunk.is_empty() {
            inner.made.inline += 1
        } else {
            inner.made.chunked += 1
        }
        Ok(())
    }

    /// Invalidates the memory of a call, so that the responder cannot access it any more. The
    /// responder has invalidated `invalidated` remotely. Returns how many Steering Tags this end
    /// had to invalidate.
    fn invalidate(
        &self,
        place: &mut Place<'a>,
        invalidated: Option<Invalidated>,
    ) -> Result<u32, Failure> {
        let mut all: u32 = 0;
        let chunks = [&mut place.call_chunk, &mut place.reply_chunk];
        for chunk in chunks.into_iter().flatten() {
            let locally = chunk.invalidate(invalidated).map_err(call_failure)?;
            self.endpoint.inner.lock().traffic.local_invalidations += u64::from(locally);
            all = all.saturating_add(locally);
        }
        Ok(all)
    }

    /// Decodes the reply to `call`, whose header was parsed before without errors. Stores its
    /// content in `shown` and `results`.
    fn decode_reply(
        &self,
        place: &Place<'a>,
        call: &OutgoingCall<'_>,
        arrived: &ReceivedReply,
        shown: &mut CallOutcome,
        results: &mut KVec<u8>,
    ) -> Result<Verdict, Failure> {
        let (header, payload) = header::parse(&arrived.octets).map_err(|_| malformed())?;
        shown.answer = Answer::of(&header);
        let payload = match header.body {
            // RFC 8166, section 6.1.
            Body::Msg(_, lists) | Body::Nomsg(_, lists) if !lists.writes.is_empty() => {
                let error = errno(bindings::EPROTO);
                let text = "the reply has a Write list, and none was offered";
                return Err(Failure::new(error, text));
            }
            Body::Msg(_, lists) => {
                if lists.reply.is_none() && !call.reply_chunk.is_empty() {
                    self.endpoint.inner.lock().traffic.missing_reply_chunks += 1;
                }
                Payload::Inline(payload)
            }
            Body::Nomsg(_, lists) => long_reply(place, &lists)?,
            Body::ErrVers { low, high, .. } => {
                return Ok(Verdict::Versions(Versions { low, high }));
            }
            Body::ErrChunk => return Err(refused(bindings::EPROTO, c"ERR_CHUNK")),
            Body::ErrBadHeader => return Err(refused(bindings::EPROTO, c"BAD_HEADER")),
            Body::ErrInvalidOption | Body::Optional { .. } => {
                return Err(refused(bindings::EPROTO, c"INVALID_OPTION"));
            }
        };

        let mut head = [0; rpc_message::REPLY_HEAD_MAX];
        let head = head
            .get_mut(..payload.len().min(rpc_message::REPLY_HEAD_MAX))
            .unwrap_or_default();
        payload.read(0, head);
        let (reply, rest) = rpc_message::parse_reply(head).map_err(|_| malformed())?;
        if reply.xid != header.xid {
            return Err(malformed());
        }
        // Only a message that decodes as a reply grants credits.
        self.endpoint
            .inner
            .lock()
            .grant(arrived.number, header.credit);
        let at = head.len() - rest.len();
        shown.status = Some(reply.status);
        shown.results = payload.len() - at;
        for piece in payload.pieces(at) {
            let room = RESULTS_SHOWN - results.len();
            let piece = piece.get(..piece.len().min(room)).unwrap_or_default();
            let kept = results.extend_from_slice(piece, GFP_KERNEL);
            kept.map_err(|error| call_failure(error.into()))?;
        }
        if reply.status == Status::Success
            && !call.request.has_results(reply.xid, payload.pieces(at))
        {
            let error = errno(bindings::EBADMSG);
            return Err(Failure::new(error, "the results are not the arguments"));
        }
        Ok(Verdict::Status(reply.status))
    }
}

/// Returns the reply that the responder has written to the Reply chunk. The lengths in the returned
/// chunk tell how much of it is filled (RFC 8166, section 4.3.3).
fn long_reply<'b>(place: &'b Place<'_>, lists: &ChunkLists<'_>) -> Result<Payload<'b>, Failure> {
    let len = lists.reply.ok_or(malformed())?.length();
    let len = usize::try_from(len).map_err(|_| malformed())?;
    let memory = place.reply_chunk.as_ref().and_then(Registration::memory);
    let memory = memory.ok_or(malformed())?;
    if len > memory.len() {
        return Err(malformed());
    }
    Ok(Payload::Long(memory, len))
}

/// Returns the memory of a chunk. Allocates it if there is none yet.
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

/// Registers the memory of call `xid`, and returns its segments as elements of a chunk.
fn register<T>(chunk: &mut Chunk<'_>, xid: u32, element: impl Fn(Segment) -> T) -> Result<KVec<T>> {
    chunk.register(xid)?;
    let mut elements = KVec::new();
    for piece in chunk.pieces() {
        let segment = Segment {
            handle: piece.stag,
            length: piece.len,
            offset: piece.offset,
        };
        elements.push(element(segment), GFP_KERNEL)?;
    }
    Ok(elements)
}

/// Writes a whole call.
fn write_call(memory: &mut Chunk<'_>, request: &CallRequest<'_>, xid: u32) -> Result {
    let mut head = [0; OWN_CALL_HEAD_MAX];
    let (call, credentials) = (request.call(xid), request.credentials());
    let len = call.build(credentials, &mut head).map_err(too_long)?;
    memory.write(0, head.get(..len).unwrap_or_default())?;
    let mut at = 0;
    for piece in memory.pieces_mut(len, request.arguments())? {
        request.fill(xid, at, piece);
        at += piece.len();
    }
    Ok(())
}

impl WorkItem<FIRST_CALL> for Endpoint {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        if let Some(program) = this.configuration.null {
            let result = this.call(&CallRequest::null(program), &mut CallResult::new());
            this.inner.lock().traffic.null = match result {
                Ok(()) => Null::Answered,
                Err(failure) => Null::Failed(failure.cause),
            };
        }
        if this.configuration.binds() {
            let bind = CallRequest::any(Program::ECHO, program::BIND);
            let result = this.call(&bind, &mut CallResult::new());
            this.inner.lock().traffic.reverse_direction = match result {
                Ok(()) => ReverseDirection::Yes,
                Err(failure) => ReverseDirection::Failed(failure.cause),
            };
        }
    }
}
