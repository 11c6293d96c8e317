// SPDX-License-Identifier: Apache-2.0 OR MIT
//! First contact, restarts, rests.

use weft_srd::{Failure, Instant, PostError};

use crate::pair::{MS, Policy, SECOND, US, World, seeds};

#[test]
fn both_sides_may_send_first_at_the_same_moment() {
    for seed in seeds(0..20) {
        let mut world = World::new(2, seed);
        world.weather.loss_percent = if seed % 2 == 0 { 0 } else { 30 };
        for token in 0..20 {
            world.post(0, 1, token, 300);
            world.post(1, 0, token, 300);
        }
        world.run_until_quiet(5 * SECOND);
        let expected: Vec<(u64, usize)> = (0..20).map(|token| (token, 300)).collect();
        let (at_first, at_second) = (world.remote(0, 1), world.remote(1, 0));
        world.assert_got(0, at_first, &expected);
        world.assert_got(1, at_second, &expected);
    }
}

#[test]
fn after_first_contact_many_paths_are_used() {
    let mut world = World::new(2, 30);
    let seen = std::rc::Rc::new(std::cell::Cell::new(0u64));
    let set = std::rc::Rc::clone(&seen);
    world.swallow = Box::new(move |from, _, path, _| {
        if from == 0 {
            set.set(set.get() | path.bit());
        }
        false
    });
    world.post(0, 1, 1, 4_000_000);
    world.run_until_quiet(100 * MS);
    assert!(
        seen.get().count_ones() >= 8,
        "{} paths",
        seen.get().count_ones()
    );
}

#[test]
fn datagrams_are_as_large_as_both_hosts_carry_to_each_other() {
    for (there, back, most) in [(9000, 4000, 4000), (1300, 9000, 1300), (9000, 100, 1200)] {
        let mut world = World::new(2, 31);
        let (first, second) = (world.remote(0, 1), world.remote(1, 0));
        world.hosts[0]
            .machine
            .at(first)
            .set_datagram_bytes(Instant::START, there, true);
        world.hosts[1]
            .machine
            .at(second)
            .set_datagram_bytes(Instant::START, back, true);
        world.datagram_limit_bytes = most;
        world.post(0, 1, 1, 100);
        world.run_until_quiet(10 * MS);
        world.recorded = Some(Vec::new());
        world.post(0, 1, 2, 200_000);
        world.post(1, 0, 3, 200_000);
        world.run_until_quiet(100 * MS);
        world.assert_got(1, second, &[(1, 100), (2, 200_000)]);
        world.assert_got(0, first, &[(3, 200_000)]);
        let recorded = world.recorded.unwrap();
        for to in [0, 1] {
            let lengths = recorded.iter().filter(|one| one.to == to);
            let largest = lengths.map(|one| one.datagram_bytes).max();
            assert_eq!(largest, Some(most), "to {to}, of {there} and {back}");
        }
    }
}

#[test]
fn a_restarted_remote_fails_what_was_under_way_and_can_be_talked_to_anew() {
    let mut world = World::new(2, 40);
    world.post(0, 1, 1, 100);
    world.run_until_quiet(10 * MS);
    world.hosts[1].policy = crate::pair::Policy::Keep;
    world.post(0, 1, 2, 300_000);
    world.run_for(MS);
    world.replace(1, 777_777);
    world.post(0, 1, 3, 100);
    world.run_for(50 * MS);
    assert_eq!(
        world.hosts[0].failed,
        [(2, Failure::Restarted), (3, Failure::Restarted)]
    );
    assert!(
        world.hosts[1].got.is_empty(),
        "the new process gets nothing that was meant for the old one"
    );
    world.post(0, 1, 4, 100);
    world.run_until_quiet(10 * MS);
    let from = world.remote(1, 0);
    world.assert_got(1, from, &[(4, 100)]);
}

