// SPDX-License-Identifier: GPL-2.0

//! Attempts to connect, and the events of their ids.

use kernel::{
    bindings,
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    }, //
};

use super::Connection;
use crate::{
    base::{
        errno::errno,
        work_queue::WorkQueue, //
    },
    failure::Failure,
    observer::watched_id::WatchedId,
    pure::{
        text::{
            exchange::Exchange,
            snapshot::State, //
        },
        wire::ending::{
            Ending,
            Evidence, //
        }, //
    },
    rdma::{
        cm::{
            cm_id::CmId,
            event::{
                ClientHandler,
                CmEvent,
                ConnectionHandler, //
            },
            handler_id::HandlerId,
            id_ref::IdRef,
            resolved_id::ResolvedId, //
        },
        messages::message_queue_pair::MessageQueuePair, //
    },
    rpc::endpoint::Endpoint,
    shown_device::is_iwarp, //
};

/// An attempt to connect: one id with its queue pair. It lasts until the connection that it led to
/// has ended.
pub(super) struct Attempt {
    /// The id; [`None`] until [`Connection::keep`] stores it. Its events can come before that.
    pub(super) id: Option<CmId<AttemptHandler>>,
    /// The endpoint on the queue pair. Each attempt has its own, so the endpoint also tells events
    /// of this attempt from those of earlier ones.
    pub(super) endpoint: Arc<Endpoint>,
    /// Tells whether the peer disconnects. [`None`] until the id is bound to a device, over
    /// InfiniBand and RoCE, if iw_cm is not probed, and if there was no memory.
    pub(super) watched: Option<WatchedId>,
    /// The present knowledge of its end.
    ending: Ending,
    /// The failure that belongs to `ending`; [`None`] as long as that is [`Ending::None`].
    failure: Option<Failure>,
    /// DISCONNECTED as evidence, and its failure; [`None`] before DISCONNECTED. An error that is
    /// older may not have been reported yet.
    disconnected: Option<(Evidence, Failure)>,
}

impl Attempt {
    pub(super) fn new(endpoint: Arc<Endpoint>, watched: Option<WatchedId>) -> Self {
        Self {
            id: None,
            endpoint,
            watched,
            ending: Ending::None,
            failure: None,
            disconnected: None,
        }
    }

    /// Notes that the CM has reported DISCONNECTED. Returns DISCONNECTED as evidence, and its
    /// failure.
    pub(super) fn note_disconnected(&mut self) -> (Evidence, Failure) {
        let evidence = match &self.watched {
            Some(watched) if !watched.peer_may_have_disconnected() => {
                (Evidence::Consequence, Failure::closed_by_device())
            }
            _ => (Evidence::Disconnected, Failure::disconnected()),
        };
        self.disconnected = Some(evidence);
        evidence
    }

    /// Takes `evidence` of the end of the attempt. `failure` says what it shows. Returns whether it
    /// has changed what is known.
    pub(super) fn learn(&mut self, evidence: Evidence, iwarp: bool, failure: Failure) -> bool {
        let (evidence, failure) = match (self.disconnected, evidence) {
            (None, _) | (_, Evidence::Error) => (evidence, failure),
            // The device may have closed the connection because it is being removed.
            (Some((Evidence::Consequence, _)), Evidence::Gone) => (evidence, failure),
            (Some(known), _) => known,
        };
        let ending = self.ending.learn(evidence, iwarp);
        let changed = ending != self.ending;
        if changed && (ending.is_known() || self.failure.is_none()) {
            self.failure = Some(failure);
        }
        self.ending = ending;
        changed
    }

    /// Returns why the attempt has ended, if it has.
    pub(super) fn failure(&self) -> Option<Failure> {
        self.failure
            .or(self.disconnected.map(|(_, failure)| failure))
    }

    /// Whether the CM has reported DISCONNECTED.
    pub(super) fn has_disconnected(&self) -> bool {
        self.disconnected.is_some()
    }

    /// Whether the first cause of its end is known.
    pub(super) fn is_explained(&self) -> bool {
        self.ending.is_known()
    }
}

/// Begins to note whether the peer of an id disconnects, if that can be noted; process context.
/// `exchange` has the id's device.
pub(super) fn watch(id: &IdRef<'_>, exchange: &Exchange) -> Option<WatchedId> {
    if is_iwarp(exchange) {
        WatchedId::new(id.as_ptr())
    } else {
        None
    }
}

