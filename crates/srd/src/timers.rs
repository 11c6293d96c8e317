// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Time: round trips and the time-out made of them, scheduling jitter, and the queue of all flows'
//! deadlines.
//!
//! Called by flow (one [`RoundTrip`] each) and by machine (one [`Deadlines`], one [`Jitter`]). RFC
//! 6298; srd-protocol 9.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use weft_wire::time::{Instant, Nanos};

use crate::config::Timing;

/// Time-outs in a row that come at the same pace, before they double (chosen: each tries another
/// path, and of four tries one finds a way where half of the paths are broken).
const EVEN_TIMEOUTS: u16 = 2;
/// After so many doublings, so many more time-outs in a row come at that pace before they double on
/// (chosen by simulation of incasts: when the others are done, who lost a packet five times must
/// not sleep for as long as the incast took).
const HELD_DOUBLINGS: u16 = 2;
const HELD_TIMEOUTS: u16 = 4;
/// After so many time-outs in a row, and after each further one, the next is late at random (chosen
/// by simulation of incasts: who lost a packet together would else send it again together, and lose
/// it again; of links that lose 1 %: the first two come in time).
const SPREAD_AFTER: u16 = 2;
/// It is late by this part of itself at most (chosen likewise).
const SPREAD_PART: u64 = 2;
/// Time-outs beyond these are not counted: the ceiling was reached long before.
const BACKOFF_MOST: u16 = 24;
/// A time-out is at least this many times the scheduling jitter (chosen: one for either side).
const RTO_JITTERS: u64 = 2;
/// The same of the remote's time to answer (chosen: the tail probe has waited for it once).
const RTO_ANSWERS: u64 = 2;

/// A remote that takes longer to answer is not waited for any longer (chosen: longer than it holds
/// an acknowledgement back, by a turn of Linux's scheduler and some more).
const ANSWER_MOST_NS: Nanos = Nanos(16_000_000);

/// Answers that take so much longer than the network are late (srd-protocol 7.5; chosen: what both
/// sides presume of the acknowledgement delay).
const LATE_NS: u64 = 100_000;

/// By this part the mean shrinks where an answer that was asked for came soon (chosen: of some
/// hundred awaited messages one is not asked for, to see whether answers are late still).
const HURRIED_PART: u32 = 64;
/// The same while packets get lost, when one that was not asked for costs most (chosen).
const HURRIED_PART_LOSSY: u32 = 256;
/// By this part the longest answer that was asked for shrinks with each further one (chosen: one
/// that was late is soon forgotten).
const ASKED_DECAY_PART: u32 = 8;

/// A time and how much it varies, smoothed (RFC 6298, 2.2 and 2.3). In 32 bits: remotes are many.
#[derive(Clone, Copy, Debug, Default)]
struct Smoothed {
    mean_ns: u32,
    variation_ns: u32,
}

impl Smoothed {
    fn mean_ns(self) -> Nanos {
        Nanos(self.mean_ns.into())
    }

    fn variation_ns(self) -> Nanos {
        Nanos(self.variation_ns.into())
    }

    #[inline]
    fn sample(&mut self, sample_ns: Nanos) {
        let sample_ns = u32::try_from(sample_ns.0).unwrap_or(u32::MAX);
        if self.mean_ns == 0 {
            self.mean_ns = sample_ns.max(1);
            self.variation_ns = sample_ns / 2;
            return;
        }
        let difference_ns = self.mean_ns.abs_diff(sample_ns);
        self.variation_ns = self.variation_ns - self.variation_ns / 4 + difference_ns / 4;
        self.mean_ns = (self.mean_ns - self.mean_ns / 8 + sample_ns / 8).max(1);
    }
}

/// Smoothed round trip, its variation, and back-off (srd-protocol 9.1, 9.3).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RoundTrip {
    network: Smoothed,
    /// The same with what the remote took to answer (srd-protocol 9.4).
    answer: Smoothed,
    /// How long answers took of late that were asked for at once: a decaying maximum.
    asked_ns: u32,
    /// Time-outs that went unanswered.
    backoff: u16,
    /// By how many 65,536ths of its most the next time-out is spread.
    spread: u16,
}

