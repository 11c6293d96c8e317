// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Through which interface packets from one address to another leave, as the kernel's routes and
//! rules say (rtnetlink(7), RTM_GETROUTE). Used by udp for hosts of several interfaces; slow path,
//! changes nothing.

use std::ffi::CString;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::{check, check_length};

/// Message kinds, flags and attributes, from linux/rtnetlink.h and linux/netlink.h.
const NEW_ROUTE: u16 = 24;
const GET_ROUTE: u16 = 26;
const REQUEST: u16 = 1;
const DESTINATION: u16 = 1;
const SOURCE: u16 = 2;
const OUTPUT_INTERFACE: u16 = 4;
/// `rtm_type` of an address of this host.
const TYPE_LOCAL: u8 = 2;
/// Sizes of struct nlmsghdr and struct rtmsg.
const HEADER_BYTES: usize = 16;
const ROUTE_BYTES: usize = 12;

/// The kernel's number of an interface; `None` if there is none of this name.
pub fn interface_number(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    // SAFETY: the name is a C string.
    let number = unsafe { libc::if_nametoindex(name.as_ptr()) };
    (number != 0).then_some(number)
}

/// The number of the interface through which a packet with this source leaves for `to`; `None` if
/// no way leads there, if `to` is an address of this host, or if the kernel does not say.
pub fn leaves_through(from: IpAddr, to: IpAddr) -> Option<u32> {
    let answer = ask(&question(from, to)?).ok()?;
    read(&answer)
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

fn question(from: IpAddr, to: IpAddr) -> Option<Vec<u8>> {
    if from.is_ipv4() != to.is_ipv4() {
        return None;
    }
    let family = if to.is_ipv4() {
        libc::AF_INET
    } else {
        libc::AF_INET6
    };
    let bits = octets(to).len() as u8 * 8;
    let mut message = vec![0; HEADER_BYTES];
    message.extend([family as u8, bits, bits, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    for (kind, address) in [(DESTINATION, to), (SOURCE, from)] {
        let value = octets(address);
        message.extend((4 + value.len() as u16).to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend(value);
    }
    let length = message.len() as u32;
    message[..4].copy_from_slice(&length.to_ne_bytes());
    message[4..6].copy_from_slice(&GET_ROUTE.to_ne_bytes());
    message[6..8].copy_from_slice(&REQUEST.to_ne_bytes());
    Some(message)
}

/// The kernel answers before send(2) returns.
fn ask(question: &[u8]) -> io::Result<Vec<u8>> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no preconditions.
    let raw = check(unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) })?;
    // SAFETY: the call just returned this descriptor and nobody else owns it.
    let socket = unsafe { OwnedFd::from_raw_fd(raw) };
    let descriptor = socket.as_raw_fd();
    // SAFETY: the bytes are readable for their length.
    check_length(unsafe { libc::send(descriptor, question.as_ptr().cast(), question.len(), 0) })?;
    let mut answer = vec![0u8; 4096];
    let room = answer.len();
    // SAFETY: the bytes are writable for their length.
    let length =
        check_length(unsafe { libc::recv(descriptor, answer.as_mut_ptr().cast(), room, 0) })?;
    answer.truncate(length);
    Ok(answer)
}

fn number_at(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at + 2)?;
    Some(u16::from_ne_bytes([bytes[0], bytes[1]]))
}

fn read(answer: &[u8]) -> Option<u32> {
    let kind = number_at(answer, 4)?;
    let route = answer.get(HEADER_BYTES..HEADER_BYTES + ROUTE_BYTES)?;
    if kind != NEW_ROUTE || route[7] == TYPE_LOCAL {
        return None;
    }
    let mut rest = &answer[HEADER_BYTES + ROUTE_BYTES..];
    while let (Some(length), Some(kind)) = (number_at(rest, 0), number_at(rest, 2)) {
        let value = rest.get(4..usize::from(length))?;
        if kind == OUTPUT_INTERFACE {
            return Some(u32::from_ne_bytes(value.try_into().ok()?));
        }
        // Attributes begin at multiples of four bytes.
        rest = rest.get(usize::from(length).next_multiple_of(4)..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_interface_leads_to_ourselves_nor_to_another_family() {
        let here: IpAddr = "127.0.0.1".parse().expect("address");
        assert_eq!(leaves_through(here, here), None);
        assert_eq!(leaves_through(here, "::1".parse().expect("address")), None);
    }

    #[test]
    fn packets_leave_through_the_interface_that_the_kernel_would_choose() {
        let outside = "192.0.2.77".parse().expect("address");
        let socket = std::net::UdpSocket::bind("0.0.0.0:0").expect("socket");
        if socket.connect((outside, 9)).is_err() {
            // No default route here.
            return;
        }
        let own = socket.local_addr().expect("address").ip();
        let all = crate::interface::addresses().expect("interfaces");
        let entry = all.iter().find(|entry| entry.address == own);
        let number = entry.and_then(|entry| interface_number(&entry.name));
        assert!(number.is_some());
        assert_eq!(leaves_through(own, outside), number);
    }

    #[test]
    fn what_is_no_route_is_not_read_as_one() {
        for bytes in [&[][..], &[0; 15], &[0xff; 64]] {
            assert_eq!(read(bytes), None);
        }
        assert_eq!(interface_number("weft-no-such-if0"), None);
    }
}
