// SPDX-License-Identifier: GPL-2.0

//! The verbs that a connection needs: a device, a queue pair, its messages and transfers.

pub(crate) mod arrival;
pub(in crate::rdma) mod buffer;
pub(crate) mod capacity;
pub(crate) mod completion_context;
pub(crate) mod completion_handler;
pub(in crate::rdma) mod completion_queue;
pub(crate) mod device;
mod device_name;
pub(crate) mod fault_handler;
pub(crate) mod memory;
pub(in crate::rdma) mod memory_region;
pub(in crate::rdma) mod operation;
pub(crate) mod parameters;
pub(in crate::rdma) mod protection_domain;
pub(crate) mod queue_pair;
pub(in crate::rdma) mod receive;
pub(crate) mod send_buffer;
pub(crate) mod send_queue;
pub(in crate::rdma) mod seqno;
pub(crate) mod transfer;
mod transport;
