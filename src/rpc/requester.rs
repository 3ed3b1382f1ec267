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
    sync::CondVarTimeoutResult,
    time::{
        msecs_to_jiffies,
        Instant,
        Monotonic, //
    }, //
};

use super::{
    endpoint::{
        not_connected,
        Channel,
        Endpoint,
        EndpointInner, //
    },
    outgoing_call::{
        call_failure,
        Caller,
        OutgoingCall,
        Place,
        SentCall, //
    },
    reply::{
        check_status,
        malformed,
        Verdict, //
    },
    version::UsedVersion, //
};
use crate::{
    base::{
        errno::errno,
        wait::MayWait, //
    },
    failure::Failure,
    pure::{
        text::{
            outcome::{
                CallOutcome,
                CommandOutcome, //
            },
            snapshot::Detail, //
        },
        wire::{
            call_request::{
                CallRequest,
                CalledProcedure, //
            },
            ending::Evidence,
            header::Versions, //
        }, //
    },
    rdma::messages::{
        arrival::Invalidated,
        message_queue_pair::MessageQueuePair,
        send_queue::PostedSend, //
    }, //
};

/// How much longer a call waits, in milliseconds, after a message that was discarded and can only
/// have been its answer. A valid reply behind that message still completes the call (RFC 8166,
/// section 4.5).
const GRACE_MS: i64 = 1000;

/// How often a caller looks whether the transport has acknowledged its call, in milliseconds.
const ACKNOWLEDGED_MS: i64 = 100;

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

impl Endpoint {
    /// Makes calls, and waits for the replies; process context. Sets `result` to the outcome, even
    /// on failure, except its `failure`. After a call has failed, no further call is begun.
    ///
    /// Fails with the failure of the first call that had no results: `EOPNOTSUPP` if this end
    /// may make no calls, `ENOTCONN`, `EBUSY` if all credits are taken by calls that were
    /// given up, `ETIMEDOUT`, `EINTR` on a signal, `ECONNRESET`, `ECONNREFUSED`, `ENODEV` or
    /// `ENETDOWN` if the connection is lost, by the cause of the loss, `EPROTO` if the responder
    /// reports an error in the header or sends a reply that is not valid, `EPROTONOSUPPORT` if it
    /// speaks other versions of RPC-over-RDMA, `EBADMSG` if the results are not the arguments, or
    /// the errno of the reply's status. Before a call is sent, fails with `ENOMEM`, with
    /// `EMSGSIZE` if its header is longer than the inline threshold, and with `EIO` or
    /// `EOPNOTSUPP` if the device cannot register its memory.
    pub(crate) fn call(
        &self,
        may_wait: &MayWait,
        request: &CallRequest,
        result: &mut CommandOutcome,
    ) -> Result<(), Failure> {
        self.check_may_call()?;
        let _guard = CallGuard::take(self)?;
        let link = self.inner.lock().link().cloned();
        let link = link.ok_or(not_connected())?;
        let queue_pair = link.queue_pair.access(may_wait).ok_or(not_connected())?;
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
        result.us = start.elapsed().as_micros_ceil();
        called
    }

    /// Runs `change` while the endpoint is started.
    pub(super) fn started<T>(
        &self,
        change: impl FnOnce(&mut EndpointInner) -> T,
    ) -> Result<T, Failure> {
        let mut inner = self.inner.lock();
        match inner.link() {
            Some(_) => Ok(change(&mut inner)),
            None => Err(inner.why_not_started()),
        }
    }

