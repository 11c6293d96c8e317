// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Datagrams as long as the network carries, found out by trying (srd-protocol 16).

use weft_srd::Instant;
use weft_wire::{Body, Packet, Path};

use crate::pair::{MS, Recorded, SECOND, US, World};

const JUMBO: u16 = 8972;
/// What needs no trying.
const PLAIN: usize = 1436;

/// Two hosts whose interfaces take jumbo frames, whatever lies between them.
fn jumbo_hosts(seed: u64) -> World {
    let mut world = World::new(2, seed);
    world.datagram_limit_bytes = usize::from(JUMBO);
    for (at, of) in [(0, 1), (1, 0)] {
        let remote = world.remote(at, of);
        let machine = &mut world.hosts[at].machine;
        machine
            .at(remote)
            .set_datagram_bytes(Instant::START, JUMBO, false);
    }
    world
}

fn acquainted(world: &mut World) {
    world.post(0, 1, 1, 100);
    world.post(1, 0, 2, 100);
    world.run_until_quiet(SECOND);
}

fn longest(recorded: &[Recorded], to: usize) -> usize {
    let lengths = recorded.iter().filter(|one| one.to == to);
    lengths.map(|one| one.datagram_bytes).max().unwrap_or(0)
}

#[test]
fn long_datagrams_are_used_as_soon_as_one_has_arrived_and_not_before() {
    let mut world = jumbo_hosts(50);
    world.recorded = Some(Vec::new());
    world.post(0, 1, 1, 60_000);
    world.run_until_quiet(SECOND);
    world.run_for(MS);
    let first = world.recorded.replace(Vec::new()).unwrap();
    let tried = first.iter().position(|one| one.bytes.len() > PLAIN);
    let tried = &first[tried.expect("it is tried")];
    assert_eq!(tried.bytes.len(), usize::from(JUMBO));
    assert!(tried.bytes[500..].iter().all(|byte| *byte == 0), "padding");
    world.post(0, 1, 2, 60_000);
    world.run_until_quiet(SECOND);
    let recorded = world.recorded.take().unwrap();
    // Seven equal segments.
    assert!(longest(&recorded, 1) > 60_000 / 7);
    assert!(recorded.iter().filter(|one| one.to == 1).count() <= 9);
    let from = world.remote(1, 0);
    world.assert_got(1, from, &[(1, 60_000), (2, 60_000)]);
}

#[test]
fn pieces_of_a_long_message_begin_on_the_same_byte_of_a_cache_line_as_the_message() {
    const LENGTH: usize = 1_000_001;
    let mut world = jumbo_hosts(53);
    acquainted(&mut world);
    world.recorded = Some(Vec::new());
    world.post(0, 1, 3, LENGTH);
    world.run_until_quiet(SECOND);
    let mut full_count = 0;
    for one in world.recorded.take().unwrap() {
        let packet = Packet::parse(&one.bytes).unwrap();
        let Body::Data(data) = packet.body else {
            continue;
        };
        let end = data.offset_bytes as usize + packet.payload.len();
        assert_eq!(data.offset_bytes % 64, 0);
        assert!(end.is_multiple_of(64) || end == LENGTH, "it ends at {end}");
        full_count += usize::from(packet.payload.len() == 8896);
    }
    assert!(
        full_count >= LENGTH / 8896 - 2,
        "{full_count} are as long as can be"
    );
}

#[test]
fn a_network_that_swallows_long_datagrams_costs_no_message_and_the_longest_it_carries_are_found() {
    for (carried, found) in [(4500, 4000), (2100, 2000), (1500, PLAIN)] {
        let mut world = jumbo_hosts(51);
        world.carries = Box::new(move |_| carried);
        world.post(0, 1, 1, 1_000_000);
        assert!(
            world.run_until_quiet(SECOND) < 20 * MS,
            "nothing waits for a probe"
        );
        // Half a second of talk in which the smaller sizes have their turn.
        for token in 2..52 {
            world.post(0, 1, token, 100);
            world.post(1, 0, token, 100);
            world.run_for(10 * MS);
        }
        world.recorded = Some(Vec::new());
        world.post(0, 1, 60, 1_000_000);
        world.run_until_quiet(SECOND);
        let recorded = world.recorded.take().unwrap();
        assert_eq!(longest(&recorded, 1), found, "of {carried}");
        assert_eq!(world.hosts[1].got.last().unwrap().payload.len(), 1_000_000);
    }
}

#[test]
fn a_path_that_swallows_long_datagrams_is_left_though_short_ones_come_through() {
    let mut world = jumbo_hosts(52);
    world.carries = Box::new(|path| match path.source_port_index() {
        3 => 2000,
        _ => usize::MAX,
    });
    acquainted(&mut world);
    for token in 3..8 {
        world.post(0, 1, token, 4_000_000);
        world.run_until_quiet(5 * SECOND);
    }
    world.recorded = Some(Vec::new());
    world.post(0, 1, 9, 4_000_000);
    world.run_until_quiet(5 * SECOND);
    let recorded = world.recorded.take().unwrap();
    let there = recorded.iter().filter(|one| one.to == 1);
    let (mut all, mut swallowed) = (0, 0);
    for one in there.filter(|one| one.bytes.len() > 2000) {
        all += 1;
        swallowed += usize::from((one.from.port() - crate::links::FIRST_PORT) == 3);
    }
    assert!(all > 400 && swallowed * 50 < all, "{swallowed} of {all}");
}

#[test]
fn nothing_long_goes_to_who_has_not_shown_that_it_is_there() {
    let mut world = jumbo_hosts(53);
    world.recorded = Some(Vec::new());
    // Host 1 hears, and none of what it answers arrives.
    world.swallow = Box::new(|from, _, _, _| from == 1);
    world.post(0, 1, 1, 100);
    world.run_for(SECOND);
    let recorded = world.recorded.take().unwrap();
    assert!(longest(&recorded, 0) > 0 && longest(&recorded, 0) <= PLAIN);
}

#[test]
fn a_cable_that_swallows_long_datagrams_does_not_keep_them_from_the_other() {
    for seed in 0..8 {
        let mut world = jumbo_hosts(seed);
        let is_second = |path: Path| path.source_port_index() % 2 == 1;
        world.carries = Box::new(move |path| if is_second(path) { 1500 } else { usize::MAX });
        // All that is long waits for the first one.
        world.queue_ns =
            Box::new(move |path, _, _| Some(if is_second(path) { 0 } else { 200 * US }));
        for token in 1..20 {
            world.post(0, 1, token, 200_000);
            world.run_for(10 * MS);
        }
        world.recorded = Some(Vec::new());
        world.post(0, 1, 60, 1_000_000);
        world.run_until_quiet(5 * SECOND);
        let recorded = world.recorded.take().unwrap();
        // The largest one, but the next for a flow whose three probes all took the second.
        assert!(longest(&recorded, 1) >= 8000);
    }
}
