// SPDX-License-Identifier: GPL-2.0

//! RDMA devices, with the properties that matter to a connection.

use core::{
    marker::PhantomData,
    ptr::NonNull, //
};

pub(crate) use super::{
    device_name::DeviceName,
    transport::Transport, //
};

use super::device_name::NAME_LEN;
use crate::bindings;

/// The device and the port that an id is bound to.
///
/// # Examples
///
/// ```no_run
/// # let (id, out): (&IdRef<'_>, &mut dyn fmt::Write) = given();
/// let device = id.device()?;
/// writeln!(out, "{}: {:?}", device.name(), device.transport())?;
/// ```
///
/// It does not outlive the event of the id from which it was got, so this does not compile:
///
/// ```compile_fail,E0521
/// # fn keep(_: Device<'static>) {}
/// # fn example(id: &IdRef<'_>) -> Result {
/// // error[E0521]: borrowed data escapes outside of function
/// keep(id.device()?);
/// # Ok(())
/// # }
/// ```
///
/// # Invariants
///
/// The device stays for `'a`: an id that is bound to it holds up its removal.
#[derive(Clone, Copy)]
pub(crate) struct Device<'a> {
    device: NonNull<bindings::ib_device>,
    transport: Transport,
    _id: PhantomData<&'a ()>,
}

impl Device<'_> {
    /// Returns [`None`] if `device` is NULL, as that of an id that is not bound, or if the port
    /// speaks none of the protocols of [`Transport`].
    ///
    /// # Safety
    ///
    /// `device` must be NULL, or stay for the returned lifetime and have a port of that number.
    pub(in crate::rdma) unsafe fn new(device: *mut bindings::ib_device, port: u32) -> Option<Self> {
        let device = NonNull::new(device)?;
        // SAFETY: By the function's requirement the device is there and has the port.
        let transport = unsafe { bindings::shim_transport(device.as_ptr(), port) };
        let transport = Transport::from_raw(transport)?;

        // INVARIANT: By the function's requirement.
        Some(Self {
            device,
            transport,
            _id: PhantomData,
        })
    }

    pub(crate) fn name(&self) -> DeviceName {
        let mut name = [0; NAME_LEN];
        // SAFETY: By the type invariant the device is there. `name` has room for all bytes that the
        // function writes.
        unsafe { bindings::shim_device_name(self.as_ptr(), name.as_mut_ptr().cast()) };
        DeviceName::from_bytes(name)
    }

    pub(crate) fn transport(&self) -> Transport {
        self.transport
    }

    /// Whether the device is soft-iWARP, whose faults some callers have to avoid.
    pub(in crate::rdma) fn is_siw(&self) -> bool {
        // SAFETY: By the type invariant the device is there.
        unsafe { bindings::shim_is_siw(self.as_ptr()) }
    }

    /// Whether the device has the memory management extensions. Remote invalidation is one of them.
    pub(crate) fn can_invalidate(&self) -> bool {
        // SAFETY: By the type invariant the device is there.
        unsafe { bindings::shim_mem_mgt_extensions(self.as_ptr()) }
    }

    /// How many RDMA Reads the device can serve on one connection at a time, up to 255.
    pub(in crate::rdma) fn max_responder_resources(&self) -> u8 {
        // SAFETY: By the type invariant the device is there.
        unsafe { bindings::shim_max_qp_rd_atom(self.as_ptr()) }
    }

    /// How many RDMA Reads the device can have outstanding on one connection, up to 255.
    pub(in crate::rdma) fn max_initiator_depth(&self) -> u8 {
        // SAFETY: By the type invariant the device is there.
        unsafe { bindings::shim_max_qp_init_rd_atom(self.as_ptr()) }
    }

    pub(in crate::rdma) fn as_non_null(&self) -> NonNull<bindings::ib_device> {
        self.device
    }

    pub(in crate::rdma) fn as_ptr(&self) -> *mut bindings::ib_device {
        self.device.as_ptr()
    }
}
