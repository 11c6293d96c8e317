// SPDX-License-Identifier: Apache-2.0 OR MIT
//! UDP sockets as a transport over datagrams needs them: bound, connected beside another, and with
//! the options of such a transport (udp(7), ip(7), socket(7)). Used by udp for each of an
//! endpoint's ports. outbound.rs sends through them, datagrams.rs receives from them, and
//! error_queue.rs reads what became of what was sent.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use crate::raw_socket::RawSocket;
use crate::{check, check_length};

/// asm-generic/sockios.h; for programs of 64 bits.
const SIOCGSTAMPNS: libc::Ioctl = 0x8907;

/// ECT(0) in the type of service of IPv4 or the traffic class of IPv6 (RFC 3168, 5).
const ECT_0: i32 = 2;

/// Datagrams thrown away when a socket is connected: more than its buffer holds before it is made
/// larger.
const THROWN_AWAY_MOST: usize = 4096;

/// A bound socket.
#[derive(Debug)]
pub struct UdpSocket {
    pub(crate) raw: RawSocket,
    /// The one it talks to, if it is connected.
    peer: Option<SocketAddr>,
}

impl UdpSocket {
    /// A socket at `address`; port 0 means any free one. Setup.
    ///
    /// # Errors
    /// The errno of socket(2) or bind(2).
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let raw = RawSocket::new_for(address)?;
        raw.bind(address)?;
        Ok(Self { raw, peer: None })
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
        let raw = RawSocket::new_for(address)?;
        raw.share_port(true)?;
        self.raw.share_port(true)?;
        let bound = raw.bind(address);
        self.raw.share_port(false)?;
        bound?;
        raw.share_port(false)?;
        let mut second = Self { raw, peer: None };
        second.connect_empty(to)?;
        Ok(second)
    }

    /// Talks to one address from now on. What came from anybody before, while the socket had a port
    /// and no remote, waits in it and would be taken for that one's: it is thrown away, and sent
    /// again.
    pub(crate) fn connect_empty(&mut self, to: SocketAddr) -> io::Result<()> {
        self.raw.connect(to)?;
        self.peer = Some(to);
        let mut nothing = [0_u8; 1];
        for _ in 0..THROWN_AWAY_MOST {
            let (at, flags) = (nothing.as_mut_ptr().cast(), libc::MSG_DONTWAIT);
            // SAFETY: the buffer is local, and its size is given; what does not fit is cut off.
            if unsafe { libc::recv(self.raw.number(), at, nothing.len(), flags) } < 0 {
                return Ok(());
            }
        }
        // Its remote floods it: then nobody else's are left.
        Ok(())
    }

    /// For a socket made by [`Self::beside`] that is about to be closed: all that comes to its port
    /// goes to the first one again, also while a child after fork(2) holds this one open. It talks
    /// to nobody but itself. Slow path.
    pub fn leave(&self) {
        // Where it fails, only a child that lives on keeps what comes.
        let _ = self
            .local_address()
            .and_then(|address| self.raw.connect(address));
    }

    /// The largest IP packet that the kernel sends from here to an address without taking it apart:
    /// what the interface on the way takes, or less if a router has said so (IP_MTU). `None` if no
    /// way leads there. Slow path.
    pub fn mtu_to(&self, to: SocketAddr) -> Option<u32> {
        let own = self.local_address().ok()?;
        let probe = RawSocket::new_for(own).ok()?;
        probe.bind(SocketAddr::new(own.ip(), 0)).ok()?;
        probe.connect(to).ok()?;
        let found = if probe.is_v6() {
            probe.get(libc::IPPROTO_IPV6, libc::IPV6_MTU)
        } else {
            probe.get(libc::IPPROTO_IP, libc::IP_MTU)
        };
        u32::try_from(found.ok()?).ok()
    }

    /// Where it is bound.
    ///
    /// # Errors
    /// The errno of getsockname(2).
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.raw.local_address()
    }

    /// Asks for buffers of `bytes` in both directions; the kernel gives what it allows
    /// (net.core.rmem_max). Answers what the receiving side got, as the kernel counts it.
    pub fn set_buffers(&self, bytes: usize) -> usize {
        let wanted = i32::try_from(bytes).unwrap_or(i32::MAX);
        for option in [libc::SO_RCVBUF, libc::SO_SNDBUF] {
            // An answer of less than asked for is fine, and no other is possible.
            let _ = self.raw.set(libc::SOL_SOCKET, option, wanted);
        }
        self.raw
            .get(libc::SOL_SOCKET, libc::SO_RCVBUF)
            .unwrap_or(0)
            .max(0) as usize
    }

    /// Datagrams may be taken apart by a router on the way that takes no more than smaller ones.
    /// Costs speed there, but the alternative is a network that drops everything large. IPv4: by
    /// routers (IP_PMTUDISC_OMIT); IPv6: by this host, once a router has said so
    /// (IPV6_PMTUDISC_WANT). Source: ip(7), ipv6(7).
    ///
    /// # Errors
    /// The errno of setsockopt(2).
    pub fn allow_fragments(&self) -> io::Result<()> {
        self.discover_mtu(libc::IP_PMTUDISC_OMIT, libc::IPV6_PMTUDISC_WANT)
    }

    /// Datagrams arrive as they left or not at all, and what the kernel remembers of routers does
    /// not count (IP_PMTUDISC_PROBE, IPV6_PMTUDISC_PROBE): for finding out what a way takes, until
    /// [`Self::allow_fragments`].
    ///
    /// # Errors
    /// The errno of setsockopt(2).
    pub fn forbid_fragments(&self) -> io::Result<()> {
        self.discover_mtu(libc::IP_PMTUDISC_PROBE, libc::IPV6_PMTUDISC_PROBE)
    }

    fn discover_mtu(&self, v4: i32, v6: i32) -> io::Result<()> {
        if self.raw.is_v6() {
            let option = libc::IPV6_MTU_DISCOVER;
            self.raw.set(libc::IPPROTO_IPV6, option, v6)
        } else {
            self.raw.set(libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, v4)
        }
    }

    /// Several datagrams of one sender may be received as one (UDP_GRO). False if this kernel
    /// cannot.
    pub fn receive_joined(&self) -> bool {
        self.raw.set(libc::IPPROTO_UDP, libc::UDP_GRO, 1).is_ok()
    }

    /// Every datagram that arrives from now on is received on its own again. Those that were joined
    /// and wait stay joined, and nobody is told their size: only for a socket that is empty.
    pub fn receive_single(&self) {
        // It can only fail where `receive_joined` has failed.
        let _ = self.raw.set(libc::IPPROTO_UDP, libc::UDP_GRO, 0);
    }

    /// Whether datagrams may be sent joined (UDP_SEGMENT).
    pub fn can_send_joined(&self) -> bool {
        self.raw.get(libc::IPPROTO_UDP, libc::UDP_SEGMENT).is_ok()
    }

    /// Received datagrams tell when they arrived (SO_TIMESTAMPNS).
    pub fn stamp_arrivals(&self) -> bool {
        self.raw
            .set(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)
            .is_ok()
    }

    /// The same as before [`Self::stamp_arrivals`]: when the last datagram arrived is told where it
    /// is asked ([`Self::last_arrival_realtime_ns`]).
    pub fn stamp_last_arrival(&self) {
        // It can only fail where `stamp_arrivals` has failed.
        let _ = self.raw.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 0);
    }

    /// Datagrams leave with ECT(0) (RFC 3168), but for those sent
    /// [without](crate::outbound::Outbound::without_ect), and received ones tell what their IP
    /// header says of congestion (IP_RECVTOS; ipv6(7): IPV6_RECVTCLASS). False if this kernel
    /// cannot. The kernel joins only datagrams of which all say the same
    /// (inet_gro_receive in net/ipv4/af_inet.c and ipv6_gro_receive compare the whole field).
    pub fn take_congestion_marks(&self) -> bool {
        let (level, field, receive) = if self.raw.is_v6() {
            (libc::IPPROTO_IPV6, libc::IPV6_TCLASS, libc::IPV6_RECVTCLASS)
        } else {
            (libc::IPPROTO_IP, libc::IP_TOS, libc::IP_RECVTOS)
        };
        let receives = self.raw.set(level, receive, 1).is_ok();
        receives && self.raw.set(level, field, ECT_0).is_ok()
    }

    /// Looks into the network card's queue while polling, for this long (SO_BUSY_POLL). False if
    /// that is not allowed.
    pub fn busy_poll(&self, microseconds: u32) -> bool {
        let value = i32::try_from(microseconds).unwrap_or(i32::MAX);
        self.raw
            .set(libc::SOL_SOCKET, libc::SO_BUSY_POLL, value)
            .is_ok()
    }

    /// Sends one datagram to the one address that the socket talks to. Fast path: the cheapest
    /// system call there is for it.
    ///
    /// # Errors
    /// As [`outbound::send`](crate::outbound::send); ENOTCONN or EDESTADDRREQ for a socket that was
    /// not made by [`Self::beside`].
    #[inline]
    pub fn send_connected(&self, bytes: &[u8]) -> io::Result<()> {
        // SAFETY: the bytes are borrowed, and their number is given.
        let sent = unsafe { libc::send(self.raw.number(), bytes.as_ptr().cast(), bytes.len(), 0) };
        check_length(sent).map(|_| ())
    }

    /// The one address that the socket talks to, if it was made by [`Self::beside`].
    #[inline]
    pub fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// When the datagram received last arrived, in nanoseconds of CLOCK_REALTIME (SIOCGSTAMPNS,
    /// socket(7)); `None` before the first one. So a stamp costs a system call when it is wanted,
    /// and nothing when it is not.
    ///
    /// The kernel stamps from soon after this is first asked: the first socket of the machine that
    /// asks has a work queue turn stamps on (net_enable_timestamp, net/core/dev.c). Of a datagram
    /// that came before, the answer is the time of the question.
    pub fn last_arrival_realtime_ns(&self) -> Option<u64> {
        let mut stamp = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: this request writes a timespec, which is local.
        check(unsafe { libc::ioctl(self.raw.number(), SIOCGSTAMPNS, &raw mut stamp) }).ok()?;
        Some(stamp.tv_sec as u64 * 1_000_000_000 + stamp.tv_nsec as u64)
    }
}

impl AsFd for UdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.raw.as_fd()
    }
}
