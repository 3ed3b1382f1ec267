// SPDX-License-Identifier: GPL-2.0

//! A connection of others, with everything that is known of it.

use kernel::{
    impl_has_delayed_work,
    impl_has_work,
    new_delayed_work,
    new_spinlock,
    new_work,
    prelude::*,
    sync::{
        Arc,
        ArcBorrow,
        SpinLock, //
    },
    time::{
        Instant,
        Monotonic, //
    },
    workqueue::{
        DelayedWork,
        Work,
        WorkItem, //
    }, //
};

use super::{
    probes::{
        Class,
        EventKind,
        IdKey,
        Observation,
        ObservedEvent, //
    },
    shares::{
        Missed,
        Share, //
    },
    Shared,
    NFS_RDMA_PORT, //
};
use crate::{
    base::work_queue::{
        run_after,
        Delayed,
        WorkQueue, //
    },
    failure::Failure,
    pure::{
        text::{
            exchange::{
                Exchange,
                ParsedPrivateData, //
            },
            history::{
                HistoryEvent,
                NegotiatedColumns,
                Transition, //
            },
            snapshot::{
                Cause,
                Origin,
                Process,
                Snapshot,
                State, //
            }, //
        },
        wire::{
            ending::Ending,
            inferred_invalidation::{
                Counters,
                Invalidations, //
            },
            meaning::{
                Known,
                User, //
            },
            negotiation::{
                InUse,
                Role, //
            },
            private_data::{
                Offer,
                Parsed,
                PrivateData, //
            }, //
        }, //
    },
    registry::Live,
    shown_device::is_iwarp,
    trace, //
};

/// The note of a connection whose received private data is not known.
const OLDER: &str = "older than the module, so that what was received is not known";

/// The note of a program's connection whose thresholds depend on its version of RPC-over-RDMA.
const VERSION_UNKNOWN: &str =
    "the version of RPC-over-RDMA is not known: in version 2, a threshold below 4096 is 4096";

/// The reason in `history` of a request that the server's handler refused.
const REFUSED: Cause = Cause {
    text: "the server refused the request",
    detail: None,
};

/// The reason in `history` of an id that was destroyed while connecting: the owner did not wait for
/// REP, the kernel's server did not accept the request, or a call to connect failed that was older
/// than the probes.
const GIVEN_UP: Cause = Cause {
    text: "given up before it was established",
    detail: None,
};

/// A program's id whose protocol is not known yet. The client has sent its private data, which has
/// no Format Identifier, and the server's port is not that of NFS over RDMA. Or a request that the
/// program has not accepted yet.
pub(super) struct Undecided {
    class: Class,
    role: Role,
    /// The time of the REQ or of the failure.
    since: Instant<Monotonic>,
    /// The private data of the client, which sends first. Empty if all of its octets are zero, so
    /// that most programs need no memory for it: InfiniBand and RoCE pad with zeros.
    octets: KVec<u8>,
    /// The length of the private data, in octets.
    len: u8,
    program: Option<Process>,
    /// Whether the first event has shown that the id speaks RPC-over-RDMA. It is a request, which
    /// its program has not accepted yet.
    speaks: bool,
    /// Why the connection was not established.
    failure: Option<Failure>,
    share: Share,
}

impl Undecided {
    /// Creates the entry of an id from its first event; any context in which a spin lock can be
    /// taken.
    pub(super) fn new(
        shared: &Shared,
        role: Role,
        event: &ObservedEvent<'_>,
    ) -> Result<Self, Missed> {
        let share = shared.shares.take(event.user, event.uid())?;
        let octets = event.private_data();
        let mut kept = KVec::new();
        if octets.iter().any(|&octet| octet != 0) {
            kept.extend_from_slice(octets, GFP_NOWAIT)
                .map_err(|_| Missed::Memory)?;
        }
        Ok(Self {
            class: event.class(),
            role,
            since: Instant::now(),
            octets: kept,
            len: u8::try_from(octets.len()).unwrap_or(u8::MAX),
            program: event.program(),
            speaks: event.is_rpc_over_rdma(),
            failure: None,
            share,
        })
    }