/// Handles the events of one id of a connection. It is dropped when that id has been destroyed, or
/// when accepting has failed.
pub(super) struct AttemptHandler {
    pub(super) connection: Arc<Connection>,
    pub(super) endpoint: Arc<Endpoint>,
}

impl ConnectionHandler for AttemptHandler {
    type QueuePair = MessageQueuePair<Endpoint>;

    fn event(&self, id: &mut HandlerId<'_, MessageQueuePair<Endpoint>>, event: CmEvent<'_>) {
        let connection = self.connection.as_arc_borrow();
        let endpoint = &self.endpoint;
        let gone = matches!(event, CmEvent::AddressChanged | CmEvent::DeviceRemoved);
        let done = match event {
            CmEvent::AddressUnresolved(error) => connection.address_unresolved(endpoint, error),
            CmEvent::AddressResolved => connection.address_resolved(endpoint, id),
            CmEvent::Established { private_data } => {
                connection.established(endpoint, id, private_data)
            }
            CmEvent::Failed(error) => {
                let state = connection.inner.lock().state.name();
                Err(connect_failure(state, error))
            }
            CmEvent::Rejected { reason } => Err(Failure::with_detail(
                errno(bindings::ECONNREFUSED),
                "the peer rejected the connection",
                reason,
            )),
            CmEvent::Disconnected => {
                connection.disconnected(endpoint, id);
                Ok(())
            }
            CmEvent::AddressChanged => Err(Failure::new(
                errno(bindings::ENETDOWN),
                "the network interface has changed",
            )),
            CmEvent::DeviceRemoved => Err(Failure::DEVICE_REMOVED),
        };
        connection.end_if(endpoint, done, gone);
    }
}

impl ClientHandler for AttemptHandler {
    fn connect_queue(&self) -> &WorkQueue {
        &self.connection.connects
    }

    fn connect(&self, id: ResolvedId<'_, MessageQueuePair<Endpoint>>) {
        let connection = self.connection.as_arc_borrow();
        let done = connection.route_resolved(&self.endpoint, id);
        connection.end_if(&self.endpoint, done, false);
    }
}

impl Connection {
    /// Ends the attempt with `endpoint` if `done` is a failure. `gone` says whether that is because
    /// the interface or the device is gone.
    fn end_if(
        self: ArcBorrow<'_, Self>,
        endpoint: &Endpoint,
        done: Result<(), Failure>,
        gone: bool,
    ) {
        if let Err(failure) = done {
            if let Some(mut inner) = self.lock_current(endpoint) {
                let cause = if gone {
                    inner.learn(Evidence::Gone, failure)
                } else {
                    failure
                };
                self.end(&mut inner, Some(cause));
            }
        }
    }
}

impl Drop for AttemptHandler {
    fn drop(&mut self) {
        self.connection.as_arc_borrow().id_destroyed();
    }
}

/// The cause if private data is longer than a REQ or a REP can carry.
pub(super) const TOO_MANY_OCTETS: &str =
    "the transport cannot carry that many octets of private data";

/// Returns the failure of an attempt whose address rdma_cm did not resolve because of `error`.
pub(super) fn address_failure(error: Error) -> Failure {
    if error == EINVAL {
        Failure::REFUSED_ADDRESS
    } else {
        connect_failure(State::Resolving, error)
    }
}

/// Returns the failure of an attempt that got `error` from rdma_cm in `state`.
pub(super) fn connect_failure(state: State, error: Error) -> Failure {
    // rdma_cm returns ENODEV if no device has the address.
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
        // About the route: RoCE needs an MTU of 352 bytes, for example. EINVAL would say that the
        // line has an error.
        State::Resolving if error == EINVAL => {
            Failure::new(EIO, "there is no usable route to the address")
        }
        State::Resolving => Failure::new(error, "the address was not resolved"),
        State::Established => Failure::new(error, "the peer is no longer reachable"),
        _ if error == ETIMEDOUT => Failure::new(error, "no answer in time"),
        _ if error == errno(bindings::EMSGSIZE) => Failure::new(error, TOO_MANY_OCTETS),
        // From rdma_cm, if a REJ has arrived behind the REP; from siw, if the MPA reply is
        // malformed. EINVAL would say that the line has an error.
        _ if error == EINVAL => Failure::new(
            EIO,
            "the peer ended the connection at once, or its answer cannot be used",
        ),
        _ => Failure::connect_failed(error),
    }
}
