// SPDX-License-Identifier: Apache-2.0 OR MIT
//! When a flow on which nothing happens gives its memory back, and when it folds (srd-protocol
//! 6.6).

use weft_wire::time::{Instant, Nanos};
/// Idleness after which buffers are given back (chosen).
const TRIM_AFTER_NS: Nanos = Nanos(1_000_000_000);

/// Of one flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Idleness {
    active_ns: Instant,
    trimmed: bool,
}

/// What an idle flow is to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// Give its buffers back.
    Trim,
    /// Keep nothing but what a new beginning needs.
    Fold,
}

impl Idleness {
    pub(crate) fn new(now_ns: Instant) -> Self {
        Self {
            active_ns: now_ns,
            trimmed: false,
        }
    }

    /// Something is done for the owner or by the remote.
    #[inline]
    pub(crate) fn touch(&mut self, now_ns: Instant) {
        *self = Self::new(now_ns);
    }

    /// When to look at the flow; `fold_after_ns` is what the settings say.
    #[inline]
    pub(crate) fn due_ns(&self, fold_after_ns: Nanos) -> Instant {
        let wait_ns = if self.trimmed {
            fold_after_ns
        } else {
            TRIM_AFTER_NS.min(fold_after_ns)
        };
        self.active_ns.saturating_add(wait_ns)
    }

    /// That time has come: what to do with a flow that is idle; nothing with one that is not.
    pub(crate) fn step(
        &mut self,
        is_idle: bool,
        now_ns: Instant,
        fold_after_ns: Nanos,
    ) -> Option<Step> {
        if !is_idle {
            self.active_ns = now_ns;
            return None;
        }
        if now_ns - self.active_ns >= fold_after_ns {
            return Some(Step::Fold);
        }
        self.trimmed = true;
        Some(Step::Trim)
    }
}
