// SPDX-License-Identifier: GPL-2.0

//! Memory of a queue pair that its device receives into or sends from.

use core::{
    ptr::NonNull,
    slice, //
};

use kernel::prelude::*;

use super::{
    device::Device,
    memory::zeroed, //
};
use crate::bindings;

/// Physically contiguous memory that a device may use at any time.
///
/// # Examples
///
/// ```no_run
/// # let device: Device<'_> = given();
/// let direction = bindings::dma_data_direction_DMA_TO_DEVICE;
/// // SAFETY: The id keeps the device, and is destroyed after the buffer.
/// let mut buffer = unsafe { Buffer::new(device, 1024, direction) }?;
/// buffer.octets_mut().fill(0xa5);
/// buffer.sync_for_device();
/// ```
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
        // SAFETY: Mapping for this device returned the address.
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

    /// Returns the first `len` octets, or as many as there are, as the device has left them.
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

    /// Returns the octets, to write a message into. The device must not be reading them.
    pub(super) fn octets_mut(&mut self) -> &mut [u8] {
        &mut self.octets
    }

    /// Gives the octets of the buffer to the device, which reads or writes them.
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
