// SPDX-License-Identifier: GPL-2.0

//! Memory that devices receive into, send from, and transfer from and to.

use core::{
    mem,
    ptr::NonNull,
    slice, //
};

use kernel::{
    alloc::flags::{
        __GFP_NOWARN,
        __GFP_ZERO, //
    },
    prelude::*, //
};

use super::device::Device;
use crate::bindings;

/// Returns `len` octets, which are zero and physically contiguous.
///
/// Not octet by octet, as `KVec::from_elem` does it. Without a warning: what one connection asks
/// for must not put anything into the log.
fn zeroed(len: usize) -> Result<KVec<u8>> {
    let mut octets = KVec::with_capacity(len, GFP_KERNEL | __GFP_NOWARN | __GFP_ZERO)?;
    // SAFETY: There is room for as many, and it is zero.
    unsafe { octets.inc_len(len) };
    Ok(octets)
}

/// Physically contiguous memory that a device may use at any time.
///
/// # Invariants
///
/// `address` is the DMA address on `device` of the `octets`. `device` stays for as long as this
/// does.
pub(super) struct Buffer {
    octets: KVec<u8>,
    address: u64,
    direction: bindings::dma_data_direction,
    device: NonNull<bindings::ib_device>,
}

// SAFETY: A mapping belongs to no thread.
unsafe impl Send for Buffer {}

impl Buffer {
    /// Makes a buffer of `len` octets, which are zero.
    ///
    /// # Safety
    ///
    /// The device must stay until the buffer has been dropped.
    pub(super) unsafe fn new(
        device: Device<'_>,
        len: usize,
        direction: bindings::dma_data_direction,
    ) -> Result<Self> {
        let mut octets = zeroed(len)?;
        // SAFETY: kmalloc's memory is physically contiguous.
        let address = unsafe {
            bindings::shim_dma_map(
                device.as_ptr(),
                octets.as_mut_ptr().cast(),
                octets.len(),
                direction,
            )
        };
        // SAFETY: The address is what mapping for this device returned.
        if unsafe { bindings::shim_dma_mapping_error(device.as_ptr(), address) } {
            return Err(ENOMEM);
        }

        // INVARIANT: Mapped above.
        Ok(Self {
            octets,
            address,
            direction,
            device: device.as_non_null(),
        })
    }

    pub(super) fn address(&self) -> u64 {
        self.address
    }

    pub(super) fn len(&self) -> usize {
        self.octets.len()
    }

    /// Returns the first `len` octets, as the device has left them.
    ///
    /// # Safety
    ///
    /// The device must not write to the buffer for the returned lifetime.
    pub(super) unsafe fn received(&self, len: usize) -> &[u8] {
        // SAFETY: By the type invariant it is mapped.
        unsafe {
            bindings::shim_dma_sync_for_cpu(
                self.device.as_ptr(),
                self.address,
                self.octets.len(),
                self.direction,
            )
        };
        // SAFETY: There are at least as many; by the function's requirement nobody writes to them.
        unsafe { slice::from_raw_parts(self.octets.as_ptr(), len.min(self.octets.len())) }
    }

    /// Returns the octets for what is to be sent.
    pub(super) fn octets_mut(&mut self) -> &mut [u8] {
        &mut self.octets
    }

    /// Gives what the buffer holds, or room for what it is to hold, to the device.
    pub(super) fn sync_for_device(&self) {
        // SAFETY: By the type invariant it is mapped.
        unsafe {
            bindings::shim_dma_sync_for_device(
                self.device.as_ptr(),
                self.address,
                self.octets.len(),
                self.direction,
            )
        };
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: By the type invariant it is mapped, and the device is there. The queue pair that
        // could use it is gone.
        unsafe {
            bindings::shim_dma_unmap(
                self.device.as_ptr(),
                self.address,
                self.octets.len(),
                self.direction,
            )
        };
    }
}

/// How many octets a block of [`Memory`] has: what the kernel allocates without much ado.
pub(crate) const BLOCK: usize = 32768;

/// Memory for a message of any length, in blocks that are physically contiguous, each of
/// [`BLOCK`] octets and so of whole pages.
pub(crate) struct Memory {
    blocks: KVec<KVec<u8>>,
    len: usize,
}

impl Memory {
    /// Memory of no octets.
    pub(crate) const fn new() -> Self {
        Self {
            blocks: KVec::new(),
            len: 0,
        }
    }

    /// Returns how many octets are in use.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Brings `len` more octets into use.
    pub(crate) fn grow(&mut self, len: usize) -> Result {
        let len = self.len.checked_add(len).ok_or(ENOMEM)?;
        while self.blocks.len() < len.div_ceil(BLOCK) {
            let block = zeroed(BLOCK)?;
            self.blocks.push(block, GFP_KERNEL)?;
        }
        self.len = len;
        Ok(())
    }

    /// Returns the octets from `at` on, `len` of them or as many as there are, piece by piece: in
    /// whole words, where `at` and `len` are such.
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

    /// The same, to write to.
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

    /// Writes `octets` at `at`; what lies beyond the end is left out.
    pub(crate) fn write(&mut self, at: usize, octets: &[u8]) {
        let mut rest = octets;
        for piece in self.pieces_mut(at, octets.len()) {
            let Some((octets, behind)) = rest.split_at_checked(piece.len()) else {
                return;
            };
            piece.copy_from_slice(octets);
            rest = behind;
        }
    }
}
