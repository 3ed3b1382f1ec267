// SPDX-License-Identifier: GPL-2.0

//! The module's own connections: their states, and the private data that was exchanged.
//!
//! An id of rdma_cm serves one [`attempt`] to connect. A connection that reconnects makes one
//! attempt after the other. Its [`state`] holds the current attempt, and drops it when the attempt
//! has ended. Events of earlier attempts have no effect ([`Connection::lock_current`]).
//!
//! The connection starts and ends an [`Endpoint`] for each attempt. The endpoint speaks
//! RPC-over-RDMA on the queue pair of the attempt.
//!
//! docs/design.md has the order of locks, and the references between these objects.

mod attempt;
pub(crate) mod connections;
pub(crate) mod connector;
pub(crate) mod listener;
pub(crate) mod own;
mod state;
mod table;

use core::ptr;

use kernel::{
    impl_has_delayed_work,
    impl_has_work,
    new_condvar,
    new_delayed_work,
    new_mutex,
    new_work,
    prelude::*,
    sync::{
        Arc,
        ArcBorrow,
        CondVar,
        Mutex,
        MutexGuard, //
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

use self::{
    attempt::{
        Attempt,
        AttemptHandler, //
    },
    connections::Connections,
    connector::{
        Target,
        FIRST_PAUSE_MS,
        LONGEST_PAUSE_MS, //
    },
    state::ConnectionState, //
};
use crate::{
    base::{
        errno::errno,
        wait::{
            wait_while,
            MayWait, //
        },
        work_queue::{
            run_after,
            Delayed,
            WorkQueue, //
        }, //
    },
    failure::Failure,
    permits::Permit,
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
            outcome::CommandOutcome,
            snapshot::{
                Origin,
                Snapshot, //
            }, //
        },
        wire::{
            call_request::CallRequest,
            ending::Evidence,
            negotiation::{
                InUse,
                Role, //
            },
            private_data::{
                parse,
                Offered,
                PrivateData,
                Size, //
            }, //
        }, //
    },
    rdma::{
        cm::{
            cm_id::CmId,
            handler_id::HandlerId,
            id_ref::IdRef,
            parameters::Parameters, //
        },
        messages::{
            capacity::Capacity,
            message_queue_pair::MessageQueuePair,
            setup::{
                Setup,
                TimeLimits, //
            }, //
        }, //
    },
    registry::Live,
    rpc::endpoint::{
        not_connected,
        Endpoint,
        EndpointConfiguration,
        Owner,
        CAUSE_MS, //
    },
    shown_device,
    trace, //
};

/// The name under which the resource tracker lists the module's ids (`rdma resource show`).
const OWNER: &CStr = c"rpcrdma_cm";

/// How the ids of connections behave.
const PARAMETERS: Parameters = Parameters {
    owner: OWNER,
    // As in Linux's client and server: a peer that exceeds its credits finds no Receive, and the
    // connection fails (RFC 8166, section 3.3.1).
    rnr_retry_count: 0,
    // InfiniBand's CM retransmits a DREQ after four to five seconds, so three are sent in this
    // time. It stops retransmitting when the id is destroyed.
    disconnect_ms: 10_000,
};

/// A Send or another operation, such as the transfer of one block of a chunk, that takes longer
/// fails the queue pair.
const LIMITS: TimeLimits = TimeLimits {
    operation_ms: 5000,
    flush_ms: 5000,
};

/// The configuration of this side of a connection, from the keys of `connect` or `listen`.
#[derive(Clone, Copy)]
pub(crate) struct Configuration {
    /// The private data to send.
    pub(crate) offer: Offered,
    /// The versions, credits and calls of RPC-over-RDMA.
    pub(crate) endpoint: EndpointConfiguration,
}

impl Configuration {
    /// Returns what the queue pair of `endpoint` is made of, whose side sends the private data
    /// `sent`.
    fn setup(&self, sent: &PrivateData, endpoint: Arc<Endpoint>) -> Result<Setup<Endpoint>> {
        let offer = parse(sent.octets()).offer();
        // Version 2 has larger defaults. The Receives must have room for them before the peer
        // changes to version 2 (draft-cel-nfsv4-rpcrdma-version-two-01, section 5.2).
        let at_least = if self.endpoint.rpc.versions.contains(2) {
            Size::DEFAULT_TWO
        } else {
            Size::DEFAULT
        };
        let send_size = offer.send_size.max(at_least).octets();
        Ok(Setup {
            capacity: Capacity::new(
                self.endpoint.receives(),
                offer.receive_size.max(at_least).octets(),
                self.endpoint.sends(send_size),
                send_size,
            )?,
            limits: LIMITS,
            handler: endpoint,
        })
    }
}

