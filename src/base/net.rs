// SPDX-License-Identifier: GPL-2.0

//! Network namespaces.
//!
//! Superfluous with a kernel whose crate has network namespaces with references.
//!
//! C header: [`include/net/net_namespace.h`](srctree/include/net/net_namespace.h)

use core::ptr::NonNull;

use kernel::prelude::*;

use crate::bindings;

/// A reference on a network namespace.
///
/// # Examples
///
/// ```no_run
/// let net = Net::current()?;
/// let index = net.interface_index(c"eth0");
/// ```
///
/// # Invariants
///
/// The pointer is valid, and this owns one reference on that namespace.
pub(crate) struct Net(NonNull<bindings::net>);

// SAFETY: References on a namespace are counted atomically and belong to no thread.
unsafe impl Send for Net {}
// SAFETY: Nothing that `&Net` offers is bound to a thread.
unsafe impl Sync for Net {}

impl Net {
    /// Returns the network namespace of the calling task; process context only.
    ///
    /// Fails with `EINVAL` if the task is exiting, and has left its namespaces.
    pub(crate) fn current() -> Result<Self> {
        // SAFETY: No requirement: if the task has left its namespaces, the function returns NULL.
        let net = unsafe { bindings::shim_get_current_net() };

        // INVARIANT: The function has taken a reference for its caller.
        NonNull::new(net).map(Self).ok_or(EINVAL)
    }

    /// Returns the index of the interface called `name`; [`None`] if there is none.
    pub(crate) fn interface_index(&self, name: &CStr) -> Option<u32> {
        // SAFETY: By the type invariant the namespace is valid, and `name` is a C string.
        let index = unsafe { bindings::shim_ifindex(self.as_ptr(), name.as_char_ptr()) };

        u32::try_from(index).ok().filter(|&index| index != 0)
    }

    pub(crate) fn as_ptr(&self) -> *mut bindings::net {
        self.0.as_ptr()
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        // SAFETY: By the type invariant this owns the reference, and it is not used again.
        unsafe { bindings::shim_put_net(self.as_ptr()) };
    }
}
