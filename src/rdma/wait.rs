// SPDX-License-Identifier: GPL-2.0

//! Waiting with a time limit.

use kernel::{
    sync::{
        CondVar,
        CondVarTimeoutResult,
        Mutex, //
    },
    time::msecs_to_jiffies, //
};

/// Waits until `condition` does not hold of the value that `mutex` guards, at most so many
/// milliseconds, and returns whether it still holds. Not interruptible by signals; may sleep.
///
/// # Examples
///
/// ```no_run
/// # let (changed, connected): (&CondVar, &Mutex<bool>) = given();
/// let timed_out = wait_while(changed, connected, 10_000, |&connected| connected);
/// ```
pub(crate) fn wait_while<T>(
    changed: &CondVar,
    mutex: &Mutex<T>,
    milliseconds: u32,
    condition: impl Fn(&T) -> bool,
) -> bool {
    let mut jiffies = msecs_to_jiffies(milliseconds);
    let mut guard = mutex.lock();
    while condition(&guard) {
        match changed.wait_interruptible_timeout(&mut guard, jiffies) {
            CondVarTimeoutResult::Timeout => return condition(&guard),
            CondVarTimeoutResult::Woken { jiffies: rest } => jiffies = rest,
            // With a signal pending the wait above does not sleep: look again each jiffy.
            CondVarTimeoutResult::Signal { jiffies: rest } => {
                if rest == 0 {
                    return condition(&guard);
                }
                drop(guard);
                // SAFETY: No requirement: no lock is held that must not be while sleeping.
                unsafe { kernel::bindings::schedule_timeout_uninterruptible(1) };
                jiffies = rest - 1;
                guard = mutex.lock();
            }
        }
    }
    false
}
