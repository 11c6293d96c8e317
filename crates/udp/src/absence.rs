// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether whoever looks into sockets was away, without a reading of the clock for each look in
//! vain: it gets the time of the next reading. For [`crate::polling`].
//!
//! An absence ends when every socket was looked into. That one of them is empty says nothing of the
//! others: in those, what came meanwhile still waits.

use weft_srd::{Instant, Nanos};

/// Whoever has not looked for longer was away. Chosen: what is then asked besides is less than a
/// hundredth of the absence.
pub(crate) const AWAY_NS: Nanos = Nanos(100_000);

/// Since when nobody has looked.
#[derive(Debug, Default)]
pub(crate) struct Absence {
    /// The last look before it, as far as it is known.
    since_ns: Instant,
    /// Looks in vain that have no time yet: into one socket, and into all.
    one_was_empty: bool,
    all_were_empty: bool,
}

impl Absence {
    /// One socket was empty. Fast path.
    #[inline]
    pub(crate) fn on_one_empty(&mut self) {
        self.one_was_empty = true;
    }

    /// All were empty. Fast path.
    #[inline]
    pub(crate) fn on_all_empty(&mut self) {
        self.all_were_empty = true;
    }

    /// The clock was read. Fast path.
    #[inline]
    pub(crate) fn on_clock(&mut self, now_ns: Instant) {
        if self.all_were_empty || self.one_was_empty && !self.is_long(now_ns) {
            self.since_ns = now_ns;
        }
        (self.one_was_empty, self.all_were_empty) = (false, false);
    }

    /// Something was found; answers whether somebody comes back by that, and so must look into all.
    /// Fast path.
    #[inline]
    pub(crate) fn ends(&mut self, now_ns: Instant) -> bool {
        // A look into all was later than the last reading of the clock.
        let is_back = !self.all_were_empty && self.is_long(now_ns);
        self.since_ns = now_ns;
        (self.one_was_empty, self.all_were_empty) = (false, false);
        is_back
    }

    #[inline]
    fn is_long(&self, now_ns: Instant) -> bool {
        now_ns > self.since_ns + AWAY_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THEN_NS: Instant = Instant(1_000_000_000);

    /// Somebody who looked into all sockets then.
    fn here() -> Absence {
        let mut absence = Absence::default();
        absence.on_all_empty();
        absence.on_clock(THEN_NS);
        absence
    }

    #[test]
    fn who_has_not_looked_for_longer_than_the_limit_comes_back_once() {
        for (late_ns, is_back) in [(AWAY_NS, false), (AWAY_NS + Nanos(1), true)] {
            let mut absence = here();
            // To post a message reads the clock, but looks nowhere.
            absence.on_clock(THEN_NS + late_ns);
            assert_eq!(absence.ends(THEN_NS + late_ns), is_back);
            assert!(!absence.ends(THEN_NS + late_ns + AWAY_NS));
        }
    }

    #[test]
    fn an_absence_lasts_until_all_sockets_were_looked_into() {
        let back_ns = THEN_NS + AWAY_NS + Nanos(1);
        for clock_is_read in [false, true] {
            let mut absence = here();
            absence.on_one_empty();
            if clock_is_read {
                absence.on_clock(back_ns);
            }
            assert!(absence.ends(back_ns), "the others were not asked");
            let mut absence = here();
            absence.on_all_empty();
            absence.on_one_empty();
            if clock_is_read {
                absence.on_clock(back_ns);
            }
            assert!(!absence.ends(back_ns), "they were asked before that one");
        }
    }

    #[test]
    fn who_looks_into_one_socket_in_time_is_there() {
        let mut absence = here();
        let mut now_ns = THEN_NS;
        for _ in 0..10 {
            now_ns += AWAY_NS;
            absence.on_one_empty();
            absence.on_clock(now_ns);
        }
        assert!(!absence.ends(now_ns + AWAY_NS));
    }
}
