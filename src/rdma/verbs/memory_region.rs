// SPDX-License-Identifier: GPL-2.0

//! Memory regions.

use core::ptr::{
    self,
    NonNull, //
};

use kernel::{
    bindings::scatterlist,
    error::{
        from_err_ptr,
        to_result, //
    },
    ffi::c_int,
    page::PAGE_SIZE,
    prelude::*,
    sync::Arc, //
};

use super::protection_domain::ProtectionDomain;
use crate::{
    base::unload::Hold,
    bindings, //
};

/// A memory region (`struct ib_mr`). Dropping it deregisters it, which also ends the access that a
/// peer has to it.
///
/// # Examples
///
/// ```no_run
/// # let (domain, hold): (Arc<ProtectionDomain>, &Hold) = given();
/// let region = MemoryRegion::new(&domain, 16, hold)?;
/// let rkey = region.rkey();
/// ```
///
/// # Invariants
///
/// `mr` is a memory region of `domain` that this owns, unless `ended` is set.
pub(in crate::rdma) struct MemoryRegion {
    mr: NonNull<bindings::ib_mr>,
    /// Whether it has been deregistered or leaked, and must not be used.
    ended: bool,
    /// Deallocated after the region; never if the region is leaked.
    domain: Arc<ProtectionDomain>,
    /// The resource tracker prints the name of the region's owner, which is in the memory of the
    /// module. So the module must stay if the region is forgotten.
    _hold: Hold,
}

impl MemoryRegion {
    /// Allocates a region of up to `pages` pages, which maps nothing. May sleep.
    ///
    /// Fails with `ENOMEM`, or with `EIO` if the device makes no region.
    pub(in crate::rdma) fn new(
        domain: &Arc<ProtectionDomain>,
        pages: u32,
        hold: &Hold,
    ) -> Result<Self> {
        // SAFETY: The domain is valid, and the new region keeps it.
        let mr = unsafe {
            bindings::ib_alloc_mr(
                domain.as_ptr(),
                bindings::ib_mr_type_IB_MR_TYPE_MEM_REG,
                pages,
            )
        };
        let mr = from_err_ptr(mr).map_err(of_device)?;
        // INVARIANT: The C function returned no error, so a new region.
        Ok(Self {
            mr: NonNull::new(mr).ok_or(ENOMEM)?,
            ended: false,
            domain: domain.clone(),
            _hold: hold.clone(),
        })
    }

    /// Maps the memory that the first `entries` entries of `list` describe, at the offset `offset`,
    /// which is a multiple of the length of a page. Returns the offset of the first byte. Changes
    /// the rkey.
    ///
    /// Fails with `ENOMEM`, or with `EIO` if the device cannot map all entries.
    ///
    /// # Safety
    ///
    /// The entries must be mapped for the device. The region must not be registered.
    pub(in crate::rdma) unsafe fn map(
        &mut self,
        list: *mut scatterlist,
        entries: c_int,
        offset: u64,
    ) -> Result<u64> {
        let no_offset = ptr::null_mut();
        // SAFETY: By the type invariant the region is valid. By the function's requirement the list
        // is mapped, with that many entries.
        let taken = unsafe {
            bindings::ib_map_mr_sg(self.as_ptr(), list, entries, no_offset, PAGE_SIZE as u32)
        };
        to_result(taken).map_err(of_device)?;
        if taken != entries {
            return Err(EIO);
        }
        // SAFETY: The region is mapped, and by the function's requirement not registered.
        let offset = unsafe { bindings::shim_mr_set_iova(self.as_ptr(), offset) };
        // SAFETY: The region is valid, and not registered.
        unsafe { bindings::shim_mr_next_key(self.as_ptr()) };
        Ok(offset)
    }

    /// Returns the key by which the peer addresses the region.
    #[inline]
    pub(in crate::rdma) fn rkey(&self) -> u32 {
        // SAFETY: By the type invariant it is valid.
        unsafe { bindings::shim_mr_rkey(self.as_ptr()) }
    }

    /// Returns the length of the memory that is mapped, in bytes.
    #[inline]
    pub(in crate::rdma) fn len(&self) -> u32 {
        // SAFETY: By the type invariant it is valid.
        unsafe { bindings::shim_mr_length(self.as_ptr()) }
    }

    /// Deregisters the region. Returns whether the device has done that. If not, the region is
    /// leaked, and the device may still access the memory. May sleep.
    pub(in crate::rdma) fn deregister(mut self) -> bool {
        self.end()
    }

    /// Leaks the region, because the device may still use it.
    pub(in crate::rdma) fn leak(mut self) {
        self.disown();
    }

    fn end(&mut self) -> bool {
        // SAFETY: By the type invariant this owns the region. It is not used again if the function
        // succeeds.
        let kept = unsafe { bindings::ib_dereg_mr_user(self.as_ptr(), ptr::null_mut()) } != 0;
        if kept {
            self.disown();
        }
        self.ended = true;
        !kept
    }

    fn disown(&mut self) {
        pr_warn!("a device keeps a memory region: leaking its memory\n");
        // SAFETY: The region is valid, as it was not deregistered.
        unsafe { bindings::workaround_disown_mr(self.as_ptr()) };
        self.ended = true;
        self.domain.leak();
    }

    #[inline]
    pub(in crate::rdma) fn as_ptr(&self) -> *mut bindings::ib_mr {
        self.mr.as_ptr()
    }
}

impl Drop for MemoryRegion {
    fn drop(&mut self) {
        if !self.ended {
            self.end();
        }
    }
}

/// Returns the error for `error` of a device, which may be one that has another meaning here.
fn of_device(error: Error) -> Error {
    if error == ENOMEM {
        ENOMEM
    } else {
        EIO
    }
}
