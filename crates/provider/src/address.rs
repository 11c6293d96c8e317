// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Addresses: IP and UDP port as Rust's `SocketAddr`, as C's `sockaddr_in` and `sockaddr_in6`, and
//! as names.
//!
//! Called by info, av and endpoint. Source: fi_getinfo(3), fi_av(3), getaddrinfo(3), ip(7),
//! ipv6(7).

use std::ffi::{CStr, c_char, c_void};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::ptr;

use weft_fabric_sys::av::FidAv;
use weft_fabric_sys::flags::FI_NUMERICHOST;
use weft_fabric_sys::info::{FI_SOCKADDR_IN, FI_SOCKADDR_IN6};

use crate::parameters::Settings;

/// Bytes of the longer of the two forms.
pub const LONGEST_BYTES: usize = size_of::<libc::sockaddr_in6>();

/// An address in C's form: its bytes, and how many of them are used.
#[derive(Clone, Copy, Debug)]
pub struct RawAddress {
    bytes: [u8; LONGEST_BYTES],
    length_bytes: usize,
}

impl RawAddress {
    /// The bytes of a `sockaddr_in` or `sockaddr_in6`.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length_bytes]
    }
}

/// Bytes of the form of an address.
pub fn raw_length_bytes(address: &SocketAddr) -> usize {
    if address.is_ipv4() {
        size_of::<libc::sockaddr_in>()
    } else {
        size_of::<libc::sockaddr_in6>()
    }
}

/// The format number of an address.
pub fn format(address: &SocketAddr) -> u32 {
    if address.is_ipv4() {
        FI_SOCKADDR_IN
    } else {
        FI_SOCKADDR_IN6
    }
}

/// Turns an address into C's form.
pub fn to_raw(address: &SocketAddr) -> RawAddress {
    let mut raw = RawAddress {
        bytes: [0; LONGEST_BYTES],
        length_bytes: raw_length_bytes(address),
    };
    let family = if address.is_ipv4() {
        libc::AF_INET
    } else {
        libc::AF_INET6
    };
    raw.bytes[0..2].copy_from_slice(&(family as u16).to_ne_bytes());
    raw.bytes[2..4].copy_from_slice(&address.port().to_be_bytes());
    match address {
        SocketAddr::V4(address) => raw.bytes[4..8].copy_from_slice(&address.ip().octets()),
        SocketAddr::V6(address) => {
            raw.bytes[4..8].copy_from_slice(&address.flowinfo().to_ne_bytes());
            raw.bytes[8..24].copy_from_slice(&address.ip().octets());
            raw.bytes[24..28].copy_from_slice(&address.scope_id().to_ne_bytes());
        }
    }
    raw
}

/// Reads an address in C's form. `None` for other families and for null.
///
/// # Safety
/// `raw` must be null or a socket address that is as long as its family says.
pub unsafe fn from_raw(raw: *const c_void) -> Option<SocketAddr> {
    if raw.is_null() {
        return None;
    }
    // SAFETY: every socket address begins with its family; the pointer may be unaligned.
    let family = unsafe { ptr::read_unaligned(raw.cast::<libc::sa_family_t>()) };
    match i32::from(family) {
        libc::AF_INET => {
            // SAFETY: the family says that this many bytes are there.
            let address = unsafe { ptr::read_unaligned(raw.cast::<libc::sockaddr_in>()) };
            let ip = Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr));
            Some(SocketAddrV4::new(ip, u16::from_be(address.sin_port)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: the family says that this many bytes are there.
            let address = unsafe { ptr::read_unaligned(raw.cast::<libc::sockaddr_in6>()) };
            let ip = Ipv6Addr::from(address.sin6_addr.s6_addr);
            let port = u16::from_be(address.sin6_port);
            Some(SocketAddrV6::new(ip, port, address.sin6_flowinfo, address.sin6_scope_id).into())
        }
        _ => None,
    }
}

/// What a name may stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// `AF_UNSPEC`, `AF_INET` or `AF_INET6`.
    pub family: i32,
    /// The node is a number (FI_NUMERICHOST).
    pub numeric: bool,
}

impl Lookup {
    /// From the flags of a call.
    pub fn with_flags(family: i32, flags: u64) -> Self {
        Self {
            family,
            numeric: flags & FI_NUMERICHOST != 0,
        }
    }
}

/// Looks up a node and a service; a missing node is this host's loopback, a missing service is port
/// 0. Slow path.
pub fn resolve(node: Option<&CStr>, service: Option<&CStr>, lookup: Lookup) -> Option<SocketAddr> {
    // SAFETY: addrinfo is plain data, for which zero is valid.
    let mut wanted: libc::addrinfo = unsafe { std::mem::zeroed() };
    wanted.ai_family = lookup.family;
    wanted.ai_socktype = libc::SOCK_DGRAM;
    wanted.ai_flags = if lookup.numeric {
        libc::AI_NUMERICHOST
    } else {
        0
    };
    let pointer = |text: Option<&CStr>| text.map_or(ptr::null(), CStr::as_ptr);
    let service = if node.is_none() && service.is_none() {
        Some(c"0")
    } else {
        service
    };
    let mut found = ptr::null_mut();
    // SAFETY: the strings are null or C strings, and the result pointer is ours.
    let code = unsafe { libc::getaddrinfo(pointer(node), pointer(service), &wanted, &mut found) };
    if code != 0 || found.is_null() {
        return None;
    }
    // SAFETY: the first entry of the list holds a socket address of its family.
    let address = unsafe { from_raw((*found).ai_addr.cast()) };
    // SAFETY: the list came from getaddrinfo and is freed once.
    unsafe { libc::freeaddrinfo(found) };
    address
}

