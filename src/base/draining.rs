// SPDX-License-Identifier: GPL-2.0

//! A value that others use until its owner drains it.
//!
//! Superfluous with a kernel whose `Revocable` lets users sleep.

use core::{
    cell::UnsafeCell,
    ops::Deref, //
};

use kernel::{
    new_condvar,
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        CondVar,
        Mutex, //
    }, //
};

use super::wait::MayWait;

/// Whether a use of the value may begin.
#[derive(Eq, PartialEq)]
enum Phase {
    /// Not yet: there is no value.
    Empty,
    /// A use may begin.
    Usable,
    /// No use may begin any more.
    Drained,
}

struct State {
    phase: Phase,
    users: usize,
}

/// A value with the number of its users. The owner and the users share it.
///
/// # Invariants
///
/// `value` is written only with `state` locked, while there are no users and the phase is not
/// [`Phase::Usable`].
#[pin_data]
struct Inner<T> {
    #[pin]
    state: Mutex<State>,
    /// Notified when the last user has finished.
    #[pin]
    finished: CondVar,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: The value is `Send`, and so are the mutex and the condition variable.
unsafe impl<T: Send> Send for Inner<T> {}
// SAFETY: `T: Sync` allows users in several threads, and by the type invariant nobody writes to the
// value meanwhile. `T: Send` allows any thread to put it in, and to take it out.
unsafe impl<T: Send + Sync> Sync for Inner<T> {}

/// The owner's end of a value that others use through a [`Handle`].
///
/// Users may sleep, unlike those of [`kernel::revocable::Revocable`]. The owner waits for them.
/// Dropping the owner's end drains the value. A user of the value must not do that, as it would
/// wait for itself.
///
/// # Examples
///
/// ```no_run
/// # let (value, may_wait): (i32, &MayWait) = given();
/// let owner = Draining::new()?;
/// let handle = owner.handle();
/// assert!(owner.put(value).is_ok());
///
/// // Elsewhere:
/// if let Some(value) = handle.access(may_wait) {
///     pr_info!("{}\n", *value);
/// }
///
/// // Waits for `value` above to be dropped.
/// drop(owner);
/// assert!(handle.access(may_wait).is_none());
/// ```
///
/// A handle has no function that takes the value away, so this does not compile:
///
/// ```compile_fail,E0599
/// # let handle: Handle<u32> = given();
/// // error[E0599]: no method named `drain` found for struct `Handle`
/// let value = handle.drain();
/// ```
pub(crate) struct Draining<T>(Arc<Inner<T>>);

impl<T: Send + Sync> Draining<T> {
    /// Creates one without a value; may sleep. Fails with `ENOMEM`.
    pub(crate) fn new() -> Result<Self> {
        let inner = pin_init!(Inner {
            state <- new_mutex!(
                State {
                    phase: Phase::Empty,
                    users: 0,
                },
                "Draining::state"
            ),
            finished <- new_condvar!("Draining::finished"),
            value: UnsafeCell::new(None),
        });
        Ok(Self(Arc::pin_init(inner, GFP_KERNEL)?))
    }

    /// Whether a value has been put in, or none can be put in any more.
    pub(crate) fn is_used(&self) -> bool {
        self.0.state.lock().phase != Phase::Empty
    }

    /// Puts the value in. Gives it back if a value was put in before, or none can be put in any
    /// more.
    pub(crate) fn put(&self, value: T) -> Result<(), T> {
        let mut state = self.0.state.lock();
        if state.phase != Phase::Empty {
            return Err(value);
        }
        // SAFETY: The state is locked, and there are no users, because the phase is `Empty`. By the
        // type invariant nobody else accesses the value.
        unsafe { *self.0.value.get() = Some(value) };
        state.phase = Phase::Usable;
        Ok(())
    }

    /// Returns a handle to use the value by.
    pub(crate) fn handle(&self) -> Handle<T> {
        Handle(self.0.clone())
    }
}

impl<T> Draining<T> {
    /// Begins to use the value, as [`Handle::access`] does. The owner sees to it that the use waits
    /// for no peer and no completion.
    pub(crate) fn access(&self) -> Option<Access<'_, T>> {
        self.0.access()
    }

    /// Lets no further use begin, waits until all uses have ended, and drops the value; may sleep.
    pub(crate) fn drain(&self) {
        drop(self.0.drain());
    }
}

impl<T> Drop for Draining<T> {
    fn drop(&mut self) {
        self.drain();
    }
}

impl<T> Inner<T> {
    fn access(&self) -> Option<Access<'_, T>> {
        let mut state = self.state.lock();
        if state.phase != Phase::Usable {
            return None;
        }
        // SAFETY: The state is locked until the user below is counted. By the type invariant nobody
        // writes to the value as long as there are users.
        let value = unsafe { (*self.value.get()).as_ref() }?;
        state.users += 1;
        Some(Access { from: self, value })
    }

    fn drain(&self) -> Option<T> {
        let mut state = self.state.lock();
        state.phase = Phase::Drained;
        while state.users > 0 {
            self.finished.wait(&mut state);
        }
        // SAFETY: The state is locked, there are no users, and none can begin any more. By the type
        // invariant nobody else accesses the value.
        unsafe { (*self.value.get()).take() }
    }
}

/// The users' end of a value. Its holder can use the value until the owner drains it, and cannot
/// take it away from the owner.
///
/// # Examples
///
/// ```no_run
/// # let (id, may_wait): (CmId<MyConnection>, &MayWait) = given();
/// let handle = id.queue_pair();
/// let queue_pair = handle.access(may_wait).ok_or(ENODEV)?;
/// queue_pair.send(1024, None, |message| message.append(4).map(|to| to.copy_from_slice(b"ping")))?;
/// ```
///
/// A use may wait, and the owner waits for it. A completion's context may not wait, so this does
/// not compile:
///
/// ```compile_fail,E0061
/// # type Link = Handle<MessageQueuePair<MyEndpoint>>;
/// # fn arrived(link: &Link, _context: &CompletionContext<'_, MyEndpoint>) -> Result {
/// // error[E0061]: this method takes 1 argument but 0 arguments were supplied
/// let queue_pair = link.access().ok_or(ENODEV)?;
/// # Ok(())
/// # }
/// ```
///
/// Nor can a use outlive the call that may wait, to be found by a completion:
///
/// ```compile_fail,E0515
/// type Link = Handle<MessageQueuePair<MyEndpoint>>;
/// type Kept = Access<'static, MessageQueuePair<MyEndpoint>>;
///
/// fn keep(link: &'static Link) -> Option<Kept> {
///     let may_wait: MayWait = given();
///     // error[E0515]: cannot return value referencing local variable `may_wait`
///     link.access(&may_wait)
/// }
/// ```
pub(crate) struct Handle<T>(Arc<Inner<T>>);

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Handle<T> {
    /// Begins to use the value; [`None`] if there is no value yet, or if it has been drained. May
    /// sleep. The use may wait for whatever does not wait for the owner.
    pub(crate) fn access<'a>(&'a self, _may_wait: &'a MayWait) -> Option<Access<'a, T>> {
        self.0.access()
    }
}

/// A use of the value. The owner waits until this is dropped. If it is forgotten, the owner waits
/// for ever, and so does unloading.
pub(crate) struct Access<'a, T> {
    from: &'a Inner<T>,
    value: &'a T,
}

impl<T> Deref for Access<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value
    }
}

impl<T> Drop for Access<'_, T> {
    fn drop(&mut self) {
        let mut state = self.from.state.lock();
        state.users -= 1;
        if state.users == 0 {
            self.from.finished.notify_all();
        }
    }
}