#[test]
fn a_restarted_remote_that_speaks_first_is_taken_for_a_new_one() {
    let mut world = World::new(2, 41);
    world.post(0, 1, 1, 100);
    world.run_until_quiet(10 * MS);
    world.replace(1, 888_888);
    world.post(1, 0, 9, 100);
    world.run_until_quiet(10 * MS);
    assert_eq!(world.hosts[0].lost.len(), 1);
    let from = world.remote(0, 1);
    world.assert_got(0, from, &[(9, 100)]);
    world.post(0, 1, 2, 100);
    world.run_until_quiet(10 * MS);
    let from = world.remote(1, 0);
    world.assert_got(1, from, &[(2, 100)]);
}

#[test]
fn a_remote_that_ended_and_is_named_again_is_sought_anew_at_its_address() {
    let mut world = acquainted_and_ended();
    assert!(!world.try_post(0, 1, 3, 100, false), "it has ended");
    world.swallow = Box::new(|_, _, _, _| false);
    world.replace(1, 777_777);
    let remote = world.remote(0, 1);
    world.hosts[0].machine.at(remote).begin_again();
    world.post(0, 1, 4, 100);
    world.run_until_quiet(10 * MS);
    let from = world.remote(1, 0);
    world.assert_got(1, from, &[(4, 100)]);
    assert_eq!(world.hosts[0].failed, [(2, Failure::Lost)]);
}

#[test]
fn a_remote_that_ended_and_is_named_again_ends_again_while_nobody_is_there() {
    let mut world = acquainted_and_ended();
    let remote = world.remote(0, 1);
    world.hosts[0].machine.at(remote).begin_again();
    world.post(0, 1, 3, 100);
    world.run_for(10 * SECOND);
    assert_eq!(
        world.hosts[0].failed,
        [(2, Failure::Lost), (3, Failure::Lost)]
    );
}

/// The second host is silent until the first one has given it up.
fn acquainted_and_ended() -> World {
    let mut world = World::new(2, 43);
    world.post(0, 1, 1, 100);
    world.run_until_quiet(10 * MS);
    world.swallow = Box::new(|_, _, _, _| true);
    world.post(0, 1, 2, 100);
    world.run_for(10 * SECOND);
    assert_eq!(world.hosts[0].lost.len(), 1);
    world
}

#[test]
fn packets_of_a_gone_incarnation_do_not_bring_it_back() {
    let mut world = World::new(2, 42);
    world.post(1, 0, 1, 100);
    world.run_until_quiet(10 * MS);
    // Kept in the network while its sender dies and is replaced.
    world.weather.delay_ns = 30 * MS;
    world.post(1, 0, 2, 100);
    world.run_for(US);
    world.weather.delay_ns = 10 * US;
    world.replace(1, 999_999);
    world.post(1, 0, 3, 100);
    world.run_for(100 * MS);
    let from = world.remote(0, 1);
    world.assert_got(0, from, &[(1, 100), (3, 100)]);
    let statistics = world.hosts[0].machine.inspect().statistics();
    assert!(statistics.unknown_flow_count >= 1);
}

#[test]
fn an_idle_flow_rests_and_goes_on_where_it_stopped() {
    let mut world = World::new(2, 43);
    let from = world.remote(1, 0);
    let mut expected = Vec::new();
    for token in 0..5 {
        let length = [100, 30_000, 200_000, 0, 2_000][token as usize];
        world.post(0, 1, token, length);
        expected.push((token, length));
        world.run_until_quiet(100 * MS);
        // One side rests before the other: its timers run later.
        world.run_for((29 + token) * SECOND);
    }
    world.assert_got(1, from, &expected);
    assert_eq!(world.hosts[0].sent.len(), 5);
    assert_eq!(
        world.hosts[1]
            .machine
            .inspect()
            .statistics()
            .violation_count,
        0
    );
}

#[test]
fn a_remote_is_known_by_its_first_port_whichever_way_it_is_met() {
    let mut world = World::new(2, 44);
    world.post(0, 1, 1, 10);
    world.run_until_quiet(10 * MS);
    let met = world.hosts[1].got[0].from;
    assert_eq!(world.remote(1, 0), met);
    assert_eq!(
        world.hosts[1].machine.inspect().address(met),
        Some(crate::pair::address(0))
    );
}

