// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What it took datagrams to leave their host: copies, tags and system calls, which are no delay of
//! the network (srd-protocol 10.4). Told by the driver, asked by flow for every echo.

use weft_wire::time::{Instant, Nanos};
/// Batches remembered (chosen: more than are under way in a window of the largest batches).
const REMEMBERED: usize = 128;

#[derive(Clone, Copy, Debug, Default)]
struct SendDelay {
    sent_ns: Instant,
    delay_ns: Nanos,
}

/// The last batches, in the order of their times.
#[derive(Debug)]
pub(crate) struct SendDelays {
    ring: [SendDelay; REMEMBERED],
    next: usize,
}

impl Default for SendDelays {
    fn default() -> Self {
        Self {
            ring: [SendDelay::default(); REMEMBERED],
            next: 0,
        }
    }
}

impl SendDelays {
    /// All that was given out at `sent_ns` has left by `left_ns`.
    #[inline]
    pub(crate) fn add(&mut self, sent_ns: Instant, left_ns: Instant) {
        self.ring[self.next] = SendDelay {
            sent_ns,
            delay_ns: left_ns.saturating_since(sent_ns),
        };
        self.next = (self.next + 1) % REMEMBERED;
    }

    /// How long what was given out then took to leave; 0 if that is not known, or no longer. Fast
    /// path.
    #[inline]
    pub(crate) fn delay_ns(&self, sent_ns: Instant) -> Nanos {
        let newest = &self.ring[(self.next + REMEMBERED - 1) % REMEMBERED];
        if newest.sent_ns == sent_ns {
            return newest.delay_ns;
        }
        let (newer, older) = self.ring.split_at(self.next);
        // Both halves rise with time; an echo mostly names one of the newest.
        let half = if newer.first().is_some_and(|first| first.sent_ns <= sent_ns) {
            newer
        } else {
            older
        };
        let place = half.binary_search_by_key(&sent_ns, |one| one.sent_ns);
        place.map_or(Nanos::ZERO, |place| half[place].delay_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_send_delays_are_remembered_and_older_ones_are_not() {
        let mut delays = SendDelays::default();
        let count = 3 * REMEMBERED as u64 / 2;
        for step in 1..=count {
            delays.add(Instant(100 * step), Instant(101 * step));
            assert_eq!(delays.delay_ns(Instant(100 * step)), Nanos(step));
        }
        for step in 1..=count {
            let kept = step > count - REMEMBERED as u64;
            let expected = if kept { step } else { 0 };
            assert_eq!(
                delays.delay_ns(Instant(100 * step)),
                Nanos(expected),
                "{step}"
            );
            assert_eq!(delays.delay_ns(Instant(100 * step + 1)), Nanos::ZERO);
        }
    }
}
