// SPDX-License-Identifier: Apache-2.0 OR MIT
//! With a job key: what somebody on the path, who has no key but everything that was ever sent,
//! cannot bring about.

use weft_srd::random::Random;
use weft_srd::{Config, Failure, Instant, Origin};
use weft_wire::{Body, Packet};

use crate::links::ip;
use crate::pair::{MS, Recorded, SECOND, US, Weather, World, config, seeds};

fn keyed() -> Config {
    Config {
        fresh_contact: true,
        ..config()
    }
}

fn world(hosts: usize, seed: u64) -> World {
    let mut world = World::with(hosts, seed, keyed());
    world.recorded = Some(Vec::new());
    world
}

/// Plays recorded datagrams back to a host, from where they came or from elsewhere, and lets the
/// machines settle.
fn play(world: &mut World, to: usize, recorded: &[Recorded], from: Option<std::net::SocketAddr>) {
    for one in recorded {
        let origin = Origin::from(from.unwrap_or(one.from));
        world.deliver(to, origin, &one.bytes);
        world.run_for(US);
        for host in &world.hosts {
            host.machine.inspect().check_invariants();
        }
    }
}

fn recorded(world: &World) -> Vec<Recorded> {
    world.recorded.clone().unwrap()
}

fn got_counts(world: &World) -> Vec<usize> {
    world.hosts.iter().map(|host| host.got.len()).collect()
}

#[test]
fn first_contact_takes_one_round_trip_more_and_nothing_is_lost() {
    for seed in seeds(0..20) {
        let mut world = world(2, seed);
        world.weather.loss_percent = if seed % 2 == 0 { 0 } else { 30 };
        for token in 0..20 {
            let length = [10, 300, 5_000, 200_000][(token % 4) as usize];
            world.post(0, 1, token, length);
            world.post(1, 0, token, length);
        }
        let took = world.run_until_quiet(5 * SECOND);
        if seed % 2 == 0 {
            assert!(took < 2 * MS, "{} us", took / US);
            assert_eq!(
                world.hosts[0].machine.inspect().statistics().greeted_count,
                1
            );
        }
        let expected: Vec<(u64, usize)> = (0..20)
            .map(|token| (token, [10, 300, 5_000, 200_000][(token % 4) as usize]))
            .collect();
        let (at_first, at_second) = (world.remote(0, 1), world.remote(1, 0));
        world.assert_got(0, at_first, &expected);
        world.assert_got(1, at_second, &expected);
    }
}

/// Only a remote that we do not know yet gets one packet at a time (srd-protocol 14.6).
#[test]
fn who_is_contacted_first_streams_as_fast_as_who_contacts() {
    for seed in seeds(0..8) {
        let mut world = world(2, seed);
        world.post(0, 1, 1, 100);
        world.run_until_quiet(SECOND);
        world.post(0, 1, 2, 400_000);
        let there = world.run_until_quiet(5 * SECOND);
        world.post(1, 0, 3, 400_000);
        let back = world.run_until_quiet(5 * SECOND);
        assert_eq!(
            world.hosts[1].machine.inspect().statistics().greeted_count,
            0
        );
        assert!(
            back < 2 * there,
            "{} us there, {} us back",
            there / US,
            back / US
        );
    }
}

#[test]
fn an_endpoint_may_send_to_itself() {
    for config in [config(), keyed()] {
        let mut world = World::with(1, 1, config);
        for token in 0..10 {
            world.post(0, 0, token, [100, 5_000, 100_000][(token % 3) as usize]);
        }
        world.run_until_quiet(SECOND);
        assert_eq!(world.hosts[0].got.len(), 10);
        assert_eq!(world.hosts[0].sent.len(), 10);
    }
}

#[test]
fn sixty_four_strangers_at_once_are_all_taken() {
    let mut world = world(65, 1);
    for sender in 1..65 {
        world.post(sender, 0, sender as u64, 100);
        world.post(0, sender, sender as u64, 100);
    }
    let took = world.run_until_quiet(SECOND);
    assert_eq!(world.hosts[0].got.len(), 64);
    assert!(took < 20 * MS, "{} us", took / US);
}

#[test]
fn nothing_that_is_played_back_is_delivered_again_or_fails_anything() {
    for seed in seeds(0..8) {
        let mut world = world(3, seed);
        world.weather = Weather::STORM;
        for token in 0..12 {
            let length = [10, 300, 5_000, 150_000][(token % 4) as usize];
            world.post(0, 1, token, length);
            world.post(1, 0, token, length);
        }
        world.run_until_quiet(5 * SECOND);
        let mut tape = recorded(&world);
        let before = got_counts(&world);
        Random::new(seed).shuffle(&mut tape);
        tape.truncate(400);
        world.weather = Weather::FAIR;
        // To whom it was meant for, thrown back at its sender, and to a member of the job who never
        // heard of either.
        for to in [0, 1, 2] {
            play(&mut world, to, &tape, None);
        }
        assert_eq!(got_counts(&world), before, "seed {seed}");
        for host in &world.hosts {
            assert!(host.lost.is_empty() && host.failed.is_empty());
        }
        world.post(0, 1, 100, 100);
        world.run_until_quiet(SECOND);
        assert_eq!(world.hosts[1].got.len(), before[1] + 1);
    }
}

