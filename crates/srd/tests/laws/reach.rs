// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Hosts on several links: all of them carry, one that breaks is left, and nobody is believed who
//! was not heard (srd-protocol 17).

use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;

use weft_srd::{Config, PortAddresses};
use weft_wire::Path;

use crate::pair::{MS, SECOND, US, Weather, World, address, config, seeds};

/// Hosts with so many links.
fn linked(links: usize) -> Config {
    let mut config = config();
    let place = IpAddr::V4(Ipv4Addr::LOCALHOST);
    config.addresses = PortAddresses::dealt(&vec![place; links - 1]);
    config
}

/// The link of a path: ports are dealt out in turn.
fn link_of(path: Path, links: usize) -> usize {
    usize::from(path.source_port_index()) % links
}

/// Counts what each link carries from host 0, and drops everything on the broken one, if there
/// is one.
fn count(world: &mut World, links: usize) -> (Rc<[Cell<u64>; 4]>, Rc<Cell<usize>>) {
    let counts = Rc::new([const { Cell::new(0) }; 4]);
    let broken = Rc::new(Cell::new(usize::MAX));
    let (seen, at) = (counts.clone(), broken.clone());
    world.swallow = Box::new(move |from, _, path, _| {
        let link = link_of(path, links);
        if from == 0 {
            seen[link].set(seen[link].get() + 1);
        }
        at.get() == link
    });
    (counts, broken)
}

#[test]
fn every_link_carries_its_share_and_no_datagram_takes_a_way_that_is_none() {
    for (links, fresh) in [(2, false), (2, true), (3, true), (4, false)] {
        let mut config = linked(links);
        config.fresh_contact = fresh;
        let mut world = World::with(2, links as u64, config);
        let (counts, _) = count(&mut world, links);
        let list: Vec<(u64, usize)> = (0..40).map(|token| (token, 100_000)).collect();
        for (token, length) in &list {
            world.post(0, 1, *token, *length);
        }
        world.run_until_quiet(SECOND);
        let from = world.remote(1, 0);
        world.assert_got(1, from, &list);
        // `launch` drops what leaves on one link for an address on another; then this would not be
        // 0.
        assert_eq!(world.hosts[0].machine.inspect().statistics().lost_count, 0);
        assert_eq!(world.hosts[1].machine.inspect().statistics().lost_count, 0);
        let carried: Vec<u64> = counts[..links].iter().map(Cell::get).collect();
        let all: u64 = carried.iter().sum();
        println!("{links} links: {carried:?}");
        // With three links the last one has two ports of eight, and so 4 of 22 paths.
        let least = all / links as u64 / 3;
        assert!(carried.iter().all(|count| *count > least), "{carried:?}");
    }
}

#[test]
fn a_link_that_breaks_is_left_without_an_error_and_a_healed_one_is_used_again() {
    for seed in seeds(0..4) {
        let links = 2;
        let mut config = linked(links);
        config.fresh_contact = seed % 2 == 1;
        let mut world = World::with(2, seed, config);
        let (counts, broken) = count(&mut world, links);
        let victim = (seed as usize / 2) % 2;
        let mut list = Vec::new();
        for token in 0..600u64 {
            match token {
                200 => broken.set(victim),
                400 => broken.set(usize::MAX),
                _ => {}
            }
            let length = if token < 400 { 20_000 } else { 200_000 };
            list.push((token, length));
            world.post(0, 1, token, length);
            let took = world.run_until_quiet(100 * MS);
            assert!(token < 300 || took < 5 * MS, "{token}: {} us", took / US);
            if token == 400 {
                world.run_for(2 * SECOND);
                counts[victim].set(0);
            }
        }
        let from = world.remote(1, 0);
        world.assert_got(1, from, &list);
        for host in &world.hosts {
            assert!(host.lost.is_empty() && host.failed.is_empty());
        }
        assert!(counts[victim].get() > 200, "{}", counts[victim].get());
        let remote = world.remote(0, 1);
        let condition = world.hosts[0].machine.inspect().condition(remote);
        assert_eq!(condition.unwrap().good_path_count, 32, "all paths heal");
    }
}

