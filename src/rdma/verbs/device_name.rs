// SPDX-License-Identifier: GPL-2.0

//! Names of RDMA devices.

use core::fmt;

use crate::bindings;

/// The length of a device's name in bytes with its NUL.
pub(in crate::rdma) const NAME_LEN: usize = bindings::IB_DEVICE_NAME_MAX as usize;

/// A device's name.
///
/// # Examples
///
/// ```no_run
/// # let (id, out): (&IdRef<'_>, &mut dyn fmt::Write) = given();
/// writeln!(out, "bound to {}", id.port()?.name())?;
/// ```
#[derive(Clone, Copy)]
pub(crate) struct DeviceName([u8; NAME_LEN]);

impl DeviceName {
    /// Takes a name as the kernel stores it: bytes after the first NUL do not count.
    #[inline]
    pub(crate) fn from_bytes(bytes: [u8; NAME_LEN]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.0.split(|&byte| byte == 0).next().unwrap_or_default();
        f.pad(core::str::from_utf8(name).unwrap_or("?"))
    }
}
