// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How long the acknowledgement of a short message waits for our own next message to its sender,
//! which then carries it (srd-protocol 7.3). Owned by ack_timer, told by transmit what leaves.
//!
//! Of two processes that exchange messages, each sends when its turn comes. Who shares its
//! processor may have it some milliseconds later: so how long to wait is learned. It grows a little
//! at a time, so that the remote learns as well how late we answer (srd-protocol 9.4), and does not
//! ask meanwhile.
//!
//! Where our message waits for what our acknowledgement brings about, it comes later than that,
//! however long the acknowledgement waits. It comes closely after it each time: then it is not
//! waited for.

use weft_wire::time::{Instant, Nanos};

/// Times are kept in steps of so many bits of nanoseconds: remotes are many (chosen: 1 us).
const STEP_BITS: u32 = 10;
/// No acknowledgement waits for longer, 10 ms (chosen: turns of several processes of a processor;
/// less than a remote that knows it waits, srd-protocol 9.4).
const HOLD_MOST_STEPS: u16 = (10_000_000_u32 >> STEP_BITS) as u16;
/// It grows by this part when our message came later (chosen: what the remote learns of our answers
/// grows as fast).
const GROWTH_PART: u16 = 4;
/// It shrinks by this part when none came for longer than an acknowledgement may wait (chosen: half
/// of what it grows by).
const DECAY_PART: u16 = 8;
/// A message of ours that comes later by no more than this part comes closely after the
/// acknowledgement (chosen: the time has grown by as much when the next one comes).
const CLOSE_PART: u16 = GROWTH_PART;
/// So many of them in a row wait for the acknowledgement (chosen: two may be chance).
const CLOSE_COUNT: u8 = 3;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckHold {
    /// When the first message arrived that none of ours has followed.
    since_step: u32,
    hold_steps: u16,
    /// Messages of ours in a row that came closely after the acknowledgement.
    close_count: u8,
    /// None has followed yet.
    is_open: bool,
    /// An acknowledgement waits.
    is_holding: bool,
}

impl AckHold {
    /// Nothing is known of when our messages follow.
    pub(crate) fn new() -> Self {
        Self {
            since_step: 0,
            hold_steps: 0,
            close_count: 0,
            is_holding: false,
            is_open: false,
        }
    }

    /// A short message has arrived; answers how long its acknowledgement may wait, which is at
    /// least the usual delay. Fast path.
    #[inline]
    pub(crate) fn begin(&mut self, now_ns: Instant, usual_ns: Nanos) -> Nanos {
        self.is_holding = true;
        let is_vain = self.is_open && self.late_steps(now_ns) > HOLD_MOST_STEPS.into();
        if is_vain {
            self.decay();
        }
        if is_vain || !self.is_open {
            self.is_open = true;
            self.since_step = step(now_ns);
        }
        let usual_steps = (usual_ns.0 >> STEP_BITS) as u16;
        self.hold_steps = self.hold_steps.max(usual_steps);
        usual_ns.max(Nanos(u64::from(self.hold_steps) << STEP_BITS))
    }

    /// A message of ours leaves, or an answer to one, which carries the acknowledgement as well.
    /// Fast path.
    #[inline]
    pub(crate) fn on_message(&mut self, now_ns: Instant) {
        if !std::mem::take(&mut self.is_open) {
            return;
        }
        let late_steps = self.late_steps(now_ns);
        if late_steps <= self.hold_steps.into() {
            self.close_count = 0;
        } else if self.is_chased(late_steps) {
            self.forget();
        } else if late_steps <= HOLD_MOST_STEPS.into() {
            let growth_steps = (self.hold_steps / GROWTH_PART).max(1);
            self.hold_steps = self.hold_steps.saturating_add(growth_steps);
            self.hold_steps = self.hold_steps.min(HOLD_MOST_STEPS);
        }
    }

    /// Whether our messages come after the acknowledgement however long it waits; one comes so
    /// late now.
    fn is_chased(&mut self, late_steps: u32) -> bool {
        let close_steps = self.hold_steps + self.hold_steps / CLOSE_PART;
        let is_close = late_steps <= close_steps.into();
        self.close_count = match is_close {
            true => self.close_count + 1,
            false => 0,
        };
        self.close_count == CLOSE_COUNT
    }

    /// A message has arrived whose acknowledgement leaves at once: when ours follows does not
    /// matter. If none has followed the ones before it for longer than the usual delay, to hold
    /// their acknowledgement back was in vain.
    #[inline]
    pub(crate) fn skip(&mut self, now_ns: Instant, usual_ns: Nanos) {
        let usual_steps = (usual_ns.0 >> STEP_BITS) as u32;
        if std::mem::take(&mut self.is_open) && self.late_steps(now_ns) > usual_steps {
            self.decay();
        }
    }

    fn decay(&mut self) {
        self.hold_steps -= self.hold_steps / DECAY_PART;
    }

    /// What was learned does not hold any more.
    #[inline]
    pub(crate) fn forget(&mut self) {
        self.hold_steps = 0;
        self.close_count = 0;
    }

    /// Nothing waits any more.
    #[inline]
    pub(crate) fn on_acknowledged(&mut self) {
        self.is_holding = false;
    }

    /// The remote has sent something again while an acknowledgement waits that has `left_ns` to
    /// wait. If it has waited for longer than usual, that was too long for the remote.
    #[cold]
    pub(crate) fn on_asked_again(&mut self, left_ns: Nanos, usual_ns: Nanos) {
        let hold_ns = Nanos(u64::from(self.hold_steps) << STEP_BITS);
        if self.is_holding && hold_ns > left_ns + usual_ns {
            self.hold_steps /= 2;
        }
    }

