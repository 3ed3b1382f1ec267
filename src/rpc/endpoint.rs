// SPDX-License-Identifier: GPL-2.0

//! Ends of RPC-over-RDMA.

use core::{
    cell::Cell,
    mem,
    net::SocketAddr, //
};

use kernel::{
    alloc::flags::GFP_NOWAIT,
    impl_has_work,
    new_condvar,
    new_mutex,
    new_work,
    prelude::*,
    sync::{
        Arc,
        ArcBorrow,
        CondVar,
        Mutex,
        SetOnce, //
    },
    workqueue::{
        HasWork,
        Work,
        WorkItem, //
    }, //
};

use super::{
    pending::{
        Answered,
        Calls, //
    },
    version::{
        UsedVersion,
        VersionCache, //
    },
    xids::Xids, //
};
use crate::{
    base::{
        draining::Handle,
        errno::errno,
        unload::Hold,
        wait::{
            wait_while,
            MayWait, //
        },
        work_queue::{
            impl_waiting_work,
            WorkQueue, //
        }, //
    },
    counters::SharedStats,
    failure::Failure,
    pure::{
        text::{
            exchange::{
                Exchange,
                Messages, //
            },
            grammar::Rpc,
            snapshot::{
                CallTraffic,
                Detail,
                Null,
                ReverseDirection,
                Traffic, //
            }, //
        },
        wire::{
            ending::Evidence,
            header::{
                self,
                direction::{
                    direction,
                    Direction, //
                },
                error::HeaderError,
                Body,
                Header, //
            },
            negotiation::{
                Negotiated,
                Role, //
            },
            program::Program,
            xdr::NoRoom, //
        }, //
    },
    rdma::messages::{
        arrival::Arrival,
        completion_context::CompletionContext,
        completion_handler::CompletionHandler,
        fault_handler::{
            FaultHandler,
            QueuePairFault, //
        },
        message_queue_pair::MessageQueuePair,
        send_buffer::SendBuffer,
        send_queue::{
            BegunSend,
            PostedSend, //
        }, //
    }, //
};

/// Length in octets of the longest header that reports an error.
const ERROR_MAX: u32 = 28;

/// The memory for the messages on their way from an endpoint, in octets. There is always memory for
/// two messages, even if that is more.
const SEND_BUFFERS: u32 = 1 << 16;

/// How long the cause of a failure is waited for after a Work Request was flushed, in milliseconds.
/// siw flushes before the CM reports that the peer has disconnected. On a busy machine that takes a
/// while.
pub(crate) const CAUSE_MS: u32 = 2000;

/// The state that all endpoints share.
#[pin_data]
pub(crate) struct Services {
    /// The queue in which messages are handled that arrived before their endpoint was started. A
    /// queue of its own, because destroying an id waits for these works.
    messages: Arc<WorkQueue>,
    /// The queue in which clients make their first calls. A queue of its own, because these works
    /// wait for replies, and a queue runs a limited number of works at a time.
    first_calls: Arc<WorkQueue>,
    /// The queue in which calls with chunks are answered, and those for which no Send was left. A
    /// queue of its own, because these works wait for peers.
    postponed_calls: Arc<WorkQueue>,
    #[pin]
    pub(super) only_version_one: VersionCache,
    pub(super) xids: Xids,
    stats: Arc<SharedStats>,
}

impl Services {
    /// Creates the work queues and the memory that endpoints share; process context. Fails with
    /// `ENOMEM`.
    pub(crate) fn new(hold: &Hold, stats: Arc<SharedStats>) -> Result<Arc<Self>> {
        let messages = WorkQueue::new(hold, c"rpcrdma_cm_messages")?;
        let first_calls = WorkQueue::new(hold, c"rpcrdma_cm_first_calls")?;
        let postponed_calls = WorkQueue::new(hold, c"rpcrdma_cm_postponed")?;
        let only_version_one = VersionCache::new()?;
        Arc::pin_init(
            pin_init!(Self {
                messages,
                first_calls,
                postponed_calls,
                only_version_one <- only_version_one,
                xids: Xids::new(),
                stats,
            }),
            GFP_KERNEL,
        )
    }