/// Begins the exchange of an id that is bound to a device. Also returns the private data to send.
///
/// Fails with `ENODEV` if the id is bound to no device, or the device's transport is unknown.
fn begin_exchange(id: &IdRef<'_>, offer: &Offered) -> Result<(Exchange, PrivateData)> {
    let port = id.port()?;
    let sent = offer.private_data(port.can_invalidate());
    let exchange = Exchange {
        device: Some(shown_device::of(port.name(), port.transport())),
        local: id.local(),
        sent: Some(ParsedPrivateData::new(&sent)),
        ..Exchange::with(id.remote())
    };
    Ok((exchange, sent))
}

/// The side of a connection that this end is, with the data that only that side has.
enum Side {
    Client(Target),
    Server {
        /// The listener's permit. It is given back when the connection is dropped.
        _permit: Permit,
    },
}

/// The part of a connection that changes.
struct ConnectionInner {
    state: ConnectionState,
    /// The time at which the connection entered its state.
    since: Instant<Monotonic>,
    /// Starts at 1, and grows by one each time that the client connects again after the loss of an
    /// established connection. Each generation negotiates afresh (RFC 8797, section 4).
    generation: u32,
    /// Whether the connection has been established, now or before.
    established: bool,
    /// When the latest attempt began.
    attempted: Instant<Monotonic>,
    /// The pause before the next attempt to reconnect, in milliseconds.
    pause_ms: u32,
    exchange: Exchange,
    /// The private data of the peer, once `exchange` has what it says.
    received: PrivateData,
    /// Why the latest attempt ended.
    failure: Option<Failure>,
    /// How many ids of this connection exist.
    ids: u32,
    /// Whether the connection has been removed from the tables. Nothing happens to it afterwards.
    gone: bool,
}

impl ConnectionInner {
    fn enter(&mut self, state: ConnectionState) {
        self.state = state;
        self.since = Instant::now();
    }

    /// Enters the state that `next` returns for the current attempt, if there is one.
    fn advance(&mut self, next: impl FnOnce(Attempt) -> ConnectionState) {
        if let Some(attempt) = self.state.take_attempt() {
            self.enter(next(attempt));
        }
    }

    /// Takes evidence of the end of the current attempt, as [`Attempt::learn`] does. Returns the
    /// first cause as far as it is known now.
    fn learn(&mut self, evidence: Evidence, failure: Failure) -> Failure {
        let iwarp = shown_device::is_iwarp(&self.exchange);
        let Some(attempt) = self.state.attempt_mut() else {
            return failure;
        };
        attempt.learn(evidence, iwarp, failure);
        attempt.failure().unwrap_or(failure)
    }

    /// Whether the connection is closing and all of its ids have been destroyed.
    fn is_over(&self) -> bool {
        matches!(self.state, ConnectionState::Closing(_)) && self.ids == 0
    }
}

/// A connection that the module made or accepted.
#[pin_data]
pub(crate) struct Connection {
    pub(crate) number: u64,
    shared: Arc<Connections>,
    /// Shared by all connections of a listener.
    configuration: Arc<Configuration>,
    side: Side,
    #[pin]
    inner: Mutex<ConnectionInner>,
    /// Notified when the state has changed, and when `gone` is set.
    #[pin]
    changed: CondVar,
    #[pin]
    timer: DelayedWork<Self, TIMER>,
    #[pin]
    remove: Work<Self, REMOVE>,
    #[pin]
    unexplained: DelayedWork<Self, UNEXPLAINED>,
    /// The queue of the works that connect.
    connects: Arc<WorkQueue>,
}

/// How long an error is waited for after DISCONNECTED, in milliseconds. Its completion may arrive
/// after the DREQ that followed from it.
const ERROR_MS: u32 = 200;

/// The number of the work that acts when a time is over: a client begins the next attempt to
/// connect again, or gives one up; a server gives up waiting for RTU.
const TIMER: u64 = 0;
/// The number of the work that removes the connection from the tables.
const REMOVE: u64 = 1;
/// The number of the work that ends a connection whose cause of the end is not found.
const UNEXPLAINED: u64 = 2;

