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
    piece::Piece,
    remote_access::RemoteAccess, //
};
use crate::{
    base::unload::Hold,
    bindings,
    rdma::verbs::{
        arrival::Invalidated,
        completion_handler::CompletionHandler,
        protection_domain::ProtectionDomain,
        queue_pair::QueuePair,
        seqno::Seqno, //
    }, //
};

/// A memory region of the device. [`Region::end`] must be called: dropping the region leaks it.
///
/// # Examples
///
/// ```no_run
/// # let (queue_pair, xid): (&QueuePair<MyEndpoint>, u32) = given();
/// # let (pages, list): (u32, KVec<kernel::bindings::scatterlist>) = given();
/// // SAFETY: The blocks that the list describes are freed only where `end` says so.
/// let mut region = unsafe { Region::new(queue_pair, RemoteAccess::Read, pages, list) }?;
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
/// has returned `true`. As long as `mapped` is set, the list is mapped for the device and does not
/// change.
pub(in crate::rdma) struct Region<'a, C: CompletionHandler> {
    queue_pair: &'a QueuePair<C>,
    access: RemoteAccess,
    mr: NonNull<bindings::ib_mr>,
    list: KVec<scatterlist>,
    mapped: bool,
    /// Whether the peer may use it, as far as this side knows.
    valid: bool,
    /// When the peer was given access last.
    registered: Seqno,
    /// The offset of the first byte, for the peer.
    offset: u64,
    /// Deallocated after the region; never if the region is leaked.
    domain: Arc<ProtectionDomain>,
    /// The resource tracker prints the name of the region's owner, which is in the memory of the
    /// module. So the module must stay if the region is forgotten.
    _hold: Hold,
}

impl<'a, C: CompletionHandler> Region<'a, C> {
    /// Allocates a region of up to `pages` pages, which is not registered. May sleep.
    ///
    /// Fails with `ESHUTDOWN` without an [`UnloadGuard`](crate::base::unload::UnloadGuard), with
    /// `ENOMEM`, or with `EIO` if the device makes no region.
    ///
    /// # Safety
    ///
    /// The memory that `list` describes must stay until [`Self::end`] has returned `true`.
    pub(in crate::rdma) unsafe fn new(
        queue_pair: &'a QueuePair<C>,
        access: RemoteAccess,
        pages: u32,
        list: KVec<scatterlist>,
    ) -> Result<Self> {
        let hold = Hold::new()?;
        let domain = queue_pair.domain().clone();
        // SAFETY: The domain is valid, and the new region keeps it.
        let mr = unsafe {
            bindings::ib_alloc_mr(
                domain.as_ptr(),
                bindings::ib_mr_type_IB_MR_TYPE_MEM_REG,
                pages,
            )
        };
        let mr = from_err_ptr(mr).map_err(of_device)?;
        // INVARIANT: The C function returned no error, so a new region. Nothing is mapped. By this
        // function's requirement the memory stays.
        Ok(Self {
            queue_pair,
            access,
            mr: NonNull::new(mr).ok_or(ENOMEM)?,
            list,
            mapped: false,
            valid: false,
            registered: Seqno::next(),
            offset: 0,
            domain,
            _hold: hold,
        })
    }

