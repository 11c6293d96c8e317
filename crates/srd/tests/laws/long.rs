// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets that stand for several sequences: what is lost of them goes again in short ones, and
//! what a receiver has already it does not take twice (srd-protocol 19).

use weft_srd::Origin;
use weft_wire::Packet;

use crate::links::{MS, Recorded, SECOND, US};
use crate::pair::World;

/// Two hosts that know each other's round trip, and record what they send from now on.
fn acquainted(seed: u64) -> World {
    let mut world = crate::recovery::acquainted(seed);
    world.recorded = Some(Vec::new());
    world
}

/// What host 0 sends next is lost.
fn swallow_one(world: &mut World) {
    let mut first = true;
    world.swallow = Box::new(move |from, _, _, _| from == 0 && std::mem::take(&mut first));
}

/// How many sequences each packet to host 1 stands for.
fn counts(recorded: &[Recorded]) -> Vec<u64> {
    let to_it = recorded.iter().filter(|one| one.to == 1);
    let packets = to_it.map(|one| Packet::parse(&one.bytes).expect("a packet").header);
    packets.map(|header| header.sequence_count()).collect()
}

#[test]
fn a_message_of_some_datagrams_is_one_packet_if_their_senders_driver_can_cut_it() {
    let mut world = acquainted(71);
    world.post(0, 1, 1, 12_000);
    world.run_until_quiet(10 * MS);
    assert_eq!(counts(&world.recorded.take().unwrap()), [10]);
    for datagram_bytes in [1_400, 4_096, 4_097] {
        let mut config = crate::links::config();
        config.datagram_bytes = datagram_bytes;
        config.long_packets = datagram_bytes != 1_400;
        let mut world = World::with(2, 72, config);
        for token in 0..40 {
            world.post(0, 1, token, 12_000);
            world.run_until_quiet(10 * MS);
        }
        world.recorded = Some(Vec::new());
        world.post(0, 1, 100, 12_000);
        world.run_until_quiet(10 * MS);
        let counts = counts(&world.recorded.take().unwrap());
        let is_long = counts.iter().any(|count| *count > 1);
        assert_eq!(
            is_long,
            datagram_bytes == 4_096,
            "{datagram_bytes}: {counts:?}"
        );
    }
}

#[test]
fn what_is_lost_of_a_long_packet_goes_again_in_short_ones_and_so_does_what_follows() {
    let mut world = acquainted(73);
    swallow_one(&mut world);
    world.post(0, 1, 1, 12_000);
    world.post(0, 1, 2, 100);
    world.run_until_quiet(100 * MS);
    for token in 3..53 {
        world.post(0, 1, token, 12_000);
        world.run_until_quiet(10 * MS);
    }
    let short = counts(&world.recorded.take().unwrap());
    assert_eq!(short[0], 10);
    assert!(short[1..].iter().all(|count| *count == 1), "{short:?}");
    let statistics = world.hosts[0].machine.inspect().statistics();
    assert!(statistics.retransmitted_count >= 10, "{statistics:?}");
    // 1024 sequences later.
    for token in 53..123 {
        world.post(0, 1, token, 12_000);
        world.run_until_quiet(10 * MS);
    }
    world.recorded = Some(Vec::new());
    world.post(0, 1, 200, 12_000);
    world.run_until_quiet(10 * MS);
    assert_eq!(counts(&world.recorded.take().unwrap()), [10]);
    assert_eq!(world.hosts[1].got.len(), 20 + 123);
}

/// A tail probe has brought the last sequence when the packet comes after all.
#[test]
fn of_a_long_packet_that_comes_late_what_is_missing_is_taken_and_nothing_twice() {
    for seed in 74..84 {
        let mut world = acquainted(seed);
        swallow_one(&mut world);
        world.post(0, 1, 1, 12_000);
        world.run_for(100 * US);
        let again = counts(world.recorded.as_ref().unwrap());
        assert!(again.len() > 1 && again[0] == 10, "{again:?}");
        let first = world.recorded.as_ref().unwrap();
        let first = first.iter().find(|one| one.to == 1).expect("it left");
        let (from, bytes) = (first.from, first.bytes.clone());
        world.deliver(1, Origin::from(from), &bytes);
        world.run_until_quiet(SECOND);
        let remote = world.remote(1, 0);
        let got = &world.hosts[1].got;
        assert_eq!(got.len(), 21, "seed {seed}");
        assert_eq!(got[20].payload, crate::links::pattern(1, 12_000));
        assert_eq!(got[20].from, remote);
    }
}
