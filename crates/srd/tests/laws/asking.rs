// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Acknowledgements of messages in segments, which are held back for the receiver's own message,
//! and senders that ask for them before they must wait (srd-protocol 7.3, 7.5).

use weft_srd::random::Random;

use crate::oversubscribed::hold_back;
use crate::pair::{MS, US, World, config, seeds};
use crate::recovery::acquainted;

/// Messages of this length follow each other after 2 ms, in turn.
fn exchange(world: &mut World, length: usize, rounds: u64) {
    for token in 0..rounds {
        world.post(0, 1, token, length);
        world.run_for(2 * MS);
        world.post(1, 0, token, length);
        world.run_for(MS);
    }
}

#[test]
fn messages_in_segments_carry_the_acknowledgements_of_those_before() {
    for (length, packets) in [(2 << 10, 1), (4 << 10, 1), (8 << 10, 1)] {
        let mut world = acquainted(1);
        world.wait_known = true;
        exchange(&mut world, length, 100);
        let before = world.sent_per_host.clone();
        exchange(&mut world, length, 100);
        let sent = [0, 1].map(|host| world.sent_per_host[host] - before[host]);
        let most = 104 * packets;
        assert!(sent[0] <= most && sent[1] <= most, "{length}: {sent:?}");
    }
}

/// Messages as a driver takes them that lets its program go on: while little is in flight. Answers
/// how long they took.
fn stream(world: &mut World, length: usize, count: u64) -> u64 {
    let start = world.now;
    let mut token = 10_000;
    while token < 10_000 + count {
        let remote = world.remote(0, 1);
        let inspection = world.hosts[0].machine.inspect();
        if inspection.carries_alone(remote, length as u64, 128 << 10) {
            world.post(0, 1, token, length);
            token += 1;
        }
        world.run_for(US);
    }
    world.now - start
}

/// The receiver does not know how much the sender may have in flight.
#[test]
fn a_stream_does_not_wait_for_acknowledgements_that_are_held_back() {
    for length in [1_500, 3_000, 5_000, 8 << 10, 12_000, 24_000, 64 << 10] {
        let mut world = acquainted(1);
        world.wait_known = true;
        let usual_ns = stream(&mut world, length, 60);
        world.run_until_quiet(20 * MS);
        hold_back(&mut world);
        let held_ns = stream(&mut world, length, 60);
        let most_ns = 2 * usual_ns + 200 * US;
        assert!(held_ns < most_ns, "{length}: {held_ns} not {usual_ns} ns");
    }
}

/// Whatever the window, a message may end just before it is full.
#[test]
fn no_window_is_exhausted_without_asking_whatever_the_seed() {
    for seed in seeds(0..60) {
        let mut random = Random::new(seed);
        let mut config = config();
        config.long_packets = random.below(2) == 0;
        let window = 3_000 + random.below(80_000);
        config.pace.initial_cwnd_bytes = window;
        config.pace.cwnd_limit_bytes = window;
        let length = 1_000 + random.below(16_000) as usize;
        let mut world = World::with(2, seed, config);
        world.wait_known = true;
        hold_back(&mut world);
        let start = world.now;
        for token in 0..12 {
            world.post(0, 1, 10_000 + token, length);
            let pause_ns = random.below(30) * US;
            world.run_for(pause_ns);
        }
        let got = world.hosts[1].got.len();
        while world.hosts[1].got.len() < 212 {
            world.run_for(10 * US);
        }
        let round_trips = 2 + 12 * (length as u64 + 4_000) / window;
        let most_ns = 400 * US + round_trips * 60 * US;
        let took_ns = world.now - start;
        assert!(
            took_ns < most_ns,
            "seed {seed}, window {window}, {length} bytes, {got} came: {took_ns} ns"
        );
    }
}

/// Nobody answers, so that nothing carries an acknowledgement.
#[test]
fn who_sends_one_way_sends_hardly_a_message_again() {
    for pause_ns in [300 * US, 3 * MS, 12 * MS] {
        let mut world = acquainted(1);
        world.wait_known = true;
        hold_back(&mut world);
        let before = world.hosts[0].machine.inspect().statistics();
        for token in 0..200 {
            world.post(0, 1, 10_000 + token, 8 << 10);
            world.run_for(pause_ns);
        }
        let after = world.hosts[0].machine.inspect().statistics();
        let again = after.retransmitted_count - before.retransmitted_count;
        assert!(again <= 10, "{again} of 200 again, each {pause_ns} ns");
        assert_eq!(after.lost_count, before.lost_count);
    }
}

/// The acknowledgement comes while the sender is away.
#[test]
fn a_sender_that_computes_after_its_messages_sends_none_again() {
    for count in 1..6 {
        let mut world = acquainted(1);
        world.wait_known = true;
        hold_back(&mut world);
        for token in 0..count {
            world.post(0, 1, 10_000 + token, 8 << 10);
        }
        world.run_for(5 * US);
        let before = world.hosts[0].machine.inspect().statistics();
        world.hosts[0].away_until = world.now + 80 * MS;
        world.run_for(100 * MS);
        let after = world.hosts[0].machine.inspect().statistics();
        assert_eq!(after.retransmitted_count, before.retransmitted_count);
        assert!(world.hosts[0].lost.is_empty());
        assert_eq!(world.hosts[0].sent.len(), 220 + count as usize);
    }
}

/// Both send, with lengths around those of a packet, a flight and a window.
#[test]
fn held_back_or_not_all_comes_over_links_that_lose_and_reorder_whatever_the_seed() {
    for seed in seeds(0..12) {
        let mut world = acquainted(seed);
        world.wait_known = true;
        world.weather.loss_percent = seed % 3;
        world.weather.jitter_ns = [0, 30_000][(seed % 2) as usize];
        let mut list: Vec<(u64, usize)> = (1000..1020).map(|token| (token, 500)).collect();
        for token in 0..100 {
            let base = [600, 1_400, 4 << 10, 7_000, 32 << 10][world.random.below(5) as usize];
            let length = base + world.random.below(2_000) as usize;
            world.post(0, 1, token, length);
            list.push((token, length));
            let pause_ns = world.random.below(2_000) * US;
            world.run_for(pause_ns);
            world.post(1, 0, token, length);
            world.run_for(pause_ns / 2);
        }
        world.run_until_quiet(400 * MS);
        let from = world.remote(1, 0);
        world.assert_got(1, from, &list);
        let from = world.remote(0, 1);
        world.assert_got(0, from, &list[20..]);
    }
}
