// SPDX-License-Identifier: Apache-2.0 OR MIT
//! UDP sockets as a transport over datagrams needs them: never blocking, with their error queue
//! (udp(7), ip(7), socket(7)). Used by udp for each of an endpoint's ports; datagrams.rs receives
//! from them.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::at_fork::OwnOnly;
use crate::socket_address::RawAddress;
use crate::{check, check_length};

/// Datagrams that one system call takes at most. Chosen: a dozen covers a burst of small messages.
pub const SEND_BATCH: usize = 16;
/// Segments of one GSO datagram (UDP_MAX_SEGMENTS of Linux before 6.9).
pub const SEGMENT_LIMIT: usize = 64;
/// Bytes of one GSO datagram: what an IPv4 packet of 65,535 bytes leaves.
pub const SEGMENTS_BYTES: usize = 65_507;
/// Pieces of one datagram: half of what the kernel takes at once (UIO_MAXIOV, 1024).
pub const PIECE_LIMIT: usize = 512;

/// asm-generic/sockios.h; for programs of 64 bits.
const SIOCGSTAMPNS: libc::Ioctl = 0x8907;

/// Datagrams thrown away when a socket is connected: more than its buffer holds before it is made
/// larger.
const THROWN_AWAY_MOST: usize = 4096;

/// Room for the ancillary data of one sent datagram: the segment size.
const CONTROL_BYTES: usize = 32;

/// A stretch of memory to gather a datagram from.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Piece(libc::iovec);

// SAFETY: a piece is an address and a length; what may be done with them is the obligation of
// `UdpSocket::send`.
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
}

/// What came back for a datagram sent earlier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Complaint {
    /// Nobody has this port, says its host.
    Refused(SocketAddr),
    /// Larger than what a router, or our interface, takes.
    TooLong(SocketAddr),
    /// No way leads there, at the moment.
    Unreachable(SocketAddr),
    /// Something else, which says nothing of a remote.
    Other,
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
    /// Of an error of [`UdpSocket::send`].
    pub fn of(error: &io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM) => Self::Full,
            Some(libc::EMSGSIZE) => Self::TooLong,
            Some(libc::EINVAL | libc::EIO) => Self::CannotJoin,
            _ => Self::Other,
        }
    }
}

/// A bound socket.
#[derive(Debug)]
pub struct UdpSocket {
    descriptor: OwnOnly,
    is_v6: bool,
    /// The one it talks to, if it is connected.
    peer: Option<SocketAddr>,
}