/// The local address from which packets to `target` would be sent. No packet is sent.
pub fn local_towards(target: SocketAddr) -> Option<IpAddr> {
    let any: IpAddr = if target.is_ipv4() {
        Ipv4Addr::UNSPECIFIED.into()
    } else {
        Ipv6Addr::UNSPECIFIED.into()
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    // Port 0 cannot be connected to; which port it is does not matter for the route.
    socket.connect((target.ip(), target.port().max(1))).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// The local address when nobody names one.
pub fn default_address(family: i32, settings: &Settings) -> IpAddr {
    let wanted = |address: &IpAddr| match family {
        libc::AF_INET => address.is_ipv4(),
        libc::AF_INET6 => address.is_ipv6(),
        _ => true,
    };
    if let Some(address) = settings.interfaces.first(wanted) {
        return address;
    }
    let first = weft_os::interface::default_address();
    if wanted(&first) {
        return first;
    }
    let outside = weft_os::interface::addresses()
        .unwrap_or_default()
        .into_iter();
    let fallback = if family == libc::AF_INET6 {
        Ipv6Addr::LOCALHOST.into()
    } else {
        Ipv4Addr::LOCALHOST.into()
    };
    outside
        .filter(|entry| !entry.is_loopback)
        .map(|entry| entry.address)
        .find(wanted)
        .unwrap_or(fallback)
}

/// The same of the family of another one.
pub fn default_for(address: IpAddr, settings: &Settings) -> IpAddr {
    let family = if address.is_ipv4() {
        libc::AF_INET
    } else {
        libc::AF_INET6
    };
    default_address(family, settings)
}

/// The address of a server that names a port and no node. It is the wildcard address, so that
/// clients reach the server under every address of this host; if the user chose an address, it is
/// that one.
pub fn for_server(local: &SocketAddr, family: i32, settings: &Settings) -> IpAddr {
    if local.port() == 0 || settings.interfaces.are_named() {
        return default_address(family, settings);
    }
    match default_address(family, settings) {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

/// Copies as much of an address as fits into the buffer, and stores the address's length. Returns
/// whether all of it fitted.
///
/// # Safety
/// `buffer` must be null or writable for `*length` bytes, and `length` valid.
pub unsafe fn copy_out(address: &SocketAddr, buffer: *mut c_void, length: *mut usize) -> bool {
    let raw = to_raw(address);
    let bytes = raw.as_bytes();
    // SAFETY: the contract.
    unsafe {
        let room = if buffer.is_null() { 0 } else { *length };
        ptr::copy_nonoverlapping(bytes.as_ptr(), buffer.cast::<u8>(), room.min(bytes.len()));
        *length = bytes.len();
        room >= bytes.len()
    }
}

/// `fi_av_straddr`.
///
/// # Safety
/// The arguments must be those of fi_av_straddr(3); the vector is not looked at.
pub unsafe extern "C" fn print(
    _: *mut FidAv,
    address: *const c_void,
    buffer: *mut c_char,
    length: *mut usize,
) -> *const c_char {
    // SAFETY: the application passes an address of our form (fi_av_straddr(3)).
    let text = match unsafe { from_raw(address) } {
        Some(address) if address.is_ipv4() => format!("fi_sockaddr_in://{address}"),
        Some(address) => format!("fi_sockaddr_in6://{address}"),
        None => return ptr::null(),
    };
    if length.is_null() {
        return ptr::null();
    }
    // SAFETY: the application's buffer is null or writable for the length it says.
    unsafe {
        if !buffer.is_null() && *length > 0 {
            let count = text.len().min(*length - 1);
            ptr::copy_nonoverlapping(text.as_ptr(), buffer.cast(), count);
            *buffer.add(count) = 0;
        }
        *length = text.len() + 1;
    }
    buffer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_the_way_to_c_and_back() {
        for text in [
            "127.0.0.1:0",
            "10.1.2.3:65535",
            "[::1]:7471",
            "[2001:db8::7%9]:1",
        ] {
            let address: SocketAddr = text.parse().expect("address");
            let raw = to_raw(&address);
            assert_eq!(raw.as_bytes().len(), raw_length_bytes(&address));
            // SAFETY: the bytes are a socket address of its family's length.
            let back = unsafe { from_raw(raw.as_bytes().as_ptr().cast()) };
            assert_eq!(back, Some(address));
        }
    }

    #[test]
    fn other_families_and_null_are_no_address() {
        let raw = [1u8; LONGEST_BYTES];
        // SAFETY: family 0x0101 is none of those that are read further.
        assert_eq!(unsafe { from_raw(raw.as_ptr().cast()) }, None);
        // SAFETY: null is allowed.
        assert_eq!(unsafe { from_raw(ptr::null()) }, None);
    }

    #[test]
    fn numbers_are_resolved_and_names_are_refused_where_only_numbers_may_be() {
        let numeric = Lookup {
            family: libc::AF_UNSPEC,
            numeric: true,
        };
        let found = resolve(Some(c"127.0.0.1"), Some(c"4711"), numeric);
        assert_eq!(found, Some("127.0.0.1:4711".parse().expect("address")));
        assert_eq!(resolve(Some(c"localhost"), None, numeric), None);
        let loopback = resolve(None, None, numeric).expect("loopback");
        assert!(
            loopback.ip().is_loopback() && loopback.port() == 0,
            "{loopback}"
        );
    }

    #[test]
    fn packets_to_loopback_leave_from_loopback() {
        let target = "127.0.0.1:0".parse().expect("address");
        assert_eq!(
            local_towards(target),
            Some("127.0.0.1".parse().expect("address"))
        );
    }
}
