// SPDX-License-Identifier: GPL-2.0

//! Waiting: who may, and with a time limit.
//!
//! Superfluous with a kernel whose contexts are types, and whose `CondVar` waits with a time limit
//! and ignores signals.

use kernel::{
    sync::{
        lock::{
            Backend,
            Lock, //
        },
        CondVar,
        CondVarTimeoutResult, //
    },
    time::{
        msecs_to_jiffies,
        Instant,
        Monotonic, //
    },
    types::NotThreadSafe, //
};

/// The permission to wait for peers and for completions. A work, an operation on a file, and the
/// start and the end of the module have it.
///
/// The context of a completion and a handler of rdma_cm have none: a completion that waited for
/// another one would wait for itself, and a handler would delay all others. The permission is
/// borrowed for one call, and belongs to the task that it was given to. So it cannot be handed over
/// to them. Code that calls `WorkItem::run` of a waiting work by hand gets one, in any context: it
/// may wait for ever, and does nothing worse.
///
/// # Examples
///
/// ```no_run
/// # let (handle, may_wait): (Handle<MessageQueuePair<MyEndpoint>>, &MayWait) = given();
/// let queue_pair = handle.access(may_wait).ok_or(ENODEV)?;
/// ```
///
/// It cannot be made without `unsafe`:
///
/// ```compile_fail,E0133
/// // error[E0133]: call to unsafe function `MayWait::new` is unsafe and requires unsafe block
/// let may_wait = MayWait::new();
/// ```
///
/// It cannot be kept where a completion would find it:
///
/// ```compile_fail,E0277
/// struct KeptEndpoint(&'static MayWait);
///
/// // error[E0277]: `*mut ()` cannot be shared between threads safely
/// impl FaultHandler for KeptEndpoint {
///     fn queue_pair_failed(_this: ArcBorrow<'_, Self>, _fault: QueuePairFault) {}
/// }
/// ```
pub(crate) struct MayWait {
    _not_send: NotThreadSafe,
}

impl MayWait {
    /// # Safety
    ///
    /// The caller must be a work, an operation on a file, the start or the end of the module, or a
    /// test. No completion, and no handler of rdma_cm, may wait for it to return.
    pub(crate) unsafe fn new() -> Self {
        Self {
            _not_send: NotThreadSafe,
        }
    }
}

/// Waits until `condition` does not hold for the value that `lock` guards, for `milliseconds` at
/// most. Returns whether it still holds. Not interruptible by signals; may sleep.
///
/// `changed` must be notified whenever the value changes.
///
/// # Examples
///
/// ```no_run
/// # let (changed, connected): (&CondVar, &Mutex<bool>) = given();
/// let timed_out = wait_while(changed, connected, 10_000, |&connected| connected);
/// ```
pub(crate) fn wait_while<T, B: Backend>(
    changed: &CondVar,
    lock: &Lock<T, B>,
    milliseconds: u32,
    condition: impl Fn(&T) -> bool,
) -> bool {
    let start = Instant::<Monotonic>::now();
    let mut jiffies = msecs_to_jiffies(milliseconds);
    let mut guard = lock.lock();
    while condition(&guard) {
        match changed.wait_interruptible_timeout(&mut guard, jiffies) {
            CondVarTimeoutResult::Timeout => return condition(&guard),
            CondVarTimeoutResult::Woken { jiffies: rest } => jiffies = rest,
            // With a signal pending, the wait above does not sleep. So the value is read again
            // after each sleep, which takes one or two jiffies.
            CondVarTimeoutResult::Signal { .. } => {
                drop(guard);
                // SAFETY: Process context: this function may sleep, and has released the lock.
                unsafe { kernel::bindings::schedule_timeout_uninterruptible(1) };
                let passed = u32::try_from(start.elapsed().as_millis()).unwrap_or(u32::MAX);
                jiffies = msecs_to_jiffies(milliseconds.saturating_sub(passed));
                guard = lock.lock();
                if jiffies == 0 {
                    return condition(&guard);
                }
            }
        }
    }
    false
}