impl RoundTrip {
    /// srtt, or 0 before the first sample.
    pub(crate) fn srtt_ns(&self) -> Nanos {
        self.network.mean_ns()
    }

    /// How much round trips vary, which across paths is how much they differ.
    pub(crate) fn rttvar_ns(&self) -> Nanos {
        self.network.variation_ns()
    }

    /// RFC 6298 (2.2), (2.3).
    pub(crate) fn sample(&mut self, rtt_ns: Nanos) {
        self.network.sample(rtt_ns);
    }

    /// The remote took so long to answer, the network included.
    #[inline]
    pub(crate) fn on_answer(&mut self, away_ns: Nanos) {
        self.answer.sample(away_ns.min(ANSWER_MOST_NS));
    }

    /// The same of an answer that was asked for at once. That it came soon says little of others,
    /// for which we wait as long as before. `is_lossy`: packets were lost lately.
    #[cold]
    pub(crate) fn on_hurried_answer(&mut self, away_ns: Nanos, is_lossy: bool) {
        let asked_ns = away_ns.min(ANSWER_MOST_NS).0 as u32;
        self.asked_ns = asked_ns.max(self.asked_ns - self.asked_ns / ASKED_DECAY_PART);
        if away_ns > self.answer.mean_ns() {
            return self.on_answer(away_ns);
        }
        let part = match is_lossy {
            true => HURRIED_PART_LOSSY,
            false => HURRIED_PART,
        };
        let part_ns = (self.answer.mean_ns / part).max(1);
        self.answer.mean_ns = self.answer.mean_ns.saturating_sub(part_ns).max(1);
        self.answer.variation_ns += part_ns / 4;
    }

    /// Within this time the remote answers as a rule.
    fn answer_ns(&self) -> Nanos {
        (self.answer.mean_ns() + 4 * self.answer.variation_ns()).min(ANSWER_MOST_NS)
    }

    /// Whether the remote takes longer to answer than one that has a processor of its own and holds
    /// nothing back (srd-protocol 7.3).
    #[inline]
    pub(crate) fn answers_late(&self) -> bool {
        self.is_late(self.answer.mean_ns())
    }

    /// Whether an answer takes so long.
    #[inline]
    pub(crate) fn is_late(&self, away_ns: Nanos) -> bool {
        away_ns.0 > u64::from(self.network.mean_ns) + LATE_NS
    }

    /// Time-outs that went unanswered.
    pub(crate) fn backoff(&self) -> u32 {
        self.backoff.into()
    }

    /// A time-out went unanswered; `chance` differs from sender to sender.
    pub(crate) fn back_off(&mut self, chance: impl FnOnce() -> u16) {
        self.backoff = (self.backoff + 1).min(BACKOFF_MOST);
        if self.backoff >= SPREAD_AFTER {
            self.spread = chance();
        }
    }

    /// Something was answered.
    pub(crate) fn answered(&mut self) {
        self.backoff = 0;
        self.spread = 0;
    }

    /// srd-protocol 9.2, 9.3.
    pub(crate) fn rto_ns(&self, timing: &Timing, jitter_ns: Nanos) -> Nanos {
        let measured = self.srtt_ns() + 4 * self.rttvar_ns() + timing.receipt_delay_ns();
        let floor = timing.rto_floor_ns.max(RTO_JITTERS * jitter_ns);
        let floor = floor.max(RTO_ANSWERS * self.answer_ns());
        let unknown = if self.srtt_ns() == Nanos::ZERO {
            2 * timing.rto_floor_ns
        } else {
            Nanos::ZERO
        };
        let base = measured.max(floor).max(unknown);
        let rto_ns = (base << self.doublings()).min(timing.rto_ceiling_ns);
        rto_ns + Nanos((rto_ns.0 / SPREAD_PART * u64::from(self.spread)) >> u16::BITS)
    }