impl_has_work! {
    impl HasWork<Self, REMOVE> for Connection { self.remove }
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self, TIMER> for Connection { self.timer }
    impl HasDelayedWork<Self, UNEXPLAINED> for Connection { self.unexplained }
}

impl Delayed<TIMER> for Connection {
    fn queue(&self) -> &WorkQueue {
        &self.shared.timers
    }
}

impl WorkItem<TIMER> for Connection {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let connection = this.as_arc_borrow();
        match &this.side {
            Side::Client(target) => connection.reconnect(target),
            Side::Server { .. } => connection.expire(),
        }
    }
}

impl WorkItem<REMOVE> for Connection {
    type Pointer = Arc<Self>;

    /// Removes the connection from the tables. This is a work because it waits for readers of the
    /// connection's files.
    fn run(this: Arc<Self>) {
        this.shared.remove(this.number);
        this.inner.lock().gone = true;
        this.changed.notify_all();
    }
}

impl Delayed<UNEXPLAINED> for Connection {
    fn queue(&self) -> &WorkQueue {
        &self.shared.timers
    }
}

impl WorkItem<UNEXPLAINED> for Connection {
    type Pointer = Arc<Self>;

    /// Ends the connection if it has failed, and nothing else has shown why.
    fn run(this: Arc<Self>) {
        let mut inner = this.inner.lock();
        let ConnectionState::Established(attempt) = &inner.state else {
            return;
        };
        let event = attempt.endpoint.event();
        if let Some(failure) = attempt.failure() {
            let cause = match event {
                Some(event) => inner.learn(Evidence::Error, event),
                None => failure,
            };
            this.as_arc_borrow().end(&mut inner, Some(cause));
        }
    }
}

impl Live for Connection {
    fn snapshot(&self) -> Snapshot {
        let inner = self.inner.lock();
        let endpoint = inner.state.endpoint();
        let (traffic, version) =
            endpoint.map_or_else(Default::default, |endpoint| endpoint.traffic());
        // The next generation negotiates its version afresh.
        let lost = matches!(inner.state, ConnectionState::Reconnecting(_));
        Snapshot {
            number: self.number,
            origin: Origin::Module,
            role: self.role(),
            state: inner.state.name(),
            age_ms: inner.since.elapsed().as_millis(),
            generation: inner.generation,
            failure: inner.failure.map(|failure| failure.cause),
            exchange: Exchange {
                version: version.filter(|_| !lost),
                ..inner.exchange
            },
            process: None,
            in_use: InUse {
                // Those that a client receives describe the server.
                remote_invalidation: (self.role() == Role::Client
                    && traffic.remote_invalidations_received > 0)
                    .then_some(true),
                ..InUse::default()
            },
            traffic: Some(traffic),
            note: None,
        }
    }

    fn exchange(&self) -> Exchange {
        self.inner.lock().exchange
    }

    fn sent(&self) -> Option<PrivateData> {
        let sent = self.inner.lock().exchange.sent?;
        // R was cleared if the device cannot invalidate.
        let can_invalidate = sent.offer().remote_invalidation;
        Some(self.configuration.offer.private_data(can_invalidate))
    }

    fn received(&self) -> Option<PrivateData> {
        let inner = self.inner.lock();
        inner.exchange.received.map(|_| inner.received)
    }

    fn close_and_wait(self: ArcBorrow<'_, Self>) -> Result<(), Failure> {
        self.close();
        self.wait_gone()
    }
}

impl Connection {
    /// Creates a connection without an attempt.
    fn new(
        shared: Arc<Connections>,
        configuration: Arc<Configuration>,
        side: Side,
    ) -> Result<Arc<Self>> {
        let number = shared.next_number();
        let connects = shared.connect_queue(number)?;
        Arc::pin_init(
            pin_init!(Self {
                number,
                shared,
                configuration,
                side,
                inner <- new_mutex!(
                    ConnectionInner {
                        state: ConnectionState::Resolving(None),
                        since: Instant::now(),
                        generation: 1,
                        established: false,
                        attempted: Instant::now(),
                        pause_ms: FIRST_PAUSE_MS,
                        exchange: Exchange::with(None),
                        received: PrivateData::EMPTY,
                        failure: None,
                        ids: 0,
                        gone: false,
                    },
                    "Connection::inner"
                ),
                changed <- new_condvar!("Connection::changed"),
                timer <- new_delayed_work!("Connection::timer"),
                remove <- new_work!("Connection::remove"),
                unexplained <- new_delayed_work!("Connection::unexplained"),
                connects,
            }),
            GFP_KERNEL,
        )
    }

