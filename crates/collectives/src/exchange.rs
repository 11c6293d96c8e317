// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The hand-over between ranks: each publishes in steps, each waits for what it reads
//! (docs/collectives.md, clause 3). Used by the algorithms; drives segment.rs.
//!
//! All ranks count the same steps, since each call takes a number of steps that its arguments say.
//! In step `s` a rank may publish once, in flag `s % FLAG_COUNT`. It may do so once all ranks have
//! finished step `s - FLAG_COUNT`, the last use of that flag.

use core::cmp::Ordering;

use weft_memory::{BytesView, BytesViewMut};

use crate::fault::Fault;
use crate::layout::{
    FLAG_COUNT, FLAG_WORDS, INLINE_BYTES, SHORT_CHUNK_BYTES, SHORT_CHUNKS_BYTES, STAGE_BYTES,
};
use crate::segment::{GIVEN_UP, Part, Segment};
use crate::wait::{Patience, Wait};

/// Steps of a long call that a rank may have begun and not finished. [`Exchange::open`] waits for
/// steps that lie further back, so that [`Doubts`] are never wrong.
const LOOK_AHEAD: usize = 4;
// Models have fewer flags, and no long waits.
#[cfg(not(loom))]
const _: () = assert!(FLAG_COUNT > LOOK_AHEAD);

/// Bits of a mark below its step, which tell one call from another.
const CALL_BITS: u32 = 16;

/// What a call is, as far as all ranks must agree on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Call {
    /// Which collective.
    pub(crate) kind: u8,
    /// Its root, or 0.
    pub(crate) root: usize,
    /// Bytes of each rank's part.
    pub(crate) length_bytes: usize,
}

impl Call {
    /// Mixes it to the bits of a mark.
    #[inline(always)]
    fn bits(self) -> u64 {
        let sum = (self.length_bytes as u64) << 18 | (self.root as u64) << 6 | u64::from(self.kind);
        // Multiplication by 2^64 divided by the golden ratio spreads neighbours (Knuth, 6.4).
        sum.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - CALL_BITS)
    }
}

/// Inline data of a flag, copied out.
#[repr(C, align(32))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inline([u64; FLAG_WORDS + 1]);

impl Inline {
    pub(crate) const EMPTY: Self = Self([0; FLAG_WORDS + 1]);

    /// The first so many bytes.
    #[inline(always)]
    pub(crate) fn view(&self, length_bytes: usize) -> BytesView<'_> {
        let (first, _) = BytesView::from_words(&self.0).split_at(length_bytes);
        first
    }

    /// The same to write.
    #[inline(always)]
    pub(crate) fn view_mut(&mut self, length_bytes: usize) -> BytesViewMut<'_> {
        let (first, _) = BytesViewMut::from_words(&mut self.0).split_at(length_bytes);
        first
    }
}

/// One rank's end of the hand-over.
#[derive(Debug)]
pub(crate) struct Exchange {
    segment: Segment,
    rank: usize,
    /// How many ranks there are.
    ranks: usize,
    patience: Patience,
    /// The last step that was begun.
    step: u64,
    /// The bits of the call under way.
    call: u64,
    /// The first step of the call under way.
    first_step: u64,
    /// The step that stands for the last call that this rank left to the MPI for its length.
    left: u64,
    /// All ranks have finished this step.
    all_done: u64,
    /// Why nothing works any more.
    fault: Option<Fault>,
}

impl Exchange {
    pub(crate) fn new(segment: Segment, ranks: usize, rank: usize, patience: Patience) -> Self {
        Self {
            segment,
            rank,
            ranks,
            patience,
            step: 0,
            call: 0,
            first_step: 0,
            left: 0,
            all_done: 0,
            fault: None,
        }
    }

    /// Our rank.
    #[inline(always)]
    pub(crate) fn rank(&self) -> usize {
        self.rank
    }

    /// How many ranks there are.
    #[inline(always)]
    pub(crate) fn ranks(&self) -> usize {
        self.ranks
    }

    /// All ranks but ours, each beginning with the one after it, so that not all look at the same
    /// rank's memory at the same time.
    #[inline(always)]
    pub(crate) fn others(&self) -> impl Iterator<Item = usize> + use<> {
        (self.rank + 1..self.ranks).chain(0..self.rank)
    }

    /// Begins a call.
    ///
    /// # Errors
    /// What an earlier call failed with.
    #[inline(always)]
    pub(crate) fn begin(&mut self, call: Call) -> Result<(), Fault> {
        self.call = call.bits();
        self.first_step = self.step + 1;
        self.fault.map_or(Ok(()), Err)
    }

    /// How much of data of this length, of which all ranks know, a flag stages at most.
    #[inline]
    pub(crate) fn chunk_bytes(&self, length_bytes: usize) -> usize {
        match self.patience.shares_cores() {
            false if length_bytes <= SHORT_CHUNKS_BYTES => SHORT_CHUNK_BYTES,
            _ => STAGE_BYTES,
        }
    }

