// SPDX-License-Identifier: GPL-2.0

//! The ids of rdma_cm, their events, and what is legal in a handler.

pub(crate) mod cm_id;
pub(crate) mod cm_listener;
mod context;
mod dispatch;
pub(crate) mod event;
pub(crate) mod handler_id;
pub(crate) mod id_ref;
pub(crate) mod pending_request;
pub(crate) mod request;
pub(crate) mod resolved_id;
pub(crate) mod unresolved_id;
