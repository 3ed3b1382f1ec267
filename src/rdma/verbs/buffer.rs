// SPDX-License-Identifier: GPL-2.0

//! Memory of a queue pair that its device receives into or sends from.

use core::slice;

use kernel::{
    dma::DataDirection,
    prelude::*,
    sync::aref::ARef, //
};

use super::{
    device::Device,
    memory::zeroed, //
};
use crate::bindings;

/// Physically contiguous memory that is mapped for a device.
///
/// # Examples
///
/// ```no_run
/// # let device: &Device = given();
/// let mut buffer = Buffer::new(device, 1024, DataDirection::ToDevice)?;
/// buffer.bytes_mut().fill(0xa5);
/// buffer.sync_for_device();
/// ```
///
/// # Invariants
///
/// `address` is the DMA address of the `bytes` for `device`, in `direction`.
pub(in crate::rdma) struct Buffer {
    bytes: KVec<u8>,
    address: u64,
    direction: DataDirection,
    device: ARef<Device>,
}

impl Buffer {
    /// Allocates a buffer of `len` bytes, which are zero; may sleep.
    ///
    /// Fails with `EINVAL` if `len` is zero, and with `ENOMEM`.
    pub(in crate::rdma) fn new(
        device: &Device,
        len: usize,
        direction: DataDirection,
    ) -> Result<Self> {
        if len == 0 {
            return Err(EINVAL);
        }
        let mut bytes = zeroed(len)?;
        // SAFETY: The device is there as long as `device` is. The bytes come from kmalloc, so they
        // are physically contiguous. There is at least one.
        let address = unsafe {
            bindings::shim_dma_map(
                device.as_ptr(),
                bytes.as_mut_ptr().cast(),
                bytes.len(),
                direction as u32,
            )
        };
        // SAFETY: The address was returned by the mapping for this device.
        if unsafe { bindings::shim_dma_mapping_error(device.as_ptr(), address) } {
            return Err(ENOMEM);
        }

        // INVARIANT: The bytes were mapped above.
        Ok(Self {
            bytes,
            address,
            direction,
            device: device.into(),
        })
    }

    #[inline]
    pub(in crate::rdma) fn address(&self) -> u64 {
        self.address
    }

    #[inline]
    pub(in crate::rdma) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the first `len` bytes that the device has written, or as many as there are.
    ///
    /// # Safety
    ///
    /// The device must not write to the buffer for the returned lifetime.
    pub(in crate::rdma) unsafe fn received(&self, len: usize) -> &[u8] {
        // SAFETY: By the type invariant the bytes are mapped, in this direction.
        unsafe {
            bindings::shim_dma_sync_for_cpu(
                self.device.as_ptr(),
                self.address,
                self.bytes.len(),
                self.direction as u32,
            )
        };
        // SAFETY: The length is limited to that of the bytes. `&self` excludes writes by this side,
        // and the function's requirement those by the device.
        unsafe { slice::from_raw_parts(self.bytes.as_ptr(), len.min(self.bytes.len())) }
    }

    /// Returns the bytes, for a message to be written into. If the device is still reading them, it
    /// sends a mixture.
    #[inline]
    pub(in crate::rdma) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Makes the bytes visible to the device; to be called before the device reads or writes them.
    pub(in crate::rdma) fn sync_for_device(&self) {
        // SAFETY: By the type invariant the bytes are mapped, in this direction.
        unsafe {
            bindings::shim_dma_sync_for_device(
                self.device.as_ptr(),
                self.address,
                self.bytes.len(),
                self.direction as u32,
            )
        };
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the bytes are mapped, and the device is there. No device
        // uses them any more: the Work Requests that name the address were posted under the
        // requirement that the buffer stays until the queue pair is destroyed.
        unsafe {
            bindings::shim_dma_unmap(
                self.device.as_ptr(),
                self.address,
                self.bytes.len(),
                self.direction as u32,
            )
        };
    }
}
