// SPDX-License-Identifier: GPL-2.0

//! Ids of clients whose route has been resolved.

use core::{
    ops::Deref,
    ptr::NonNull, //
};

use kernel::{
    error::to_result,
    prelude::*, //
};

use super::{
    connection_queue_pair::{
        self,
        ConnectionQueuePair, //
    },
    id_ref::IdRef,
    parameters::ClientParameters, //
};
use crate::{
    base::{
        draining::Draining,
        errno::errno,
        unload::Hold, //
    },
    bindings, //
};

/// The id of a client whose route has been resolved: the right to connect, once.
///
/// Only the work that calls [`ClientHandler::connect`] makes a value of this type. The id stays
/// as long as that call lasts, even if its owner drops it meanwhile.
///
/// # Examples
///
/// ```no_run
/// # pub(super) trait Example {
/// fn connect(&self, id: ResolvedId<'_, MessageQueuePair<MyEndpoint>>) {
///     let result = MyEndpoint::setup()
///         .and_then(|setup| id.create_queue_pair(setup))
///         .and_then(|id| id.connect(b"private data"));
///     if let Err(error) = result {
///         pr_info!("not connected: {error:?}\n");
///     }
/// }
/// # }
/// ```
///
/// Without a queue pair it cannot connect, so this does not compile:
///
/// ```compile_fail,E0599
/// # let id: ResolvedId<'_, MessageQueuePair<MyEndpoint>> = given();
/// // error[E0599]: no method named `connect` found for struct `ResolvedId`
/// id.connect(b"private data")?;
/// ```
///
/// [`ClientHandler::connect`]: super::event::ClientHandler::connect
///
/// # Invariants
///
/// The id has no queue pair except in `queue_pair`, which is drained before the id is destroyed.
/// The handler mutex of the id is not held by this task. There is no other value for the same id.
pub(crate) struct ResolvedId<'a, Q: ConnectionQueuePair> {
    queue_pair: &'a Draining<Q>,
    parameters: ClientParameters,
    hold: &'a Hold,
    id: IdRef<'a>,
}

impl<'a, Q: ConnectionQueuePair> Deref for ResolvedId<'a, Q> {
    type Target = IdRef<'a>;

    fn deref(&self) -> &Self::Target {
        &self.id
    }
}

impl<'a, Q: ConnectionQueuePair> ResolvedId<'a, Q> {
    /// Creates the value for one call of a work.
    ///
    /// # Safety
    ///
    /// For `'a`, `id` must be valid, its route must have been resolved, and this task must not hold
    /// its handler mutex. It must have no queue pair except in `queue_pair`, which must be drained
    /// before it is destroyed. There must be no other value for the same id.
    pub(super) unsafe fn new(
        id: NonNull<bindings::rdma_cm_id>,
        queue_pair: &'a Draining<Q>,
        parameters: ClientParameters,
        hold: &'a Hold,
    ) -> Self {
        // INVARIANT: By the function's requirement.
        Self {
            queue_pair,
            parameters,
            hold,
            // SAFETY: By the function's requirement the id is valid for `'a`. Its route has been
            // resolved and it is not connected, so its addresses and its device do not change.
            id: unsafe { IdRef::new(id) },
        }
    }

    /// Creates the queue pair. May sleep.
    ///
    /// Fails with `ENODEV` if the transport of the device is unknown, otherwise as
    /// [`ConnectionQueuePair::new`] does.
    pub(crate) fn create_queue_pair(self, setup: Q::Setup) -> Result<ReadyId<'a, Q>> {
        let port = self.port()?;
        let (place, id) = (self.queue_pair, self.as_non_null());
        let owner = self.parameters.common.owner;
        // SAFETY: By the type invariants the id is valid, its queue pair is put into `place` only,
        // `place` is drained before the id is destroyed, and only this value makes a queue pair.
        unsafe { connection_queue_pair::create(place, id, &port, owner, setup, self.hold) }?;
        // INVARIANT: It was put into `queue_pair` above.
        Ok(ReadyId(self))
    }
}

/// The id of a client whose queue pair has been made.
///
/// # Examples
///
/// It connects once, so this does not compile:
///
/// ```compile_fail,E0382
/// # let id: ReadyId<'_, MessageQueuePair<MyEndpoint>> = given();
/// id.connect(b"private data")?;
/// // error[E0382]: use of moved value: `id`
/// id.connect(b"other data")?;
/// ```
///
/// # Invariants
///
/// `queue_pair` has been given its value.
pub(crate) struct ReadyId<'a, Q: ConnectionQueuePair>(ResolvedId<'a, Q>);

impl<Q: ConnectionQueuePair> ReadyId<'_, Q> {
    /// Sends a REQ with `private_data`. May sleep; over soft-iWARP, until the peer's host has
    /// answered or TCP has given up.
    ///
    /// Fails with `EMSGSIZE` if a REQ cannot carry the private data, otherwise with the error of
    /// rdma_cm.
    pub(crate) fn connect(self, private_data: &[u8]) -> Result {
        let Self(id) = self;
        let port = id.port()?;
        if private_data.len() > port.transport().request_capacity() {
            return Err(errno(kernel::bindings::EMSGSIZE));
        }
        let mut request = bindings::rdma_conn_param {
            private_data: private_data.as_ptr().cast(),
            private_data_len: private_data.len().try_into()?,
            responder_resources: port.max_responder_resources(),
            initiator_depth: if id.parameters.reads {
                port.max_initiator_depth()
            } else {
                0
            },
            retry_count: id.parameters.retry_count,
            rnr_retry_count: id.parameters.common.rnr_retry_count,
            ..Default::default()
        };
        // SAFETY: By the type invariants the id is valid, and its handler mutex is not held by this
        // task. The parameters and the private data are copied.
        to_result(unsafe { bindings::rdma_connect(id.as_ptr(), &mut request) })
    }
}
