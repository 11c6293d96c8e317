// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sending bytes that are borrowed: one datagram, or several of one size in one call
//! (UDP_SEGMENT, udp(7)). For tools, which try what the route does with pieces of its own.

use std::io;
use std::net::SocketAddr;

use crate::udp_socket::{Outbound, Piece, UdpSocket};

/// Sends `bytes` as one datagram, or cut into datagrams of `segment_bytes` if that is not 0. One
/// system call.
///
/// # Errors
/// As [`UdpSocket::send`].
pub fn send(
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
    };
    let piece = Piece::new(bytes.as_ptr() as usize, bytes.len());
    // SAFETY: the one piece is the borrowed slice, readable while the call lasts.
    unsafe { socket.send(&[outbound], &[piece]) }.map(|_| ())
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
        send(&from, address, &bytes, 1000).expect("sent");
        send(&from, address, b"alone", 0).expect("sent");
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
