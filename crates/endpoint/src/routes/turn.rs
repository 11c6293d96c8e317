// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How often a round of progress looks at the routes after the first one. Such a look asks the
//! kernel, which costs as much as fifty rounds of shared memory. So a network on which nothing
//! happens must not slow local messages down.
//!
//! routes.rs asks in every round of progress.

/// After so many looks that brought nothing, the number of rounds between two looks doubles.
/// Chosen: a round trip of a fast network takes some tens of looks, so a process that only waits
/// for an answer looks in every round.
const PATIENCE_LOOKS: u32 = 64;
/// The most rounds from one look to the next. Chosen: an empty round of shared memory takes 8 to 10
/// ns. So many rounds take as long as one look, and looking takes at most half of the time.
const LONGEST_ROUNDS: u32 = 32;

/// As [`LONGEST_ROUNDS`], while no known remote is reached by these routes: then they can bring
/// only first contacts. Chosen: looking costs a tenth of a round, and other processes still reach
/// soon a process that seldom makes progress.
const LONGEST_ROUNDS_UNUSED: u32 = 256;

/// After so many looks during which the first route brought nothing, the process probably waits for
/// nothing from that route. Chosen: some twenty round trips of a network.
const UNDISTURBED_LOOKS: u32 = 64;

/// When the next look at the routes after the first one is due.
#[derive(Debug)]
pub(super) struct Turn {
    /// Rounds until the next look.
    left_rounds: u32,
    /// Rounds between looks at present.
    pause_rounds: u32,
    /// Looks without an event since the pause last changed.
    empty_looks: u32,
    /// Looks since the first route brought something.
    undisturbed_looks: u32,
    /// A remote is known that one of these routes leads to.
    in_use: bool,
}

impl Default for Turn {
    fn default() -> Self {
        Self {
            left_rounds: 1,
            pause_rounds: 1,
            empty_looks: 0,
            undisturbed_looks: 0,
            in_use: false,
        }
    }
}

impl Turn {
    /// Whether no look is due in this round.
    #[inline(always)]
    pub(super) fn is_not_yet(&self) -> bool {
        self.left_rounds > 1
    }

    /// Counts a round; true when a look is due. Fast path.
    #[inline(always)]
    pub(super) fn has_come(&mut self) -> bool {
        self.left_rounds -= 1;
        self.left_rounds == 0
    }

    /// The first route has brought something.
    #[inline(always)]
    pub(super) fn disturb(&mut self) {
        self.undisturbed_looks = 0;
    }

    /// Whether the first route has brought nothing for a while: then a look may take longer, since
    /// no local message waits for its end.
    #[inline]
    pub(super) fn is_undisturbed(&self) -> bool {
        self.undisturbed_looks >= UNDISTURBED_LOOKS
    }

    /// Notes what a look brought.
    #[inline]
    pub(super) fn after(&mut self, event_count: usize) {
        self.undisturbed_looks = self.undisturbed_looks.saturating_add(1);
        if event_count > 0 {
            self.now();
            return;
        }
        let longest = if self.in_use {
            LONGEST_ROUNDS
        } else {
            LONGEST_ROUNDS_UNUSED
        };
        self.empty_looks += 1;
        if self.empty_looks >= PATIENCE_LOOKS {
            self.empty_looks = 0;
            self.pause_rounds = (2 * self.pause_rounds).min(longest);
        }
        self.left_rounds = self.pause_rounds;
    }

    /// An operation was started on one of these routes: look in the next round.
    #[inline(always)]
    pub(super) fn now(&mut self) {
        (self.left_rounds, self.pause_rounds, self.empty_looks) = (1, 1, 0);
    }

    /// A remote is known that one of these routes leads to.
    pub(super) fn start_using(&mut self) {
        self.in_use = true;
        self.now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds_to_next(turn: &mut Turn) -> u32 {
        (1..).find(|_| turn.has_come()).expect("a turn comes")
    }

    #[test]
    fn a_quiet_network_is_looked_at_less_often_but_never_forgotten() {
        for (in_use, longest) in [(false, LONGEST_ROUNDS_UNUSED), (true, LONGEST_ROUNDS)] {
            let mut turn = Turn::default();
            if in_use {
                turn.start_using();
            }
            for _ in 0..PATIENCE_LOOKS * 20 {
                assert!(rounds_to_next(&mut turn) <= longest);
                turn.after(0);
            }
            assert_eq!(rounds_to_next(&mut turn), longest);
            turn.after(1);
            assert_eq!(rounds_to_next(&mut turn), 1);
        }
    }

    #[test]
    fn who_hears_of_nobody_local_for_a_while_may_be_kept_for_a_longer_look() {
        let mut turn = Turn::default();
        for _ in 0..2 {
            for _ in 0..UNDISTURBED_LOOKS {
                assert!(!turn.is_undisturbed());
                turn.after(1);
            }
            assert!(turn.is_undisturbed());
            turn.disturb();
        }
    }

    #[test]
    fn a_network_that_comes_into_use_is_looked_at_in_the_next_round() {
        let mut turn = Turn::default();
        for _ in 0..PATIENCE_LOOKS * 20 {
            rounds_to_next(&mut turn);
            turn.after(0);
        }
        turn.start_using();
        assert_eq!(rounds_to_next(&mut turn), 1);
    }

    #[test]
    fn what_is_started_is_looked_at_in_the_next_round() {
        let mut turn = Turn::default();
        for _ in 0..PATIENCE_LOOKS * 20 {
            rounds_to_next(&mut turn);
            turn.after(0);
        }
        turn.now();
        assert_eq!(rounds_to_next(&mut turn), 1);
    }
}
