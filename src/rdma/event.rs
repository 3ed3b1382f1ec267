// SPDX-License-Identifier: GPL-2.0

//! Events of a connection's id, and their handler.

use core::ptr::NonNull;

use kernel::{
    error::to_result,
    ffi::c_int,
    prelude::*, //
};

use super::{
    completion_handler::CompletionHandler,
    context::{
        private_data,
        Context, //
    },
    device::Transport,
    handler_id::HandlerId,
    id_ref::IdRef, //
};
use crate::bindings;

/// An event of a connection's id.
///
/// # Examples
///
/// ```no_run
/// # let (id, event): (&mut HandlerId<'_, MyEndpoint>, Event<'_>) = given();
/// match event {
///     Event::AddressResolved => {
///         id.create_queue_pair(Capacity::new(32, 4096, 4096)?, MyEndpoint::new())?;
///         id.resolve_route(2000)?;
///     }
///     Event::RouteResolved => id.connect(b"private data")?,
///     Event::Established { private_data } => pr_info!("the peer sent {private_data:x?}\n"),
///     _ => pr_info!("the connection is lost\n"),
/// }
/// ```
pub(crate) enum Event<'a> {
    /// The remote address was resolved, and the id is bound to a device.
    AddressResolved,
    /// The route was resolved: the next step is to connect.
    RouteResolved,
    /// The connection is established. A client gets the private data of the REP. A server, which
    /// got the client's from the request, gets none.
    Established {
        /// The private data: as the transport delivers it, padded on InfiniBand and RoCE.
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
    /// The connection is gone.
    Disconnected,
    /// The network interface that the connection runs over has got another hardware address.
    AddressChanged,
    /// The device is going away and waits for the id to be destroyed.
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
///     fn event(&self, id: &mut HandlerId<'_, MyEndpoint>, event: Event<'_>) {
///         if let Event::Disconnected = event {
///             // Dropping the id only queues the work that destroys it.
///             *self.id.lock() = None;
///         }
///     }
/// }
/// ```
pub(crate) trait ConnectionHandler: Send + Sync + 'static {
    /// Handles the completions of the id's queue pair, which knows nothing of the id.
    type Completions: CompletionHandler;

    /// Runs with the id's handler mutex held, for one event at a time; may sleep.
    fn event(&self, id: &mut HandlerId<'_, Self::Completions>, event: Event<'_>);
}

/// The context of an id that `H` handles the events of.
pub(super) type ContextOf<H> = Context<H, <H as ConnectionHandler>::Completions>;

/// Handles an event of a connection's id.
///
/// # Safety
///
/// Called only by rdma_cm, with an id whose context is a [`ContextOf<H>`], and its handler
/// mutex held.
pub(super) unsafe extern "C" fn connection_event<H: ConnectionHandler>(
    id: *mut bindings::rdma_cm_id,
    event: *mut bindings::rdma_cm_event,
) -> c_int {
    // SAFETY: rdma_cm calls with an id.
    let id = unsafe { NonNull::new_unchecked(id) };
    // SAFETY: By the function's requirement the id is valid.
    let context = unsafe { (*id.as_ptr()).context };
    // SAFETY: By the function's requirement the context is one, and is dropped only after the id.
    let context = unsafe { &*context.cast::<ContextOf<H>>() };
    // SAFETY: By the function's requirement the event is valid during the call.
    let event = unsafe { &*event };
    match event.event {
        // On iWARP TCP retransmits the disconnection, also when the id is gone.
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_ESTABLISHED => {
            // SAFETY: The id is valid and its handler mutex held during the call.
            let device = unsafe { IdRef::new(id) }.device();
            let iwarp = device.is_ok_and(|device| device.transport() == Transport::Iwarp);
            context.set_connected(!iwarp);
            if context.parameters.reads {
                // SAFETY: A client's event of this type carries connection parameters.
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
    if context.closed.get() {
        if event.event == bindings::rdma_cm_event_type_RDMA_CM_EVENT_ESTABLISHED {
            // It was not yet a connection when the teardown disconnected it.
            // SAFETY: The id is valid and its handler mutex held during the call.
            unsafe { bindings::rdma_disconnect(id.as_ptr()) };
        }
        return 0;
    }

    let status = to_result(event.status).err().unwrap_or(EIO);
    let happened = match event.event {
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_ADDR_RESOLVED => Event::AddressResolved,
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_ROUTE_RESOLVED => Event::RouteResolved,
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_ESTABLISHED => Event::Established {
            // SAFETY: This type of event carries connection parameters.
            private_data: unsafe { private_data(event) },
        },
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_ADDR_ERROR => Event::AddressUnresolved(status),
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_ROUTE_ERROR
        | bindings::rdma_cm_event_type_RDMA_CM_EVENT_CONNECT_ERROR
        | bindings::rdma_cm_event_type_RDMA_CM_EVENT_UNREACHABLE => Event::Failed(status),
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_REJECTED => {
            // SAFETY: The id is valid, and the function takes any status.
            let reason = unsafe { bindings::rdma_reject_msg(id.as_ptr(), event.status) };
            Event::Rejected {
                // SAFETY: The function returns a static string.
                reason: unsafe { CStr::from_char_ptr(reason) },
            }
        }
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_DISCONNECTED => Event::Disconnected,
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_ADDR_CHANGE => Event::AddressChanged,
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_DEVICE_REMOVAL => Event::DeviceRemoved,
        _ => return 0,
    };
    // SAFETY: The id is valid, the context is its, and its handler mutex is held during the call.
    let mut handler_id = unsafe { HandlerId::new(context, id) };
    context.handler.event(&mut handler_id, happened);

    // Not zero would have rdma_cm destroy the id, whose owner does that.
    0
}
