// SPDX-License-Identifier: GPL-2.0

//! Completion queues.

use core::ptr::{
    self,
    NonNull, //
};

use kernel::{
    error::from_err_ptr,
    prelude::*,
    sync::aref::ARef, //
};

use super::device::Device;
use crate::bindings;

/// A completion queue. A work queue of the RDMA core handles its completions.
///
/// # Examples
///
/// ```no_run
/// # let (device, capacity): (&Device, Capacity) = given();
/// let completions = CompletionQueue::new(device, capacity.completions(), c"my_module")?;
/// ```
///
/// # Invariants
///
/// `cq` is a completion queue of `device` that this owns.
pub(in crate::rdma) struct CompletionQueue {
    cq: NonNull<bindings::ib_cq>,
    // Dropped last: until then the device stays.
    _device: ARef<Device>,
}

impl CompletionQueue {
    /// Creates a completion queue with room for `entries` completions, which the resource tracker
    /// lists under the name `owner`; may sleep.
    ///
    /// Fails with the error of the device, such as `EINVAL` if that allows fewer entries.
    pub(in crate::rdma) fn new(
        device: &Device,
        entries: u32,
        owner: &'static CStr,
    ) -> Result<Self> {
        let entries = entries.try_into()?;
        // SAFETY: The device is there as long as `device` is; the name is static.
        let cq = unsafe {
            bindings::__ib_alloc_cq_any(
                device.as_ptr(),
                ptr::null_mut(),
                entries,
                bindings::ib_poll_context_IB_POLL_WORKQUEUE,
                owner.as_char_ptr(),
            )
        };

        // INVARIANT: The C function returned no error, so a new completion queue.
        Ok(Self {
            cq: NonNull::new(from_err_ptr(cq)?).ok_or(ENOMEM)?,
            _device: device.into(),
        })
    }

    #[inline]
    pub(in crate::rdma) fn as_ptr(&self) -> *mut bindings::ib_cq {
        self.cq.as_ptr()
    }
}

impl Drop for CompletionQueue {
    fn drop(&mut self) {
        // SAFETY: By the type invariant this owns it. No queue pair uses it: none was made, or the
        // device has destroyed it (see `QueuePair`). The function waits for completions that are
        // being handled.
        unsafe { bindings::ib_free_cq(self.as_ptr()) };
    }
}