    /// Returns the role of this end.
    pub(crate) fn role(&self) -> Role {
        match self.side {
            Side::Client(_) => Role::Client,
            Side::Server { .. } => Role::Server,
        }
    }

    /// Returns why the latest attempt ended.
    pub(crate) fn failure(&self) -> Option<Failure> {
        self.inner.lock().failure
    }

    /// Makes calls, as [`Endpoint::call`] does.
    pub(crate) fn call(
        &self,
        may_wait: &MayWait,
        request: &CallRequest,
        result: &mut CommandOutcome,
    ) -> Result<(), Failure> {
        let endpoint = self.inner.lock().state.endpoint().cloned();
        endpoint
            .ok_or(not_connected())?
            .call(may_wait, request, result)
    }

    /// Waits until the connection has been removed from the tables; process context. The connection
    /// must have been closed.
    ///
    /// Fails with `EINTR` on a signal.
    pub(crate) fn wait_gone(&self) -> Result<(), Failure> {
        let mut inner = self.inner.lock();
        while !inner.gone {
            if self.changed.wait_interruptible(&mut inner) {
                return Err(Failure::new(
                    EINTR,
                    "interrupted while waiting for the end of a connection",
                ));
            }
        }
        Ok(())
    }

    /// Waits like [`Self::wait_gone`], but ignores signals, and waits for `milliseconds` at most.
    /// Returns whether the connection has been removed.
    pub(crate) fn wait_gone_for(&self, milliseconds: u32) -> bool {
        !wait_while(&self.changed, &self.inner, milliseconds, |inner| {
            !inner.gone
        })
    }

    /// Creates the endpoint of a new attempt.
    fn new_endpoint(self: ArcBorrow<'_, Self>) -> Result<Arc<Endpoint>> {
        let owner: Arc<Self> = self.into();
        let services = self.shared.services.clone();
        Endpoint::new(services, self.configuration.endpoint, owner)
    }