    pub(super) fn class(&self) -> Class {
        self.class
    }

    /// Returns the private data of the client.
    fn private_data(&self) -> PrivateData {
        if !self.octets.is_empty() {
            return PrivateData::truncated(&self.octets);
        }
        let zeros = [0; PrivateData::MAX_LEN];
        PrivateData::truncated(zeros.get(..self.len.into()).unwrap_or_default())
    }

    /// Returns the knowledge that decides the meaning of events of the id.
    pub(super) fn known(&self) -> Known {
        match self.role {
            Role::Client => Known::Connecting,
            Role::Server => Known::Requested {
                speaks: self.speaks,
            },
        }
    }

    /// Notes an event that does not show the protocol.
    pub(super) fn note(&mut self, kind: EventKind) {
        if let Some(failure) = kind.failure() {
            self.since = Instant::now();
            self.failure = Some(failure);
        }
    }
}

/// Everything that is known of an id.
pub(super) struct Facts {
    class: Class,
    /// The snapshot to show, except for its age and failure.
    view: Snapshot,
    /// The private data of this side, once the view has what it says.
    sent: PrivateData,
    /// The private data of the peer, once the view has what it says.
    received: PrivateData,
    /// The time at which the id entered its state.
    since: Instant<Monotonic>,
    failure: Option<Failure>,
    /// What is known of the end of the connection.
    ending: Ending,
    /// How long the connection lasted that this end has disconnected, until its end is in the
    /// history. The inner value is [`None`] if that is not known.
    unrecorded: Option<Option<i64>>,
    /// Whether the work that records an end of unknown cause may be queued.
    waits: bool,
    /// Whether the id is older than the module, so that not all of the exchange is known.
    older: bool,
    /// Whether the connection was established while it was observed, so that the time is known.
    seen_established: bool,
    /// Of the kernel's client: the evidence whether its server uses Send with Invalidate.
    invalidations: Invalidations,
    /// Whether the id speaks RPC-over-RDMA, and so has a number.
    counts: bool,
    /// Whether the id is in the registry. Only the work changes this.
    listed: bool,
    /// Whether the id was destroyed, or observing ends.
    gone: bool,
    traced_sent: bool,
    traced_received: bool,
    traced_negotiated: bool,
    /// Whether the established connection had UNREACHABLE.
    unreachable: bool,
}

impl Facts {
    pub(super) fn new(role: Role, observation: &Observation) -> Self {
        Self {
            class: observation.class(),
            older: false,
            seen_established: false,
            invalidations: Invalidations::default(),
            view: Snapshot {
                number: 0,
                origin: match observation.user {
                    User::Client | User::Server => Origin::Nfs,
                    User::Program => Origin::User,
                },
                role,
                state: State::Connecting,
                age_ms: 0,
                generation: observation.generation.unwrap_or(1),
                failure: None,
                exchange: Exchange {
                    device: observation.device,
                    local: observation.local,
                    ..Exchange::with(observation.remote)
                },
                process: None,
                in_use: InUse::default(),
                traffic: None,
                note: None,
            },
            sent: PrivateData::EMPTY,
            received: PrivateData::EMPTY,
            since: Instant::now(),
            failure: None,
            ending: Ending::None,
            unrecorded: None,
            waits: false,
            counts: false,
            listed: false,
            gone: false,
            traced_sent: false,
            traced_received: false,
            traced_negotiated: false,
            unreachable: false,
        }
    }

