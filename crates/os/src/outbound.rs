// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sending datagrams through a UDP socket: several in one system call, each gathered from pieces,
//! equal ones joined (sendmmsg(2); udp(7), UDP_SEGMENT). Called by memory, which vouches for the
//! pieces of udp's datagrams, and by tools, with bytes of their own.

use std::io;
use std::net::SocketAddr;

use crate::socket_address::RawAddress;
use crate::udp_socket::UdpSocket;
use crate::{check, check_length};

/// Datagrams that one system call takes at most. Chosen: a dozen covers a burst of small messages.
pub const SEND_BATCH: usize = 16;
/// Segments of one GSO datagram (UDP_MAX_SEGMENTS of Linux before 6.9).
pub const SEGMENT_LIMIT: usize = 64;
/// Bytes of one GSO datagram: what an IPv4 packet of 65,535 bytes leaves.
pub const SEGMENTS_BYTES: usize = 65_507;
/// Pieces of one datagram: half of what the kernel takes at once (UIO_MAXIOV, 1024).
pub const PIECE_LIMIT: usize = 512;

/// Room for the ancillary data of one sent datagram: the segment size, the traffic class.
const CONTROL_BYTES: usize = 48;

/// A stretch of memory to gather a datagram from.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Piece(libc::iovec);

// SAFETY: a piece is an address and a length; what may be done with them is the obligation of
// `send`.
unsafe impl Send for Piece {}

impl Piece {
    /// `length_bytes` at `address`.
    #[inline]
    pub fn new(address: usize, length_bytes: usize) -> Self {
        Self(libc::iovec {
            iov_base: address as *mut libc::c_void,
            iov_len: length_bytes,
        })
    }
}

/// A datagram to send, or several of one size that go as one (UDP_SEGMENT).
#[derive(Clone, Copy, Debug)]
pub struct Outbound {
    /// To whom.
    pub to: SocketAddr,
    /// Its pieces, as a range of those handed over with it.
    pub first_piece: usize,
    /// See `first_piece`.
    pub piece_count: usize,
    /// The kernel cuts the bytes into datagrams of this size; 0 for one datagram.
    pub segment_bytes: u16,
    /// Leaves as Not-ECT, whatever the socket does otherwise (RFC 3168).
    pub without_ect: bool,
}

/// Why a datagram did not leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendFailure {
    /// No room in the socket or the interface's queue.
    Full,
    /// Larger than the interface takes.
    TooLong,
    /// This interface cannot send datagrams joined.
    CannotJoin,
    /// Anything else; often the answer to a datagram sent before.
    Other,
}

impl SendFailure {
    /// Of an error of [`send`].
    pub fn of(error: &io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM) => Self::Full,
            Some(libc::EMSGSIZE) => Self::TooLong,
            Some(libc::EINVAL | libc::EIO) => Self::CannotJoin,
            _ => Self::Other,
        }
    }
}

/// Sends datagrams; answers how many were taken. Fast path: one system call.
///
/// # Errors
/// The errno of sendmsg(2) if the first one was not taken. It may belong to a datagram sent
/// before (ECONNREFUSED, EHOSTUNREACH and their like, see
/// [`error_queue`](crate::error_queue)): then the same call may be made once more.
///
/// # Safety
/// Every piece must be readable during the call.
pub unsafe fn send(
    socket: &UdpSocket,
    outbound: &[Outbound],
    pieces: &[Piece],
) -> io::Result<usize> {
    let (raw, peer) = (socket.raw.number(), socket.peer());
    if let [one] = outbound {
        let mut room = Room::new();
        // SAFETY: all zeros is a message of nothing, to nobody.
        let mut header: libc::msghdr = unsafe { core::mem::zeroed() };
        describe(&mut header, &mut room, one, pieces, peer);
        // SAFETY: the header names local memory, and pieces that the caller vouches for.
        let sent = unsafe { libc::sendmsg(raw, &header, 0) };
        return check_length(sent).map(|_| 1);
    }
    let count = outbound.len().min(SEND_BATCH);
    let mut rooms = [Room::new(); SEND_BATCH];
    // SAFETY: all zeros is a message of nothing, to nobody.
    let mut headers: [libc::mmsghdr; SEND_BATCH] = unsafe { core::mem::zeroed() };
    for (index, one) in outbound.iter().take(count).enumerate() {
        let header = &mut headers[index].msg_hdr;
        describe(header, &mut rooms[index], one, pieces, peer);
    }
    // SAFETY: the headers name local memory, and pieces that the caller vouches for.
    let sent = unsafe { libc::sendmmsg(raw, headers.as_mut_ptr(), count as libc::c_uint, 0) };
    check(sent).map(|sent| sent as usize)
}

