// SPDX-License-Identifier: Apache-2.0 OR MIT
//! For tests: a socket that refuses what others send, and how to have it refuse much.

use std::net::{SocketAddr, UdpSocket as StdSocket};
use std::os::fd::{AsFd, AsRawFd};

use weft_os::udp_socket::UdpSocket;
use weft_os::{error_queue, outbound, sleep};

/// More than are taken from a socket at a time, and more than four times as many.
pub(super) const FLOODS: [usize; 2] = [300, 1_500];

/// A socket that talks to nobody but itself, so that its host refuses what comes from others.
pub(super) fn refusing() -> (StdSocket, SocketAddr) {
    let far = StdSocket::bind("127.0.0.1:0").expect("a socket");
    let to = far.local_addr().expect("address");
    far.connect(to).expect("connected");
    (far, to)
}

/// Waits until a socket that had nothing to tell tells of what was refused.
pub(super) fn wait_for_queued_error(socket: &UdpSocket) {
    assert!(sleep::wait_readable(socket.as_fd().as_raw_fd(), 10_000));
}

/// Sends a datagram that is refused, and waits until the socket tells of it.
pub(super) fn be_refused(socket: &UdpSocket, to: SocketAddr) {
    outbound::send_bytes(socket, to, &[7], 0).expect("sent");
    wait_for_queued_error(socket);
}

/// Has so many datagrams refused, as far as the error queue takes the answers. The next call on
/// the socket fails.
pub(super) fn be_flooded(socket: &UdpSocket, to: SocketAddr, count: usize) {
    let mut told_count = 0;
    // A call fails only with an answer that came after the call that failed before it.
    while told_count <= count {
        told_count += usize::from(outbound::send_bytes(socket, to, &[7], 0).is_err());
    }
    // To take one has the next call told of the one behind it.
    error_queue::oldest(socket).expect("an answer");
}

/// Checks that one datagram comes, and no second one.
pub(super) fn gets_one(far: &StdSocket) {
    assert!(sleep::wait_readable(far.as_raw_fd(), 10_000));
    far.recv(&mut [0; 2_048]).expect("a datagram");
    assert!(!sleep::wait_readable(far.as_raw_fd(), 0), "it came once");
}
