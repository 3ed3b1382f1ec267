// SPDX-License-Identifier: GPL-2.0

//! Errors that the kernel crate has no constant for.
//!
//! Superfluous with a kernel whose `kernel::error::code` has all errnos.

use kernel::prelude::*;

/// Creates an [`Error`] from one of the unsigned errno constants of the kernel crate.
pub(crate) fn errno(errno: u32) -> Error {
    Error::from_errno(-(errno as i32))
}
