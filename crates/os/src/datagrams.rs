// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Receiving datagrams, many at once (recvmmsg(2)), one (recvmsg(2)) or one and nothing but its
//! bytes (recv(2)), each with its sender, its time of arrival and, if the kernel joined several
//! into one, their size (UDP_GRO). Used by udp.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};

use crate::socket_address::RawAddress;
use crate::udp_socket::UdpSocket;
use crate::{check, check_length};

/// Room for the ancillary data of one datagram: a time stamp, a segment size and a traffic class.
const CONTROL_BYTES: usize = 96;

/// Aligned as ancillary data is.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; CONTROL_BYTES]);

/// A datagram, or several joined ones.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// Who sent it.
    pub from: SocketAddr,
    /// Its bytes; of several, one behind the other.
    pub bytes: &'a [u8],
    /// The size of each but the last; that of all if there is only one. Never 0.
    pub segment_bytes: usize,
    /// When it arrived, in nanoseconds of CLOCK_REALTIME; 0 if the socket does not stamp.
    pub arrived_realtime_ns: u64,
    /// The type of service of IPv4 or the traffic class of IPv6; `None` if the socket does not ask.
    pub traffic_class: Option<u8>,
}

/// Buffers for one system call's worth of datagrams; used again and again.
pub struct ReceiveBatch {
    buffers: Box<[u8]>,
    each_bytes: usize,
    names: Box<[RawAddress]>,
    controls: Box<[Control]>,
    pieces: Box<[libc::iovec]>,
    headers: Box<[libc::mmsghdr]>,
    received_count: usize,
}

// SAFETY: the raw pointers in pieces and headers lead into the boxes beside them, which move with
// the batch.
unsafe impl Send for ReceiveBatch {}

impl core::fmt::Debug for ReceiveBatch {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ReceiveBatch")
            .field("count", &self.headers.len())
            .field("each_bytes", &self.each_bytes)
            .finish_non_exhaustive()
    }
}

impl ReceiveBatch {
    /// Room for `count` datagrams of at most `each_bytes`. Setup: the memory is taken as it is
    /// used.
    pub fn new(count: usize, each_bytes: usize) -> Self {
        // SAFETY: all zeros is an empty piece, and a message of nothing.
        let (no_piece, no_header): (libc::iovec, libc::mmsghdr) =
            unsafe { (core::mem::zeroed(), core::mem::zeroed()) };
        let mut batch = Self {
            buffers: vec![0; count * each_bytes].into_boxed_slice(),
            each_bytes,
            names: vec![RawAddress::none(); count].into_boxed_slice(),
            controls: vec![Control([0; CONTROL_BYTES]); count].into_boxed_slice(),
            pieces: vec![no_piece; count].into_boxed_slice(),
            headers: vec![no_header; count].into_boxed_slice(),
            received_count: 0,
        };
        for index in 0..count {
            batch.pieces[index] = libc::iovec {
                iov_base: batch.buffers[index * each_bytes..].as_mut_ptr().cast(),
                iov_len: each_bytes,
            };
            let header = &mut batch.headers[index].msg_hdr;
            header.msg_name = (&raw mut batch.names[index]).cast();
            header.msg_iov = &raw mut batch.pieces[index];
            header.msg_iovlen = 1;
            header.msg_control = batch.controls[index].0.as_mut_ptr().cast();
            batch.rearm(index);
        }
        batch
    }

    fn rearm(&mut self, index: usize) {
        let header = &mut self.headers[index].msg_hdr;
        header.msg_namelen = RawAddress::BYTES;
        header.msg_controllen = CONTROL_BYTES as _;
        header.msg_flags = 0;
    }

    /// Takes what waits in a socket; answers how many there were, 0 if none. Fast path: one system
    /// call.
    ///
    /// # Errors
    /// As for [`Self::receive_up_to`].
    pub fn receive(&mut self, socket: &UdpSocket) -> io::Result<usize> {
        self.receive_up_to(socket, self.headers.len())
    }

