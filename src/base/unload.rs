// SPDX-License-Identifier: GPL-2.0

//! Keeps the module's code in memory as long as the kernel may call it.
//!
//! Superfluous with a kernel that waits for a module's ids and works before it frees the module.

use core::{
    marker::PhantomPinned,
    ptr::NonNull, //
};

use kernel::{
    error::to_result,
    prelude::*,
    sync::Arc,
    workqueue::{
        self,
        HasDelayedWork,
        RawWorkItem,
        WorkItem, //
    }, //
};

use super::{
    delayed_work,
    errno::errno, //
};
use crate::bindings;

/// How long unloading waits before the log says what it waits for, in milliseconds.
const WARN_MS: u32 = 5000;

/// The last field of the module's type. Dropping it waits until there are no ids, no work queues
/// and no memory regions. [`guarded_module`] makes it.
///
/// rdma_cm calls the handler of an id until the id is destroyed, and a handler is code of the
/// module. An id whose destructor does not run (`mem::forget`, or a reference cycle through its
/// handler) stays for ever. Then unloading waits for ever, too, and the log says so: otherwise the
/// kernel would call freed code. Unloading also waits for a
/// [`Registration`](crate::rdma::registration::Registration) whose destructor does not run: the
/// resource tracker prints the name of its owner, which is in the memory of the module.
///
/// No such object can be made before the guard is initialized: that fails with `ESHUTDOWN`.
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
/// # let module: &'static ThisModule = given();
/// // error[E0133]: call to unsafe function `UnloadGuard::new` is unsafe and requires unsafe block
/// core::mem::forget(KBox::pin_init(UnloadGuard::new(module, c"my_teardown"), GFP_KERNEL)?);
/// ```
///
/// A type that is not that of the module, a value of which could be kept from being dropped:
///
/// ```compile_fail,E0308
/// // error[E0308]: mismatched types: expected `RpcrdmaCm`, found `Inner`
/// guarded_module! {
///     struct Inner {
///         parts: u32 = Ok::<_, Error>(1),
///     }
///     teardown: c"my_teardown",
/// }
/// ```
///
/// # Invariants
///
/// This has a hold until it is dropped. Afterwards there are no holds.
#[pin_data(PinnedDrop)]
pub(crate) struct UnloadGuard {
    #[pin]
    _pin: PhantomPinned,
}

impl UnloadGuard {
    /// Creates the guard of `module`, with the work queue called `name` in which ids and queues are
    /// destroyed.
    ///
    /// Fails with `EINVAL` outside of the module's memory, with `EBUSY` if there is a guard
    /// already, and with `ENOMEM`.
    ///
    /// # Safety
    ///
    /// `module` must be the one whose code this is. If the guard is in its memory, it must be a
    /// field of the value that the kernel drops when the module is unloaded, or a field of a value
    /// whose initialization fails.
    pub(crate) unsafe fn new(
        module: &'static ThisModule,
        name: &'static CStr,
    ) -> impl PinInit<Self, Error> {
        let init = move |slot: *mut Self| {
            // SAFETY: The module is this one, which is loaded as long as its code runs, or none.
            // `name` is a C string, which the function copies. The function does not access the
            // slot.
            to_result(unsafe {
                bindings::shim_unload_guard(slot.cast(), module.as_ptr(), name.as_char_ptr())
            })?;

            // INVARIANT: The call above has made the hold.
            // SAFETY: The slot is valid for writes.
            unsafe {
                slot.write(Self {
                    _pin: PhantomPinned,
                })
            };
            Ok(())
        };

        // SAFETY: If the closure returns `Ok`, it has initialized the slot. Otherwise it leaves
        // nothing to be dropped. It does not move the slot.
        unsafe { pin_init::pin_init_from_closure(init) }
    }
}

#[pinned_drop]
impl PinnedDrop for UnloadGuard {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the type invariant the guard has a hold, and this is the only call for it.
        unsafe { bindings::shim_hold_end() };
        loop {
            // SAFETY: The hold of the guard has ended. The function has not returned 0 yet.
            let left = unsafe { bindings::shim_unload_wait(WARN_MS) };
            if left == 0 {
                break;
            }
            pr_warn!("unloading waits for {left} ids, work queues and memory regions\n");
        }
        // SAFETY: There are no holds. None can be taken without one, so nobody queues work any
        // more.
        unsafe { bindings::shim_unload_end() };
    }
}

/// Defines the type of the module: one field, which `$new` makes, and an [`UnloadGuard`]. Unloading
/// drops the field, and then waits as the guard says.
///
/// src/main.rs has an example. [`UnloadGuard`] shows what is refused.
macro_rules! guarded_module {
    (
        $(#[$attribute:meta])*
        struct $name:ident {
            $field:ident: $parts:ty = $new:expr,
        }
        teardown: $queue:expr,
    ) => {
        $(#[$attribute])*
        #[::kernel::prelude::pin_data]
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

                // The guard first: without it, no id and no queue can be made.
                ::kernel::prelude::try_pin_init!(Self {
                    // SAFETY: The guard is a field of the module's type. The kernel makes one value
                    // of that type in the module's memory, and drops it when the module is
                    // unloaded. If another field fails, this one is dropped.
                    _unload <- unsafe {
                        $crate::base::unload::UnloadGuard::new(module, QUEUE)
                    },
                    $field: $new?,
                })
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
/// `shim_unload_wait` counts this hold. The pointer is to the queue for teardown, which is valid as
/// long as there are holds.
pub(crate) struct Hold(NonNull<kernel::bindings::workqueue_struct>);

// SAFETY: Holds are counted atomically and belong to no thread.
unsafe impl Send for Hold {}
// SAFETY: The functions of a work queue may be called from any thread at a time.
unsafe impl Sync for Hold {}

impl Hold {
    /// Takes a hold; any context. Fails with `ESHUTDOWN` without an [`UnloadGuard`].
    pub(crate) fn new() -> Result<Self> {
        // SAFETY: No requirement: if no hold can be taken, the function returns NULL.
        let queue = unsafe { bindings::shim_hold() };

        // INVARIANT: The call above counts the hold, and returns the queue for teardown.
        let queue = NonNull::new(queue);
        queue.map(Self).ok_or(errno(kernel::bindings::ESHUTDOWN))
    }

    /// Queues work that destroys an object; any context.
    pub(crate) fn enqueue<W, const ID: u64>(&self, work: W) -> W::EnqueueOutput
    where
        W: RawWorkItem<ID> + Send + 'static,
    {
        // SAFETY: By the type invariant the queue is valid as long as `self` is.
        unsafe { workqueue::Queue::from_raw(self.0.as_ptr()) }.enqueue(work)
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
        // SAFETY: By the type invariant the queue is valid as long as there are holds. By the
        // function's requirement there is one until the work runs.
        unsafe { delayed_work::reschedule(self.0, work, milliseconds) }
    }
}

impl Clone for Hold {
    fn clone(&self) -> Self {
        // SAFETY: By the type invariant `self` is counted, so there is a hold already.
        unsafe { bindings::shim_hold_again() };
        // INVARIANT: The call above counts the new hold.
        Self(self.0)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // SAFETY: By the type invariant `self` is counted, and it is not used again.
        unsafe { bindings::shim_hold_end() };
    }
}
