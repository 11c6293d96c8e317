// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What sockets.rs promises of datagrams that a host refuses, between sockets of this machine.

use std::net::UdpSocket as StdSocket;

use super::*;
use weft_os::sleep::wait_readable;

/// Ports that leave datagrams as they are, and a socket that refuses what comes from them: it
/// talks to nobody but itself.
fn ports_and_refusing() -> (SocketPorts, StdSocket) {
    let settings = Settings {
        address: Some(([127, 0, 0, 1], 0).into()),
        ..Settings::default()
    };
    let ports = SocketPorts::open(&settings).expect("ports");
    let far = StdSocket::bind("127.0.0.1:0").expect("a socket");
    far.connect(far.local_addr().expect("address"))
        .expect("connected");
    (ports, far)
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

#[test]
fn what_a_host_refused_before_the_next_datagram_left_is_no_reason_to_sleep() {
    let (mut ports, far) = ports_and_refusing();
    send(&mut ports, &far);
    assert!(!ports.has_complaints(), "nobody has asked the socket yet");
    far.connect(ports.list.address).expect("connected");
    send(&mut ports, &far);
    assert!(ports.has_complaints());
    let descriptor = ports.wait_fd().expect("a descriptor");
    assert!(!wait_readable(descriptor, 0), "no descriptor shows it");
    assert_eq!(heard(&mut ports), [far.local_addr().expect("address")]);
    assert!(!ports.has_complaints());
}
