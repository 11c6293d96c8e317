// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets that were sent again before they counted as lost: by a tail probe or a time-out
//! (srd-protocol 8.3, 8.4). Owned by sender, asked by loss.
//!
//! If the first transmission was lost, that is a loss like any other. If it was not, the remote
//! reports a duplicate, which says nothing of other losses (srd-protocol 8.7).

/// See the module. In few bits: remotes are many.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Repeats {
    /// The next sequence when the last one left, of which 16 bits are kept: it is near.
    next: u16,
    /// Those of which nobody knows whether the remote needed them.
    count: u8,
}

impl Repeats {
    /// One leaves while `next` is the next sequence.
    pub(crate) fn on_repeated(&mut self, next: u64) {
        self.next = next as u16;
        self.count = self.count.saturating_add(1);
    }

    /// The remote took one of them for the first transmission, so that it is a duplicate only if
    /// that comes after all.
    pub(crate) fn on_needed(&mut self) {
        self.count = self.count.saturating_sub(1);
    }

    /// So many packets came twice. Answers how many of them were taken for lost.
    pub(crate) fn take_duplicates(&mut self, count: u8) -> u64 {
        let own = count.min(self.count);
        self.count -= own;
        (count - own).into()
    }

    /// All below `first` is acknowledged. If that is something that left after the last repeat, no
    /// duplicate of one comes any more.
    #[inline]
    pub(crate) fn on_acknowledged(&mut self, first: u64) {
        if (first as u16).wrapping_sub(self.next) as i16 > 0 {
            self.count = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duplicate_of_a_repeat_gives_no_loss_back_and_any_other_does() {
        let mut repeats = Repeats::default();
        assert_eq!(repeats.take_duplicates(1), 1);
        repeats.on_repeated(10);
        repeats.on_repeated(12);
        repeats.on_acknowledged(12);
        assert_eq!(repeats.take_duplicates(3), 1);
        assert_eq!(repeats.take_duplicates(1), 1);
    }

    #[test]
    fn what_came_after_all_gives_back_the_loss_that_its_repeat_was_counted_as() {
        let mut repeats = Repeats::default();
        repeats.on_repeated(10);
        repeats.on_needed();
        assert_eq!(repeats.take_duplicates(1), 1);
    }

    #[test]
    fn a_duplicate_that_was_lost_is_not_waited_for_without_end() {
        let mut repeats = Repeats::default();
        repeats.on_repeated((1 << 16) - 1);
        repeats.on_acknowledged(1 << 16);
        assert_eq!(repeats.take_duplicates(1), 1);
    }
}
