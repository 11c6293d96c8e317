// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Losses of packets behind which nothing leaves, where the remote holds acknowledgements back
//! (srd-protocol 8).

use std::cell::Cell;
use std::rc::Rc;

use crate::asking::with_packets;
use crate::oversubscribed::hold_back;
use crate::pair::{MS, US, World};

/// A lost packet that asked is found by the tail probe.
const ASKED_NS: u64 = 150 * US;

/// Swallows one packet of the first host: the one that leaves so many packets from now.
fn losing(world: &mut World) -> Rc<Cell<Option<u64>>> {
    let ahead = Rc::new(Cell::new(None));
    let left = Rc::clone(&ahead);
    world.swallow = Box::new(move |from, _, _, _| {
        if from != 0 {
            return false;
        }
        let now = left.get();
        left.set(now.and_then(|count: u64| count.checked_sub(1)));
        now == Some(0)
    });
    ahead
}

/// Messages of this length in turn, with pauses. Of every 20th one the packet at this place is
/// lost. Answers how long each of these took, and whether a packet was lost at all.
fn pauses(world: &mut World, length: usize, place: u64) -> Vec<u64> {
    let ahead = losing(world);
    let mut pauses = Vec::new();
    for token in 1000..1200 {
        let is_struck = token % 20 == 0;
        let (start, count) = (world.now, world.hosts[1].got.len());
        // The first message may be one long packet.
        let place = if token == 1000 { 0 } else { place };
        ahead.set(is_struck.then_some(place));
        world.post(0, 1, token, length);
        let whole =
            |world: &World| world.hosts[1].got.len() > count && world.hosts[1].landings.is_empty();
        while !whole(world) {
            world.run_for(10 * US);
        }
        let is_lost = is_struck && ahead.take().is_none();
        if is_lost {
            pauses.push(world.now - start);
        }
        world.run_for(2 * MS);
        world.post(1, 0, token, length);
        world.run_for(MS);
    }
    pauses
}

/// All but the first loss, of which nothing could warn.
#[test]
fn a_lost_packet_with_nothing_behind_it_costs_a_few_round_trips_wherever_it_was() {
    for long_packets in [true, false] {
        for length in [500, 2 << 10, 3 << 10, 4 << 10, 6 << 10, 8 << 10] {
            for place in 0..7 {
                let mut world = with_packets(long_packets);
                hold_back(&mut world);
                let pauses = pauses(&mut world, length, place);
                println!("{length} bytes, packet {place}, {long_packets}: {pauses:?}");
                assert!(!pauses.is_empty());
                for pause_ns in pauses.iter().skip(1) {
                    assert!(*pause_ns < ASKED_NS, "{length}, packet {place}: {pauses:?}");
                }
            }
        }
    }
}
