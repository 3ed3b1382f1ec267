// SPDX-License-Identifier: GPL-2.0

//! The client's side: connecting, and connecting again after a loss.

use core::net::SocketAddr;

use kernel::{
    bindings,
    prelude::*,
    sync::{
        Arc,
        ArcBorrow,
        CondVarTimeoutResult, //
    },
    time::msecs_to_jiffies,
    workqueue::WorkItem, //
};

use super::{
    attempt::{
        address_failure,
        connect_failure,
        Attempt, //
    },
    begin_exchange,
    connections::Connections,
    state::ConnectionState,
    Configuration,
    Connection,
    Side,
    PARAMETERS,
    RECONNECT, //
};
use crate::{
    base::{
        errno::errno,
        net::Net,
        wait::wait_while, //
    },
    failure::Failure,
    pure::{
        text::{
            exchange::Exchange,
            snapshot::State, //
        },
        wire::negotiation::Role, //
    },
    rdma::{
        cm::{
            handler_id::HandlerId,
            unresolved_id::UnresolvedId, //
        },
        verbs::parameters::Parameters, //
    },
    rpc::endpoint::Endpoint,
    trace, //
};

/// The pause before the first attempt to reconnect, in milliseconds; it doubles up to the longest.
const FIRST_PAUSE_MS: u32 = 100;
const LONGEST_PAUSE_MS: u32 = 30_000;

/// How long one id may take to resolve the peer's address, in milliseconds. If the neighbour
/// answers before the kernel's resolver begins to wait, the resolver notices the answer only after
/// this time. So the time is short, and another id tries again.
const RESOLVE_MS: u32 = 250;

/// The server to connect to, and how.
pub(crate) struct Target {
    pub(crate) net: Net,
    pub(crate) to: SocketAddr,
    pub(crate) from: Option<SocketAddr>,
    /// Whether to connect again after a loss.
    pub(crate) reconnect: bool,
    /// How long one attempt may take, in milliseconds.
    pub(crate) timeout_ms: u32,
}

/// Connects, and returns when the connection is established; process context.
///
/// Fails with the error of the attempt: `ECONNREFUSED`, `EHOSTUNREACH`, `ETIMEDOUT`,
/// `EADDRNOTAVAIL`, `EMSGSIZE`, `EINTR` on a signal, or another error from rdma_cm.
pub(crate) fn connect(
    connections: &Arc<Connections>,
    target: Target,
    configuration: Configuration,
) -> Result<Arc<Connection>, Failure> {
    let no_memory = |error| Failure::new(error, "no memory for a connection");

    let side = Side::Client(target);
    let connection =
        Connection::new(connections.clone(), configuration, side).map_err(no_memory)?;
    connections.add(&connection).map_err(no_memory)?;

    if let Side::Client(target) = &connection.side {
        let connection = connection.as_arc_borrow();
        connection
            .attempt(target)
            .inspect_err(|_| connection.close())?;
    }
    Ok(connection)
}

impl Connection {
    /// Makes one attempt to connect; process context, without locks.
    fn attempt(self: ArcBorrow<'_, Self>, target: &Target) -> Result<(), Failure> {
        let (established, generation) = {
            let mut inner = self.inner.lock();
            if matches!(inner.state, ConnectionState::Closing(_)) {
                return Err(closed());
            }
            inner.enter(ConnectionState::Resolving(None));
            inner.exchange = Exchange::with(Some(target.to));
            (inner.established, inner.generation)
        };
        self.shared.stats.connects.increment();
        if generation != 1 {
            self.shared.stats.reconnects.increment();
        }
        self.wait(target, established).map_err(|failure| {
            self.shared.stats.connects_failed.increment();
            let mut inner = self.inner.lock();
            if inner.state.is_attempting() {
                self.end(&mut inner, Some(failure));
                return failure;
            }
            // Report the root cause, not the error that followed from it.
            inner.failure.unwrap_or(failure)
        })
    }

    /// Starts an attempt with a new id. The handler of the id does the rest.
    fn start(self: ArcBorrow<'_, Self>, target: &Target) -> Result<(), Failure> {
        let no_id = |error| Failure::new(error, "no id for a connection");

        let endpoint = self.new_endpoint().map_err(no_id)?;
        let attempt = Attempt::new(endpoint.clone());
        match &mut self.inner.lock().state {
            ConnectionState::Resolving(none) => *none = Some(attempt),
            _ => return Err(closed()),
        }
        let parameters = Parameters {
            // As the responder of the reverse direction.
            reads: self.configuration.endpoint.rpc.reverse > 0,
            ..PARAMETERS
        };
        let id = self
            .handler(&endpoint)
            .and_then(|handler| UnresolvedId::new(&target.net, parameters, handler))
            .map_err(no_id)?;
        let id = id
            .resolve_address(target.from, target.to, target.timeout_ms.min(RESOLVE_MS))
            .map_err(address_failure)?;
        self.keep(&endpoint, id);
        Ok(())
    }

