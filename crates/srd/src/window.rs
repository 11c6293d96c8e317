// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The congestion window (cwnd): how many bytes may be in flight over all paths (srd-protocol 10.4
//! to 10.7).
//!
//! Called by loss for every acknowledgement. Source: NSCC of the UEC specification 1.0 (3.6.13),
//! delay only.

use crate::base_rtt::BaseRtt;
use crate::config::{BATCH_BYTES, Pace};
use crate::congestion_marks::Concern;
use crate::loss_undo::LossUndo;
use crate::quick_adaptation::QuickAdaptation;
use crate::rivals::{Loss, News, Rivals, Rule};
use weft_wire::time::{Instant, Nanos};

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

/// A mark takes so many tenths of its paths' part (specified: RFC 9438, 4.6, for a loss).
const MARKED_TENTHS: u64 = 3;

/// A delay of less than this part of the base round trip is no queue that overflows (chosen).
const QUEUE_PART: u64 = 8;

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

/// Packets that were found lost together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lost {
    pub(crate) now_ns: Instant,
    pub(crate) bytes: u64,
    pub(crate) packet_count: u64,
    /// Of them, bytes on paths that went on to carry others: a full queue lets something through,
    /// a broken path does not.
    pub(crate) overtaken_bytes: u64,
    /// Bytes in flight, these included.
    pub(crate) in_flight_bytes: u64,
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
#[derive(Debug)]
pub(crate) struct Window {
    cwnd_bytes: u64,
    /// At most 1 GiB, as config checks.
    limit_bytes: u32,
    packet_bytes: u64,
    target_floor_ns: Nanos,
    base: BaseRtt,
    average_delay_ns: Nanos,
    decreased_ns: Instant,
    penalized_ns: Instant,
    quick_adaptation: QuickAdaptation,
    /// Bytes acknowledged in a row without any delay.
    calm_bytes: u32,
    loss_undo: LossUndo,
    rivals: Rivals,
}

/// Delay alone may be a slow host, or a packet that is long for its link; below this only losses
/// go.
fn delay_floor_bytes(packet_bytes: u64) -> u64 {
    u64::from(BATCH_BYTES).max(DELAY_PACKETS * packet_bytes)
}

impl Window {
    pub(crate) fn new(pace: &Pace, packet_bytes: u64) -> Self {
        Self {
            cwnd_bytes: pace.initial_cwnd_bytes,
            limit_bytes: pace.cwnd_limit_bytes as u32,
            packet_bytes,
            target_floor_ns: pace.target_floor_ns,
            base: BaseRtt::new(),
            average_delay_ns: Nanos::ZERO,
            decreased_ns: Instant::START,
            penalized_ns: Instant::START,
            quick_adaptation: QuickAdaptation::new(),
            calm_bytes: 0,
            loss_undo: LossUndo::default(),
            rivals: Rivals::new(),
        }
    }

    /// Bytes outside of this structure.
    pub(crate) fn footprint_bytes(&self) -> usize {
        self.rivals.footprint_bytes()
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
        if self.base.least_ns() == Nanos::MAX {
            self.target_floor_ns
        } else {
            (self.base.least_ns() * TARGET_HALVES / 2).max(self.target_floor_ns)
        }
    }

    /// Up to here a round trip shows no queue to speak of.
    #[inline]
    pub(crate) fn calm_rtt_ns(&self) -> Nanos {
        self.base.least_ns().saturating_add(self.target_ns())
    }

    /// Whether the paths together show queues; then a loss is a full queue and no broken path.
    pub(crate) fn is_loaded(&self) -> bool {
        self.average_delay_ns > self.target_ns() / 2
    }

