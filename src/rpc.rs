// SPDX-License-Identifier: GPL-2.0

//! RPC-over-RDMA (RFC 8166) on a queue pair, in versions 1 and 2.
//!
//! An [`Endpoint`](endpoint::Endpoint) is one end of it, for the life of one queue pair. Its
//! [`requester`] makes each [`outgoing_call`] and decodes the [`reply`]. Its [`responder`] answers
//! the calls of the peer. An endpoint is independent of how its connection was set up.

pub(crate) mod endpoint;
mod first_calls;
mod outgoing_call;
mod payload;
mod pending;
mod reply;
pub(crate) mod requester;
mod responder;
mod version;
mod xids;