    /// Since that message arrived.
    fn late_steps(&self, now_ns: Instant) -> u32 {
        step(now_ns).wrapping_sub(self.since_step)
    }
}

fn step(at_ns: Instant) -> u32 {
    (at_ns.0 >> STEP_BITS) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL_NS: Nanos = Nanos(20_480);
    const MS: u64 = 1 << 20;

    /// So many messages from a remote, each followed by ours after `follows_ns`, whose
    /// acknowledgements leave alone when they have waited. Answers how many did.
    fn exchange(hold: &mut AckHold, count: u32, follows_ns: Nanos) -> u32 {
        let mut alone = 0;
        for turn in 0..u64::from(count) {
            let now_ns = Instant(turn * 100 * MS);
            let waits_ns = hold.begin(now_ns, USUAL_NS);
            if waits_ns < follows_ns {
                hold.on_acknowledged();
                alone += 1;
            }
            hold.on_message(now_ns + follows_ns);
            hold.on_acknowledged();
        }
        alone
    }

    fn waits_ns(hold: &mut AckHold) -> u64 {
        let waits_ns = hold.begin(Instant(1 << 40), USUAL_NS).0;
        hold.on_acknowledged();
        waits_ns
    }

    #[test]
    fn an_acknowledgement_learns_to_wait_for_the_message_that_follows() {
        for follows_ns in [Nanos(10_000), Nanos(100_000), Nanos(MS), Nanos(8 * MS)] {
            let mut hold = AckHold::new();
            exchange(&mut hold, 100, follows_ns);
            assert_eq!(exchange(&mut hold, 100, follows_ns), 0, "{follows_ns:?}");
            let waits_ns = waits_ns(&mut hold);
            assert!(waits_ns <= 2 * follows_ns.0.max(USUAL_NS.0), "{waits_ns}");
        }
    }

    #[test]
    fn what_never_follows_in_time_is_not_waited_for_and_soon_no_more() {
        let mut hold = AckHold::new();
        exchange(&mut hold, 100, Nanos(20 * MS));
        assert_eq!(waits_ns(&mut hold), USUAL_NS.0);
        exchange(&mut hold, 100, Nanos(8 * MS));
        assert!(waits_ns(&mut hold) > 7 * MS);
        for turn in 0..60 {
            hold.begin(Instant(turn * 100 * MS), USUAL_NS);
            hold.on_acknowledged();
        }
        assert_eq!(waits_ns(&mut hold), USUAL_NS.0);
    }

    /// It asks before it must wait: an acknowledgement is held back for no longer than that.
    #[test]
    fn who_asks_and_gets_no_message_of_ours_is_soon_kept_waiting_no_longer_than_usual() {
        let mut hold = AckHold::new();
        exchange(&mut hold, 100, Nanos(8 * MS));
        for (pause_ns, is_unlearned) in [(USUAL_NS, false), (Nanos(300_000), true)] {
            for turn in 0..60 {
                let now_ns = Instant((1 << 40) + turn * MS);
                hold.begin(now_ns, USUAL_NS);
                hold.skip(now_ns + pause_ns, USUAL_NS);
                hold.on_acknowledged();
            }
            assert_eq!(waits_ns(&mut hold) == USUAL_NS.0, is_unlearned);
            hold.on_message(Instant(1 << 40));
        }
    }

    /// What it asks for leaves at once, whether a message of ours follows or not.
    #[test]
    fn nothing_is_unlearned_from_questions_after_a_message_of_ours() {
        let mut hold = AckHold::new();
        exchange(&mut hold, 100, Nanos(8 * MS));
        for turn in 0..60 {
            let now_ns = Instant(turn * 100 * MS);
            hold.begin(now_ns, USUAL_NS);
            hold.on_message(now_ns + Nanos(7 * MS));
            hold.skip(now_ns + Nanos(8 * MS), USUAL_NS);
            hold.on_acknowledged();
        }
        assert!(waits_ns(&mut hold) > 7 * MS);
    }

    /// Our message follows what the acknowledgement brings about.
    #[test]
    fn a_message_that_waits_for_the_acknowledgement_is_not_waited_for() {
        for taught_ns in [Nanos(0), Nanos(MS), Nanos(8 * MS)] {
            let mut hold = AckHold::new();
            exchange(&mut hold, 100, taught_ns);
            for turn in 0..200 {
                let now_ns = Instant((1 << 40) + turn * 100 * MS);
                let waits_ns = hold.begin(now_ns, USUAL_NS);
                // What follows so late is close from four times as long on; then the time grows
                // twice.
                let is_learned = turn < u64::from(CLOSE_COUNT);
                assert!(is_learned || waits_ns.0 < 8 * USUAL_NS.0, "{turn}");
                hold.on_acknowledged();
                hold.on_message(now_ns + waits_ns + USUAL_NS);
            }
        }
    }

    #[test]
    fn a_remote_that_asks_again_is_kept_waiting_for_half_as_long() {
        let mut hold = AckHold::new();
        exchange(&mut hold, 100, Nanos(8 * MS));
        let before_ns = hold.begin(Instant(MS), USUAL_NS).0;
        hold.on_asked_again(Nanos(before_ns) - USUAL_NS, USUAL_NS);
        let now_ns = hold.begin(Instant(MS), USUAL_NS).0;
        assert_eq!(now_ns, before_ns, "both came together");
        hold.on_asked_again(Nanos(before_ns / 2), USUAL_NS);
        hold.on_acknowledged();
        assert!(waits_ns(&mut hold) <= before_ns / 2);
    }
}