    /// Moves the window. Answers what the round trip says about its path.
    pub(crate) fn on_acknowledged(&mut self, sample: &Sample) -> Verdict {
        self.quick_adaptation.on_acknowledged(sample.acked_bytes);
        let Some(rtt_ns) = sample.rtt_ns else {
            return Verdict::BelowTarget;
        };
        self.base.on_round_trip(rtt_ns);
        if self.rivals.compete() {
            // Their queue never empties: it must not pass for the route.
            self.base.keep(sample.now_ns);
        }
        let delay_ns = rtt_ns - self.base.least_ns();
        let target_ns = self.target_ns();
        self.average_delay_ns = self.average_delay_ns - self.average_delay_ns / 8 + delay_ns / 8;
        if let Rule::Set(cwnd_bytes) = self.rivals.on_acknowledged(&News {
            now_ns: sample.now_ns,
            rtt_ns: self.smoothed_rtt_ns(),
            acked_bytes: sample.acked_bytes,
            packet_bytes: self.packet_bytes,
            cwnd_bytes: self.cwnd_bytes,
            in_use: sample.tried_bytes * 2 >= self.cwnd_bytes && !self.base.is_draining(),
            is_calm: delay_ns < target_ns,
            calm_rtt_ns: self.calm_rtt_ns(),
        }) {
            let cwnd_bytes = self.base.stop_draining(sample.now_ns, cwnd_bytes);
            self.set(cwnd_bytes);
            return Verdict::Slow;
        }
        if self.base.is_due(sample.now_ns) {
            let (now_ns, rtt_ns) = (sample.now_ns, self.smoothed_rtt_ns());
            let cwnd_bytes = self.base.drained_bytes(now_ns, rtt_ns, self.cwnd_bytes);
            self.set(cwnd_bytes);
            return Verdict::BelowTarget;
        }
        self.quick_adaptation.on_delay(delay_ns, target_ns);
        if self.adapt_quickly(sample) || self.quick_adaptation.is_stale() {
            return Verdict::Slow;
        }
        if delay_ns < target_ns {
            self.increase(sample, delay_ns, target_ns);
            return Verdict::BelowTarget;
        }
        self.calm_bytes = 0;
        if self.average_delay_ns < target_ns || self.quick_adaptation.some_path_is_free(target_ns) {
            return Verdict::SlowMinority;
        }
        self.decrease(sample);
        Verdict::Slow
    }

    /// With the queues as they are.
    fn smoothed_rtt_ns(&self) -> Nanos {
        self.base.least_ns().saturating_add(self.average_delay_ns)
    }

