// SPDX-License-Identifier: GPL-2.0

//! Delivers the events of a connection's id to its handler.

use core::ptr::NonNull;

use kernel::{
    ffi::c_int,
    sync::ArcBorrow, //
};

use super::{
    connection_queue_pair::ConnectionQueuePair,
    context::{
        Client,
        Context, //
    },
    event::{
        translate,
        ConnectionHandler, //
    },
    handler_id::HandlerId,
    id_ref::IdRef, //
};
use crate::{
    bindings,
    rdma::verbs::device::Transport, //
};

/// Notes whether the teardown has to wait for the peer from now on and, if the id may read, how
/// many RDMA Reads the peer serves. May sleep.
///
/// # Safety
///
/// rdma_cm must be delivering `event`.
unsafe fn note_connected<H: ConnectionHandler>(
    context: ArcBorrow<'_, Context<H>>,
    id: &IdRef<'_>,
    event: &bindings::rdma_cm_event,
) {
    match event.event {
        // On iWARP the teardown need not wait for the peer: TCP retransmits the disconnection, even
        // when the id is gone.
        bindings::rdma_cm_event_type_RDMA_CM_EVENT_ESTABLISHED => {
            let port = id.port();
            let iwarp = port.is_ok_and(|port| port.transport() == Transport::Iwarp);
            context.set_connected(!iwarp);
            let reads = |client: &Client<H>| client.parameters.reads;
            if context.client.as_ref().is_some_and(reads) {
                // SAFETY: By the function's requirement rdma_cm delivers the event. This type of
                // event carries connection parameters.
                let answer = unsafe { &event.param.conn };
                let depth = if iwarp {
                    // Drivers of iWARP do not agree which is which: siw and cxgb4 differ.
                    answer.initiator_depth.min(answer.responder_resources)
                } else {
                    answer.initiator_depth
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

/// Handles an event of a connection's id. Returns 0, so that rdma_cm does not destroy the id.
///
/// # Safety
///
/// Called only by rdma_cm, with an id whose context is a [`Context<H>`] of an
/// [`Arc`](kernel::sync::Arc), and with its handler mutex held.
pub(super) unsafe extern "C" fn connection_event<H: ConnectionHandler>(
    id: *mut bindings::rdma_cm_id,
    event: *mut bindings::rdma_cm_event,
) -> c_int {
    // SAFETY: rdma_cm passes a valid id, which is not NULL.
    let id = unsafe { NonNull::new_unchecked(id) };
    // SAFETY: rdma_cm passes a valid id, and the handler mutex, which is held, guards this member.
    let context = unsafe { (*id.as_ptr()).context };
    // SAFETY: By the function's requirement the context is of this type. The owner of the id, and
    // then the teardown, holds a reference until the id has been destroyed. That waits for this
    // call.
    let context = unsafe { ArcBorrow::from_raw(context.cast::<Context<H>>()) };
    // SAFETY: rdma_cm passes an event that is valid during the call.
    let event = unsafe { &*event };
    // SAFETY: During the call the id is valid, and its handler mutex is held.
    let id_ref = unsafe { IdRef::new(id) };
    // SAFETY: During the call, rdma_cm delivers this event.
    unsafe { note_connected(context, &id_ref, event) };
    if context.closed.get() {
        if event.event == bindings::rdma_cm_event_type_RDMA_CM_EVENT_ESTABLISHED {
            // The connection was not established yet when the teardown disconnected it.
            // SAFETY: The id is valid during the call.
            unsafe { bindings::rdma_disconnect(id.as_ptr()) };
        }
        return 0;
    }

    if event.event == bindings::rdma_cm_event_type_RDMA_CM_EVENT_ROUTE_RESOLVED {
        context.begin_connect();
        return 0;
    }
    // SAFETY: During the call, rdma_cm delivers this event for this id.
    if let Some(event) = unsafe { translate(&id_ref, event) } {
        let mut id = HandlerId::new(&context.queue_pair, id_ref);
        context.handler.event(&mut id, event);
    }

    // With another value, rdma_cm would destroy the id. Its owner does that.
    0
}

/// Handles the events of a request's id before a work has accepted it. If the peer gives up, or the
/// device is removed, `rdma_accept()` fails. Returns 0, so that rdma_cm does not destroy the id.
pub(super) extern "C" fn ignore_event(
    _id: *mut bindings::rdma_cm_id,
    _event: *mut bindings::rdma_cm_event,
) -> c_int {
    0
}
