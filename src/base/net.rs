// SPDX-License-Identifier: GPL-2.0

//! Network namespaces.
//!
//! Superfluous with a kernel whose crate has network namespaces with references.
//!
//! C header: [`include/net/net_namespace.h`](srctree/include/net/net_namespace.h)

use core::ptr::NonNull;

use kernel::{
    prelude::*,
    sync::aref::{
        ARef,
        AlwaysRefCounted, //
    },
    types::Opaque, //
};

use crate::bindings;

/// A network namespace (`struct net`).
///
/// # Examples
///
/// ```no_run
/// let net: ARef<Net> = Net::current()?;
/// let index = net.interface_index(c"eth0");
/// ```
///
/// # Invariants
///
/// The reference count of the namespace is not zero.
#[repr(transparent)]
pub(crate) struct Net(Opaque<bindings::net>);

// SAFETY: `put_net()` may be called by any thread: the last reference only queues the cleanup.
unsafe impl Send for Net {}
// SAFETY: The count is atomic, and RCU guards the list of interfaces.
unsafe impl Sync for Net {}

// SAFETY: A namespace stays in memory as long as its count is not zero.
unsafe impl AlwaysRefCounted for Net {
    #[inline]
    fn inc_ref(&self) {
        // SAFETY: By the type invariant the count is not zero.
        unsafe { bindings::shim_get_net(self.as_ptr()) };
    }

    #[inline]
    unsafe fn dec_ref(net: NonNull<Self>) {
        // SAFETY: By the function's requirement the caller owns a reference.
        unsafe { bindings::shim_put_net(net.as_ptr().cast()) };
    }
}

impl Net {
    /// Returns the network namespace of the calling task; process context only.
    ///
    /// Fails with `EINVAL` if the task is exiting, and has left its namespaces.
    pub(crate) fn current() -> Result<ARef<Self>> {
        // SAFETY: No requirement: if the task has left its namespaces, the function returns NULL.
        let net = unsafe { bindings::shim_get_current_net() };

        // INVARIANT: The function has taken a reference, so the count is not zero.
        // SAFETY: That reference is handed over. `Net` is a transparent wrapper.
        let owned = |net: NonNull<bindings::net>| unsafe { ARef::from_raw(net.cast()) };
        NonNull::new(net).map(owned).ok_or(EINVAL)
    }

    /// Returns the index of the interface called `name`; [`None`] if there is none. Any context.
    pub(crate) fn interface_index(&self, name: &CStr) -> Option<u32> {
        // SAFETY: By the type invariant the namespace is valid, and `name` is a C string.
        let index = unsafe { bindings::shim_ifindex(self.as_ptr(), name.as_char_ptr()) };

        u32::try_from(index).ok().filter(|&index| index != 0)
    }

    /// Returns a pointer to the namespace, valid as long as `self` is.
    #[inline]
    pub(crate) fn as_ptr(&self) -> *mut bindings::net {
        self.0.get()
    }
}
