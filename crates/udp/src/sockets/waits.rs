// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How long datagrams have waited in sockets: that is no delay of the network (srd-protocol 10.4).
//! Asked by reader.rs for each that is read.

use weft_os::clock;

/// A wait that is longer may be none: CLOCK_REALTIME may have been set meanwhile. Chosen.
const WAITED_LONG_NS: u64 = 1_000_000_000;

/// How long datagrams have waited in sockets. Stamps are times of CLOCK_REALTIME, which somebody
/// may set and which goes on while a machine is suspended: long waits count only if it has kept its
/// distance from CLOCK_MONOTONIC.
#[derive(Debug)]
pub(crate) struct Waits {
    /// Of CLOCK_REALTIME from CLOCK_MONOTONIC, and since when it is known.
    distance_ns: u64,
    since_ns: u64,
}

impl Waits {
    /// For sockets that are opened now.
    pub(crate) fn new() -> Self {
        let since_ns = clock::monotonic_ns();
        Self {
            distance_ns: clock::realtime_ns().wrapping_sub(since_ns),
            since_ns,
        }
    }

    /// Of a datagram that is read at one time by both clocks and has this stamp; 0 if that is not
    /// known. Fast path.
    #[inline]
    pub(crate) fn of(&mut self, now_ns: u64, realtime_ns: u64, stamp_ns: u64) -> u64 {
        let waited_ns = realtime_ns.saturating_sub(stamp_ns);
        if stamp_ns == 0 {
            0
        } else if waited_ns < WAITED_LONG_NS {
            waited_ns
        } else {
            self.of_long(now_ns, realtime_ns, waited_ns)
        }
    }

    /// One process that computed, or was stopped, for a while.
    #[cold]
    fn of_long(&mut self, now_ns: u64, realtime_ns: u64, waited_ns: u64) -> u64 {
        let distance_ns = realtime_ns.wrapping_sub(now_ns);
        let moved_ns = distance_ns.wrapping_sub(self.distance_ns) as i64;
        if moved_ns.unsigned_abs() >= WAITED_LONG_NS {
            (self.distance_ns, self.since_ns) = (distance_ns, now_ns);
            return 0;
        }
        // It came before the clock was seen as it is now.
        let came_before = now_ns.saturating_sub(waited_ns) < self.since_ns;
        if came_before { 0 } else { waited_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn waits() -> Waits {
        Waits {
            distance_ns: 1_000 * SECOND,
            since_ns: SECOND,
        }
    }

    #[test]
    fn waits_of_seconds_are_known_as_long_as_nobody_sets_the_clock() {
        let mut waits = waits();
        assert_eq!(waits.of(9 * SECOND, 1_009 * SECOND, 0), 0, "no stamp");
        for seconds in [0, 1, 7] {
            let stamp_ns = (1_009 - seconds) * SECOND;
            let waited_ns = waits.of(9 * SECOND, 1_009 * SECOND, stamp_ns);
            assert_eq!(waited_ns, seconds * SECOND);
        }
    }

    /// Set forwards by an hour, or the machine was suspended for so long.
    #[test]
    fn what_came_before_the_clock_jumped_has_no_known_wait_and_what_comes_later_has() {
        let mut waits = waits();
        let jump_ns = 3_600 * SECOND;
        let (now_ns, stamp_ns) = (20 * SECOND, 1_018 * SECOND);
        for _ in 0..2 {
            assert_eq!(waits.of(now_ns, 1_020 * SECOND + jump_ns, stamp_ns), 0);
        }
        let stamp_ns = 1_021 * SECOND + jump_ns;
        let waited_ns = waits.of(26 * SECOND, 1_026 * SECOND + jump_ns, stamp_ns);
        assert_eq!(waited_ns, 5 * SECOND);
        // Back again.
        assert_eq!(waits.of(30 * SECOND, 1_030 * SECOND, stamp_ns), 0);
        let waited_ns = waits.of(40 * SECOND, 1_040 * SECOND, 1_033 * SECOND);
        assert_eq!(waited_ns, 0, "known no sooner than a long wait shows it");
        let waited_ns = waits.of(50 * SECOND, 1_050 * SECOND, 1_043 * SECOND);
        assert_eq!(waited_ns, 7 * SECOND);
    }
}