    /// Waits until no work of an endpoint that has ended is running; process context.
    pub(crate) fn flush(&self, may_wait: &MayWait) {
        // First calls wait for messages, so that these must still be handled meanwhile.
        self.first_calls.flush(may_wait);
        self.messages.flush(may_wait);
        // Messages bring calls that are postponed.
        self.postponed_calls.flush(may_wait);
    }
}

/// The configuration of an endpoint.
#[derive(Clone, Copy)]
pub(crate) struct EndpointConfiguration {
    /// A client's endpoint is the requester of the forward direction, a server's its responder. In
    /// the reverse direction it is the other way round (RFC 8167, section 2).
    pub(crate) role: Role,
    /// The versions that this end speaks, and the credits of both directions.
    pub(crate) rpc: Rpc,
    /// Whether this end answers calls as responder.
    pub(crate) answers: bool,
    /// How long a requester waits for a reply, and a client for its connection, in milliseconds.
    pub(crate) timeout_ms: u32,
    /// The program whose NULL procedure a client calls first.
    pub(crate) null: Option<Program>,
}

impl EndpointConfiguration {
    /// Returns the credits that this end requests as requester.
    pub(super) fn requests(&self) -> u32 {
        match self.role {
            Role::Client => self.rpc.credits,
            Role::Server => self.rpc.reverse,
        }
    }

    /// Returns the credits that this end grants as responder.
    pub(super) fn grants(&self) -> u32 {
        match self.role {
            Role::Client => self.rpc.reverse,
            Role::Server => self.rpc.credits,
        }
    }

    /// Returns the largest number of messages that may be on their way to this end, calls and
    /// replies together. The queue pair posts one Receive more than that (RFC 8167, section 4.3).
    pub(crate) fn receives(&self) -> u32 {
        self.rpc.credits.saturating_add(self.rpc.reverse)
    }

    /// Returns how many messages of up to `size` octets may be on their way from this end: one with
    /// each credit, limited to as many as [`SEND_BUFFERS`] holds, or to two if it holds fewer.
    /// Others wait for a buffer.
    pub(crate) fn sends(&self, size: u32) -> u32 {
        self.receives().min((SEND_BUFFERS / size.max(1)).max(2))
    }

    /// Whether a client calls BIND once it is connected.
    pub(super) fn binds(&self) -> bool {
        self.role == Role::Client && self.rpc.reverse > 0 && self.rpc.bind
    }

    /// Whether a client has calls of its own to make once it is connected.
    fn calls_first(&self) -> bool {
        self.null.is_some() || self.binds()
    }
}

/// The owner of endpoints: the connection that they belong to.
pub(crate) trait Owner: Send + Sync + 'static {
    /// Called when `endpoint` has failed: its queue pair has failed, or a call in version 2 got no
    /// reply in time, so that the client tries version 1 on another connection. `failure` is the
    /// cause if `evidence` is the first evidence of it. The owner must end the endpoint, after
    /// [`CAUSE_MS`] at most.
    ///
    /// Also called before the endpoint was started, and again for each Work Request that is
    /// flushed. Called without the endpoint's lock, possibly with those of its queue pair; may
    /// sleep. The owner must not wait for the end of the queue pair.
    fn endpoint_failed(self: Arc<Self>, endpoint: &Endpoint, evidence: Evidence, failure: Failure);
}

/// An endpoint's access to its peer.
#[derive(Clone)]
pub(super) struct Link {
    pub(super) queue_pair: Handle<MessageQueuePair<Endpoint>>,
    messages: Messages,
    pub(super) remote: Option<SocketAddr>,
}

/// The way in which a message is answered.
pub(super) enum Channel<'a> {
    /// By a work, which may wait for the peer.
    Work(&'a MessageQueuePair<Endpoint>),
    /// In the completion of the message, by the one Send that was begun for it.
    Completion(
        &'a CompletionContext<'a, Endpoint>,
        Cell<Option<BegunSend<'a, Endpoint>>>,
    ),
}

