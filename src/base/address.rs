// SPDX-License-Identifier: GPL-2.0

//! Socket addresses.
//!
//! Superfluous with a kernel whose crate converts between `sockaddr` and `core::net::SocketAddr`.
//!
//! C header: [`include/linux/socket.h`](srctree/include/linux/socket.h)

use core::{
    net::{
        Ipv4Addr,
        Ipv6Addr,
        SocketAddr,
        SocketAddrV4,
        SocketAddrV6, //
    },
    ptr, //
};

use crate::bindings;

/// A socket address in the form that C functions take.
///
/// # Examples
///
/// ```no_run
/// let raw = RawAddress::from(SocketAddr::from(([192, 0, 2, 1], 20049)));
/// // SAFETY: It is as large as its family asks for.
/// assert!(unsafe { RawAddress::read(raw.as_ptr()) }.is_some());
/// ```
pub(crate) enum RawAddress {
    /// Of IPv4.
    V4(bindings::sockaddr_in),
    /// Of IPv6.
    V6(bindings::sockaddr_in6),
}

impl RawAddress {
    /// Returns a pointer to the address, valid as long as `self` stays where it is.
    #[inline]
    pub(crate) fn as_ptr(&self) -> *const kernel::bindings::sockaddr {
        match self {
            Self::V4(address) => ptr::from_ref(address).cast(),
            Self::V6(address) => ptr::from_ref(address).cast(),
        }
    }

    /// The same for functions that take a mutable pointer.
    #[inline]
    pub(crate) fn as_mut_ptr(&mut self) -> *mut kernel::bindings::sockaddr {
        match self {
            Self::V4(address) => ptr::from_mut(address).cast(),
            Self::V6(address) => ptr::from_mut(address).cast(),
        }
    }

    /// Reads the address at `address`; [`None`] if its family is neither IPv4 nor IPv6.
    ///
    /// # Safety
    ///
    /// `address` must point to a `sockaddr` whose family is set, and which is as large as its
    /// family requires.
    pub(crate) unsafe fn read(address: *const kernel::bindings::sockaddr) -> Option<SocketAddr> {
        // SAFETY: By the function's requirement the family is set.
        let family = unsafe { (*address).sa_family };

        match u32::from(family) {
            bindings::AF_INET => {
                // SAFETY: By the function's requirement it is as large as its family requires.
                let address = unsafe { address.cast::<bindings::sockaddr_in>().read_unaligned() };
                let ip = Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr));
                let port = u16::from_be(address.sin_port);
                Some(SocketAddrV4::new(ip, port).into())
            }
            bindings::AF_INET6 => {
                // SAFETY: By the function's requirement it is as large as its family requires.
                let address = unsafe { address.cast::<bindings::sockaddr_in6>().read_unaligned() };
                // SAFETY: Any bytes are valid for this member of the union.
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