impl UdpSocket {
    /// A socket at `address`; port 0 means any free one. Setup.
    ///
    /// # Errors
    /// The errno of socket(2) or bind(2).
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = Self::unbound(address)?;
        socket.bind_to(address)?;
        Ok(socket)
    }

    /// A second socket on the same port, for what goes to and comes from one address: a connected
    /// socket keeps its route, which is a quarter of what a small datagram costs in the kernel
    /// (measured). All else still comes to the first one. The port is not open to anybody else
    /// afterwards. Slow path.
    ///
    /// # Errors
    /// The errno of socket(2), setsockopt(2), bind(2) or connect(2).
    pub fn beside(&self, to: SocketAddr) -> io::Result<Self> {
        let address = self.local_address()?;
        let mut second = Self::unbound(address)?;
        second.share_port(true)?;
        self.share_port(true)?;
        let bound = second.bind_to(address);
        self.share_port(false)?;
        bound?;
        second.share_port(false)?;
        second.connect_empty(to)?;
        Ok(second)
    }

    /// Talks to one address from now on. What came from anybody before, while the socket had a port
    /// and no remote, waits in it and would be taken for that one's: it is thrown away, and sent
    /// again.
    pub(crate) fn connect_empty(&mut self, to: SocketAddr) -> io::Result<()> {
        self.connect(to)?;
        self.peer = Some(to);
        let mut nothing = [0_u8; 1];
        for _ in 0..THROWN_AWAY_MOST {
            let (at, flags) = (nothing.as_mut_ptr().cast(), libc::MSG_DONTWAIT);
            // SAFETY: the buffer is local, and its size is given; what does not fit is cut off.
            if unsafe { libc::recv(self.raw(), at, nothing.len(), flags) } < 0 {
                return Ok(());
            }
        }
        // Its remote floods it: then nobody else's are left.
        Ok(())
    }

    /// The largest IP packet that the kernel sends from here to an address without taking it apart:
    /// what the interface on the way takes, or less if a router has said so (IP_MTU). `None` if no
    /// way leads there. Slow path.
    pub fn mtu_to(&self, to: SocketAddr) -> Option<u32> {
        let own = self.local_address().ok()?;
        let probe = Self::unbound(own).ok()?;
        probe.bind_to(SocketAddr::new(own.ip(), 0)).ok()?;
        probe.connect(to).ok()?;
        let found = if self.is_v6 {
            probe.get(libc::IPPROTO_IPV6, libc::IPV6_MTU)
        } else {
            probe.get(libc::IPPROTO_IP, libc::IP_MTU)
        };
        u32::try_from(found.ok()?).ok()
    }

    fn connect(&self, to: SocketAddr) -> io::Result<()> {
        let (raw, length) = RawAddress::from(to);
        // SAFETY: the address is a local variable, `length` bytes of which are its structure.
        check(unsafe { libc::connect(self.raw(), (&raw const raw).cast(), length) }).map(|_| ())
    }

    /// Whether others of this user may bind the same port (SO_REUSEPORT).
    fn share_port(&self, on: bool) -> io::Result<()> {
        self.set(libc::SOL_SOCKET, libc::SO_REUSEPORT, i32::from(on))
    }

    fn unbound(address: SocketAddr) -> io::Result<Self> {
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
            peer: None,
        };
        if socket.is_v6 {
            socket.set(libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1)?;
        }
        Ok(socket)
    }

    fn bind_to(&self, address: SocketAddr) -> io::Result<()> {
        let (raw, length) = RawAddress::from(address);
        // SAFETY: the address is a local variable, `length` bytes of which are its structure.
        check(unsafe { libc::bind(self.raw(), (&raw const raw).cast(), length) }).map(|_| ())
    }

    fn raw(&self) -> i32 {
        self.descriptor.as_raw_fd()
    }

    fn set(&self, level: i32, option: i32, value: i32) -> io::Result<()> {
        // SAFETY: the value is a local int, as these options take.
        check(unsafe {
            libc::setsockopt(
                self.raw(),
                level,
                option,
                (&raw const value).cast(),
                size_of::<i32>() as libc::socklen_t,
            )
        })?;
        Ok(())
    }

    fn get(&self, level: i32, option: i32) -> io::Result<i32> {
        let mut value = 0;
        let mut length = size_of::<i32>() as libc::socklen_t;
        // SAFETY: value and length are local and fit the option's type.
        check(unsafe {
            libc::getsockopt(
                self.raw(),
                level,
                option,
                (&raw mut value).cast(),
                &mut length,
            )
        })?;
        Ok(value)
    }

    /// Where it is bound.
    ///
    /// # Errors
    /// The errno of getsockname(2).
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        let mut raw = RawAddress::none();
        let mut length = RawAddress::BYTES;
        // SAFETY: the address is a local variable of the size given.
        check(unsafe { libc::getsockname(self.raw(), (&raw mut raw).cast(), &mut length) })?;
        raw.to_address()
            .ok_or_else(|| io::Error::from_raw_os_error(libc::EAFNOSUPPORT))
    }

    /// Asks for buffers of `bytes` in both directions; the kernel gives what it allows
    /// (net.core.rmem_max). Answers what the receiving side got, as the kernel counts it.
    pub fn set_buffers(&self, bytes: usize) -> usize {
        let wanted = i32::try_from(bytes).unwrap_or(i32::MAX);
        for option in [libc::SO_RCVBUF, libc::SO_SNDBUF] {
            // An answer of less than asked for is fine, and no other is possible.
            let _ = self.set(libc::SOL_SOCKET, option, wanted);
        }
        self.get(libc::SOL_SOCKET, libc::SO_RCVBUF)
            .unwrap_or(0)
            .max(0) as usize
    }

    /// Datagrams may be taken apart by a router on the way that takes no more than smaller ones.
    /// Costs speed there, but the alternative is a network that swallows everything large. IPv4: by
    /// routers (IP_PMTUDISC_OMIT); IPv6: by this host, once a router has said so
    /// (IPV6_PMTUDISC_WANT). Source: ip(7), ipv6(7).
    ///
    /// # Errors
    /// The errno of setsockopt(2).
    pub fn allow_fragments(&self) -> io::Result<()> {
        if self.is_v6 {
            let learn = libc::IPV6_PMTUDISC_WANT;
            self.set(libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, learn)
        } else {
            let omit = libc::IP_PMTUDISC_OMIT;
            self.set(libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, omit)
        }
    }

    /// Datagrams arrive as they left or not at all, and what the kernel remembers of routers does
    /// not count (IP_PMTUDISC_PROBE, IPV6_PMTUDISC_PROBE): for finding out what a way takes, until
    /// [`Self::allow_fragments`].
    ///
    /// # Errors
    /// The errno of setsockopt(2).
    pub fn forbid_fragments(&self) -> io::Result<()> {
        if self.is_v6 {
            let probe = libc::IPV6_PMTUDISC_PROBE;
            self.set(libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, probe)
        } else {
            let probe = libc::IP_PMTUDISC_PROBE;
            self.set(libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, probe)
        }
    }

    /// Keeps what hosts and routers answer to our datagrams for [`Self::complaint`] (IP_RECVERR).
    ///
    /// # Errors
    /// The errno of setsockopt(2).
    pub fn keep_complaints(&self) -> io::Result<()> {
        if self.is_v6 {
            self.set(libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1)
        } else {
            self.set(libc::IPPROTO_IP, libc::IP_RECVERR, 1)
        }
    }

    /// Several datagrams of one sender may be received as one (UDP_GRO). False if this kernel
    /// cannot.
    pub fn receive_joined(&self) -> bool {
        self.set(libc::IPPROTO_UDP, libc::UDP_GRO, 1).is_ok()
    }

    /// Whether datagrams may be sent joined (UDP_SEGMENT).
    pub fn can_send_joined(&self) -> bool {
        self.get(libc::IPPROTO_UDP, libc::UDP_SEGMENT).is_ok()
    }

    /// Received datagrams tell when they arrived (SO_TIMESTAMPNS).
    pub fn stamp_arrivals(&self) -> bool {
        self.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1).is_ok()
    }

    /// Looks into the network card's queue while polling, for this long (SO_BUSY_POLL). False if
    /// that is not allowed.
    pub fn busy_poll(&self, microseconds: u32) -> bool {
        let value = i32::try_from(microseconds).unwrap_or(i32::MAX);
        self.set(libc::SOL_SOCKET, libc::SO_BUSY_POLL, value)
            .is_ok()
    }

    /// Sends datagrams; answers how many were taken. Fast path: one system call.
    ///
    /// # Errors
    /// The errno of sendmsg(2) if the first one was not taken. It may belong to a datagram sent
    /// before (ECONNREFUSED, EHOSTUNREACH and their like, see [`Self::complaint`]): then the same
    /// call may be made once more.
    ///
    /// # Safety
    /// Every piece must be readable during the call.
    pub unsafe fn send(&self, outbound: &[Outbound], pieces: &[Piece]) -> io::Result<usize> {
        if let [one] = outbound {
            let (mut name, length) = RawAddress::from(one.to);
            let mut control = Control([0; CONTROL_BYTES]);
            // SAFETY: all zeros is a message of nothing, to nobody.
            let mut header: libc::msghdr = unsafe { core::mem::zeroed() };
            write_pieces(&mut header, one, pieces);
            if self.peer != Some(one.to) {
                header.msg_name = (&raw mut name).cast();
                header.msg_namelen = length;
            }
            if one.segment_bytes > 0 {
                write_segment_size(&mut header, &mut control, one.segment_bytes);
            }
            // SAFETY: the header names local memory, and pieces that the caller vouches for.
            let sent = unsafe { libc::sendmsg(self.raw(), &header, 0) };
            return check_length(sent).map(|_| 1);
        }
        let count = outbound.len().min(SEND_BATCH);
        let mut names = [RawAddress::none(); SEND_BATCH];
        let mut controls = [Control([0; CONTROL_BYTES]); SEND_BATCH];
        // SAFETY: all zeros is a message of nothing, to nobody.
        let mut headers: [libc::mmsghdr; SEND_BATCH] = unsafe { core::mem::zeroed() };
        for (index, one) in outbound.iter().take(count).enumerate() {
            let (name, length) = RawAddress::from(one.to);
            names[index] = name;
            let header = &mut headers[index].msg_hdr;
            write_pieces(header, one, pieces);
            if self.peer != Some(one.to) {
                header.msg_name = (&raw mut names[index]).cast();
                header.msg_namelen = length;
            }
            if one.segment_bytes > 0 {
                write_segment_size(header, &mut controls[index], one.segment_bytes);
            }
        }
        // SAFETY: the headers name local memory, and pieces that the caller vouches for.
        let sent =
            unsafe { libc::sendmmsg(self.raw(), headers.as_mut_ptr(), count as libc::c_uint, 0) };
        check(sent).map(|sent| sent as usize)
    }

    /// Sends one datagram to the one address that the socket talks to. Fast path: the cheapest
    /// system call there is for it.
    ///
    /// # Errors
    /// As [`Self::send`]; ENOTCONN or EDESTADDRREQ for a socket that was not made by
    /// [`Self::beside`].
    #[inline]
    pub fn send_connected(&self, bytes: &[u8]) -> io::Result<()> {
        // SAFETY: the bytes are borrowed, and their number is given.
        let sent = unsafe { libc::send(self.raw(), bytes.as_ptr().cast(), bytes.len(), 0) };
        check_length(sent).map(|_| ())
    }

    /// The one address that the socket talks to, if it was made by [`Self::beside`].
    #[inline]
    pub fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// When the datagram received last arrived, in nanoseconds of CLOCK_REALTIME (SIOCGSTAMPNS,
    /// socket(7)); `None` for one that came before this was asked for the first time. So a stamp
    /// costs a system call when it is wanted, and nothing when it is not.
    pub fn last_arrival_realtime_ns(&self) -> Option<u64> {
        let mut stamp = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: this request writes a timespec, which is local.
        check(unsafe { libc::ioctl(self.raw(), SIOCGSTAMPNS, &raw mut stamp) }).ok()?;
        Some(stamp.tv_sec as u64 * 1_000_000_000 + stamp.tv_nsec as u64)
    }

    /// The oldest answer to a datagram sent earlier, if there is one.
    pub fn complaint(&self) -> Option<Complaint> {
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
        let result = unsafe { libc::recvmsg(self.raw(), &mut header, libc::MSG_ERRQUEUE) };
        if result < 0 {
            return None;
        }
        Some(read_complaint(&header, name.to_address()))
    }
}

