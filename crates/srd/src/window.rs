// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The congestion window (cwnd): how many bytes may be in flight over all paths (srd-protocol 10.4
//! to 10.7).
//!
//! Called by loss for every acknowledgement. Source: NSCC of the UEC specification 1.0 (3.6.13),
//! delay only.

use crate::config::{BATCH_BYTES, Pace};
use weft_wire::time::{Instant, Nanos};

/// The base round trip is the least of the last one to two of these (chosen: a longer route must
/// not count as a queue for long, nor a queue as a route).
const BASE_EPOCH_NS: Nanos = Nanos(2_000_000_000);
/// Quick adaptation asks whether less than this part of the window was delivered (NSCC: 2^-3).
const QUICK_PART: u64 = 8;

/// The delay target in halves of the base round trip (chosen by simulation of permutations, whose
/// paths have queues of about one round trip on average while all links are used: NSCC's one round
/// trip leaves them idle).
const TARGET_HALVES: u64 = 5;

/// Delay alone leaves a window of so many packets (measured: jumbo frames on four paths of 500
/// Mbit/s take 144 us each, several base round trips; what is in service on each path and one
/// behind it is no queue).
const DELAY_PACKETS: u64 = 12;

/// A loss is heavy when it is more than this part, a fourth, of what was in flight (chosen by
/// simulation of incasts).
const HEAVY_LOSS: u64 = 4;

/// What one acknowledgement says about the network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) now_ns: Instant,
    /// Round trip without the receiver's hold, if the echo was new.
    pub(crate) rtt_ns: Option<Nanos>,
    /// What the echoed packet took to leave: of its round trip, but no delay.
    pub(crate) send_delay_ns: Nanos,
    /// Bytes acknowledged for the first time.
    pub(crate) acked_bytes: u64,
    /// Bytes that were under way before them.
    pub(crate) in_flight_bytes: u64,
    /// The most that was under way in the last round trip.
    pub(crate) tried_bytes: u64,
}

/// What the window made of a round trip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// No queue to speak of.
    BelowTarget,
    /// This path is slow while the paths together are not (srd-protocol 10.7).
    SlowMinority,
    /// The network as a whole is slow.
    Slow,
}

/// The window of one flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    cwnd_bytes: u64,
    limit_bytes: u64,
    packet_bytes: u64,
    target_floor_ns: Nanos,
    base: Base,
    average_delay_ns: Nanos,
    decreased_ns: Instant,
    penalized_ns: Instant,
    quick: Quick,
    /// Bytes acknowledged in a row without any delay.
    calm_bytes: u64,
    taken: Taken,
}

/// What was taken from the window for losses that may turn out to be none.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    bytes: u64,
    /// Packets found lost, for which nothing has been given back.
    packet_count: u64,
}

#[derive(Clone, Copy, Debug)]
struct Base {
    rtt_ns: Nanos,
    coming_rtt_ns: Nanos,
    epoch_ns: Instant,
}

#[derive(Clone, Copy, Debug, Default)]
struct Quick {
    end_ns: Instant,
    delivered_bytes: u64,
    wanted: bool,
    /// Something was late by several targets.
    late: bool,
    /// The least delay since the window was last judged, and in the time before that.
    least_ns: Nanos,
    least_before_ns: Nanos,
    /// Bytes that were in flight when the window was adapted: what they tell is old news.
    stale_bytes: u64,
}

impl Window {
    pub(crate) fn new(pace: &Pace, packet_bytes: u64) -> Self {
        Self {
            cwnd_bytes: pace.initial_cwnd_bytes,
            limit_bytes: pace.cwnd_limit_bytes,
            packet_bytes,
            target_floor_ns: pace.target_floor_ns,
            base: Base {
                rtt_ns: Nanos::MAX,
                coming_rtt_ns: Nanos::MAX,
                epoch_ns: Instant::START,
            },
            average_delay_ns: Nanos::ZERO,
            decreased_ns: Instant::START,
            penalized_ns: Instant::START,
            quick: Quick {
                least_ns: Nanos::MAX,
                least_before_ns: Nanos::MAX,
                ..Quick::default()
            },
            calm_bytes: 0,
            taken: Taken::default(),
        }
    }

    /// From now on packets have up to so many bytes.
    pub(crate) fn set_packet_bytes(&mut self, bytes: u16) {
        self.packet_bytes = u64::from(bytes);
        self.shrink(0);
    }

    /// How many bytes may be in flight.
    #[inline]
    pub(crate) fn cwnd_bytes(&self) -> u64 {
        self.cwnd_bytes
    }