impl Channel<'_> {
    /// Sends a message, as [`MessageQueuePair::send`] does.
    fn send(
        &self,
        limit: u32,
        stag: Option<u32>,
        build: impl FnOnce(&mut SendBuffer<'_>) -> Result,
    ) -> Result<PostedSend> {
        match self {
            Self::Work(queue_pair) => queue_pair.send(limit, stag, build),
            Self::Completion(_, send) => send.take().ok_or(EBUSY)?.post(limit, stag, build),
        }
    }

    /// Makes the queue pair fail, as [`MessageQueuePair::fail_because`] does.
    pub(super) fn fail_because(&self, reason: &'static CStr) {
        match self {
            Self::Work(queue_pair) => queue_pair.fail_because(reason),
            Self::Completion(context, _) => context.fail_because(reason),
        }
    }

    /// Returns the queue pair, for transfers. Fails where those may not be waited for; messages
    /// with chunks are not answered there.
    pub(super) fn queue_pair(&self) -> Result<&MessageQueuePair<Endpoint>> {
        match self {
            Self::Work(queue_pair) => Ok(queue_pair),
            Self::Completion(..) => Err(EBUSY),
        }
    }
}

/// The phases of an endpoint's life.
enum EndpointPhase {
    /// Its queue pair is not connected yet.
    Unconnected,
    Started(Link),
    /// Ended, by a failure or, with [`None`], by the owner.
    Ended(Option<Failure>),
}

/// The part of an endpoint that changes.
pub(super) struct EndpointInner {
    phase: EndpointPhase,
    /// [`None`] once the endpoint has ended.
    owner: Option<Arc<dyn Owner>>,
    pub(super) version: UsedVersion,
    /// The counters, except those of calls.
    pub(super) traffic: Traffic,
    /// The calls that this end made.
    pub(super) made: CallTraffic,
    /// The calls of the peer that this end has answered.
    pub(super) answered: CallTraffic,
    /// The calls that a work has yet to answer, the oldest one first. There is room for one with
    /// each credit.
    postponed_calls: KVec<KVec<u8>>,
    /// Whether a task makes calls: one task at a time does.
    pub(super) calling: bool,
    /// The calls that have not been answered.
    pub(super) calls: Calls,
}

impl EndpointInner {
    /// Returns the access to the peer, if the endpoint is started.
    pub(super) fn link(&self) -> Option<&Link> {
        match &self.phase {
            EndpointPhase::Started(link) => Some(link),
            EndpointPhase::Unconnected | EndpointPhase::Ended(_) => None,
        }
    }

    /// Returns why the endpoint has ended; [`None`] as long as it has not.
    pub(super) fn end(&self) -> Option<Failure> {
        match self.phase {
            EndpointPhase::Ended(failure) => {
                Some(failure.unwrap_or(Failure::lost("the connection was closed")))
            }
            EndpointPhase::Unconnected | EndpointPhase::Started(_) => None,
        }
    }

    /// Returns the failure of what needs a started endpoint.
    pub(super) fn why_not_started(&self) -> Failure {
        self.end().unwrap_or(not_connected())
    }

    /// Returns the thresholds of `version`, or those before a version is agreed upon, where `role`
    /// is this end's: version 2 has larger defaults.
    pub(super) fn negotiated(&self, role: Role, version: Option<u32>) -> Option<Negotiated> {
        let link = self.link()?;
        Some(link.messages.negotiated(role, version))
    }
}

/// One end of RPC-over-RDMA, for the life of one queue pair.
///
/// The endpoint is made before its queue pair, because it handles the completions. Its owner starts
/// it when the queue pair is connected, and ends it later. Ending it wakes its callers. Operations
/// that are under way on the queue pair end with the queue pair.
///
/// # References
///
/// The endpoint and its owner refer to each other until [`Endpoint::end`]. So do the endpoint and
/// its queue pair: until then, or until the queue pair is drained. An endpoint that has ended
/// refers to neither, and only keeps its counters for `info`.
///
/// # Locks
///
/// `inner` is taken with the owner's lock held, and with those of a queue pair. With `inner` held,
/// the owner is not called, nor is the queue pair, except for `is_under_way`, which takes a spin
/// lock. `VersionCache::responders` is taken last.
#[pin_data]
pub(crate) struct Endpoint {
    pub(super) configuration: EndpointConfiguration,
    pub(super) services: Arc<Services>,
    /// The first event of the device that says that the queue pair has failed.
    event: SetOnce<&'static CStr>,
    #[pin]
    pub(super) inner: Mutex<EndpointInner>,
    /// Notified when a reply has arrived, a message was discarded, nobody makes calls any more, or
    /// the endpoint has ended.
    #[pin]
    pub(super) changed: CondVar,
    #[pin]
    messages: Work<Self, MESSAGES>,
    #[pin]
    first_call: Work<Self, FIRST_CALL>,
    #[pin]
    postponed_calls: Work<Self, POSTPONED_CALLS>,
}

