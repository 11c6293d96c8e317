// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether something was lost lately: then packets are short, and messages ask (srd-protocol 7.5,
//! 19.6). Owned by sent.

/// So many sequences count as what leaves after a loss (chosen: where 1 % is lost hardly any packet
/// is long).
const SEQUENCES: u16 = 1024;

/// See the module. In few bits: remotes are many.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RecentLosses {
    /// So many of the next sequences leave after a loss.
    left: u16,
    /// The same if all losses that may still prove false are.
    surely_left: u16,
}

impl RecentLosses {
    /// Something counts as lost.
    pub(crate) fn on_lost(&mut self) {
        self.left = SEQUENCES;
    }

    /// No packet was lost of those that were taken for lost lately.
    pub(crate) fn undo(&mut self) {
        self.left = self.surely_left;
    }

    /// They were really lost.
    pub(crate) fn keep(&mut self) {
        self.surely_left = self.left;
    }

    /// A sequence leaves for the first time. Fast path.
    #[inline]
    pub(crate) fn on_sent(&mut self) {
        self.left = self.left.saturating_sub(1);
        self.surely_left = self.surely_left.saturating_sub(1);
    }

    /// Whether the last loss is long ago. Fast path.
    #[inline]
    pub(crate) fn are_none(&self) -> bool {
        self.left == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_false_loss_is_taken_back_and_a_real_one_before_it_is_not() {
        let mut losses = RecentLosses::default();
        losses.on_lost();
        losses.undo();
        assert!(losses.are_none());
        losses.on_lost();
        losses.keep();
        for _ in 0..SEQUENCES / 2 {
            losses.on_sent();
        }
        losses.on_lost();
        losses.undo();
        for _ in 0..SEQUENCES / 2 {
            assert!(!losses.are_none());
            losses.on_sent();
        }
        assert!(losses.are_none());
    }
}
