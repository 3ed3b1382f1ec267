// SPDX-License-Identifier: GPL-2.0

//! Completion queues.

use core::ptr::{
    self,
    NonNull, //
};

use kernel::{
    error::from_err_ptr,
    prelude::*, //
};

use super::{
    capacity::Capacity,
    device::Device, //
};
use crate::bindings;

/// A completion queue. A work queue of the RDMA core handles its completions.
///
/// # Examples
///
/// ```no_run
/// # let (device, capacity): (Device<'_>, Capacity) = given();
/// // SAFETY: The id keeps the device. The queue pair is destroyed first, then this.
/// let completions = unsafe { CompletionQueue::new(device, &capacity, c"my_module") }?;
/// ```
///
/// # Invariants
///
/// The pointer is to a completion queue that this owns. Its device stays as long as this does.
pub(in crate::rdma) struct CompletionQueue(NonNull<bindings::ib_cq>);

impl CompletionQueue {
    /// Creates the completion queue of one queue pair; may sleep.
    ///
    /// # Safety
    ///
    /// The device must stay until the completion queue has been dropped. The queue pair must be
    /// destroyed before that.
    pub(in crate::rdma) unsafe fn new(
        device: Device<'_>,
        capacity: &Capacity,
        owner: &'static CStr,
    ) -> Result<Self> {
        let entries = capacity.completions().try_into()?;
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

        // INVARIANT: The C function returned no error, so a new completion queue. By this
        // function's requirement the device stays.
        Ok(Self(NonNull::new(from_err_ptr(cq)?).ok_or(ENOMEM)?))
    }

    pub(in crate::rdma) fn as_ptr(&self) -> *mut bindings::ib_cq {
        self.0.as_ptr()
    }
}

impl Drop for CompletionQueue {
    fn drop(&mut self) {
        // SAFETY: By the type invariant this owns it, and by the requirement of `new` its queue
        // pair is gone. The function waits for completions that are being handled.
        unsafe { bindings::ib_free_cq(self.as_ptr()) };
    }
}
