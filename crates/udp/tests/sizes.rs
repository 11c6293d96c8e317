// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How large datagrams are: what the way to a remote takes, not what the interface does whose
//! address it has.

#[path = "shared/pair.rs"]
mod pair;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use pair::Pair;
use weft_contract::RemoteId;
use weft_memory::UserBuffer;
use weft_simulated_wire::{Conditions, SimulatedPorts, Wire};
use weft_udp::{Ports, Settings, SocketPorts};

/// Sends a message and waits for it; answers how many datagrams the sender has sent until then.
fn send<P: Ports>(pair: &mut Pair<P>, length_bytes: usize) -> u64 {
    let before = pair.sender.statistics().machine;
    pair.post(&UserBuffer::leaked(&[length_bytes]));
    let (count, start) = (pair.at_receiver.0.len(), Instant::now());
    while pair.at_receiver.0.len() == count {
        pair.progress();
        assert!(start.elapsed() < Duration::from_secs(100), "it arrives");
    }
    // Its answer has come too, and with a first one what the other side takes.
    while pair.in_flight_bytes() > 0 {
        pair.progress();
        assert!(start.elapsed() < Duration::from_secs(100), "it is answered");
    }
    let after = pair.sender.statistics().machine;
    let again = after.retransmitted_count - before.retransmitted_count;
    after.sent_count - before.sent_count - again
}

/// The longest datagram in use.
fn datagram_bytes<P: Ports>(pair: &mut Pair<P>) -> u16 {
    let condition = pair.sender.condition(RemoteId(0));
    condition.expect("it was talked to").datagram_bytes
}

#[test]
fn a_message_between_processes_of_one_host_is_one_datagram_whatever_the_interface_takes() {
    let mut pair = Pair::<SocketPorts>::open(&Settings::default());
    send(&mut pair, 8);
    for length_bytes in [8192, 60_000] {
        let count = send(&mut pair, length_bytes);
        assert!(count <= 2, "{count} datagrams for {length_bytes} bytes");
    }
    assert_eq!(pair.at_receiver.0, [8, 8192, 60_000]);
}

#[test]
fn what_the_user_allows_holds_on_one_host_too() {
    let mut pair = Pair::<SocketPorts>::open(&Settings {
        datagram_limit_bytes: Some(1300),
        ..Settings::default()
    });
    send(&mut pair, 8);
    send(&mut pair, 8);
    send(&mut pair, 8192);
    assert_eq!(datagram_bytes(&mut pair), 1300);
}

#[test]
fn jumbo_frames_that_the_network_swallows_cost_no_message_and_a_size_that_it_carries_is_found() {
    let wire = Wire::open(Conditions {
        seed: 9,
        lost_per_mille: 0,
        repeated_per_mille: 0,
        spread_ns: 0,
        full_every: 0,
        swallows_above_bytes: 4500,
    });
    let settings = Settings {
        address: Some(SocketAddr::new(wire, 0)),
        datagram_limit_bytes: Some(8972),
        ..Settings::default()
    };
    let mut pair = Pair::<SimulatedPorts>::open(&settings);
    send(&mut pair, 8);
    send(&mut pair, 50_000);
    assert_eq!(
        datagram_bytes(&mut pair),
        1436,
        "nothing long is used untried"
    );
    // Both clocks move with every look; the larger sizes have had their time.
    for _ in 0..20_000 {
        send(&mut pair, 8);
    }
    send(&mut pair, 50_000);
    assert_eq!(datagram_bytes(&mut pair), 4000);
}
