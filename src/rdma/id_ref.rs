// SPDX-License-Identifier: GPL-2.0

//! Properties of an id during one of its events.

use core::{
    marker::PhantomData,
    net::SocketAddr,
    ptr::NonNull, //
};

use kernel::{
    prelude::*,
    types::NotThreadSafe, //
};

use super::{
    address::RawAddress,
    device::Device, //
};
use crate::bindings;

/// The properties of an id that can be read during one of its events, whichever that is.
///
/// # Examples
///
/// ```no_run
/// # let (id, out): (&IdRef<'_>, &mut dyn fmt::Write) = given();
/// let device = id.device()?;
/// if let (Some(local), Some(remote)) = (id.local(), id.remote()) {
///     writeln!(out, "{}: {local} to {remote}", device.name())?;
/// }
/// ```
///
/// # Invariants
///
/// The id is valid, and its handler mutex held, for `'a`.
pub(crate) struct IdRef<'a> {
    id: NonNull<bindings::rdma_cm_id>,
    _id: PhantomData<&'a ()>,
    _not_send: NotThreadSafe,
}

impl<'a> IdRef<'a> {
    /// # Safety
    ///
    /// `id` must be valid for `'a`, and its handler mutex held during it.
    pub(super) unsafe fn new(id: NonNull<bindings::rdma_cm_id>) -> Self {
        // INVARIANT: By the function's requirement.
        Self {
            id,
            _id: PhantomData,
            _not_send: NotThreadSafe,
        }
    }

    pub(super) fn as_non_null(&self) -> NonNull<bindings::rdma_cm_id> {
        self.id
    }

    pub(super) fn as_ptr(&self) -> *mut bindings::rdma_cm_id {
        self.id.as_ptr()
    }

    /// Returns the device that the id is bound to.
    pub(crate) fn device(&self) -> Result<Device<'a>> {
        // SAFETY: By the type invariant the id is valid.
        let device = unsafe { (*self.as_ptr()).device };
        // SAFETY: As above.
        let port = unsafe { (*self.as_ptr()).port_num };
        // SAFETY: A bound id keeps its device; the port is one of the device's.
        unsafe { Device::new(device, port) }.ok_or(ENODEV)
    }

    /// Returns the address of this end; [`None`] before the id has one.
    pub(crate) fn local(&self) -> Option<SocketAddr> {
        // SAFETY: By the type invariant the id is valid.
        let address = unsafe { bindings::shim_local_addr(self.as_ptr()) };
        // SAFETY: The address has room for any family.
        unsafe { RawAddress::read(address) }
    }

    /// Returns the address of the other end; [`None`] before the id has one.
    pub(crate) fn remote(&self) -> Option<SocketAddr> {
        // SAFETY: By the type invariant the id is valid.
        let address = unsafe { bindings::shim_remote_addr(self.as_ptr()) };
        // SAFETY: The address has room for any family.
        unsafe { RawAddress::read(address) }
    }
}
