// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who has claimed which chunk of a message that both of its processes copy (docs/shm-layout.md,
//! clause 7a): the receiver reads chunks out of the sender's memory from the front, the sender
//! writes chunks into the receiver's memory from the back. The claims lie in the states of a pipe
//! that is lent for them. Driven by shm's cooperative copy.
//!
//! Each word carries a ticket, another one for each message: a sender that has not yet heard that a
//! message is over takes no chunk of the next one for it.

use weft_memory::Mapping;
use weft_os::crash_point;

use crate::layout::PIPE_CHUNKS;
use crate::pipe::ChunkState;
use crate::sync::{AtomicU64, Ordering};

/// Set in the word of every chunk, and never in a pipe's own states. Specified.
const CLAIM: u64 = 1 << 63;

/// Bits of a word below its ticket. Specified.
const STAGE_BITS: u32 = 8;

/// Tickets have so many bits. Specified.
const TICKET_MASK: u64 = (1 << 40) - 1;

/// How far a chunk is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChunkStage {
    /// Nobody copies it.
    Free = 0,
    /// The receiver has copied it, or does.
    Own,
    /// The sender copies it.
    Helped,
    /// The sender has copied it.
    Done,
    /// None of this message: over, or its process wrote what no word can be.
    Other,
}

/// Most chunks of one message. Specified by the states of a pipe.
pub const CLAIM_LIMIT: usize = PIPE_CHUNKS;

/// The chunks of one message, as either of its processes sees them.
#[derive(Debug)]
pub struct ChunkClaims {
    states: *const ChunkState,
    base: u64,
    count: usize,
    /// Holds the mapping; absent only over a test's heap.
    _keep: Option<Mapping>,
}

// SAFETY: the pointer belongs to the process, and shared words are atomic.
unsafe impl Send for ChunkClaims {}

impl ChunkClaims {
    /// The claims in the states of this pipe; None if there is no such pipe, or more chunks than it
    /// has states.
    pub fn attach(region: &Mapping, pipe: usize, ticket: u64, count: usize) -> Option<Self> {
        let states = crate::pipe::states(region, pipe)?;
        Some(Self {
            states,
            base: base_of(ticket),
            count: (count <= CLAIM_LIMIT).then_some(count)?,
            _keep: Some(region.clone()),
        })
    }

    /// The receiver offers all chunks. Published with the cell that lends the pipe.
    pub fn open(&self) {
        for index in 0..self.count {
            self.word(index)
                .store(self.base | ChunkStage::Free as u64, Ordering::Relaxed);
        }
    }

    /// The receiver takes a chunk, if nobody else has.
    pub fn take(&self, index: usize) -> bool {
        self.change(index, ChunkStage::Own)
    }

    /// The sender takes a chunk, if nobody else has.
    pub fn help(&self, index: usize) -> bool {
        self.change(index, ChunkStage::Helped)
    }

    /// The sender has copied a chunk that it took.
    pub fn hand_over(&self, index: usize) {
        crash_point!(55, "chunk claims: a chunk is copied, not handed over");
        // Pairs with the load in `stage`: what was copied comes before it.
        self.word(index)
            .store(self.base | ChunkStage::Done as u64, Ordering::Release);
    }

    /// The sender cannot copy a chunk that it took: the receiver may.
    pub fn give_back(&self, index: usize) {
        self.word(index)
            .store(self.base | ChunkStage::Free as u64, Ordering::Release);
    }

    /// How far a chunk is.
    pub fn stage(&self, index: usize) -> ChunkStage {
        // Pairs with the store in `hand_over`.
        let word = self.word(index).load(Ordering::Acquire);
        let stages = [
            ChunkStage::Free,
            ChunkStage::Own,
            ChunkStage::Helped,
            ChunkStage::Done,
        ];
        let is_stage = |stage: &ChunkStage| word == self.base | *stage as u64;
        stages
            .into_iter()
            .find(is_stage)
            .unwrap_or(ChunkStage::Other)
    }

    /// The receiver takes back what is free; true if the sender copies nothing any more.
    pub fn revoke(&self) -> bool {
        for index in 0..self.count {
            self.take(index);
        }
        (0..self.count).all(|index| self.stage(index) != ChunkStage::Helped)
    }