    /// Whether the id speaks RPC-over-RDMA. Of a program, the private data of either side tells, or
    /// the server's port.
    pub(super) fn is_rpc_over_rdma(&self) -> bool {
        let exchange = &self.view.exchange;
        let server = match self.view.role {
            Role::Client => exchange.remote,
            Role::Server => exchange.local,
        };
        let speaks = |sent: ParsedPrivateData| sent.parsed != Parsed::Absent;

        self.view.origin == Origin::Nfs
            || exchange.sent.is_some_and(speaks)
            || exchange.received.is_some_and(speaks)
            || server.is_some_and(|server| server.port() == NFS_RDMA_PORT)
    }

    fn set_sent(&mut self, private_data: PrivateData) {
        self.sent = private_data;
        self.view.exchange.sent = Some(ParsedPrivateData::new(&self.sent));
    }

    fn set_received(&mut self, private_data: PrivateData) {
        self.received = private_data;
        self.view.exchange.received = Some(ParsedPrivateData::new(&self.received));
    }

    fn enter(&mut self, state: State) {
        self.view.state = state;
        self.since = Instant::now();
    }

    fn establish(&mut self) {
        self.enter(State::Established);
        self.seen_established = true;
        // An iWARP device may say that the connection has ended before rdma_cm says that it is
        // established.
        if self.ending == Ending::None {
            self.failure = None;
        }
    }

    fn end(&mut self, state: State, failure: Failure) {
        self.enter(state);
        self.failure = Some(failure);
    }

    /// Changes the facts as `observation` says.
    pub(super) fn note(&mut self, observation: &Observation) {
        let message = observation.private_data;
        let client = self.view.role == Role::Client;

        if observation.program.is_some() {
            self.view.process = observation.program;
        }
        if observation.in_use != InUse::default() {
            self.view.in_use = observation.in_use;
        }
        match observation.kind {
            EventKind::Connect => {
                self.enter(State::Connecting);
                self.set_sent(message);
                self.view.note = None;
                self.older = false;
            }
            EventKind::Request { .. } | EventKind::Response => {
                self.set_received(message);
            }
            EventKind::Accept if client => self.establish(),
            EventKind::Accept => {
                self.set_sent(message);
                if self.view.exchange.received.is_none() {
                    self.mark_older(OLDER);
                }
            }
            EventKind::Established => {
                // A server got the client's private data with the REQ. Its ESTABLISHED carries
                // none.
                if client && !self.older && self.view.exchange.received.is_none() {
                    self.set_received(message);
                }
                if let Some(counters) = observation.counters {
                    self.invalidations = Invalidations::begin(counters);
                }
                self.establish();
            }
            EventKind::Existing => self.note_existing(observation),
            // UNREACHABLE of an established connection: its neighbour has another hardware address,
            // or none. That is not its end, and it may survive.
            EventKind::Failed if self.view.state == State::Established => self.unreachable = true,
            kind => self.note_end(kind),
        }
        self.update_derived();
    }

    /// Notes an id that the search found.
    fn note_existing(&mut self, observation: &Observation) {
        // A client of the kernel keeps the private data that it sent.
        if observation.user == User::Client && !observation.opaque {
            self.set_sent(observation.private_data);
            self.traced_sent = true;
        }
        if observation.connecting {
            // The kernel's server got the private data with the REQ.
            if observation.user == User::Server {
                self.mark_older(OLDER);
            }
            return;
        }
        // The counters of a transport start at zero with its first connection.
        if observation.generation == Some(1) {
            self.invalidations = Invalidations::begin(Counters::default());
        }
        self.enter(State::Established);
        self.mark_older(match observation.user {
            User::Program => "older than the module, and known by its port alone",
            _ if observation.opaque => "older than the module, and its values cannot be read",
            _ => OLDER,
        });
    }

    /// Notes an event that may be the end of the connection.
    fn note_end(&mut self, kind: EventKind) {
        let Some(failure) = kind.failure() else {
            return;
        };
        match self.view.state {
            State::Established => {
                self.learn(kind);
                self.enter(State::Disconnected);
            }
            State::Disconnected => self.learn(kind),
            State::Closing => {}
            _ => self.end(State::Closing, self.first_failure().unwrap_or(failure)),
        }
    }

