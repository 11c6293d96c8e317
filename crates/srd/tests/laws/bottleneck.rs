// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A link whose rate falls between two messages: what was learned in better days does no harm
//! (srd-protocol 10.1, 10.8, 12.1).

use std::cell::RefCell;
use std::rc::Rc;

use crate::pair::{MS, SECOND, US, World};

/// Bytes in a microsecond: 10 and 1 Gbit/s.
const RATE: u64 = 1250;
const LOW_RATE: u64 = RATE / 10;
/// What the link holds back before it drops. A message of 256 KiB does not fit.
const QUEUE_BYTES: u64 = 192 << 10;

/// The link of the first host, which all its paths share.
struct Link {
    rate: u64,
    free_ns: u64,
    dropped_count: u64,
}

impl Link {
    /// What a datagram waits that comes now; `None` if it is dropped.
    fn pass(&mut self, now: u64, bytes: usize) -> Option<u64> {
        let held_bytes = self.free_ns.saturating_sub(now) * self.rate / US;
        if held_bytes + bytes as u64 > QUEUE_BYTES {
            self.dropped_count += 1;
            return None;
        }
        self.free_ns = self.free_ns.max(now) + bytes as u64 * US / self.rate;
        Some(self.free_ns - now)
    }
}

struct Narrow {
    world: World,
    link: Rc<RefCell<Link>>,
    sent_count: u64,
}

impl Narrow {
    fn new(seed: u64) -> Self {
        let mut world = World::new(2, seed);
        let link = Rc::new(RefCell::new(Link {
            rate: RATE,
            free_ns: 0,
            dropped_count: 0,
        }));
        let shared = link.clone();
        world.queue_ns = Box::new(move |_, now, bytes| shared.borrow_mut().pass(now, bytes));
        Self {
            world,
            link,
            sent_count: 0,
        }
    }

    /// Sends a message and waits until it is complete, as MPI_Send does; answers for how long.
    fn send(&mut self, length: usize) -> u64 {
        let start = self.world.now;
        self.world.post(0, 1, self.sent_count, length);
        self.sent_count += 1;
        while (self.world.hosts[0].sent.len() as u64) < self.sent_count {
            assert!(self.world.now < start + SECOND, "a message hangs");
            self.world.run_for(20 * US);
        }
        self.world.now - start
    }

    fn dropped_count(&self) -> u64 {
        self.link.borrow().dropped_count
    }
}

/// What a message takes at least.
fn ideal_ns(length: usize, rate: u64) -> u64 {
    length as u64 * US / rate
}

/// Twenty messages one after the other at the full rate, then a pause, in which the rate falls to a
/// tenth.
fn rate_falls(narrow: &mut Narrow, length: usize, pause_ns: u64) {
    for _ in 0..20 {
        narrow.send(length);
    }
    narrow.world.run_for(pause_ns);
    // A window may find its limit by a loss, too.
    narrow.link.borrow_mut().dropped_count = 0;
    narrow.link.borrow_mut().rate = LOW_RATE;
    let (ideal, all) = (ideal_ns(length, LOW_RATE), length as u64 / 1_400 + 1);
    let first = narrow.send(length);
    let dropped = narrow.dropped_count();
    println!("{length} bytes: {first} of {ideal} ns, {dropped} of {all} dropped");
    assert!(first <= 2 * ideal + 2 * MS, "{first} of {ideal} ns");
    assert!(dropped <= all / 2, "{dropped} of {all} packets dropped");
    for message in 0..8 {
        let time = narrow.send(length);
        println!("message {message}: {time}");
        assert!(
            2 * time <= 3 * ideal + 2 * MS,
            "{message}: {time} of {ideal}"
        );
    }
    let again = narrow.dropped_count() - dropped;
    assert!(again <= all / 4, "{again} more were dropped");
}

#[test]
fn the_first_message_after_the_rate_fell_to_a_tenth_is_as_quick_as_the_link_and_little_is_lost() {
    for length in [64 << 10, 256 << 10, 1 << 20] {
        rate_falls(&mut Narrow::new(length as u64), length, 0);
    }
}

/// There the window is what the fast link carried in a round trip, more than the slow one can hold.
#[test]
fn a_window_of_a_long_fast_route_does_no_harm_once_the_route_is_slow() {
    for length in [64 << 10, 256 << 10, 1 << 20] {
        let mut narrow = Narrow::new(length as u64);
        narrow.world.weather.delay_ns = 150 * US;
        rate_falls(&mut narrow, length, 0);
    }
}

/// The window is remembered for 30 s (srd-protocol 6.6), and after 40 s it is forgotten.
#[test]
fn a_window_remembered_through_a_pause_does_no_harm_once_the_route_is_slow() {
    for delay_ns in [0, 150 * US] {
        for length in [64 << 10, 256 << 10, 1 << 20] {
            for pause_ns in [MS, SECOND, 29 * SECOND, 40 * SECOND] {
                let mut narrow = Narrow::new(length as u64);
                narrow.world.weather.delay_ns += delay_ns;
                rate_falls(&mut narrow, length, pause_ns);
            }
        }
    }
}
