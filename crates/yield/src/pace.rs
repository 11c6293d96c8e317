// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether a call of sched_yield pauses or yields. One for each thread.

/// How long a thread pauses before it looks whether somebody wants its core. Chosen: a true yield
/// and a look take about 0.5 us, so 2.5 percent of the time; who else is on the core waits this
/// long at most for its first turn.
pub const LOOK_NS: u64 = 20_000;

/// Calls that truly yield once somebody was seen on the core, before the next look. Chosen: some 30
/// us, so that who shares the core gets nearly every turn.
const SHARED_CALLS: u32 = 64;

/// Pauses between two looks at the clock. Chosen: half a microsecond.
const PAUSES_A_CLOCK: u32 = 16;

/// What a call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The processor's hint for waiting loops.
    Pause,
    /// The system call.
    Yield,
}

/// What a thread knows of its core.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Calls until something is looked at: the clock while alone, the count while not.
    calls_left: u32,
    is_shared: bool,
    /// When the count was last looked at.
    looked_ns: u64,
    /// The count then.
    taken_off: u64,
}

impl Pace {
    /// Of a thread of which nothing is known: it yields until it was seen alone.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            calls_left: SHARED_CALLS,
            is_shared: true,
            looked_ns: 0,
            taken_off: 0,
        }
    }

    /// Decides for one call. `now_ns` is the clock, `taken_off` the kernel's count.
    pub fn next(&mut self, now_ns: impl Fn() -> u64, taken_off: impl Fn() -> u64) -> Step {
        self.calls_left -= 1;
        if self.calls_left > 0 {
            return if self.is_shared {
                Step::Yield
            } else {
                Step::Pause
            };
        }
        if self.is_shared {
            self.look(now_ns(), taken_off());
            return Step::Yield;
        }
        self.calls_left = PAUSES_A_CLOCK;
        let now = now_ns();
        if now.wrapping_sub(self.looked_ns) < LOOK_NS {
            return Step::Pause;
        }
        // The count is taken before the yield, so whoever comes by it is seen at the next look.
        self.look(now, taken_off());
        Step::Yield
    }

    fn look(&mut self, now_ns: u64, taken_off: u64) {
        self.is_shared = taken_off != self.taken_off;
        self.taken_off = taken_off;
        self.looked_ns = now_ns;
        self.calls_left = if self.is_shared {
            SHARED_CALLS
        } else {
            PAUSES_A_CLOCK
        };
    }
}

impl Default for Pace {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// A thread that calls sched_yield again and again, 30 ns a call.
    struct Thread {
        pace: Pace,
        now_ns: Cell<u64>,
        taken_off: Cell<u64>,
    }

    impl Thread {
        fn new() -> Self {
            Self {
                pace: Pace::new(),
                now_ns: Cell::new(1_000_000),
                taken_off: Cell::new(7),
            }
        }

        /// Calls for so long; `on_yield` is how often each true yield gives the core away. Returns
        /// the true yields, and the longest time between two of them.
        fn calls_for(&mut self, time_ns: u64, on_yield: u64) -> (u64, u64) {
            let end = self.now_ns.get() + time_ns;
            let (mut yields, mut longest, mut last) = (0, 0, self.now_ns.get());
            while self.now_ns.get() < end {
                let step = self
                    .pace
                    .next(|| self.now_ns.get(), || self.taken_off.get());
                let mut cost_ns = 30;
                if step == Step::Yield {
                    longest = longest.max(self.now_ns.get() - last);
                    last = self.now_ns.get();
                    yields += 1;
                    cost_ns = 400;
                    self.taken_off.set(self.taken_off.get() + on_yield);
                }
                self.now_ns.set(self.now_ns.get() + cost_ns);
            }
            (yields, longest.max(self.now_ns.get() - last))
        }

        fn alone() -> Self {
            let mut thread = Self::new();
            thread.calls_for(100_000, 0);
            thread
        }
    }

    #[test]
    fn a_thread_of_which_nothing_is_known_yields() {
        let mut thread = Thread::new();
        let (yields, _) = thread.calls_for(20_000, 0);
        assert_eq!(yields, 50, "400 ns each");
    }

    #[test]
    fn a_thread_alone_pauses_and_yields_every_20_us() {
        let mut thread = Thread::alone();
        let (yields, longest) = thread.calls_for(1_000_000, 0);
        assert!((45..=50).contains(&yields), "{yields}");
        assert!(longest < LOOK_NS + 1_000, "{longest}");
    }

    #[test]
    fn who_shares_the_core_gets_every_turn_after_the_first() {
        let mut thread = Thread::alone();
        // Somebody comes: the next true yield, 20 us later at most, is his, and 20 us later it is
        // seen.
        thread.calls_for(2 * LOOK_NS + 2_000, 1);
        let (yields, longest) = thread.calls_for(400_000, 1);
        assert_eq!((yields, longest), (1_000, 400));
    }

    #[test]
    fn who_was_taken_off_once_soon_pauses_again() {
        let mut thread = Thread::alone();
        thread.taken_off.set(8);
        let (yields, _) = thread.calls_for(1_000_000, 0);
        assert!((100..=130).contains(&yields), "64 more: {yields}");
    }

    #[test]
    fn a_clock_or_a_count_that_wraps_harms_nobody() {
        let mut thread = Thread::alone();
        thread.now_ns.set(u64::MAX / 2);
        thread.taken_off.set(0);
        let (yields, _) = thread.calls_for(1_000_000, 0);
        assert!(yields < 200, "{yields}");
    }
}