    fn target_ns(&self) -> Nanos {
        if self.base.rtt_ns == Nanos::MAX {
            self.target_floor_ns
        } else {
            (self.base.rtt_ns * TARGET_HALVES / 2).max(self.target_floor_ns)
        }
    }

    /// Up to here a round trip shows no queue to speak of.
    #[inline]
    pub(crate) fn calm_rtt_ns(&self) -> Nanos {
        self.base.rtt_ns.saturating_add(self.target_ns())
    }

    /// Whether the paths together show queues; then a loss is a full queue and no broken path.
    pub(crate) fn is_loaded(&self) -> bool {
        self.average_delay_ns > self.target_ns() / 2
    }

    fn learn_base(&mut self, rtt_ns: Nanos, now_ns: Instant) {
        if now_ns.saturating_since(self.base.epoch_ns) > BASE_EPOCH_NS {
            self.base = Base {
                rtt_ns: self.base.coming_rtt_ns,
                coming_rtt_ns: Nanos::MAX,
                epoch_ns: now_ns,
            };
        }
        self.base.rtt_ns = self.base.rtt_ns.min(rtt_ns);
        self.base.coming_rtt_ns = self.base.coming_rtt_ns.min(rtt_ns);
    }

    /// Moves the window. Answers what the round trip says about its path.
    pub(crate) fn on_acknowledged(&mut self, sample: &Sample) -> Verdict {
        self.quick.delivered_bytes += sample.acked_bytes;
        self.quick.stale_bytes = self.quick.stale_bytes.saturating_sub(sample.acked_bytes);
        let Some(rtt_ns) = sample.rtt_ns else {
            return Verdict::BelowTarget;
        };
        self.learn_base(rtt_ns, sample.now_ns);
        let delay_ns = rtt_ns - self.base.rtt_ns;
        let target_ns = self.target_ns();
        self.average_delay_ns = self.average_delay_ns - self.average_delay_ns / 8 + delay_ns / 8;
        self.quick.late |= delay_ns > 4 * target_ns;
        self.quick.least_ns = self.quick.least_ns.min(delay_ns);
        if self.adapt_quickly(sample) || self.quick.stale_bytes > 0 {
            return Verdict::Slow;
        }
        if delay_ns < target_ns {
            self.increase(sample, delay_ns, target_ns);
            return Verdict::BelowTarget;
        }
        self.calm_bytes = 0;
        if self.average_delay_ns < target_ns || self.some_path_is_free() {
            return Verdict::SlowMinority;
        }
        self.decrease(sample);
        Verdict::Slow
    }

    /// Whether a path showed no queue to speak of lately. Then a queue elsewhere is for the choice
    /// of paths to mend: a smaller window would leave the free ones idle as well.
    fn some_path_is_free(&self) -> bool {
        self.quick.least_ns.min(self.quick.least_before_ns) < self.target_ns()
    }

    /// Growth in proportion to the distance from the target; a quarter of what is acknowledged
    /// while there is no queue.
    fn increase(&mut self, sample: &Sample, delay_ns: Nanos, target_ns: Nanos) {
        // A window that is not used says nothing about what the network would carry.
        if sample.tried_bytes * 2 < self.cwnd_bytes {
            return;
        }
        let per_round_trip = (4 * self.packet_bytes).max(self.cwnd_bytes / 8);
        let share = per_round_trip * sample.acked_bytes / self.cwnd_bytes.max(1);
        let mut gain = share * (target_ns - delay_ns) / target_ns;
        if delay_ns < target_ns / 8 {
            self.calm_bytes += sample.acked_bytes;
            if self.calm_bytes > self.cwnd_bytes {
                gain = gain.max(sample.acked_bytes / 4);
            }
        } else {
            self.calm_bytes = 0;
        }
        self.cwnd_bytes = (self.cwnd_bytes + gain).min(self.limit_bytes);
    }

    /// Delay alone may be a slow host, or a packet that is long for its link; below this only
    /// losses go.
    fn delay_floor_bytes(&self) -> u64 {
        u64::from(BATCH_BYTES).max(DELAY_PACKETS * self.packet_bytes)
    }

    fn decrease(&mut self, sample: &Sample) {
        let since_ns = sample.now_ns.saturating_since(self.decreased_ns);
        if since_ns < self.base.rtt_ns + sample.send_delay_ns {
            return;
        }
        self.decreased_ns = sample.now_ns;
        let (average, target) = (self.average_delay_ns, self.target_ns());
        // gamma 0.8; at most one half.
        let cut = self.cwnd_bytes * 4 / 5 * (average - target) / average.max(Nanos(1));
        let room = self.cwnd_bytes.saturating_sub(self.delay_floor_bytes());
        self.shrink(cut.min(self.cwnd_bytes / 2).min(room));
    }

