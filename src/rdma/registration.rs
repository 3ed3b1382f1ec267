// SPDX-License-Identifier: GPL-2.0

//! Memory that the peer may read or write (RFC 8166, section 4.4).
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

pub(crate) mod piece;
pub(in crate::rdma) mod region;
pub(crate) mod remote_access;

use kernel::{
    bindings::{
        scatterlist,
        sg_init_table, //
    },
    page::PAGE_SIZE,
    prelude::*, //
};

use self::{
    piece::Piece,
    region::Region,
    remote_access::RemoteAccess, //
};
use super::{
    messages::{
        arrival::Invalidated,
        completion_handler::CompletionHandler,
        message_queue_pair::MessageQueuePair, //
    },
    verbs::memory::{
        Memory,
        BLOCK, //
    }, //
};
use crate::{
    base::errno::errno,
    bindings, //
};

/// Memory for the peer, in as many regions as it takes. It can be registered again and again.
///
/// The peer addresses it by offsets that the user chooses, never by addresses of the kernel. The
/// upper half of an offset is a tag, such as the XID, which Linux's client also puts there. From
/// there on, the pieces follow each other without gaps.
///
/// # Examples
///
/// ```no_run
/// # let (queue_pair, bytes, xid): (&MessageQueuePair<MyEndpoint>, &[u8], u32) = given();
/// let mut call = Registration::new(queue_pair, RemoteAccess::Read, bytes.len(), 256)?;
/// call.write(0, bytes)?;
/// call.register(xid)?;
/// for piece in call.pieces() {
///     pr_info!("{:08x} {} {:016x}\n", piece.rkey, piece.len, piece.offset);
/// }
/// // ... the peer reads it ...
/// call.invalidate(None)?;
/// ```
///
/// Only its content can be changed, and only while the peer has no access. The memory itself can
/// neither be replaced nor freed, because no function returns `&mut Memory`:
///
/// ```compile_fail,E0594
/// # let mut call: Registration<'_, MyEndpoint> = given();
/// // error[E0594]: cannot assign to data in a `&` reference
/// *call.memory().unwrap() = Memory::new();
/// ```
///
/// Only a message of the peer proves that the peer has invalidated an rkey. A number does not:
///
/// ```compile_fail,E0308
/// # let mut call: Registration<'_, MyEndpoint> = given();
/// // error[E0308]: mismatched types: expected `Option<Invalidated>`, found `Option<u32>`
/// call.invalidate(call.pieces().next().map(|piece| piece.rkey))?;
/// ```
///
/// # Invariants
///
/// The regions describe the blocks of `memory`.
pub(crate) struct Registration<'a, C: CompletionHandler> {
    regions: KVec<Region<'a, C>>,
    memory: Memory,
}

impl<'a, C: CompletionHandler> Registration<'a, C> {
    /// Allocates memory of `len` bytes, which are zero, and to which the peer has no access yet. A
    /// region has at most `max_pages` pages, or fewer if the device has a lower limit. May sleep.
    ///
    /// Fails with `EINVAL` if `len` has more than 32 bits, with `EOPNOTSUPP` if the limits do not
    /// allow a region of one block, with `ENOMEM`, or with `EIO` if the device makes no region.
    pub(crate) fn new(
        queue_pair: &'a MessageQueuePair<C>,
        access: RemoteAccess,
        len: usize,
        max_pages: u32,
    ) -> Result<Self> {
        // The lower halves of offsets have 32 bits.
        u32::try_from(len)?;
        let pages = queue_pair
            .domain()
            .device()
            .max_region_pages()
            .min(max_pages);
        let blocks = pages as usize / (BLOCK / PAGE_SIZE);
        if blocks == 0 {
            return Err(errno(kernel::bindings::EOPNOTSUPP));
        }
        let mut memory = Memory::new();
        memory.grow(len)?;
        let mut left = len.div_ceil(BLOCK);
        // INVARIANT: There are no regions yet.
        let mut this = Self {
            // So that pushing cannot fail, and each region ends in `drop`, which leaks the memory
            // if a device keeps a region.
            regions: KVec::with_capacity(left.div_ceil(blocks), GFP_KERNEL)?,
            memory,
        };

        let mut pieces = this.memory.pieces_mut(0, len);
        while left > 0 {
            let mut list = KVec::new();
            for _ in 0..left.min(blocks) {
                list.push(scatterlist::default(), GFP_KERNEL)?;
            }
            left -= list.len();
            // SAFETY: The list has that many entries, which are valid for writes.
            unsafe { sg_init_table(list.as_mut_ptr(), list.len() as u32) };
            for (entry, piece) in list.iter_mut().zip(pieces.by_ref()) {
                let bytes = piece.as_mut_ptr().cast();
                let len = piece.len() as u32;
                // SAFETY: The entry is valid, and the bytes come from kmalloc.
                unsafe { bindings::shim_sg_set(entry, bytes, len) };
            }
            // SAFETY: By the type invariant of `Memory` the blocks do not move. `drop` ends the
            // regions before the memory is freed, and leaks the memory if `end` returns `false`.
            let region = unsafe { Region::new(queue_pair, access, pages, list) }?;
            // INVARIANT: The region describes blocks of the memory.
            this.regions.push(region, GFP_KERNEL)?;
        }
        drop(pieces);
        Ok(this)
    }

