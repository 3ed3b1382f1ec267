// SPDX-License-Identifier: GPL-2.0

//! Messages and transfers on a queue pair: its Receives, Sends, operations, limits and times.

pub(crate) mod arrival;
pub(crate) mod capacity;
pub(crate) mod completion_context;
pub(crate) mod completion_handler;
pub(crate) mod fault_handler;
pub(crate) mod message_queue_pair;
pub(in crate::rdma) mod operation;
pub(in crate::rdma) mod receive;
pub(crate) mod send_buffer;
pub(crate) mod send_queue;
pub(in crate::rdma) mod seqno;
pub(crate) mod setup;
pub(crate) mod transfer;
