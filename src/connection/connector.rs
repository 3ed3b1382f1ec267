// SPDX-License-Identifier: GPL-2.0

//! The client's side: connecting, and connecting again after a loss.

use core::{
    mem,
    net::SocketAddr, //
};

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
    connections::Connections,
    Completions,
    Connection,
    Side,
    Terms,
    PARAMETERS,
    RECONNECT, //
};
use crate::{
    failure::Failure,
    protocol::{
        exchange::Exchange,
        negotiation::Role,
        program::Program,
        snapshot::State, //
    },
    rdma::{
        errno,
        handler_id::HandlerId,
        net::Net,
        unresolved_id::UnresolvedId,
        wait::wait_while, //
    },
    trace, //
};

/// The pause before the first attempt to reconnect, in milliseconds; it doubles up to the longest.
const FIRST_PAUSE_MS: u32 = 100;
const LONGEST_PAUSE_MS: u32 = 30_000;

/// How long one id may resolve the peer's address, in milliseconds. Where the neighbour answers
/// before the kernel's resolver waits for that, it learns of it only at the end of this time.
const RESOLVE_MS: u32 = 250;

/// Whom to connect to, and how.
pub(crate) struct Target {
    pub(crate) net: Net,
    pub(crate) to: SocketAddr,
    pub(crate) from: Option<SocketAddr>,
    /// Whether to connect again after a loss.
    pub(crate) reconnect: bool,
    /// How long one attempt may take, and how long one call, in milliseconds.
    pub(crate) timeout_ms: u32,
    /// The program whose NULL procedure is called once there is a connection.
    pub(crate) null: Option<Program>,
}

/// Connects, and returns when the connection is established; process context.
///
/// Fails with what the attempt failed with: `ECONNREFUSED`, `EHOSTUNREACH`, `ETIMEDOUT`,
/// `EADDRNOTAVAIL`, `EMSGSIZE`, `EINTR` on a signal, or with what the kernel says otherwise.
pub(crate) fn connect(
    connections: &Arc<Connections>,
    target: Target,
    terms: Terms,
) -> Result<Arc<Connection>, Failure> {
    let no_memory = |error| Failure::new(error, "no memory for a connection");

    let connection =
        Connection::new(connections.clone(), terms, Side::Client(target)).map_err(no_memory)?;
    connections.add(&connection).map_err(no_memory)?;

    if let Side::Client(target) = &connection.side {
        let connection = connection.as_arc_borrow();
        connection
            .attempt(target)
            .inspect_err(|_| connection.close())?;
    }
    Ok(connection)
}

/// Says what `error` means to an attempt that has got to `state`.
pub(super) fn connect_failure(state: State, error: Error) -> Failure {
    // Where no device has the address, rdma_cm speaks of the device.
    if error == ENODEV || error == errno(bindings::EADDRNOTAVAIL) {
        return Failure::new(
            errno(bindings::EADDRNOTAVAIL),
            "no RDMA device can be used from or to that address",
        );
    }
    match state {
        State::Resolving if error == ETIMEDOUT => Failure::new(
            errno(bindings::EHOSTUNREACH),
            "the address was not resolved in time",
        ),
        State::Resolving => Failure::new(error, "the address was not resolved"),
        State::Established => Failure::new(error, "the peer is no longer reachable"),
        _ if error == ETIMEDOUT => Failure::new(error, "no answer in time"),
        _ if error == errno(bindings::ECONNREFUSED) => {
            Failure::new(error, "the peer's host refused the connection")
        }
        _ if error == errno(bindings::EMSGSIZE) => Failure::new(
            error,
            "the transport cannot carry that many octets of private data",
        ),
        _ => Failure::new(error, "the connection was not established"),
    }
}

impl Connection {
    /// Makes one attempt to connect; process context, without locks.
    fn attempt(self: ArcBorrow<'_, Self>, target: &Target) -> Result<(), Failure> {
        let attempt = self
            .begin_attempt(State::Resolving, Exchange::with(Some(target.to)))
            .map_err(|error| Failure::new(error, "closed"))?;
        // Nothing has happened to this attempt yet.
        let generation = self.inner.lock().generation;
        self.shared.stats.connects.increment();
        if generation != 1 {
            self.shared.stats.reconnects.increment();
        }
        let result = self
            .start(target, attempt)
            .and_then(|()| self.wait(target, attempt, generation));
        result.map_err(|failure| {
            self.shared.stats.connects_failed.increment();
            let mut inner = self.inner.lock();
            if inner.is_current(attempt) {
                self.end_locked(&mut inner, Some(attempt), Some(failure));
                return failure;
            }
            // What has ended it says more than what failed because of that.
            inner.failure.unwrap_or(failure)
        })
    }

