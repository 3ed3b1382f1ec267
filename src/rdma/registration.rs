// SPDX-License-Identifier: GPL-2.0

//! Memory that the peer may read or write (RFC 8166, section 4.4).
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use core::ptr::{
    self,
    NonNull, //
};

use kernel::{
    bindings::{
        scatterlist,
        sg_init_table, //
    },
    error::{
        from_err_ptr,
        to_result, //
    },
    ffi::c_int,
    page::PAGE_SIZE,
    prelude::*, //
};

use super::{
    memory::{
        Memory,
        BLOCK, //
    },
    queue_pair::{
        CompletionHandler,
        QueuePair, //
    },
};
use crate::bindings;

/// How many pages one region has at most; devices may be able to do less.
const REGION_PAGES: u32 = 256;

/// What the peer may do with the memory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Purpose {
    /// Read it: a Read chunk.
    Read,
    /// Write it: a Write chunk, or the Reply chunk.
    Write,
}

impl Purpose {
    fn access(self) -> bindings::ib_access_flags {
        match self {
            Self::Read => bindings::ib_access_flags_IB_ACCESS_REMOTE_READ,
            // A device that writes for the peer writes locally, too.
            Self::Write => {
                bindings::ib_access_flags_IB_ACCESS_REMOTE_WRITE
                    | bindings::ib_access_flags_IB_ACCESS_LOCAL_WRITE
            }
        }
    }

    fn direction(self) -> bindings::dma_data_direction {
        match self {
            Self::Read => bindings::dma_data_direction_DMA_TO_DEVICE,
            Self::Write => bindings::dma_data_direction_DMA_FROM_DEVICE,
        }
    }
}

/// A piece of registered memory, as the peer has to know of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Piece {
    /// Its Steering Tag.
    pub(crate) stag: u32,
    pub(crate) len: u32,
    pub(crate) address: u64,
}

/// A memory region of the device's.
///
/// # Invariants
///
/// `mr` is a memory region that this owns. `list` describes memory that stays as long as this does;
/// it is mapped for the device where `mapped`, and does not change then.
struct Region<'a, H: CompletionHandler> {
    queue_pair: &'a QueuePair<H>,
    purpose: Purpose,
    mr: NonNull<bindings::ib_mr>,
    list: KVec<scatterlist>,
    mapped: bool,
    /// Whether the peer may use it, as far as this side knows.
    valid: bool,
}

impl<'a, H: CompletionHandler> Region<'a, H> {
    /// # Safety
    ///
    /// The memory that `list` describes must stay until the region has been dropped.
    unsafe fn new(
        queue_pair: &'a QueuePair<H>,
        purpose: Purpose,
        pages: u32,
        list: KVec<scatterlist>,
    ) -> Result<Self> {
        // SAFETY: The protection domain goes after the queue pair.
        let mr = unsafe {
            bindings::ib_alloc_mr(
                queue_pair.protection_domain(),
                bindings::ib_mr_type_IB_MR_TYPE_MEM_REG,
                pages,
            )
        };
        // INVARIANT: What is not an error pointer is a new region. Nothing is mapped.
        Ok(Self {
            queue_pair,
            purpose,
            mr: NonNull::new(from_err_ptr(mr)?).ok_or(ENOMEM)?,
            list,
            mapped: false,
            valid: false,
        })
    }

    fn register(&mut self) -> Result {
        let entries = c_int::try_from(self.list.len())?;
        // SAFETY: The queue pair keeps its device; the list is ours.
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
        // SAFETY: The region is ours, and not registered.
        unsafe { bindings::shim_mr_next_key(self.mr.as_ptr()) };
        let access = self.purpose.access();
        self.valid = true;
        // SAFETY: The region stays, for which the queue pair is used no longer than it is there.
        unsafe { self.queue_pair.register(self.mr, self.stag(), access) }
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

    fn piece(&self) -> Piece {
        Piece {
            stag: self.stag(),
            // SAFETY: By the type invariant it is valid.
            len: unsafe { bindings::shim_mr_length(self.mr.as_ptr()) },
            // SAFETY: As above.
            address: unsafe { bindings::shim_mr_iova(self.mr.as_ptr()) },
        }
    }
}

impl<H: CompletionHandler> Drop for Region<'_, H> {
    fn drop(&mut self) {
        // First: should the peer still have access, that ends here.
        // SAFETY: By the type invariant it is ours.
        unsafe { bindings::ib_dereg_mr_user(self.mr.as_ptr(), ptr::null_mut()) };
        self.unmap();
    }
}

/// Memory for the peer, in as many regions as it takes. It can be registered again and again.
pub(crate) struct Registration<'a, H: CompletionHandler> {
    /// These stand before the memory that they describe, so go before it.
    regions: KVec<Region<'a, H>>,
    memory: Memory,
}

impl<'a, H: CompletionHandler> Registration<'a, H> {
    /// Makes memory of `len` octets, which the peer has no access to yet.
    pub(crate) fn new(queue_pair: &'a QueuePair<H>, purpose: Purpose, len: usize) -> Result<Self> {
        let mut memory = Memory::new();
        memory.grow(len)?;
        let mut regions = KVec::new();

        let pages = queue_pair.max_region_pages().min(REGION_PAGES);
        let blocks = (pages as usize * PAGE_SIZE / BLOCK).max(1);
        let mut pieces = memory.pieces_mut(0, len);
        let mut left = len.div_ceil(BLOCK);
        while left > 0 {
            let mut list = KVec::new();
            for _ in 0..left.min(blocks) {
                list.push(scatterlist::default(), GFP_KERNEL)?;
            }
            left -= list.len();
            // SAFETY: The list has that many entries.
            unsafe { sg_init_table(list.as_mut_ptr(), list.len() as u32) };
            for (entry, piece) in list.iter_mut().zip(pieces.by_ref()) {
                let octets = piece.as_mut_ptr().cast();
                let len = piece.len() as u32;
                // SAFETY: The entry is valid; the octets are of kmalloc.
                unsafe { bindings::shim_sg_set(entry, octets, len) };
            }
            // SAFETY: The blocks of the memory stay where they are, and go after the regions.
            let region = unsafe { Region::new(queue_pair, purpose, pages, list) }?;
            regions.push(region, GFP_KERNEL)?;
        }
        drop(pieces);
        Ok(Self { regions, memory })
    }

    /// Returns the memory, as long as the peer has no access to it.
    pub(crate) fn memory(&mut self) -> Option<&mut Memory> {
        let registered = self.regions.iter().any(|region| region.mapped);
        (!registered).then_some(&mut self.memory)
    }

    /// Gives the peer access to the memory, each time under other Steering Tags. May sleep.
    ///
    /// Where this fails, the connection is lost.
    pub(crate) fn register(&mut self) -> Result {
        self.regions.iter_mut().try_for_each(Region::register)
    }

    /// Returns the pieces of the registered memory, in order.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = Piece> + use<'_, 'a, H> {
        self.regions.iter().map(Region::piece)
    }

    /// Takes the access from the peer, which has done so itself for `remotely`, and returns how
    /// many regions had to be invalidated here. May sleep.
    ///
    /// Where this fails, the connection is lost, as it has to be (RFC 8166, section 4.5.4).
    pub(crate) fn invalidate(&mut self, remotely: Option<u32>) -> Result<u32> {
        let mut locally: u32 = 0;
        for region in &mut self.regions {
            let stag = region.stag();
            if region.valid && remotely != Some(stag) {
                region.queue_pair.invalidate(stag)?;
                locally = locally.saturating_add(1);
            }
            region.valid = false;
            region.unmap();
        }
        Ok(locally)
    }
}
