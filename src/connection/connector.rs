// SPDX-License-Identifier: GPL-2.0

//! The client's side: connecting, and connecting again after a loss.

use core::net::SocketAddr;

use kernel::{
    bindings,
    prelude::*,
    sync::{
        aref::ARef,
        Arc,
        ArcBorrow,
        CondVarTimeoutResult, //
    },
    time::{
        msecs_to_jiffies,
        Instant, //
    }, //
};

use super::{
    attempt::{
        address_failure,
        connect_failure,
        watch,
        Attempt, //
    },
    begin_exchange,
    connections::Connections,
    state::ConnectionState,
    Configuration,
    Connection,
    ConnectionInner,
    Side,
    PARAMETERS,
    TIMER, //
};
use crate::{
    base::{
        errno::errno,
        net::Net,
        work_queue::run_after, //
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
            parameters::ClientParameters,
            resolved_id::ResolvedId,
            unresolved_id::UnresolvedId, //
        },
        messages::message_queue_pair::MessageQueuePair, //
    },
    registry::Live,
    rpc::endpoint::Endpoint,
    trace, //
};

/// The pause before the first attempt to reconnect, in milliseconds; it doubles up to the longest.
pub(super) const FIRST_PAUSE_MS: u32 = 100;
pub(super) const LONGEST_PAUSE_MS: u32 = 30_000;

/// How long one id may take to resolve the peer's address, in milliseconds. If the neighbour
/// answers before the kernel's resolver begins to wait, the resolver notices the answer only after
/// this time. So the time is short, and another id tries again.
const RESOLVE_MS: u32 = 250;

/// The server to connect to, and how.
pub(crate) struct Target {
    pub(crate) net: ARef<Net>,
    pub(crate) to: SocketAddr,
    pub(crate) from: Option<SocketAddr>,
    /// Whether to connect again after a loss.
    pub(crate) reconnect: bool,
}

