// SPDX-License-Identifier: GPL-2.0

//! Work queues of the module's own, which unload can wait for.
//!
//! Superfluous with a kernel whose crate allocates work queues.
//!
//! C header: [`include/linux/workqueue.h`](srctree/include/linux/workqueue.h)

use core::{
    mem::ManuallyDrop,
    ptr::NonNull, //
};

use kernel::{
    impl_has_work,
    new_work,
    prelude::*,
    sync::Arc,
    workqueue::{
        self,
        HasDelayedWork,
        RawWorkItem,
        Work,
        WorkItem, //
    }, //
};

use super::{
    delayed_work,
    unload::Hold,
    wait::MayWait, //
};
use crate::bindings;

/// A work queue.
///
/// # Invariants
///
/// The pointer is to a work queue that this owns.
struct RawQueue(NonNull<kernel::bindings::workqueue_struct>);

// SAFETY: Any thread may destroy a work queue, whichever made it.
unsafe impl Send for RawQueue {}
// SAFETY: Works may be queued and flushed by several threads at a time.
unsafe impl Sync for RawQueue {}

impl Drop for RawQueue {
    fn drop(&mut self) {
        // SAFETY: By the type invariant this owns the queue, and nobody can queue work any more.
        // This does not run in a work of the queue itself: see `Destruction`.
        unsafe { kernel::bindings::destroy_workqueue(self.0.as_ptr()) };
    }
}

/// The work that destroys a queue, which runs in another one.
#[pin_data]
struct Destruction {
    queue: RawQueue,
    #[pin]
    work: Work<Self>,
    // Dropped last: until then the module stays.
    hold: Hold,
}

impl_has_work! {
    impl HasWork<Self> for Destruction { self.work }
}

impl WorkItem for Destruction {
    type Pointer = Pin<KBox<Self>>;

    fn run(this: Pin<KBox<Self>>) {
        drop(this);
    }
}

/// An unbound work queue; its work may sleep.
///
/// The last reference may be dropped in any context, even by the queue's own work: a work of
/// another queue destroys the queue, after all work of the queue has run.
///
/// # Examples
///
/// ```no_run
/// # let (hold, my_work): (&Hold, Arc<MyWork>) = given();
/// # let may_wait: &MayWait = given();
/// let queue = WorkQueue::new(hold, c"my_queue")?;
/// let _ = queue.enqueue(Arc::clone(&my_work));
/// queue.flush(may_wait);
/// ```
///
/// The context of a completion may not wait, so this does not compile:
///
/// ```compile_fail,E0061
/// # fn arrived(queue: &WorkQueue, _context: &CompletionContext<'_, MyEndpoint>) {
/// // error[E0061]: this method takes 1 argument but 0 arguments were supplied
/// queue.flush();
/// # }
/// ```
///
/// Nor can a work flush its own queue, unless `impl_waiting_work!` implements it:
///
/// ```compile_fail,E0061
/// # #[pin_data]
/// # struct MyFlushingWork {
/// #     queue: Arc<WorkQueue>,
/// #     #[pin]
/// #     work: Work<Self>,
/// # }
/// # impl_has_work! {
/// #     impl HasWork<Self> for MyFlushingWork { self.work }
/// # }
/// impl WorkItem for MyFlushingWork {
///     type Pointer = Arc<Self>;
///
///     fn run(this: Arc<Self>) {
///         // error[E0061]: this method takes 1 argument but 0 arguments were supplied
///         this.queue.flush();
///     }
/// }
/// ```
///
/// A work can own its queue:
///
/// ```no_run
/// # #[pin_data]
/// # pub(super) struct MyOwner {
/// #     pub(super) queue: Arc<WorkQueue>,
/// #     #[pin]
/// #     pub(super) work: Work<Self>,
/// # }
/// # impl_has_work! {
/// #     impl HasWork<Self> for MyOwner { self.work }
/// # }
/// impl WorkItem for MyOwner {
///     type Pointer = Arc<Self>;
///
///     fn run(this: Arc<Self>) {
/// #       let _ = wait_until(|| RELEASED.load(Relaxed));
///         // This may be the last reference to the queue, in which the work runs.
///         drop(this);
/// #       note("work_queue_4");
///     }
/// }
/// ```
pub(crate) struct WorkQueue(ManuallyDrop<Pin<KBox<Destruction>>>);

impl WorkQueue {
    /// Creates a work queue; process context only.
    ///
    /// Fails with `ENOMEM`.
    pub(crate) fn new(hold: &Hold, name: &CStr) -> Result<Arc<Self>> {
        // SAFETY: `name` is a C string, which the function copies.
        let queue = unsafe { bindings::shim_alloc_workqueue(name.as_char_ptr()) };

        // INVARIANT: The function returns a new work queue.
        let queue = RawQueue(NonNull::new(queue).ok_or(ENOMEM)?);
        let destruction = KBox::pin_init(
            pin_init!(Destruction {
                queue,
                work <- new_work!("Destruction::work"),
                hold: hold.clone(),
            }),
            GFP_KERNEL,
        )?;
        Ok(Arc::new(Self(ManuallyDrop::new(destruction)), GFP_KERNEL)?)
    }