impl AsFd for UdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Aligned as ancillary data is.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; CONTROL_BYTES]);

fn write_pieces(header: &mut libc::msghdr, one: &Outbound, pieces: &[Piece]) {
    let range = &pieces[one.first_piece..][..one.piece_count];
    header.msg_iov = range.as_ptr().cast_mut().cast();
    header.msg_iovlen = range.len() as _;
}

fn write_segment_size(header: &mut libc::msghdr, control: &mut Control, segment_bytes: u16) {
    header.msg_control = control.0.as_mut_ptr().cast();
    // SAFETY: pure arithmetic.
    let (space, length) = unsafe { (libc::CMSG_SPACE(2), libc::CMSG_LEN(2)) };
    header.msg_controllen = space as _;
    // SAFETY: the control memory is aligned and larger than the space of one u16, so there is a
    // first header in it.
    unsafe {
        let first = libc::CMSG_FIRSTHDR(header);
        (*first).cmsg_level = libc::IPPROTO_UDP;
        (*first).cmsg_type = libc::UDP_SEGMENT;
        (*first).cmsg_len = length as _;
        libc::CMSG_DATA(first).cast::<u16>().write(segment_bytes);
    }
}

fn read_complaint(header: &libc::msghdr, to: Option<SocketAddr>) -> Complaint {
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
                libc::ECONNREFUSED => Complaint::Refused(to),
                libc::EMSGSIZE => Complaint::TooLong(to),
                libc::EHOSTUNREACH | libc::ENETUNREACH | libc::EHOSTDOWN => {
                    Complaint::Unreachable(to)
                }
                _ => Complaint::Other,
            };
        }
        // SAFETY: `at` is a header that CMSG_FIRSTHDR or CMSG_NXTHDR gave for this message.
        at = unsafe { libc::CMSG_NXTHDR(header, at) };
    }
    Complaint::Other
}