#[test]
fn who_has_given_up_a_remote_tells_it_so_when_it_speaks_again() {
    let mut world = World::new(2, 45);
    world.post(0, 1, 1, 100);
    world.run_until_quiet(10 * MS);
    world.swallow = Box::new(|_, _, _, _| true);
    world.post(0, 1, 2, 100);
    world.run_for(7 * SECOND);
    assert_eq!(world.hosts[0].failed, [(2, Failure::Lost)]);
    world.swallow = Box::new(|_, _, _, _| false);
    // The other side noticed nothing.
    assert!(world.hosts[1].lost.is_empty());
    world.post(1, 0, 3, 100);
    world.run_for(100 * MS);
    assert_eq!(world.hosts[1].failed, [(3, Failure::Lost)]);
    assert!(world.hosts[0].got.is_empty());
    // A new process in its place begins anew.
    world.replace(1, 555_555);
    world.post(1, 0, 4, 100);
    world.run_until_quiet(100 * MS);
    let from = world.remote(0, 1);
    world.assert_got(0, from, &[(4, 100)]);
}

#[test]
fn both_processes_may_be_replaced_at_once() {
    let mut world = World::new(2, 46);
    world.post(0, 1, 1, 200_000);
    world.run_for(40 * US);
    world.replace(0, 111_111);
    world.replace(1, 222_222);
    world.post(0, 1, 2, 100);
    world.post(1, 0, 3, 70_000);
    world.run_until_quiet(100 * MS);
    let (at_first, at_second) = (world.remote(0, 1), world.remote(1, 0));
    world.assert_got(0, at_first, &[(3, 70_000)]);
    world.assert_got(1, at_second, &[(2, 100)]);
}

/// Another process at the same address numbers its messages from 0 too: what is said of those of
/// the one before must not reach it.
#[test]
fn what_is_said_of_a_message_of_a_gone_process_reaches_no_other() {
    for (length, policy) in [(100, Policy::Accept), (5_000, Policy::Accept)] {
        let mut world = World::new(2, 47);
        world.hosts[1].policy = policy;
        assert!(world.try_post(0, 1, 1, length, true));
        world.run_for(MS);
        let first = world.hosts[1].got[0].clone();
        world.replace(0, 777_777);
        assert!(world.try_post(0, 1, 2, length, true));
        world.run_for(MS);
        let second = world.hosts[1].got[1].clone();
        assert_eq!((first.message.id, second.message.id), (0, 0));
        let now = world.now;
        let machine = &mut world.hosts[1].machine;
        let refused = machine.receipt(Instant(now), first.offer());
        assert_eq!(refused, Err(PostError::Unknown));
        world.run_for(MS);
        assert_eq!(world.hosts[0].sent, [], "nobody has received it");
        let now = world.now;
        let machine = &mut world.hosts[1].machine;
        machine.receipt(Instant(now), second.offer()).unwrap();
        world.run_until_quiet(10 * MS);
        assert_eq!(world.hosts[0].sent, [2]);
    }
}

#[test]
fn an_offer_of_a_gone_process_is_void_though_the_next_one_offers_too() {
    let mut world = World::new(2, 48);
    world.hosts[1].policy = Policy::Keep;
    world.post(0, 1, 1, 300_000);
    world.run_for(MS);
    world.replace(0, 888_888);
    world.post(0, 1, 2, 300_000);
    world.run_for(MS);
    let offers = world.hosts[1].offers.clone();
    assert_eq!(offers.len(), 2);
    let now = world.now;
    let machine = &mut world.hosts[1].machine;
    let refused = machine.accept(Instant(now), offers[0].0, 7, 300_000);
    assert_eq!(refused, Err(PostError::Unknown));
    let (offer, message) = offers[1];
    world.accept(1, offer, message, message.length_bytes);
    world.run_until_quiet(20 * MS);
    assert_eq!(world.hosts[0].sent, [2]);
}
