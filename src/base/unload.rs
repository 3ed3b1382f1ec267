// SPDX-License-Identifier: GPL-2.0

//! Keeps the module's code in memory as long as the kernel may call it.
//!
//! Superfluous with a kernel that waits for a module's ids and works before it frees the module.

use core::{
    marker::PhantomPinned,
    mem::ManuallyDrop,
    ptr::NonNull, //
};

use kernel::{
    bindings::workqueue_struct,
    error::from_err_ptr,
    prelude::*,
    sync::{
        atomic::{
            AtomicFlag,
            Relaxed, //
        },
        Arc, //
    },
    workqueue::{
        self,
        HasDelayedWork,
        RawWorkItem,
        WorkItem, //
    }, //
};

use super::delayed_work;
use crate::bindings;

/// How long unloading waits before the log says what it waits for, in milliseconds.
const WARN_MS: u32 = 5000;

/// The last field of the module's type. Dropping it waits until there are no ids, no queue pairs,
/// no work queues, no memory regions and no files. [`guarded_module`] makes it.
///
/// rdma_cm calls the handler of an id until the id is destroyed, and a handler is code of the
/// module. An id whose destructor does not run (`mem::forget`, or a reference cycle through its
/// handler) stays for ever. Then unloading waits for ever, too, and the log says so: otherwise the
/// kernel would call freed code. Unloading also waits for a
/// [`Registration`](crate::rdma::registration::Registration) whose destructor does not run: the
/// resource tracker prints the name of its owner, which is in the memory of the module.
///
/// Each such object is made with a [`Hold`], and only the guard makes the first one.
///
/// # Why this cannot be circumvented
///
/// A reference on the module for each id would be simpler, but then a connection would keep the
/// module from being unloaded. A guard in any other place could be kept from being dropped, by
/// `mem::forget` or `MaybeUninit`, so only the macro makes one without `unsafe`. The macro defines
/// the type of the module, with the guard as a field. The kernel drops a value of that type when
/// the module is unloaded, and pin-init drops the guard if another field fails. A second value of
/// that type is refused when it is made.
///
/// # Examples
///
/// A guard that is never dropped:
///
/// ```compile_fail,E0133
/// # let (module, made): (&'static ThisModule, &'static AtomicFlag) = given();
/// // error[E0133]: call to unsafe function `UnloadGuard::new` is unsafe and requires unsafe block
/// core::mem::forget(KBox::pin_init(UnloadGuard::new(module, made, c"my_teardown"), GFP_KERNEL)?);
/// ```
///
/// A type that is not that of the module, a value of which could be kept from being dropped:
///
/// ```compile_fail,E0308
/// # fn new_parts(_: &Hold) -> Result<u32> { Ok(1) }
/// // error[E0308]: mismatched types: expected `RpcrdmaCm`, found `Inner`
/// guarded_module! {
///     struct Inner {
///         parts: u32 = new_parts,
///     }
///     teardown: c"my_teardown",
/// }
/// ```
///
/// # Invariants
///
/// `hold` is a hold of this guard until this is dropped. Afterwards there are none.
#[pin_data(PinnedDrop)]
pub(crate) struct UnloadGuard {
    hold: ManuallyDrop<Hold>,
    #[pin]
    _pin: PhantomPinned,
}

