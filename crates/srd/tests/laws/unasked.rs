// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Senders with packets in flight that ask for nothing, to receivers that hold acknowledgements
//! back (srd-protocol 7.3, 7.5): what the senders need to hear of, and do not by itself.

use weft_srd::{Instant, Nanos};
use weft_wire::{Body, Packet};

use crate::asking::with_packets;
use crate::oversubscribed::hold_back;
use crate::pair::{MS, Recorded, US, World, config};

/// Two hosts that hold back acknowledgements for 2 ms.
fn holding_back(long_packets: bool) -> World {
    let mut world = with_packets(long_packets);
    hold_back(&mut world);
    world
}

/// How many packets the first host has sent again.
fn sent_again(world: &World) -> u64 {
    let inspection = world.hosts[0].machine.inspect();
    inspection.statistics().retransmitted_count
}

fn probe_count(recorded: &[Recorded]) -> usize {
    let packets = recorded.iter().flat_map(|one| Packet::parse(&one.bytes));
    let probes = packets.filter(|packet| matches!(packet.body, Body::Probe));
    probes.count()
}

/// What the remote says of itself leaves room for less than is in flight.
#[test]
fn who_waits_for_a_window_that_has_shrunk_asks() {
    for length in [500, 4 << 10, 100_000] {
        let mut world = holding_back(true);
        world.post(0, 1, 1000, 500);
        world.run_for(30 * US);
        world.hosts[1].machine.set_penalty(127);
        world.post(1, 0, 1000, 500);
        world.post(0, 1, 1001, 8 << 10);
        world.run_for(15 * US);
        let before = world.hosts[1].got.len();
        world.recorded = Some(Vec::new());
        world.post(0, 1, 1002, length);
        world.run_for(300 * US);
        assert_eq!(world.hosts[1].got.len(), before + 1, "{length} bytes");
        let recorded = world.recorded.take().expect("recorded");
        assert_eq!(probe_count(&recorded), 1, "{length} bytes");
    }
}

/// A probe is answered at once, which says nothing of answers that are held back.
#[test]
fn who_heard_only_answers_to_probes_still_knows_that_others_are_late() {
    let mut config = config();
    config.timing.dead_after_ns = Nanos(20 * MS);
    let mut world = World::with(2, 1, config);
    world.wait_known = true;
    hold_back(&mut world);
    let (remote, now) = (world.remote(0, 1), Instant(world.time_at(0)));
    world.hosts[0].machine.at(remote).watch(now, true);
    let sent = world.sent_per_host[0];
    while world.sent_per_host[0] < sent + 40 {
        world.run_for(20 * MS);
    }
    let before = sent_again(&world);
    world.post(0, 1, 1000, 500);
    world.run_for(2 * MS);
    world.post(1, 0, 1000, 500);
    world.run_for(5 * MS);
    assert_eq!(
        sent_again(&world),
        before,
        "it is waited for as long as before"
    );
}

/// The answer comes with the remote's message, and says that the first of two arrived long ago.
#[test]
fn who_sends_two_messages_and_hears_once_hardly_sends_one_again() {
    for apart_ns in [100 * US, 500 * US, MS, 2 * MS] {
        for length in [500, 4 << 10] {
            let mut world = with_packets(true);
            let mut before = 0;
            for turn in 0..300 {
                if turn == 100 {
                    let statistics = world.hosts[0].machine.inspect().statistics();
                    before = statistics.retransmitted_count;
                }
                world.post(0, 1, 2 * turn, length);
                world.run_for(apart_ns);
                world.post(0, 1, 2 * turn + 1, length);
                world.run_for(apart_ns);
                world.post(1, 0, turn, length);
                world.run_for(5 * MS);
            }
            let after = world.hosts[0].machine.inspect().statistics();
            let again = after.retransmitted_count - before;
            assert!(
                again <= 4,
                "{again} of 400 again, {apart_ns} ns apart, {length} bytes"
            );
        }
    }
}

/// Nothing else would tell the sender: the receiver has said so, and holds back what comes next.
#[test]
fn who_hears_nothing_of_what_it_asked_for_asks_again_with_its_next_message() {
    for (first, second) in [
        (500, 500),
        (500, 4 << 10),
        (4 << 10, 500),
        (4 << 10, 4 << 10),
    ] {
        let mut world = holding_back(true);
        let remote = world.remote(0, 1);
        let mut is_first = true;
        world.swallow = Box::new(move |from, _, _, _| from == 1 && std::mem::take(&mut is_first));
        world.post(0, 1, 1000, first);
        world.hosts[0].machine.at(remote).await_end(1000);
        world.run_for(200 * US);
        assert!(!world.hosts[0].sent.contains(&1000));
        world.post(0, 1, 1001, second);
        world.run_for(200 * US);
        let is_sent = world.hosts[0].sent.contains(&1000);
        assert!(is_sent, "{second} bytes behind {first}");
    }
}

/// An endpoint that closes does not leave before its messages have arrived. They may have left
/// before it begins to close, or not; the pace keeps some of many.
#[test]
fn who_closes_hears_soon_of_what_is_held_back() {
    for length in [500, 1000, 4 << 10] {
        for count in [1, 2, 3].into_iter().chain(57..65) {
            for before_ns in [0, 1, 5 * US, 10 * US] {
                let mut world = holding_back(true);
                world.run_until_quiet(20 * MS);
                (0..count).for_each(|token| world.post(0, 1, 1000 + token, length));
                if before_ns > 0 {
                    world.run_for(before_ns);
                }
                let (remote, now) = (world.remote(0, 1), Instant(world.time_at(0)));
                world.hosts[0].machine.at(remote).close(now);
                world.run_for(200 * US);
                let owes = world.hosts[0].machine.inspect().owes();
                assert!(!owes, "{count} of {length} bytes, {before_ns} ns before");
                let sent = world.sent_per_host[0];
                world.run_for(MS);
                assert_eq!(world.sent_per_host[0], sent, "nothing is left to ask for");
            }
        }
    }
}
