// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Time that jumps, stands still, or passes while a host does something else.

use crate::pair::{MS, SECOND, US, World, seeds};
use weft_srd::Nanos;

/// Time-outs leave past the pace. At a long round trip and a small window each of them delays what
/// follows by half of a second, but not all of them together.
#[test]
fn what_was_sent_again_to_a_silent_remote_does_not_hold_back_what_follows() {
    let mut world = World::new(2, 1);
    world.weather.delay_ns = 400 * MS;
    world.hosts[1].machine.set_penalty(127);
    for token in 0..4 {
        world.post(0, 1, token, 20_000);
    }
    world.run_until_quiet(60 * SECOND);
    world.hosts[1].machine.set_penalty(0);
    for round in 0..4 {
        world.post(0, 1, 100 + round, 1_200);
        world.hosts[1].away_until = world.now + 4_500 * MS;
        world.run_for(4_600 * MS);
    }
    world.weather.delay_ns = 10_000;
    world.post(0, 1, 200, 400_000);
    let took = world.run_until_quiet(100 * SECOND);
    assert!(took < 4 * SECOND, "{} ms", took / MS);
}

/// An answer says for at most four seconds how long it was held back.
#[test]
fn what_a_remote_was_away_for_is_no_round_trip_however_long_it_was() {
    for away_ns in [100 * MS, 3 * SECOND, 4_800 * MS] {
        let mut world = World::new(2, 2);
        world.wait_known = true;
        world.post(0, 1, 0, 400_000);
        world.run_until_quiet(100 * MS);
        for (token, away) in [(1, 0..1), (2, 1..2), (3, 0..2)] {
            world.post(0, 1, token, 3_000);
            world.run_for(5 * US);
            for host in away {
                world.hosts[host].away_until = world.now + away_ns;
            }
            world.run_for(away_ns);
            world.run_until_quiet(100 * MS);
            let remote = world.remote(0, 1);
            let condition = world.hosts[0].machine.inspect().condition(remote).unwrap();
            assert!(condition.srtt_ns < Nanos(MS), "{away_ns}, {condition:?}");
        }
    }
}

/// Messages of every form, in both directions.
const LENGTHS: [usize; 6] = [0, 100, 5_000, 60_000, 70_000, 400_000];

fn post_all(world: &mut World, list: &mut Vec<(u64, usize)>) {
    let length = LENGTHS[world.random.below(LENGTHS.len() as u64) as usize];
    let token = list.len() as u64;
    list.push((token, length));
    world.post(0, 1, token, length);
    world.post(1, 0, token, length);
}

fn assert_all_came(world: &mut World, list: &[(u64, usize)]) {
    for (at, of) in [(0, 1), (1, 0)] {
        let from = world.remote(at, of);
        world.assert_got(at, from, list);
        let host = &world.hosts[at];
        assert!(host.lost.is_empty() && host.failed.is_empty());
        assert_eq!(host.sent.len(), list.len());
        let statistics = host.machine.inspect().statistics();
        assert_eq!(
            (statistics.violation_count, statistics.dropped_count),
            (0, 0)
        );
    }
}

/// The clock of one host, or of both: a machine that is polled after so long. At first contact,
/// within messages of every form, while all is idle.
#[test]
fn a_clock_that_jumps_ahead_ends_nothing_and_stops_nothing_whatever_the_seed() {
    for seed in seeds(0..8) {
        let mut world = World::new(2, seed);
        let mut list = Vec::new();
        for _ in 0..20 {
            post_all(&mut world, &mut list);
            let pause_ns = world.random.below(100) * US;
            world.run_for(pause_ns);
            let jump_ns = [10 * SECOND, 3_600 * SECOND][world.random.below(2) as usize];
            let hosts = [0..1, 1..2, 0..2][world.random.below(3) as usize].clone();
            for host in hosts {
                world.hosts[host].clock.ahead_ns += jump_ns;
            }
            // Long enough to hear of each other: two jumps with nothing between look like a death.
            world.run_for(2 * MS);
        }
        // A jump under way is taken for a round trip, which passes.
        world.run_until_quiet(10 * SECOND);
        assert_all_came(&mut world, &list);
    }
}

/// While it stands still nothing is due by it; what arrives is taken and answered all the same.
#[test]
fn a_clock_that_stands_still_loses_nothing_and_holds_up_nothing_once_it_goes_on() {
    for seed in seeds(0..8) {
        let mut world = World::new(2, seed);
        let mut list = Vec::new();
        for round in 0..12 {
            let hosts = [0..1, 1..2, 0..2][round % 3].clone();
            let now = world.now;
            for host in hosts.clone() {
                world.hosts[host].clock.stop(now);
            }
            for _ in 0..4 {
                post_all(&mut world, &mut list);
                let pause_ns = world.random.below(200) * US;
                world.run_for(pause_ns);
            }
            world.run_for(100 * MS);
            for host in hosts {
                world.hosts[host].clock.stopped_at = None;
            }
            let took = world.run_until_quiet(SECOND);
            assert!(
                took < 110 * MS,
                "seed {seed}, round {round}: {} ms",
                took / MS
            );
        }
        assert_all_came(&mut world, &list);
    }
}