impl UnloadGuard {
    /// Creates the guard of `module`, with the work queue called `name` in which ids and queues are
    /// destroyed.
    ///
    /// Fails with `EINVAL` outside of the module's memory, with `EBUSY` if `made` was set already,
    /// and with `ENOMEM`. `made` is set afterwards, even if this has failed.
    ///
    /// # Safety
    ///
    /// `module` must be the one whose code this is. If the guard is in its memory, and `made` was
    /// not set, it must be a field of the value that the kernel drops when the module is unloaded,
    /// or a field of a value whose initialization fails.
    pub(crate) unsafe fn new(
        module: &'static ThisModule,
        made: &'static AtomicFlag,
        name: &'static CStr,
    ) -> impl PinInit<Self, Error> {
        let init = move |slot: *mut Self| {
            if made.xchg(true, Relaxed) {
                return Err(EBUSY);
            }
            // SAFETY: The module is this one, which is loaded as long as its code runs, or none.
            // `name` is a C string, which the function copies. The function does not access the
            // slot.
            let holds = from_err_ptr(unsafe {
                bindings::shim_unload_guard(slot.cast(), module.as_ptr(), name.as_char_ptr())
            })?;

            // INVARIANT: The function has counted this hold.
            let hold = ManuallyDrop::new(Hold(NonNull::new(holds).ok_or(ENOMEM)?));
            // INVARIANT: The hold is the first one of this guard.
            // SAFETY: The slot is valid for writes.
            unsafe {
                slot.write(Self {
                    hold,
                    _pin: PhantomPinned,
                })
            };
            Ok(())
        };

        // SAFETY: If the closure returns `Ok`, it has initialized the slot. Otherwise it leaves
        // nothing to be dropped. It does not move the slot.
        unsafe { pin_init::pin_init_from_closure(init) }
    }

    /// Returns a hold of the guard, of which others are made by cloning.
    #[inline]
    pub(crate) fn hold(&self) -> &Hold {
        &self.hold
    }
}

#[pinned_drop]
impl PinnedDrop for UnloadGuard {
    fn drop(self: Pin<&mut Self>) {
        let hold = self.project().hold;
        let holds = hold.0.as_ptr();
        // SAFETY: It is not used again.
        unsafe { ManuallyDrop::drop(hold) };
        loop {
            // SAFETY: Only the end of this function frees the holds. The hold of the guard has
            // ended, and the function has not returned 0 yet.
            let left = unsafe { bindings::shim_unload_wait(holds, WARN_MS) };
            if left == 0 {
                break;
            }
            pr_warn!(
                "unloading waits for {left} ids, queue pairs, work queues, regions and files\n"
            );
        }
        // SAFETY: There are no holds. None can be taken without one, so nobody queues work any
        // more.
        unsafe { bindings::shim_unload_end(holds) };
    }
}