    /// srd-protocol 10.5. Answers whether the window was set anew.
    fn adapt_quickly(&mut self, sample: &Sample) -> bool {
        if sample.now_ns < self.quick.end_ns {
            return false;
        }
        let begun = self.quick.end_ns != Instant::START;
        let quick = self.quick;
        self.quick.end_ns =
            sample.now_ns + self.base.rtt_ns + sample.send_delay_ns + self.target_ns();
        let all_late = quick.late && quick.least_ns > self.target_ns();
        self.quick.delivered_bytes = 0;
        self.quick.wanted = false;
        self.quick.late = false;
        self.quick.least_before_ns = quick.least_ns;
        self.quick.least_ns = Nanos::MAX;
        let least = self.cwnd_bytes.max(self.limit_bytes / 2) / QUICK_PART;
        if !begun || !(quick.wanted || all_late) || quick.delivered_bytes > least {
            return false;
        }
        let before_bytes = self.cwnd_bytes;
        self.cwnd_bytes = quick.delivered_bytes.max(2 * self.packet_bytes);
        if self.taken.packet_count > 0 {
            self.taken.bytes += before_bytes.saturating_sub(self.cwnd_bytes);
        }
        self.quick.stale_bytes = sample.in_flight_bytes;
        true
    }

    /// Of the bytes in flight so many, in so many packets, were found lost (srd-protocol 10.9). If
    /// they are a large part, a window that is larger than what was tried would let all of them
    /// leave at once again, together with everybody else's.
    pub(crate) fn on_lost(&mut self, bytes: u64, packet_count: u64, in_flight_bytes: u64) {
        self.quick.wanted = true;
        self.calm_bytes = 0;
        self.taken.packet_count += packet_count;
        if self.quick.stale_bytes == 0 {
            let before_bytes = self.cwnd_bytes;
            if bytes * HEAVY_LOSS > in_flight_bytes {
                self.cwnd_bytes = self.cwnd_bytes.min(in_flight_bytes);
            }
            self.shrink(bytes.min(self.cwnd_bytes));
            self.taken.bytes += before_bytes - self.cwnd_bytes;
        }
    }

    /// So many packets that were taken for lost were not: their share of what was taken is given
    /// back (srd-protocol 10.9), and when none was lost the window is as before.
    pub(crate) fn on_false_loss(&mut self, count: u64) {
        let Taken {
            bytes,
            packet_count,
        } = self.taken;
        if packet_count == 0 {
            return;
        }
        let count = count.min(packet_count);
        let back_bytes = bytes * count / packet_count;
        self.taken = Taken {
            bytes: bytes - back_bytes,
            packet_count: packet_count - count,
        };
        self.cwnd_bytes = (self.cwnd_bytes + back_bytes).min(self.limit_bytes);
        if self.taken.packet_count == 0 {
            self.quick.wanted = false;
            self.quick.stale_bytes = 0;
        }
    }

    /// The losses of late were losses.
    pub(crate) fn forget_losses(&mut self) {
        self.taken = Taken::default();
    }

    /// srd-protocol 10.6.
    pub(crate) fn on_penalty(&mut self, penalty: u8, now_ns: Instant, srtt_ns: Nanos) {
        if penalty == 0 || now_ns.saturating_since(self.penalized_ns) < srtt_ns {
            return;
        }
        self.penalized_ns = now_ns;
        self.shrink(self.cwnd_bytes * u64::from(penalty) / 128);
    }

