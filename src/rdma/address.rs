// SPDX-License-Identifier: GPL-2.0

//! Network namespaces and socket addresses.
//!
//! C headers: [`include/net/net_namespace.h`](srctree/include/net/net_namespace.h),
//! [`include/linux/socket.h`](srctree/include/linux/socket.h)

use core::{
    net::{
        Ipv4Addr,
        Ipv6Addr,
        SocketAddr,
        SocketAddrV4,
        SocketAddrV6, //
    },
    ptr::{
        self,
        NonNull, //
    },
};

use kernel::prelude::*;

use crate::bindings;

/// A reference on a network namespace.
///
/// # Invariants
///
/// The pointer is valid, and this owns one reference on what it points to.
pub(crate) struct Net(NonNull<kernel::bindings::net>);

// SAFETY: References on a namespace are counted atomically and belong to no thread.
unsafe impl Send for Net {}
// SAFETY: Nothing that `&Net` offers is bound to a thread.
unsafe impl Sync for Net {}

impl Net {
    /// Returns the network namespace of the calling task; process context only.
    pub(crate) fn current() -> Result<Self> {
        // SAFETY: A task that calls into the kernel is alive and so has its namespaces.
        let net = unsafe { bindings::shim_get_current_net() };

        // INVARIANT: The function has taken a reference for its caller.
        NonNull::new(net).map(Self).ok_or(EINVAL)
    }

    /// Returns the index of the interface called `name`, which ends with a NUL.
    pub(crate) fn interface_index(&self, name: &CStr) -> Option<u32> {
        // SAFETY: By the type invariant the namespace is valid, and `name` is a C string.
        let index = unsafe { bindings::shim_ifindex(self.as_ptr(), name.as_char_ptr()) };

        u32::try_from(index).ok().filter(|&index| index != 0)
    }

    pub(super) fn as_ptr(&self) -> *mut kernel::bindings::net {
        self.0.as_ptr()
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        // SAFETY: By the type invariant this reference is ours to give back.
        unsafe { bindings::shim_put_net(self.as_ptr()) };
    }
}

/// A socket address in the form that C functions take.
pub(crate) enum RawAddress {
    V4(bindings::sockaddr_in),
    V6(bindings::sockaddr_in6),
}

impl RawAddress {
    /// Returns a pointer to the address, valid as long as `self` stays where it is.
    pub(crate) fn as_ptr(&self) -> *const kernel::bindings::sockaddr {
        match self {
            Self::V4(address) => ptr::from_ref(address).cast(),
            Self::V6(address) => ptr::from_ref(address).cast(),
        }
    }

    pub(super) fn as_mut_ptr(&mut self) -> *mut kernel::bindings::sockaddr {
        match self {
            Self::V4(address) => ptr::from_mut(address).cast(),
            Self::V6(address) => ptr::from_mut(address).cast(),
        }
    }

    /// Reads the address at `address`; [`None`] where it is of neither Internet family.
    ///
    /// # Safety
    ///
    /// `address` points to a `sockaddr` whose family is set and that is as large as its family
    /// asks for.
    pub(crate) unsafe fn read(address: *const kernel::bindings::sockaddr) -> Option<SocketAddr> {
        // SAFETY: By the function's requirement the family is set.
        let family = unsafe { (*address).sa_family };

        match u32::from(family) {
            bindings::AF_INET => {
                // SAFETY: By the function's requirement it is as large as its family asks for.
                let address = unsafe { address.cast::<bindings::sockaddr_in>().read_unaligned() };
                let ip = Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr));
                let port = u16::from_be(address.sin_port);
                Some(SocketAddrV4::new(ip, port).into())
            }
            bindings::AF_INET6 => {
                // SAFETY: By the function's requirement it is as large as its family asks for.
                let address = unsafe { address.cast::<bindings::sockaddr_in6>().read_unaligned() };
                // SAFETY: Any octets are valid for this member of the union.
                let ip = Ipv6Addr::from(unsafe { address.sin6_addr.in6_u.u6_addr8 });
                let port = u16::from_be(address.sin6_port);
                Some(SocketAddrV6::new(ip, port, 0, address.sin6_scope_id).into())
            }
            _ => None,
        }
    }
}

impl From<SocketAddr> for RawAddress {
    fn from(address: SocketAddr) -> Self {
        match address {
            SocketAddr::V4(address) => {
                let mut raw = bindings::sockaddr_in {
                    sin_family: bindings::AF_INET as u16,
                    sin_port: address.port().to_be(),
                    ..Default::default()
                };
                raw.sin_addr.s_addr = u32::from(*address.ip()).to_be();
                Self::V4(raw)
            }
            SocketAddr::V6(address) => {
                let mut raw = bindings::sockaddr_in6 {
                    sin6_family: bindings::AF_INET6 as u16,
                    sin6_port: address.port().to_be(),
                    sin6_scope_id: address.scope_id(),
                    ..Default::default()
                };
                raw.sin6_addr.in6_u.u6_addr8 = address.ip().octets();
                Self::V6(raw)
            }
        }
    }
}