    /// How many chunks there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The receiver is through: the pipe's states are as before.
    pub fn close(&self) {
        for index in 0..self.count {
            // Without release: the next cell that lends the pipe is published with it, after this.
            self.word(index).store(0, Ordering::Relaxed);
        }
    }

    fn change(&self, index: usize, to: ChunkStage) -> bool {
        let from = self.base | ChunkStage::Free as u64;
        // Who takes a chunk touches memory that the other may have touched before it gave it back.
        self.word(index)
            .compare_exchange(
                from,
                self.base | to as u64,
                Ordering::Acquire,
                Ordering::Relaxed,
            )
            .is_ok()
    }

    fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < self.count, "a message has {} chunks", self.count);
        // SAFETY: made from checked references into a mapping that is kept; the index was just
        // checked against the count, which is at most the states of a pipe.
        unsafe { (*self.states.add(index)).word() }
    }
}

fn base_of(ticket: u64) -> u64 {
    CLAIM | (ticket & TICKET_MASK) << STAGE_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(states: &[ChunkState], ticket: u64, count: usize) -> ChunkClaims {
        ChunkClaims {
            states: states.as_ptr(),
            base: base_of(ticket),
            count,
            _keep: None,
        }
    }

    #[test]
    #[cfg(not(loom))]
    fn a_chunk_has_one_taker_and_another_messages_ticket_takes_none() {
        let states = crate::pipe::new_states();
        let (own, help) = (claims(&states, 7, 3), claims(&states, 7, 3));
        own.open();
        assert!(own.take(0) && !help.help(0) && !own.take(0));
        assert!(help.help(2) && !own.take(2));
        assert!(!claims(&states, 6, 3).help(1), "it is over");
        assert_eq!(claims(&states, 6, 3).stage(1), ChunkStage::Other);
        assert!(!own.revoke(), "the sender copies one");
        help.hand_over(2);
        assert!(own.revoke());
        assert!(!help.help(1), "the receiver took it back");
        let seen = [0, 1, 2].map(|index| own.stage(index));
        assert_eq!(seen, [ChunkStage::Own, ChunkStage::Own, ChunkStage::Done]);
        own.close();
        assert!((0..3).all(|index| own.word(index).load(Ordering::Relaxed) == 0));
    }

    #[test]
    #[cfg(not(loom))]
    fn a_chunk_that_is_given_back_may_be_taken() {
        let states = crate::pipe::new_states();
        let (own, help) = (claims(&states, 1, 1), claims(&states, 1, 1));
        own.open();
        assert!(help.help(0));
        help.give_back(0);
        assert!(own.take(0));
    }

    /// What a chunk holds is watched by loom: two that copy it at the same time, or a receiver that
    /// reads it before it is handed over, are caught; so is a sender that helps with a message that
    /// is over.
    #[cfg(loom)]
    #[test]
    fn models_no_chunk_is_copied_twice_or_read_early() {
        use crate::sync::UnsafeCell;
        use std::sync::Arc;

        loom::model(|| {
            let states: &'static [ChunkState] =
                Box::leak(crate::pipe::new_states().into_boxed_slice());
            let memory = Arc::new([0; 2].map(UnsafeCell::new));
            let (own, help) = (claims(states, 1, 2), claims(states, 1, 2));
            own.open();
            let theirs = memory.clone();
            let sender = loom::thread::spawn(move || {
                for index in [1, 0] {
                    if help.help(index) {
                        // SAFETY: the chunk is ours; loom asserts it.
                        theirs[index].with_mut(|place| unsafe { *place = 9 });
                        help.hand_over(index);
                    }
                }
            });
            if own.take(0) {
                // SAFETY: the chunk is ours; loom asserts it.
                memory[0].with_mut(|place| unsafe { *place = 9 });
            }
            while !own.revoke() {
                loom::thread::yield_now();
            }
            for (index, place) in memory.iter().enumerate() {
                if own.stage(index) == ChunkStage::Done {
                    // SAFETY: who said so does not write any more; loom asserts it.
                    assert_eq!(place.with(|place| unsafe { *place }), 9);
                } else {
                    // SAFETY: the claims are revoked: nobody takes the chunk now; loom asserts it.
                    place.with_mut(|place| unsafe { *place = 3 });
                }
            }
            own.close();
            sender.join().expect("sender");
        });
    }
}