/// Sends `bytes` as one datagram, or cut into datagrams of `segment_bytes` if that is not 0. One
/// system call.
///
/// # Errors
/// As [`send`].
pub fn send_bytes(
    socket: &UdpSocket,
    to: SocketAddr,
    bytes: &[u8],
    segment_bytes: u16,
) -> io::Result<()> {
    let outbound = Outbound {
        to,
        first_piece: 0,
        piece_count: 1,
        segment_bytes,
        without_ect: false,
    };
    let piece = Piece::new(bytes.as_ptr() as usize, bytes.len());
    // SAFETY: the one piece is the borrowed slice, readable while the call lasts.
    unsafe { send(socket, &[outbound], &[piece]) }.map(|_| ())
}

/// Aligned as ancillary data is.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; CONTROL_BYTES]);

/// What a header points to besides its pieces.
#[derive(Clone, Copy)]
struct Room {
    name: RawAddress,
    control: Control,
}

impl Room {
    fn new() -> Self {
        Self {
            name: RawAddress::none(),
            control: Control([0; CONTROL_BYTES]),
        }
    }
}

/// Describes a datagram in a header of zeros, which from then on points into `room`; the address of
/// a socket's only peer is left out. Fast path.
#[inline(always)]
fn describe(
    header: &mut libc::msghdr,
    room: &mut Room,
    one: &Outbound,
    pieces: &[Piece],
    peer: Option<SocketAddr>,
) {
    let range = &pieces[one.first_piece..][..one.piece_count];
    header.msg_iov = range.as_ptr().cast_mut().cast();
    header.msg_iovlen = range.len() as _;
    if peer != Some(one.to) {
        let (name, length) = RawAddress::from(one.to);
        room.name = name;
        header.msg_name = (&raw mut room.name).cast();
        header.msg_namelen = length;
    }
    if one.segment_bytes > 0 || one.without_ect {
        write_controls(header, &mut room.control, one);
    }
}

fn write_controls(header: &mut libc::msghdr, control: &mut Control, one: &Outbound) {
    header.msg_control = control.0.as_mut_ptr().cast();
    header.msg_controllen = 0;
    if one.segment_bytes > 0 {
        let size = one.segment_bytes.to_ne_bytes();
        add_control(header, libc::IPPROTO_UDP, libc::UDP_SEGMENT, size);
    }
    if one.without_ect {
        let (level, kind) = if one.to.is_ipv6() {
            (libc::IPPROTO_IPV6, libc::IPV6_TCLASS)
        } else {
            (libc::IPPROTO_IP, libc::IP_TOS)
        };
        add_control(header, level, kind, 0_i32.to_ne_bytes());
    }
}

/// Adds one behind those that are there. There is room for two of up to 8 bytes.
fn add_control<const N: usize>(
    header: &mut libc::msghdr,
    level: libc::c_int,
    kind: libc::c_int,
    value: [u8; N],
) {
    const { assert!(N <= 8) };
    // SAFETY: pure arithmetic.
    let (space, length) = unsafe { (libc::CMSG_SPACE(N as u32), libc::CMSG_LEN(N as u32)) };
    let at = header.msg_controllen;
    header.msg_controllen = at + space as usize;
    // SAFETY: the control memory is aligned, and holds two of these, each of a space that keeps
    // the alignment.
    unsafe {
        let place = header
            .msg_control
            .cast::<u8>()
            .add(at)
            .cast::<libc::cmsghdr>();
        (*place).cmsg_level = level;
        (*place).cmsg_type = kind;
        (*place).cmsg_len = length as _;
        libc::CMSG_DATA(place)
            .cast::<[u8; N]>()
            .write_unaligned(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagrams::ReceiveBatch;
    use crate::sleep;
    use std::os::fd::{AsFd, AsRawFd};

    #[test]
    fn what_is_sent_joined_arrives_as_datagrams_of_the_size_asked_for() {
        let bind = || UdpSocket::bind(([127, 0, 0, 1], 0).into()).expect("bound");
        let (from, to) = (bind(), bind());
        let bytes: Vec<u8> = (0..=255).cycle().take(4000).collect();
        let address = to.local_address().expect("bound");
        send_bytes(&from, address, &bytes, 1000).expect("sent");
        send_bytes(&from, address, b"alone", 0).expect("sent");
        let mut batch = ReceiveBatch::new(8, 4096);
        let (mut got, mut counts) = (Vec::new(), Vec::new());
        while got.len() < 4005 {
            assert!(sleep::wait_readable(to.as_fd().as_raw_fd(), 10_000));
            for index in 0..batch.receive(&to).expect("received") {
                let one = batch.get(index).expect("one");
                counts.push(one.bytes.len());
                got.extend_from_slice(one.bytes);
            }
        }
        assert_eq!(counts, [1000, 1000, 1000, 1000, 5]);
        assert_eq!((&got[..4000], &got[4000..]), (&bytes[..], &b"alone"[..]));
    }
}
