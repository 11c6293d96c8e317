// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages of all forms arrive once, whole and in order, in fair weather and in storms.

use weft_srd::{Failure, Instant};
use weft_wire::Reason;

use crate::pair::{MS, Policy, SECOND, US, Weather, World, config, seeds};

fn lengths(world: &mut World, count: u64) -> Vec<(u64, usize)> {
    let pick = |world: &mut World| match world.random.below(10) {
        0 => 0,
        1..=5 => world.random.below(1200) as usize,
        6..=8 => 1200 + world.random.below(60_000) as usize,
        _ => 70_000 + world.random.below(300_000) as usize,
    };
    (0..count).map(|token| (token, pick(world))).collect()
}

#[test]
fn a_small_message_arrives_after_one_link() {
    let mut world = World::new(2, 1);
    world.post(0, 1, 7, 100);
    world.run_for(10 * US);
    let from = world.remote(1, 0);
    world.assert_got(1, from, &[(7, 100)]);
    world.run_until_quiet(MS);
    assert_eq!(world.hosts[0].sent, [7]);
    // The message and its acknowledgement: nothing else is sent for it.
    assert_eq!(world.sent_per_host, [1, 1]);
}

#[test]
fn a_message_of_a_few_packets_that_leaves_alone_keeps_to_one_path() {
    let mut world = World::new(2, 3);
    world.post(0, 1, 1, 100);
    world.run_until_quiet(MS);
    for token in 2..6 {
        let seen = std::rc::Rc::new(std::cell::Cell::new(0));
        let set = std::rc::Rc::clone(&seen);
        world.swallow = Box::new(move |from, _, path, _| {
            if from == 0 {
                set.set(set.get() | path.bit());
            }
            false
        });
        world.post(0, 1, token, 8192);
        world.run_until_quiet(10 * MS);
        assert_eq!(seen.get().count_ones(), 1, "message {token}");
    }
}

