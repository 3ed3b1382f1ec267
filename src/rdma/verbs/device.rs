// SPDX-License-Identifier: GPL-2.0

//! RDMA devices, with the properties that matter to a connection.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use core::{
    ops::Deref,
    ptr::NonNull, //
};

use kernel::{
    sync::aref::AlwaysRefCounted,
    types::Opaque, //
};

pub(crate) use super::{
    device_name::DeviceName,
    transport::Transport, //
};

use super::device_name::NAME_LEN;
use crate::bindings;

/// An RDMA device (`struct ib_device`).
///
/// # Examples
///
/// An object of a device holds a reference on it. The removal of the device waits for that:
///
/// ```no_run
/// # let device: &Device = given();
/// let device: ARef<Device> = device.into();
/// # let out: &mut dyn fmt::Write = given();
/// writeln!(out, "{}", device.name())?;
/// ```
///
/// # Invariants
///
/// The device is registered, and stays so as long as there is a reference: an id that is bound to
/// it holds up its removal, and so does its reference count.
#[repr(transparent)]
pub(crate) struct Device(Opaque<bindings::ib_device>);

// SAFETY: `ib_device_put()` may be called by any thread and in any context: the last reference only
// wakes the task that unregisters the device.
unsafe impl Send for Device {}
// SAFETY: `&Device` offers members that do not change while the device is registered, except for
// the name, which may be torn if the device is being renamed. The verbs are reentrant
// (Documentation/infiniband/core_locking.rst).
unsafe impl Sync for Device {}

// SAFETY: A device is not unregistered, and stays in memory, as long as its reference count is not
// zero.
unsafe impl AlwaysRefCounted for Device {
    #[inline]
    fn inc_ref(&self) {
        // SAFETY: By the type invariant the device is registered, so the count is not zero.
        unsafe { bindings::shim_device_get(self.as_ptr()) };
    }

    #[inline]
    unsafe fn dec_ref(device: NonNull<Self>) {
        // SAFETY: By the function's requirement the caller owns a reference.
        unsafe { bindings::ib_device_put(device.as_ptr().cast()) };
    }
}

impl Device {
    /// # Safety
    ///
    /// `device` must be registered for `'a`, by an id that is bound to it or by a reference.
    #[inline]
    pub(in crate::rdma) unsafe fn from_raw<'a>(device: NonNull<bindings::ib_device>) -> &'a Self {
        // INVARIANT: By the function's requirement.
        // SAFETY: The pointer is valid by the function's requirement. `Device` is a transparent
        // wrapper.
        unsafe { device.cast().as_ref() }
    }

    /// Returns the name of the device at present.
    pub(crate) fn name(&self) -> DeviceName {
        let mut name = [0; NAME_LEN];
        // SAFETY: By the type invariant the device is there. `name` has room for all bytes that the
        // function writes.
        unsafe { bindings::shim_device_name(self.as_ptr(), name.as_mut_ptr().cast()) };
        DeviceName::from_bytes(name)
    }

    /// Whether the device is soft-iWARP, whose faults some callers have to avoid.
    #[inline]
    pub(in crate::rdma) fn is_siw(&self) -> bool {
        // SAFETY: By the type invariant the device is there.
        unsafe { bindings::shim_is_siw(self.as_ptr()) }
    }

    /// Whether the device has the memory management extensions. Remote invalidation is one of them.
    #[inline]
    pub(crate) fn can_invalidate(&self) -> bool {
        // SAFETY: By the type invariant the device is there.
        unsafe { bindings::shim_mem_mgt_extensions(self.as_ptr()) }
    }

    /// How many RDMA Reads the device can serve on one connection at a time, up to 255.
    #[inline]
    pub(in crate::rdma) fn max_responder_resources(&self) -> u8 {
        // SAFETY: By the type invariant the device is there.
        unsafe { bindings::shim_max_qp_rd_atom(self.as_ptr()) }
    }

    /// How many RDMA Reads the device can have outstanding on one connection, up to 255.
    #[inline]
    pub(in crate::rdma) fn max_initiator_depth(&self) -> u8 {
        // SAFETY: By the type invariant the device is there.
        unsafe { bindings::shim_max_qp_init_rd_atom(self.as_ptr()) }
    }

    /// How many pages a memory region of the device can have.
    #[inline]
    pub(in crate::rdma) fn max_region_pages(&self) -> u32 {
        // SAFETY: By the type invariant the device is there.
        unsafe { bindings::shim_max_fast_reg_page_list_len(self.as_ptr()) }
    }

    #[inline]
    pub(in crate::rdma) fn as_ptr(&self) -> *mut bindings::ib_device {
        self.0.get()
    }
}

/// The port of a device that an id is bound to.
///
/// # Examples
///
/// ```no_run
/// # let (id, out): (&IdRef<'_>, &mut dyn fmt::Write) = given();
/// let port = id.port()?;
/// writeln!(out, "{}: {:?}", port.name(), port.transport())?;
/// ```
///
/// It does not outlive the event of the id from which it was got, so this does not compile:
///
/// ```compile_fail,E0521
/// # fn keep(_: Port<'static>) {}
/// # fn example(id: &IdRef<'_>) -> Result {
/// // error[E0521]: borrowed data escapes outside of function
/// keep(id.port()?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy)]
pub(crate) struct Port<'a> {
    device: &'a Device,
    transport: Transport,
}

impl Deref for Port<'_> {
    type Target = Device;

    #[inline]
    fn deref(&self) -> &Device {
        self.device
    }
}

impl<'a> Port<'a> {
    /// Returns [`None`] if `device` has no port of that `number`, or if the port speaks none of the
    /// protocols of [`Transport`].
    pub(in crate::rdma) fn new(device: &'a Device, number: u32) -> Option<Self> {
        // SAFETY: By the type invariant the device is there. The function takes any number.
        let transport = unsafe { bindings::shim_transport(device.as_ptr(), number) };
        let transport = Transport::from_raw(transport)?;

        Some(Self { device, transport })
    }

    /// Returns the protocol of the port.
    #[inline]
    pub(crate) fn transport(&self) -> Transport {
        self.transport
    }
}