/// The number of the work that handles messages that arrived before the endpoint was started.
const MESSAGES: u64 = 0;
/// The number of the work that makes the first calls: NULL and BIND.
const FIRST_CALL: u64 = 1;
/// The number of the work that answers calls that were postponed.
const POSTPONED_CALLS: u64 = 2;

impl_has_work! {
    impl HasWork<Self, MESSAGES> for Endpoint { self.messages }
    impl HasWork<Self, FIRST_CALL> for Endpoint { self.first_call }
    impl HasWork<Self, POSTPONED_CALLS> for Endpoint { self.postponed_calls }
}

impl Endpoint {
    /// Creates an endpoint of `owner`; process context. Fails with `ENOMEM`.
    pub(crate) fn new(
        services: Arc<Services>,
        configuration: EndpointConfiguration,
        owner: Arc<dyn Owner>,
    ) -> Result<Arc<Self>> {
        let calls = Calls::new(configuration.requests(), !configuration.answers)?;
        let grants = configuration.grants();
        let postponed_calls = KVec::with_capacity(grants as usize, GFP_KERNEL)?;
        let reverse_direction = if configuration.rpc.reverse > 0 && !configuration.rpc.bind {
            ReverseDirection::Yes
        } else {
            ReverseDirection::No
        };
        Arc::pin_init(
            pin_init!(Self {
                configuration,
                services,
                event: SetOnce::new(),
                inner <- new_mutex!(
                    EndpointInner {
                        phase: EndpointPhase::Unconnected,
                        owner: Some(owner),
                        version: UsedVersion::Unknown,
                        traffic: Traffic {
                            reverse_direction,
                            ..Traffic::default()
                        },
                        made: CallTraffic::default(),
                        answered: CallTraffic {
                            credits_granted: Some(grants).filter(|&credits| credits > 0),
                            ..CallTraffic::default()
                        },
                        postponed_calls,
                        calling: false,
                        calls,
                    },
                    "Endpoint::inner"
                ),
                changed <- new_condvar!("Endpoint::changed"),
                messages <- new_work!("Endpoint::messages"),
                first_call <- new_work!("Endpoint::first_call"),
                postponed_calls <- new_work!("Endpoint::postponed_calls"),
            }),
            GFP_KERNEL,
        )
    }

    /// Starts the endpoint. `queue_pair`, whose completions the endpoint handles, must be
    /// connected, and `exchange` must have the private data of both sides. Has no effect if the
    /// endpoint was started before or has ended.
    pub(crate) fn start(
        self: ArcBorrow<'_, Self>,
        queue_pair: Handle<MessageQueuePair<Self>>,
        exchange: &Exchange,
    ) {
        let Some(messages) = exchange.messages() else {
            return;
        };
        {
            let mut inner = self.inner.lock();
            if !matches!(inner.phase, EndpointPhase::Unconnected) {
                return;
            }
            inner.phase = EndpointPhase::Started(Link {
                queue_pair,
                messages,
                remote: exchange.remote,
            });
            if self.configuration.null.is_some() {
                inner.traffic.null = Null::Pending;
            }
            if self.configuration.binds() {
                inner.traffic.reverse_direction = ReverseDirection::Pending;
            }
        }
        // Messages may have arrived before.
        self.enqueue::<MESSAGES>(&self.services.messages);
        if self.configuration.calls_first() {
            self.enqueue::<FIRST_CALL>(&self.services.first_calls);
        }
    }