    /// The window is set by others than delay, which begins anew afterwards.
    fn set(&mut self, cwnd_bytes: u64) {
        let most = u64::from(self.limit_bytes).max(2 * self.packet_bytes);
        self.cwnd_bytes = cwnd_bytes.clamp(2 * self.packet_bytes, most);
        self.calm_bytes = 0;
        self.quick_adaptation = QuickAdaptation::new();
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
            let calm_bytes = u64::from(self.calm_bytes) + sample.acked_bytes;
            self.calm_bytes = calm_bytes.min(u32::MAX.into()) as u32;
            if calm_bytes > self.cwnd_bytes {
                gain = gain.max(sample.acked_bytes / 4);
            }
        } else {
            self.calm_bytes = 0;
        }
        self.cwnd_bytes = (self.cwnd_bytes + gain).min(self.limit_bytes.into());
    }

    fn decrease(&mut self, sample: &Sample) {
        let since_ns = sample.now_ns.saturating_since(self.decreased_ns);
        if since_ns < self.base.least_ns() + sample.send_delay_ns {
            return;
        }
        self.decreased_ns = sample.now_ns;
        let (average, target) = (self.average_delay_ns, self.target_ns());
        // gamma 0.8; at most one half.
        let cut = self.cwnd_bytes * 4 / 5 * (average - target) / average.max(Nanos(1));
        let room = self
            .cwnd_bytes
            .saturating_sub(delay_floor_bytes(self.packet_bytes));
        self.shrink(cut.min(self.cwnd_bytes / 2).min(room));
    }

    /// srd-protocol 10.5. Answers whether the window was set anew.
    fn adapt_quickly(&mut self, sample: &Sample) -> bool {
        let target_ns = self.target_ns();
        let every_ns = self.base.least_ns() + sample.send_delay_ns + target_ns;
        let least_bytes = self.cwnd_bytes.max(u64::from(self.limit_bytes) / 2) / QUICK_PART;
        let floor_bytes = match self.quick_adaptation.is_after_loss() {
            true => 0,
            false => delay_floor_bytes(self.packet_bytes).min(self.cwnd_bytes),
        };
        let (quick, now_ns) = (&mut self.quick_adaptation, sample.now_ns);
        let Some(bytes) = quick.look_back(now_ns, every_ns, target_ns, least_bytes) else {
            return false;
        };
        let before_bytes = self.cwnd_bytes;
        self.cwnd_bytes = bytes.max(floor_bytes).max(2 * self.packet_bytes);
        self.loss_undo.on_shrunk(before_bytes, self.cwnd_bytes);
        self.quick_adaptation.on_adapted(sample.in_flight_bytes);
        true
    }

    /// srd-protocol 10.9. If what was lost is a large part, a window that is larger than what was
    /// tried would let all of them leave at once again, together with everybody else's.
    pub(crate) fn on_lost(&mut self, lost: &Lost) {
        self.loss_undo.on_lost(lost.packet_count);
        self.cwnd_bytes = self.base.stop_draining(lost.now_ns, self.cwnd_bytes);
        let before_bytes = self.cwnd_bytes;
        let loss = self.loss(lost);
        if let Some(cwnd_bytes) = self.rivals.on_lost(&loss) {
            self.set(cwnd_bytes);
            self.loss_undo.on_shrunk(before_bytes, self.cwnd_bytes);
            return;
        }
        self.quick_adaptation.on_lost();
        self.calm_bytes = 0;
        if !self.quick_adaptation.is_stale() {
            if lost.bytes * HEAVY_LOSS > lost.in_flight_bytes {
                self.cwnd_bytes = self.cwnd_bytes.min(lost.in_flight_bytes);
            }
            self.shrink(lost.bytes.min(self.cwnd_bytes));
            self.loss_undo.on_shrunk(before_bytes, self.cwnd_bytes);
        }
    }

    /// A queue of the network is long, and says so (srd-protocol 10.12): a loss for which nothing
    /// was lost. `tried_bytes`: what was in flight.
    pub(crate) fn on_marked(&mut self, concern: Concern, now_ns: Instant, tried_bytes: u64) {
        self.cwnd_bytes = self.base.stop_draining(now_ns, self.cwnd_bytes);
        self.calm_bytes = 0;
        match concern {
            Concern::All => {
                let loss = self.loss(&Lost {
                    now_ns,
                    bytes: 0,
                    packet_count: 0,
                    overtaken_bytes: 0,
                    in_flight_bytes: tried_bytes.max(delay_floor_bytes(self.packet_bytes)),
                });
                let cwnd_bytes = self.rivals.on_marked(&loss);
                self.set(cwnd_bytes);
            }
            Concern::Part {
                marked_count,
                heard_count,
            } => {
                let part_bytes = self.cwnd_bytes * u64::from(marked_count) / u64::from(heard_count);
                self.shrink(part_bytes * MARKED_TENTHS / 10);
            }
        }
    }

    /// What a loss tells of rivals.
    fn loss(&self, lost: &Lost) -> Loss {
        Loss {
            now_ns: lost.now_ns,
            rtt_ns: self.smoothed_rtt_ns(),
            cwnd_bytes: self.cwnd_bytes,
            in_flight_bytes: lost.in_flight_bytes,
            packet_bytes: self.packet_bytes,
            overtaken_bytes: lost.overtaken_bytes,
            // Where there is none nothing overflows.
            has_queue: self.average_delay_ns > self.base.least_ns() / QUEUE_PART,
        }
    }

    /// So many packets that were taken for lost were not: their share of what was taken is given
    /// back (srd-protocol 10.9), and when none was lost the window is as before.
    /// Answers whether this was the last of them.
    pub(crate) fn on_false_loss(&mut self, count: u64) -> bool {
        let (count, back_bytes) = self.loss_undo.give_back(count);
        if count == 0 {
            return false;
        }
        self.rivals.on_false_loss(count * self.packet_bytes);
        self.cwnd_bytes = (self.cwnd_bytes + back_bytes).min(self.limit_bytes.into());
        let is_none = self.loss_undo.is_none();
        if is_none {
            self.quick_adaptation.on_none_lost();
        }
        is_none
    }

    /// The packets found lost lately were really lost: their reductions stay.
    pub(crate) fn forget_losses(&mut self) {
        self.loss_undo = LossUndo::default();
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
#[path = "window_tests.rs"]
mod tests;
