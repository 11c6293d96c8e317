// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The base round trip: what packets take where nobody queues (srd-protocol 10.11). Called by
//! window for every round trip. Source: BBR (draft-ietf-ccwg-bbr, ProbeRTT).

use weft_wire::time::{Instant, Nanos};

/// The base round trip is the least of the last one to two of these (chosen: a longer route must
/// not count as a queue for long, nor a queue as a route).
const EPOCH_NS: Nanos = Nanos(2_000_000_000);
/// A round trip shows the base again if it is longer by at most this part of it (chosen).
const AGAIN_PART: u64 = 8;
/// The window leaves this part of itself to drain a queue of up to three base round trips, which is
/// more than the delay target lets stand (10.4).
const DRAIN_PART: u64 = 4;
/// Smoothed round trips that a drain lasts: in the first one the queue empties.
const DRAIN_ROUND_TRIPS: u64 = 2;

/// The base round trip, and how it is kept true.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BaseRtt {
    least_ns: Nanos,
    /// When the epoch began, or when the drain ends.
    epoch_ns: Instant,
    /// The least of this epoch, in nanoseconds; a round trip has 4 s at most.
    coming_ns: u32,
    is_draining: bool,
}

impl BaseRtt {
    /// Nothing is known.
    pub(crate) fn new() -> Self {
        Self {
            least_ns: Nanos::MAX,
            epoch_ns: Instant::START,
            coming_ns: u32::MAX,
            is_draining: false,
        }
    }

    /// The least of late; the most there is if there was none.
    #[inline]
    pub(crate) fn least_ns(&self) -> Nanos {
        self.least_ns
    }

    /// A round trip through the network.
    #[inline]
    pub(crate) fn on_round_trip(&mut self, rtt_ns: Nanos) {
        self.least_ns = self.least_ns.min(rtt_ns);
        self.coming_ns = self.coming_ns.min(rtt_ns.0.min(u32::MAX.into()) as u32);
    }

    /// What was learned holds for another epoch.
    pub(crate) fn keep(&mut self, now_ns: Instant) {
        if !self.is_draining {
            self.epoch_ns = now_ns;
        }
    }

    /// Whether the epoch is over or a drain under way.
    #[inline]
    pub(crate) fn is_due(&self, now_ns: Instant) -> bool {
        self.is_draining || now_ns.saturating_since(self.epoch_ns) > EPOCH_NS
    }

    /// The window for now, when [`BaseRtt::is_due`]. Our own queue may stand at the delay target
    /// for ever: if nothing was as quick as the base for a whole epoch, it is drained once, or it
    /// would become part of the base, and the target grow with it.
    pub(crate) fn drained_bytes(
        &mut self,
        now_ns: Instant,
        smoothed_ns: Nanos,
        cwnd_bytes: u64,
    ) -> u64 {
        if self.is_draining {
            if now_ns < self.epoch_ns {
                return cwnd_bytes;
            }
            return self.stop_draining(now_ns, cwnd_bytes);
        }
        let least_ns = self.least_ns;
        let seen_again = Nanos(self.coming_ns.into()) <= least_ns + least_ns / AGAIN_PART;
        if seen_again {
            self.begin_epoch(now_ns);
            return cwnd_bytes;
        }
        self.epoch_ns = now_ns + DRAIN_ROUND_TRIPS * smoothed_ns;
        self.is_draining = true;
        cwnd_bytes / DRAIN_PART
    }

    /// Something else decides about the window: what a drain took from it comes back.
    pub(crate) fn stop_draining(&mut self, now_ns: Instant, cwnd_bytes: u64) -> u64 {
        if !self.is_draining {
            return cwnd_bytes;
        }
        self.begin_epoch(now_ns);
        cwnd_bytes * DRAIN_PART
    }

    /// Whether the window is smaller for a moment.
    #[inline]
    pub(crate) fn is_draining(&self) -> bool {
        self.is_draining
    }

    fn begin_epoch(&mut self, now_ns: Instant) {
        *self = Self {
            least_ns: Nanos(self.coming_ns.into()),
            epoch_ns: now_ns,
            coming_ns: u32::MAX,
            is_draining: false,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(count: u64) -> Instant {
        Instant(count * 1_000_000_000)
    }

    /// Feeds the same round trip for 5 s; answers the windows that were set.
    fn windows(base: &mut BaseRtt, rtt_ns: u64) -> Vec<u64> {
        let mut set = Vec::new();
        for step in 0..50_000 {
            let now_ns = Instant(step * 100_000);
            base.on_round_trip(Nanos(rtt_ns));
            if base.is_due(now_ns) {
                let before = set.last().copied().unwrap_or(4000);
                set.push(base.drained_bytes(now_ns, Nanos(rtt_ns), before));
            }
        }
        set.dedup();
        set
    }

    #[test]
    fn a_base_that_is_seen_again_needs_no_drain() {
        let mut base = BaseRtt::new();
        assert_eq!(windows(&mut base, 50_000), [4000]);
        assert_eq!(base.least_ns(), Nanos(50_000));
    }

    #[test]
    fn a_queue_that_stands_for_two_seconds_is_drained_once_and_then_believed() {
        let mut base = BaseRtt::new();
        base.keep(second(0));
        base.on_round_trip(Nanos(50_000));
        assert_eq!(windows(&mut base, 170_000), [4000, 1000, 4000]);
        assert_eq!(base.least_ns(), Nanos(170_000), "a longer route, then");
    }
}
