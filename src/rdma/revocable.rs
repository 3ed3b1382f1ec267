// SPDX-License-Identifier: GPL-2.0

//! Something that several use until its owner takes it away.

use core::{
    cell::UnsafeCell,
    ops::Deref, //
};

use kernel::{
    new_condvar,
    new_mutex,
    prelude::*,
    sync::{
        CondVar,
        Mutex, //
    }, //
};

/// What may be done with the value.
#[derive(Eq, PartialEq)]
enum Phase {
    /// It is not there yet.
    Empty,
    /// It may be used.
    There,
    /// Nobody may begin to use it any more.
    Revoked,
}

struct State {
    phase: Phase,
    users: usize,
}

/// A value that may be used until it is revoked, which waits for its users. Unlike those of
/// [`kernel::revocable::Revocable`], they may sleep.
///
/// # Invariants
///
/// `value` is written only with `state` locked, and while there are no users and the phase is not
/// [`Phase::There`].
#[pin_data]
pub(crate) struct Revocable<T> {
    #[pin]
    state: Mutex<State>,
    /// Notified when the last user has left.
    #[pin]
    left: CondVar,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: Only the value is not `Send` for any `T`.
unsafe impl<T: Send> Send for Revocable<T> {}
// SAFETY: Users share the value, and by the type invariant nobody writes to it meanwhile. It is put
// in and taken out from any thread.
unsafe impl<T: Send + Sync> Sync for Revocable<T> {}

impl<T> Revocable<T> {
    /// Makes one whose value is not there yet.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            state <- new_mutex!(
                State {
                    phase: Phase::Empty,
                    users: 0,
                },
                "Revocable::state"
            ),
            left <- new_condvar!("Revocable::left"),
            value: UnsafeCell::new(None),
        })
    }

    /// Whether there is a value, or has been one.
    pub(crate) fn is_used(&self) -> bool {
        self.state.lock().phase != Phase::Empty
    }

    /// Puts the value in. Gives it back where there is one, or has been one.
    pub(crate) fn put(&self, value: T) -> Result<(), T> {
        let mut state = self.state.lock();
        if state.phase != Phase::Empty {
            return Err(value);
        }
        // SAFETY: By the type invariant, as the phase is `Empty` and the state locked.
        unsafe { *self.value.get() = Some(value) };
        state.phase = Phase::There;
        Ok(())
    }

    /// Begins to use the value; [`None`] where it is not there yet, or has been revoked.
    pub(crate) fn access(&self) -> Option<Access<'_, T>> {
        let mut state = self.state.lock();
        if state.phase != Phase::There {
            return None;
        }
        // SAFETY: By the type invariant nobody writes to it as long as there are users.
        let value = unsafe { (*self.value.get()).as_ref() }?;
        state.users += 1;
        Some(Access { from: self, value })
    }

    /// Takes the value away as soon as nobody uses it; may sleep.
    pub(crate) fn revoke(&self) -> Option<T> {
        let mut state = self.state.lock();
        state.phase = Phase::Revoked;
        while state.users > 0 {
            self.left.wait(&mut state);
        }
        // SAFETY: By the type invariant, as there are no users and the state is locked.
        unsafe { (*self.value.get()).take() }
    }
}

/// The right to use the value, which holds up its end.
pub(crate) struct Access<'a, T> {
    from: &'a Revocable<T>,
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
            self.from.left.notify_all();
        }
    }
}