    /// Ends the endpoint because of `failure`, or at the owner's request if that is [`None`]. Makes
    /// its callers return, and does not wait for them.
    ///
    /// Returns whether the owner is to connect again, to try version 1. The peer is then remembered
    /// as one of version 1 (draft-cel-nfsv4-rpcrdma-version-two-01, section 5.2).
    pub(crate) fn end(&self, failure: Option<Failure>) -> bool {
        let (phase, owner, tried, postponed_calls) = {
            let mut inner = self.inner.lock();
            if matches!(inner.phase, EndpointPhase::Ended(_)) {
                return false;
            }
            let phase = mem::replace(&mut inner.phase, EndpointPhase::Ended(failure));
            (
                phase,
                inner.owner.take(),
                inner.version.end_trial(),
                mem::take(&mut inner.postponed_calls),
            )
        };
        drop(postponed_calls);
        self.changed.notify_all();
        // The caller holds another reference.
        drop(owner);

        // The loss of this side's own device does not mean that the peer lacks version 2.
        let falls_back = tried && failure.is_some_and(|failure| !is_of_device(&failure));
        let remote = match phase {
            EndpointPhase::Started(link) => link.remote,
            EndpointPhase::Unconnected | EndpointPhase::Ended(_) => None,
        };
        if let (true, Some(remote)) = (falls_back, remote) {
            self.services.only_version_one.add(remote);
        }
        falls_back
    }

    /// Reports to the owner that the endpoint has failed.
    pub(super) fn fail(&self, evidence: Evidence, failure: Failure) {
        let owner = self.inner.lock().owner.clone();
        if let Some(owner) = owner {
            owner.endpoint_failed(self, evidence, failure);
        }
    }

    /// Returns the failure of the queue pair if the device has reported one by an event.
    pub(crate) fn event(&self) -> Option<Failure> {
        self.event.copy().map(Failure::queue_pair_failed)
    }

    /// Returns the cause of `failure`, by which a call has ended. If that is the loss of the
    /// connection, waits for the end of the endpoint; process context.
    pub(super) fn cause_of(&self, failure: Failure) -> Failure {
        // A message that came instead of the reply is the first cause.
        let is_first = matches!(failure.cause.detail, Some(Detail::Message(_)));
        if is_first || failure.error != errno(kernel::bindings::ECONNRESET) {
            return failure;
        }
        wait_while(&self.changed, &self.inner, 2 * CAUSE_MS, |inner| {
            inner.end().is_none()
        });
        self.inner.lock().end().unwrap_or(failure)
    }

    /// Returns the counters, and the version of RPC-over-RDMA that has been agreed upon.
    pub(crate) fn traffic(&self) -> (Traffic, Option<u32>) {
        let inner = self.inner.lock();
        let (forward, reverse) = match self.configuration.role {
            Role::Client => (inner.made, inner.answered),
            Role::Server => (inner.answered, inner.made),
        };
        let traffic = Traffic {
            forward,
            reverse,
            ..inner.traffic
        };
        (traffic, inner.version.known())
    }

    /// Fails with `EOPNOTSUPP` if this end may not make calls. A client may make calls. A server
    /// may do so if the client supports the reverse direction, and after the client's first call,
    /// which determines the version of RPC-over-RDMA (RFC 8167, sections 5.1 and 6).
    pub(super) fn check_may_call(&self) -> Result<(), Failure> {
        let inner = self.inner.lock();
        let refused = |text| Err(Failure::new(errno(kernel::bindings::EOPNOTSUPP), text));
        match self.configuration.role {
            Role::Client => Ok(()),
            Role::Server if self.configuration.rpc.reverse == 0 => {
                refused("the listener has no reverse=, and so no credits in the reverse direction")
            }
            Role::Server if !matches!(inner.traffic.reverse_direction, ReverseDirection::Yes) => {
                refused("the client has not said that it accepts calls (BIND)")
            }
            Role::Server if inner.version.known().is_none() => {
                refused("the client has not made a call yet")
            }
            Role::Server => Ok(()),
        }
    }

