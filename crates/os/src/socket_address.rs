// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Internet addresses as the system writes them (ip(7), ipv6(7)) and as Rust does. Used by
//! udp_socket and datagrams.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Room for an address of either family.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) union RawAddress {
    v4: libc::sockaddr_in,
    v6: libc::sockaddr_in6,
}

impl RawAddress {
    /// Size of the room.
    pub(crate) const BYTES: libc::socklen_t = size_of::<Self>() as libc::socklen_t;

    /// An address of no family.
    pub(crate) fn none() -> Self {
        // SAFETY: all zeros is a value of both structures; family 0 is neither's.
        unsafe { core::mem::zeroed() }
    }

    /// The system's form, and how long it is.
    pub(crate) fn from(address: SocketAddr) -> (Self, libc::socklen_t) {
        match address {
            SocketAddr::V4(v4) => {
                let raw = libc::sockaddr_in {
                    sin_family: libc::AF_INET as libc::sa_family_t,
                    sin_port: v4.port().to_be(),
                    sin_addr: libc::in_addr {
                        s_addr: u32::from_ne_bytes(v4.ip().octets()),
                    },
                    sin_zero: [0; 8],
                };
                (
                    Self { v4: raw },
                    size_of::<libc::sockaddr_in>() as libc::socklen_t,
                )
            }
            SocketAddr::V6(v6) => {
                let raw = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as libc::sa_family_t,
                    sin6_port: v6.port().to_be(),
                    sin6_flowinfo: v6.flowinfo(),
                    sin6_addr: libc::in6_addr {
                        s6_addr: v6.ip().octets(),
                    },
                    sin6_scope_id: v6.scope_id(),
                };
                (
                    Self { v6: raw },
                    size_of::<libc::sockaddr_in6>() as libc::socklen_t,
                )
            }
        }
    }

    /// Rust's form; `None` for a family that is neither. Scope and flow label are dropped, so that
    /// equal hosts are equal.
    pub(crate) fn to_address(self) -> Option<SocketAddr> {
        // SAFETY: every value of the union has its family first, and either structure may hold any
        // bytes.
        unsafe {
            match i32::from(self.v4.sin_family) {
                libc::AF_INET => Some(SocketAddr::new(
                    IpAddr::V4(Ipv4Addr::from(self.v4.sin_addr.s_addr.to_ne_bytes())),
                    u16::from_be(self.v4.sin_port),
                )),
                libc::AF_INET6 => Some(SocketAddr::new(
                    IpAddr::V6(Ipv6Addr::from(self.v6.sin6_addr.s6_addr)),
                    u16::from_be(self.v6.sin6_port),
                )),
                _ => None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_survives_the_way_through_the_systems_form() {
        for text in ["192.0.2.7:4791", "[2001:db8::7]:65535"] {
            let address: SocketAddr = text.parse().expect("address");
            assert_eq!(RawAddress::from(address).0.to_address(), Some(address));
        }
        assert_eq!(RawAddress::none().to_address(), None);
    }
}
