// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Two hosts whose messages answer each other: what leaves beside the messages, and on how many
//! paths a message leaves.

use std::cell::Cell;
use std::rc::Rc;

use weft_srd::Instant;

use crate::links::{MS, US, config};
use crate::pair::World;

/// Messages of this length go back and forth, and each has arrived when the next one leaves.
/// Answers what each host sent in the second half.
fn exchange(world: &mut World, length: usize, rounds: u64) -> [u64; 2] {
    let mut before = [0; 2];
    for round in 0..rounds {
        if round == rounds / 2 {
            before.copy_from_slice(&world.sent_per_host[..2]);
        }
        let from = (round % 2) as usize;
        world.post(from, 1 - from, round, length);
        world.run_for(12 * US);
        let got = &world.hosts[1 - from].got;
        assert_eq!(got.len() as u64, round / 2 + 1, "message {round}");
    }
    [0, 1].map(|host| world.sent_per_host[host] - before[host])
}

#[test]
fn messages_in_segments_that_answer_each_other_carry_all_acknowledgements() {
    for (length, segments) in [(1500, 2), (4096, 4), (5100, 4), (8192, 7), (40_000, 31)] {
        let mut config = config();
        config.long_packets = false;
        let mut world = World::with(2, 5, config);
        let sent = exchange(&mut world, length, 40);
        assert_eq!(sent, [10 * segments, 10 * segments], "{length} bytes");
    }
}

#[test]
fn long_packets_that_answer_each_other_carry_all_acknowledgements() {
    for (length, packets) in [(1500, 1), (4096, 1), (8192, 1), (32_000, 1), (64_000, 2)] {
        let mut world = World::new(2, 5);
        let sent = exchange(&mut world, length, 40);
        assert_eq!(sent, [10 * packets, 10 * packets], "{length} bytes");
    }
}

#[test]
fn a_receipt_is_acknowledged_by_the_next_message() {
    let mut world = World::new(2, 6);
    let mut before = Vec::new();
    for round in 0..20 {
        if round == 10 {
            before.clone_from(&world.sent_per_host);
        }
        let from = (round % 2) as usize;
        assert!(world.try_post(from, 1 - from, round, 100, true));
        world.run_for(12 * US);
        let offer = world.hosts[1 - from]
            .got
            .last()
            .expect("it has come")
            .offer();
        let now = Instant(world.time_at(1 - from));
        let machine = &mut world.hosts[1 - from].machine;
        machine.receipt(now, offer).expect("it wants one");
        // The receiver works on it for longer than the acknowledgement delay.
        world.run_for(60 * US);
        assert_eq!(world.hosts[from].sent.len() as u64, round / 2 + 1);
    }
    let sent: Vec<u64> = [0, 1]
        .map(|host| world.sent_per_host[host] - before[host])
        .into();
    assert_eq!(sent, [10, 10], "five messages and five receipts each");
}

/// The paths that one message takes.
fn paths_of(world: &mut World, token: u64, length: usize) -> u32 {
    let seen = Rc::new(Cell::new(0));
    let set = Rc::clone(&seen);
    world.swallow = Box::new(move |from, _, path, _| {
        if from == 0 {
            set.set(set.get() | path.bit());
        }
        false
    });
    world.post(0, 1, token, length);
    world.run_until_quiet(10 * MS);
    seen.get().count_ones()
}

#[test]
fn a_message_keeps_to_one_path_once_a_part_of_it_was_quick_there() {
    let mut world = World::new(2, 7);
    world.post(0, 1, 0, 100);
    world.run_until_quiet(MS);
    let first = paths_of(&mut world, 1, 60_000);
    assert!(first > 1, "nothing is known of what a path carries");
    for token in 2..8 {
        paths_of(&mut world, token, 60_000);
    }
    assert_eq!(paths_of(&mut world, 8, 60_000), 1);
}

/// Nobody but this law can wait so: a machine is told of programs that wait, and asks (clause 7.5).
/// Without that, each kept the other waiting longer, since its next message came later each time.
#[test]
fn two_that_wait_for_each_others_acknowledgements_do_not_learn_to_hold_them_back() {
    for (length, taught) in [(100, false), (8_000, false), (100, true), (8_000, true)] {
        let mut world = World::new(2, 8);
        let mut tokens = 0..;
        let mut post = |world: &mut World, from: usize| {
            let token = tokens.next().expect("it has no end");
            world.post(from, 1 - from, token, length);
        };
        for _ in 0..if taught { 60 } else { 0 } {
            post(&mut world, 0);
            world.run_for(3 * MS);
            post(&mut world, 1);
            world.run_for(500 * US);
        }
        let took: Vec<u64> = (0..60)
            .map(|_| {
                post(&mut world, 0);
                post(&mut world, 1);
                world.run_until_quiet(100 * MS)
            })
            .collect();
        assert_eq!(taught, took.iter().any(|took| *took > MS), "{took:?}");
        let longest = took[20..].iter().max().expect("there are some");
        // Four round trips, and what they grow by.
        assert!(*longest < 200 * US, "{length}, {taught}: {took:?}");
    }
}
