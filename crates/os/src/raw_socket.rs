// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The descriptor of an internet socket for datagrams and the system calls that name, connect and
//! set it (socket(2), bind(2), setsockopt(2)). Owned by udp_socket.rs, which knows what for.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::at_fork::OwnOnly;
use crate::check;
use crate::socket_address::RawAddress;

/// A socket that never blocks, of one address family.
#[derive(Debug)]
pub(crate) struct RawSocket {
    descriptor: OwnOnly,
    is_v6: bool,
}

impl RawSocket {
    /// One of the family of `address`, without a port. An IPv6 socket takes no IPv4.
    pub(crate) fn new_for(address: SocketAddr) -> io::Result<Self> {
        let family = if address.is_ipv6() {
            libc::AF_INET6
        } else {
            libc::AF_INET
        };
        let kind = libc::SOCK_DGRAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: no preconditions.
        let raw = check(unsafe { libc::socket(family, kind, 0) })?;
        let socket = Self {
            // SAFETY: the call just returned this descriptor and nobody else owns it.
            descriptor: OwnOnly::new(unsafe { OwnedFd::from_raw_fd(raw) }),
            is_v6: address.is_ipv6(),
        };
        if socket.is_v6 {
            socket.set(libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1)?;
        }
        Ok(socket)
    }

    pub(crate) fn is_v6(&self) -> bool {
        self.is_v6
    }

    /// The descriptor, for a system call.
    #[inline]
    pub(crate) fn number(&self) -> i32 {
        self.descriptor.as_raw_fd()
    }

    pub(crate) fn bind(&self, address: SocketAddr) -> io::Result<()> {
        let (raw, length) = RawAddress::from(address);
        // SAFETY: the address is a local variable, `length` bytes of which are its structure.
        check(unsafe { libc::bind(self.number(), (&raw const raw).cast(), length) }).map(|_| ())
    }

    pub(crate) fn connect(&self, to: SocketAddr) -> io::Result<()> {
        let (raw, length) = RawAddress::from(to);
        // SAFETY: the address is a local variable, `length` bytes of which are its structure.
        check(unsafe { libc::connect(self.number(), (&raw const raw).cast(), length) }).map(|_| ())
    }

    /// Where it is bound.
    pub(crate) fn local_address(&self) -> io::Result<SocketAddr> {
        let mut raw = RawAddress::none();
        let mut length = RawAddress::BYTES;
        // SAFETY: the address is a local variable of the size given.
        check(unsafe { libc::getsockname(self.number(), (&raw mut raw).cast(), &mut length) })?;
        raw.to_address()
            .ok_or_else(|| io::Error::from_raw_os_error(libc::EAFNOSUPPORT))
    }

    /// Whether others of this user may bind the same port (SO_REUSEPORT).
    pub(crate) fn share_port(&self, on: bool) -> io::Result<()> {
        self.set(libc::SOL_SOCKET, libc::SO_REUSEPORT, i32::from(on))
    }

    /// Sets an option whose value is an int.
    pub(crate) fn set(&self, level: i32, option: i32, value: i32) -> io::Result<()> {
        // SAFETY: the value is a local int, as these options take.
        check(unsafe {
            libc::setsockopt(
                self.number(),
                level,
                option,
                (&raw const value).cast(),
                size_of::<i32>() as libc::socklen_t,
            )
        })?;
        Ok(())
    }

    /// The value of an option that is an int.
    pub(crate) fn get(&self, level: i32, option: i32) -> io::Result<i32> {
        let mut value = 0;
        let mut length = size_of::<i32>() as libc::socklen_t;
        // SAFETY: value and length are local and fit the option's type.
        check(unsafe {
            libc::getsockopt(
                self.number(),
                level,
                option,
                (&raw mut value).cast(),
                &mut length,
            )
        })?;
        Ok(value)
    }
}

impl AsFd for RawSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
