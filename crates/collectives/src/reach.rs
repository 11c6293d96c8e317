// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reading other ranks' data where they lie, in place of their copies in the segment
//! (docs/collectives.md, clause 4.9). Implemented by whoever makes the team; used by direct.rs and
//! sliced.rs.

use weft_memory::{BytesView, BytesViewMut};

use crate::exchange::Exchange;
use crate::fault::Fault;

/// Words of a [`Shown`].
const SHOWN_WORDS: usize = 3;

/// Where a rank's data lie: their length is the second word; the others mean something to [`Reach`]
/// alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Shown(pub [u64; SHOWN_WORDS]);

impl Shown {
    /// What a rank publishes whose data cannot be read in place.
    pub(crate) const NOTHING: Self = Self([0; SHOWN_WORDS]);

    /// Whether there is anything.
    pub(crate) fn is_there(self) -> bool {
        self != Self::NOTHING
    }

    /// How long it says that they are.
    pub(crate) fn length_bytes(self) -> u64 {
        let Self([_, length_bytes, _]) = self;
        length_bytes
    }
}

/// How ranks read each other's data where they lie.
pub trait Reach {
    /// Where others find these bytes of ours until the call ends; `None` if they cannot read them
    /// in place now. Never all zero.
    fn show(&mut self, bytes: BytesView<'_>) -> Option<Shown>;

    /// Sees to it that `rank`'s bytes from an offset on can be read; answers how many in a row, 0
    /// if none.
    fn prepare(&mut self, rank: usize, shown: Shown, offset_bytes: usize) -> usize;

    /// `rank`'s bytes from an offset on, at most so many: those that were prepared last of this
    /// rank, none before. Their owner may change them at any time.
    fn view(
        &self,
        rank: usize,
        shown: Shown,
        offset_bytes: usize,
        most_bytes: usize,
    ) -> BytesView<'_>;
}

/// Words that a rank publishes: where its data lie, and whether they stay as they are.
const PUBLISHED_WORDS: usize = SHOWN_WORDS + 1;

/// What a rank sees of another's data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Seen {
    /// They can be read in place.
    pub(crate) is_there: bool,
    /// They stay as they are until the call ends: the result goes elsewhere.
    pub(crate) stays: bool,
}

/// What the ranks show of their data in one call, as one of them sees it.
pub(crate) struct Sight<'a> {
    pub(crate) reach: &'a mut dyn Reach,
    /// By rank.
    pub(crate) shown: &'a mut [Shown],
}

impl Sight<'_> {
    /// Publishes where our data lie, if others can read them, and whether they stay as they are.
    /// The step's flag must be open.
    pub(crate) fn show(
        &mut self,
        exchange: &mut Exchange,
        step: u64,
        data: BytesView<'_>,
        stays: bool,
    ) {
        let Shown(words) = self.reach.show(data).unwrap_or(Shown::NOTHING);
        let mut published = [u64::from(stays); PUBLISHED_WORDS];
        published[..SHOWN_WORDS].copy_from_slice(&words);
        exchange.publish_inline(step, BytesView::from_words(&published));
    }

    /// What `rank` showed in a step of which we have heard.
    pub(crate) fn look(&mut self, exchange: &Exchange, rank: usize, step: u64) -> Seen {
        let length_bytes = PUBLISHED_WORDS * size_of::<u64>();
        let inline = exchange.inline(rank, step, length_bytes);
        let view = inline.view(length_bytes);
        let word = |at: usize| {
            view.part(at * size_of::<u64>(), size_of::<u64>())
                .first_word()
        };
        self.shown[rank] = Shown(std::array::from_fn(word));
        Seen {
            is_there: self.shown[rank].is_there(),
            stays: word(SHOWN_WORDS) == 1,
        }
    }

    /// How many of `rank`'s bytes lie in a row from an offset on; at least one.
    ///
    /// # Errors
    /// [`Fault::Unreachable`], which ends the team.
    pub(crate) fn prepare(
        &mut self,
        exchange: &mut Exchange,
        rank: usize,
        offset_bytes: usize,
    ) -> Result<usize, Fault> {
        match self.reach.prepare(rank, self.shown[rank], offset_bytes) {
            0 => Err(exchange.give_up(Fault::Unreachable { rank })),
            count => Ok(count),
        }
    }

    /// What was prepared, at most so many bytes.
    pub(crate) fn view(
        &self,
        rank: usize,
        offset_bytes: usize,
        most_bytes: usize,
    ) -> BytesView<'_> {
        self.reach
            .view(rank, self.shown[rank], offset_bytes, most_bytes)
    }

    /// Copies `rank`'s bytes from an offset on, as many as the target has.
    ///
    /// # Errors
    /// As [`Self::prepare`].
    pub(crate) fn pull(
        &mut self,
        exchange: &mut Exchange,
        rank: usize,
        offset_bytes: usize,
        target: &mut BytesViewMut<'_>,
    ) -> Result<(), Fault> {
        let mut done_bytes = 0;
        while done_bytes < target.length_bytes() {
            let from = offset_bytes + done_bytes;
            self.prepare(exchange, rank, from)?;
            let left_bytes = target.length_bytes() - done_bytes;
            let copied = target.fill(done_bytes, self.view(rank, from, left_bytes));
            if copied == 0 {
                return Err(exchange.give_up(Fault::Unreachable { rank }));
            }
            done_bytes += copied;
        }
        Ok(())
    }
}
