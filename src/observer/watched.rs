// SPDX-License-Identifier: GPL-2.0

//! What is known of an id of others.

use kernel::{
    bindings,
    impl_has_work,
    new_spinlock,
    new_work,
    prelude::*,
    sync::{
        Arc,
        SpinLock, //
    },
    time::{
        Instant,
        Monotonic, //
    },
    workqueue::{
        Work,
        WorkItem, //
    }, //
};

use super::{
    probes::{
        Happening,
        Seen,
        User, //
    },
    NFS_RDMA_PORT, //
};
use crate::{
    connection::Failure,
    protocol::{
        exchange::{
            Device,
            Exchange,
            ParsedPrivateData, //
        },
        negotiation::{
            InUse,
            Role, //
        },
        private_data::Parsed,
        snapshot::{
            Origin,
            Snapshot,
            State, //
        }, //
    },
    rdma::errno,
    registry::{
        Live,
        Place,
        Registry, //
    },
    trace, //
};

/// Why not all is known of a connection.
const OLDER: &str = "older than the module, so that what was received is not known";

/// What is known of an id.
pub(super) struct Facts {
    /// The id as it was when it entered its state.
    view: Snapshot,
    since: Instant<Monotonic>,
    failure: Option<Failure>,
    /// Whether it is one of RPC-over-RDMA, and so has a number.
    counts: bool,
    /// Whether it is in the registry; changed by the work alone.
    listed: bool,
    /// Whether the id is gone.
    gone: bool,
    traced_sent: bool,
    traced_received: bool,
    traced_negotiated: bool,
}

impl Facts {
    pub(super) fn new(role: Role, seen: &Seen) -> Self {
        Self {
            view: Snapshot {
                number: 0,
                origin: match seen.user {
                    User::Client | User::Server => Origin::Nfs,
                    User::Program => Origin::User,
                },
                role,
                state: State::Connecting,
                age_ms: 0,
                generation: seen.generation.unwrap_or(1),
                failure: None,
                exchange: Exchange {
                    device: seen.device.map(Device::from),
                    local: seen.local,
                    remote: seen.remote,
                    sent: None,
                    received: None,
                    version: None,
                },
                process: None,
                in_use: InUse::default(),
                traffic: None,
                note: None,
            },
            since: Instant::now(),
            failure: None,
            counts: false,
            listed: false,
            gone: false,
            traced_sent: false,
            traced_received: false,
            traced_negotiated: false,
        }
    }

    /// Whether it is a connection of RPC-over-RDMA: of a program that is known by what either side
    /// said or, where neither said anything, by the port.
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

    fn enter(&mut self, state: State) {
        self.view.state = state;
        self.since = Instant::now();
    }

    fn establish(&mut self) {
        self.enter(State::Established);
        self.failure = None;
    }

    fn end(&mut self, state: State, failure: Failure) {
        self.enter(state);
        self.failure = Some(failure);
    }

    pub(super) fn note(&mut self, seen: &Seen) {
        let message = ParsedPrivateData::new(seen.private_data);
        let client = self.view.role == Role::Client;

        if seen.program.is_some() {
            self.view.process = seen.program;
        }
        if seen.in_use != InUse::default() {
            self.view.in_use = seen.in_use;
        }
        match seen.happening {
            Happening::Connect => {
                self.enter(State::Connecting);
                self.view.exchange.sent = Some(message);
                self.view.note = None;
            }
            Happening::Request { .. } | Happening::Response => {
                self.view.exchange.received = Some(message);
            }
            Happening::Accept if client => self.establish(),
            Happening::Accept => {
                self.view.exchange.sent = Some(message);
                if self.view.exchange.received.is_none() {
                    self.view.note = Some(OLDER);
                }
            }
            Happening::Established => {
                // A server has the client's message from the request: its own event has none.
                if client && self.view.note.is_none() {
                    self.view.exchange.received.get_or_insert(message);
                }
                self.establish();
            }
            Happening::Existing { connecting, opaque } => {
                // What a client of the kernel has sent is not gone.
                if seen.user == User::Client && !opaque {
                    self.view.exchange.sent = Some(message);
                    self.traced_sent = true;
                }
                if connecting {
                    return;
                }
                self.enter(State::Established);
                self.view.note = Some(match seen.user {
                    User::Program => "older than the module, and known by its port alone",
                    _ if opaque => {
                        "older than the module, and the kernel has no BTF to tell what it goes by"
                    }
                    _ => OLDER,
                });
            }
            Happening::Rejected => self.end(
                State::Closing,
                Failure::new(
                    errno(bindings::ECONNREFUSED),
                    "the peer rejected the connection",
                ),
            ),
            // A neighbour has another hardware address, or none: the queue pair decides.
            Happening::Failed if self.view.state == State::Established => {
                self.failure = Some(Failure::new(ETIMEDOUT, "the peer was not reachable"));
            }
            Happening::Failed => self.end(
                State::Closing,
                Failure::new(ETIMEDOUT, "the connection was not established"),
            ),
            Happening::Disconnected => self.end(
                if self.view.state == State::Established {
                    State::Disconnected
                } else {
                    State::Closing
                },
                Failure::new(errno(bindings::ECONNRESET), "disconnected"),
            ),
        }
    }

