// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether it is worth while to try to read data of a middle length in place: if the ranks' memory
//! is not shared, a try costs a step for nothing. Pure; a communicator has one, kept by served,
//! asked and told by limits.
//!
//! All ranks see alike how a try ends, so all decide alike about the next one.

use weft_facts::collective::NAMES;

use crate::calls::Call;

/// Refusals in a row after which tries become rare. Chosen: each try offers the memory, and with so
/// many offers memory of 8 KiB is shared (crates/heap/src/offers.rs).
const REFUSALS: u16 = 200;

/// Then one call of so many is a try. Chosen: a step, of which short data take one or two, then
/// costs less than one part in ten.
const CALLS_PER_TRY: u8 = 16;

/// The tries of one kind of call.
#[derive(Clone, Copy, Debug, Default)]
struct Recent {
    refusals: u16,
    calls: u8,
}

/// By call.
#[derive(Clone, Copy, Debug, Default)]
pub struct InPlaceTries([Recent; NAMES.len()]);

impl InPlaceTries {
    /// Whether this call is a try. Fast path.
    #[inline]
    pub fn is_due(&mut self, call: Call) -> bool {
        let Some(recent) = self.0.get_mut(call as usize) else {
            return false;
        };
        if recent.refusals < REFUSALS {
            return true;
        }
        recent.calls = (recent.calls + 1) % CALLS_PER_TRY;
        recent.calls == 0
    }

    /// How a try ended. Fast path.
    #[inline]
    pub fn note(&mut self, call: Call, is_refused: bool) {
        if let Some(recent) = self.0.get_mut(call as usize) {
            recent.refusals = match is_refused {
                true => recent.refusals.saturating_add(1),
                false => 0,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of some calls are tries, each of which ends alike.
    fn tries_of(tries: &mut InPlaceTries, call: Call, calls: usize, is_refused: bool) -> usize {
        let is_try = |_: &usize| {
            let is_due = tries.is_due(call);
            if is_due {
                tries.note(call, is_refused);
            }
            is_due
        };
        (0..calls).filter(is_try).count()
    }

    #[test]
    fn calls_are_tries_until_they_are_refused_and_again_once_one_is_not() {
        let mut tries = InPlaceTries::default();
        assert_eq!(tries_of(&mut tries, Call::Bcast, 100, false), 100);
        assert_eq!(tries_of(&mut tries, Call::Bcast, 200 + 160, true), 200 + 10);
        assert_eq!(
            tries_of(&mut tries, Call::Gather, 5, true),
            5,
            "another call"
        );
        let again = tries_of(&mut tries, Call::Bcast, 16 + 100, false);
        assert!(again > 100, "{again} of 116 calls once one is not refused");
    }

    #[test]
    fn refusals_are_counted_without_end() {
        let mut tries = InPlaceTries::default();
        let count = tries_of(&mut tries, Call::Scatter, 100_000, true);
        assert_eq!(count, 200 + (100_000 - 200) / 16);
    }
}
