// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What it took datagrams to leave their host: copies, tags and system calls, which are no delay of the network
//! (srd-protocol 10.4). Told by the driver, asked by receive for every echo.

use crate::machine::Machine;

/// Batches remembered (chosen: more than are under way in a window of the largest batches).
const REMEMBERED: usize = 128;

#[derive(Clone, Copy, Debug, Default)]
struct Departure {
    sent_ns: u64,
    lag_ns: u64,
}

/// The last departures, in the order of their times.
#[derive(Debug)]
pub(crate) struct Departures {
    ring: [Departure; REMEMBERED],
    next: usize,
    /// The packet given out last ends its batch.
    pub(crate) batch_has_ended: bool,
}

impl Default for Departures {
    fn default() -> Self {
        Self {
            ring: [Departure::default(); REMEMBERED],
            next: 0,
            batch_has_ended: false,
        }
    }
}

impl Departures {
    fn add(&mut self, sent_ns: u64, left_ns: u64) {
        self.ring[self.next] = Departure {
            sent_ns,
            lag_ns: left_ns.saturating_sub(sent_ns),
        };
        self.next = (self.next + 1) % REMEMBERED;
    }

    /// How long what was given out then took to leave; 0 if that is not known, or no longer. Fast path.
    #[inline]
    pub(crate) fn lag_ns(&self, sent_ns: u64) -> u64 {
        let newest = &self.ring[(self.next + REMEMBERED - 1) % REMEMBERED];
        if newest.sent_ns == sent_ns {
            return newest.lag_ns;
        }
        let (newer, older) = self.ring.split_at(self.next);
        // Both halves rise with time; an echo mostly names one of the newest.
        let half = if newer.first().is_some_and(|first| first.sent_ns <= sent_ns) {
            newer
        } else {
            older
        };
        let place = half.binary_search_by_key(&sent_ns, |departure| departure.sent_ns);
        place.map_or(0, |place| half[place].lag_ns)
    }
}

impl Machine {
    /// All that `poll_transmit` gave out at `sent_ns` has left by `left_ns`. A driver that can tell says so: what a host takes
    /// to copy and to hand on is no queue, and must not slow the sender down. Fast path.
    #[inline]
    pub fn handle_departed(&mut self, sent_ns: u64, left_ns: u64) {
        self.shared.departures.add(sent_ns, left_ns);
    }

    /// Whether the datagram given out last is the last of its batch. What `poll_transmit` gives out next takes another path, so
    /// what is here should leave before: a datagram's time to travel counts from when it was given out.
    #[inline]
    pub fn batch_has_ended(&self) -> bool {
        self.shared.departures.batch_has_ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_departures_are_remembered_and_older_ones_are_not() {
        let mut departures = Departures::default();
        let count = 3 * REMEMBERED as u64 / 2;
        for step in 1..=count {
            departures.add(100 * step, 101 * step);
            assert_eq!(departures.lag_ns(100 * step), step);
        }
        for step in 1..=count {
            let kept = step > count - REMEMBERED as u64;
            let expected = if kept { step } else { 0 };
            assert_eq!(departures.lag_ns(100 * step), expected, "{step}");
            assert_eq!(departures.lag_ns(100 * step + 1), 0);
        }
    }
}
