// SPDX-License-Identifier: GPL-2.0

//! The ids of rdma_cm, their events, and what is legal in a handler.

pub(crate) mod cm_id;
pub(crate) mod cm_listener;
pub(crate) mod connection_queue_pair;
mod context;
mod dispatch;
pub(crate) mod event;
pub(crate) mod handler_id;
pub(crate) mod id_ref;
pub(crate) mod parameters;
pub(crate) mod pending_request;
pub(crate) mod request;
pub(crate) mod resolved_id;
pub(crate) mod unresolved_id;