/// Connects, and returns when the connection is established; process context.
///
/// Fails with the error of the attempt: `ECONNREFUSED`, `EHOSTUNREACH`, `ETIMEDOUT`,
/// `EADDRNOTAVAIL`, `EMSGSIZE`, `EINTR` on a signal, `ENODEV`, `ENETDOWN` or `ECONNRESET` if the
/// device, the address or the queue pair is lost meanwhile, `ESHUTDOWN` if the connection is closed
/// meanwhile, `EIO` for an `EINVAL` that is not about the command, `ENOMEM`, or another error from
/// rdma_cm.
pub(crate) fn connect(
    connections: &Arc<Connections>,
    target: Target,
    configuration: Configuration,
) -> Result<Arc<Connection>, Failure> {
    let no_memory = |error| Failure::new(error, "no memory for a connection");

    let configuration =
        Arc::new(configuration, GFP_KERNEL).map_err(|error| no_memory(error.into()))?;
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
    /// Returns how long one attempt of a client may take, in milliseconds.
    fn timeout_ms(&self) -> u32 {
        self.configuration.endpoint.timeout_ms
    }

    /// Begins an attempt. Its first id is yet to be made.
    fn begin(inner: &mut ConnectionInner, target: &Target) {
        inner.enter(ConnectionState::Resolving(None));
        inner.exchange = Exchange::with(Some(target.to));
        inner.attempted = Instant::now();
    }

    /// Creates the first attempt; process context, without locks. Returns when it has led to an
    /// established connection, or has failed.
    fn attempt(self: ArcBorrow<'_, Self>, target: &Target) -> Result<(), Failure> {
        self.shared.stats.connects.increment();
        {
            let mut inner = self.inner.lock();
            if matches!(inner.state, ConnectionState::Closing(_)) {
                return Err(closed());
            }
            Self::begin(&mut inner, target);
        }
        self.wait(target).map_err(|failure| {
            let mut inner = self.inner.lock();
            if inner.state.is_attempting() {
                self.end(&mut inner, Some(failure));
                return failure;
            }
            // Report the root cause, not the error that followed from it.
            inner.failure.unwrap_or(failure)
        })
    }

    /// Does what is due after a loss: begins the next attempt, makes another id for it, or gives it
    /// up. Called by the timer's work alone.
    pub(super) fn reconnect(self: ArcBorrow<'_, Self>, target: &Target) {
        let mut inner = self.inner.lock();
        if matches!(inner.state, ConnectionState::Reconnecting(_)) {
            Self::begin(&mut inner, target);
            self.shared.stats.connects.increment();
            self.shared.stats.reconnects.increment();
        }
        if !inner.state.is_attempting() {
            return;
        }
        let spent = inner.attempted.elapsed().as_millis();
        let left = i64::from(self.timeout_ms()) - spent;
        if left <= 0 {
            let failure = connect_failure(inner.state.name(), ETIMEDOUT);
            return self.end(&mut inner, Some(failure));
        }
        // Cannot fail: it is positive, and at most `timeout_ms`.
        run_after::<_, TIMER>(self.into(), left.try_into().unwrap_or(self.timeout_ms()));
        if !matches!(inner.state, ConnectionState::Resolving(None)) {
            return;
        }
        drop(inner);
        if let Err(failure) = self.start(target) {
            let mut inner = self.inner.lock();
            if inner.state.is_attempting() {
                self.end(&mut inner, Some(failure));
            }
        }
    }

    /// Starts an attempt with a new id. The handler of the id does the rest.
    fn start(self: ArcBorrow<'_, Self>, target: &Target) -> Result<(), Failure> {
        let no_id = |error| Failure::new(error, "no id for a connection");

        let endpoint = self.new_endpoint().map_err(no_id)?;
        let attempt = Attempt::new(endpoint.clone(), None);
        match &mut self.inner.lock().state {
            ConnectionState::Resolving(none) => *none = Some(attempt),
            _ => return Err(closed()),
        }
        let parameters = ClientParameters {
            common: PARAMETERS,
            // The same as in xprtrdma.
            retry_count: 6,
            // As the responder of the reverse direction.
            reads: self.configuration.endpoint.rpc.reverse > 0,
        };
        let id = self
            .handler(&endpoint)
            .and_then(|handler| UnresolvedId::new(&target.net, parameters, handler))
            .map_err(no_id)?;
        let id = id
            .resolve_address(target.from, target.to, self.timeout_ms().min(RESOLVE_MS))
            .map_err(address_failure)?;
        self.keep(&endpoint, id);
        Ok(())
    }

    /// Creates ids for the first attempt, and waits until the connection has been established. No
    /// other task makes ids meanwhile.
    fn wait(self: ArcBorrow<'_, Self>, target: &Target) -> Result<(), Failure> {
        let mut jiffies = msecs_to_jiffies(self.timeout_ms());
        let mut given_up = None;
        let mut inner = self.inner.lock();

        // The state does not decide: the connection may have been established and lost again
        // before this task runs.
        while !inner.established {
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

    /// Handles ADDR_ERROR. After a timeout, another id tries, as long as `timeout_ms` allows.
    pub(super) fn address_unresolved(
        self: ArcBorrow<'_, Self>,
        endpoint: &Endpoint,
        error: Error,
    ) -> Result<(), Failure> {
        if error != ETIMEDOUT {
            return Err(address_failure(error));
        }
        if let Some(mut inner) = self.lock_current(endpoint) {
            inner.state = ConnectionState::Resolving(None);
            // The task that has written `connect` makes the ids of the first attempt.
            match inner.generation {
                1 => self.changed.notify_all(),
                _ => run_after::<_, TIMER>(self.into(), 0),
            }
        }
        Ok(())
    }

    /// Handles ADDR_RESOLVED: resolves the route.
    pub(super) fn address_resolved(
        &self,
        endpoint: &Arc<Endpoint>,
        id: &mut HandlerId<'_, MessageQueuePair<Endpoint>>,
    ) -> Result<(), Failure> {
        let failed = |error| connect_failure(State::Resolving, error);

        let (exchange, _) = begin_exchange(id, &self.configuration.offer).map_err(failed)?;
        let watched = watch(id, &exchange);
        let Some(mut inner) = self.lock_current(endpoint) else {
            return Ok(());
        };
        inner.exchange = exchange;
        if let Some(attempt) = inner.state.attempt_mut() {
            attempt.watched = watched;
        }
        drop(inner);
        id.resolve_route(self.timeout_ms()).map_err(failed)
    }

    /// Connects, after the route was resolved: makes the queue pair, posts its Receives, and sends
    /// the REQ.
    pub(super) fn route_resolved(
        &self,
        endpoint: &Arc<Endpoint>,
        id: ResolvedId<'_, MessageQueuePair<Endpoint>>,
    ) -> Result<(), Failure> {
        let (Some(sent), Some(_)) = (self.sent(), self.lock_current(endpoint)) else {
            return Ok(());
        };
        let id = self
            .configuration
            .setup(&sent, endpoint.clone())
            .and_then(|setup| id.create_queue_pair(setup))
            .map_err(|error| {
                // EINVAL of a device would say that the line has an error.
                let error = if error == EINVAL { EIO } else { error };
                Failure::new(error, "no resources for a queue pair")
            })?;
        match self.lock_current(endpoint) {
            Some(mut inner) => inner.advance(ConnectionState::Connecting),
            None => return Ok(()),
        }
        id.connect(sent.octets())
            .map_err(|error| connect_failure(State::Connecting, error))?;
        trace::message_sent(self.number, Role::Client, &sent);
        Ok(())
    }
}

fn closed() -> Failure {
    Failure::new(errno(bindings::ESHUTDOWN), "closed")
}
