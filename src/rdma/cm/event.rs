// SPDX-License-Identifier: GPL-2.0

//! The events of a connection's id, and their handler.

use core::slice;

use kernel::{
    error::to_result,
    prelude::*, //
};

use super::{
    connection_queue_pair::ConnectionQueuePair,
    handler_id::HandlerId,
    id_ref::IdRef,
    resolved_id::ResolvedId, //
};
use crate::{
    base::work_queue::WorkQueue,
    bindings, //
};

/// An event of a connection's id.
///
/// # Examples
///
/// ```no_run
/// # let (id, event): (&mut HandlerId<'_, MessageQueuePair<MyEndpoint>>, CmEvent<'_>) = given();
/// match event {
///     CmEvent::AddressResolved => id.resolve_route(2000)?,
///     CmEvent::Established { private_data } => pr_info!("the peer sent {private_data:x?}\n"),
///     _ => pr_info!("the connection is lost\n"),
/// }
/// ```
pub(crate) enum CmEvent<'a> {
    /// The remote address was resolved, and the id is bound to a device. The next step is to
    /// resolve the route, after which [`ClientHandler::connect`] is called.
    AddressResolved,
    /// The connection is established. A client gets the private data of the REP. A server gets
    /// none: it got that of the client with the request.
    Established {
        /// The private data as the transport delivers it: padded on InfiniBand and RoCE.
        private_data: &'a [u8],
    },
    /// The remote address was not resolved.
    AddressUnresolved(Error),
    /// The route was not resolved, the connection was not made, or the peer did not answer
    /// (ROUTE_ERROR, CONNECT_ERROR, UNREACHABLE). An established connection gets UNREACHABLE if its
    /// neighbour has another hardware address, or none.
    Failed(Error),
    /// The peer, or its host, rejected the connection.
    Rejected {
        /// The transport's name for the reason.
        reason: &'static CStr,
    },
    /// The connection has ended.
    Disconnected,
    /// The interface of the connection is a bond that has failed over to another hardware address.
    AddressChanged,
    /// The device is being removed. The removal waits until the id is destroyed.
    DeviceRemoved,
}

/// Handles the events of one id.
///
/// # Examples
///
/// ```no_run
/// # pub(super) struct MyConnection {
/// #     pub(super) id: Arc<Mutex<Option<CmId<Self>>>>,
/// # }
/// impl ConnectionHandler for MyConnection {
///     type QueuePair = MessageQueuePair<MyEndpoint>;
///
///     fn event(&self, _id: &mut HandlerId<'_, MessageQueuePair<MyEndpoint>>, event: CmEvent<'_>) {
///         if let CmEvent::Disconnected = event {
///             // Dropping the id only queues the work that destroys it.
///             *self.id.lock() = None;
///         }
///     }
/// }
/// ```
pub(crate) trait ConnectionHandler: Send + Sync + 'static {
    /// The type of the id's queue pair.
    type QueuePair: ConnectionQueuePair;

    /// Handles one event. Called with the id's handler mutex held. rdma_cm calls the handlers of
    /// all ids in a few queues, so this must not wait for peers, nor for much memory.
    fn event(&self, id: &mut HandlerId<'_, Self::QueuePair>, event: CmEvent<'_>);
}

