// SPDX-License-Identifier: GPL-2.0

//! The server's side: listening, and accepting requests.

pub(crate) mod listeners;

use core::net::SocketAddr;

use kernel::{
    bindings,
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
    workqueue::{
        Work, //
    }, //
};

use self::listeners::Listeners;
use super::{
    attempt::{
        watch,
        Attempt,
        TOO_MANY_OCTETS, //
    },
    begin_exchange,
    connections::WARN_MS,
    state::ConnectionState,
    Configuration,
    Connection,
    Side,
    OWNER,
    PARAMETERS,
    TIMER, //
};
use crate::{
    base::{
        errno::errno,
        net::Net,
        wait::{
            wait_while,
            MayWait, //
        },
        work_queue::{
            impl_waiting_work,
            run_after, //
        }, //
    },
    failure::Failure,
    permits::{
        Permit,
        Permits, //
    },
    pure::{
        text::{
            history::{
                HistoryEvent,
                NegotiatedColumns, //
            },
            snapshot::{
                ListenerSnapshot,
                Origin, //
            }, //
        },
        wire::negotiation::Role, //
    },
    rdma::cm::{
        cm_listener::{
            CmListener,
            ListenHandler, //
        },
        pending_request::PendingRequest,
        request::Request, //
    },
    shown_device::is_iwarp,
    trace, //
};

/// How many requests may wait for their REP on iWARP. Other transports ignore it.
const BACKLOG: u16 = 128;

/// How long a peer may take to send RTU, in milliseconds. Linux retransmits a REP after some four
/// seconds, so this allows for seven REPs. The CM's own limit comes from the peer's REQ, and may be
/// hours.
const CONFIRMATION_MS: u32 = 30_000;

/// Accepts connections at one address.
#[pin_data]
pub(crate) struct Listener {
    pub(crate) number: u64,
    address: SocketAddr,
    configuration: Arc<Configuration>,
    /// One permit for each connection that the listener may have at a time.
    permits: Arc<Permits>,
    listeners: Arc<Listeners>,
    #[pin]
    id: Mutex<Option<CmListener<RequestHandler>>>,
    /// The number of its [`UnderWay`].
    #[pin]
    under_way: Mutex<usize>,
    /// Notified when there is none.
    #[pin]
    idle: CondVar,
    #[pin]
    stop: Work<Self>,
}

impl_has_work! {
    impl HasWork<Self> for Listener { self.stop }
}

/// Listens at `address` of `net`; process context.
///
/// Fails with `EADDRINUSE`, `EADDRNOTAVAIL`, or another error from rdma_cm.
pub(crate) fn listen(
    listeners: &Arc<Listeners>,
    net: &Net,
    address: SocketAddr,
    configuration: Configuration,
    max: u32,
    may_wait: &MayWait,
) -> Result<(), Failure> {
    let no_memory = |error| Failure::new(error, "no memory for a listener");

    let configuration =
        Arc::new(configuration, GFP_KERNEL).map_err(|error| no_memory(error.into()))?;
    let permits = Permits::new(max).map_err(no_memory)?;
    let listener = Arc::pin_init(
        pin_init!(Listener {
            number: listeners.next_number(),
            address,
            configuration,
            permits,
            listeners: listeners.clone(),
            id <- new_mutex!(None, "Listener::id"),
            under_way <- new_mutex!(0, "Listener::under_way"),
            idle <- new_condvar!("Listener::idle"),
            stop <- new_work!("Listener::stop"),
        }),
        GFP_KERNEL,
    )
    .map_err(no_memory)?;

    {
        // The lock is held: if the device is removed now, `stop` waits until the id is stored.
        let mut id = listener.id.lock();
        let handler = RequestHandler(UnderWay::new(&listener));
        let hold = listeners.connections.accepts.hold();
        let new = CmListener::new(hold, net, OWNER, handler, address, BACKLOG);
        *id = Some(new.map_err(listen_failure)?);
    }
    listeners
        .add(listener.clone())
        .map_err(no_memory)
        .inspect_err(|_| listener.stop(may_wait))?;

    // If the device was removed before the listener was in the table, `stop` has taken the id.
    if listener.id.lock().is_none() {
        listeners.remove(listener.number, may_wait);
        return Err(listen_failure(ENODEV));
    }
    Ok(())
}

fn listen_failure(error: Error) -> Failure {
    if error == errno(bindings::EADDRINUSE) {
        return Failure::new(error, "the port is taken");
    }
    // rdma_cm returns ENODEV if no device has the address.
    if error == ENODEV || error == errno(bindings::EADDRNOTAVAIL) {
        return Failure::new(
            errno(bindings::EADDRNOTAVAIL),
            "no RDMA device has that address",
        );
    }
    if error == EINVAL {
        return Failure::REFUSED_ADDRESS;
    }
    Failure::new(error, "rdma_cm cannot listen at that address")
}

impl Listener {
    /// Returns the listener as it is at this moment; any context.
    pub(crate) fn snapshot(&self) -> ListenerSnapshot {
        ListenerSnapshot {
            number: self.number,
            address: self.address,
            offer: self.configuration.offer.offer(),
            connections: self.permits.taken(),
            max: self.permits.max(),
        }
    }

    /// Stops listening, and waits until all requests have been handled; process context.
    pub(crate) fn stop(&self, may_wait: &MayWait) {
        let id = self.id.lock().take();
        drop(id);
        while wait_while(&self.idle, &self.under_way, WARN_MS, |count| *count > 0) {
            let number = self.number;
            pr_warn!("closing listener {number} waits for the requests that it accepts\n");
        }
        // The works hold references to the listener until they return.
        self.listeners.connections.accepts.flush(may_wait);
    }

