// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What hosts and routers answer to datagrams that a socket has sent: its error queue (ip(7),
//! IP_RECVERR; recvmsg(2), MSG_ERRQUEUE). Called by udp.

use std::io;
use std::net::SocketAddr;

use crate::socket_address::RawAddress;
use crate::udp_socket::UdpSocket;

/// What came back for a datagram sent earlier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueuedError {
    /// Nobody has this port, says its host.
    Refused(SocketAddr),
    /// Something else, which says nothing of a remote: a router may say it, or our interface.
    Other,
}

/// Keeps what hosts and routers answer to this socket's datagrams for [`oldest`]. Setup.
///
/// # Errors
/// The errno of setsockopt(2).
pub fn keep(socket: &UdpSocket) -> io::Result<()> {
    if socket.raw.is_v6() {
        socket.raw.set(libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1)
    } else {
        socket.raw.set(libc::IPPROTO_IP, libc::IP_RECVERR, 1)
    }
}

/// The oldest answer to a datagram sent earlier, if there is one.
pub fn oldest(socket: &UdpSocket) -> Option<QueuedError> {
    let mut name = RawAddress::none();
    let mut control = [0_u64; 32];
    let mut nothing = [0_u8; 1];
    let mut piece = libc::iovec {
        iov_base: nothing.as_mut_ptr().cast(),
        iov_len: nothing.len(),
    };
    // SAFETY: all zeros is a message of nothing.
    let mut header: libc::msghdr = unsafe { core::mem::zeroed() };
    header.msg_name = (&raw mut name).cast();
    header.msg_namelen = RawAddress::BYTES;
    header.msg_iov = &mut piece;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = size_of_val(&control) as _;
    // SAFETY: the header names local memory of the sizes given.
    let result = unsafe { libc::recvmsg(socket.raw.number(), &mut header, libc::MSG_ERRQUEUE) };
    if result < 0 {
        return None;
    }
    Some(read_queued_error(&header, name.to_address()))
}

fn read_queued_error(header: &libc::msghdr, to: Option<SocketAddr>) -> QueuedError {
    // SAFETY: the kernel has filled the control memory that the header names.
    let mut at = unsafe { libc::CMSG_FIRSTHDR(header) };
    while !at.is_null() {
        // SAFETY: a header that the kernel wrote.
        let (level, kind) = unsafe { ((*at).cmsg_level, (*at).cmsg_type) };
        let v4 = level == libc::IPPROTO_IP && kind == libc::IP_RECVERR;
        let v6 = level == libc::IPPROTO_IPV6 && kind == libc::IPV6_RECVERR;
        if let (true, Some(to)) = (v4 || v6, to) {
            // SAFETY: these kinds carry a sock_extended_err.
            let error = unsafe {
                libc::CMSG_DATA(at)
                    .cast::<libc::sock_extended_err>()
                    .read_unaligned()
            };
            return match error.ee_errno as i32 {
                libc::ECONNREFUSED => QueuedError::Refused(to),
                _ => QueuedError::Other,
            };
        }
        // SAFETY: `at` is a header that CMSG_FIRSTHDR or CMSG_NXTHDR gave for this message.
        at = unsafe { libc::CMSG_NXTHDR(header, at) };
    }
    QueuedError::Other
}
