// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A TCP flow without end that shares a link with others: Reno (RFC 5681), CUBIC (RFC 9438) or BBR
//! (bbr.rs), with selective acknowledgements.
//!
//! Called by host. Lost packets are not sent again, because only the flow's bytes in flight matter.

use std::collections::VecDeque;

use crate::bbr::{Bbr, Sample};
use crate::tcp::{INITIAL_WINDOW, RTO_LEAST_NS, Segment};

/// A packet is lost when one sent so much later has arrived (RFC 5681).
const REORDERING: u32 = 3;
/// RFC 9438, 4.1 and 4.6.
const CUBIC_C: f64 = 0.4;
const CUBIC_BETA: f64 = 0.7;

/// How the window of a flow moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Control {
    /// RFC 5681.
    Reno,
    /// RFC 9438.
    Cubic,
    /// Version 1.
    Bbr,
}

/// A packet under way.
#[derive(Clone, Copy, Debug)]
struct Flying {
    number: u32,
    /// How many had arrived when it left, and when the last of them did.
    delivered: u64,
    delivered_ns: u64,
}

/// The sending end, in packets.
#[derive(Clone, Debug)]
pub struct Rival {
    control: Control,
    next: u32,
    /// Those that are neither acknowledged nor lost.
    flying: VecDeque<Flying>,
    window: f64,
    threshold: f64,
    /// Losses of packets before this one are of one event.
    recover: u32,
    most: f64,
    epoch_ns: u64,
    friendly: f64,
    srtt_ns: u64,
    heard_ns: u64,
    /// Used by BBR alone.
    bbr: Bbr,
    delivered: u64,
    delivered_ns: u64,
    due_ns: u64,
}

impl Rival {
    /// A flow with nothing under way.
    pub fn new(control: Control) -> Self {
        Self {
            control,
            next: 0,
            flying: VecDeque::new(),
            window: INITIAL_WINDOW,
            threshold: f64::INFINITY,
            recover: 0,
            most: 0.0,
            epoch_ns: 0,
            friendly: 0.0,
            srtt_ns: 0,
            heard_ns: 0,
            bbr: Bbr::default(),
            delivered: 0,
            delivered_ns: 0,
            due_ns: 0,
        }
    }

    /// The next packet, if one may leave.
    pub fn poll(&mut self, now_ns: u64) -> Option<Segment> {
        if self.flying.len() as f64 >= self.window || now_ns < self.due_ns {
            return None;
        }
        if self.flying.is_empty() {
            (self.heard_ns, self.delivered_ns) = (now_ns, now_ns);
        }
        if self.control == Control::Bbr {
            self.due_ns = self.due_ns.max(now_ns) + self.bbr.gap_ns();
        }
        self.flying.push_back(Flying {
            number: self.next,
            delivered: self.delivered,
            delivered_ns: self.delivered_ns,
        });
        self.next += 1;
        Some(Segment {
            flow: 0,
            number: self.next - 1,
            acknowledges: false,
            sent_ns: now_ns,
        })
    }

    /// When to call [`Rival::on_timeout`].
    pub fn deadline_ns(&self) -> u64 {
        let is_open = (self.flying.len() as f64) < self.window;
        let due_ns = if is_open && self.due_ns > 0 {
            self.due_ns
        } else {
            u64::MAX
        };
        due_ns.min(self.timeout_ns())
    }

    fn timeout_ns(&self) -> u64 {
        if self.flying.is_empty() {
            return u64::MAX;
        }
        self.heard_ns + RTO_LEAST_NS.max(3 * self.srtt_ns)
    }

    /// A packet has arrived.
    pub fn on_acknowledged(&mut self, segment: &Segment, now_ns: u64) {
        self.heard_ns = now_ns;
        let rtt_ns = now_ns - segment.sent_ns;
        self.srtt_ns = match self.srtt_ns {
            0 => rtt_ns,
            known => known - known / 8 + rtt_ns / 8,
        };
        let (mut first_lost, mut arrived) = (None, None);
        self.flying.retain(|flying| {
            let lost = flying.number + REORDERING <= segment.number;
            if lost && first_lost.is_none() {
                first_lost = Some(flying.number);
            }
            if flying.number == segment.number {
                arrived = Some(*flying);
            }
            !lost && flying.number != segment.number
        });
        if let (Control::Bbr, Some(arrived)) = (self.control, arrived) {
            self.model(&arrived, now_ns, rtt_ns);
            return;
        }
        match first_lost {
            Some(number) if number >= self.recover => self.reduce(now_ns),
            Some(_) => {}
            None => self.grow(now_ns),
        }
    }

