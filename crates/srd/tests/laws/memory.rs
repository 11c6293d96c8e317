// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory per remote: under 4 KiB idle, under 64 KiB in the worst of activity, payloads apart.

use weft_srd::Config;

use crate::pair::{MS, Policy, SECOND, US, Weather, World, config};

const IDLE_BYTES: usize = 4 << 10;
const ACTIVE_BYTES: usize = 64 << 10;
/// Of a remote with which nothing but a few single messages were exchanged.
const MET_BYTES: usize = 2560;

#[test]
fn an_idle_remote_takes_less_than_4_kib_and_a_resting_one_less_than_1() {
    let mut world = World::with(
        2,
        1,
        Config {
            ecn: true,
            ..config()
        },
    );
    for token in 0..64 {
        world.post(0, 1, token, 60_000);
    }
    world.run_until_quiet(SECOND);
    let remote = world.remote(0, 1);
    world.run_for(2 * SECOND);
    for host in 0..2 {
        let idle = world.hosts[host].machine.inspect().footprint_bytes(remote);
        println!("host {host}: {idle} bytes idle");
        assert!(idle < IDLE_BYTES, "{idle} bytes idle");
    }
    world.run_for(31 * SECOND);
    for host in 0..2 {
        let rest = world.hosts[host].machine.inspect().footprint_bytes(remote);
        println!("host {host}: {rest} bytes at rest");
        assert!(rest < 1 << 10, "{rest} bytes at rest");
    }
}

#[test]
fn a_remote_just_met_takes_less_than_two_and_a_half_kib() {
    let mut world = World::new(2, 1);
    for token in 0..4 {
        world.post(0, 1, token, 100);
        world.run_until_quiet(SECOND);
    }
    let remote = world.remote(0, 1);
    for after in ["at once", "two seconds later"] {
        for host in 0..2 {
            let met = world.hosts[host].machine.inspect().footprint_bytes(remote);
            println!("host {host}: {met} bytes {after}");
            assert!(met < MET_BYTES || after == "at once", "{met} bytes {after}");
            assert!(met < IDLE_BYTES, "{met} bytes {after}");
        }
        world.run_for(2 * SECOND);
    }
}

#[test]
fn the_busiest_remote_takes_less_than_64_kib() {
    let mut config = config();
    config.pace.initial_cwnd_bytes = 4 << 20;
    let mut most = 0;
    for seed in 0..4 {
        let mut world = World::with(2, seed, config);
        world.weather = Weather::STORM;
        world.hosts[1].policy = if seed % 2 == 0 {
            Policy::Accept
        } else {
            Policy::Keep
        };
        let remote = world.remote(0, 1);
        for step in 0..300 {
            let length = [10, 3_000, 60_000, 300_000][(step % 4) as usize];
            world.try_post(0, 1, step, length, false);
            world.try_post(1, 0, step, length, false);
            world.run_for(20 * US);
            for host in 0..2 {
                most = most.max(world.hosts[host].machine.inspect().footprint_bytes(remote));
            }
        }
    }
    println!("{most} bytes at most");
    assert!(most < ACTIVE_BYTES, "{most} bytes");
}

#[test]
fn bytes_held_for_all_remotes_stay_below_the_limit_but_what_is_next_always_comes_in() {
    let mut config = config();
    config.memory.held_limit_bytes = 200_000;
    let mut world = World::with(5, 7, config);
    world.weather = Weather {
        loss_percent: 10,
        ..Weather::STORM
    };
    let list: Vec<(u64, usize)> = (0..30).map(|token| (token, 30_000)).collect();
    for sender in 1..5 {
        for (token, length) in &list {
            world.post(sender, 0, *token, *length);
        }
    }
    for _ in 0..400 {
        world.run_for(50 * US);
        // One message per remote may exceed the limit: the one that is next.
        let held = world.hosts[0].machine.inspect().held_bytes();
        assert!(held <= 200_000 + 4 * 30_000, "{held} bytes held");
    }
    world.run_until_quiet(20 * SECOND);
    for sender in 1..5 {
        let from = world.remote(0, sender);
        world.assert_got(0, from, &list);
    }
}

#[test]
fn the_table_of_remotes_is_limited() {
    let mut config = config();
    config.memory.remote_limit = 2;
    let mut world = World::with(4, 8, config);
    for sender in 1..4 {
        world.post(sender, 0, 1, 10);
    }
    world.run_for(100 * MS);
    assert_eq!(world.hosts[0].got.len(), 2);
}
