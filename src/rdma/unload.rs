// SPDX-License-Identifier: GPL-2.0

//! Keeps the module's code in memory for as long as the kernel may call it.

use core::{
    marker::PhantomPinned,
    ptr::NonNull, //
};

use kernel::{
    error::to_result,
    prelude::*,
    workqueue::{
        self,
        RawWorkItem, //
    }, //
};

use super::errno;
use crate::bindings;

/// How long unload waits before it says what it waits for, in milliseconds.
const WARN_MS: u32 = 30_000;

/// The field of the module's type that has unload wait until there are no ids, no queues and no
/// memory regions.
///
/// rdma_cm calls the handler of an id until the id is destroyed, and a handler is code of the
/// module. An id whose destructor does not run (`mem::forget`, or a reference cycle through its
/// handler) stays for ever: then unload waits for ever, too, and says so in the log, instead of
/// freeing code that the kernel is going to call. So does a
/// [`Registration`](super::registration::Registration) whose destructor does not run: the kernel
/// prints the name of its owner, which is in the module.
///
/// It must be the last field, as it waits for what the others hold. Until it is initialized none of
/// these can be made: that fails with `ESHUTDOWN`.
///
/// # Why this cannot be circumvented
///
/// A reference on the module for each id would be simpler, but then a connection would keep the
/// module from being unloaded. A guard that could be dropped at any place could be forgotten. This
/// one is pinned, and its initializer fails unless it lies in the module's own memory. Pinned
/// memory is not freed before it is dropped; so the module's memory is not freed before this is.
///
/// # Examples
///
/// ```no_run
/// #[pin_data]
/// struct MyModule {
///     listener: CmListener<MyServer>,
///     // Dropped last.
///     #[pin]
///     unload: UnloadGuard,
/// }
///
/// impl kernel::InPlaceModule for MyModule {
///     fn init(_module: &'static ThisModule) -> impl PinInit<Self, Error> {
/// #       let (net, server, address): (Net, Arc<MyServer>, SocketAddr) = given();
///         try_pin_init!(Self {
///             // Initialized first.
///             unload <- UnloadGuard::new(c"my_teardown"),
///             listener: CmListener::new(&net, c"my_module", server, address, 128)?,
///         })
///     }
/// }
/// ```
///
/// A guard elsewhere could be leaked, so this fails with `EINVAL`:
///
/// ```no_run
/// core::mem::forget(KBox::pin_init(UnloadGuard::new(c"my_teardown"), GFP_KERNEL)?);
/// ```
///
/// # Invariants
///
/// There can be holds only as long as this is there.
#[pin_data(PinnedDrop)]
pub(crate) struct UnloadGuard {
    #[pin]
    _pin: PhantomPinned,
}

impl UnloadGuard {
    /// Makes the guard, with the work queue called `name` in which ids and queues end.
    ///
    /// Fails with `EINVAL` where it is not in the module's memory, with `EBUSY` where there is one.
    pub(crate) fn new(name: &'static CStr) -> impl PinInit<Self, Error> {
        let init = move |slot: *mut Self| {
            // SAFETY: `name` is a C string, which the function copies. It does not access the slot.
            to_result(unsafe { bindings::shim_unload_guard(slot.cast(), name.as_char_ptr()) })?;

            // INVARIANT: There can be holds since the call above.
            // SAFETY: The slot is valid for writes.
            unsafe {
                slot.write(Self {
                    _pin: PhantomPinned,
                })
            };
            Ok(())
        };

        // SAFETY: The closure initializes the slot where it returns `Ok`, and otherwise leaves
        // nothing to be dropped. The slot may be pinned.
        unsafe { pin_init::pin_init_from_closure(init) }
    }
}

#[pinned_drop]
impl PinnedDrop for UnloadGuard {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the type invariant there can be holds, until now.
        unsafe { bindings::shim_unload_begin() };
        loop {
            // SAFETY: No requirement: it waits.
            let left = unsafe { bindings::shim_unload_wait(WARN_MS) };
            if left == 0 {
                break;
            }
            pr_warn!("unloading waits for {left} ids, work queues and memory regions\n");
        }
        // SAFETY: There are no holds, and there can be none, so nobody uses the queue.
        unsafe { bindings::shim_unload_end() };
    }
}

/// Kept by an object for which the kernel may use the module's code or data: unload waits for it.
///
/// It also gives access to the work queue in which such objects end. That work may give up the last
/// hold: unload waits for its return.
///
/// # Invariants
///
/// This is one of those that `shim_unload_wait` counts. The queue is valid as long as there is one.
pub(super) struct Hold(NonNull<kernel::bindings::workqueue_struct>);

// SAFETY: Holds are counted atomically and belong to no thread.
unsafe impl Send for Hold {}
// SAFETY: The functions of a work queue may be called from any thread at a time.
unsafe impl Sync for Hold {}

impl Hold {
    /// Fails with `ESHUTDOWN` where there is no [`UnloadGuard`].
    pub(super) fn new() -> Result<Self> {
        // SAFETY: No requirement: where there can be no holds, the function returns NULL.
        let queue = unsafe { bindings::shim_hold() };

        // INVARIANT: Counted by the call above.
        let queue = NonNull::new(queue);
        queue.map(Self).ok_or(errno(kernel::bindings::ESHUTDOWN))
    }

    /// Queues work that ends an object; any context.
    pub(super) fn enqueue<W, const ID: u64>(&self, work: W) -> W::EnqueueOutput
    where
        W: RawWorkItem<ID> + Send + 'static,
    {
        // SAFETY: By the type invariant the queue is valid as long as `self` is.
        unsafe { workqueue::Queue::from_raw(self.0.as_ptr()) }.enqueue(work)
    }
}

impl Clone for Hold {
    fn clone(&self) -> Self {
        // SAFETY: By the type invariant `self` is counted.
        unsafe { bindings::shim_hold_again() };
        // INVARIANT: Counted by the call above.
        Self(self.0)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // SAFETY: By the type invariant `self` is counted, and it is not used again.
        unsafe { bindings::shim_hold_end() };
    }
}