    fn is_mapped(&self) -> bool {
        self.regions.iter().any(Region::is_mapped)
    }

    /// Returns the memory to be read; [`None`] while the peer has access to it.
    pub(crate) fn memory(&self) -> Option<&Memory> {
        (!self.is_mapped()).then_some(&self.memory)
    }

    /// Writes `bytes` at `at`, except those that would be beyond the end.
    ///
    /// Fails with `EBUSY` while the peer has access.
    pub(crate) fn write(&mut self, at: usize, bytes: &[u8]) -> Result {
        if self.is_mapped() {
            return Err(EBUSY);
        }
        self.memory.write(at, bytes);
        Ok(())
    }

    /// Returns the bytes from `at` on to be written, as [`Memory::pieces_mut`] does.
    ///
    /// Fails with `EBUSY` while the peer has access.
    pub(crate) fn pieces_mut(
        &mut self,
        at: usize,
        len: usize,
    ) -> Result<impl Iterator<Item = &mut [u8]> + use<'_, 'a, C>> {
        if self.is_mapped() {
            return Err(EBUSY);
        }
        Ok(self.memory.pieces_mut(at, len))
    }

    /// Gives the peer access to the memory, each time under other rkeys, at offsets whose upper
    /// halves are `tag`. May sleep.
    ///
    /// Fails with `EBUSY` if the peer already has access. Fails with `ENOMEM` or `EIO` if the
    /// memory cannot be mapped for the device; the peer has no access then. Any other failure is
    /// `ECONNRESET`: the connection is lost.
    pub(crate) fn register(&mut self, tag: u32) -> Result {
        if self.is_mapped() {
            return Err(EBUSY);
        }
        let mut offset = u64::from(tag) << 32;
        for region in &mut self.regions {
            let registered = region.register(offset);
            offset += u64::from(region.piece().len);
            if let Err(error) = registered {
                // If this fails, too, the connection is lost, which ends the access of the peer.
                let _ = self.invalidate(None);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Returns the pieces of the registered memory, in order.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = Piece> + use<'_, 'a, C> {
        self.regions.iter().map(Region::piece)
    }

    /// Ends the access of the peer. `remotely` proves that the peer has invalidated one of the
    /// rkeys itself. Returns how many regions this side had to invalidate. May sleep.
    ///
    /// A failure loses the connection, as RFC 8166, section 4.5.4 requires.
    pub(crate) fn invalidate(&mut self, remotely: Option<Invalidated>) -> Result<u32> {
        let mut locally: u32 = 0;
        for region in &mut self.regions {
            locally = locally.saturating_add(region.invalidate(remotely)?.into());
        }
        Ok(locally)
    }
}

impl<C: CompletionHandler> Drop for Registration<'_, C> {
    fn drop(&mut self) {
        // The regions end before the memory that they describe is freed.
        while let Some(region) = self.regions.pop() {
            if !region.end() {
                self.memory.leak();
            }
        }
    }
}
