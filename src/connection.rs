// SPDX-License-Identifier: GPL-2.0

//! The module's own connections: what state they are in, and what was exchanged.
//!
//! An id of rdma_cm serves one [`attempt`] to be connected; a connection that reconnects has one
//! after the other. The connection holds the attempt that counts in its [`state`], and lets it go
//! when it is over. Events of earlier attempts have no effect ([`Connection::lock_current`]).
//!
//! RPC-over-RDMA on the queue pair of an attempt is the business of an
//! [`Endpoint`], which the connection starts and ends.
//!
//! docs/design.md has the order of locks, and what refers to what.

mod attempt;
pub(crate) mod connections;
pub(crate) mod connector;
pub(crate) mod listener;
pub(crate) mod own;
mod state;
mod table;

use core::ptr;

use kernel::{
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
        MutexGuard, //
    },
    time::{
        Instant,
        Monotonic, //
    },
    workqueue::{
        HasWork,
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
    connector::Target,
    state::ConnectionState, //
};
use crate::{
    failure::Failure,
    permits::Permit,
    protocol::{
        exchange::{
            self,
            Device,
            Exchange,
            ParsedPrivateData, //
        },
        history::{
            self,
            Outcome,
            Transition, //
        },
        negotiation::{
            InUse,
            Role, //
        },
        private_data::{
            Offered,
            PrivateData,
            Size, //
        },
        request::CallRequest,
        snapshot::{
            Origin,
            Snapshot, //
        },
        text::Text,
    },
    rdma::{
        capacity::Capacity,
        cm_id::CmId,
        device::{
            DeviceName,
            Transport, //
        },
        errno,
        handler_id::HandlerId,
        id_ref::IdRef,
        parameters::Parameters,
        queue::Queue, //
    },
    registry::Live,
    rpc::{
        endpoint::{
            Endpoint,
            EndpointConfiguration,
            Owner, //
        },
        requester::{
            not_connected,
            CallResult, //
        }, //
    },
    trace, //
};

/// The name under which the resource tracker lists the module's ids (`rdma resource show`).
const OWNER: &CStr = c"rpcrdma_cm";

/// How the ids of connections behave.
const PARAMETERS: Parameters = Parameters {
    owner: OWNER,
    // As xprtrdma does.
    retry_count: 6,
    // As Linux's client and server do: a peer that exceeds its credits finds no Receive, and is not
    // to go unnoticed (RFC 8166, section 3.3.1).
    rnr_retry_count: 0,
    // A peer that takes no message for as long, or does not let its memory be read, has lost the
    // connection.
    operation_ms: 5000,
    flush_ms: 5000,
    // InfiniBand's CM sends a DREQ three times until then, each time after four to five seconds,
    // and no more once the id is destroyed.
    disconnect_ms: 10_000,
    reads: false,
};

impl From<(DeviceName, Transport)> for Device {
    fn from((name, transport): (DeviceName, Transport)) -> Self {
        Self {
            name: Text::of(name),
            transport: match transport {
                Transport::InfiniBand => exchange::Transport::InfiniBand,
                Transport::Roce => exchange::Transport::Roce,
                Transport::Iwarp => exchange::Transport::Iwarp,
            },
        }
    }
}

/// What one side brings into a connection.
#[derive(Clone, Copy)]
pub(crate) struct Configuration {
    /// What it says in its private data.
    pub(crate) offered: Offered,
    /// How it speaks RPC-over-RDMA.
    pub(crate) endpoint: EndpointConfiguration,
}

impl Configuration {
    /// Returns the capacity that its queue pair has, where it has sent `sent`.
    fn capacity(&self, sent: &ParsedPrivateData) -> Result<Capacity> {
        let offer = sent.offer();
        // Version 2 has larger defaults, for which there must be room when the peer goes over to it
        // (draft-cel-nfsv4-rpcrdma-version-two-01, section 5.2).
        let at_least = match self.endpoint.versions.contains(2) {
            true => Size::DEFAULT_TWO,
            false => Size::DEFAULT,
        };
        Capacity::new(
            self.endpoint.receives(),
            offer.receive_size.max(at_least).octets(),
            offer.send_size.max(at_least).octets(),
        )
    }
}