    fn shrink(&mut self, bytes: u64) {
        self.cwnd_bytes = self
            .cwnd_bytes
            .saturating_sub(bytes)
            .max(2 * self.packet_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    const PACKET: u64 = 1400;

    fn window() -> Window {
        let mut pace = Config::default().pace;
        pace.target_floor_ns = Nanos(5_000);
        Window::new(&pace, PACKET)
    }

    fn feed(window: &mut Window, now_ns: Instant, rtt_ns: Nanos, acked_bytes: u64) -> Verdict {
        window.on_acknowledged(&Sample {
            now_ns,
            rtt_ns: Some(rtt_ns),
            send_delay_ns: Nanos::ZERO,
            acked_bytes,
            in_flight_bytes: window.cwnd_bytes(),
            tried_bytes: window.cwnd_bytes(),
        })
    }

    #[test]
    fn an_empty_network_lets_the_window_grow_and_a_full_one_makes_it_shrink() {
        let mut window = window();
        let start = window.cwnd_bytes();
        let mut now_ns = 0;
        for _ in 0..200 {
            now_ns += 1_000;
            assert_eq!(
                feed(&mut window, Instant(now_ns), Nanos(10_000), 8 * PACKET),
                Verdict::BelowTarget
            );
        }
        let grown = window.cwnd_bytes();
        assert!(grown > 2 * start, "{start} -> {grown}");
        for _ in 0..200 {
            now_ns += 1_000;
            feed(&mut window, Instant(now_ns), Nanos(40_000), 8 * PACKET);
        }
        assert!(
            window.cwnd_bytes() < grown / 4,
            "{grown} -> {}",
            window.cwnd_bytes()
        );
    }

    #[test]
    fn one_slow_path_among_fast_ones_leaves_the_window_alone() {
        let mut window = window();
        for step in 0..50 {
            feed(&mut window, Instant(1_000 * step), Nanos(10_000), PACKET);
        }
        let before = window.cwnd_bytes();
        assert_eq!(
            feed(&mut window, Instant(51_000), Nanos(35_000), PACKET),
            Verdict::SlowMinority
        );
        assert_eq!(window.cwnd_bytes(), before);
    }

    /// Four links of which one is empty: a smaller window would leave that one idle.
    #[test]
    fn long_queues_on_most_paths_leave_the_window_alone_while_one_path_is_free() {
        let mut window = window();
        for step in 0..50 {
            feed(&mut window, Instant(1_000 * step), Nanos(10_000), PACKET);
        }
        let before = window.cwnd_bytes();
        for step in 50..1_000 {
            let rtt_ns = if step % 8 == 0 { 12_000 } else { 500_000 };
            feed(&mut window, Instant(1_000 * step), Nanos(rtt_ns), PACKET);
        }
        assert!(
            window.cwnd_bytes() >= before,
            "{before} -> {}",
            window.cwnd_bytes()
        );
        for step in 1_000..2_000 {
            feed(&mut window, Instant(1_000 * step), Nanos(500_000), PACKET);
        }
        assert!(window.cwnd_bytes() < before / 2, "no path is free any more");
    }

    #[test]
    fn after_heavy_loss_the_window_is_what_was_delivered() {
        let mut window = window();
        feed(&mut window, Instant::START, Nanos(10_000), PACKET);
        feed(&mut window, Instant(100_000), Nanos(10_000), PACKET);
        window.on_lost(PACKET, 1, 128 << 10);
        feed(&mut window, Instant(110_000), Nanos(60_000), 2 * PACKET);
        feed(&mut window, Instant(140_000), Nanos(60_000), PACKET);
        assert_eq!(window.cwnd_bytes(), 3 * PACKET);
    }

    #[test]
    fn what_was_taken_for_losses_comes_back_as_they_prove_to_be_none() {
        let mut window = window();
        feed(&mut window, Instant::START, Nanos(10_000), PACKET);
        feed(&mut window, Instant(100_000), Nanos(10_000), PACKET);
        let before = window.cwnd_bytes();
        // Half of what is in flight seems lost, and then nearly nothing is delivered for a round
        // trip.
        window.on_lost(20 * PACKET, 20, 40 * PACKET);
        feed(&mut window, Instant(110_000), Nanos(60_000), 2 * PACKET);
        feed(&mut window, Instant(140_000), Nanos(60_000), PACKET);
        let least = window.cwnd_bytes();
        assert_eq!(least, 3 * PACKET);
        window.on_false_loss(10);
        assert_eq!(window.cwnd_bytes(), least + (before - least) / 2);
        window.on_false_loss(10);
        assert_eq!(window.cwnd_bytes(), before);
        window.on_false_loss(10);
        assert_eq!(window.cwnd_bytes(), before, "nothing more than was taken");
    }

    #[test]
    fn a_window_that_is_not_used_does_not_grow() {
        let mut window = window();
        let before = window.cwnd_bytes();
        for step in 0..100 {
            window.on_acknowledged(&Sample {
                now_ns: Instant(step * 1_000),
                rtt_ns: Some(Nanos(10_000)),
                send_delay_ns: Nanos::ZERO,
                acked_bytes: PACKET,
                in_flight_bytes: PACKET,
                tried_bytes: PACKET,
            });
        }
        assert_eq!(window.cwnd_bytes(), before);
    }

    #[test]
    fn a_penalty_of_64_halves_the_window_once_per_round_trip() {
        let mut window = window();
        let before = window.cwnd_bytes();
        window.on_penalty(64, Instant(100_000), Nanos(10_000));
        window.on_penalty(64, Instant(105_000), Nanos(10_000));
        assert_eq!(window.cwnd_bytes(), before / 2);
        window.on_penalty(64, Instant(110_000), Nanos(10_000));
        assert_eq!(window.cwnd_bytes(), before / 4);
    }
}
