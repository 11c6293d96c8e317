// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Quick adaptation: a window that is many times too large becomes what was delivered (srd-protocol
//! 10.5). Called by window. Source: NSCC of the UEC specification 1.0.

use weft_wire::time::{Instant, Nanos};

/// What was seen since the last look, and in the time before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QuickAdaptation {
    end_ns: Instant,
    delivered_bytes: u64,
    wanted: bool,
    /// Something was late by several targets.
    late: bool,
    /// The least delay since the window was last judged, and in the time before that.
    least_ns: Nanos,
    least_before_ns: Nanos,
    /// Bytes that were in flight when the window was adapted: what they tell is old news.
    stale_bytes: u64,
}

impl QuickAdaptation {
    /// Nothing was seen.
    pub(crate) fn new() -> Self {
        Self {
            end_ns: Instant::START,
            delivered_bytes: 0,
            wanted: false,
            late: false,
            least_ns: Nanos::MAX,
            least_before_ns: Nanos::MAX,
            stale_bytes: 0,
        }
    }

    /// So many bytes were acknowledged.
    #[inline]
    pub(crate) fn on_acknowledged(&mut self, bytes: u64) {
        self.delivered_bytes += bytes;
        self.stale_bytes = self.stale_bytes.saturating_sub(bytes);
    }

    /// A packet was delayed for so long.
    #[inline]
    pub(crate) fn on_delay(&mut self, delay_ns: Nanos, target_ns: Nanos) {
        self.late |= delay_ns > 4 * target_ns;
        self.least_ns = self.least_ns.min(delay_ns);
    }

    /// Something was lost.
    pub(crate) fn on_lost(&mut self) {
        self.wanted = true;
    }

    /// Whether something was lost since the last look.
    pub(crate) fn is_after_loss(&self) -> bool {
        self.wanted
    }

    /// Nothing was lost after all.
    pub(crate) fn on_none_lost(&mut self) {
        self.wanted = false;
        self.stale_bytes = 0;
    }

    /// Whether what is heard tells of a window that was adapted since.
    #[inline]
    pub(crate) fn is_stale(&self) -> bool {
        self.stale_bytes > 0
    }

    /// Whether a path showed no queue to speak of lately. Then a queue elsewhere is for the choice
    /// of paths to mend: a smaller window would leave the free ones idle as well.
    pub(crate) fn some_path_is_free(&self, target_ns: Nanos) -> bool {
        self.least_ns.min(self.least_before_ns) < target_ns
    }

    /// Looks back, once in `every_ns`. Answers what was delivered, if that is at most
    /// `least_bytes` and the window should be no more.
    #[inline]
    pub(crate) fn look_back(
        &mut self,
        now_ns: Instant,
        every_ns: Nanos,
        target_ns: Nanos,
        least_bytes: u64,
    ) -> Option<u64> {
        if now_ns < self.end_ns {
            return None;
        }
        let before = *self;
        *self = Self {
            end_ns: now_ns + every_ns,
            least_before_ns: before.least_ns,
            stale_bytes: before.stale_bytes,
            ..Self::new()
        };
        let begun = before.end_ns != Instant::START;
        let all_late = before.late && before.least_ns > target_ns;
        let is_due = begun && (before.wanted || all_late);
        (is_due && before.delivered_bytes <= least_bytes).then_some(before.delivered_bytes)
    }

    /// The window was adapted while so much was in flight.
    pub(crate) fn on_adapted(&mut self, in_flight_bytes: u64) {
        self.stale_bytes = in_flight_bytes;
    }
}
