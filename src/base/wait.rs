// SPDX-License-Identifier: GPL-2.0

//! Waiting with a time limit.
//!
//! Superfluous with a kernel whose `CondVar` waits with a time limit and ignores signals.

use kernel::{
    sync::{
        lock::{
            Backend,
            Lock, //
        },
        CondVar,
        CondVarTimeoutResult, //
    },
    time::msecs_to_jiffies, //
};

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
    let mut jiffies = msecs_to_jiffies(milliseconds);
    let mut guard = lock.lock();
    while condition(&guard) {
        match changed.wait_interruptible_timeout(&mut guard, jiffies) {
            CondVarTimeoutResult::Timeout => return condition(&guard),
            CondVarTimeoutResult::Woken { jiffies: rest } => jiffies = rest,
            // With a signal pending, the wait above does not sleep. So the value is read again
            // after each jiffy.
            CondVarTimeoutResult::Signal { jiffies: rest } => {
                if rest == 0 {
                    return condition(&guard);
                }
                drop(guard);
                // SAFETY: Process context: this function may sleep, and has released the lock.
                unsafe { kernel::bindings::schedule_timeout_uninterruptible(1) };
                jiffies = rest - 1;
                guard = lock.lock();
            }
        }
    }
    false
}
