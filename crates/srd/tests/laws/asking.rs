// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Acknowledgements of messages in segments, which are held back for the receiver's own message,
//! and senders that ask for them before they must wait (srd-protocol 7.3, 7.5).

use weft_srd::random::Random;
use weft_srd::{Config, Ecn};

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

/// A sender with a window of its own to a receiver that holds acknowledgements back for 2 ms.
fn with_window(seed: u64, window: u64, long_packets: bool) -> World {
    let mut config = Config {
        long_packets,
        ..config()
    };
    config.pace.initial_cwnd_bytes = window;
    config.pace.cwnd_limit_bytes = window;
    let mut world = World::with(2, seed, config);
    world.wait_known = true;
    hold_back(&mut world);
    world
}

/// Posts messages of these lengths, short pauses between them, some awaited. Answers how long it
/// took until the last one came, which is `most_ns` at most.
fn send_all(world: &mut World, lengths: &[u64], most_ns: u64) -> u64 {
    let (start, before) = (world.now, world.hosts[1].got.len());
    let remote = world.remote(0, 1);
    let mut random = Random::new(world.random.number());
    for (token, length) in (10_000..).zip(lengths) {
        world.post(0, 1, token, *length as usize);
        if random.below(3) == 0 {
            world.hosts[0].machine.at(remote).await_end(token);
        }
        let pause_ns = random.below(30) * US;
        world.run_for(pause_ns);
    }
    // A message that lands in place counts as one that came when its first piece has.
    while world.hosts[1].got.len() < before + lengths.len() || !world.hosts[1].landings.is_empty() {
        let took_ns = world.now - start;
        assert!(took_ns < most_ns, "{took_ns} ns, and some are missing");
        world.run_for(10 * US);
    }
    world.now - start
}

/// Whatever the window, a message may end just before it is full.
#[test]
fn no_window_is_exhausted_without_asking_whatever_the_seed() {
    for seed in seeds(0..120) {
        let mut random = Random::new(seed);
        let window = 3_000 + random.below(80_000);
        let most = [1_000, 4_000, 8_000, 16_000][random.below(4) as usize];
        let lengths: Vec<u64> = (0..12).map(|_| 100 + random.below(most)).collect();
        let mut world = with_window(seed, window, random.below(2) == 0);
        let bytes: u64 = lengths.iter().map(|length| length + 4_000).sum();
        println!("window {window}, {lengths:?}");
        send_all(
            &mut world,
            &lengths,
            400 * US + (2 + bytes / window) * 60 * US,
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

/// What the receiver has learned in an exchange is of no use for messages that it does not answer.
#[test]
fn messages_one_way_soon_take_as_few_packets_after_an_exchange_as_without_one() {
    for length in [4 << 10, 8 << 10] {
        let packets_after = |rounds| {
            let mut world = with_packets(true);
            exchange(&mut world, length, rounds);
            let mut before = 0;
            for token in 0..1000 {
                if token == 500 {
                    before = world.sent_per_host[0];
                }
                world.post(0, 1, 10_000 + token, length);
                world.run_for(300 * US);
            }
            world.sent_per_host[0] - before
        };
        let (usual, after) = (packets_after(0), packets_after(150));
        println!("500 messages of {length} bytes: {usual} packets, {after} after an exchange");
        assert!(after <= usual + usual / 10);
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

/// Two hosts that send long packets, or only those of one datagram.
pub fn with_packets(long_packets: bool) -> World {
    let config = Config {
        long_packets,
        ..config()
    };
    let mut world = World::with(2, 1, config);
    world.wait_known = true;
    world
}

/// An eager message or one in segments leaves behind an awaited one, and nobody waits for it.
#[test]
fn an_awaited_message_is_heard_of_soon_whatever_is_queued_behind_it() {
    let before = [1_500, 4 << 10, 8 << 10, 100_000];
    let pairs = before.map(|first| [500, 4 << 10].map(|second| (first, second)));
    for (first, second) in pairs.into_iter().flatten() {
        for long_packets in [true, false] {
            let mut world = with_packets(long_packets);
            hold_back(&mut world);
            let remote = world.remote(0, 1);
            world.post(0, 1, 1000, first);
            world.hosts[0].machine.at(remote).await_end(1000);
            world.post(0, 1, 1001, second);
            world.run_for(200 * US);
            let sent = &world.hosts[0].sent;
            assert!(
                sent.contains(&1000),
                "{second} behind {first} bytes, {long_packets}"
            );
        }
    }
}

/// The sender hears at once of what it asked for, and does not learn how late other answers come.
#[test]
fn a_receiver_does_not_learn_to_hold_back_from_messages_that_ask() {
    for long_packets in [true, false] {
        let mut world = with_packets(long_packets);
        let remote = world.remote(0, 1);
        for token in 0..100 {
            world.post(0, 1, token, 4 << 10);
            world.hosts[0].machine.at(remote).await_end(token);
            world.run_for(2 * MS);
            world.post(1, 0, token, 4 << 10);
            world.run_for(MS);
        }
        let before = world.hosts[0].machine.inspect().statistics();
        world.post(0, 1, 1000, 4 << 10);
        world.run_for(20 * MS);
        let after = world.hosts[0].machine.inspect().statistics();
        assert_eq!(after.retransmitted_count, before.retransmitted_count);
        assert!(world.hosts[0].sent.contains(&1000));
    }
}

/// The mark is on the first packet alone: those behind it may wait, and must not put it off.
#[test]
fn a_mark_on_the_first_of_several_segments_is_heard_of_soon() {
    let mut world = with_packets(false);
    hold_back(&mut world);
    let mut is_first = true;
    world.remark = Box::new(move |from, _, sent| {
        let is_marked = from == 0 && std::mem::take(&mut is_first);
        if is_marked { Ecn::Ce } else { sent }
    });
    world.post(0, 1, 1000, 8 << 10);
    world.run_for(200 * US);
    assert!(world.hosts[0].sent.contains(&1000));
}
