// SPDX-License-Identifier: GPL-2.0

//! A work queue of the module's own, which unload can wait for.
//!
//! C header: [`include/linux/workqueue.h`](srctree/include/linux/workqueue.h)

use core::ptr::NonNull;

use kernel::{
    prelude::*,
    sync::Arc,
    workqueue::{
        self,
        RawWorkItem, //
    }, //
};

use crate::bindings;

/// An unbound work queue; its work may sleep.
///
/// The last reference must not be dropped by the queue's own work: dropping waits for the work.
///
/// # Invariants
///
/// The pointer is to a work queue that this owns.
pub(crate) struct Queue(NonNull<kernel::bindings::workqueue_struct>);

// SAFETY: Work queues belong to no thread.
unsafe impl Send for Queue {}
// SAFETY: The functions of a work queue may be called from any thread at a time.
unsafe impl Sync for Queue {}

impl Queue {
    /// Makes a work queue; process context only.
    pub(crate) fn new(name: &CStr) -> Result<Arc<Self>> {
        // SAFETY: `name` is a C string, which the function copies.
        let queue = unsafe { bindings::shim_alloc_workqueue(name.as_char_ptr()) };

        // INVARIANT: The function returns a new work queue or NULL.
        let queue = NonNull::new(queue).map(Self).ok_or(ENOMEM)?;
        Ok(Arc::new(queue, GFP_KERNEL)?)
    }

    /// Queues `work`; any context.
    pub(crate) fn enqueue<W, const ID: u64>(&self, work: W) -> W::EnqueueOutput
    where
        W: RawWorkItem<ID> + Send + 'static,
    {
        // SAFETY: By the type invariant the queue is valid for as long as `self` is.
        unsafe { workqueue::Queue::from_raw(self.0.as_ptr()) }.enqueue(work)
    }

    /// Waits until all that was queued before has run; process context, not from its own work.
    pub(crate) fn flush(&self) {
        // SAFETY: By the type invariant the queue is valid.
        unsafe { bindings::shim_flush_workqueue(self.0.as_ptr()) };
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the queue is ours, and nobody can reach it any more.
        unsafe { kernel::bindings::destroy_workqueue(self.0.as_ptr()) };
    }
}
