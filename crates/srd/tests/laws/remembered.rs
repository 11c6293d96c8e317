// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is remembered between two messages, and what is not (srd-protocol 6.6, 10.1, 10.8): a path
//! that has carried a flight carries the next one at once, and a flow that has rested is hardly
//! slower.

use std::cell::RefCell;
use std::rc::Rc;

use weft_srd::Config;

use crate::pair::{MS, SECOND, US, World, config};

const RTT_NS: u64 = 20 * US;

/// Two hosts that have exchanged messages of this length, one by one.
fn practised(length: usize, long_packets: bool) -> World {
    let mut config = Config {
        fresh_contact: true,
        long_packets,
        ..config()
    };
    config.datagram_bytes = 1436;
    let mut world = World::with(2, 1, config);
    world.wait_known = true;
    for token in 0..40 {
        send(&mut world, token, length);
        world.run_for(MS);
    }
    world
}

/// How long a message takes until it has come.
fn send(world: &mut World, token: u64, length: usize) -> u64 {
    let (start, before) = (world.now, world.hosts[1].got.len());
    world.post(0, 1, token, length);
    while world.hosts[1].got.len() == before || !world.hosts[1].landings.is_empty() {
        world.run_for(US);
        assert!(world.now < start + SECOND, "it never comes");
    }
    world.now - start
}

#[test]
fn a_first_flight_that_its_path_has_carried_before_leaves_at_once_and_on_that_path() {
    let lengths = [16 << 10, 32 << 10, 64 << 10];
    for (length, long_packets) in lengths
        .map(|length| [(length, true), (length, false)])
        .concat()
    {
        for pause_ns in [MS, 100 * MS, 20 * SECOND] {
            let mut world = practised(length, long_packets);
            world.run_for(pause_ns);
            let left = Rc::new(RefCell::new(Vec::new()));
            let seen = left.clone();
            world.queue_ns = Box::new(move |path, now, bytes| {
                seen.borrow_mut().push((path, now, bytes));
                Some(0)
            });
            let start = world.now;
            send(&mut world, 1000, length);
            let left = left.borrow();
            let of_flight = left
                .iter()
                .filter(|one| one.1 == start && one.0 == left[0].0);
            let bytes: usize = of_flight.map(|one| one.2).sum();
            assert!(bytes >= length, "{bytes} of {length} bytes, {pause_ns} ns");
        }
    }
}

/// Windows, round trips and the health of paths are forgotten then.
#[test]
fn a_message_after_a_rest_takes_some_round_trips_longer_at_most() {
    for length in [500, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20] {
        let mut world = practised(length, true);
        let known_ns = send(&mut world, 1000, length);
        world.run_for(20 * SECOND);
        let paused_ns = send(&mut world, 1001, length);
        world.run_for(40 * SECOND);
        let rested_ns = send(&mut world, 1002, length);
        println!("{length} bytes: {known_ns}, {paused_ns}, {rested_ns} ns after 1 ms, 20 s, 40 s");
        assert!(
            rested_ns <= known_ns + 10 * RTT_NS,
            "{rested_ns} not {known_ns} ns"
        );
    }
}
