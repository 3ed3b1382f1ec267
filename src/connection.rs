// SPDX-License-Identifier: GPL-2.0

//! The module's own connections: what state they are in, and what was exchanged.
//!
//! An id of rdma_cm serves one attempt to be connected; a connection that reconnects has one after
//! the other. The handler of an id is an [`Attempt`], which holds the [`Connection`]. That holds
//! the id of the attempt that counts, and lets it go when the attempt is over.
//!
//! Once there is a connection, its client is the requester and its server the responder of
//! RPC-over-RDMA (RFC 8166): [`requester`] and [`responder`].
//!
//! Locks, in this order: `Listener::id`, a handler mutex of rdma_cm, those of a queue pair, the
//! table of listeners, that of connections, the registry's, a connection's,
//! `VersionCache::responders`. Nothing of rdma_cm or of a queue pair is called with one of the latter
//! five held.

pub(crate) mod connections;
pub(crate) mod connector;
pub(crate) mod listener;
pub(crate) mod own;
mod payload;
pub(crate) mod requester;
mod responder;
mod table;
mod version_cache;

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
        Mutex, //
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
    connections::Connections,
    connector::{
        connect_failure,
        Target, //
    },
    requester::Pending, //
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
        header::Versions,
        negotiation::{
            InUse,
            Role, //
        },
        private_data::{
            Offered,
            PrivateData,
            Size, //
        }, //
        snapshot::{
            Null,
            Origin,
            Snapshot,
            State,
            Traffic, //
        },
        text::Text,
    },
    rdma::{
        capacity::Capacity,
        cm_id::CmId,
        completion_handler::CompletionHandler,
        device::{
            DeviceName,
            Transport, //
        },
        draining::Handle,
        errno,
        event::{
            ConnectionHandler,
            Event, //
        },
        handler_id::HandlerId,
        id_ref::IdRef,
        parameters::Parameters,
        queue::Queue,
        queue_pair::QueuePair, //
    },
    registry::Live,
    trace, //
};

/// The name under which the resource tracker lists the module's ids (`rdma resource show`).
const OWNER: &CStr = c"rpcrdma_cm";