    /// How often the time-out has doubled.
    fn doublings(&self) -> u32 {
        let doublings = self.backoff.saturating_sub(EVEN_TIMEOUTS);
        let held = doublings.saturating_sub(HELD_TIMEOUTS).max(HELD_DOUBLINGS);
        doublings.min(held).into()
    }

    /// When to send a tail probe after the last acknowledgement (srd-protocol 8.3).
    pub(crate) fn tail_ns(&self, timing: &Timing, jitter_ns: Nanos) -> Nanos {
        self.tail_of(self.answer_ns(), timing, jitter_ns)
    }

    /// The same after a packet that asked for an answer at once. While no such answer is known
    /// there is no sooner time.
    pub(crate) fn asked_tail_ns(&self, timing: &Timing, jitter_ns: Nanos) -> Nanos {
        if self.asked_ns == 0 {
            return Nanos::MAX;
        }
        let asked_ns = Nanos(self.asked_ns.into());
        self.tail_of(asked_ns + asked_ns / 4, timing, jitter_ns)
    }

    /// The same where an answer may take so long.
    fn tail_of(&self, answer_ns: Nanos, timing: &Timing, jitter_ns: Nanos) -> Nanos {
        if self.srtt_ns() == Nanos::ZERO {
            return Nanos::MAX;
        }
        let usual_ns = 2 * self.srtt_ns() + timing.acknowledgement_delay_ns;
        usual_ns.max(jitter_ns).max(answer_ns)
    }
}

/// How late our own timers fire: a decaying maximum (srd-protocol 9.2).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Jitter {
    lateness_ns: Nanos,
}

/// Lateness beyond this says that the application was away, not how the system schedules (chosen).
const LATENESS_LIMIT_NS: Nanos = Nanos(1_000_000);

impl Jitter {
    pub(crate) fn sample(&mut self, lateness_ns: Nanos) {
        let decayed = self.lateness_ns - self.lateness_ns / 64;
        let counts = lateness_ns <= LATENESS_LIMIT_NS;
        self.lateness_ns = if counts {
            decayed.max(lateness_ns)
        } else {
            decayed
        };
    }

    pub(crate) fn ns(self) -> Nanos {
        self.lateness_ns
    }
}

/// The deadlines of all flows; entries that no longer hold are dropped when they come up.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    heap: BinaryHeap<Reverse<(Instant, u32)>>,
}

impl Deadlines {
    pub(crate) fn push(&mut self, at_ns: Instant, remote: u32) {
        self.heap.push(Reverse((at_ns, remote)));
    }

    pub(crate) fn first(&self) -> Option<(Instant, u32)> {
        self.heap.peek().map(|entry| entry.0)
    }