    /// Handles a message that has arrived: answers a call, and hands a reply over to the call that
    /// waits for it, in either role (RFC 8167, section 2).
    fn take_message(
        self: ArcBorrow<'_, Self>,
        context: &CompletionContext<'_, Self>,
        octets: &[u8],
        arrival: &Arrival,
    ) {
        if arrival.invalidated.is_some() {
            self.inner.lock().traffic.remote_invalidations_received += 1;
        }
        let parsed = header::parse(octets);
        let mut is_answer = false;
        match (self.direction(octets, &parsed), parsed) {
            (Direction::Call, Ok((header, _)))
                if self.configuration.answers && header.has_chunks() =>
            {
                self.postpone(context, octets);
            }
            (Direction::Call, parsed) => self.respond_here(context, octets, parsed),
            // Options are unknown in either direction (the draft, section 3.1).
            (Direction::Reply, Ok(parsed)) if matches!(parsed.0.body, Body::Optional { .. }) => {
                self.respond_here(context, octets, Ok(parsed));
            }
            (Direction::Reply, Ok((header, payload))) => {
                let header_len = octets.len() - payload.len();
                let mut inner = self.inner.lock();
                let answered = inner.take_reply(&header, header_len, payload, arrival);
                if let Answered::Waiting(place) = answered {
                    inner.calls.store(place, octets);
                }
                drop(inner);
                // Callers are woken even if no call waited: a call that was given up may have
                // returned its credit.
                self.changed.notify_all();
                is_answer = !matches!(answered, Answered::None(_));
            }
            // RFC 8166, section 4.5.
            (Direction::Reply, Err(error)) => {
                self.inner.lock().traffic.bad_headers += 1;
                self.note_discarded(error.xid(), error.into());
            }
        }
        // Only a reply may invalidate, and only memory of its own call (RFC 8797, section 4.1).
        // Nothing tells whose memory this was, so no call under way can rely on its own.
        if arrival.invalidated.is_some() && !is_answer && self.inner.lock().calls.count().0 > 0 {
            context.fail_because(c"a message that is no reply invalidated memory");
        }
    }

