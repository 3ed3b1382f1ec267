// SPDX-License-Identifier: GPL-2.0

//! Properties of an id that do not change for a time.

use core::{
    marker::PhantomData,
    net::SocketAddr,
    ptr::NonNull, //
};

use kernel::{
    prelude::*,
    types::NotThreadSafe, //
};

use crate::{
    base::address::RawAddress,
    bindings,
    rdma::verbs::device::{
        Device,
        Port, //
    }, //
};

/// The properties of an id, for a time in which they do not change: during an event of the id, and
/// in a work that sets the connection up.
///
/// # Examples
///
/// ```no_run
/// # let (id, out): (&IdRef<'_>, &mut dyn fmt::Write) = given();
/// let port = id.port()?;
/// if let (Some(local), Some(remote)) = (id.local(), id.remote()) {
///     writeln!(out, "{}: {local} to {remote}", port.name())?;
/// }
/// ```
///
/// # Invariants
///
/// As long as this is there, the id is valid, and its addresses and its device do not change. There
/// is one exception: in the handler of a device's removal, another task may be binding the id or
/// resolving its address. It may then have a part of an address, and its device is still there.
pub(crate) struct IdRef<'a> {
    id: NonNull<bindings::rdma_cm_id>,
    _id: PhantomData<&'a ()>,
    _not_send: NotThreadSafe,
}

impl<'a> IdRef<'a> {
    /// # Safety
    ///
    /// As long as the value is there, `id` must be valid. Its handler mutex must be held, or
    /// nothing else may change its addresses and its device. (`rdma_bind_addr` and
    /// `rdma_resolve_addr` change them without the mutex, before the id has other events than the
    /// removal of its device.)
    pub(super) unsafe fn new(id: NonNull<bindings::rdma_cm_id>) -> Self {
        // INVARIANT: By the function's requirement.
        Self {
            id,
            _id: PhantomData,
            _not_send: NotThreadSafe,
        }
    }

    #[inline]
    pub(super) fn as_non_null(&self) -> NonNull<bindings::rdma_cm_id> {
        self.id
    }

    /// Returns a pointer to the id, valid as long as `self` is.
    #[inline]
    pub(crate) fn as_ptr(&self) -> *mut bindings::rdma_cm_id {
        self.id.as_ptr()
    }

    /// Returns the port that the id is bound to, with its device. It borrows `self`, because `'a`
    /// may outlast the id of a request that is accepted.
    ///
    /// Fails with `ENODEV` if the id is not bound, or if the protocol of the port is unknown.
    pub(crate) fn port(&self) -> Result<Port<'_>> {
        // SAFETY: By the type invariant the id is valid.
        let device = unsafe { (*self.as_ptr()).device };
        // SAFETY: By the type invariant the id is valid.
        let port = unsafe { (*self.as_ptr()).port_num };
        let device = NonNull::new(device).ok_or(ENODEV)?;
        // SAFETY: The id is bound to the device. The removal of the device waits until the id is
        // destroyed, and by the type invariant the id is valid as long as `self` is borrowed.
        let device = unsafe { Device::from_raw(device) };
        Port::new(device, port).ok_or(ENODEV)
    }

    /// Returns the address of this end; [`None`] before the id is bound. If rdma_resolve_addr() has
    /// bound it, this is the unspecified address until the remote address has been resolved.
    pub(crate) fn local(&self) -> Option<SocketAddr> {
        // SAFETY: By the type invariant the id is valid.
        let address = unsafe { bindings::shim_local_addr(self.as_ptr()) };
        // SAFETY: The pointer is to a `sockaddr_storage` of the id, whose family is 0 before it is
        // set. It has room for an address of any family.
        unsafe { RawAddress::read(address) }
    }

    /// Returns the address of the other end; [`None`] before the id is bound. If it has been bound
    /// and does not resolve yet, this is the unspecified address, with port 0.
    pub(crate) fn remote(&self) -> Option<SocketAddr> {
        // SAFETY: By the type invariant the id is valid.
        let address = unsafe { bindings::shim_remote_addr(self.as_ptr()) };
        // SAFETY: As for the local address.
        unsafe { RawAddress::read(address) }
    }
}
