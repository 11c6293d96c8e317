// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Spreads a window over its round trip (srd-protocol 10.8). Called by flow.

use crate::config::BATCH_BYTES;
use weft_wire::time::{Instant, Nanos};

/// What a pace is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub(crate) cwnd_bytes: u64,
    pub(crate) srtt_ns: Nanos,
    /// What keeps to one path.
    pub(crate) batch_bytes: u64,
}

/// When the next packet may leave.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pacing {
    due_ns: Instant,
}

impl Pacing {
    /// When sending may go on; at most now if it may at once.
    pub(crate) fn due_ns(&self) -> Instant {
        self.due_ns
    }

    /// A packet left. 1.25 windows per srtt; up to 32 KiB, or one batch, may be caught up after a
    /// pause. What leaves past the pace, as time-outs do, delays what follows by at most a round
    /// trip.
    pub(crate) fn on_sent(&mut self, now_ns: Instant, bytes: u64, pace: Pace) {
        let Pace {
            cwnd_bytes,
            srtt_ns,
            batch_bytes,
        } = pace;
        if srtt_ns == Nanos::ZERO {
            return;
        }
        let spread = |bytes: u64| {
            // No overflow: srtt is at most 4 s (loss.rs), bytes below 2^20.
            bytes * 4 * srtt_ns / (5 * cwnd_bytes.max(1))
        };
        // What is larger than the slack is a packet alone, and what ends its message need not wait
        // for it. A batch leaves by one call, at one time: the pace must not take it apart.
        let slack_ns = spread(
            bytes
                .max(2 * u64::from(BATCH_BYTES))
                .max(batch_bytes + bytes),
        );
        let due_ns = self.due_ns.max(now_ns.saturating_sub(slack_ns)) + spread(bytes);
        self.due_ns = due_ns.min(now_ns + srtt_ns);
    }

    /// The round trip is known anew: the pace of an earlier one holds nothing back for longer.
    #[inline]
    pub(crate) fn on_round_trip(&mut self, now_ns: Instant, srtt_ns: Nanos) {
        self.due_ns = self.due_ns.min(now_ns + srtt_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(cwnd_bytes: u64, srtt_ns: Nanos, batch_bytes: u64) -> Pace {
        Pace {
            cwnd_bytes,
            srtt_ns,
            batch_bytes,
        }
    }

    #[test]
    fn a_window_takes_four_fifths_of_a_round_trip() {
        let mut pacing = Pacing::default();
        let start = 1_000_000_000;
        for _ in 0..1000 {
            pacing.on_sent(
                Instant(start),
                1000,
                pace(1_000_000, Nanos(100_000), 16_000),
            );
        }
        let spread = (pacing.due_ns() - Instant(start)).0;
        assert!((75_000..=80_000).contains(&spread), "{spread}");
    }

    #[test]
    fn without_a_round_trip_nothing_is_paced() {
        let mut pacing = Pacing::default();
        pacing.on_sent(Instant(5), 1_000_000, pace(1, Nanos::ZERO, 0));
        assert_eq!(pacing.due_ns(), Instant::START);
    }

    /// Time-outs of a remote that is away leave at their own pace.
    #[test]
    fn what_leaves_past_the_pace_holds_back_nothing_for_longer_than_a_round_trip() {
        let (srtt_ns, start) = (600_000_000, 1_000_000_000);
        let mut pacing = Pacing::default();
        for timeout in 0..45 {
            let now_ns = start + timeout * 100_000_000;
            pacing.on_sent(Instant(now_ns), 1_472, pace(2_944, Nanos(srtt_ns), 1_472));
            assert!(pacing.due_ns() <= Instant(now_ns + srtt_ns), "{timeout}");
        }
        pacing.on_round_trip(pacing.due_ns() - Nanos(srtt_ns), Nanos(200_000));
        assert!(pacing.due_ns() < Instant(start + 5_000_000_000));
    }

    /// Else a stream of jumbo frames goes out, and looks for acknowledgements, every four packets.
    #[test]
    fn a_batch_is_never_taken_apart() {
        let mut pacing = Pacing::default();
        let (start, packet) = (1_000_000_000, 8_972);
        for batch in 0..10 {
            let now_ns = start + 1_000 * batch;
            for _ in 0..7 {
                assert!(pacing.due_ns() <= Instant(now_ns));
                pacing.on_sent(
                    Instant(now_ns),
                    packet,
                    pace(2_000_000, Nanos(12_000), 7 * packet),
                );
            }
        }
    }
}
