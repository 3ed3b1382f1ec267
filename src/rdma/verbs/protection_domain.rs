// SPDX-License-Identifier: GPL-2.0

//! Protection domains.

use core::{
    mem,
    ptr::{
        self,
        NonNull, //
    }, //
};

use kernel::{
    error::from_err_ptr,
    prelude::*,
    sync::Arc, //
};

use super::device::Device;
use crate::bindings;

/// A protection domain. Each object in it holds a reference, so that the domain is deallocated
/// after them, and stays if one of them is leaked.
///
/// # Examples
///
/// ```no_run
/// # let device: Device<'_> = given();
/// // SAFETY: The id keeps the device, and is destroyed after the domain.
/// let domain = Arc::new(unsafe { ProtectionDomain::new(device, c"my_module") }?, GFP_KERNEL)?;
/// ```
///
/// # Invariants
///
/// The pointer is to a protection domain that this owns. Its device stays as long as this does.
pub(in crate::rdma) struct ProtectionDomain(NonNull<bindings::ib_pd>);

// SAFETY: The objects of the verbs belong to no thread.
unsafe impl Send for ProtectionDomain {}
// SAFETY: The functions of the verbs may be called from several threads at a time.
unsafe impl Sync for ProtectionDomain {}

impl ProtectionDomain {
    /// Allocates a protection domain of `device`, which the resource tracker lists under the name
    /// `owner`. May sleep.
    ///
    /// # Safety
    ///
    /// The device must stay until the domain has been dropped.
    pub(in crate::rdma) unsafe fn new(device: Device<'_>, owner: &'static CStr) -> Result<Self> {
        // SAFETY: The device is there as long as `device` is; the name is static.
        let pd = unsafe { bindings::__ib_alloc_pd(device.as_ptr(), 0, owner.as_char_ptr()) };

        // INVARIANT: The C function returned no error, so a new protection domain. By this
        // function's requirement the device stays.
        Ok(Self(NonNull::new(from_err_ptr(pd)?).ok_or(ENOMEM)?))
    }

    /// Returns the local key of all memory that is mapped for the device.
    pub(in crate::rdma) fn local_dma_lkey(&self) -> u32 {
        // SAFETY: By the type invariant it is valid.
        unsafe { bindings::shim_local_dma_lkey(self.as_ptr()) }
    }

    /// Prepares the domain for being leaked: replaces the name of its owner, which is in the memory
    /// of the module.
    pub(in crate::rdma) fn disown(&self) {
        // SAFETY: By the type invariant it is valid.
        unsafe { bindings::workaround_disown_pd(self.as_ptr()) };
    }

    /// Leaks the domain, together with an object in it.
    pub(in crate::rdma) fn leak(domain: Arc<Self>) {
        domain.disown();
        mem::forget(domain);
    }

    pub(in crate::rdma) fn as_ptr(&self) -> *mut bindings::ib_pd {
        self.0.as_ptr()
    }
}

impl Drop for ProtectionDomain {
    fn drop(&mut self) {
        // SAFETY: By the type invariant this owns the domain. Each object in it held a reference,
        // so they are all gone.
        if unsafe { bindings::ib_dealloc_pd_user(self.as_ptr(), ptr::null_mut()) } != 0 {
            self.disown();
            pr_warn!("a device keeps a protection domain: leaking it\n");
        }
    }
}
