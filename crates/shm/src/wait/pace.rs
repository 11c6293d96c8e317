// SPDX-License-Identifier: Apache-2.0 OR MIT
//! When a round of progress does more than to look at its lanes: gives the processor away, looks at
//! the clock, has a tick. Told by the transport how each round went.

use weft_os::sleep;

use crate::wait::node::Node;

/// Empty rounds between looks at the clock. Chosen: a look costs about as much as three empty
/// rounds.
const ROUNDS_PER_LOOK: u32 = 64;

/// Busy rounds between looks at the clock. Chosen: some hundreds of microseconds of small messages.
/// A power of two.
const BUSY_ROUNDS_PER_TICK: u32 = 1024;

/// Time between ticks. Chosen: what a first contact that needs our help may wait.
const TICK_NS: u64 = 1_000_000;

/// Time between looks after the dead. Specified: a death is reported within a second.
const LIFE_CHECK_NS: u64 = 100_000_000;

/// Empty rounds before a process that shares its processor gives it away. Chosen: a message that is
/// on its way comes within these, another rank's turn is worth more than further ones.
const SPIN_ROUNDS_SHARED: u32 = 16;

/// Empty rounds before a process that has a processor to itself offers it nevertheless, and between
/// offers. Chosen: about a tenth of a millisecond.
const SPIN_ROUNDS_ALONE: u32 = 4096;

/// What is due at some time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Due {
    /// Nothing.
    Nothing,
    /// What is done at each tick.
    Tick,
    /// That, and a look after the dead.
    LifeCheck,
}

/// Counters of rounds, and times of ticks.
#[derive(Debug)]
pub(crate) struct Pace {
    /// Empty rounds to go before something other than counting them.
    rounds_left: u32,
    /// Where `rounds_left` starts.
    step_rounds: u32,
    /// Empty rounds to go before the next look at the clock, and before the processor is offered to
    /// others, as of the last time that `rounds_left` was at its end.
    rounds_to_look: u32,
    rounds_to_yield: u32,
    /// Rounds that found something, and how many there were when `rounds_left` was last at its end.
    busy_rounds: u32,
    busy_rounds_before: u32,
    next_tick_ns: u64,
    next_life_check_ns: u64,
    /// Empty rounds between offers of the processor.
    spin_rounds: u32,
}

impl Pace {
    pub(crate) fn new(node: Node) -> Self {
        let spin_rounds = if node.shares_cores {
            SPIN_ROUNDS_SHARED
        } else {
            SPIN_ROUNDS_ALONE
        };
        let step_rounds = spin_rounds.min(ROUNDS_PER_LOOK);
        Self {
            rounds_left: step_rounds,
            step_rounds,
            rounds_to_look: ROUNDS_PER_LOOK,
            rounds_to_yield: spin_rounds,
            busy_rounds: 0,
            busy_rounds_before: 0,
            next_tick_ns: 0,
            next_life_check_ns: 0,
            spin_rounds,
        }
    }

    /// A round found something; true if there have been so many that it is time to look at the
    /// clock.
    #[inline(always)]
    pub(crate) fn busy(&mut self) -> bool {
        self.rounds_left = self.step_rounds;
        self.busy_rounds = self.busy_rounds.wrapping_add(1);
        self.busy_rounds.is_multiple_of(BUSY_ROUNDS_PER_TICK)
    }

    /// A round found nothing. False, and it is not counted, if there is more to be done than to
    /// count it.
    #[inline(always)]
    pub(crate) fn pass(&mut self) -> bool {
        let passes = self.rounds_left > 1;
        self.rounds_left -= u32::from(passes);
        passes
    }

    /// A round found nothing; true if it is time to look at the clock. May offer the processor to
    /// others.
    #[inline]
    pub(crate) fn idle(&mut self) -> bool {
        self.rounds_left -= 1;
        self.rounds_left == 0 && self.take_stock()
    }

    /// `rounds_left` came to its end.
    #[cold]
    fn take_stock(&mut self) -> bool {
        let step = self.step_rounds;
        self.rounds_left = step;
        if self.busy_rounds_before != self.busy_rounds {
            self.busy_rounds_before = self.busy_rounds;
            self.rounds_to_yield = self.spin_rounds;
        }
        let look = count_down(&mut self.rounds_to_look, step, ROUNDS_PER_LOOK);
        if count_down(&mut self.rounds_to_yield, step, self.spin_rounds) {
            sleep::yield_now();
        }
        look
    }

    /// Something waits for the next tick.
    pub(crate) fn hurry(&mut self) {
        self.next_tick_ns = 0;
        self.rounds_to_look = 0;
        self.rounds_left = 1;
    }

    /// What is due now; it is taken to be done after that.
    pub(crate) fn due(&mut self, now_ns: u64) -> Due {
        if now_ns < self.next_tick_ns {
            return Due::Nothing;
        }
        self.next_tick_ns = now_ns + TICK_NS;
        if now_ns < self.next_life_check_ns {
            return Due::Tick;
        }
        self.next_life_check_ns = now_ns + LIFE_CHECK_NS;
        Due::LifeCheck
    }
}

/// Counts `step` rounds; true, and the count is `full` again, when it came to its end.
fn count_down(left: &mut u32, step: u32, full: u32) -> bool {
    *left = left.saturating_sub(step);
    let ended = *left == 0;
    if ended {
        *left = full;
    }
    ended
}
