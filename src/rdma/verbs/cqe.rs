// SPDX-License-Identifier: GPL-2.0

//! Completion entries.

use core::{
    ops::Deref,
    ptr, //
};

use kernel::{
    container_of,
    prelude::*,
    types::Opaque, //
};

use crate::bindings;

/// Handles the completions of Work Requests.
///
/// # Examples
///
/// ```no_run
/// struct MyRequest;
///
/// impl Done for MyRequest {
///     unsafe fn done(_cqe: &Cqe<Self>, completion: &bindings::ib_wc) {
///         pr_info!("status {}\n", completion.status);
/// #       note("cqe_1");
///     }
/// }
/// # pub(super) fn my_request() -> impl Done { MyRequest }
/// ```
pub(in crate::rdma) trait Done: Sync {
    /// Handles `completion`, in the context that the completion queue was made for.
    ///
    /// # Safety
    ///
    /// `completion` must be that of a Work Request that carried `cqe`.
    unsafe fn done(cqe: &Cqe<Self>, completion: &bindings::ib_wc)
    where
        Self: Sized;
}

/// A value with a completion entry (`struct ib_cqe`). It handles the completions of the Work
/// Requests that carry the entry.
///
/// # Examples
///
/// ```no_run
/// # let cqe: Pin<KBox<Cqe<Operation<MyEndpoint>>>> = given();
/// # let mut request = bindings::ib_send_wr::default();
/// request.__bindgen_anon_1.wr_cqe = cqe.entry();
/// // ... post the request, and keep `cqe` until it has completed ...
/// ```
///
/// # Invariants
///
/// `done` of `entry` is [`Self::done`].
#[pin_data]
pub(in crate::rdma) struct Cqe<T> {
    #[pin]
    entry: Opaque<bindings::ib_cqe>,
    #[pin]
    value: T,
}

// SAFETY: The entry does not change once it is initialized.
unsafe impl<T: Sync> Sync for Cqe<T> {}

impl<T: Done> Cqe<T> {
    /// Creates an entry for the value that `value` initializes.
    pub(in crate::rdma) fn new(value: impl PinInit<T>) -> impl PinInit<Self> {
        // INVARIANT: The member is set here.
        pin_init!(Self {
            entry <- Opaque::ffi_init(|entry: *mut bindings::ib_cqe| {
                // SAFETY: `entry` is valid for writes.
                unsafe { (*entry).done = Some(Self::done) }
            }),
            value <- value,
        })
    }

    /// Returns the entry for a Work Request. The poster of the request keeps `self` until it has
    /// completed.
    pub(in crate::rdma) fn entry(&self) -> *mut bindings::ib_cqe {
        let this = ptr::from_ref(self);
        // SAFETY: `self` is valid. The pointer is derived from one to the whole, so `done` may use
        // it to access the whole.
        unsafe { &raw const (*this).entry }.cast_mut().cast()
    }

    /// Handles a completion.
    ///
    /// # Safety
    ///
    /// Called only by the RDMA core, with the completion of a Work Request that carries the entry
    /// of a [`Cqe<T>`] that is still there.
    unsafe extern "C" fn done(_: *mut bindings::ib_cq, completion: *mut bindings::ib_wc) {
        // SAFETY: By the function's requirement the completion is valid during the call.
        let completion = unsafe { &*completion };
        // SAFETY: By the function's requirement the Work Request carries an entry, so this is the
        // member in use.
        let entry = unsafe { completion.__bindgen_anon_1.wr_cqe };
        let entry = entry.cast::<Opaque<bindings::ib_cqe>>();
        // SAFETY: By the function's requirement the entry is that of a `Cqe<T>`, which is there.
        let this = unsafe { &*container_of!(entry, Self, entry) };
        // SAFETY: By the function's requirement the Work Request carried the entry of `this`.
        unsafe { T::done(this, completion) };
    }
}

impl<T> Deref for Cqe<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}