#[test]
fn who_has_one_link_and_who_has_two_talk_over_the_common_one() {
    // The acknowledgements of the short ones may be held back (srd-protocol 7.3).
    for length in [500, 8_000, 50_000] {
        let mut world = World::with(2, 9, linked(2));
        // The second one does not lead anywhere.
        let (counts, broken) = count(&mut world, 2);
        broken.set(1);
        for token in 0..200 {
            world.post(0, 1, token, length);
            world.post(1, 0, token, length);
            world.run_until_quiet(100 * MS);
        }
        let before = counts[1].get();
        for token in 200..400 {
            world.post(0, 1, token, length);
            world.run_until_quiet(MS);
        }
        // Sixteen suspect paths are asked once a second at most.
        let more = counts[1].get() - before;
        assert!(more < 100, "{length}: {before} {counts:?}");
        assert!(world.hosts[0].lost.is_empty() && world.hosts[1].lost.is_empty());
    }
}

#[test]
fn storms_over_two_links_lose_and_double_nothing() {
    for seed in seeds(0..8) {
        let mut config = linked(2);
        config.fresh_contact = seed % 2 == 0;
        let mut world = World::with(3, seed, config);
        world.weather = Weather::STORM;
        let list: Vec<(u64, usize)> = (0..20).map(|token| (token, 9_000)).collect();
        for (from, to) in [(0, 1), (1, 0), (2, 1), (0, 2)] {
            for (token, length) in &list {
                world.post(from, to, *token, *length);
            }
        }
        world.run_until_quiet(10 * SECOND);
        for (from, to) in [(0, 1), (1, 0), (2, 1), (0, 2)] {
            let remote = world.remote(to, from);
            world.assert_got(to, remote, &list);
        }
    }
}

#[test]
fn a_remote_that_comes_back_is_reached_over_its_links_again() {
    for fresh in [false, true] {
        let mut config = linked(2);
        config.fresh_contact = fresh;
        let mut world = World::with(2, 5, config);
        let (counts, _) = count(&mut world, 2);
        world.post(0, 1, 1, 100_000);
        world.run_until_quiet(SECOND);
        world.replace(1, 0xfeed);
        // It speaks first, as a process that was started anew does.
        world.post(1, 0, 2, 100);
        world.run_for(SECOND);
        counts[1].set(0);
        for token in 3..43 {
            world.post(0, 1, token, 100_000);
        }
        world.run_until_quiet(SECOND);
        assert_eq!(world.hosts[1].got.len(), 40);
        // Long packets: 100,000 bytes are a dozen.
        assert!(counts[1].get() > 150, "{counts:?}");
    }
}

#[test]
fn a_host_refuses_at_a_further_address_only_if_it_was_heard_there() {
    let mut world = World::with(2, 6, linked(2));
    let (_, broken) = count(&mut world, 2);
    broken.set(1);
    world.post(0, 1, 1, 100_000);
    world.run_until_quiet(SECOND);
    let remote = world.remote(0, 1);
    let ports = |link: u8| {
        (0..8u16).map(move |index| SocketAddr::from(([10, 0, link, 2], address(1).port() + index)))
    };
    let known = |world: &World, link| {
        let found =
            ports(link).filter_map(|at| world.hosts[0].machine.inspect().remote_with_port(at));
        found.filter(|found| *found == remote).count()
    };
    assert_eq!((known(&world, 0), known(&world, 1)), (4, 0));
    broken.set(usize::MAX);
    for token in 2..40 {
        world.post(1, 0, token, 100_000);
        world.run_until_quiet(SECOND);
        world.run_for(100 * MS);
    }
    assert_eq!((known(&world, 0), known(&world, 1)), (4, 4));
}
