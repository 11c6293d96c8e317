// SPDX-License-Identifier: Apache-2.0 OR MIT
//! When somebody looked into a socket last, without a reading of the clock for each look in vain:
//! it gets the time of the next reading. For [`crate::connected_polling`].

use weft_srd::{Instant, Nanos};

/// The time of the last look, as far as it is known.
#[derive(Debug, Default)]
pub(crate) struct LastLook {
    at_ns: Instant,
    /// A look in vain since then has no time yet.
    found_nothing: bool,
}

impl LastLook {
    /// A look in vain. Fast path.
    #[inline]
    pub(crate) fn on_vain(&mut self) {
        self.found_nothing = true;
    }

    /// The clock was read. Fast path.
    #[inline]
    pub(crate) fn on_clock(&mut self, now_ns: Instant) {
        if self.found_nothing {
            self.at_ns = now_ns;
            self.found_nothing = false;
        }
    }

    /// Something was found; answers whether the last look was longer ago than `than_ns`. Fast path.
    #[inline]
    pub(crate) fn was_longer_ago(&mut self, now_ns: Instant, than_ns: Nanos) -> bool {
        // A look in vain since then was later than the last reading of the clock.
        !std::mem::take(&mut self.found_nothing) && now_ns > self.at_ns + than_ns
    }
}
