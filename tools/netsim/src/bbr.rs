// SPDX-License-Identifier: Apache-2.0 OR MIT
//! BBR, version 1: a flow that estimates its path's rate, and its round trip without queues. It
//! ignores loss.
//!
//! Called by rival. Source: draft-cardwell-iccrg-bbr-congestion-control-00 (net/ipv4/tcp_bbr.c has
//! its constants). Left out: the allowance for aggregated acknowledgements, and recovery.

use std::collections::VecDeque;

/// Gain of pacing and window while the rate doubles in a round trip: 2 / ln 2.
const STARTUP_GAIN: f64 = 2.885;
/// Gains of the eight phases, each of a least round trip.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
const WINDOW_GAIN: f64 = 2.0;
/// Packets beyond that, for senders that join some.
const QUANTA: f64 = 3.0;
/// The greatest rate of so many round trips counts.
const RATE_ROUNDS: u64 = 10;
/// The way is full when the rate did not grow by a fourth in so many round trips.
const FULL_ROUNDS: u32 = 3;
const LEAST_RTT_NS: u64 = 10_000_000_000;
/// Then the window is four packets for this long.
const PROBE_NS: u64 = 200_000_000;
const PROBE_WINDOW: f64 = 4.0;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Startup,
    Drain,
    Cruise,
    ProbeRtt { end_ns: u64 },
}

/// What an acknowledgement says.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Time.
    pub now_ns: u64,
    /// Of the packet.
    pub rtt_ns: u64,
    /// Packets delivered in all, with this one.
    pub delivered: u64,
    /// And when the packet left, and at that time the last one was delivered at.
    pub delivered_before: u64,
    /// That time.
    pub before_ns: u64,
    /// Packets under way.
    pub flying: usize,
}

/// The model of the way.
#[derive(Clone, Debug)]
pub struct Bbr {
    mode: Mode,
    /// Packets per nanosecond, with the round of each.
    rates: VecDeque<(u64, f64)>,
    least_ns: u64,
    least_at_ns: u64,
    round: u64,
    round_ends_at: u64,
    full_rate: f64,
    full_rounds: u32,
    phase: usize,
    phase_ns: u64,
}

/// Nothing is known.
impl Default for Bbr {
    fn default() -> Self {
        Self {
            mode: Mode::Startup,
            rates: VecDeque::new(),
            least_ns: u64::MAX,
            least_at_ns: 0,
            round: 0,
            round_ends_at: 0,
            full_rate: 0.0,
            full_rounds: 0,
            phase: 2,
            phase_ns: 0,
        }
    }
}

impl Bbr {
    fn rate(&self) -> f64 {
        let rates = self.rates.iter().map(|(_, rate)| *rate);
        rates.fold(0.0, f64::max)
    }

    fn product(&self) -> f64 {
        self.rate() * self.least_ns as f64
    }

    /// Packets that may be under way; `None` while nothing is known.
    pub fn window(&self) -> Option<f64> {
        self.rates.front()?;
        Some(match self.mode {
            Mode::ProbeRtt { .. } => PROBE_WINDOW,
            Mode::Startup | Mode::Drain => (STARTUP_GAIN * self.product()).max(10.0),
            Mode::Cruise => (WINDOW_GAIN * self.product() + QUANTA).max(PROBE_WINDOW),
        })
    }

    /// Nanoseconds between two packets; 0 while nothing is known.
    pub fn gap_ns(&self) -> u64 {
        let gain = match self.mode {
            Mode::Startup => STARTUP_GAIN,
            Mode::Drain => 1.0 / STARTUP_GAIN,
            Mode::Cruise => CYCLE[self.phase],
            Mode::ProbeRtt { .. } => 1.0,
        };
        match self.rate() * gain {
            0.0 => 0,
            rate => (1.0 / rate) as u64,
        }
    }

    /// A packet has arrived.
    pub fn on_acknowledged(&mut self, sample: &Sample) {
        let now_ns = sample.now_ns;
        let begins = sample.delivered_before >= self.round_ends_at;
        if begins {
            self.round += 1;
            self.round_ends_at = sample.delivered;
        }
        let count = (sample.delivered - sample.delivered_before) as f64;
        let rate = count / (now_ns - sample.before_ns).max(1) as f64;
        self.rates
            .retain(|(round, _)| round + RATE_ROUNDS > self.round);
        // Only what is greater than all later ones can become the greatest.
        while self.rates.back().is_some_and(|(_, last)| *last <= rate) {
            self.rates.pop_back();
        }
        self.rates.push_back((self.round, rate));
        let is_old = now_ns > self.least_at_ns + LEAST_RTT_NS;
        if sample.rtt_ns <= self.least_ns || is_old {
            (self.least_ns, self.least_at_ns) = (sample.rtt_ns, now_ns);
        }
        if is_old && !matches!(self.mode, Mode::ProbeRtt { .. }) {
            self.mode = Mode::ProbeRtt {
                end_ns: now_ns + PROBE_NS,
            };
        }
        self.move_on(sample, begins);
    }

    fn move_on(&mut self, sample: &Sample, begins: bool) {
        let now_ns = sample.now_ns;
        match self.mode {
            Mode::Startup if begins => {
                if self.rate() >= 1.25 * self.full_rate {
                    (self.full_rate, self.full_rounds) = (self.rate(), 0);
                } else {
                    self.full_rounds += 1;
                }
                if self.full_rounds >= FULL_ROUNDS {
                    self.mode = Mode::Drain;
                }
            }
            Mode::Drain if sample.flying as f64 <= self.product() => self.cruise(now_ns),
            Mode::Cruise if now_ns > self.phase_ns + self.least_ns => {
                self.phase = (self.phase + 1) % CYCLE.len();
                self.phase_ns = now_ns;
            }
            Mode::ProbeRtt { end_ns } if now_ns >= end_ns => self.cruise(now_ns),
            _ => {}
        }
    }

    fn cruise(&mut self, now_ns: u64) {
        self.mode = Mode::Cruise;
        (self.phase, self.phase_ns) = (2, now_ns);
    }
}