#[test]
fn all_forms_arrive_once_and_in_order_in_fair_weather() {
    let mut world = World::new(2, 2);
    let list = [
        (1, 0),
        (2, 1),
        (3, 1000),
        (4, 5_000),
        (5, 65_536),
        (6, 65_537),
        (7, 1_000_000),
        (8, 3),
    ];
    for (token, length) in list {
        world.post(0, 1, token, length);
    }
    world.run_until_quiet(20 * MS);
    let from = world.remote(1, 0);
    world.assert_got(1, from, &list);
    let mut sent = world.hosts[0].sent.clone();
    sent.sort_unstable();
    assert_eq!(sent, [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(
        world.hosts[0]
            .machine
            .inspect()
            .statistics()
            .retransmitted_count,
        0
    );
}

#[test]
fn nothing_is_lost_doubled_or_reordered_in_storms_whatever_the_seed() {
    for seed in seeds(10..40) {
        let mut world = World::new(2, seed);
        world.weather = Weather::STORM;
        let list = lengths(&mut world, 40);
        for (token, length) in &list {
            world.post(0, 1, *token, *length);
            world.post(1, 0, *token, *length);
            let pause = world.random.below(200) * US;
            world.run_for(pause);
        }
        world.run_until_quiet(20 * SECOND);
        for (at, of) in [(0, 1), (1, 0)] {
            let from = world.remote(at, of);
            world.assert_got(at, from, &list);
            assert_eq!(world.hosts[at].sent.len(), list.len(), "seed {seed}");
            assert_eq!(
                world.hosts[at].machine.inspect().held_bytes(),
                0,
                "seed {seed}"
            );
            assert_eq!(
                world.hosts[at]
                    .machine
                    .inspect()
                    .statistics()
                    .violation_count,
                0,
                "seed {seed}"
            );
        }
    }
}

#[test]
fn an_answer_that_carries_an_acknowledgement_is_still_handed_out_from_its_datagram() {
    let mut world = World::new(2, 51);
    for round in 0..10 {
        world.post((round % 2) as usize, 1 - (round % 2) as usize, round, 100);
        world.run_for(12 * US);
    }
    assert_eq!(
        (world.hosts[0].direct_count, world.hosts[1].direct_count),
        (5, 5)
    );
    // Five pings and five answers; each but the first carries the acknowledgement of the one
    // before.
    assert_eq!(world.sent_per_host, [5, 5]);
}

#[test]
fn many_remotes_at_once_keep_their_messages_apart() {
    let mut world = World::new(9, 50);
    world.weather.loss_percent = 2;
    let list: Vec<(u64, usize)> = (0..10).map(|index| (index, 100_000)).collect();
    for sender in 1..9 {
        for (token, length) in &list {
            world.post(sender, 0, *token, *length);
        }
    }
    world.run_until_quiet(2 * SECOND);
    for sender in 1..9 {
        let from = world.remote(0, sender);
        world.assert_got(0, from, &list);
    }
}

#[test]
fn a_truncated_message_sends_no_more_than_was_accepted_and_a_discarded_one_nothing() {
    for most in [0, 1000, 100_000] {
        let mut world = World::new(2, 60 + most);
        world.hosts[1].policy = Policy::Truncate(most);
        world.post(0, 1, 5, 400_000);
        world.run_until_quiet(20 * MS);
        assert_eq!(world.hosts[0].sent, [5]);
        let got = &world.hosts[1].got[0].payload;
        let expected = &crate::pair::pattern(5, 400_000)[..most as usize];
        assert!(got == expected);
        assert!(world.sent_per_host[0] < 20 + most / 1300);
    }
}

#[test]
fn a_refused_message_fails_and_those_behind_it_arrive() {
    let mut world = World::new(2, 70);
    world.hosts[1].policy = Policy::Refuse;
    world.post(0, 1, 1, 400_000);
    world.post(0, 1, 2, 10);
    world.run_until_quiet(20 * MS);
    assert_eq!(
        world.hosts[0].failed,
        [(1, Failure::Refused(Reason::NoMemory))]
    );
    assert_eq!(world.hosts[0].sent, [2]);
}

#[test]
fn a_message_that_wants_a_receipt_is_complete_when_the_receipt_comes() {
    let mut world = World::new(2, 80);
    assert!(world.try_post(0, 1, 9, 50, true));
    world.run_for(5 * MS);
    assert!(world.hosts[0].sent.is_empty());
    let got = world.hosts[1].got[0].clone();
    let now = world.now;
    let machine = &mut world.hosts[1].machine;
    machine.receipt(Instant(now), got.offer()).unwrap();
    world.run_until_quiet(5 * MS);
    assert_eq!(world.hosts[0].sent, [9]);
}

#[test]
fn an_offer_may_wait_for_its_receive_and_holds_up_nothing() {
    let mut world = World::new(2, 90);
    world.hosts[1].policy = Policy::Keep;
    world.post(0, 1, 1, 500_000);
    world.post(0, 1, 2, 20);
    world.run_for(3 * SECOND);
    assert_eq!(world.hosts[0].sent, [2]);
    let (remote, message) = world.hosts[1].offers[0];
    world.accept(1, remote, message, message.length_bytes);
    world.run_until_quiet(20 * MS);
    assert_eq!(world.hosts[0].sent, [2, 1]);
    assert!(world.hosts[1].got[1].payload == crate::pair::pattern(1, 500_000));
}

#[test]
fn a_message_that_is_long_on_its_way_holds_back_no_more_ids_than_its_receiver_takes() {
    let mut world = World::new(2, 97);
    world.post(0, 1, 0, 100);
    world.run_for(MS);
    let opens = world.now + 40 * MS;
    // The next message gets lost again and again: it alone has this length.
    let mut posted = 1;
    world.lose_length = Some((777, opens));
    world.post(0, 1, 1, 777);
    while world.now < opens + 150 * MS {
        while world.try_post(0, 1, posted + 1, 100, false) {
            posted += 1;
        }
        world.run_for(100 * US);
    }
    world.run_until_quiet(SECOND);
    let statistics = world.hosts[1].machine.inspect().statistics();
    assert_eq!(
        (statistics.violation_count, statistics.dropped_count),
        (0, 0)
    );
    let mut expected: Vec<(u64, usize)> = (0..=posted).map(|token| (token, 100)).collect();
    expected[1].1 = 777;
    let from = world.remote(1, 0);
    world.assert_got(1, from, &expected);
    assert!(posted > 128, "{posted} posted");
}

#[test]
fn a_receiver_that_is_behind_slows_its_senders() {
    let time = |penalty: u8| {
        let mut world = World::new(2, 98);
        world.hosts[1].machine.set_penalty(penalty);
        world.post(0, 1, 1, 8_000_000);
        world.run_until_quiet(10 * SECOND)
    };
    let (free, slowed) = (time(0), time(100));
    assert!(
        slowed > 3 * free,
        "{slowed} ns with a penalty, {free} ns without"
    );
}

#[test]
fn large_messages_of_many_senders_together_never_exceed_the_credit_pool() {
    let mut config = config();
    config.pace.credit_pool_bytes = 100_000;
    let mut world = World::with(9, 99, config);
    for sender in 1..9 {
        world.post(sender, 0, 1, 500_000);
    }
    // Everything the receiver has not granted stays with its senders: a round trip carries the pool
    // at most.
    let took = world.run_until_quiet(SECOND);
    let round_trips = took / (20 * US);
    assert!(
        8 * 500_000 / round_trips < 100_000 + 20_000,
        "{round_trips} round trips"
    );
    for sender in 1..9 {
        let from = world.remote(0, sender);
        world.assert_got(0, from, &[(1, 500_000)]);
    }
}

/// Host 1 of this world has had one message of host 0, and from now on keeps 1 MiB of it unread.
fn with_1_mib_unread(mut world: World) -> World {
    let from = world.remote(1, 0);
    world.post(0, 1, 0, 1000);
    world.run_for(MS);
    let now = Instant(world.now);
    world.hosts[1].machine.at(from).set_unread(now, 1 << 20);
    world
}

/// As OSU's `mbw_mr` sends them: 64 before it waits for an answer.
#[test]
fn the_window_is_open_for_60_messages_of_16_kib_while_the_owner_reads_none() {
    let mut world = with_1_mib_unread(World::new(2, 96));
    for token in 1..=60 {
        world.post(0, 1, token, 16 << 10);
    }
    world.run_for(50 * MS);
    assert_eq!(world.hosts[1].got.len(), 61);
}

#[test]
fn what_the_owner_keeps_unread_closes_the_window_until_it_is_read() {
    let mut config = config();
    config.memory.receive_credit_bytes = 256 << 10;
    let mut world = with_1_mib_unread(World::with(2, 95, config));
    let from = world.remote(1, 0);
    for token in 1..60 {
        world.post(0, 1, token, 30_000);
    }
    world.run_for(50 * MS);
    let held = world.hosts[1].got.len();
    assert!(held < 15, "{held} messages came past a closed window");
    let now = world.now;
    world.hosts[1].machine.at(from).set_unread(Instant(now), 0);
    world.run_until_quiet(500 * MS);
    assert_eq!(world.hosts[1].got.len(), 60);
}