    /// Takes the next step's number.
    #[inline(always)]
    pub(crate) fn next_step(&mut self) -> u64 {
        self.step += 1;
        self.step
    }

    #[inline(always)]
    fn mark(&self, step: u64) -> u64 {
        step << CALL_BITS | self.call
    }

    /// What a long wait for `rank` in a step asks.
    #[inline(always)]
    fn doubts(&self, rank: usize, step: u64) -> Doubts<'_> {
        Doubts {
            exchange: self,
            rank,
            mark: self.mark(step),
        }
    }

    /// Waits until our flag of this step may be written.
    #[inline(always)]
    pub(crate) fn open(&mut self, wait: &mut dyn Wait, step: u64) -> Result<(), Fault> {
        match step.checked_sub(FLAG_COUNT as u64) {
            Some(last_use) if last_use > self.all_done => self.wait_for_all(wait, step, last_use),
            _ => Ok(()),
        }
    }

    /// Waits, in step `own`, until all ranks have finished another step.
    #[cold]
    fn wait_for_all(&mut self, wait: &mut dyn Wait, own: u64, step: u64) -> Result<(), Fault> {
        let mut all_done = self.step;
        for rank in self.others() {
            let done = &self.segment.control(rank).progress.done;
            let mut seen = 0;
            let look = || {
                // Pairs with the store in `finish`: the rank reads the flag no more.
                seen = done.observe();
                (seen >= step).then_some(Ok(()))
            };
            let doubts = self.doubts(rank, own);
            let outcome = self.patience.until(wait, look, || doubts.settle());
            outcome.map_err(|fault| self.give_up(fault))?;
            all_done = all_done.min(seen);
        }
        self.all_done = all_done.max(step);
        Ok(())
    }

    /// Publishes short data, at most [`INLINE_BYTES`]. The flag must be open.
    #[inline(always)]
    pub(crate) fn publish_inline(&mut self, step: u64, data: BytesView<'_>) {
        debug_assert!(data.length_bytes() <= INLINE_BYTES);
        let flag = self.segment.flag(self.rank, step);
        let length_bytes = data.length_bytes();
        if length_bytes == 8 {
            flag.words[0].set(data.first_word());
        } else if length_bytes > 0 {
            let mut inline = Inline::EMPTY;
            inline.view_mut(length_bytes).fill(0, data);
            for (word, value) in flag.words.iter().zip(inline.0).take(words_of(length_bytes)) {
                word.set(value);
            }
        }
        flag.mark.publish(self.mark(step));
    }

    /// A part of our staging of this step, to write. The flag must be open.
    #[inline]
    pub(crate) fn stage(&self, step: u64, part: Part) -> BytesViewMut<'_> {
        self.segment.stage_mut(self.rank, step, part)
    }

    /// Publishes what was staged.
    #[inline]
    pub(crate) fn publish(&mut self, step: u64) {
        let mark = self.mark(step);
        self.segment.flag(self.rank, step).mark.publish(mark);
    }

    /// Waits until `rank` has published this step.
    #[inline(always)]
    pub(crate) fn heed(
        &mut self,
        wait: &mut dyn Wait,
        rank: usize,
        step: u64,
    ) -> Result<(), Fault> {
        let wanted = self.mark(step);
        let mark = &self.segment.flag(rank, step).mark;
        let look = || {
            let seen = mark.observe();
            if seen == wanted {
                Some(Ok(()))
            } else if seen >> CALL_BITS >= step {
                Some(Err(Fault::Mismatch { rank }))
            } else {
                None
            }
        };
        let doubts = self.doubts(rank, step);
        let outcome = self.patience.until(wait, look, || doubts.settle());
        outcome.map_err(|fault| self.give_up(fault))
    }

    /// Makes all later calls fail, too.
    #[cold]
    pub(crate) fn give_up(&mut self, fault: Fault) -> Fault {
        self.fault = Some(match fault {
            Fault::Left { rank } => Fault::Mismatch { rank },
            fault => fault,
        });
        // Who waits for a rank that has ended finds that by itself.
        if fault != Fault::Stopped {
            Notices(self).give_up();
        }
        fault
    }

    /// The short data that `rank` published in this step, of which we have heard.
    #[inline(always)]
    pub(crate) fn inline(&self, rank: usize, step: u64, length_bytes: usize) -> Inline {
        let flag = self.segment.flag(rank, step);
        let mut inline = Inline::EMPTY;
        if length_bytes <= 8 {
            inline.0[0] = flag.words[0].get();
            return inline;
        }
        let count = words_of(length_bytes);
        for (value, word) in inline.0.iter_mut().zip(&flag.words).take(count) {
            *value = word.get();
        }
        inline
    }

    /// A part of what `rank` staged in this step, of which we have heard.
    #[inline]
    pub(crate) fn staged(&self, rank: usize, step: u64, part: Part) -> BytesView<'_> {
        self.segment.staged(rank, step, part)
    }

    /// Says that we read no flag of this step and of those before it any more.
    #[inline(always)]
    pub(crate) fn finish(&mut self, step: u64) {
        self.segment.control(self.rank).progress.done.publish(step);
    }

    /// Remembers that all ranks have finished this step. Who publishes step `s` has finished
    /// `s - 1`, less the steps that its algorithm publishes ahead of what it reads.
    #[inline(always)]
    pub(crate) fn all_have_finished(&mut self, step: u64) {
        self.all_done = self.all_done.max(step);
    }
}