    /// Makes attempts, and waits until the connection has been established more than `established`
    /// times. No other task makes attempts meanwhile.
    fn wait(self: ArcBorrow<'_, Self>, target: &Target, established: u32) -> Result<(), Failure> {
        let mut jiffies = msecs_to_jiffies(target.timeout_ms);
        let mut given_up = None;
        let mut inner = self.inner.lock();

        // The count decides, not the state: the connection may have been established and lost again
        // before this task runs.
        while inner.established == established {
            if !inner.state.is_attempting() {
                return Err(inner.failure.unwrap_or(closed()));
            }
            if given_up.is_some() {
                // The lock is held, so the connection cannot be established before it ends.
                self.end(&mut inner, given_up);
                continue;
            }
            if matches!(inner.state, ConnectionState::Resolving(None)) {
                drop(inner);
                self.start(target)?;
                inner = self.inner.lock();
                continue;
            }
            match self.changed.wait_interruptible_timeout(&mut inner, jiffies) {
                CondVarTimeoutResult::Woken { jiffies: rest } => jiffies = rest,
                CondVarTimeoutResult::Timeout => {
                    given_up = Some(connect_failure(inner.state.name(), ETIMEDOUT));
                }
                CondVarTimeoutResult::Signal { .. } => {
                    given_up = Some(Failure::new(EINTR, "interrupted"));
                }
            }
        }
        Ok(())
    }

    /// Waits for `pause_ms` milliseconds, or until the state changes. Returns whether the
    /// connection is still `Reconnecting`.
    fn pause(&self, pause_ms: u32) -> bool {
        wait_while(&self.changed, &self.inner, pause_ms, |inner| {
            matches!(inner.state, ConnectionState::Reconnecting(_))
        })
    }

    /// Handles ADDR_ERROR. After a timeout, another id tries, as long as `timeout_ms` allows.
    pub(super) fn address_unresolved(
        &self,
        endpoint: &Endpoint,
        error: Error,
    ) -> Result<(), Failure> {
        if error != ETIMEDOUT {
            return Err(address_failure(error));
        }
        if let Some(mut inner) = self.lock_current(endpoint) {
            inner.state = ConnectionState::Resolving(None);
            self.changed.notify_all();
        }
        Ok(())
    }

    /// Handles ADDR_RESOLVED: makes the queue pair, posts its Receives, and resolves the route.
    pub(super) fn address_resolved(
        &self,
        endpoint: &Arc<Endpoint>,
        id: &mut HandlerId<'_, Endpoint>,
    ) -> Result<(), Failure> {
        let Side::Client(target) = &self.side else {
            return Ok(());
        };
        let failed = |error| connect_failure(State::Resolving, error);

        let configuration = &self.configuration;
        let (exchange, sent) = begin_exchange(id, &configuration.offered).map_err(failed)?;
        match self.lock_current(endpoint) {
            Some(mut inner) => inner.exchange = exchange,
            None => return Ok(()),
        }
        configuration
            .capacity(&sent)
            .and_then(|capacity| id.create_queue_pair(capacity, endpoint.clone()))
            .map_err(|error| Failure::new(error, "no resources for a queue pair"))?;
        id.resolve_route(target.timeout_ms).map_err(failed)
    }

    /// Handles ROUTE_RESOLVED: sends the REQ.
    pub(super) fn route_resolved(
        &self,
        endpoint: &Endpoint,
        id: &mut HandlerId<'_, Endpoint>,
    ) -> Result<(), Failure> {
        let sent = {
            let Some(mut inner) = self.lock_current(endpoint) else {
                return Ok(());
            };
            let Some(sent) = inner.exchange.sent else {
                return Ok(());
            };
            inner.advance(ConnectionState::Connecting);
            sent.octets
        };
        id.connect(sent.octets())
            .map_err(|error| connect_failure(State::Connecting, error))?;
        trace::message_sent(self.number, Role::Client, &sent);
        Ok(())
    }
}

fn closed() -> Failure {
    Failure::new(errno(bindings::ESHUTDOWN), "closed")
}

impl WorkItem<RECONNECT> for Connection {
    type Pointer = Arc<Self>;

    /// Connects again after a loss, until it succeeds or the connection is closed.
    fn run(this: Arc<Self>) {
        let Side::Client(target) = &this.side else {
            return;
        };
        let mut pause_ms = FIRST_PAUSE_MS;

        while this.pause(pause_ms) {
            if this.as_arc_borrow().attempt(target).is_ok() {
                return;
            }
            pause_ms = pause_ms.saturating_mul(2).min(LONGEST_PAUSE_MS);
        }
    }
}
