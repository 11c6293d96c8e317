// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What others send is a claim: garbage, lies about what arrived, and breaches of the protocol
//! change nothing.

use proptest::prelude::*;
use weft_srd::{Instant, Machine};
use weft_wire::{Body, Head, Packet};

use crate::pair::{MS, SECOND, US, World, address, config};

/// Keeps one datagram that host 1 sends to host 0, by kind.
fn datagram_of(world: &mut World, wanted: impl Fn(&Packet<'_>) -> bool) -> Vec<u8> {
    let now = world.now;
    world.hosts[1].machine.handle_timeout(Instant(now));
    for _ in 0..1000 {
        if let Some(transmit) = world.hosts[1].machine.poll_transmit(Instant(now)) {
            let payload = vec![
                0;
                transmit
                    .payload
                    .map_or(0, |part| part.length_bytes as usize)
            ];
            let bytes = [transmit.head.as_bytes(), &payload].concat();
            if wanted(&Packet::parse(&bytes).unwrap()) {
                return bytes;
            }
        }
    }
    panic!("no such packet");
}

fn changed(bytes: &[u8], change: impl FnOnce(&mut Packet<'_>)) -> Vec<u8> {
    let mut packet = Packet::parse(bytes).unwrap();
    change(&mut packet);
    let mut head = Head::new();
    packet.write(&mut head);
    [head.as_bytes(), packet.payload].concat()
}

#[test]
fn acknowledgements_of_what_was_never_sent_are_dropped() {
    let mut world = World::new(2, 1);
    world.post(0, 1, 1, 100);
    world.run_for(20 * US);
    world.now += 20 * US;
    let honest = datagram_of(&mut world, |packet| packet.acknowledgement.is_some());
    let now = world.now;
    let lies: [fn(&mut Packet<'_>); 4] = [
        |packet| packet.acknowledgement.as_mut().unwrap().cumulative = 2,
        |packet| packet.acknowledgement.as_mut().unwrap().bitmap[0] = 4,
        |packet| packet.acknowledgement.as_mut().unwrap().echo_sent_ns = Instant(u64::MAX / 2),
        |packet| packet.acknowledgement.as_mut().unwrap().received_bytes = 1 << 40,
    ];
    let machine = &mut world.hosts[0].machine;
    for (index, lie) in lies.into_iter().enumerate() {
        machine.handle_datagram(Instant(now), address(1), &changed(&honest, lie));
        assert_eq!(
            machine.inspect().statistics().violation_count,
            index as u64 + 1
        );
        assert_eq!(machine.poll_event(), None, "lie {index}");
    }
    machine.handle_datagram(Instant(now), address(1), &honest);
    assert!(machine.poll_event().is_some());
}

#[test]
fn an_echo_from_the_beginning_of_time_is_borne() {
    let mut world = World::new(2, 5);
    for token in 0..5 {
        world.post(0, 1, token, 100);
        world.run_for(25 * US);
        world.now += 20 * US;
        let honest = datagram_of(&mut world, |packet| packet.acknowledgement.is_some());
        let lie = changed(&honest, |packet| {
            let section = packet.acknowledgement.as_mut().unwrap();
            (section.echo_sent_ns, section.hold_ns) = (Instant(token + 1), 0);
        });
        let now = world.now;
        world.hosts[0]
            .machine
            .handle_datagram(Instant(now), address(1), &lie);
        world.hosts[0].machine.handle_timeout(Instant(now + SECOND));
        world.hosts[0].machine.inspect().check_invariants();
    }
}

#[test]
fn accepts_of_messages_that_were_not_offered_are_dropped() {
    let mut world = World::new(2, 2);
    world.post(1, 0, 1, 100);
    let eager = datagram_of(&mut world, |packet| matches!(packet.body, Body::Eager(_)));
    let now = world.now;
    let accept = changed(&eager, |packet| {
        packet.body = Body::Accept(weft_wire::Accept {
            message_id: 0,
            landing: 1,
            length_bytes: 5,
        });
        packet.payload = &[];
    });
    let data = changed(&eager, |packet| {
        packet.body = Body::Data(weft_wire::Data {
            landing: 256,
            offset_bytes: 0,
        });
    });
    let far = changed(&eager, |packet| {
        if let Body::Eager(message) = &mut packet.body {
            message.id = 64;
        }
    });
    let machine = &mut world.hosts[0].machine;
    for (index, bytes) in [accept, data, far].iter().enumerate() {
        machine.handle_datagram(Instant(now), address(1), bytes);
        assert_eq!(
            machine.inspect().statistics().violation_count,
            index as u64 + 1
        );
        assert_eq!(machine.poll_event(), None);
    }
    // What was dropped was not acknowledged either: the honest packet of the same sequence is
    // fresh.
    let arrival = machine.handle_datagram(Instant(now), address(1), &eager);
    assert!(matches!(arrival, weft_srd::Arrival::Message { .. }));
}

#[test]
fn an_answer_to_a_stranger_is_no_longer_than_what_it_sent() {
    let mut world = World::new(2, 3);
    world.post(1, 0, 1, 0);
    let first = datagram_of(&mut world, |packet| matches!(packet.body, Body::Eager(_)));
    let stray = changed(&first, |packet| packet.header.target = 5);
    let now = world.now;
    let machine = &mut world.hosts[0].machine;
    machine.handle_datagram(Instant(now), address(1), &stray);
    let answer = machine.poll_transmit(Instant(now)).unwrap();
    assert!(answer.length_bytes() < stray.len());
    machine.handle_datagram(Instant(now + MS), address(1), &stray);
    assert_eq!(
        machine.poll_transmit(Instant(now + MS)),
        None,
        "one answer per 10 ms"
    );
}

#[test]
fn sequences_far_ahead_are_dropped() {
    let mut world = World::new(2, 4);
    world.post(1, 0, 1, 10);
    let first = datagram_of(&mut world, |packet| matches!(packet.body, Body::Eager(_)));
    let now = world.now;
    let far = changed(&first, |packet| packet.header.sequence = 1024);
    let machine = &mut world.hosts[0].machine;
    machine.handle_datagram(Instant(now), address(1), &far);
    assert_eq!(machine.inspect().statistics().dropped_count, 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A remote that knows the key and says anything at all: no panic, and the machine's own books
    /// stay right.
    #[test]
    fn a_remote_that_says_anything_does_no_harm(
        seed in 0u64..1000,
        changes in proptest::collection::vec(
            (any::<prop::sample::Index>(), any::<u8>(), any::<prop::sample::Index>()),
            1..200,
        ),
    ) {
        let mut world = World::new(2, seed);
        let mut kept: Vec<Vec<u8>> = Vec::new();
        for token in 0..6 {
            world.post(0, 1, token, [10, 3_000, 200_000][(token % 3) as usize]);
            world.post(1, 0, token, [10, 3_000, 200_000][(token % 3) as usize]);
        }
        let mut now = world.now;
        let machines: [usize; 2] = [0, 1];
        for (which, value, at) in changes {
            now += 5 * US;
            for host in machines {
                let machine: &mut Machine = &mut world.hosts[host].machine;
                while machine.poll_event().is_some() {}
                machine.handle_timeout(Instant(now));
                if let Some(transmit) = machine.poll_transmit(Instant(now)) {
                    let length_bytes = transmit.payload.map_or(0, |part| part.length_bytes);
                    let payload = vec![7; length_bytes as usize];
                    let bytes = [transmit.head.as_bytes(), &payload].concat();
                    let machine = &mut world.hosts[1 - host].machine;
                    machine.handle_datagram(Instant(now + US), address(host), &bytes);
                    while world.hosts[1 - host].machine.poll_event().is_some() {}
                    kept.push(bytes);
                    if kept.len() > 200 {
                        kept.swap_remove(0);
                    }
                }
            }
            if kept.is_empty() {
                continue;
            }
            let mut bytes = kept[which.index(kept.len())].clone();
            let index = at.index(bytes.len().min(200));
            bytes[index] = value;
            for host in machines {
                let machine = &mut world.hosts[host].machine;
                machine.handle_datagram(Instant(now + 2 * US), address(1 - host), &bytes);
                world.hosts[host].machine.inspect().check_invariants();
            }
        }
        prop_assert!(config().check().is_ok());
        for host in machines {
            world.hosts[host].machine.handle_timeout(Instant(now + 60 * SECOND));
            world.hosts[host].machine.inspect().check_invariants();
        }
    }
}