    /// Returns the failure that this end had before, if that ends the attempt to connect.
    fn first_failure(&self) -> Option<Failure> {
        match self.ending {
            Ending::Error | Ending::Gone => self.failure,
            _ => None,
        }
    }

    /// Takes an event as evidence of the end of the connection, and keeps the first cause.
    fn learn(&mut self, kind: EventKind) {
        if self.view.state == State::Closing {
            return;
        }
        let iwarp = is_iwarp(&self.view.exchange);
        let Some((evidence, failure)) = kind.evidence(iwarp) else {
            return;
        };
        let before = self.ending;
        self.ending = before.learn(evidence, iwarp);
        if self.ending != before && (self.ending.is_known() || before == Ending::None) {
            self.failure = Some(failure);
        }
    }

    /// Notes that this end disconnects. rdma_cm reports DISCONNECTED when the peer has answered, or
    /// if it does not answer, after more than a minute.
    fn disconnect(&mut self) {
        if self.view.state == State::Established {
            self.unrecorded = Some(self.lasted_ms());
            self.enter(State::Disconnected);
        }
    }

    /// Returns the event for the end of a connection that this end has disconnected, once: as soon
    /// as the cause is known, or when no more evidence of it is going to come.
    fn end_once(&mut self, is_last: bool) -> Option<HistoryEvent> {
        let lasted_ms = self
            .unrecorded
            .take_if(|_| is_last || self.ending.is_known())?;
        Some(self.end_of_connection(lasted_ms))
    }

    /// Returns the event for the end of an established connection.
    fn end_of_connection(&self, lasted_ms: Option<i64>) -> HistoryEvent {
        let transition = match self.ending {
            Ending::None | Ending::ThisEnd => Transition::Closed,
            _ => Transition::Lost,
        };
        let cause = self.failure.map(|failure| failure.cause);
        self.event(transition, lasted_ms, cause)
    }

    /// Returns the event that a server refused this request.
    pub(super) fn refusal(&self) -> HistoryEvent {
        self.event(Transition::Refused, None, Some(REFUSED))
    }

    /// Returns the event for the change from the state `before` to the present one, if there is
    /// one. `lasted_ms` is the time that the id was in the state `before`.
    fn change(&self, before: State, lasted_ms: Option<i64>) -> Option<HistoryEvent> {
        let cause = self.failure.map(|failure| failure.cause);

        match (before, self.view.state) {
            (State::Established, State::Established) => None,
            (_, State::Established) => {
                let transition = Transition::established(self.view.generation);
                Some(self.event(transition, None, None))
            }
            (State::Established, State::Disconnected) => Some(self.end_of_connection(lasted_ms)),
            (State::Connecting, State::Closing) => {
                let failure = self.failure?;
                Some(self.event(failure.transition(false), None, cause))
            }
            _ => None,
        }
    }

    /// Returns the event for the end of the id, unless its connection has ended before.
    fn end_of_id(&self) -> Option<HistoryEvent> {
        match self.view.state {
            State::Established => Some(self.end_of_connection(self.lasted_ms())),
            State::Connecting => {
                let cause = self
                    .first_failure()
                    .map_or(GIVEN_UP, |failure| failure.cause);
                Some(self.event(Transition::Failed, None, Some(cause)))
            }
            _ => None,
        }
    }

    /// Returns the time since the connection was established, in milliseconds, if known.
    fn lasted_ms(&self) -> Option<i64> {
        self.seen_established
            .then(|| self.since.elapsed().as_millis())
    }

