// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What sockets.rs promises of datagrams that a host refuses, between sockets of this machine.

use std::net::UdpSocket as StdSocket;

use super::refusing::{FLOODS, be_flooded, gets_one, refusing, wait_for_queued_error};
use super::*;
use weft_os::outbound;
use weft_os::sleep::wait_readable;

/// Ports that leave datagrams as they are, and a socket that refuses what comes from them.
fn ports_and_refusing() -> (SocketPorts, StdSocket) {
    let settings = Settings {
        address: Some(([127, 0, 0, 1], 0).into()),
        ..Settings::default()
    };
    let mut ports = SocketPorts::open(&settings).expect("ports");
    // Else a datagram without a mark does not leave by the cheapest call.
    ports.list.ecn = false;
    (ports, refusing().0)
}

/// Has datagrams leave in this way; answers through which socket.
fn leave_by(way: Way, ports: &mut SocketPorts, far: &StdSocket) -> usize {
    match way {
        Way::Port => 0,
        Way::Connected => {
            let to = far.local_addr().expect("address");
            ports.reader.sockets.settle(0, to);
            PORT_COUNT
        }
    }
}

/// Sends a datagram from the first port.
fn send(ports: &mut SocketPorts, far: &StdSocket) {
    let mut transmit = Transmit::blank();
    transmit.to = far.local_addr().expect("address");
    let departed = ports.send(&[transmit], &Sends::default());
    assert_eq!((departed.count, departed.blocked), (1, false));
}

/// What is heard of refusals.
fn heard(ports: &mut SocketPorts) -> Vec<SocketAddr> {
    let mut refused = Vec::new();
    ports.receive(&mut |_, incoming| {
        if let Incoming::Refused(to) = incoming {
            refused.push(to);
        }
    });
    refused
}

/// How a datagram leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Port,
    Connected,
}

/// Only the call that fails shows it, and the same datagram leaves by the next one.
#[test]
fn what_a_host_refused_before_the_next_datagram_left_is_no_reason_to_sleep() {
    for way in [Way::Port, Way::Connected] {
        let (mut ports, far) = ports_and_refusing();
        let to = far.local_addr().expect("address");
        let index = leave_by(way, &mut ports, &far);
        send(&mut ports, &far);
        wait_for_queued_error(ports.reader.sockets.at(index));
        assert!(
            !ports.has_queued_errors(),
            "nobody has asked the socket yet"
        );
        far.connect(ports.list.address).expect("connected");
        send(&mut ports, &far);
        gets_one(&far);
        assert!(ports.has_queued_errors(), "{way:?}");
        ports.before_sleep(None, false);
        let descriptor = ports.wait_fd().expect("a descriptor");
        assert!(!wait_readable(descriptor, 0), "no descriptor shows it");
        assert_eq!(heard(&mut ports), [to], "{way:?}");
        assert!(!ports.has_queued_errors());
    }
}

#[test]
fn a_datagram_leaves_once_behind_a_flood_of_queued_errors() {
    for (way, count) in [Way::Port, Way::Connected]
        .into_iter()
        .flat_map(|way| FLOODS.map(|count| (way, count)))
    {
        let (mut ports, far) = ports_and_refusing();
        let index = leave_by(way, &mut ports, &far);
        let to = far.local_addr().expect("address");
        be_flooded(ports.reader.sockets.at(index), to, count);
        far.connect(ports.list.address).expect("connected");
        send(&mut ports, &far);
        gets_one(&far);
        assert!(ports.trouble.failure.is_none(), "{way:?}, {count}");
        assert!(ports.has_queued_errors());
    }
}

/// sendmmsg(2) says nothing of what stopped it behind the first datagram. Whoever sleeps would be
/// woken by the socket again and again, for nothing.
#[test]
fn what_no_call_has_told_of_is_found_in_the_error_queue() {
    for way in [Way::Port, Way::Connected] {
        let (mut ports, far) = ports_and_refusing();
        let to = far.local_addr().expect("address");
        let index = leave_by(way, &mut ports, &far);
        send(&mut ports, &far);
        wait_for_queued_error(ports.reader.sockets.at(index));
        let told = outbound::send_bytes(ports.reader.sockets.at(index), to, &[7], 0);
        told.expect_err("the answer to the one before");
        ports.before_sleep(None, false);
        let descriptor = ports.wait_fd().expect("a descriptor");
        assert!(wait_readable(descriptor, 10_000));
        assert_eq!(heard(&mut ports), [to], "{way:?}");
        assert!(!wait_readable(descriptor, 0), "{way:?}");
    }
}