    /// Returns the hold of the queue.
    #[inline]
    pub(crate) fn hold(&self) -> &Hold {
        &self.0.hold
    }

    /// Queues `work`; any context.
    pub(crate) fn enqueue<W, const ID: u64>(&self, work: W) -> W::EnqueueOutput
    where
        W: RawWorkItem<ID> + Send + 'static,
    {
        // SAFETY: By the type invariant of `RawQueue` the queue is valid as long as `self` is.
        unsafe { workqueue::Queue::from_raw(self.0.queue.0.as_ptr()) }.enqueue(work)
    }

    /// Waits until all work that was queued before has run; process context.
    ///
    /// Must not be called by a work of this queue, which would wait for itself. A work that
    /// `impl_waiting_work!` makes has a [`MayWait`], so no type prevents that. lockdep reports it.
    pub(crate) fn flush(&self, _may_wait: &MayWait) {
        // SAFETY: By the type invariant of `RawQueue` the queue is valid.
        unsafe { bindings::shim_flush_workqueue(self.0.queue.0.as_ptr()) };
    }
}

impl Drop for WorkQueue {
    fn drop(&mut self) {
        // SAFETY: The value is not used again.
        let destruction = unsafe { ManuallyDrop::take(&mut self.0) };
        // The work may run, and drop its own hold, before the call has returned.
        let hold = destruction.hold.clone();
        hold.enqueue(destruction);
    }
}

/// Implements [`WorkItem`] for works that wait for peers or completions. Each runs a function of
/// the form `fn(Arc<Self>, &MayWait)`.
///
/// # Examples
///
/// ```no_run
/// # #[pin_data]
/// # pub(super) struct MyWaitingWork {
/// #     pub(super) queue_pair: Handle<MessageQueuePair<MyEndpoint>>,
/// #     #[pin]
/// #     pub(super) work: Work<Self>,
/// # }
/// # impl_has_work! {
/// #     impl HasWork<Self> for MyWaitingWork { self.work }
/// # }
/// impl MyWaitingWork {
///     fn resume(this: Arc<Self>, may_wait: &MayWait) {
///         if let Some(queue_pair) = this.queue_pair.access(may_wait) {
///             queue_pair.resume();
/// #           note("work_queue_5");
///         }
///     }
/// }
///
/// impl_waiting_work! {
///     impl WorkItem<0> for MyWaitingWork { Self::resume }
/// }
/// ```
macro_rules! impl_waiting_work {
    ($(impl WorkItem<$id:tt> for $type:ty { $run:expr })*) => {
        $(
            impl ::kernel::workqueue::WorkItem<$id> for $type {
                type Pointer = ::kernel::sync::Arc<Self>;

                fn run(this: ::kernel::sync::Arc<Self>) {
                    // SAFETY: A queue calls this, and completions and handlers only queue works.
                    // A caller that calls it by hand waits for ever at most.
                    let may_wait = unsafe { $crate::base::wait::MayWait::new() };
                    $run(this, &may_wait)
                }
            }
        )*
    };
}
pub(crate) use impl_waiting_work;

/// A work whose time can be changed while it is queued.
///
/// # Examples
///
/// ```no_run
/// # let my_work: Arc<MyDelayedWork> = given();
/// run_after(my_work.clone(), 30_000);
/// // Now rather than later:
/// run_after(my_work, 0);
/// ```
pub(crate) trait Delayed<const ID: u64>:
    HasDelayedWork<Self, ID> + WorkItem<ID, Pointer = Arc<Self>> + Send + Sync + Sized + 'static
{
    /// Returns the queue that it runs in, to which it holds a reference.
    fn queue(&self) -> &WorkQueue;
}

/// Has `work` run after `milliseconds`, counted from now, whether or not it is queued already. If
/// it is running, it runs once more. Any context.
///
/// [`WorkQueue::flush`] does not wait for a work whose time has not come.
pub(crate) fn run_after<T: Delayed<ID>, const ID: u64>(work: Arc<T>, milliseconds: u32) {
    let queue = work.queue().0.queue.0;
    // SAFETY: By the type invariant of `RawQueue` the queue is valid as long as the reference
    // above. That is borrowed from the work, so it is valid as long as nobody has exclusive access
    // to the work. Until the work runs, nobody has: the queue holds a reference on the work.
    unsafe { delayed_work::reschedule::<T, ID>(queue, work, milliseconds) }
}