/// How the ids of connections behave.
const PARAMETERS: Parameters = Parameters {
    owner: OWNER,
    // As xprtrdma does.
    retry_count: 6,
    // For ever.
    rnr_retry_count: 7,
    // A peer that takes no message for as long, or does not let its memory be read, has lost the
    // connection.
    operation_ms: 5000,
    flush_ms: 5000,
    // InfiniBand's CM sends a DREQ three times until then, each time after four to five seconds,
    // and no more once the id is destroyed.
    disconnect_ms: 10_000,
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
pub(crate) struct Terms {
    /// What it says in its private data.
    pub(crate) offered: Offered,
    /// The versions of RPC-over-RDMA that it speaks.
    pub(crate) versions: Versions,
    /// How many Receives it posts, and so how many messages may be on their way to it (RFC 8166,
    /// section 3.3.1): a requester asks for as many credits, a responder grants them.
    pub(crate) credits: u32,
    /// Whether a responder answers at all.
    pub(crate) answers: bool,
}

impl Terms {
    /// Returns the capacity that its queue pair has, where it has sent `sent`.
    fn capacity(&self, sent: &ParsedPrivateData) -> Result<Capacity> {
        let offer = sent.offer();
        // Version 2 has larger defaults, for which there must be room when the peer goes over to it
        // (draft-cel-nfsv4-rpcrdma-version-two-01, section 5.2).
        let at_least = match self.versions.contains(2) {
            true => Size::DEFAULT_TWO,
            false => Size::DEFAULT,
        };
        Capacity::new(
            self.credits,
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
    state: State,
    /// When it got into its state.
    since: Instant<Monotonic>,
    /// Raised by each loss of what had been established: what follows is negotiated afresh
    /// (RFC 8797, section 4).
    generation: u32,
    exchange: Exchange,
    traffic: Traffic,
    /// The call that is under way.
    pending: Option<Pending>,
    /// Memory for the next reply.
    reply_room: KVec<u8>,
    /// The peer has not answered a message of version 2 yet: if the connection is lost now, it is
    /// made again, with version 1 (draft-cel-nfsv4-rpcrdma-version-two-01, section 5.2).
    falls_back: bool,
    /// The XIDs and versions of calls that nobody waits for any more, and that have not been
    /// answered. It has room for one with each credit.
    unanswered: KVec<(u32, u32)>,
    /// Whether somebody makes calls: one at a time does.
    calling: bool,
    /// The XID of the latest call.
    xid: u32,
    /// Why the latest attempt came to its end.
    failure: Option<Failure>,
    /// Counts the attempts, to tell the events of an earlier one's id.
    attempt: u32,
    /// The latest attempt's id could not resolve the peer's address, and another has to try.
    unresolved: bool,
    /// Why the latest attempt's queue pair has failed before there was a connection.
    queue_pair_failure: Option<Failure>,
    /// The id of the latest attempt; [`None`] where that is over.
    id: Option<CmId<Attempt>>,
    /// How many ids have not been destroyed yet.
    ids: u32,
    /// Whether the connection has left the registry, which is the last that happens to it.
    gone: bool,
}

impl Inner {
    fn enter(&mut self, state: State) {
        self.state = state;
        self.since = Instant::now();
    }

    /// Whether attempt number `attempt` has led to neither a connection nor its end.
    fn is_attempting(&self, attempt: u32) -> bool {
        self.attempt == attempt && matches!(self.state, State::Resolving | State::Connecting)
    }

    /// Whether attempt number `attempt` is under way or has led to the connection that there is.
    fn is_current(&self, attempt: u32) -> bool {
        self.is_attempting(attempt) || (self.attempt == attempt && self.state == State::Established)
    }

    /// Whether there is nothing left to wait for before the connection goes.
    fn is_over(&self) -> bool {
        self.state == State::Closing && self.ids == 0
    }
}

/// A connection that the module made or accepted.
#[pin_data]
pub(crate) struct Connection {
    pub(crate) number: u64,
    shared: Arc<Connections>,
    terms: Terms,
    side: Side,
    #[pin]
    inner: Mutex<Inner>,
    /// Notified when the state has changed, a reply is there, a call is over, or the connection is
    /// gone.
    #[pin]
    changed: CondVar,
    #[pin]
    reconnect: Work<Self, RECONNECT>,
    #[pin]
    leave: Work<Self, LEAVE>,
    #[pin]
    greet: Work<Self, GREET>,
    #[pin]
    messages: Work<Self, MESSAGES>,
}

/// The number of the work that connects again.
const RECONNECT: u64 = 0;
/// The number of the work that takes the connection out of the registry.
const LEAVE: u64 = 1;
/// The number of the work that makes the first call.
const GREET: u64 = 2;
/// The number of the work that takes the messages that have arrived.
const MESSAGES: u64 = 3;

impl_has_work! {
    impl HasWork<Self, RECONNECT> for Connection { self.reconnect }
    impl HasWork<Self, LEAVE> for Connection { self.leave }
    impl HasWork<Self, GREET> for Connection { self.greet }
    impl HasWork<Self, MESSAGES> for Connection { self.messages }
}

impl WorkItem<LEAVE> for Connection {
    type Pointer = Arc<Self>;

    /// Takes the connection out of the registry. Left to work, as that waits for who reads its
    /// files.
    fn run(this: Arc<Self>) {
        this.shared.remove(this.number);
        this.inner.lock().gone = true;
        this.changed.notify_all();
    }
}

impl WorkItem<MESSAGES> for Connection {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let Some(queue_pair) = this.queue_pair() else {
            return;
        };
        let Some(queue_pair) = queue_pair.access() else {
            return;
        };
        // A peer can send as fast as this runs. Other work has its turn after each round.
        for _ in 0..this.terms.credits {
            let taken = queue_pair.next(|octets, arrival| match this.side {
                Side::Client(_) => {
                    if let Some(answer) = this.take_reply(octets, arrival) {
                        this.send_header(&queue_pair, &answer);
                    }
                }
                Side::Server { .. } if this.terms.answers => this.respond(&queue_pair, octets),
                Side::Server { .. } => {}
            });
            if !taken {
                return;
            }
        }
        this.as_arc_borrow()
            .enqueue::<MESSAGES>(&this.shared.transactions);
    }
}

impl Live for Connection {
    fn snapshot(&self) -> Snapshot {
        let inner = self.inner.lock();
        Snapshot {
            number: self.number,
            origin: Origin::Module,
            role: self.role(),
            state: inner.state,
            age_ms: inner.since.elapsed().as_millis(),
            generation: inner.generation,
            failure: inner.failure.map(|failure| failure.cause),
            exchange: inner.exchange,
            process: None,
            in_use: InUse {
                // Of the peer, if it is the responder.
                remote_invalidation: (inner.traffic.remote_invalidations_received > 0)
                    .then_some(true),
                ..InUse::default()
            },
            traffic: Some(Traffic {
                credits_granted: match self.side {
                    Side::Client(_) => inner.traffic.credits_granted,
                    Side::Server { .. } => Some(self.terms.credits),
                },
                ..inner.traffic
            }),
            note: None,
        }
    }

    fn close_and_wait(self: ArcBorrow<'_, Self>) -> Result<(), Failure> {
        self.close();
        self.wait_gone()
    }
}

impl Connection {
    fn new(shared: Arc<Connections>, terms: Terms, side: Side) -> Result<Arc<Self>> {
        let unanswered = KVec::with_capacity(terms.credits as usize, GFP_KERNEL)?;
        Arc::pin_init(
            pin_init!(Self {
                number: shared.next_number(),
                shared,
                terms,
                side,
                inner <- new_mutex!(
                    Inner {
                        state: State::Resolving,
                        since: Instant::now(),
                        generation: 1,
                        exchange: Exchange::with(None),
                        traffic: Traffic::default(),
                        pending: None,
                        reply_room: KVec::new(),
                        falls_back: false,
                        unanswered,
                        calling: false,
                        xid: 0,
                        failure: None,
                        attempt: 0,
                        unresolved: false,
                        queue_pair_failure: None,
                        id: None,
                        ids: 0,
                        gone: false,
                    },
                    "Connection::inner"
                ),
                changed <- new_condvar!("Connection::changed"),
                reconnect <- new_work!("Connection::reconnect"),
                leave <- new_work!("Connection::leave"),
                greet <- new_work!("Connection::greet"),
                messages <- new_work!("Connection::messages"),
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

    /// Returns the queue pair of the latest attempt.
    fn queue_pair(&self) -> Option<Handle<QueuePair<Completions>>> {
        self.inner.lock().id.as_ref().map(CmId::queue_pair)
    }

    /// Ends the connection. It is gone when its ids have been destroyed, which this does not wait
    /// for.
    pub(crate) fn close(self: ArcBorrow<'_, Self>) {
        self.end(None, None);
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

    /// Begins another attempt, and returns its number.
    ///
    /// Fails with `ESHUTDOWN` where the connection has been closed.
    fn begin_attempt(&self, state: State, exchange: Exchange) -> Result<u32> {
        let mut inner = self.inner.lock();
        if inner.state == State::Closing {
            return Err(errno(kernel::bindings::ESHUTDOWN));
        }
        inner.enter(state);
        inner.exchange = exchange;
        inner.traffic = Traffic::default();
        inner.falls_back = false;
        inner.unanswered.clear();
        inner.unresolved = false;
        inner.queue_pair_failure = None;
        inner.attempt = inner.attempt.wrapping_add(1);
        Ok(inner.attempt)
    }

    /// Returns the handler for an id that is to serve attempt number `attempt`.
    ///
    /// Fails with `ESHUTDOWN` where that has come to its end.
    fn handler(self: ArcBorrow<'_, Self>, attempt: u32) -> Result<Attempt> {
        let mut inner = self.inner.lock();
        if !inner.is_attempting(attempt) {
            return Err(errno(kernel::bindings::ESHUTDOWN));
        }
        inner.ids += 1;
        Ok(Attempt {
            connection: self.into(),
            number: attempt,
        })
    }

    /// Returns the handler for the completions of attempt number `attempt`.
    fn completions(self: ArcBorrow<'_, Self>, attempt: u32) -> Result<Arc<Completions>> {
        let completions = Completions {
            connection: self.into(),
            number: attempt,
        };
        Ok(Arc::new(completions, GFP_KERNEL)?)
    }

    /// Takes the id of attempt number `attempt`, unless that has come to its end already.
    fn keep(self: ArcBorrow<'_, Self>, attempt: u32, id: CmId<Attempt>) {
        let mut inner = self.inner.lock();
        if inner.is_current(attempt) {
            inner.id = Some(id);
            // What needs the id may have been there before.
            self.enqueue::<MESSAGES>(&self.shared.transactions);
            self.enqueue::<GREET>(&self.shared.transactions);
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

    /// The connection is there.
    fn establish(self: ArcBorrow<'_, Self>, inner: &mut Inner) {
        inner.enter(State::Established);
        self.shared.stats.established.increment();
        self.changed.notify_all();
        if matches!(&self.side, Side::Client(target) if target.null.is_some()) {
            inner.traffic.null = Null::Pending;
            self.enqueue::<GREET>(&self.shared.transactions);
        }
    }

    /// Ends attempt number `attempt` and what came of it; where that is [`None`], the connection
    /// for good. `failure` says why, unless somebody asked for it.
    ///
    /// Ending what is not the current attempt has no effect, so that whoever notices first wins.
    fn end(self: ArcBorrow<'_, Self>, attempt: Option<u32>, failure: Option<Failure>) {
        self.end_locked(&mut self.inner.lock(), attempt, failure);
    }

    fn end_locked(
        self: ArcBorrow<'_, Self>,
        inner: &mut Inner,
        attempt: Option<u32>,
        failure: Option<Failure>,
    ) {
        if inner.state == State::Closing
            || attempt.is_some_and(|attempt| !inner.is_current(attempt))
        {
            return;
        }

        let established = inner.state == State::Established;
        let is_gone = |failure: Failure| {
            failure.error == ENODEV || failure.error == errno(kernel::bindings::ENETDOWN)
        };
        // Not where it is this side that has lost its device.
        let falls_back = attempt.is_some() && inner.falls_back && !failure.is_some_and(is_gone);
        let reconnects = matches!(&self.side, Side::Client(target) if target.reconnect);
        let again = attempt.is_some()
            && (falls_back || (reconnects && (established || inner.generation > 1)));
        if let (true, Some(remote)) = (falls_back, inner.exchange.remote) {
            self.shared.only_version_one.add(remote);
        }
        if established {
            let error = failure.map(|failure| failure.error);
            trace::connection_closed(self.number, self.role(), inner.generation, error);
            let stats = &self.shared.stats;
            match error {
                Some(_) => stats.lost.increment(),
                None => stats.closed.increment(),
            }
        }
        // What could not be accepted is counted by who could not.
        if matches!(self.side, Side::Server { .. }) && !established && attempt.is_some() {
            self.shared.stats.requests_unconfirmed.increment();
        }
        if again && established {
            inner.generation = inner.generation.wrapping_add(1);
        }
        if again {
            inner.enter(State::Reconnecting);
            inner.exchange = Exchange::with(inner.exchange.remote);
        } else {
            inner.enter(State::Closing);
        }
        inner.failure = failure;
        inner.id = None;
        self.changed.notify_all();
        if again && established {
            // An attempt that fails is repeated by the work that makes it.
            self.enqueue::<RECONNECT>(&self.shared.reconnects);
        }
        if inner.is_over() {
            self.enqueue::<LEAVE>(&self.shared.teardown);
        }
    }

    fn enqueue<const WORK: u64>(self: ArcBorrow<'_, Self>, queue: &Queue)
    where
        Self: HasWork<Self, WORK> + WorkItem<WORK, Pointer = Arc<Self>>,
    {
        // What is queued already is going to run, which is all that is wanted.
        let _ = queue.enqueue::<_, WORK>(Arc::from(self));
    }
}

/// What happens to one id of a connection. It is dropped when that id has been destroyed.
struct Attempt {
    connection: Arc<Connection>,
    number: u32,
}

impl Attempt {
    fn end(&self, failure: Failure) {
        self.connection
            .as_arc_borrow()
            .end(Some(self.number), Some(failure));
    }
}

impl ConnectionHandler for Attempt {
    type Completions = Completions;

    fn event(&self, id: &mut HandlerId<'_, Completions>, event: Event<'_>) {
        let connection = self.connection.as_arc_borrow();
        let done = match event {
            Event::AddressUnresolved(error) => connection.address_unresolved(self.number, error),
            Event::AddressResolved => connection.address_resolved(self.number, id),
            Event::RouteResolved => connection.route_resolved(self.number, id),
            Event::Established { private_data } => {
                let mut inner = connection.inner.lock();
                if inner.is_attempting(self.number) {
                    // A server has the client's message from the request: its own event has none.
                    if connection.role() == Role::Client {
                        inner.exchange.local = id.local();
                        connection.receive(&mut inner, private_data);
                    }
                    connection.establish(&mut inner);
                }
                inner.queue_pair_failure.map_or(Ok(()), Err)
            }
            Event::Failed(error) => {
                let state = connection.inner.lock().state;
                Err(connect_failure(state, error))
            }
            Event::Rejected { reason } => Err(Failure::with_detail(
                errno(kernel::bindings::ECONNREFUSED),
                "the peer rejected the connection",
                reason,
            )),
            Event::Disconnected => Err(Failure::new(
                errno(kernel::bindings::ECONNRESET),
                "disconnected by the peer",
            )),
            Event::AddressChanged => Err(Failure::new(
                errno(kernel::bindings::ENETDOWN),
                "the network interface has changed",
            )),
            Event::DeviceRemoved => Err(Failure::new(ENODEV, "the device was removed")),
        };
        if let Err(failure) = done {
            self.end(failure);
        }
    }
}

/// What happens to the queue pair of one id of a connection.
struct Completions {
    connection: Arc<Connection>,
    number: u32,
}

impl CompletionHandler for Completions {
    fn arrived(this: ArcBorrow<'_, Self>) {
        let connection = this.connection.as_arc_borrow();
        connection.shared.stats.messages_received.increment();
        connection.enqueue::<MESSAGES>(&connection.shared.transactions);
    }

    fn queue_pair_failed(this: ArcBorrow<'_, Self>, reason: &'static CStr) {
        let failure = Failure::with_detail(
            errno(kernel::bindings::ECONNRESET),
            "the queue pair failed",
            reason,
        );
        let mut inner = this.connection.inner.lock();
        if inner.is_attempting(this.number) {
            // rdma_cm lets it fail where the peer refuses, and is about to say why.
            inner.queue_pair_failure.get_or_insert(failure);
        } else {
            this.connection.as_arc_borrow().end_locked(
                &mut inner,
                Some(this.number),
                Some(failure),
            );
        }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let connection = self.connection.as_arc_borrow();
        let mut inner = connection.inner.lock();
        inner.ids -= 1;
        if inner.is_over() {
            connection.enqueue::<LEAVE>(&connection.shared.teardown);
        }
    }
}
