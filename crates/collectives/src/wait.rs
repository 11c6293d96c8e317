// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a rank waits: it looks, then pauses, then asks [`Wait`], which drives other work, yields,
//! sleeps, and tells when to give up. Used by exchange.rs.

use crate::fault::{Fault, Stopped};

/// Drives other work while a rank waits, and tells when to give up. May be called in the middle of
/// any call of a team; must not call the team.
pub trait Wait {
    /// Called again and again while nothing comes; `spins` counts the looks since the wait began.
    /// A good one drives progress always, yields from some thousand spins on (at once where ranks
    /// share cores), and sleeps for some microseconds when the wait becomes long.
    ///
    /// # Errors
    /// [`Stopped`] if what we wait for will never come.
    fn pause(&mut self, spins: u32) -> Result<(), Stopped>;
}

/// Looks between two doubts whether what a rank waits for can still come, less one; a power of two
/// less one. Chosen: a millisecond or more, far longer than ranks in step wait for each other.
#[cfg(not(loom))]
const DOUBT_MASK: u32 = (1 << 14) - 1;

/// How many looks come before what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// Looks without a call of [`Wait::pause`].
    bare_spins: u32,
    /// Looks between two calls of [`Wait::pause`], less one; a power of two less one.
    pause_mask: u32,
    /// [`DOUBT_MASK`]; a model may doubt at each look.
    #[cfg(loom)]
    doubt_mask: u32,
}

impl Patience {
    /// For ranks that have a core each. Chosen: looks without calls last half a microsecond or
    /// more, several times what a line takes; calls come each microsecond or two. A pause after
    /// each look leaves the core to a rank on its other thread.
    #[cfg(not(loom))]
    const OWN_CORES: Self = Self {
        bare_spins: 48,
        pause_mask: 31,
    };
    /// For ranks that share cores: whoever waits stands in the way of whom it waits for. Chosen:
    /// some looks, since the other core's rank may be about to answer.
    #[cfg(not(loom))]
    const OVERSUBSCRIBED: Self = Self {
        bare_spins: 4,
        pause_mask: 0,
    };

    #[cfg(not(loom))]
    pub(crate) fn new(oversubscribed: bool) -> Self {
        if oversubscribed {
            Self::OVERSUBSCRIBED
        } else {
            Self::OWN_CORES
        }
    }

    /// A model must be told of each look. One in which ranks doubt does so at each, too; in others
    /// no wait is long.
    #[cfg(loom)]
    pub(crate) fn new(doubts: bool) -> Self {
        Self {
            bare_spins: 0,
            pause_mask: 0,
            doubt_mask: if doubts { 0 } else { u32::MAX },
        }
    }

    #[cfg(loom)]
    fn doubt_mask(self) -> u32 {
        self.doubt_mask
    }

    #[cfg(not(loom))]
    fn doubt_mask(self) -> u32 {
        DOUBT_MASK
    }

    /// Whether ranks share cores, so that each step may cost a turn.
    pub(crate) fn shares_cores(self) -> bool {
        self.pause_mask == 0
    }

    /// Looks until there is an answer. A long wait asks `doubt` now and then; its fault ends the
    /// wait, unless a last look finds an answer.
    #[inline(always)]
    pub(crate) fn until(
        self,
        wait: &mut dyn Wait,
        mut look: impl FnMut() -> Option<Result<(), Fault>>,
        doubt: impl FnMut() -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        for _ in 0..=self.bare_spins {
            if let Some(answer) = look() {
                return answer;
            }
            #[cfg(not(loom))]
            core::hint::spin_loop();
        }
        self.until_after_pauses(wait, look, doubt)
    }

    #[cold]
    fn until_after_pauses(
        self,
        wait: &mut dyn Wait,
        mut look: impl FnMut() -> Option<Result<(), Fault>>,
        mut doubt: impl FnMut() -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let mut spins = self.bare_spins;
        loop {
            spins = spins.saturating_add(1);
            if spins & self.pause_mask == 0 || spins == u32::MAX {
                wait.pause(spins)?;
            } else {
                core::hint::spin_loop();
            }
            let doubts = spins & self.doubt_mask() == 0 || spins == u32::MAX;
            let doubt = if doubts { doubt() } else { Ok(()) };
            // What was published before the doubt is seen.
            if let Some(answer) = look() {
                return answer;
            }
            doubt?;
        }
    }
}
