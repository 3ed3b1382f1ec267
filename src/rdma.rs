// SPDX-License-Identifier: GPL-2.0

//! A safe abstraction of rdma_cm, and of the verbs that a connection needs.
//!
//! A client makes an [`UnresolvedId`](cm::unresolved_id::UnresolvedId), which becomes a
//! [`CmId`](cm::cm_id::CmId) when it begins to resolve its peer's address. A server has a
//! [`CmListener`](cm::cm_listener::CmListener), and a `CmId` for each request that it accepts.
//! Dropping a `CmId` ends the connection. [`HandlerId`](cm::handler_id::HandlerId) and
//! [`Request`](cm::request::Request) exist only in a handler: they prove that rdma_cm holds the
//! id's handler mutex. [`ResolvedId`](cm::resolved_id::ResolvedId) exists only in a work: its
//! methods may wait for peers and for memory.
//! [`PendingRequest`](cm::pending_request::PendingRequest) exists only in a work, too, except over
//! soft-iWARP, where it exists in the handler of the request. It holds the handler mutex while it
//! accepts, in either case.
//!
//! A handler takes a message where the Receive completes. There, it uses the queue pair by the
//! methods of [`CompletionContext`](messages::completion_context::CompletionContext).
//!
//! [`verbs`] has the objects of the verbs, each of which keeps those that it needs. [`cm`] has the
//! ids, whose queue pairs are of any type that is a
//! [`ConnectionQueuePair`](cm::connection_queue_pair::ConnectionQueuePair). [`messages`] has such a
//! type, and what RPC-over-RDMA needs: Receives and Sends with their buffers, one other operation
//! at a time, and time limits. [`registration`] gives the peer access to memory. The last two have
//! the policy; [`verbs`] and [`cm`] have none, and import neither.
//!
//! The [`MessageQueuePair`](messages::message_queue_pair::MessageQueuePair) of an id is used by a
//! [`Handle`](crate::base::draining::Handle), with the permission to wait:
//! [`MayWait`](crate::base::wait::MayWait). Destroying the id, and removing its device, waits until
//! each use has ended.
//!
//! The users of this layer choose names, limits and times, by
//! [`Parameters`](cm::parameters::Parameters), [`Setup`](messages::setup::Setup) and arguments.
//! They also make the [`UnloadGuard`](crate::base::unload::UnloadGuard), without which no id can be
//! made.
//!
//! No address of kernel memory is sent to a peer: see
//! [`Registration`](registration::Registration), and `shim_transfer_init` in shim.c.
//!
//! src/rdma/workarounds.c works around gaps and faults of the RDMA core. It names, for each
//! workaround, the report after whose fix it can be removed.
//!
//! C headers: [`include/rdma/rdma_cm.h`](srctree/include/rdma/rdma_cm.h),
//! [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

pub(crate) mod cm;
pub(crate) mod messages;
pub(crate) mod registration;
pub(crate) mod verbs;