/// What a rank can do now without waiting. Used by nonblocking.rs.
#[derive(Debug)]
pub(crate) struct Ready<'a>(pub(crate) &'a mut Exchange);

impl Ready<'_> {
    /// Whether anything works still.
    ///
    /// # Errors
    /// What an earlier call failed with.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        self.0.fault.map_or(Ok(()), Err)
    }

    /// Whether our flag of this step may be written: [`Exchange::open`] then does not wait. Our own
    /// reads count, too: who does not wait publishes steps before it has read earlier ones.
    pub(crate) fn is_open(&mut self, step: u64) -> bool {
        let Some(last_use) = step.checked_sub(FLAG_COUNT as u64) else {
            return true;
        };
        let exchange = &mut *self.0;
        if last_use > exchange.all_done {
            // Pairs with the store in `finish`, as in `wait_for_all`.
            let done = |rank| exchange.segment.control(rank).progress.done.observe();
            let least = (0..exchange.ranks).map(done).min().unwrap_or(0);
            exchange.all_done = exchange.all_done.max(least);
        }
        last_use <= exchange.all_done
    }

    /// Whether `rank` has published this step, or another call: [`Exchange::heed`] then does not
    /// wait.
    pub(crate) fn is_published(&self, rank: usize, step: u64) -> bool {
        self.0.segment.flag(rank, step).mark.observe() >> CALL_BITS >= step
    }
}

/// What a rank tells the others beside its steps.
#[derive(Debug)]
pub(crate) struct Notices<'a>(pub(crate) &'a mut Exchange);

impl Notices<'_> {
    /// Tells who waits for this rank that it makes no more calls.
    #[cold]
    pub(crate) fn give_up(&self) {
        let Self(exchange) = self;
        let own = &exchange.segment.control(exchange.rank).progress;
        own.waits.publish(GIVEN_UP);
    }

    /// Counts a call that all ranks leave to the MPI because of its length as a step in which
    /// nobody publishes. Who waits in that step is in another call. Waits for nobody.
    pub(crate) fn leave(&mut self) {
        let Self(exchange) = self;
        let step = exchange.next_step();
        exchange.left = step;
        exchange.finish(step);
        let own = &exchange.segment.control(exchange.rank).progress;
        own.left.publish(step);
    }
}

/// A long wait of one rank for another.
struct Doubts<'a> {
    exchange: &'a Exchange,
    /// For whom.
    rank: usize,
    /// The mark of the step in which it waits.
    mark: u64,
}

impl Doubts<'_> {
    /// Tells in which step this rank waits for so long, by its mark, and finds out whether the
    /// other one can still come there. A rank that waits in a later step, or has left one to the
    /// MPI, published all before, and finished all but the last [`LOOK_AHEAD`], which the caller
    /// then looks for.
    ///
    /// # Errors
    /// [`Fault::Mismatch`] if it can not; [`Fault::Left`] if it is in the MPI, in a call that this
    /// rank has just begun.
    #[cold]
    fn settle(&self) -> Result<(), Fault> {
        let Self {
            exchange,
            rank,
            mark,
        } = *self;
        let segment = &exchange.segment;
        segment.control(exchange.rank).progress.waits.publish(mark);
        let theirs = &segment.control(rank).progress;
        let (waits, left) = (theirs.waits.observe(), theirs.left.observe());
        // Ranks that make the same calls leave the same steps.
        if left > exchange.left {
            let can_follow = left == exchange.first_step && waits != GIVEN_UP;
            return Err(match can_follow {
                true => Fault::Left { rank },
                false => Fault::Mismatch { rank },
            });
        }
        let is_elsewhere = match (waits >> CALL_BITS).cmp(&(mark >> CALL_BITS)) {
            Ordering::Less => false,
            Ordering::Equal => waits != mark,
            Ordering::Greater => true,
        };
        if is_elsewhere {
            return Err(Fault::Mismatch { rank });
        }
        Ok(())
    }
}

/// Words that hold so many bytes, at most those of a flag.
#[inline(always)]
fn words_of(length_bytes: usize) -> usize {
    length_bytes.div_ceil(8).min(FLAG_WORDS)
}