#[test]
fn a_restart_is_believed_of_who_lives_and_of_nobody_before() {
    for seed in seeds(0..4) {
        let mut world = world(2, seed);
        world.post(0, 1, 0, 100);
        world.post(1, 0, 0, 100);
        world.run_until_quiet(SECOND);
        for life in 1..5u64 {
            world.replace(1, 1_000_000 + life);
            // In turn the new process and the old one speaks first.
            let (from, to) = if life % 2 == 0 { (0, 1) } else { (1, 0) };
            world.post(from, to, life, 100);
            world.run_for(100 * MS);
            world.post(0, 1, 10 + life, 100);
            world.post(1, 0, 10 + life, 100);
            world.run_until_quiet(SECOND);
        }
        assert_eq!(world.hosts[0].lost.len(), 4, "four lives have ended");
        let tape = recorded(&world);
        let before = got_counts(&world);
        // Later than any cookie holds, and at once.
        for wait in [0, 20 * SECOND] {
            world.run_for(wait);
            for to in [0, 1] {
                play(&mut world, to, &tape, None);
            }
            assert_eq!(world.hosts[0].lost.len(), 4, "seed {seed}");
            assert_eq!(got_counts(&world), before);
        }
        world.post(0, 1, 50, 100);
        world.post(1, 0, 51, 100);
        world.run_until_quiet(SECOND);
        assert_eq!(world.hosts[1].got.last().unwrap().message.tag, Some(50));
        assert_eq!(world.hosts[0].got.last().unwrap().message.tag, Some(51));
    }
}

#[test]
fn invented_addresses_leave_no_memory_and_get_no_message() {
    let mut config = keyed();
    config.memory.remote_limit = 2;
    let mut world = World::with(3, 5, config);
    world.recorded = Some(Vec::new());
    world.post(1, 0, 1, 100);
    world.run_until_quiet(SECOND);
    let tape = recorded(&world);
    for host in 10..200 {
        let forged = std::net::SocketAddr::new(ip(host), 1000);
        play(&mut world, 0, &tape, Some(forged));
    }
    assert_eq!(world.hosts[0].got.len(), 1);
    // There is room for the second remote still.
    world.post(2, 0, 2, 100);
    world.run_until_quiet(SECOND);
    assert_eq!(world.hosts[0].got.len(), 2);
}

#[test]
fn strangers_are_answered_with_less_than_they_sent_and_in_limited_number() {
    let mut world = world(2, 6);
    world.post(1, 0, 1, 0);
    world.run_for(5 * US);
    let tape = recorded(&world);
    let first = &tape[0];
    assert!(matches!(
        Packet::parse(&first.bytes).unwrap().body,
        Body::Eager(_)
    ));
    let now = world.now;
    let machine = &mut world.hosts[0].machine;
    for _ in 0..10_000 {
        machine.handle_datagram(Instant(now), first.from, &first.bytes);
    }
    let mut answers = 0;
    while let Some(answer) = machine.poll_transmit(Instant(now)) {
        assert!(answer.length_bytes() < first.bytes.len());
        answers += 1;
    }
    assert_eq!(answers, 64);
}

#[test]
fn a_remote_that_is_dead_is_found_dead_though_its_packets_are_played_back() {
    let mut world = world(2, 7);
    for token in 0..50 {
        world.post(0, 1, token, 3_000);
        world.post(1, 0, token, 3_000);
        world.run_until_quiet(SECOND);
    }
    let tape: Vec<Recorded> = recorded(&world)
        .into_iter()
        .filter(|one| one.to == 0)
        .collect();
    world.swallow = Box::new(|_, _, _, _| true);
    world.post(0, 1, 99, 100);
    for round in 0..70 {
        let at = round * 7 % (tape.len() - 5);
        play(&mut world, 0, &tape[at..at + 5], None);
        world.run_for(100 * MS);
    }
    assert_eq!(world.hosts[0].failed, [(99, Failure::Lost)]);
}

#[test]
fn an_end_told_to_one_is_not_the_end_of_another() {
    let mut world = world(3, 8);
    for other in [1, 2] {
        world.post(0, other, 1, 100);
        world.post(other, 0, 1, 100);
    }
    world.run_until_quiet(SECOND);
    // Host 0 says farewell to host 1; somebody shows that to host 2.
    let mut gone = world.hosts[0].machine.poll_transmit(Instant(world.now));
    assert_eq!(gone, None);
    let before = recorded(&world).len();
    world.hosts[0].machine.farewell(Instant(world.now));
    world.run_for(MS);
    gone = world.hosts[0].machine.poll_transmit(Instant(world.now));
    assert_eq!(gone, None);
    let tape: Vec<Recorded> = recorded(&world)[before..]
        .iter()
        .filter(|one| one.to == 1)
        .cloned()
        .collect();
    assert_eq!(tape.len(), 2);
    let mut untouched = World::with(3, 8, keyed());
    for other in [1, 2] {
        untouched.post(0, other, 1, 100);
        untouched.post(other, 0, 1, 100);
    }
    untouched.run_until_quiet(SECOND);
    play(&mut untouched, 2, &tape, None);
    assert!(untouched.hosts[2].lost.is_empty());
    play(&mut untouched, 1, &tape, None);
    assert_eq!(
        untouched.hosts[1].lost.len(),
        1,
        "whom it was told believes it"
    );
}