    /// BBR's window.
    fn model(&mut self, arrived: &Flying, now_ns: u64, rtt_ns: u64) {
        self.delivered += 1;
        self.delivered_ns = now_ns;
        self.bbr.on_acknowledged(&Sample {
            now_ns,
            rtt_ns,
            delivered: self.delivered,
            delivered_before: arrived.delivered,
            before_ns: arrived.delivered_ns,
            flying: self.flying.len(),
        });
        self.window = self.bbr.window().unwrap_or(INITIAL_WINDOW);
    }

    fn reduce(&mut self, now_ns: u64) {
        self.recover = self.next;
        let beta = match self.control {
            Control::Reno => 0.5,
            Control::Cubic | Control::Bbr => CUBIC_BETA,
        };
        // Fast convergence (RFC 9438, 4.7).
        self.most = if self.window < self.most {
            self.window * (1.0 + beta) / 2.0
        } else {
            self.window
        };
        self.window = (self.window * beta).max(2.0);
        self.threshold = self.window;
        self.epoch_ns = now_ns;
        self.friendly = self.window;
    }

    fn grow(&mut self, now_ns: u64) {
        if self.window < self.threshold {
            self.window += 1.0;
            return;
        }
        if self.control == Control::Reno {
            self.window += 1.0 / self.window;
            return;
        }
        let seconds = (now_ns - self.epoch_ns + self.srtt_ns) as f64 / 1e9;
        let start = self.most.max(self.threshold);
        let reached = (start * (1.0 - self.threshold / start) / CUBIC_C).cbrt();
        let aim = CUBIC_C * (seconds - reached).powi(3) + start;
        let aim = aim.clamp(self.window, 1.5 * self.window);
        self.window += (aim - self.window) / self.window;
        let slope = if self.friendly < start {
            3.0 * (1.0 - CUBIC_BETA) / (1.0 + CUBIC_BETA)
        } else {
            1.0
        };
        self.friendly += slope / self.window;
        self.window = self.window.max(self.friendly);
    }

    /// Nothing was heard for long.
    pub fn on_timeout(&mut self, now_ns: u64) {
        if now_ns < self.timeout_ns() {
            return;
        }
        self.reduce(now_ns);
        self.window = 1.0;
        self.flying.clear();
        self.heard_ns = now_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Over a round trip of 10 ms; every so manieth packet is lost. Answers the mean window.
    fn mean_window(control: Control, lost_every: u32) -> f64 {
        let mut rival = Rival::new(control);
        let mut under_way = VecDeque::new();
        let (mut sum, mut count, mut now_ns) = (0.0, 0.0, 0);
        while now_ns < 200_000_000_000 {
            while let Some(segment) = rival.poll(now_ns) {
                if segment.number % lost_every != lost_every - 1 {
                    under_way.push_back(segment);
                }
            }
            let Some(segment) = under_way.pop_front() else {
                now_ns = rival.deadline_ns();
                rival.on_timeout(now_ns);
                continue;
            };
            now_ns = now_ns.max(segment.sent_ns + 10_000_000);
            rival.on_acknowledged(&segment, now_ns);
            if now_ns > 100_000_000_000 {
                sum += rival.window;
                count += 1.0;
            }
        }
        sum / count
    }

    /// RFC 9438, figure 5 (Reno 1.2 / sqrt(p)); for CUBIC at such short round trips the window of
    /// the friendly region.
    #[test]
    fn mean_windows_are_those_of_the_rfc() {
        for lost_every in [100, 1000, 10_000] {
            let aim = 1.2 * f64::from(lost_every).sqrt();
            for control in [Control::Reno, Control::Cubic] {
                let mean = mean_window(control, lost_every);
                let part = mean / aim;
                assert!((0.75..1.35).contains(&part), "{control:?}: {mean}, {aim}");
            }
        }
    }
}
