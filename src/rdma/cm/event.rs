// SPDX-License-Identifier: GPL-2.0

//! Events of a connection's id, and their handler.

use core::ptr::NonNull;

use kernel::{
    error::to_result,
    ffi::c_int,
    prelude::*, //
};

use super::{
    context::{
        private_data,
        Context, //
    },
    handler_id::HandlerId,
    id_ref::IdRef, //
};
use crate::{
    bindings,
    rdma::verbs::{
        completion_handler::CompletionHandler,
        device::Transport, //
    }, //
};

/// An event of a connection's id.
///
/// # Examples
///
/// ```no_run
/// # let (id, event): (&mut HandlerId<'_, MyEndpoint>, CmEvent<'_>) = given();
/// match event {
///     CmEvent::AddressResolved => {
///         id.create_queue_pair(Capacity::new(32, 4096, 4096)?, MyEndpoint::new())?;
///         id.resolve_route(2000)?;
///     }
///     CmEvent::RouteResolved => id.connect(b"private data")?,
///     CmEvent::Established { private_data } => pr_info!("the peer sent {private_data:x?}\n"),
///     _ => pr_info!("the connection is lost\n"),
/// }
/// ```
pub(crate) enum CmEvent<'a> {
    /// The remote address was resolved, and the id is bound to a device.
    AddressResolved,
    /// The route was resolved: the next step is to connect.
    RouteResolved,
    /// The connection is established. A client gets the private data of the REP. A server gets
    /// none: it got that of the client with the request.
    Established {
        /// The private data as the transport delivers it: padded on InfiniBand and RoCE.
        private_data: &'a [u8],
    },
    /// The remote address was not resolved.
    AddressUnresolved(Error),
    /// The route was not resolved, or the peer did not answer.
    Failed(Error),
    /// The peer, or its host, rejected the connection.
    Rejected {
        /// The transport's name for the reason.
        reason: &'static CStr,
    },
    /// The connection has ended.
    Disconnected,
    /// The network interface of the connection has got another hardware address.
    AddressChanged,
    /// The device is being removed. The removal waits until the id is destroyed.
    DeviceRemoved,
}

/// Handles the events of one id.
///
/// # Examples
///
/// ```no_run
/// # struct MyConnection {
/// #     id: Pin<KBox<Mutex<Option<CmId<Self>>>>>,
/// # }
/// impl ConnectionHandler for MyConnection {
///     type Completions = MyEndpoint;
///
///     fn event(&self, id: &mut HandlerId<'_, MyEndpoint>, event: CmEvent<'_>) {
///         if let CmEvent::Disconnected = event {
///             // Dropping the id only queues the work that destroys it.
///             *self.id.lock() = None;
///         }
///     }
/// }
/// ```
pub(crate) trait ConnectionHandler: Send + Sync + 'static {
    /// The type that handles the completions of the id's queue pair. It has no access to the id.
    type Completions: CompletionHandler;

    /// Handles one event. Called with the id's handler mutex held; may sleep.
    fn event(&self, id: &mut HandlerId<'_, Self::Completions>, event: CmEvent<'_>);
}

/// The context of an id whose events `H` handles.
pub(in crate::rdma) type ContextOf<H> = Context<H, <H as ConnectionHandler>::Completions>;

/// Notes whether the teardown has to wait for the peer from now on and, if the id may read, how
/// many RDMA Reads the peer serves. May sleep.
///
/// # Safety
///
/// rdma_cm must be delivering `event`.
unsafe fn note_connected<H, C: CompletionHandler>(
    context: &Context<H, C>,
    id: &IdRef<'_>,
    event: &bindings::rdma_cm_event,
) {
    match event.event {
        // On iWARP the teardown need not wait for the peer: TCP retransmits the disconnection, even
        // when the id is gone.
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_ESTABLISHED => {
            let device = id.device();
            let iwarp = device.is_ok_and(|device| device.transport() == Transport::Iwarp);
            context.set_connected(!iwarp);
            if context.parameters.reads {
                // SAFETY: By the function's requirement rdma_cm delivers the event. This type of
                // event carries connection parameters.
                let answer = unsafe { &event.param.conn };
                let depth = match iwarp {
                    // Drivers of iWARP do not agree which is which: siw and cxgb4 differ.
                    true => answer.initiator_depth.min(answer.responder_resources),
                    false => answer.initiator_depth,
                };
                if let Some(queue_pair) = context.queue_pair.access() {
                    queue_pair.set_read_depth(depth);
                }
            }
        }
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_REJECTED
        | bindings::rdma_cm_event_type_RDMA_CM_EVENT_DISCONNECTED
        | bindings::rdma_cm_event_type_RDMA_CM_EVENT_DEVICE_REMOVAL => context.set_connected(false),
        _ => {}
    }
}

/// Returns an event in the terms of its handler; [`None`] if it does not concern handlers.
///
/// # Safety
///
/// For `'a`, rdma_cm must be delivering `event` for `id`.
unsafe fn translate<'a>(id: &IdRef<'_>, event: &'a bindings::rdma_cm_event) -> Option<CmEvent<'a>> {
    let status = to_result(event.status).err().unwrap_or(EIO);
    Some(match event.event {
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_ADDR_RESOLVED => CmEvent::AddressResolved,
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_ROUTE_RESOLVED => CmEvent::RouteResolved,
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

/// Handles an event of a connection's id. Returns 0, so that rdma_cm does not destroy the id.
///
/// # Safety
///
/// Called only by rdma_cm, with an id whose context is a [`ContextOf<H>`], and with its handler
/// mutex held.
pub(in crate::rdma) unsafe extern "C" fn connection_event<H: ConnectionHandler>(
    id: *mut bindings::rdma_cm_id,
    event: *mut bindings::rdma_cm_event,
) -> c_int {
    // SAFETY: rdma_cm passes a valid id, which is not NULL.
    let id = unsafe { NonNull::new_unchecked(id) };
    // SAFETY: rdma_cm passes a valid id, and the handler mutex, which is held, guards this member.
    let context = unsafe { (*id.as_ptr()).context };
    // SAFETY: By the function's requirement the context is of this type. It is dropped only after
    // the id has been destroyed, which waits for this call.
    let context = unsafe { &*context.cast::<ContextOf<H>>() };
    // SAFETY: rdma_cm passes an event that is valid during the call.
    let event = unsafe { &*event };
    // SAFETY: During the call the id is valid, and its handler mutex is held. The context is that
    // of the id.
    let mut handler_id = unsafe { HandlerId::new(context, id) };
    // SAFETY: During the call, rdma_cm delivers this event.
    unsafe { note_connected(context, &handler_id, event) };
    if context.closed.get() {
        if event.event == bindings::rdma_cm_event_type_RDMA_CM_EVENT_ESTABLISHED {
            // The connection was not established yet when the teardown disconnected it.
            // SAFETY: The id is valid during the call.
            unsafe { bindings::rdma_disconnect(id.as_ptr()) };
        }
        return 0;
    }

    // SAFETY: During the call, rdma_cm delivers this event for this id.
    if let Some(event) = unsafe { translate(&handler_id, event) } {
        context.handler.event(&mut handler_id, event);
    }

    // With another value, rdma_cm would destroy the id. Its owner does that.
    0
}