/// Also connects the id, which is that of a client.
///
/// # Examples
///
/// ```no_run
/// # pub(super) struct MyClient {
/// #     pub(super) id: Pin<KBox<Mutex<Option<CmId<Self>>>>>,
/// #     pub(super) queue: Arc<WorkQueue>,
/// # }
/// # impl ConnectionHandler for MyClient {
/// #     type QueuePair = MessageQueuePair<MyEndpoint>;
/// #     fn event(&self, id: &mut HandlerId<'_, Self::QueuePair>, event: CmEvent<'_>) {
/// #         note_event(id, event)
/// #     }
/// # }
/// impl ClientHandler for MyClient {
///     fn connect_queue(&self) -> &WorkQueue {
///         &self.queue
///     }
///
///     fn connect(&self, id: ResolvedId<'_, MessageQueuePair<MyEndpoint>>) {
///         let id = MyEndpoint::setup().and_then(|setup| id.create_queue_pair(setup));
///         if id.and_then(|id| id.connect(b"private data")).is_err() {
///             *self.id.lock() = None;
///         }
///     }
/// }
/// ```
///
/// The handler of a server's connections does not connect, so no client can use it:
///
/// ```compile_fail,E0277
/// # let net: ARef<Net> = given();
/// // error[E0277]: the trait bound `MyServerConnection: ClientHandler` is not satisfied
/// let id = UnresolvedId::new(&net, CLIENT_PARAMETERS, MyServerConnection)?;
/// ```
pub(crate) trait ClientHandler: ConnectionHandler {
    /// Returns the queue whose works call [`Self::connect`].
    fn connect_queue(&self) -> &WorkQueue;

    /// Connects, after the route was resolved. Called once, by a work, without locks. May sleep:
    /// the queue pair and its memory are allocated here, and soft-iWARP waits for the peer's host.
    /// rdma_cm's own queues wait for neither.
    fn connect(&self, id: ResolvedId<'_, Self::QueuePair>);
}

/// Returns the private data of an event, as the transport delivered it; empty if it delivered none.
///
/// # Safety
///
/// `event` must be one that rdma_cm delivers, be of a type that carries connection parameters, and
/// be valid for `'a`.
pub(super) unsafe fn private_data<'a>(event: &'a bindings::rdma_cm_event) -> &'a [u8] {
    // SAFETY: By the function's requirement this is the member in use.
    let parameters = unsafe { &event.param.conn };
    let bytes: *const u8 = parameters.private_data.cast();

    // siw delivers a pointer and the length 0 if the peer sent none.
    if bytes.is_null() || parameters.private_data_len == 0 {
        return &[];
    }
    // SAFETY: rdma_cm delivers that many bytes, which stay as long as the event.
    unsafe { slice::from_raw_parts(bytes, parameters.private_data_len.into()) }
}

/// Returns an event in the terms of its handler; [`None`] if it does not concern handlers.
///
/// # Safety
///
/// For `'a`, rdma_cm must be delivering `event` for `id`.
pub(super) unsafe fn translate<'a>(
    id: &IdRef<'_>,
    event: &'a bindings::rdma_cm_event,
) -> Option<CmEvent<'a>> {
    let status = to_result(event.status).err().unwrap_or(EIO);
    Some(match event.event {
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_ADDR_RESOLVED => CmEvent::AddressResolved,
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_ESTABLISHED => CmEvent::Established {
            // SAFETY: By the function's requirement rdma_cm delivers the event, which is valid for
            // `'a`. This type of event carries connection parameters.
            private_data: unsafe { private_data(event) },
        },
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_ADDR_ERROR => CmEvent::AddressUnresolved(status),
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_ROUTE_ERROR
        | bindings::rdma_cm_event_type_RDMA_CM_EVENT_CONNECT_ERROR
        | bindings::rdma_cm_event_type_RDMA_CM_EVENT_UNREACHABLE => CmEvent::Failed(status),
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_REJECTED => {
            // SAFETY: By the type invariant of `IdRef` the id is valid. By the function's
            // requirement it was rejected, so it has sent or received a REQ, and is bound to a
            // device. The function takes any status.
            let reason = unsafe { bindings::rdma_reject_msg(id.as_ptr(), event.status) };
            CmEvent::Rejected {
                // SAFETY: The function returns a static string, and never NULL.
                reason: unsafe { CStr::from_char_ptr(reason) },
            }
        }
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_DISCONNECTED => CmEvent::Disconnected,
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_ADDR_CHANGE => CmEvent::AddressChanged,
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_DEVICE_REMOVAL => CmEvent::DeviceRemoved,
        _ => return None,
    })
}
