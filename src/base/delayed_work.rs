// SPDX-License-Identifier: GPL-2.0

//! Delayed works whose time changes.
//!
//! Superfluous with a kernel whose `workqueue::Queue` modifies the delay of a work.
//!
//! C header: [`include/linux/workqueue.h`](srctree/include/linux/workqueue.h)

use core::ptr::NonNull;

use kernel::{
    bindings::{
        self,
        workqueue_struct, //
    },
    container_of,
    ffi::c_int,
    sync::Arc,
    time::msecs_to_jiffies,
    workqueue::{
        HasDelayedWork,
        RawWorkItem,
        WorkItem, //
    }, //
};

/// Has `work` run in `queue` after `milliseconds`, counted from now, whether or not it is queued
/// already. A run that has begun is not affected. Any context.
///
/// # Safety
///
/// `queue` must be valid, and be destroyed only when no work is queued in it, delayed ones
/// included.
pub(super) unsafe fn reschedule<T, const ID: u64>(
    queue: NonNull<workqueue_struct>,
    work: Arc<T>,
    milliseconds: u32,
) where
    T: HasDelayedWork<T, ID> + WorkItem<ID, Pointer = Arc<T>> + Send + Sync + 'static,
{
    let modify = |work: *mut bindings::work_struct| {
        // SAFETY: `__enqueue` passes a pointer to a valid work. By the requirement of
        // `HasDelayedWork` it is that of a delayed work.
        let delayed = unsafe { container_of!(work, bindings::delayed_work, work) };
        // SAFETY: By this function's requirement the queue is valid. The delayed work is valid: see
        // above. If it was idle and is queued now, `__enqueue` keeps it until it runs.
        let was_queued = unsafe {
            bindings::mod_delayed_work_on(
                bindings::wq_misc_consts_WORK_CPU_UNBOUND as c_int,
                queue.as_ptr(),
                delayed,
                msecs_to_jiffies(milliseconds),
            )
        };
        !was_queued
    };
    // If the work was queued already, it has a reference of its own, and this one is dropped.
    // SAFETY: The closure returns `false` only if the work was queued already. `T` is `Send`,
    // `Sync` and `'static`, so the work may run in any thread at any time.
    let _ = unsafe { RawWorkItem::<ID>::__enqueue(work, modify) };
}