impl Exchange {
    /// Begins the exchange of an id, once that is bound to a device; returns what to send, too.
    ///
    /// Fails with `ENODEV` where it is not, or not to one with a transport that is known.
    fn begin(id: &IdRef<'_>, offered: &Offered) -> Result<(Self, ParsedPrivateData)> {
        let device = id.device()?;
        let sent = ParsedPrivateData::new(offered.private_data(device.can_invalidate()));
        let exchange = Self {
            device: Some((device.name(), device.transport()).into()),
            local: id.local(),
            remote: id.remote(),
            sent: Some(sent),
            received: None,
            version: None,
        };
        Ok((exchange, sent))
    }
}

/// Which side of a connection this is, and what that needs.
enum Side {
    Client(Target),
    Server {
        /// Held for the time of the connection.
        _permit: Permit,
    },
}

/// The part of a connection that changes.
struct Inner {
    state: ConnectionState,
    /// When it got into its state.
    since: Instant<Monotonic>,
    /// Raised by each loss of what had been established: what follows is negotiated afresh
    /// (RFC 8797, section 4).
    generation: u32,
    /// How often it has been established.
    established: u32,
    exchange: Exchange,
    /// The XID of the latest call of the attempts that are over.
    xid: u32,
    /// Why the latest attempt came to its end.
    failure: Option<Failure>,
    /// How many ids have not been destroyed yet.
    ids: u32,
    /// Whether the connection has been removed from the tables, which is the last that happens to
    /// it.
    gone: bool,
}

impl Inner {
    fn enter(&mut self, state: ConnectionState) {
        self.state = state;
        self.since = Instant::now();
    }

    /// Enters the state that `next` makes of the attempt at hand, if there is one.
    fn advance(&mut self, next: impl FnOnce(Attempt) -> ConnectionState) {
        if let Some(attempt) = self.state.take_attempt() {
            self.enter(next(attempt));
        }
    }

    /// Whether there is nothing left to wait for before the connection is removed.
    fn is_over(&self) -> bool {
        matches!(self.state, ConnectionState::Closing(_)) && self.ids == 0
    }
}

/// A connection that the module made or accepted.
#[pin_data]
pub(crate) struct Connection {
    pub(crate) number: u64,
    shared: Arc<Connections>,
    configuration: Configuration,
    side: Side,
    #[pin]
    inner: Mutex<Inner>,
    /// Notified when the state has changed, or the connection is gone.
    #[pin]
    changed: CondVar,
    #[pin]
    reconnect: Work<Self, RECONNECT>,
    #[pin]
    remove: Work<Self, REMOVE>,
}

/// The number of the work that connects again.
const RECONNECT: u64 = 0;
/// The number of the work that removes the connection from the tables.
const REMOVE: u64 = 1;

impl_has_work! {
    impl HasWork<Self, RECONNECT> for Connection { self.reconnect }
    impl HasWork<Self, REMOVE> for Connection { self.remove }
}

impl WorkItem<REMOVE> for Connection {
    type Pointer = Arc<Self>;

    /// Left to work, as that waits for readers of the connection's files.
    fn run(this: Arc<Self>) {
        this.shared.remove(this.number);
        this.inner.lock().gone = true;
        this.changed.notify_all();
    }
}

impl Live for Connection {
    fn snapshot(&self) -> Snapshot {
        let inner = self.inner.lock();
        let endpoint = inner.state.endpoint();
        let (traffic, version) =
            endpoint.map_or_else(Default::default, |endpoint| endpoint.traffic());
        // What follows a loss is negotiated afresh.
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
                // Of the peer, if it is the responder.
                remote_invalidation: (traffic.remote_invalidations_received > 0).then_some(true),
                ..InUse::default()
            },
            traffic: Some(traffic),
            note: None,
        }
    }

    fn close_and_wait(self: ArcBorrow<'_, Self>) -> Result<(), Failure> {
        self.close();
        self.wait_gone()
    }
}