    pub(crate) fn pop(&mut self) {
        self.heap.pop();
    }

    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    /// Keeps only the entries that hold, so that the heap stays in proportion to the remotes.
    pub(crate) fn retain(&mut self, mut holds: impl FnMut(Instant, u32) -> bool) {
        self.heap.retain(|entry| holds(entry.0.0, entry.0.1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    /// The usual timing, and a remote of which one round trip is known: 10 us.
    fn measured() -> (Timing, RoundTrip) {
        let mut round_trip = RoundTrip::default();
        round_trip.sample(Nanos(10_000));
        (Config::default().timing, round_trip)
    }

    #[test]
    fn the_time_out_follows_round_trips_and_never_falls_below_its_floor() {
        let timing = Config::default().timing;
        let mut round_trip = RoundTrip::default();
        assert_eq!(round_trip.rto_ns(&timing, Nanos::ZERO), Nanos(400_000));
        for _ in 0..100 {
            round_trip.sample(Nanos(10_000));
        }
        assert_eq!(round_trip.rto_ns(&timing, Nanos::ZERO), Nanos(200_000));
        assert_eq!(round_trip.rto_ns(&timing, Nanos(200_000)), Nanos(400_000));
        for _ in 0..100 {
            round_trip.sample(Nanos(1_000_000));
        }
        let rto = round_trip.rto_ns(&timing, Nanos::ZERO).0;
        assert!((1_000_000..1_200_000).contains(&rto), "{rto}");
    }

    #[test]
    fn unanswered_time_outs_double_up_to_the_ceiling_and_an_answer_resets_them() {
        let (timing, mut round_trip) = measured();
        let first = round_trip.rto_ns(&timing, Nanos::ZERO);
        for times in [1, 1, 1, 2, 4, 4, 4, 4, 4, 8, 16] {
            let rto_ns = round_trip.rto_ns(&timing, Nanos::ZERO);
            assert_eq!(
                rto_ns,
                times * first,
                "held at four times, and not for long"
            );
            round_trip.back_off(|| 0);
        }
        for _ in 0..50 {
            round_trip.back_off(|| 0);
        }
        assert_eq!(
            round_trip.rto_ns(&timing, Nanos::ZERO),
            timing.rto_ceiling_ns
        );
        round_trip.answered();
        assert_eq!(round_trip.rto_ns(&timing, Nanos::ZERO), first);
    }

    #[test]
    fn time_outs_from_the_third_in_a_row_on_are_late_by_half_at_most_and_earlier_ones_are_not() {
        let (timing, mut round_trip) = measured();
        let first = round_trip.rto_ns(&timing, Nanos::ZERO);
        for (chance, least, most) in [(0, 1000, 1000), (1 << 15, 1249, 1250), (65_535, 1499, 1500)]
        {
            round_trip.back_off(|| chance);
            assert_eq!(round_trip.rto_ns(&timing, Nanos::ZERO), first);
            round_trip.back_off(|| chance);
            let part = 1000 * round_trip.rto_ns(&timing, Nanos::ZERO).0 / first.0;
            assert!((least..=most).contains(&part), "{chance}: {part}");
            round_trip.answered();
            assert_eq!(round_trip.rto_ns(&timing, Nanos::ZERO), first);
        }
        for _ in 0..50 {
            round_trip.back_off(|| 1 << 15);
        }
        let longest = round_trip.rto_ns(&timing, Nanos::ZERO);
        assert_eq!(
            longest,
            timing.rto_ceiling_ns + timing.rto_ceiling_ns / 4,
            "not together at the ceiling either"
        );
    }

    #[test]
    fn a_remote_that_answers_late_is_asked_late_but_not_later_than_it_can_be() {
        let (timing, mut round_trip) = measured();
        assert_eq!(round_trip.tail_ns(&timing, Nanos::ZERO), Nanos(40_000));
        for _ in 0..100 {
            round_trip.on_answer(Nanos(1_000_000));
        }
        let tail_ns = round_trip.tail_ns(&timing, Nanos::ZERO);
        assert!((1_000_000..1_010_000).contains(&tail_ns.0), "{tail_ns:?}");
        assert_eq!(round_trip.rto_ns(&timing, Nanos::ZERO), 2 * tail_ns);
        for _ in 0..100 {
            round_trip.on_answer(Nanos(60_000_000_000));
        }
        assert_eq!(round_trip.tail_ns(&timing, Nanos::ZERO), ANSWER_MOST_NS);
        for _ in 0..100 {
            round_trip.on_answer(Nanos(10_000));
        }
        assert_eq!(round_trip.tail_ns(&timing, Nanos::ZERO), Nanos(40_000));
    }

    #[test]
    fn jitter_remembers_the_worst_and_forgets_it_slowly() {
        let mut jitter = Jitter::default();
        jitter.sample(Nanos(64_000));
        jitter.sample(Nanos::ZERO);
        assert_eq!(jitter.ns(), Nanos(63_000));
        jitter.sample(LATENESS_LIMIT_NS + Nanos(1));
        assert!(
            jitter.ns() < Nanos(63_000),
            "an application that was away says nothing of the system"
        );
    }
}