    /// Adds to the history that the request of `remote` was refused or failed.
    fn record(&self, local: Option<SocketAddr>, remote: Option<SocketAddr>, failure: Failure) {
        self.listeners.connections.history.record(HistoryEvent {
            transition: failure.transition(false),
            number: None,
            origin: Origin::Module,
            of_root: false,
            role: Role::Server,
            local,
            remote,
            generation: None,
            lasted_ms: None,
            outcome: NegotiatedColumns::default(),
            reason: Some(failure.cause),
        });
    }

    /// Counts and records that a request of `remote` failed.
    fn failed(&self, local: Option<SocketAddr>, remote: Option<SocketAddr>, error: Error) {
        self.listeners.connections.stats.requests_failed.increment();
        let text = match error {
            ENOMEM => "no memory for a connection",
            _ if error == errno(bindings::EMSGSIZE) => TOO_MANY_OCTETS,
            _ => "the request was not accepted",
        };
        self.record(local, remote, Failure::new(error, text));
    }

    /// Sets the connection of a request up, and accepts it; process context. May wait for memory.
    fn accept(&self, permit: Permit, request: PendingRequest<'_>) -> Result {
        let (exchange, sent) = begin_exchange(&request, &self.configuration.offer)?;

        let connections = &self.listeners.connections;
        let side = Side::Server { _permit: permit };
        let connection = Connection::new(connections.clone(), self.configuration.clone(), side)?;
        let endpoint = connection.as_arc_borrow().new_endpoint()?;
        let setup = self.configuration.setup(&sent, endpoint.clone())?;
        let attempt = Attempt::new(endpoint.clone(), watch(&request, &exchange));
        {
            let mut inner = connection.inner.lock();
            inner.exchange = exchange;
            inner.enter(ConnectionState::Connecting(attempt));
            connection.receive(&mut inner, request.private_data());
        }
        let accepted = connections
            .add(&connection)
            .and_then(|()| connection.as_arc_borrow().handler(&endpoint))
            .and_then(|handler| request.accept(PARAMETERS, handler, setup, sent.octets()));
        match accepted {
            Ok(id) => {
                trace::message_sent(connection.number, Role::Server, &sent);
                // Started now: both offers are known, and the first call can arrive before RTU.
                endpoint
                    .as_arc_borrow()
                    .start(id.queue_pair(), &connection.inner.lock().exchange);
                connection.keep(&endpoint, id);
                let inner = connection.inner.lock();
                let connecting = matches!(inner.state, ConnectionState::Connecting(_));
                // Not on iWARP: a fault of the kernel does not permit it (SECURITY.md).
                if connecting && !is_iwarp(&inner.exchange) {
                    run_after::<_, TIMER>(connection.clone(), CONFIRMATION_MS);
                }
                Ok(())
            }
            Err(error) => {
                connection.as_arc_borrow().close();
                Err(error)
            }
        }
    }
}

impl Connection {
    /// Ends the connection if its RTU has not arrived. Called by the timer's work, when the time
    /// for RTU is over.
    pub(super) fn expire(self: ArcBorrow<'_, Self>) {
        let mut inner = self.inner.lock();
        if matches!(inner.state, ConnectionState::Connecting(_)) {
            let failure = Failure::new(ETIMEDOUT, "the peer did not confirm the connection");
            self.end(&mut inner, Some(failure));
        }
    }
}

/// The id of a listener, or a request that is accepted: closing the listener waits for them.
struct UnderWay(Arc<Listener>);

impl UnderWay {
    fn new(listener: &Arc<Listener>) -> Self {
        *listener.under_way.lock() += 1;
        Self(listener.clone())
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut count = self.0.under_way.lock();
        *count -= 1;
        if *count == 0 {
            self.0.idle.notify_all();
        }
    }
}

/// Handles the requests of a listener. It is dropped when the listening id has been destroyed.
struct RequestHandler(UnderWay);

impl ListenHandler for RequestHandler {
    fn connect_request(&self, request: Request<'_>) {
        let Self(UnderWay(listener)) = self;
        let stats = &listener.listeners.connections.stats;
        stats.requests.increment();
        let (local, remote) = (request.local(), request.remote());

        let Some(permit) = listener.permits.take() else {
            stats.requests_refused.increment();
            let error = errno(bindings::ECONNREFUSED);
            let failure = Failure::new(error, "the listener has its maximum of connections");
            listener.record(local, remote, failure);
            return request.reject();
        };
        let accepting = UnderWay::new(listener);
        let queue = &listener.listeners.connections.accepts;
        let deferred = request.defer(queue, move |request| {
            let UnderWay(listener) = &accepting;
            let (local, remote) = (request.local(), request.remote());
            match listener.accept(permit, request) {
                Ok(()) => listener
                    .listeners
                    .connections
                    .stats
                    .requests_accepted
                    .increment(),
                Err(error) => listener.failed(local, remote, error),
            }
        });
        if let Err(error) = deferred {
            listener.failed(local, remote, error);
        }
    }

    fn device_removed(&self) {
        let Self(UnderWay(listener)) = self;
        // Queueing fails only if the work is pending. Then it runs after this, which is enough.
        let _ = listener
            .listeners
            .connections
            .leave
            .enqueue(listener.clone());
    }
}

impl Listener {
    /// Ends a listener whose device is removed.
    fn leave(this: Arc<Self>, may_wait: &MayWait) {
        // Stopped before it is removed: if `listen` has yet to add the listener to the table,
        // `listen` finds afterwards that there is no id, and removes the listener.
        this.stop(may_wait);
        this.listeners.remove(this.number, may_wait);
    }
}

impl_waiting_work! {
    impl WorkItem<0> for Listener { Self::leave }
}