    fn event(
        &self,
        transition: Transition,
        lasted_ms: Option<i64>,
        reason: Option<Cause>,
    ) -> HistoryEvent {
        let view = &self.view;
        let (client_to_server, server_to_client) = view.thresholds();
        let negotiated = view.exchange.negotiated(view.role);
        // Numbers begin with 1.
        let number = Some(view.number).filter(|&number| number != 0);

        HistoryEvent {
            transition,
            number,
            origin: view.origin,
            of_root: self.class == Class::Root,
            role: view.role,
            local: view.exchange.local,
            remote: view.exchange.remote,
            generation: number.map(|_| view.generation),
            lasted_ms,
            outcome: NegotiatedColumns {
                client_to_server,
                server_to_client,
                remote_invalidation: negotiated.map(|both| both.remote_invalidation),
            },
            reason,
        }
    }

    fn mark_older(&mut self, note: &'static str) {
        self.view.note = Some(note);
        self.older = true;
    }

    /// Brings the parts of the snapshot up to date that follow from the others.
    fn update_derived(&mut self) {
        let view = &mut self.view;
        let received = view.exchange.received.map(|received| received.parsed);

        view.in_use.misplaced = view.origin == Origin::Nfs
            && matches!(received, Some(Parsed::Present(found)) if found.offset != 0);
        if view.origin == Origin::User && view.state == State::Established && view.note.is_none() {
            view.note = view
                .exchange
                .negotiated(view.role)
                .filter(|negotiated| {
                    let smaller = negotiated
                        .client_to_server_threshold
                        .min(negotiated.server_to_client_threshold);
                    smaller < Offer::DEFAULT_TWO.send_size.octets()
                })
                .map(|_| VERSION_UNKNOWN);
        }
    }

    /// Reads the counters of the kernel's client, until they show that its server invalidates
    /// remotely.
    fn ask_client(&mut self, id: IdKey) {
        let view = &mut self.view;
        if self.gone
            || (view.origin, view.role) != (Origin::Nfs, Role::Client)
            || view.state != State::Established
            || self.invalidations.used() == Some(true)
        {
            return;
        }
        // SAFETY: The report of the end of the id sets `gone` with the spin lock of these facts
        // held. The lock is held now, and `gone` is not set: the report has not finished, and
        // cannot finish during the call. A reader of a file calls this, so the probes are there.
        if let Some(counters) = unsafe { id.count() } {
            self.invalidations.learn(&counters);
            view.in_use.remote_invalidation = self.invalidations.used();
        }
    }

    /// Fires the trace events whose data is known, each of them once.
    fn trace(&mut self) {
        let Snapshot {
            number,
            role,
            generation,
            exchange,
            ..
        } = &self.view;

        if exchange.sent.is_some() && !self.traced_sent {
            trace::message_sent(*number, *role, &self.sent);
            self.traced_sent = true;
        }
        if let Some(received) = exchange.received.filter(|_| !self.traced_received) {
            trace::message_parsed(*number, *role, &received);
            self.traced_received = true;
        }
        self.traced_negotiated = self.traced_negotiated
            || trace::connection_negotiated(*number, *role, *generation, exchange);
    }
}

/// An observed connection: an id of others.
#[pin_data]
pub(super) struct ObservedConnection {
    id: IdKey,
    class: Class,
    shared: Arc<Shared>,
    _share: Share,
    #[pin]
    facts: SpinLock<Facts>,
    #[pin]
    publish: Work<Self, PUBLISH>,
    #[pin]
    unexplained: DelayedWork<Self, UNEXPLAINED>,
}

/// The number of the work that adds the connection to the registry, or removes it.
const PUBLISH: u64 = 0;
/// The number of the work that records the end of a connection whose cause is not found.
const UNEXPLAINED: u64 = 1;

/// How long the cause is waited for after this end has disconnected, in milliseconds. The error of
/// a queue pair may be handled later than the flush that follows from it.
const CAUSE_MS: u32 = 2_000;

impl_has_work! {
    impl HasWork<Self, PUBLISH> for ObservedConnection { self.publish }
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self, UNEXPLAINED> for ObservedConnection { self.unexplained }
}