    /// Sets off an attempt with a new id, in whose handler the rest happens.
    fn start(self: ArcBorrow<'_, Self>, target: &Target, attempt: u32) -> Result<(), Failure> {
        let id = self
            .handler(attempt)
            .and_then(|handler| UnresolvedId::new(&target.net, PARAMETERS, handler))
            .map_err(|error| Failure::new(error, "no id for a connection"))?;

        let id = id
            .resolve_address(target.from, target.to, target.timeout_ms.min(RESOLVE_MS))
            .map_err(|error| connect_failure(State::Resolving, error))?;
        self.keep(attempt, id);
        Ok(())
    }

    /// Waits until attempt number `attempt` has led to something. It begins in `generation`.
    fn wait(
        self: ArcBorrow<'_, Self>,
        target: &Target,
        attempt: u32,
        generation: u32,
    ) -> Result<(), Failure> {
        let mut jiffies = msecs_to_jiffies(target.timeout_ms);
        let mut given_up = None;
        let mut inner = self.inner.lock();

        while inner.is_attempting(attempt) {
            if given_up.is_some() {
                // With the lock held: it must not be established in between.
                self.end_locked(&mut inner, Some(attempt), given_up);
                break;
            }
            if mem::take(&mut inner.unresolved) {
                drop(inner);
                self.start(target, attempt)?;
                inner = self.inner.lock();
                continue;
            }
            match self.changed.wait_interruptible_timeout(&mut inner, jiffies) {
                CondVarTimeoutResult::Woken { jiffies: rest } => jiffies = rest,
                CondVarTimeoutResult::Timeout => {
                    given_up = Some(connect_failure(inner.state, ETIMEDOUT));
                }
                CondVarTimeoutResult::Signal { .. } => {
                    given_up = Some(Failure::new(EINTR, "interrupted"));
                }
            }
        }
        // It may have been established and lost already, and be made again.
        if inner.exchange.received.is_some() || inner.generation != generation {
            return Ok(());
        }
        let closed = Failure::new(errno(bindings::ESHUTDOWN), "closed");
        Err(inner.failure.unwrap_or(closed))
    }

    /// Waits for `pause_ms` milliseconds, and returns whether the connection is still to be made.
    fn pause(&self, pause_ms: u32) -> bool {
        wait_while(&self.changed, &self.inner, pause_ms, |inner| {
            inner.state == State::Reconnecting
        })
    }

    /// Handles the event of this name: has another id try, as long as there is time.
    pub(super) fn address_unresolved(&self, attempt: u32, error: Error) -> Result<(), Failure> {
        let mut inner = self.inner.lock();
        if error != ETIMEDOUT || !inner.is_attempting(attempt) {
            return Err(connect_failure(State::Resolving, error));
        }
        inner.unresolved = true;
        inner.id = None;
        self.changed.notify_all();
        Ok(())
    }

    /// Handles the event of this name: gets all ready that the answer may need.
    pub(super) fn address_resolved(
        self: ArcBorrow<'_, Self>,
        attempt: u32,
        id: &mut HandlerId<'_, Completions>,
    ) -> Result<(), Failure> {
        let Side::Client(target) = &self.side else {
            return Ok(());
        };
        let failed = |error| connect_failure(State::Resolving, error);

        let (exchange, sent) = Exchange::begin(id, &self.terms.offered).map_err(failed)?;
        {
            let mut inner = self.inner.lock();
            if !inner.is_attempting(attempt) {
                return Ok(());
            }
            inner.exchange = exchange;
        }
        self.terms
            .capacity(&sent)
            .and_then(|capacity| id.create_queue_pair(capacity, self.completions(attempt)?))
            .map_err(|error| Failure::new(error, "no resources for a queue pair"))?;
        id.resolve_route(target.timeout_ms).map_err(failed)
    }

    /// Handles the event of this name: asks the peer for the connection.
    pub(super) fn route_resolved(
        &self,
        attempt: u32,
        id: &mut HandlerId<'_, Completions>,
    ) -> Result<(), Failure> {
        let sent = {
            let mut inner = self.inner.lock();
            let Some(sent) = inner.exchange.sent.filter(|_| inner.is_attempting(attempt)) else {
                return Ok(());
            };
            inner.enter(State::Connecting);
            sent.octets
        };
        id.connect(sent.octets())
            .map_err(|error| connect_failure(State::Connecting, error))?;
        trace::message_sent(self.number, Role::Client, &sent);
        Ok(())
    }
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
