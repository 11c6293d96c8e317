// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What reader.rs promises of the connected socket, between sockets of this machine.

use std::net::SocketAddr;

use weft_os::outbound;
use weft_os::sleep::{Timer, wait_readable};

use super::*;
use crate::settings::Settings;
use crate::sockets::port_sockets::open_socket;

/// More than the single datagrams after which the kernel need not join any, of which some are read
/// two by two.
const SINGLES_MOST: usize = 130;
const DATAGRAM_BYTES: usize = 100;
/// Datagrams that wait in each socket.
const WAITING_COUNT: usize = 15;

fn local() -> UdpSocket {
    open_socket("127.0.0.1:0".parse().expect("address")).expect("a socket")
}

/// Sends datagrams of [`DATAGRAM_BYTES`], joined if there are several.
fn send(socket: &UdpSocket, to: SocketAddr, count: usize) {
    let bytes = vec![7; count * DATAGRAM_BYTES];
    let segment_bytes = if count > 1 { DATAGRAM_BYTES as u16 } else { 0 };
    outbound::send_bytes(socket, to, &bytes, segment_bytes).expect("sent");
}

/// Reads as many datagrams as were sent; answers their lengths.
fn read(reader: &mut Reader, count: usize) -> Vec<usize> {
    let mut lengths = Vec::new();
    for _ in 0..1000 {
        reader.receive(&mut |_, incoming| {
            if let Incoming::Datagram(_, datagram) = incoming {
                lengths.push(datagram.len());
            }
        });
        if lengths.iter().sum::<usize>() >= count * DATAGRAM_BYTES {
            break;
        }
        let connected = reader.sockets.at(PORT_COUNT).as_fd().as_raw_fd();
        wait_readable(connected, 10);
    }
    lengths
}

/// A reader of eight sockets that nobody has sent to, without a connected one, and their addresses.
fn eight() -> (Reader, Vec<SocketAddr>) {
    let sockets: Vec<_> = (0..PORT_COUNT).map(|_| local()).collect();
    let address = |socket: &UdpSocket| socket.local_address().expect("address");
    let addresses = sockets.iter().map(address).collect();
    let timer = Timer::new().expect("a timer");
    let sockets = PortSockets::new(sockets, &timer).expect("a wait set");
    let authentication = PacketAuthentication::open(&Settings::default()).expect("no key");
    (Reader::new(sockets, authentication, 1), addresses)
}

/// A process that was off its processor: what it answers to the half of it would look like a loss.
#[test]
fn short_datagrams_that_wait_in_several_sockets_are_all_read_before_anything_is_answered() {
    let far = local();
    let (mut reader, addresses) = eight();
    for to in &addresses {
        for _ in 0..WAITING_COUNT {
            send(&far, *to, 1);
        }
    }
    let mut count = 0;
    reader.receive(&mut |_, incoming| {
        count += usize::from(matches!(incoming, Incoming::Datagram(..)));
    });
    assert_eq!(count, PORT_COUNT * WAITING_COUNT);
    // One that asks where something waits, and of each socket one for two and one for the others.
    assert_eq!(reader.call_count, 1 + 2 * PORT_COUNT as u64);
}

#[test]
fn what_was_joined_before_single_datagrams_will_do_again_is_still_taken_apart() {
    let far = local();
    let (mut reader, addresses) = eight();
    let to = addresses[0];
    if !far.can_send_joined() || !reader.sockets.at(0).receive_joined() {
        eprintln!("skipped: this kernel does not join datagrams");
        return;
    }
    let far_address = far.local_address().expect("address");
    reader.sockets.settle(0, far_address);
    let mut separate_count = 0;
    for before in 0..SINGLES_MOST {
        reader.sockets.join_connected();
        for _ in 0..before {
            send(&far, to, 1);
            assert_eq!(read(&mut reader, 1), [DATAGRAM_BYTES]);
        }
        separate_count += u32::from(!reader.sockets.connected_polling.is_joined());
        // The joined ones wait while the single one is read.
        send(&far, to, 1);
        send(&far, to, 3);
        let lengths = read(&mut reader, 4);
        assert_eq!(lengths, [DATAGRAM_BYTES; 4], "after {before} single ones");
    }
    assert!(
        separate_count > 0,
        "the kernel joins none where none are joined"
    );
}