    /// Traces what there is and has not been traced.
    fn trace(&mut self) {
        let Snapshot {
            number,
            role,
            generation,
            exchange,
            ..
        } = &self.view;

        if let Some(sent) = exchange.sent.filter(|_| !self.traced_sent) {
            trace::message_sent(*number, *role, &sent.octets);
            self.traced_sent = true;
        }
        if let Some(received) = exchange.received.filter(|_| !self.traced_received) {
            trace::message_parsed(*number, *role, &received);
            self.traced_received = true;
        }
        if let (false, Some(negotiated), Some(local), Some(remote)) = (
            self.traced_negotiated,
            exchange.negotiated(*role),
            exchange.local,
            exchange.remote,
        ) {
            trace::connection_negotiated(*number, *role, *generation, local, remote, &negotiated);
            self.traced_negotiated = true;
        }
    }
}

/// An id of others.
#[pin_data]
pub(crate) struct Watched {
    registry: Arc<Registry>,
    _place: Place,
    #[pin]
    facts: SpinLock<Facts>,
    #[pin]
    publish: Work<Self>,
}

impl_has_work! {
    impl HasWork<Self> for Watched { self.publish }
}

impl WorkItem for Watched {
    type Pointer = Arc<Self>;

    /// Brings the registry up to date.
    fn run(this: Arc<Self>) {
        let (number, listed, gone) = {
            let facts = this.facts.lock();
            (facts.view.number, facts.listed, facts.gone)
        };

        if gone {
            if listed {
                this.registry.remove(number);
            }
        } else if !listed {
            match this.registry.add(number, Live::Observed(this.clone())) {
                Ok(()) => this.facts.lock().listed = true,
                Err(_) => this.registry.stats.observed_missed.increment(),
            }
        }
    }
}

impl Watched {
    /// Begins to watch an id; any context.
    pub(super) fn new(registry: Arc<Registry>, role: Role, seen: &Seen) -> Result<Arc<Self>> {
        let place = Place::take(&registry)?;
        Arc::pin_init(
            pin_init!(Self {
                registry,
                _place: place,
                facts <- new_spinlock!(Facts::new(role, seen), "Watched::facts"),
                publish <- new_work!("Watched::publish"),
            }),
            GFP_NOWAIT,
        )
    }

    /// Returns it as it is at this moment.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let facts = self.facts.lock();
        Snapshot {
            age_ms: facts.since.elapsed().as_millis(),
            failure: facts.failure.map(|failure| failure.cause),
            ..facts.view
        }
    }

    /// Whether a call that connects can be meant: it may come again after one that failed, and
    /// after a search that could not tell.
    pub(super) fn can_connect(&self) -> bool {
        let view = &self.facts.lock().view;
        view.state == State::Connecting || (view.origin == Origin::User && view.note.is_some())
    }

    /// Whether all has been said, and none of it in RPC-over-RDMA.
    pub(super) fn is_of_others(&self) -> bool {
        let facts = self.facts.lock();
        !facts.counts && facts.view.state == State::Established
    }

    /// Notes what happened to the id.
    pub(super) fn note(self: &Arc<Self>, seen: &Seen) {
        let stats = &self.registry.stats;
        let mut facts = self.facts.lock();

        let before = facts.view.state;
        facts.note(seen);
        if !facts.counts {
            if !facts.is_rpc_over_rdma() {
                return;
            }
            facts.counts = true;
            facts.view.number = self.registry.next_connection_number();
            stats.observed.increment();
            self.publish();
        }
        facts.trace();
        match (facts.view.state, seen.happening) {
            (State::Established, Happening::Existing { .. }) => {}
            (State::Established, _) if before != State::Established => {
                stats.observed_established.increment();
            }
            (_, Happening::Rejected) => stats.observed_refused.increment(),
            (State::Closing, Happening::Failed) => stats.observed_failed.increment(),
            _ => {}
        }
    }

    /// The id is about to go.
    pub(super) fn end(self: &Arc<Self>) {
        let facts = self.facts.lock();
        let view = &facts.view;
        match view.state {
            _ if !facts.counts => {}
            State::Established | State::Disconnected => {
                let error = facts.failure.map(|failure| failure.error);
                trace::connection_closed(view.number, view.role, view.generation, error);
            }
            // The call failed, or its owner did not wait for an answer.
            State::Connecting => self.registry.stats.observed_failed.increment(),
            _ => {}
        }
        drop(facts);
        self.leave();
    }

    /// Goes from the registry, whether or not the id does.
    pub(super) fn leave(self: &Arc<Self>) {
        let mut facts = self.facts.lock();
        facts.gone = true;
        if facts.counts {
            self.publish();
        }
    }

    fn publish(self: &Arc<Self>) {
        // What is queued already is going to run, which is all that is wanted.
        let _ = self.registry.observations.enqueue(self.clone());
    }
}
