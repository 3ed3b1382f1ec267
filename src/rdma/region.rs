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

use super::{
    arrival::Invalidated,
    completion_handler::CompletionHandler,
    moment::Moment,
    piece::Piece,
    protection_domain::ProtectionDomain,
    purpose::Purpose,
    queue_pair::QueuePair,
    unload::Hold, //
};
use crate::bindings;

/// A memory region of the device's. [`Region::end`] must be called, as dropping it ends nothing.
///
/// # Examples
///
/// ```no_run
/// # let (queue_pair, xid): (&QueuePair<MyEndpoint>, u32) = given();
/// # let (pages, list): (u32, KVec<kernel::bindings::scatterlist>) = given();
/// // SAFETY: The blocks that the list describes are freed only where `end` says so.
/// let mut region = unsafe { Region::new(queue_pair, Purpose::Read, pages, list) }?;
/// region.register(u64::from(xid) << 32)?;
/// let piece = region.piece();
/// // ... the peer makes use of it ...
/// region.invalidate(None)?;
/// let may_be_freed = region.end();
/// ```
///
/// # Invariants
///
/// `mr` is a memory region that this owns. `list` describes memory that stays until [`Region::end`]
/// has returned `true`. It is mapped for the device where `mapped`, and does not change then.
pub(super) struct Region<'a, C: CompletionHandler> {
    queue_pair: &'a QueuePair<C>,
    purpose: Purpose,
    mr: NonNull<bindings::ib_mr>,
    list: KVec<scatterlist>,
    mapped: bool,
    /// Whether the peer may use it, as far as this side knows.
    valid: bool,
    /// When the peer was given access last.
    registered: Moment,
    /// The offset of the first octet, for the peer.
    offset: u64,
    /// Deallocated after the region; never where that is leaked.
    domain: Arc<ProtectionDomain>,
    /// The kernel knows the region by the name of its owner, which is in the module: where the
    /// region is forgotten, the module stays. Dropped last.
    _hold: Hold,
}

impl<'a, C: CompletionHandler> Region<'a, C> {
    /// Makes a region of up to `pages` pages, which is not registered.
    ///
    /// # Safety
    ///
    /// The memory that `list` describes must stay until [`Self::end`] has returned `true`.
    pub(super) unsafe fn new(
        queue_pair: &'a QueuePair<C>,
        purpose: Purpose,
        pages: u32,
        list: KVec<scatterlist>,
    ) -> Result<Self> {
        let hold = Hold::new()?;
        let domain = queue_pair.domain().clone();
        // SAFETY: The region holds a reference on the protection domain.
        let mr = unsafe {
            bindings::ib_alloc_mr(
                domain.as_ptr(),
                bindings::ib_mr_type_IB_MR_TYPE_MEM_REG,
                pages,
            )
        };
        // INVARIANT: The function returned no error, so a new region. Nothing is mapped.
        Ok(Self {
            queue_pair,
            purpose,
            mr: NonNull::new(from_err_ptr(mr)?).ok_or(ENOMEM)?,
            list,
            mapped: false,
            valid: false,
            registered: Moment::now(),
            offset: 0,
            domain,
            _hold: hold,
        })
    }

    /// Gives the peer access to the memory, at `offset`, which is aligned to pages. May sleep.
    ///
    /// Fails with `ENOMEM` or `EIO` where it cannot be mapped; otherwise the connection is lost.
    pub(super) fn register(&mut self, offset: u64) -> Result {
        let entries = c_int::try_from(self.list.len())?;
        // SAFETY: The queue pair keeps its device; the list is ours, and not mapped.
        let entries = unsafe {
            bindings::shim_dma_map_sg(
                self.queue_pair.device(),
                self.list.as_mut_ptr(),
                entries,
                self.purpose.direction(),
            )
        };
        if entries <= 0 {
            return Err(ENOMEM);
        }
        // INVARIANT: Mapped above.
        self.mapped = true;

        // SAFETY: The region is ours, the list mapped, with that many entries.
        let taken = unsafe {
            bindings::ib_map_mr_sg(
                self.mr.as_ptr(),
                self.list.as_mut_ptr(),
                entries,
                ptr::null_mut(),
                PAGE_SIZE as u32,
            )
        };
        to_result(taken)?;
        if taken != entries {
            return Err(EIO);
        }
        // SAFETY: The region is ours, mapped, and not registered.
        self.offset = unsafe { bindings::shim_mr_set_iova(self.mr.as_ptr(), offset) };
        // SAFETY: The region is ours, and not registered.
        unsafe { bindings::shim_mr_next_key(self.mr.as_ptr()) };
        let access = self.purpose.access();
        self.valid = true;
        // SAFETY: The region is of the queue pair's domain. `end` leaks it if the operation is
        // abandoned.
        unsafe { self.queue_pair.register(self.mr, self.stag(), access) }?;
        // The completions of messages that arrived before have been handled before that of the
        // registration.
        self.registered = Moment::now();
        Ok(())
    }

    /// Takes the access from the peer, which has done so itself for `remotely`. Returns whether the
    /// region had to be invalidated here. May sleep.
    ///
    /// Where this fails, the connection is lost.
    pub(super) fn invalidate(&mut self, remotely: Option<Invalidated>) -> Result<bool> {
        let remotely = remotely.is_some_and(|invalidated| {
            invalidated.has_ended(self.queue_pair.made(), self.stag(), self.registered)
        });
        let locally = self.valid && !remotely;
        if locally {
            self.queue_pair.invalidate(self.stag())?;
        }
        self.valid = false;
        self.unmap();
        Ok(locally)
    }

    /// Whether the device has, or may still have, access to the memory.
    pub(super) fn is_mapped(&self) -> bool {
        self.mapped
    }

    fn unmap(&mut self) {
        if self.mapped {
            self.mapped = false;
            // SAFETY: By the type invariant the list is mapped, with this number of entries.
            unsafe {
                bindings::shim_dma_unmap_sg(
                    self.queue_pair.device(),
                    self.list.as_mut_ptr(),
                    self.list.len() as c_int,
                    self.purpose.direction(),
                )
            };
        }
    }

    fn stag(&self) -> u32 {
        // SAFETY: By the type invariant it is valid.
        unsafe { bindings::shim_mr_rkey(self.mr.as_ptr()) }
    }

    /// Returns its description for the peer.
    pub(super) fn piece(&self) -> Piece {
        Piece {
            stag: self.stag(),
            // SAFETY: By the type invariant it is valid.
            len: unsafe { bindings::shim_mr_length(self.mr.as_ptr()) },
            offset: self.offset,
        }
    }

    /// Ends the region, and with it any access that the peer still has. Returns whether the memory
    /// may be freed: where not, the device may still access it, and the region is leaked.
    pub(super) fn end(mut self) -> bool {
        // An abandoned operation may refer to the region, and the region to the memory.
        let in_use = self.mapped && self.queue_pair.is_abandoned();
        // SAFETY: By the type invariant it is ours, and it is not used again.
        if in_use || unsafe { bindings::ib_dereg_mr_user(self.mr.as_ptr(), ptr::null_mut()) } != 0 {
            pr_warn!("a device keeps a memory region: leaking its memory\n");
            // SAFETY: By the type invariant it is valid, as it was not deregistered.
            unsafe { bindings::shim_disown_mr(self.mr.as_ptr()) };
            ProtectionDomain::leak(self.domain);
            return false;
        }
        self.unmap();
        true
    }
}
