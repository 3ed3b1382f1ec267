// SPDX-License-Identifier: GPL-2.0

//! A safe abstraction of rdma_cm and of what a connection needs of the verbs.
//!
//! An [`Id`](cm::Id) is what its owner holds: it resolves addresses, and dropping it ends the
//! connection. What may be done only while rdma_cm holds the id's handler mutex (accept, reject,
//! connect, set up the queue pair) is found on types that exist only in a handler:
//! [`HandlerId`](cm::HandlerId) and [`Request`](cm::Request).
//!
//! The [`QueuePair`](queue_pair::QueuePair) of an id is [`Revocable`](revocable::Revocable): who
//! sends or transfers on it holds up its end, and with it that of the id and of the device.
//!
//! C headers: [`include/rdma/rdma_cm.h`](srctree/include/rdma/rdma_cm.h),
//! [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

pub(crate) mod address;
pub(crate) mod cm;
pub(crate) mod device;
pub(crate) mod memory;
pub(crate) mod queue;
pub(crate) mod queue_pair;
pub(crate) mod registration;
pub(crate) mod revocable;

use kernel::{
    prelude::*,
    sync::{
        CondVar,
        CondVarTimeoutResult,
        MutexGuard, //
    },
    time::msecs_to_jiffies, //
};

/// The name under which the resource tracker lists what this module makes (`rdma resource show`).
const OWNER: &CStr = c"rpcrdma_cm";

/// Makes an [`Error`] of one of the kernel crate's unsigned errno constants.
pub(crate) fn errno(errno: u32) -> Error {
    Error::from_errno(-(errno as i32))
}

/// Waits as long as `condition` holds of what `guard` guards, but no longer than so many
/// milliseconds, and returns whether it still does; in work, which signals do not interrupt.
pub(crate) fn wait_while<T>(
    changed: &CondVar,
    guard: &mut MutexGuard<'_, T>,
    milliseconds: u32,
    condition: impl Fn(&T) -> bool,
) -> bool {
    let mut jiffies = msecs_to_jiffies(milliseconds);
    while condition(guard) {
        match changed.wait_interruptible_timeout(guard, jiffies) {
            CondVarTimeoutResult::Timeout => return condition(guard),
            CondVarTimeoutResult::Woken { jiffies: rest }
            | CondVarTimeoutResult::Signal { jiffies: rest } => jiffies = rest,
        }
    }
    false
}
