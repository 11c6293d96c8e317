// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Faults of all kinds at random moments, which heal in the end: then everything arrives, once and
//! in order.

use std::cell::Cell;
use std::rc::Rc;

use crate::pair::{MS, SECOND, US, Weather, World, seeds};

const HOSTS: usize = 3;
const MESSAGES: u64 = 25;

/// Which paths between which hosts swallow everything.
type Holes = Rc<Cell<[[u64; HOSTS]; HOSTS]>>;

fn change_something(world: &mut World, holes: &Holes) {
    let host = world.random.below(HOSTS as u64) as usize;
    let other = world.random.below(HOSTS as u64) as usize;
    let mut mask = holes.get();
    match world.random.below(8) {
        0 => world.weather.loss_percent = world.random.below(20),
        1 => world.weather.jitter_ns = world.random.below(300) * US,
        2 => world.weather.double_percent = world.random.below(20),
        3 => world.weather.damage_percent = world.random.below(10),
        4 => world.weather.delay_ns = 5 * US + world.random.below(200) * US,
        5 => mask[host][other] = world.random.number() & world.random.number(),
        6 => {
            mask[host][other] = if world.random.below(2) == 0 {
                0
            } else {
                u64::MAX
            }
        }
        _ => world.hosts[host].away_until = world.now + world.random.below(30) * MS,
    }
    holes.set(mask);
}

fn heal(world: &mut World, holes: &Holes) {
    world.weather = Weather::FAIR;
    holes.set([[0; HOSTS]; HOSTS]);
    for host in &mut world.hosts {
        host.away_until = 0;
    }
}

fn lengths(world: &mut World) -> Vec<(u64, usize)> {
    let length = |world: &mut World| match world.random.below(4) {
        0 => world.random.below(50) as usize,
        1 => world.random.below(5_000) as usize,
        2 => world.random.below(66_000) as usize,
        _ => world.random.below(400_000) as usize,
    };
    (0..MESSAGES).map(|token| (token, length(world))).collect()
}

#[test]
fn whatever_fails_and_heals_everything_arrives_once_and_in_order_whatever_the_seed() {
    for seed in seeds(0..10) {
        let mut world = World::new(HOSTS, seed);
        let holes: Holes = Rc::new(Cell::new([[0; HOSTS]; HOSTS]));
        let seen = Rc::clone(&holes);
        world.swallow = Box::new(move |from, to, path, _| seen.get()[from][to] & path.bit() != 0);
        let list = lengths(&mut world);
        for (token, length) in &list {
            for from in 0..HOSTS {
                for to in (0..HOSTS).filter(|to| *to != from) {
                    world.post(from, to, *token * 10 + to as u64, *length);
                }
            }
            change_something(&mut world, &holes);
            let pause = world.random.below(8 * MS);
            world.run_for(pause);
        }
        heal(&mut world, &holes);
        let took = world.run_until_quiet(5 * SECOND);
        println!("seed {seed}: quiet {} ms after healing", took / MS);
        for at in 0..HOSTS {
            assert!(
                world.hosts[at].lost.is_empty() && world.hosts[at].failed.is_empty(),
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
            for of in (0..HOSTS).filter(|of| *of != at) {
                let from = world.remote(at, of);
                let expected: Vec<(u64, usize)> = list
                    .iter()
                    .map(|(token, length)| (token * 10 + at as u64, *length))
                    .collect();
                world.assert_got(at, from, &expected);
            }
        }
    }
}
