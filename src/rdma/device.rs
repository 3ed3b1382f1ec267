// SPDX-License-Identifier: GPL-2.0

//! What a connection wants to know of the RDMA device it runs over.

use core::{
    fmt,
    marker::PhantomData,
    ptr::NonNull, //
};

use crate::bindings;

/// The length of a device's name in octets with its NUL: `IB_DEVICE_NAME_MAX`.
const NAME_LEN: usize = 64;

/// A device's name.
#[derive(Clone, Copy)]
pub(crate) struct DeviceName([u8; NAME_LEN]);

impl DeviceName {
    /// Takes a name as the kernel has it: what follows the first NUL does not count.
    pub(crate) fn from_octets(octets: [u8; NAME_LEN]) -> Self {
        Self(octets)
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.0.split(|&octet| octet == 0).next().unwrap_or_default();
        f.pad(core::str::from_utf8(name).unwrap_or("?"))
    }
}

/// The protocol that a port of a device speaks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Transport {
    InfiniBand,
    Roce,
    Iwarp,
}

impl Transport {
    /// Takes what `shim_transport` of shim.h returns; [`None`] for protocols that are not known.
    pub(crate) fn from_raw(transport: bindings::rpcrdma_cm_transport) -> Option<Self> {
        match transport {
            bindings::rpcrdma_cm_transport_RPCRDMA_CM_INFINIBAND => Some(Self::InfiniBand),
            bindings::rpcrdma_cm_transport_RPCRDMA_CM_ROCE => Some(Self::Roce),
            bindings::rpcrdma_cm_transport_RPCRDMA_CM_IWARP => Some(Self::Iwarp),
            _ => None,
        }
    }

    /// How many octets of private data a connection request can carry.
    ///
    /// InfiniBand has 92 (`IB_CM_REQ_PRIVATE_DATA_SIZE`), of which rdma_cm takes 36 for its own
    /// header where addresses are IP addresses. On iWARP the kernel counts private data in one
    /// octet, and MPAv2 (RFC 6581, section 9) puts 4 octets before it.
    pub(crate) const fn request_capacity(self) -> usize {
        match self {
            Self::InfiniBand | Self::Roce => 92 - 36,
            Self::Iwarp => 255 - 4,
        }
    }

    /// How many octets of private data the answer to a request can carry: on InfiniBand
    /// `IB_CM_REP_PRIVATE_DATA_SIZE`.
    pub(crate) const fn reply_capacity(self) -> usize {
        match self {
            Self::InfiniBand | Self::Roce => 196,
            Self::Iwarp => self.request_capacity(),
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::InfiniBand => "infiniband",
            Self::Roce => "roce",
            Self::Iwarp => "iwarp",
        })
    }
}

/// The device and the port that an id is bound to.
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
    /// Returns [`None`] where the id is not bound or the port speaks another protocol.
    ///
    /// # Safety
    ///
    /// `device` is NULL or stays for the returned lifetime and has a port of that number.
    pub(super) unsafe fn new(device: *mut bindings::ib_device, port: u32) -> Option<Self> {
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
        // SAFETY: By the type invariant the device is there; `name` has the length that the
        // function writes.
        unsafe { bindings::shim_device_name(self.as_ptr(), name.as_mut_ptr().cast()) };
        DeviceName(name)
    }

    pub(crate) fn transport(&self) -> Transport {
        self.transport
    }

    /// Whether it has the memory management extensions, of which remote invalidation is a part.
    pub(crate) fn can_invalidate(&self) -> bool {
        // SAFETY: By the type invariant the device is there.
        unsafe { bindings::shim_mem_mgt_extensions(self.as_ptr()) }
    }

    /// How many RDMA Reads it can serve on one connection at a time, up to 255.
    pub(super) fn max_responder_resources(&self) -> u8 {
        // SAFETY: By the type invariant the device is there.
        unsafe { bindings::shim_max_qp_rd_atom(self.as_ptr()) }
    }

    /// How many RDMA Reads it can have outstanding on one connection, up to 255.
    pub(super) fn max_initiator_depth(&self) -> u8 {
        // SAFETY: By the type invariant the device is there.
        unsafe { bindings::shim_max_qp_init_rd_atom(self.as_ptr()) }
    }

    pub(super) fn as_non_null(&self) -> NonNull<bindings::ib_device> {
        self.device
    }

    pub(super) fn as_ptr(&self) -> *mut bindings::ib_device {
        self.device.as_ptr()
    }
}
