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
    sync::{
        aref::ARef,
        atomic::{
            AtomicFlag,
            Relaxed, //
        },
        Arc, //
    }, //
};

use super::device::Device;
use crate::bindings;

/// A protection domain (`struct ib_pd`). Each object in it holds a reference, so that the domain is
/// deallocated after them.
///
/// # Examples
///
/// ```no_run
/// # let device: &Device = given();
/// let domain = ProtectionDomain::new(device, c"my_module")?;
/// ```
///
/// # Invariants
///
/// `pd` is a protection domain of `device` that this owns.
pub(in crate::rdma) struct ProtectionDomain {
    pd: NonNull<bindings::ib_pd>,
    /// Whether an object in the domain was leaked, so that the domain cannot be deallocated.
    leaked: AtomicFlag,
    // Dropped last: until then the device stays.
    device: ARef<Device>,
}

// SAFETY: The verbs may be called by another thread than the one that made the object.
unsafe impl Send for ProtectionDomain {}
// SAFETY: `&ProtectionDomain` offers only verbs, which are reentrant
// (Documentation/infiniband/core_locking.rst), and members that do not change.
unsafe impl Sync for ProtectionDomain {}

impl ProtectionDomain {
    /// Allocates a protection domain of `device`, which the resource tracker lists under the name
    /// `owner`. May sleep.
    ///
    /// Fails with `ENOMEM`, or with the error of the device.
    pub(in crate::rdma) fn new(device: &Device, owner: &'static CStr) -> Result<Arc<Self>> {
        // SAFETY: The device is there as long as `device` is; the name is static.
        let pd = unsafe { bindings::__ib_alloc_pd(device.as_ptr(), 0, owner.as_char_ptr()) };

        // INVARIANT: The C function returned no error, so a new protection domain.
        let this = Self {
            pd: NonNull::new(from_err_ptr(pd)?).ok_or(ENOMEM)?,
            leaked: AtomicFlag::new(false),
            device: device.into(),
        };
        Ok(Arc::new(this, GFP_KERNEL)?)
    }

    /// Returns the device of the domain.
    #[inline]
    pub(in crate::rdma) fn device(&self) -> &Device {
        &self.device
    }

    /// Returns the local key of all memory that is mapped for the device.
    #[inline]
    pub(in crate::rdma) fn local_dma_lkey(&self) -> u32 {
        // SAFETY: By the type invariant it is valid.
        unsafe { bindings::shim_local_dma_lkey(self.as_ptr()) }
    }

    /// Leaks the domain, because an object in it was leaked.
    pub(in crate::rdma) fn leak(&self) {
        self.leaked.store(true, Relaxed);
        // SAFETY: By the type invariant it is valid.
        unsafe { bindings::workaround_disown_pd(self.as_ptr()) };
    }

    #[inline]
    pub(in crate::rdma) fn as_ptr(&self) -> *mut bindings::ib_pd {
        self.pd.as_ptr()
    }
}

impl Drop for ProtectionDomain {
    fn drop(&mut self) {
        if !self.leaked.load(Relaxed) {
            // SAFETY: By the type invariant this owns the domain. Each object in it held a
            // reference, so they are all gone.
            if unsafe { bindings::ib_dealloc_pd_user(self.as_ptr(), ptr::null_mut()) } == 0 {
                return;
            }
            self.leak();
            pr_warn!("a device keeps a protection domain: leaking it\n");
        }
        // The device stays, because it has what was leaked.
        mem::forget(self.device.clone());
    }
}
