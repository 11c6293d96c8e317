// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What udp_socket.rs promises, between sockets of this machine.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};

use crate::clock;
use crate::datagrams::ReceiveBatch;
use crate::error_queue::{self, QueuedError};
use crate::outbound::{self, Outbound, Piece};
use crate::sleep::{WaitSet, wait_readable};
use crate::udp_socket::UdpSocket;

fn local() -> UdpSocket {
    UdpSocket::bind("127.0.0.1:0".parse().expect("address")).expect("a socket")
}

fn send(socket: &UdpSocket, to: SocketAddr, bytes: &[u8], segment_bytes: u16) -> io::Result<usize> {
    let (front, back) = bytes.split_at(bytes.len() / 2);
    let pieces = [front, back].map(|part| Piece::new(part.as_ptr() as usize, part.len()));
    let one = Outbound {
        without_ect: false,
        to,
        first_piece: 0,
        piece_count: 2,
        segment_bytes,
    };
    // SAFETY: the pieces are slices that live through the call.
    unsafe { outbound::send(socket, &[one], &pieces) }
}

fn receive(socket: &UdpSocket, batch: &mut ReceiveBatch) -> usize {
    for _ in 0..60_000 {
        match batch.receive(socket) {
            Ok(count) if count > 0 => return count,
            _ => std::thread::sleep(std::time::Duration::from_millis(1)),
        }
    }
    panic!("nothing came");
}

#[test]
fn a_datagram_is_gathered_from_its_pieces_and_tells_its_sender_and_its_age() {
    let (a, b) = (local(), local());
    assert!(b.stamp_arrivals());
    let to = b.local_address().expect("address");
    assert_eq!(send(&a, to, b"weft", 0).expect("sent"), 1);
    let mut batch = ReceiveBatch::new(4, 2048);
    assert_eq!(receive(&b, &mut batch), 1);
    let received = batch.get(0).expect("one");
    assert_eq!(received.bytes, b"weft");
    assert_eq!(received.from, a.local_address().expect("address"));
    assert!(received.arrived_realtime_ns > 0);
}

#[test]
fn one_datagram_at_a_time_leaves_the_next_one_with_its_time_and_an_empty_socket_is_no_error() {
    let (a, b) = (local(), local());
    assert!(b.stamp_arrivals());
    let to = b.local_address().expect("address");
    let mut batch = ReceiveBatch::new(4, 2048);
    assert_eq!(batch.receive_one(&b).expect("empty"), 0);
    for bytes in [b"one", b"two"] {
        send(&a, to, bytes, 0).expect("sent");
    }
    for bytes in [b"one", b"two"] {
        assert_eq!(batch.receive_one(&b).expect("waits there"), 1);
        let received = batch.get(0).expect("one");
        assert_eq!(received.bytes, bytes);
        assert!(received.arrived_realtime_ns > 0);
        assert!(batch.get(1).is_none());
    }
    assert_eq!(batch.receive_one(&b).expect("empty"), 0);
}

#[test]
fn datagrams_sent_joined_arrive_one_by_one_or_joined_with_their_size() {
    let (a, b) = (local(), local());
    if !a.can_send_joined() || !b.receive_joined() {
        return;
    }
    let to = b.local_address().expect("address");
    send(&a, to, &[7; 250], 100).expect("sent");
    let mut batch = ReceiveBatch::new(4, 65_536);
    let mut lengths = Vec::new();
    while lengths.len() < 3 {
        for index in 0..receive(&b, &mut batch) {
            let received = batch.get(index).expect("one");
            let parts = received.bytes.chunks(received.segment_bytes);
            lengths.extend(parts.map(<[u8]>::len));
        }
    }
    assert_eq!(lengths, [100, 100, 50]);
}

#[test]
fn a_connected_socket_beside_another_has_its_peer_to_itself_and_the_port_stays_closed() {
    let (a, b, other) = (local(), local(), local());
    let address = |socket: &UdpSocket| socket.local_address().expect("address");
    let beside = a.beside(address(&b)).expect("a second socket");
    assert_eq!(address(&beside), address(&a));
    assert!(
        UdpSocket::bind(address(&a)).is_err(),
        "the port is ours alone"
    );
    let mut batch = ReceiveBatch::new(4, 2048);
    send(&beside, address(&b), b"from beside", 0).expect("sent");
    assert_eq!(receive(&b, &mut batch), 1);
    assert_eq!(batch.get(0).expect("one").from, address(&a));
    send(&b, address(&a), b"back", 0).expect("sent");
    assert_eq!(receive(&beside, &mut batch), 1);
    assert_eq!(batch.get(0).expect("one").bytes, b"back");
    send(&other, address(&a), b"from another", 0).expect("sent");
    assert_eq!(receive(&a, &mut batch), 1);
    assert_eq!(batch.get(0).expect("one").from, address(&other));
    send(&beside, address(&other), b"to another", 0).expect("sent");
    assert_eq!(receive(&other, &mut batch), 1);
    drop(beside);
    let again = a.beside(address(&other)).expect("a second socket again");
    send(&other, address(&a), b"hers now", 0).expect("sent");
    assert_eq!(receive(&again, &mut batch), 1);
}

