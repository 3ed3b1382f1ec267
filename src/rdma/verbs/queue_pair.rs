// SPDX-License-Identifier: GPL-2.0

//! Queue pairs.
//!
//! C headers: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h),
//! [`include/rdma/rdma_cm.h`](srctree/include/rdma/rdma_cm.h)

use core::{
    mem,
    ptr::NonNull, //
};

use kernel::{
    error::to_result,
    prelude::*,
    sync::Arc, //
};

use super::{
    completion_queue::CompletionQueue,
    protection_domain::ProtectionDomain, //
};
use crate::bindings;

/// The queue pair of an id (`struct ib_qp`), which rdma_cm connects. Dropping it destroys it, too,
/// but does not tell whether the device may still access the memory of Work Requests.
///
/// # Examples
///
/// ```no_run
/// # let (id, domain): (NonNull<bindings::rdma_cm_id>, Arc<ProtectionDomain>) = given();
/// # let (completions, attributes): (CompletionQueue, bindings::ib_qp_init_attr) = given();
/// // SAFETY: The id has no queue pair, and is destroyed after this one.
/// let queue_pair = unsafe { QueuePair::new(id, domain, completions, attributes, c"my_module") }?;
/// // ... post Receives, connect, send ...
/// queue_pair.drain();
/// let may_free_buffers = queue_pair.destroy();
/// ```
///
/// # Invariants
///
/// As long as `completions` is there, `id` is valid. Its queue pair is `qp`, which this owns, in
/// `domain`, and `completions` has its completions, and no others.
pub(in crate::rdma) struct QueuePair {
    id: NonNull<bindings::rdma_cm_id>,
    qp: NonNull<bindings::ib_qp>,
    /// [`None`] once the queue pair is destroyed or leaked.
    completions: Option<CompletionQueue>,
    domain: Arc<ProtectionDomain>,
}

// SAFETY: The verbs may be called by another thread than the one that made the object.
unsafe impl Send for QueuePair {}
// SAFETY: `&QueuePair` offers only verbs, which are reentrant
// (Documentation/infiniband/core_locking.rst), and members that do not change.
unsafe impl Sync for QueuePair {}

impl QueuePair {
    /// Creates the queue pair of `id`, which the resource tracker lists under the name `owner`.
    /// `attributes` need not name the completion queue. May sleep.
    ///
    /// Fails with `EINVAL` if `domain` is of another device than that of `id`, with `ENOMEM`, or
    /// with the error of the device.
    ///
    /// # Safety
    ///
    /// `id` must be valid, have no queue pair, and be destroyed only after the queue pair has been.
    /// If `attributes` name a handler of events, that must accept their context until then. Their
    /// other pointers must be NULL, or valid until then. `completions` must be of the device of
    /// `domain`.
    pub(in crate::rdma) unsafe fn new(
        id: NonNull<bindings::rdma_cm_id>,
        domain: Arc<ProtectionDomain>,
        completions: CompletionQueue,
        attributes: bindings::ib_qp_init_attr,
        owner: &'static CStr,
    ) -> Result<Self> {
        let mut made_with = bindings::ib_qp_init_attr {
            send_cq: completions.as_ptr(),
            recv_cq: completions.as_ptr(),
            event_handler: None,
            ..attributes
        };
        // SAFETY: By this function's requirement the id is valid, and has no queue pair. The domain
        // and the completion queue stay until the queue pair is destroyed, or are leaked below.
        let made = to_result(unsafe {
            bindings::rdma_create_qp(id.as_ptr(), domain.as_ptr(), &mut made_with)
        });
        if let Err(error) = made {
            // SAFETY: The completion queue is valid.
            if unsafe { bindings::workaround_leak_cq(completions.as_ptr()) } {
                pr_warn!("a device keeps a queue pair that could not be set up: leaking it\n");
                mem::forget(completions);
                domain.leak();
            }
            return Err(error);
        }
        // SAFETY: The id is valid. Its queue pair was made by the call above, so it is not NULL.
        let qp = unsafe { NonNull::new_unchecked((*id.as_ptr()).qp) };
        // SAFETY: The queue pair is valid; the name is static. By this function's requirement the
        // handler accepts the context until the queue pair is destroyed.
        unsafe {
            bindings::workaround_own_qp(qp.as_ptr(), owner.as_char_ptr(), attributes.event_handler)
        };
        // INVARIANT: The queue pair was made above, for this id. The completion queue was given
        // away, so that nothing else uses it.
        Ok(Self {
            id,
            qp,
            completions: Some(completions),
            domain,
        })
    }

    /// Returns its protection domain.
    #[inline]
    pub(in crate::rdma) fn domain(&self) -> &Arc<ProtectionDomain> {
        &self.domain
    }

    /// Returns the number of the port of its device.
    #[inline]
    pub(in crate::rdma) fn port(&self) -> u32 {
        // SAFETY: By the type invariant the id is valid. It has a queue pair, so it stays bound.
        unsafe { (*self.id.as_ptr()).port_num }
    }

    /// Waits until all Work Requests have completed, without a time limit, after the queue pair has
    /// failed. Nothing may be posted meanwhile. May sleep.
    pub(in crate::rdma) fn drain(&self) {
        // SAFETY: By the type invariant the queue pair is valid, and its completion queue comes
        // from `__ib_alloc_cq_any`. The function also wants room for its markers, and that nothing
        // is posted meanwhile. Otherwise it may return early, which does no harm: completions may
        // arrive until the queue pair is destroyed.
        unsafe { bindings::ib_drain_qp(self.as_ptr()) };
    }

    /// Destroys the queue pair, and then its completion queue, so that no completion is handled
    /// afterwards. Returns whether the device has destroyed the queue pair. If not, both are
    /// leaked, and everything that Work Requests refer to must stay, because the device may still
    /// access it. May sleep.
    pub(in crate::rdma) fn destroy(mut self) -> bool {
        self.end()
    }

    fn end(&mut self) -> bool {
        let Some(completions) = self.completions.take() else {
            return true;
        };
        let (id, cq) = (self.id.as_ptr(), completions.as_ptr());
        // SAFETY: By the type invariant the id is valid and has this queue pair, which is the only
        // user of that completion queue.
        let destroyed = unsafe { bindings::workaround_destroy_qp(id, cq) };
        if !destroyed {
            pr_warn!("a device refuses to destroy a queue pair: leaking all that it uses\n");
            mem::forget(completions);
            self.domain.leak();
        }
        destroyed
    }

    /// Returns the queue pair, which is valid until it is destroyed.
    #[inline]
    pub(in crate::rdma) fn as_non_null(&self) -> NonNull<bindings::ib_qp> {
        self.qp
    }

    #[inline]
    pub(in crate::rdma) fn as_ptr(&self) -> *mut bindings::ib_qp {
        self.qp.as_ptr()
    }
}

impl Drop for QueuePair {
    fn drop(&mut self) {
        self.end();
    }
}
