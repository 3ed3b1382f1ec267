// SPDX-License-Identifier: GPL-2.0

//! Additions to the kernel crate, apart from RDMA. Each file says when the kernel crate makes it
//! superfluous; of these, 7.3 has only the errnos.

pub(crate) mod address;
mod delayed_work;
pub(crate) mod draining;
pub(crate) mod errno;
pub(crate) mod net;
pub(crate) mod unload;
pub(crate) mod wait;
pub(crate) mod work_queue;