#[test]
fn a_port_that_nobody_has_is_complained_about() {
    let a = local();
    error_queue::keep(&a).expect("an option");
    let gone = local().local_address().expect("address");
    send(&a, gone, b"anybody there", 0).expect("sent");
    for _ in 0..60_000 {
        if let Some(queued_error) = error_queue::oldest(&a) {
            return assert_eq!(queued_error, QueuedError::Refused(gone));
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    panic!("no queued_error came");
}

/// Sends from `a` until the kernel stamps what `connected` receives: on a loaded machine that takes
/// a while (see `last_arrival_realtime_ns`).
fn wait_for_stamps(a: &UdpSocket, connected: &UdpSocket) {
    let to = connected.local_address().expect("address");
    let mut batch = ReceiveBatch::new(1, 2048);
    for _ in 0..60_000 {
        send(a, to, b"stamped?", 0).expect("sent");
        let sent_ns = clock::realtime_ns();
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(wait_readable(connected.as_fd().as_raw_fd(), 60_000));
        let got = batch.receive_connected(connected).expect("received");
        assert_eq!(got, Some(&b"stamped?"[..]));
        if connected.last_arrival_realtime_ns().expect("a time") <= sent_ns {
            return;
        }
    }
    panic!("the kernel stamps nothing");
}

#[test]
fn a_socket_that_talks_to_one_address_takes_one_datagram_a_call_and_tells_its_age_when_asked() {
    let (a, b) = (local(), local());
    let (at_a, at_b) = (
        a.local_address().expect("address"),
        b.local_address().expect("address"),
    );
    let connected = b.beside(at_a).expect("a second socket");
    assert_eq!((connected.peer(), b.peer()), (Some(at_a), None));
    let _ = connected.last_arrival_realtime_ns();
    let mut batch = ReceiveBatch::new(4, 2048);
    assert_eq!(batch.receive_connected(&connected).expect("empty"), None);
    wait_for_stamps(&a, &connected);
    let start_ns = clock::realtime_ns();
    for bytes in [&b"one"[..], b"second"] {
        send(&a, at_b, bytes, 0).expect("sent");
    }
    let sent_ns = clock::realtime_ns();
    std::thread::sleep(std::time::Duration::from_millis(20));
    for bytes in [&b"one"[..], b"second"] {
        assert!(wait_readable(connected.as_fd().as_raw_fd(), 60_000));
        assert_eq!(
            batch.receive_connected(&connected).expect("received"),
            Some(bytes)
        );
        let arrived_ns = connected.last_arrival_realtime_ns().expect("a time");
        assert!(
            (start_ns..=sent_ns).contains(&arrived_ns),
            "not when it was read"
        );
    }
    connected.send_connected(b"back").expect("sent");
    assert_eq!(receive(&a, &mut batch), 1);
    let back = batch.get(0).expect("one");
    assert_eq!((back.bytes, back.from), (&b"back"[..], at_b));
    assert!(b.send_connected(b"nobody").is_err());
}

#[test]
fn what_has_left_a_wait_set_is_not_named_any_more() {
    let (a, b) = (local(), local());
    let set = WaitSet::new().expect("a set");
    set.add(b.as_fd()).expect("added");
    send(&a, b.local_address().expect("address"), b"weft", 0).expect("sent");
    assert!(wait_readable(set.descriptor(), 60_000));
    set.remove(b.as_fd());
    assert!(!wait_readable(set.descriptor(), 0));
    set.add(b.as_fd()).expect("added again");
    assert!(wait_readable(set.descriptor(), 0));
}

/// Anybody may send to a port in the moment between bind(2) and connect(2).
#[test]
fn a_connected_socket_has_nothing_that_came_before_it_was_connected() {
    let home: std::net::SocketAddr = "127.0.0.1:0".parse().expect("address");
    let remote = std::net::UdpSocket::bind(home).expect("a socket");
    let stranger = std::net::UdpSocket::bind(home).expect("a socket");
    let mut socket = UdpSocket::bind(home).expect("a socket");
    let at = socket.local_address().expect("bound");
    for _ in 0..3 {
        stranger.send_to(b"mine", at).expect("loopback takes all");
    }
    let to = remote.local_addr().expect("bound");
    socket.connect_empty(to).expect("connected");
    stranger.send_to(b"late", at).expect("loopback takes all");
    remote.send_to(b"yours", at).expect("loopback takes all");
    let mut batch = crate::datagrams::ReceiveBatch::new(4, 2048);
    let count = batch.receive(&socket).expect("no error waits");
    let got: Vec<_> = (0..count).filter_map(|index| batch.get(index)).collect();
    assert_eq!(got.len(), 1);
    assert_eq!((got[0].from, got[0].bytes), (to, &b"yours"[..]));
}