    /// Locks and returns the connection if `endpoint` is that of the current attempt. Otherwise
    /// returns [`None`], so that events of earlier attempts have no effect.
    fn lock_current(&self, endpoint: &Endpoint) -> Option<MutexGuard<'_, ConnectionInner>> {
        let mut inner = self.inner.lock();
        let current = inner.state.attempt_mut()?;
        ptr::eq(&*current.endpoint, endpoint).then_some(inner)
    }

    /// Returns the handler for the id of the attempt with `endpoint`.
    ///
    /// Fails with `ESHUTDOWN` if that attempt has ended.
    fn handler(self: ArcBorrow<'_, Self>, endpoint: &Arc<Endpoint>) -> Result<AttemptHandler> {
        let mut inner = self
            .lock_current(endpoint)
            .ok_or(errno(kernel::bindings::ESHUTDOWN))?;
        inner.ids += 1;
        Ok(AttemptHandler {
            connection: self.into(),
            endpoint: endpoint.clone(),
        })
    }

    /// Called when an id of this connection, of any attempt, has been destroyed.
    fn id_destroyed(self: ArcBorrow<'_, Self>) {
        let mut inner = self.inner.lock();
        inner.ids -= 1;
        if inner.is_over() {
            self.enqueue_removal();
        }
    }

    /// Stores the id of the attempt with `endpoint`. Drops the id if that attempt has ended.
    fn keep(&self, endpoint: &Endpoint, id: CmId<AttemptHandler>) {
        if let Some(mut inner) = self.lock_current(endpoint) {
            if let Some(attempt) = inner.state.attempt_mut() {
                attempt.id = Some(id);
            }
        }
    }

    /// Stores the private data of the peer, parses it, and counts and traces the result.
    fn receive(&self, inner: &mut ConnectionInner, octets: &[u8]) {
        // Nothing is truncated: the kernel's own length is a `u8`, so at most 255 octets arrive.
        inner.received = PrivateData::truncated(octets);
        let received = ParsedPrivateData::new(&inner.received);
        inner.exchange.received = Some(received);

        trace::message_parsed(self.number, self.role(), &received);
        let stats = &self.shared.stats;
        stats.of_parsed(&received.parsed).increment();
        let (role, exchange) = (self.role(), &inner.exchange);
        trace::connection_negotiated(self.number, role, inner.generation, exchange);
    }

    /// Handles ESTABLISHED: enters the state and starts the endpoint. Ends the connection if the
    /// queue pair has failed before.
    fn established(
        self: ArcBorrow<'_, Self>,
        endpoint: &Arc<Endpoint>,
        id: &HandlerId<'_, MessageQueuePair<Endpoint>>,
        private_data: &[u8],
    ) -> Result<(), Failure> {
        let Some(mut inner) = self.lock_current(endpoint) else {
            return Ok(());
        };
        if !matches!(inner.state, ConnectionState::Connecting(_)) {
            return Ok(());
        }
        // A server got the client's private data with the REQ. Its ESTABLISHED carries none.
        if self.role() == Role::Client {
            inner.exchange.local = id.local();
            self.receive(&mut inner, private_data);
        }
        inner.advance(ConnectionState::Established);
        inner.established = true;
        self.shared.stats.established.increment();
        self.record(&inner, Transition::established(inner.generation), None);
        self.changed.notify_all();
        endpoint
            .as_arc_borrow()
            .start(id.queue_pair(), &inner.exchange);
        self.end_if_failed(&mut inner);
        Ok(())
    }

    /// Handles DISCONNECTED. A connection that is not established ends at once. So does an
    /// established one whose failure was known before, unless the iWARP device has closed it.
    /// Every other established connection waits for a completion that shows the cause: an error
    /// or, if the peer has disconnected, the flush by this function. Without one it ends after
    /// [`ERROR_MS`].
    fn disconnected(
        self: ArcBorrow<'_, Self>,
        endpoint: &Endpoint,
        id: &mut HandlerId<'_, MessageQueuePair<Endpoint>>,
    ) {
        let Some(mut inner) = self.lock_current(endpoint) else {
            return;
        };
        let Some(attempt) = inner.state.attempt_mut() else {
            return;
        };
        let has_failed = attempt.failure().is_some();
        let (evidence, failure) = attempt.note_disconnected();
        let unexplained = !has_failed || evidence == Evidence::Consequence;
        if unexplained && matches!(inner.state, ConnectionState::Established(_)) {
            run_after::<_, UNEXPLAINED>(Arc::from(self), ERROR_MS);
            drop(inner);
            // `flush_queue_pair` has no effect during an operation: a NAK that has arrived may not
            // have been handled, and a flush would hide it.
            id.flush_queue_pair();
            return;
        }
        let cause = inner.learn(evidence, failure);
        self.end(&mut inner, Some(cause));
    }

    /// Adds an event of this connection to the history. At the end of a connection it is called
    /// before the state changes, because the event says how long the connection was established.
    fn record(&self, inner: &ConnectionInner, transition: Transition, reason: Option<Failure>) {
        let ends = matches!(transition, Transition::Lost | Transition::Closed);
        let established = matches!(inner.state, ConnectionState::Established(_));
        let lasted = (ends && established).then(|| inner.since.elapsed());
        let exchange = Exchange {
            version: inner
                .state
                .endpoint()
                .and_then(|endpoint| endpoint.traffic().1),
            ..inner.exchange
        };

        self.shared.history.record(HistoryEvent {
            transition,
            number: Some(self.number),
            origin: Origin::Module,
            of_root: false,
            role: self.role(),
            local: inner.exchange.local,
            remote: inner.exchange.remote,
            generation: Some(inner.generation),
            lasted_ms: lasted.map(|lasted| lasted.as_millis()),
            outcome: NegotiatedColumns::of(&exchange, self.role()),
            reason: reason.map(|failure| failure.cause),
        });
    }

    /// Closes the connection. Does not wait: the connection is removed when its ids have been
    /// destroyed.
    pub(crate) fn close(self: ArcBorrow<'_, Self>) {
        self.end(&mut self.inner.lock(), None);
    }

    /// Ends the connection, which is established, if the cause of its end is known. If it was only
    /// flushed, a work ends it later, unless the cause is found before.
    fn end_if_failed(self: ArcBorrow<'_, Self>, inner: &mut ConnectionInner) {
        let ConnectionState::Established(attempt) = &inner.state else {
            return;
        };
        match attempt.failure() {
            Some(failure) if attempt.is_explained() => self.end(inner, Some(failure)),
            // The work is queued already. Queueing it again would postpone it.
            Some(_) if attempt.has_disconnected() => {}
            Some(_) => run_after::<_, UNEXPLAINED>(Arc::from(self), CAUSE_MS),
            None => {}
        }
    }

    /// Ends the current attempt, also if it is established. `failure` is the reason. [`None`] means
    /// that this end closes the connection (a command, unloading, or a request that could not be
    /// accepted), and no other attempt follows.
    fn end(self: ArcBorrow<'_, Self>, inner: &mut ConnectionInner, failure: Option<Failure>) {
        let closed = failure.is_none();
        let failure = match &inner.state {
            ConnectionState::Closing(_) => return,
            ConnectionState::Established(attempt) if attempt.failure().is_some() => {
                // The work that would end it must not be left behind by unloading.
                run_after::<_, UNEXPLAINED>(Arc::from(self), 0);
                // It had ended before the user closed it.
                failure.or(attempt.failure())
            }
            // The queue pair failed before REJ, or before the time for RTU was over.
            ConnectionState::Connecting(attempt) if attempt.is_explained() => {
                failure.and(attempt.failure())
            }
            _ => failure,
        };
        let established = matches!(inner.state, ConnectionState::Established(_));
        let endpoint = inner.state.endpoint().cloned();
        let mut falls_back = false;
        if let Some(endpoint) = &endpoint {
            falls_back = endpoint.end(failure);
        }
        match failure {
            Some(failure) => self.record(inner, failure.transition(established), Some(failure)),
            // The listener records a request that it failed to accept. A connection that is closed
            // before RTU has no event.
            None if !established && self.role() == Role::Server => {}
            None => self.record(inner, Transition::Closed, None),
        }

        let stats = &self.shared.stats;
        if established {
            let error = failure.map(|failure| failure.error);
            trace::connection_closed(self.number, self.role(), inner.generation, error);
            match error {
                Some(_) => stats.lost.increment(),
                None => stats.closed.increment(),
            }
        } else if self.role() == Role::Server && failure.is_some() {
            // The listener counts requests that it failed to accept.
            stats.requests_unconfirmed.increment();
        } else if self.role() == Role::Client && inner.state.is_attempting() {
            stats.connects_failed.increment();
        }

        let reconnects = matches!(&self.side, Side::Client(target) if target.reconnect)
            && (established || inner.generation > 1);
        inner.failure = failure;
        if !closed && (falls_back || reconnects) {
            inner.exchange = Exchange::with(inner.exchange.remote);
            inner.enter(ConnectionState::Reconnecting(endpoint));
            if established {
                inner.generation = inner.generation.wrapping_add(1);
                inner.pause_ms = FIRST_PAUSE_MS;
            }
            run_after::<_, TIMER>(self.into(), inner.pause_ms);
            inner.pause_ms = inner.pause_ms.saturating_mul(2).min(LONGEST_PAUSE_MS);
        } else {
            inner.enter(ConnectionState::Closing(endpoint));
            // The timer's work has nothing to do in this state. It returns, and drops its reference
            // to the connection.
            run_after::<_, TIMER>(self.into(), 0);
            if inner.is_over() {
                self.enqueue_removal();
            }
        }
        self.changed.notify_all();
    }

    fn enqueue_removal(self: ArcBorrow<'_, Self>) {
        // Queueing fails only if the work is pending. Then it runs after this, which is enough.
        let _ = self.shared.leave.enqueue::<_, REMOVE>(Arc::from(self));
    }
}

impl Owner for Connection {
    fn endpoint_failed(self: Arc<Self>, endpoint: &Endpoint, evidence: Evidence, failure: Failure) {
        let Some(mut inner) = self.lock_current(endpoint) else {
            return;
        };
        let iwarp = shown_device::is_iwarp(&inner.exchange);
        let attempt = inner.state.attempt_mut();
        // Before ESTABLISHED an event of the CM follows, or a server's time for RTU ends. When the
        // peer rejects the request, rdma_cm fails the queue pair first, and then reports REJECTED
        // with the reason.
        if attempt.is_some_and(|attempt| attempt.learn(evidence, iwarp, failure)) {
            self.as_arc_borrow().end_if_failed(&mut inner);
        }
    }
}