    /// Answers a call where it has arrived, or leaves that to a work if all Sends are under way.
    fn respond_here(
        self: ArcBorrow<'_, Self>,
        context: &CompletionContext<'_, Self>,
        octets: &[u8],
        parsed: Result<(Header<'_>, &[u8]), HeaderError>,
    ) {
        let send = match context.begin_send() {
            // Nothing is sent.
            _ if !self.configuration.answers => None,
            Ok(send) => Some(send),
            Err(error) if error == EBUSY => return self.postpone(context, octets),
            // The queue pair has failed.
            Err(_) => return,
        };
        self.respond(&Channel::Completion(context, Cell::new(send)), parsed);
    }

    /// Leaves a call to a work, so that the calls behind it need not wait for its transfers. The
    /// queue pair fails if there is no memory or no credit left for the call.
    fn postpone(self: ArcBorrow<'_, Self>, context: &CompletionContext<'_, Self>, octets: &[u8]) {
        let mut call = KVec::new();
        // Not GFP_KERNEL: reclaim may wait for NFS, whose completions are handled in the same work
        // queue of the RDMA core as this one.
        let copied = call.extend_from_slice(octets, GFP_NOWAIT);
        let postponed = copied.is_ok() && {
            let mut inner = self.inner.lock();
            inner.postponed_calls.push_within_capacity(call).is_ok()
        };
        if !postponed {
            return context.fail_because(c"a call could not be answered");
        }
        self.enqueue::<POSTPONED_CALLS>(&self.services.postponed_calls);
    }

    /// Returns the direction of a message. If the message itself does not show it, the message is a
    /// reply if an outstanding call of this end has its XID. So is a Long Message to a client: a
    /// Long Call has a Read list, which shows the direction (RFC 8166, section 3.5.3).
    fn direction<E>(&self, octets: &[u8], parsed: &Result<(Header<'_>, &[u8]), E>) -> Direction {
        let shown = match parsed {
            Ok((header, payload)) => header.direction(payload),
            Err(_) => direction(octets),
        };
        shown.unwrap_or_else(|| {
            let is_reply = match (self.configuration.role, parsed) {
                (Role::Client, Ok((header, _))) if matches!(header.body, Body::Nomsg(..)) => true,
                _ => {
                    let xid = octets.first_chunk().map(|xid| u32::from_be_bytes(*xid));
                    let inner = self.inner.lock();
                    xid.is_some_and(|xid| inner.calls.has(xid))
                }
            };
            if is_reply {
                Direction::Reply
            } else {
                Direction::Call
            }
        })
    }

    /// Sends a message, as [`MessageQueuePair::send`] does, and counts it.
    pub(super) fn send(
        &self,
        channel: &Channel<'_>,
        limit: u32,
        stag: Option<u32>,
        build: impl FnOnce(&mut SendBuffer<'_>) -> Result,
    ) -> Result<PostedSend> {
        let send = channel.send(limit, stag, build)?;
        let mut inner = self.inner.lock();
        inner.traffic.sends += 1;
        inner.traffic.sends_with_invalidate += u64::from(stag.is_some());
        Ok(send)
    }

    /// Reports an error to the peer. If the error cannot be sent, the connection is lost.
    pub(super) fn send_error(&self, channel: &Channel<'_>, error: &Header<'_>) {
        let result = self.send(channel, ERROR_MAX, None, |message| {
            message.append_with(|room| error.build(room).map_err(too_long))
        });
        if result.is_err() {
            channel.fail_because(c"an error could not be reported");
        }
    }

    fn enqueue<const WORK: u64>(self: ArcBorrow<'_, Self>, queue: &WorkQueue)
    where
        Self: HasWork<Self, WORK> + WorkItem<WORK, Pointer = Arc<Self>>,
    {
        // Queueing fails only if the work is pending. Then it runs after this, which is enough.
        let _ = queue.enqueue::<_, WORK>(Arc::from(self));
    }
}

/// Whether the failure is that of this side's own device or address.
fn is_of_device(failure: &Failure) -> bool {
    failure.error == ENODEV || failure.error == errno(kernel::bindings::ENETDOWN)
}

/// Returns the failure of a call without a connection.
pub(crate) fn not_connected() -> Failure {
    Failure::new(errno(kernel::bindings::ENOTCONN), "not connected")
}

/// Returns the error for a message that exceeds its limit.
pub(super) fn too_long(_: NoRoom) -> Error {
    errno(kernel::bindings::EMSGSIZE)
}

impl FaultHandler for Endpoint {
    fn queue_pair_failed(this: ArcBorrow<'_, Self>, fault: QueuePairFault) {
        let (evidence, failure) = match (fault, this.event()) {
            (QueuePairFault::Error(error), _) => {
                (Evidence::Error, Failure::queue_pair_failed(error))
            }
            (QueuePairFault::GivenUp(reason), _) => {
                (Evidence::GivenUp, Failure::queue_pair_failed(reason))
            }
            (QueuePairFault::Consequence(_), Some(failure)) => (Evidence::Error, failure),
            (QueuePairFault::Consequence(what), None) => {
                (Evidence::Consequence, Failure::unknown_cause(what))
            }
        };
        this.fail(evidence, failure);
    }
}

impl CompletionHandler for Endpoint {
    fn arrived(
        this: ArcBorrow<'_, Self>,
        context: &CompletionContext<'_, Self>,
        octets: &[u8],
        arrival: &Arrival,
    ) -> bool {
        // The first message can arrive before the endpoint is started, which resumes then.
        if this.inner.lock().link().is_none() {
            return false;
        }
        this.services.stats.messages_received.increment();
        this.take_message(context, octets, arrival);
        true
    }

    fn queue_pair_event(this: ArcBorrow<'_, Self>, event: &'static CStr) {
        this.event.populate(event);
    }
}

impl_waiting_work! {
    impl WorkItem<MESSAGES> for Endpoint { Self::take_held_messages }
    impl WorkItem<FIRST_CALL> for Endpoint { Self::make_first_calls }
    impl WorkItem<POSTPONED_CALLS> for Endpoint { Self::answer_postponed_calls }
}

impl Endpoint {
    /// Handles the messages that arrived before the endpoint was started.
    fn take_held_messages(this: Arc<Self>, may_wait: &MayWait) {
        let Some(link) = this.inner.lock().link().cloned() else {
            return;
        };
        let Some(queue_pair) = link.queue_pair.access(may_wait) else {
            return;
        };
        queue_pair.resume();
    }

    fn answer_postponed_calls(this: Arc<Self>, may_wait: &MayWait) {
        let Some(link) = this.inner.lock().link().cloned() else {
            return;
        };
        let Some(queue_pair) = link.queue_pair.access(may_wait) else {
            return;
        };
        // Other work has its turn after each round.
        for _ in 0..this.configuration.grants() {
            let Ok(octets) = this.inner.lock().postponed_calls.remove(0) else {
                return;
            };
            // Parsed again: a header borrows its chunk lists from the octets, and these are a copy.
            this.respond(&Channel::Work(&queue_pair), header::parse(&octets));
        }
        this.as_arc_borrow()
            .enqueue::<POSTPONED_CALLS>(&this.services.postponed_calls);
    }
}
