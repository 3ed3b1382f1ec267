// SPDX-License-Identifier: GPL-2.0

//! The objects of the verbs: a device, what is allocated of it, and memory for it.

pub(in crate::rdma) mod buffer;
pub(in crate::rdma) mod completion_queue;
pub(in crate::rdma) mod cqe;
pub(crate) mod device;
mod device_name;
pub(crate) mod memory;
pub(in crate::rdma) mod memory_region;
pub(in crate::rdma) mod protection_domain;
pub(in crate::rdma) mod queue_pair;
mod transport;