/// Defines the type of the module: one field, and an [`UnloadGuard`]. `$new` is called with a
/// [`Hold`] of the guard, and makes the field. Unloading drops the field, and then waits as the
/// guard says.
///
/// With `$end`, `$new` also gets a [`MayWait`](super::wait::MayWait). Unloading calls `$end` with
/// the field and with a `MayWait` before it drops the field. If `$new` fails, `$end` is not called.
///
/// src/main.rs has an example. [`UnloadGuard`] shows what is refused.
macro_rules! guarded_module {
    (
        $(#[$attribute:meta])*
        struct $name:ident {
            $field:ident: $parts:ty = $new:path,
        }
        teardown: $queue:expr,
    ) => {
        $crate::base::unload::guarded_module! {
            $(#[$attribute])*
            struct $name {
                $field: $parts = (|hold, _| $new(hold)), (|_, _| ()),
            }
            teardown: $queue,
        }
    };
    (
        $(#[$attribute:meta])*
        struct $name:ident {
            $field:ident: $parts:ty = $new:expr, $end:expr,
        }
        teardown: $queue:expr,
    ) => {
        $(#[$attribute])*
        #[::kernel::prelude::pin_data(PinnedDrop)]
        struct $name {
            $field: $parts,
            // Dropped last: it waits for the objects that the other field owns.
            #[pin]
            _unload: $crate::base::unload::UnloadGuard,
        }

        // Only a value of the module's own type is dropped when the module is unloaded.
        const _: fn($name) -> $crate::LocalModule = |module| module;

        impl ::kernel::InPlaceModule for $name {
            fn init(
                module: &'static ::kernel::ThisModule,
            ) -> impl ::kernel::prelude::PinInit<Self, ::kernel::error::Error> {
                const QUEUE: &::kernel::str::CStr = $queue;
                static MADE: ::kernel::sync::atomic::AtomicFlag =
                    ::kernel::sync::atomic::AtomicFlag::new(false);

                // The guard first: the field is made with its hold.
                ::kernel::prelude::try_pin_init!(Self {
                    // SAFETY: `module!` passes the module that this type is of. The kernel makes
                    // the first value of the type in the module's memory, before other code of the
                    // module runs, and drops it when the module is unloaded. `MADE` is only this
                    // type's, so it is set before any other value. If the other field fails, this
                    // one is dropped.
                    _unload <- unsafe {
                        $crate::base::unload::UnloadGuard::new(module, &MADE, QUEUE)
                    },
                    // SAFETY: The start of the module: see above. No id has been made yet, so no
                    // completion and no handler waits for it.
                    $field: $new(_unload.hold(), &unsafe { $crate::base::wait::MayWait::new() })?,
                })
            }
        }

        #[::kernel::prelude::pinned_drop]
        impl ::pin_init::PinnedDrop for $name {
            fn drop(self: ::core::pin::Pin<&mut Self>) {
                // SAFETY: The end of the module: `init` makes one value, in the module's memory,
                // which the kernel drops in the task that unloads the module.
                let may_wait = unsafe { $crate::base::wait::MayWait::new() };
                $end(self.project().$field, &may_wait);
            }
        }
    };
}
pub(crate) use guarded_module;

/// A hold of the module, kept by an object for which the kernel may use the module's code or data:
/// unloading waits until it is dropped.
///
/// It also gives access to the work queue in which such objects are destroyed. A work of that queue
/// may drop the last hold: unloading waits until the work has returned.
///
/// # Invariants
///
/// The pointer is to the holds of an [`UnloadGuard`], which count this one, and are valid as long
/// as there is one.
pub(crate) struct Hold(NonNull<bindings::rpcrdma_cm_holds>);

// SAFETY: Holds are counted atomically and belong to no thread.
unsafe impl Send for Hold {}
// SAFETY: The count is atomic, and the pointer to the queue does not change. Any thread may queue
// works.
unsafe impl Sync for Hold {}

impl Hold {
    /// Returns the queue in which objects are destroyed, valid as long as `self` is.
    fn queue(&self) -> NonNull<workqueue_struct> {
        // SAFETY: By the type invariant the holds are valid.
        let queue = unsafe { bindings::shim_hold_queue(self.0.as_ptr()) };
        // SAFETY: The guard was made with a queue, which is there as long as there are holds.
        unsafe { NonNull::new_unchecked(queue) }
    }

    /// Queues work that destroys an object; any context.
    pub(crate) fn enqueue<W, const ID: u64>(&self, work: W) -> W::EnqueueOutput
    where
        W: RawWorkItem<ID> + Send + 'static,
    {
        // SAFETY: The queue is valid as long as `self` is.
        unsafe { workqueue::Queue::from_raw(self.queue().as_ptr()) }.enqueue(work)
    }

    /// Has `work`, which destroys an object, run after `milliseconds`, counted from now, whether or
    /// not it is queued already. Any context.
    ///
    /// # Safety
    ///
    /// `work` must have a hold until it runs.
    pub(crate) unsafe fn reschedule<T, const ID: u64>(&self, work: Arc<T>, milliseconds: u32)
    where
        T: HasDelayedWork<T, ID> + WorkItem<ID, Pointer = Arc<T>> + Send + Sync + 'static,
    {
        // SAFETY: The queue is valid as long as there are holds. By the function's requirement
        // there is one until the work runs.
        unsafe { delayed_work::reschedule(self.queue(), work, milliseconds) }
    }
}

impl Clone for Hold {
    fn clone(&self) -> Self {
        // SAFETY: By the type invariant `self` is counted, so there is a hold already.
        unsafe { bindings::shim_hold_again(self.0.as_ptr()) };
        // INVARIANT: The call above counts the new hold.
        Self(self.0)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // SAFETY: By the type invariant `self` is counted, and it is not used again.
        unsafe { bindings::shim_hold_end(self.0.as_ptr()) };
    }
}
