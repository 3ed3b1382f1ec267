// SPDX-License-Identifier: GPL-2.0

//! Memory for messages of any length, which devices transfer from and to.

use core::mem;

use kernel::{
    alloc::flags::{
        __GFP_NOWARN,
        __GFP_ZERO, //
    },
    page::PAGE_SIZE,
    prelude::*, //
};

/// Returns `len` bytes, which are zero and physically contiguous; may sleep. Fails with `ENOMEM`,
/// without a warning in the log, because peers can cause that.
///
/// `KVec::from_elem` would write byte by byte.
pub(in crate::rdma) fn zeroed(len: usize) -> Result<KVec<u8>> {
    let mut bytes = KVec::with_capacity(len, GFP_KERNEL | __GFP_NOWARN | __GFP_ZERO)?;
    // SAFETY: The capacity is at least `len`, and `__GFP_ZERO` has initialized the bytes.
    unsafe { bytes.inc_len(len) };
    Ok(bytes)
}

/// The length of a block of [`Memory`] in bytes: 32 KiB, which the kernel finds contiguous without
/// much effort, or a page if that is larger.
pub(crate) const BLOCK: usize = if PAGE_SIZE > 32768 { PAGE_SIZE } else { 32768 };

// The blocks of a region must begin and end at the boundaries of pages. kmalloc aligns powers of
// two to their size.
const _: () = assert!(BLOCK.is_power_of_two() && BLOCK % PAGE_SIZE == 0);

/// Memory for a message of any length, in blocks of [`BLOCK`] bytes. Each block is physically
/// contiguous and has whole pages.
///
/// # Examples
///
/// ```no_run
/// # let (queue_pair, rkey, remote): (&MessageQueuePair<MyEndpoint>, u32, u64) = given();
/// let mut memory = Memory::new();
/// memory.grow(100_000)?;
/// memory.write(0, b"head");
/// for piece in memory.pieces_mut(4, 99_996) {
///     piece.fill(0xa5);
/// }
/// queue_pair.transfer(Transfer::Write, &mut memory, 0, 100_000, rkey, remote)?;
/// ```
///
/// # Invariants
///
/// Each block comes from kmalloc and has [`BLOCK`] bytes. Blocks do not move, and are freed only
/// when this is dropped.
#[derive(Default)]
pub(crate) struct Memory {
    blocks: KVec<KVec<u8>>,
    len: usize,
}

impl Memory {
    /// Returns memory of no bytes.
    pub(crate) const fn new() -> Self {
        Self {
            blocks: KVec::new(),
            len: 0,
        }
    }

    /// Returns how many bytes are in use.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether no bytes are in use.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Brings `len` more bytes into use, which are zero; may sleep. Fails with `ENOMEM`.
    pub(crate) fn grow(&mut self, len: usize) -> Result {
        let len = self.len.checked_add(len).ok_or(ENOMEM)?;
        while self.blocks.len() < len.div_ceil(BLOCK) {
            let block = zeroed(BLOCK)?;
            // INVARIANT: The block has `BLOCK` bytes. Pushing moves only the pointers to blocks.
            self.blocks.push(block, GFP_KERNEL)?;
        }
        self.len = len;
        Ok(())
    }

    /// Leaks the memory, because a device may still access it. It has no bytes afterwards.
    pub(in crate::rdma) fn leak(&mut self) {
        mem::forget(mem::take(&mut self.blocks));
        self.len = 0;
    }

    /// Returns the bytes from `at` on, `len` of them or as many as there are, in pieces. If `at`
    /// and their number are multiples of four, so are the lengths of all pieces.
    pub(crate) fn pieces(&self, at: usize, len: usize) -> impl Iterator<Item = &[u8]> {
        let mut skip = at % BLOCK;
        let mut left = len.min(self.len.saturating_sub(at));
        let blocks = self.blocks.get(at / BLOCK..).unwrap_or_default();
        blocks.iter().map_while(move |block| {
            let from = mem::take(&mut skip);
            let to = block.len().min(from.saturating_add(left));
            let piece = block.get(from..to)?;
            left -= piece.len();
            (!piece.is_empty()).then_some(piece)
        })
    }

    /// Returns the same pieces as [`Self::pieces`], to be written to.
    pub(crate) fn pieces_mut(
        &mut self,
        at: usize,
        len: usize,
    ) -> impl Iterator<Item = &mut [u8]> + use<'_> {
        let mut skip = at % BLOCK;
        let mut left = len.min(self.len.saturating_sub(at));
        let blocks = self.blocks.get_mut(at / BLOCK..).unwrap_or_default();
        blocks.iter_mut().map_while(move |block| {
            let from = mem::take(&mut skip);
            let to = block.len().min(from.saturating_add(left));
            let piece = block.get_mut(from..to)?;
            left -= piece.len();
            (!piece.is_empty()).then_some(piece)
        })
    }

    /// Writes `bytes` at `at`, except those that would be beyond the end.
    pub(crate) fn write(&mut self, at: usize, bytes: &[u8]) {
        let mut rest = bytes;
        for piece in self.pieces_mut(at, bytes.len()) {
            let Some((bytes, behind)) = rest.split_at_checked(piece.len()) else {
                return;
            };
            piece.copy_from_slice(bytes);
            rest = behind;
        }
    }
}