impl Connection {
    /// Makes a connection, of which nothing has been attempted yet.
    fn new(
        shared: Arc<Connections>,
        configuration: Configuration,
        side: Side,
    ) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                number: shared.next_number(),
                shared,
                configuration,
                side,
                inner <- new_mutex!(
                    Inner {
                        state: ConnectionState::Resolving(None),
                        since: Instant::now(),
                        generation: 1,
                        established: 0,
                        exchange: Exchange::with(None),
                        xid: 0,
                        failure: None,
                        ids: 0,
                        gone: false,
                    },
                    "Connection::inner"
                ),
                changed <- new_condvar!("Connection::changed"),
                reconnect <- new_work!("Connection::reconnect"),
                remove <- new_work!("Connection::remove"),
            }),
            GFP_KERNEL,
        )
    }

    /// Which side of the connection this end is.
    pub(crate) fn role(&self) -> Role {
        match self.side {
            Side::Client(_) => Role::Client,
            Side::Server { .. } => Role::Server,
        }
    }

    /// Returns why the latest attempt came to its end.
    pub(crate) fn failure(&self) -> Option<Failure> {
        self.inner.lock().failure
    }

    /// Makes calls, as [`Endpoint::call`] does.
    pub(crate) fn call(
        &self,
        request: &CallRequest<'_>,
        result: &mut CallResult,
    ) -> Result<(), Failure> {
        let endpoint = self.inner.lock().state.endpoint().cloned();
        endpoint.ok_or(not_connected())?.call(request, result)
    }

    /// Waits until the connection, which has been closed, is gone; process context.
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

    /// The same, but not to be interrupted.
    pub(crate) fn wait_gone_uninterruptible(&self) {
        let mut inner = self.inner.lock();
        while !inner.gone {
            self.changed.wait(&mut inner);
        }
    }

    /// Makes the endpoint of another attempt.
    fn new_endpoint(self: ArcBorrow<'_, Self>) -> Result<Arc<Endpoint>> {
        let owner: Arc<Self> = self.into();
        let xid = self.inner.lock().xid;
        let services = self.shared.services.clone();
        Endpoint::new(services, self.configuration.endpoint, owner, xid)
    }

    /// Returns the connection's lock, if the attempt with `endpoint` is under way or has led to the
    /// connection that there is: whatever happens to another one has no effect.
    fn lock_current(&self, endpoint: &Endpoint) -> Option<MutexGuard<'_, Inner>> {
        let mut inner = self.inner.lock();
        let current = inner.state.attempt_mut()?;
        ptr::eq(&*current.endpoint, endpoint).then_some(inner)
    }

    /// Returns the handler for the id of the attempt with `endpoint`.
    ///
    /// Fails with `ESHUTDOWN` where that has come to its end.
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

    /// An id, of whichever attempt, has been destroyed.
    fn id_destroyed(self: ArcBorrow<'_, Self>) {
        let mut inner = self.inner.lock();
        inner.ids -= 1;
        if inner.is_over() {
            self.enqueue::<REMOVE>(&self.shared.teardown);
        }
    }

    /// Takes the id of the attempt with `endpoint`, unless that has come to its end already.
    fn keep(&self, endpoint: &Endpoint, id: CmId<AttemptHandler>) {
        if let Some(mut inner) = self.lock_current(endpoint) {
            if let Some(attempt) = inner.state.attempt_mut() {
                attempt.id = Some(id);
            }
        }
    }

    /// Takes the private data of the peer.
    fn receive(&self, inner: &mut Inner, octets: &[u8]) {
        // None is left out: the kernel counts them in one octet itself.
        let received = ParsedPrivateData::new(PrivateData::truncated(octets));
        inner.exchange.received = Some(received);

        trace::message_parsed(self.number, self.role(), &received);
        let stats = &self.shared.stats;
        stats.of_parsed(&received.parsed).increment();
        if let (Some(negotiated), Some(local), Some(remote)) = (
            inner.exchange.negotiated(self.role()),
            inner.exchange.local,
            inner.exchange.remote,
        ) {
            trace::connection_negotiated(
                self.number,
                self.role(),
                inner.generation,
                local,
                remote,
                &negotiated,
            );
        }
    }

    /// Handles the event of this name: starts the endpoint.
    fn established(
        self: ArcBorrow<'_, Self>,
        endpoint: &Arc<Endpoint>,
        id: &HandlerId<'_, Endpoint>,
        private_data: &[u8],
    ) -> Result<(), Failure> {
        let Some(mut inner) = self.lock_current(endpoint) else {
            return Ok(());
        };
        let ConnectionState::Connecting { failure, .. } = inner.state else {
            return Ok(());
        };
        // A server has the client's message from the request: its own event has none.
        if self.role() == Role::Client {
            inner.exchange.local = id.local();
            self.receive(&mut inner, private_data);
        }
        inner.advance(ConnectionState::Established);
        inner.established = inner.established.wrapping_add(1);
        self.shared.stats.established.increment();
        self.record(&inner, Transition::established(inner.generation), None);
        self.changed.notify_all();
        endpoint
            .as_arc_borrow()
            .start(id.queue_pair(), &inner.exchange);
        failure.map_or(Ok(()), Err)
    }

    /// Records in the history what happens to the connection, before its state changes further.
    fn record(&self, inner: &Inner, transition: Transition, reason: Option<Failure>) {
        let ends = matches!(transition, Transition::Lost | Transition::Closed);
        let established = matches!(inner.state, ConnectionState::Established(_));
        let lasted = (ends && established).then(|| inner.since.elapsed());

        self.shared.history.record(history::Event {
            transition,
            number: Some(self.number),
            origin: Origin::Module,
            role: self.role(),
            local: inner.exchange.local,
            remote: inner.exchange.remote,
            generation: Some(inner.generation),
            lasted_ms: lasted.map(|lasted| lasted.as_millis()),
            outcome: Outcome::of(&inner.exchange, self.role()),
            reason: reason.map(|failure| failure.cause),
        });
    }

    /// Ends the connection. It is gone when its ids have been destroyed, which this does not wait
    /// for.
    pub(crate) fn close(self: ArcBorrow<'_, Self>) {
        self.end(&mut self.inner.lock(), None);
    }

    /// Ends the attempt at hand and the connection that it has led to, because of `failure`. Where
    /// that is [`None`], somebody asked for it, and there is no other attempt.
    fn end(self: ArcBorrow<'_, Self>, inner: &mut Inner, failure: Option<Failure>) {
        if matches!(inner.state, ConnectionState::Closing(_)) {
            return;
        }
        let established = matches!(inner.state, ConnectionState::Established(_));
        let endpoint = inner.state.endpoint().cloned();
        let mut falls_back = false;
        if let Some(endpoint) = &endpoint {
            falls_back = endpoint.end(failure);
            inner.xid = endpoint.xid();
        }
        match failure {
            Some(failure) => self.record(inner, failure.transition(established), Some(failure)),
            // The listener records what it failed to accept.
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
        }

        let reconnects = matches!(&self.side, Side::Client(target) if target.reconnect)
            && (established || inner.generation > 1);
        inner.failure = failure;
        if failure.is_some() && (falls_back || reconnects) {
            inner.exchange = Exchange::with(inner.exchange.remote);
            inner.enter(ConnectionState::Reconnecting(endpoint));
            // An attempt that fails is repeated by the work that makes it.
            if established {
                inner.generation = inner.generation.wrapping_add(1);
                self.enqueue::<RECONNECT>(&self.shared.reconnects);
            }
        } else {
            inner.enter(ConnectionState::Closing(endpoint));
            if inner.is_over() {
                self.enqueue::<REMOVE>(&self.shared.teardown);
            }
        }
        self.changed.notify_all();
    }

    fn enqueue<const WORK: u64>(self: ArcBorrow<'_, Self>, queue: &Queue)
    where
        Self: HasWork<Self, WORK> + WorkItem<WORK, Pointer = Arc<Self>>,
    {
        // What is queued already is going to run, which is all that is wanted.
        let _ = queue.enqueue::<_, WORK>(Arc::from(self));
    }
}

impl Owner for Connection {
    fn endpoint_failed(self: Arc<Self>, endpoint: &Endpoint, failure: Failure) {
        let Some(mut inner) = self.lock_current(endpoint) else {
            return;
        };
        match &mut inner.state {
            // rdma_cm lets the queue pair fail where the peer refuses, and is about to say why.
            ConnectionState::Connecting { failure: first, .. } => {
                first.get_or_insert(failure);
            }
            ConnectionState::Established(_) => {
                self.as_arc_borrow().end(&mut inner, Some(failure));
            }
            _ => {}
        }
    }
}