impl Delayed<UNEXPLAINED> for ObservedConnection {
    fn queue(&self) -> &WorkQueue {
        &self.shared.queue
    }
}

impl WorkItem<UNEXPLAINED> for ObservedConnection {
    type Pointer = Arc<Self>;

    /// Records the end of the connection, if it is not recorded yet.
    fn run(this: Arc<Self>) {
        let mut facts = this.facts.lock();
        if let Some(event) = facts.end_once(true).filter(|_| facts.counts) {
            this.shared.history.record(event);
        }
    }
}

impl WorkItem<PUBLISH> for ObservedConnection {
    type Pointer = Arc<Self>;

    /// Adds the connection to the registry, or removes it.
    fn run(this: Arc<Self>) {
        let (number, listed, gone) = {
            let facts = this.facts.lock();
            (facts.view.number, facts.listed, facts.gone)
        };

        if gone {
            if listed {
                this.shared.registry.remove(number);
            }
        } else if !listed {
            match this.shared.registry.add(number, this.clone()) {
                Ok(()) => this.facts.lock().listed = true,
                Err(_) => Missed::Memory.count(&this.shared.stats),
            }
        }
    }
}

impl Live for ObservedConnection {
    fn snapshot(&self) -> Snapshot {
        let mut facts = self.facts.lock();
        facts.ask_client(self.id);
        Snapshot {
            age_ms: facts.since.elapsed().as_millis(),
            failure: facts.failure.map(|failure| failure.cause),
            ..facts.view
        }
    }

    fn exchange(&self) -> Exchange {
        self.facts.lock().view.exchange
    }

    fn sent(&self) -> Option<PrivateData> {
        let facts = self.facts.lock();
        facts.view.exchange.sent.map(|_| facts.sent)
    }

    fn received(&self) -> Option<PrivateData> {
        let facts = self.facts.lock();
        facts.view.exchange.received.map(|_| facts.received)
    }

    fn close_and_wait(self: ArcBorrow<'_, Self>) -> Result<(), Failure> {
        Err(Failure::NOT_OWN)
    }
}

impl ObservedConnection {
    /// Begins to observe an id; may sleep.
    pub(super) fn new(
        shared: Arc<Shared>,
        role: Role,
        observation: &Observation,
    ) -> Result<Arc<Self>, Missed> {
        let share = shared.shares.take(observation.user, observation.uid)?;
        Self::with(shared, share, Facts::new(role, observation), observation)
    }

    /// Begins to observe an id that was undecided before; may sleep.
    pub(super) fn decided(
        shared: Arc<Shared>,
        before: Undecided,
        observation: &Observation,
    ) -> Result<Arc<Self>, Missed> {
        let mut facts = Facts::new(before.role, observation);
        match before.role {
            Role::Client => facts.set_sent(before.private_data()),
            Role::Server => facts.set_received(before.private_data()),
        }
        if let Some(failure) = before.failure {
            facts.end(State::Closing, failure);
        }
        facts.since = before.since;
        facts.view.process = before.program;
        Self::with(shared, before.share, facts, observation)
    }

    fn with(
        shared: Arc<Shared>,
        share: Share,
        facts: Facts,
        observation: &Observation,
    ) -> Result<Arc<Self>, Missed> {
        Ok(Arc::pin_init(
            pin_init!(Self {
                id: observation.id,
                class: facts.class,
                shared,
                _share: share,
                facts <- new_spinlock!(facts, "ObservedConnection::facts"),
                publish <- new_work!("ObservedConnection::publish"),
                unexplained <- new_delayed_work!("ObservedConnection::unexplained"),
            }),
            GFP_KERNEL,
        )?)
    }

    pub(super) fn class(&self) -> Class {
        self.class
    }