    /// The same for at most `count` of them. Fast path: one system call.
    ///
    /// # Errors
    /// The errno of recvmmsg(2), which may belong to a datagram sent earlier (see
    /// [`error_queue`](crate::error_queue)).
    pub fn receive_up_to(&mut self, socket: &UdpSocket, count: usize) -> io::Result<usize> {
        self.begin();
        let asked_count = count.min(self.headers.len());
        // SAFETY: every header names memory in boxes of ours, of the sizes given, that nobody
        // borrows: `get` borrows the batch, which is borrowed exclusively here. No more of them are
        // named than there are.
        let result = check(unsafe {
            libc::recvmmsg(
                socket.as_fd().as_raw_fd(),
                self.headers.as_mut_ptr(),
                asked_count as libc::c_uint,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        });
        match result {
            Ok(count) => {
                self.received_count = count as usize;
                Ok(self.received_count)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// Takes the first that waits in a socket; answers whether there was one. Fast path: one system
    /// call, which does not look for a second one.
    ///
    /// # Errors
    /// The errno of recvmsg(2), as for [`Self::receive`].
    pub fn receive_one(&mut self, socket: &UdpSocket) -> io::Result<usize> {
        self.begin();
        let first = &mut self.headers[0];
        // SAFETY: the header names memory in boxes of ours, of the sizes given, that nobody
        // borrows: `get` borrows the batch, which is borrowed exclusively here.
        let length = unsafe {
            libc::recvmsg(
                socket.as_fd().as_raw_fd(),
                &mut first.msg_hdr,
                libc::MSG_DONTWAIT,
            )
        };
        match check_length(length) {
            Ok(length) => {
                first.msg_len = length as libc::c_uint;
                self.received_count = 1;
                Ok(1)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// The same for a socket that talks to one address, and takes no joined datagrams: nothing but
    /// the bytes is asked for, which makes the cheapest call. It is from that address, and has no
    /// time. Answers its bytes, `None` if nothing waits. Fast path.
    ///
    /// # Errors
    /// The errno of recv(2), as for [`Self::receive`].
    #[inline]
    pub fn receive_connected(&mut self, socket: &UdpSocket) -> io::Result<Option<&[u8]>> {
        // SAFETY: the first buffer is ours, of the size given, and nobody borrows it: `get` borrows
        // the batch, which is borrowed exclusively here.
        let length = unsafe {
            libc::recv(
                socket.as_fd().as_raw_fd(),
                self.buffers.as_mut_ptr().cast(),
                self.each_bytes,
                libc::MSG_DONTWAIT,
            )
        };
        if let Ok(length) = usize::try_from(length) {
            return Ok(self.buffers.get(..length));
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() == Some(libc::EAGAIN) {
            return Ok(None);
        }
        Err(error)
    }

    /// The first bytes of what [`Self::receive_connected`] has just received.
    #[inline]
    pub fn first_bytes(&self, length_bytes: usize) -> &[u8] {
        &self.buffers[..length_bytes]
    }

    fn begin(&mut self) {
        for index in 0..self.received_count {
            self.rearm(index);
        }
        self.received_count = 0;
    }

    /// The `index`th of the datagrams received last; `None` for one that is cut or has no sender.
    pub fn get(&self, index: usize) -> Option<Received<'_>> {
        let entry = self.headers[..self.received_count].get(index)?;
        let header = &entry.msg_hdr;
        if header.msg_flags & libc::MSG_TRUNC != 0 {
            return None;
        }
        let bytes = &self.buffers[index * self.each_bytes..][..entry.msg_len as usize];
        let mut received = Received {
            from: self.names[index].to_address()?,
            bytes,
            segment_bytes: bytes.len().max(1),
            arrived_realtime_ns: 0,
            traffic_class: None,
        };
        read_controls(header, &mut received);
        Some(received)
    }
}

fn read_controls(header: &libc::msghdr, received: &mut Received<'_>) {
    // SAFETY: the kernel has filled the control memory that the header names.
    let mut at = unsafe { libc::CMSG_FIRSTHDR(header) };
    while !at.is_null() {
        // SAFETY: a header that the kernel wrote, with a byte of data at least.
        let (level, kind, byte) =
            unsafe { ((*at).cmsg_level, (*at).cmsg_type, *libc::CMSG_DATA(at)) };
        if level == libc::SOL_SOCKET && kind == libc::SCM_TIMESTAMPNS {
            // SAFETY: this kind carries a timespec.
            let stamp = unsafe {
                libc::CMSG_DATA(at)
                    .cast::<libc::timespec>()
                    .read_unaligned()
            };
            received.arrived_realtime_ns =
                stamp.tv_sec as u64 * 1_000_000_000 + stamp.tv_nsec as u64;
        } else if level == libc::IPPROTO_UDP && kind == libc::UDP_GRO {
            // SAFETY: this kind carries an int.
            let bytes = unsafe { libc::CMSG_DATA(at).cast::<i32>().read_unaligned() };
            received.segment_bytes = usize::try_from(bytes)
                .unwrap_or(0)
                .clamp(1, received.bytes.len().max(1));
        } else if (level, kind) == (libc::IPPROTO_IP, libc::IP_TOS)
            || (level, kind) == (libc::IPPROTO_IPV6, libc::IPV6_TCLASS)
        {
            // The first kind carries a byte, the second an int, of which the first byte holds the
            // class on little-endian machines, the only ones Weft is for.
            received.traffic_class = Some(byte);
        }
        // SAFETY: `at` is a header that CMSG_FIRSTHDR or CMSG_NXTHDR gave for this message.
        at = unsafe { libc::CMSG_NXTHDR(header, at) };
    }
}
