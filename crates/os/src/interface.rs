// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The addresses of this machine's interfaces (getifaddrs(3)). Used to choose an endpoint's address
//! and to tell whether an address is one of ours.

use std::ffi::CStr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::check;

/// One address of one interface that is up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InterfaceAddress {
    /// The interface's name, such as eth0.
    pub name: String,
    /// Its address; link-local IPv6 addresses are left out, since they mean nothing without a
    /// scope.
    pub address: IpAddr,
    /// Whether it is the loopback interface.
    pub is_loopback: bool,
}

/// All addresses of interfaces that are up, in the kernel's order.
///
/// # Errors
/// The errno of getifaddrs(3).
pub fn addresses() -> io::Result<Vec<InterfaceAddress>> {
    let mut list: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: the pointer is ours to write; the list is freed below.
    check(unsafe { libc::getifaddrs(&mut list) })?;
    let mut found = Vec::new();
    let mut entry = list;
    while !entry.is_null() {
        // SAFETY: entries of the list stay valid until freeifaddrs.
        let interface = unsafe { &*entry };
        if let Some(address) = read_entry(interface) {
            found.push(address);
        }
        entry = interface.ifa_next;
    }
    // SAFETY: the list came from getifaddrs and is freed once.
    unsafe { libc::freeifaddrs(list) };
    Ok(found)
}

fn read_entry(interface: &libc::ifaddrs) -> Option<InterfaceAddress> {
    let flags = interface.ifa_flags as i32;
    if interface.ifa_addr.is_null() || flags & libc::IFF_UP == 0 {
        return None;
    }
    // SAFETY: a non-null ifa_addr points at a socket address whose family says its size.
    let family = i32::from(unsafe { (*interface.ifa_addr).sa_family });
    let address = match family {
        libc::AF_INET => {
            // SAFETY: the family says that this is a sockaddr_in.
            let address = unsafe { *interface.ifa_addr.cast::<libc::sockaddr_in>() };
            IpAddr::V4(Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)))
        }
        libc::AF_INET6 => {
            // SAFETY: the family says that this is a sockaddr_in6.
            let address = unsafe { *interface.ifa_addr.cast::<libc::sockaddr_in6>() };
            let address = Ipv6Addr::from(address.sin6_addr.s6_addr);
            if address.is_unicast_link_local() {
                return None;
            }
            IpAddr::V6(address)
        }
        _ => return None,
    };
    // SAFETY: ifa_name is a NUL-terminated string for every entry.
    let name = unsafe { CStr::from_ptr(interface.ifa_name) }
        .to_string_lossy()
        .into_owned();
    Some(InterfaceAddress {
        name,
        address,
        is_loopback: flags & libc::IFF_LOOPBACK != 0,
    })
}

/// The largest IP packet that the interface with this address takes; `None` if no interface has it.
/// Setup.
pub fn mtu_of(address: IpAddr) -> Option<u32> {
    let all = addresses().ok()?;
    let entry = all.iter().find(|entry| entry.address == address)?;
    // SAFETY: no preconditions.
    let raw =
        check(unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) });
    // SAFETY: the call just returned this descriptor and nobody else owns it.
    let socket = unsafe { OwnedFd::from_raw_fd(raw.ok()?) };
    // SAFETY: all zeros is a request without a name.
    let mut request: libc::ifreq = unsafe { core::mem::zeroed() };
    let room = request.ifr_name.len() - 1;
    for (place, byte) in request.ifr_name[..room].iter_mut().zip(entry.name.bytes()) {
        *place = byte as libc::c_char;
    }
    // SAFETY: the request is local and has the form that this call asks for (netdevice(7)).
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU as _, &mut request) }).ok()?;
    // SAFETY: the call has filled this member.
    u32::try_from(unsafe { request.ifr_ifru.ifru_mtu }).ok()
}

/// The address an endpoint takes when none is asked for: the first IPv4 address that is not
/// loopback, else the first IPv6 one, else 127.0.0.1.
pub fn default_address() -> IpAddr {
    let all = addresses().unwrap_or_default();
    let outside = || {
        all.iter()
            .filter(|entry| !entry.is_loopback)
            .map(|entry| entry.address)
    };
    outside()
        .find(IpAddr::is_ipv4)
        .or_else(|| outside().next())
        .unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
}

/// Whether an address belongs to this machine (in this network namespace).
pub fn is_own(address: IpAddr) -> bool {
    address.is_loopback()
        || addresses()
            .unwrap_or_default()
            .iter()
            .any(|entry| entry.address == address)
}

#[cfg(test)]
mod tests {
    #[test]
    fn loopback_says_what_it_takes_and_a_stranger_does_not() {
        assert!(super::mtu_of("127.0.0.1".parse().expect("address")) >= Some(1280));
        assert_eq!(super::mtu_of("192.0.2.77".parse().expect("address")), None);
    }

    #[test]
    fn loopback_is_ours_and_a_documentation_address_is_not() {
        assert!(super::is_own("127.0.0.1".parse().expect("address")));
        assert!(!super::is_own("192.0.2.77".parse().expect("address")));
    }
}