    /// Gives the peer access to the memory, at `offset`, which is a multiple of the length of a
    /// page. Called only if the memory is not mapped. May sleep.
    ///
    /// Fails with `ENOMEM` or `EIO` if the memory cannot be mapped. Any other failure is
    /// `ECONNRESET`: the connection is lost.
    pub(in crate::rdma) fn register(&mut self, offset: u64) -> Result {
        let entries = c_int::try_from(self.list.len())?;
        // SAFETY: The device stays as long as the queue pair. This owns the list, which describes
        // memory that stays and is not mapped.
        let entries = unsafe {
            bindings::shim_dma_map_sg(
                self.queue_pair.device(),
                self.list.as_mut_ptr(),
                entries,
                self.access.direction() as u32,
            )
        };
        if entries <= 0 {
            return Err(ENOMEM);
        }
        // INVARIANT: The list was mapped above.
        self.mapped = true;

        // SAFETY: This owns the region. The list is mapped, with that many entries.
        let taken = unsafe {
            bindings::ib_map_mr_sg(
                self.mr.as_ptr(),
                self.list.as_mut_ptr(),
                entries,
                ptr::null_mut(),
                PAGE_SIZE as u32,
            )
        };
        to_result(taken).map_err(of_device)?;
        if taken != entries {
            return Err(EIO);
        }
        // SAFETY: This owns the region, which is mapped and not registered.
        self.offset = unsafe { bindings::shim_mr_set_iova(self.mr.as_ptr(), offset) };
        // SAFETY: This owns the region, which is not registered.
        unsafe { bindings::shim_mr_next_key(self.mr.as_ptr()) };
        let access = self.access.flags();
        self.valid = true;
        // SAFETY: The region is valid, of the domain of the queue pair, and mapped. `end` leaks it
        // if the operation is abandoned.
        unsafe { self.queue_pair.register(self.mr, self.rkey(), access) }?;
        // The completions of all messages that arrived before the registration have been handled:
        // completions are handled in order. So these messages count as earlier. Not quite over siw,
        // which invalidates an rkey, whatever its key, before it queues the completion; a peer
        // could win that race, but siw is for trusted networks anyway.
        self.registered = Seqno::next();
        Ok(())
    }

    /// Ends the access of the peer. `remotely` proves that the peer has invalidated an rkey itself.
    /// Returns whether this side had to invalidate the region. May sleep. A failure loses the
    /// connection.
    pub(in crate::rdma) fn invalidate(&mut self, remotely: Option<Invalidated>) -> Result<bool> {
        let remotely = remotely.is_some_and(|invalidated| {
            invalidated.has_ended(self.queue_pair.made(), self.rkey(), self.registered)
        });
        let locally = self.valid && !remotely;
        if locally {
            self.queue_pair.invalidate(self.rkey())?;
        }
        self.valid = false;
        self.unmap();
        Ok(locally)
    }

    /// Whether the device has, or may still have, access to the memory.
    pub(in crate::rdma) fn is_mapped(&self) -> bool {
        self.mapped
    }

    fn unmap(&mut self) {
        if self.mapped {
            self.mapped = false;
            // SAFETY: By the type invariant the list is mapped. This is the number of entries that
            // it was mapped with.
            unsafe {
                bindings::shim_dma_unmap_sg(
                    self.queue_pair.device(),
                    self.list.as_mut_ptr(),
                    self.list.len() as c_int,
                    self.access.direction() as u32,
                )
            };
        }
    }

    fn rkey(&self) -> u32 {
        // SAFETY: By the type invariant it is valid.
        unsafe { bindings::shim_mr_rkey(self.mr.as_ptr()) }
    }

    /// Returns its description for the peer.
    pub(in crate::rdma) fn piece(&self) -> Piece {
        Piece {
            rkey: self.rkey(),
            // SAFETY: By the type invariant it is valid.
            len: unsafe { bindings::shim_mr_length(self.mr.as_ptr()) },
            offset: self.offset,
        }
    }

    /// Ends the region, and with it any access that the peer still has. Returns whether the memory
    /// may be freed. If not, the region is leaked, and the device may still access the memory. May
    /// sleep.
    pub(in crate::rdma) fn end(mut self) -> bool {
        // An abandoned operation may refer to the region, and the region to the memory.
        let in_use = self.mapped && self.queue_pair.is_abandoned();
        // SAFETY: By the type invariant this owns the region. It is not used again if the function
        // succeeds.
        if in_use || unsafe { bindings::ib_dereg_mr_user(self.mr.as_ptr(), ptr::null_mut()) } != 0 {
            pr_warn!("a device keeps a memory region: leaking its memory\n");
            // SAFETY: By the type invariant it is valid, as it was not deregistered.
            unsafe { bindings::workaround_disown_mr(self.mr.as_ptr()) };
            ProtectionDomain::leak(self.domain);
            return false;
        }
        self.unmap();
        true
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