    /// Waits until the state of the endpoint changes. Returns the place of a call whose reply has
    /// arrived or whose time is over, if there is one.
    fn wait_any(
        &self,
        queue_pair: &MessageQueuePair<Self>,
        places: &mut [Place<'_>],
    ) -> Result<Option<Over>, Failure> {
        // The peer's transport must acknowledge a call in time, even if the caller has more time.
        let check_after = queue_pair.check_sends();
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
            .filter_map(|(at, place)| Some((at, place.call.as_mut()?)));
        let left = calls.map(|(at, call)| {
            if call.acknowledged.is_none() {
                if queue_pair.is_under_way(&call.send) {
                    return (ACKNOWLEDGED_MS, at);
                }
                call.acknowledged = Some(Instant::now());
            }
            let waited = call.acknowledged.map_or(0, |at| at.elapsed().as_millis());
            let left = timeout_ms - waited;
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
        let jiffies = msecs_to_jiffies(left.min(check_after));
        match self.changed.wait_interruptible_timeout(&mut inner, jiffies) {
            CondVarTimeoutResult::Signal { .. } => Err(Failure::new(EINTR, "interrupted")),
            CondVarTimeoutResult::Woken { .. } | CondVarTimeoutResult::Timeout => Ok(None),
        }
    }
}

/// The place of a call that is over, and the result of waiting for its reply.
type Over = (usize, Result<(), Failure>);

impl<'a> Caller<'a> {
    /// Makes all calls. The number of `places` and the credits limit how many are under way at a
    /// time.
    fn call(&self, places: &mut [Place<'a>], result: &mut CommandOutcome) -> Result<(), Failure> {
        let mut left = self.request.count;
        let mut called = Ok(());
        // The outcomes of calls that end after the first failure. They are not shown.
        let mut others = CommandOutcome::new();
        loop {
            let free = places.iter().position(|place| place.call.is_none());
            if let Some(at) = free.filter(|_| left > 0 && called.is_ok()) {
                match self.agreed() {
                    Ok(Some(agreed)) => {
                        left -= 1;
                        called = self.begin(at, places, agreed);
                        if called.is_ok() {
                            result.calls += 1;
                            continue;
                        }
                    }
                    Ok(None) => {}
                    Err(failure) => called = Err(failure),
                }
                if called.is_err() {
                    // The call that failed was not sent.
                    result.shown = None;
                }
            }
            if places.iter().all(|place| place.call.is_none()) {
                return called;
            }
            let (over, waited) = match self.endpoint.wait_any(self.queue_pair, places) {
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
                    Ok(replied) => result.replies += u32::from(replied),
                    Err(failure) => called = called.and(Err(failure)),
                }
            }
        }
    }

    /// Returns what is known of the version for another call. Returns [`None`] if a reply has
    /// arrived, or if there is no credit for another call until a call under way ends.
    fn agreed(&self) -> Result<Option<UsedVersion>, Failure> {
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
            return Err(inner.why_not_started());
        }
        // Before the first reply there is one credit (RFC 8166, section 3.3.3).
        let granted = inner
            .made
            .credits_granted
            .filter(|_| inner.version.known().is_some());
        let credits = self.endpoint.configuration.requests();
        let granted = granted.unwrap_or(1).min(credits).max(1);
        match inner.calls.count() {
            (_, taken) if taken < granted as usize => Ok(Some(inner.version)),
            // A call that was given up keeps its credit until it is answered (RFC 8166, section
            // 3.3.1).
            (0, _) => Err(Failure::new(
                EBUSY,
                "all credits are taken by calls without an answer",
            )),
            _ => Ok(None),
        }
    }

    /// Makes a call in the version that has been agreed upon. Before that, makes it in version 1 if
    /// the responder is known to speak no other version and `rpcvers=` allows it, otherwise in the
    /// highest version of `rpcvers=`.
    fn begin(
        &self,
        at: usize,
        places: &mut [Place<'a>],
        agreed: UsedVersion,
    ) -> Result<(), Failure> {
        let versions = self.endpoint.configuration.rpc.versions;
        let version_cache = &self.endpoint.services.only_version_one;
        let only_one = |remote| version_cache.contains(remote);
        let version = match agreed.known() {
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
        agreed: UsedVersion,
    ) -> Result<(), Failure> {
        let endpoint = self.endpoint;
        let place = places.get_mut(at).ok_or(not_connected())?;
        let versions = endpoint.configuration.rpc.versions;
        let may_fall_back = agreed.known().is_none() && version > 1 && versions.contains(1);
        let start = Instant::now();
        let sent = self.prepare(place, version, agreed).and_then(|call| {
            self.arm_reply(at, &call)?;
            if may_fall_back {
                endpoint.started(|inner| inner.version = UsedVersion::Tried)?;
            }
            let send = self.send(&call)?;
            Ok((call, send))
        });
        match sent {
            Ok((call, send)) => {
                place.call = Some(SentCall {
                    call,
                    may_fall_back,
                    start,
                    send,
                    acknowledged: None,
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
        result: &mut CommandOutcome,
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
                self.start(at, places, version, UsedVersion::Unknown)
                    .map(|()| false)
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
        result: &mut CommandOutcome,
    ) -> Result<Verdict, Failure> {
        let shown = result.shown.insert(CallOutcome {
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
        let invalidated = reply
            .as_ref()
            .and_then(|(reply, _)| reply.arrival.invalidated);
        let locally = self.invalidate(place, invalidated)?;
        let segments = sent.call.read_chunk.len() + sent.call.reply_chunk.len();
        if invalidated.is_some() && locally as usize == segments {
            // It may be memory of a call that is still under way.
            return Err(self.lose(c"a reply invalidated memory of another call"));
        }
        let Some((reply, octets)) = reply else {
            let failure = waited.err().unwrap_or(malformed());
            return Err(self.endpoint.without_reply(failure, discarded));
        };
        if let CalledProcedure::Null(_) = self.request.procedure {
            let took = (reply.arrival.at - sent.start).as_micros_ceil();
            self.endpoint.inner.lock().traffic.null_us = Some(took);
        }
        let verdict = self.decode_reply(place, &sent.call, &reply, &octets, shown);
        self.endpoint.inner.lock().calls.put_room(at, octets);
        verdict
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
        Failure::queue_pair_failed(reason)
    }

    fn send(&self, call: &OutgoingCall<'_>) -> Result<PostedSend, Failure> {
        let endpoint = self.endpoint;
        let send = endpoint
            .send(
                &Channel::Work(self.queue_pair),
                call.limit,
                None,
                |message| call.build(message),
            )
            .map_err(call_failure)?;
        let mut inner = endpoint.inner.lock();
        if call.is_inline() && call.reply_chunk.is_empty() {
            inner.made.inline += 1
        } else {
            inner.made.chunked += 1
        }
        Ok(send)
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
}