    /// Whether both sides have sent their private data, and neither speaks RPC-over-RDMA.
    pub(super) fn is_other_protocol(&self) -> bool {
        let facts = self.facts.lock();
        !facts.counts && facts.view.state == State::Established
    }

    /// Notes an event of the id, counts it, and records it in the history; any context in which a
    /// spin lock can be taken.
    pub(super) fn note(self: &Arc<Self>, observation: &Observation) {
        let stats = &self.shared.stats;
        let mut facts = self.facts.lock();

        let before = facts.view.state;
        let lasted_ms = facts.lasted_ms();
        facts.note(observation);
        if !facts.counts {
            if !facts.is_rpc_over_rdma() {
                return;
            }
            facts.counts = true;
            facts.view.number = self.shared.registry.next_number();
            stats.observed.increment();
            self.publish();
        }
        facts.trace();
        // A connection that the search found was established earlier: that is no event now.
        if observation.kind != EventKind::Existing {
            if let Some(event) = facts.change(before, lasted_ms) {
                match event.transition {
                    Transition::Established | Transition::Reestablished => {
                        stats.observed_established.increment();
                    }
                    Transition::Refused => stats.observed_refused.increment(),
                    Transition::Failed => stats.observed_failed.increment(),
                    Transition::Lost | Transition::Closed => {}
                }
                self.shared.history.record(event);
            }
        }
        let is_last = observation.kind.failure().is_some();
        if let Some(event) = facts.end_once(is_last) {
            self.shared.history.record(event);
        }
    }

    /// Notes an event that may be evidence of the end of the connection. Only the disconnect of
    /// this end ends it.
    pub(super) fn learn(self: &Arc<Self>, kind: EventKind) {
        let mut facts = self.facts.lock();
        // The server and programs may go on after a change of their address. The kernel's client
        // disconnects, unless it had UNREACHABLE before.
        let ends = (facts.view.role, facts.class) == (Role::Client, Class::Nfs);
        let ends = ends && !facts.unreachable;
        if kind != EventKind::AddressChanged || ends {
            facts.learn(kind);
        }
        if kind == EventKind::Disconnect {
            facts.disconnect();
        }
        if let Some(event) = facts.end_once(false).filter(|_| facts.counts) {
            self.shared.history.record(event);
        }
        let waits = kind == EventKind::Disconnect && facts.unrecorded.is_some();
        facts.waits |= waits;
        drop(facts);
        if waits {
            run_after::<_, UNEXPLAINED>(self.clone(), CAUSE_MS);
        }
    }

    /// Notes that the id is about to be destroyed.
    pub(super) fn end(self: &Arc<Self>) {
        let mut facts = self.facts.lock();
        let event = facts.end_once(true).or_else(|| facts.end_of_id());
        if let Some(event) = event.filter(|_| facts.counts) {
            self.shared.history.record(event);
        }
        let view = &facts.view;
        match view.state {
            _ if !facts.counts => {}
            State::Established | State::Disconnected => {
                let error = facts.failure.map(|failure| failure.error);
                trace::connection_closed(view.number, view.role, view.generation, error);
            }
            State::Connecting => self.shared.stats.observed_failed.increment(),
            _ => {}
        }
        drop(facts);
        self.leave();
    }

    /// Leaves the registry, because the id is destroyed or observing ends.
    pub(super) fn leave(self: &Arc<Self>) {
        let mut facts = self.facts.lock();
        facts.gone = true;
        if facts.counts {
            self.publish();
        }
        facts.unrecorded = None;
        // The work would keep the module, and the share, for its time.
        let waits = facts.waits;
        drop(facts);
        if waits {
            run_after::<_, UNEXPLAINED>(self.clone(), 0);
        }
    }

    fn publish(self: &Arc<Self>) {
        // Queueing fails only if the work is pending. Then it runs after this, which is enough.
        let _ = self.shared.queue.enqueue::<_, PUBLISH>(self.clone());
    }
}
