// SPDX-License-Identifier: GPL-2.0

//! The files of src/base that need no device.

#[allow(dead_code)]
#[path = "../src/base/draining.rs"]
pub(crate) mod draining;
#[path = "../src/base/errno.rs"]
pub(crate) mod errno;
#[path = "../src/base/wait.rs"]
pub(crate) mod wait;
