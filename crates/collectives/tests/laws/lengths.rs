// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Alltoalls with lengths that only some ranks know, by two threads as ranks that do not name the
//! same lengths, or show less than they give: an error, and nothing is read that is not meant.

use std::sync::atomic::{AtomicBool, Ordering};

use weft_collectives::{
    Block, Blocks, Direct, Fault, Lengths, Reach, Shape, Shown, Stopped, Team, Terms, Wait,
};
use weft_memory::{BytesView, BytesViewMut};

use crate::in_place::OneProcess;
use crate::threads::{Memory, run, run_in};

/// Bytes of each buffer.
const BYTES: usize = 64;

/// Waits until the other rank's call has ended: who is told of a mistake makes no further step.
struct WhileCalled<'a> {
    has_ended: &'a AtomicBool,
    wait: &'a mut dyn Wait,
}

impl Wait for WhileCalled<'_> {
    fn pause(&mut self, spins: u32) -> Result<(), Stopped> {
        self.wait.pause(spins)?;
        match self.has_ended.load(Ordering::Relaxed) {
            true => Err(Stopped),
            false => Ok(()),
        }
    }
}

/// Does not show the last so many bytes of the data.
struct Understating {
    hidden_bytes: usize,
    reach: OneProcess,
}

impl Reach for Understating {
    fn show(&mut self, bytes: BytesView<'_>) -> Option<Shown> {
        let Shown([address, length_bytes, place]) = self.reach.show(bytes)?;
        let shown_bytes = length_bytes - self.hidden_bytes as u64;
        Some(Shown([address, shown_bytes, place]))
    }

    fn prepare(&mut self, rank: usize, shown: Shown, offset_bytes: usize) -> usize {
        self.reach.prepare(rank, shown, offset_bytes)
    }

    fn view(&self, rank: usize, shown: Shown, offset: usize, most_bytes: usize) -> BytesView<'_> {
        self.reach.view(rank, shown, offset, most_bytes)
    }
}

/// What the first of two ranks gives the second, and what that one takes; a few bytes go back.
#[derive(Clone, Copy)]
struct Case {
    given: Block,
    taken_bytes: usize,
    hidden_bytes: usize,
}

impl Case {
    fn make(
        self,
        team: &mut Team,
        wait: &mut dyn Wait,
        send: &[u8],
    ) -> (Result<(), Fault>, Vec<u8>) {
        let mut recv = vec![0xEE; BYTES];
        let (mut given, mut taken) = ([Block::default(); 2], [Block::default(); 2]);
        let back = block(0, 8);
        if team.rank() == 0 {
            (given[1], taken[1]) = (self.given, back);
        } else {
            (given[0], taken[0]) = (back, block(0, self.taken_bytes));
        }
        let lengths = Lengths {
            given: &given,
            taken: &taken,
        };
        let terms = Terms {
            tries: true,
            most_staged_bytes: 0,
        };
        let mut reach = Understating {
            hidden_bytes: self.hidden_bytes,
            reach: OneProcess::new(BYTES, true, 2),
        };
        let mut direct = Direct::new(team, &mut reach);
        let (send, into) = (
            BytesView::from_slice(send),
            BytesViewMut::from_slice(&mut recv),
        );
        let end = direct.alltoall_of_lengths(wait, Some(send), into, lengths, terms);
        (end, recv)
    }

    /// How the call ends on the rank that takes, and what it then has.
    fn end(self) -> (Result<(), Fault>, Vec<u8>) {
        let send: Vec<u8> = (0..BYTES as u8).collect();
        let has_ended = AtomicBool::new(false);
        let mut found = run(&Shape::flat(2, true), |team, wait| {
            if team.rank() == 0 {
                let has_ended = &has_ended;
                return self.make(team, &mut WhileCalled { has_ended, wait }, &send);
            }
            let found = self.make(team, wait, &send);
            has_ended.store(true, Ordering::Relaxed);
            found
        });
        found.pop().expect("two ranks")
    }
}

fn block(offset_bytes: usize, length_bytes: usize) -> Block {
    Block {
        offset_bytes,
        length_bytes,
    }
}

#[test]
fn a_rank_reads_in_place_as_much_as_it_is_given_and_no_other_length() {
    let end = |given, taken_bytes| {
        let case = Case {
            given,
            taken_bytes,
            hidden_bytes: 0,
        };
        case.end()
    };
    let untouched = vec![0xEE; BYTES];
    let (outcome, recv) = end(block(8, 24), 24);
    assert_eq!(outcome, Ok(()));
    assert_eq!(recv[..24], *(8..32).collect::<Vec<u8>>());
    assert_eq!(recv[24..], untouched[24..]);
    let mismatch = (Err(Fault::Mismatch { rank: 0 }), untouched);
    for (given_bytes, taken_bytes) in [(24, 32), (24, 16), (24, 0), (0, 24)] {
        assert_eq!(end(block(8, given_bytes), taken_bytes), mismatch);
    }
}

#[test]
fn a_block_that_ends_behind_what_is_shown_is_not_read() {
    let end = |hidden_bytes| {
        let case = Case {
            given: block(40, 16),
            taken_bytes: 16,
            hidden_bytes,
        };
        case.end()
    };
    assert_eq!(end(8).0, Ok(()));
    let untouched = vec![0xEE; BYTES];
    let mismatch = (Err(Fault::Mismatch { rank: 0 }), untouched);
    assert_eq!(end(9), mismatch);
    assert_eq!(end(40), mismatch);
}

/// The place of a word behind the mark in the flag of a rank's first step
/// (docs/collectives.md, clause 2).
fn first_word(rank: usize) -> usize {
    (rank * 4096 + 128 * (1 + 1)) / 8 + 1
}

/// Changes how the second rank says that it gives its blocks, when the first rank has heard it and
/// waits for the third one; then has that one begin.
struct Changing<'a> {
    memory: &'a Memory,
    third_begins: &'a AtomicBool,
    wait: &'a mut dyn Wait,
}

impl Wait for Changing<'_> {
    fn pause(&mut self, spins: u32) -> Result<(), Stopped> {
        const STAGED: u64 = 0;
        let way = self.memory.word(first_word(1) + 1);
        way.store(STAGED, Ordering::Relaxed);
        self.third_begins.store(true, Ordering::Relaxed);
        self.wait.pause(spins)
    }
}

/// Waits until something has happened.
fn until(wait: &mut dyn Wait, mut has_happened: impl FnMut() -> bool) {
    while !has_happened() {
        wait.pause(0).expect("nobody has panicked");
    }
}

#[test]
fn what_a_rank_says_of_its_blocks_counts_as_it_was_when_it_was_heard() {
    let memory = Memory::new(3);
    let third_begins = AtomicBool::new(false);
    let blocks: Vec<Block> = (0..3).map(|rank| block(8 * rank, 8)).collect();
    let received = run_in(&memory, &Shape::flat(3, true), |team, wait| {
        let own = team.rank();
        let send = vec![1 + own as u8; 24];
        let mut recv = vec![0xEE; 24];
        let (send, into) = (
            BytesView::from_slice(&send),
            BytesViewMut::from_slice(&mut recv),
        );
        let lengths = Blocks::Uneven(&blocks);
        let call = |wait: &mut dyn Wait| team.alltoall(wait, Some(send), into, lengths, lengths);
        let end = match own {
            0 => {
                let mark = memory.word(first_word(1) - 1);
                until(wait, || mark.load(Ordering::Acquire) != 0);
                call(&mut Changing {
                    memory: &memory,
                    third_begins: &third_begins,
                    wait,
                })
            }
            2 => {
                until(wait, || third_begins.load(Ordering::Relaxed));
                call(wait)
            }
            _ => call(wait),
        };
        assert_eq!(end, Ok(()));
        recv
    });
    let expected: Vec<u8> = [1, 2, 3].into_iter().flat_map(|rank| [rank; 8]).collect();
    assert_eq!(received[0], expected);
}

/// Pages of staging that an alltoall takes in which each of eight ranks gives each so many bytes.
fn pages_of(length_bytes: usize) -> usize {
    const RANKS: usize = 8;
    let shape = Shape::flat(RANKS, false);
    let memory = Memory::new(RANKS);
    let blocks: Vec<Block> = (0..RANKS)
        .map(|rank| block(rank * length_bytes, length_bytes))
        .collect();
    run_in(&memory, &shape, |team, wait| {
        let byte = |from: usize, to: usize| (1 + from * RANKS + to) as u8;
        let own = team.rank();
        let bytes = |of: &dyn Fn(usize) -> u8| -> Vec<u8> {
            (0..RANKS)
                .flat_map(|rank| vec![of(rank); length_bytes])
                .collect()
        };
        let (send, expected) = (bytes(&|to| byte(own, to)), bytes(&|from| byte(from, own)));
        let mut recv = vec![0; RANKS * length_bytes];
        let blocks = Blocks::Uneven(&blocks);
        let (send, into) = (
            BytesView::from_slice(&send),
            BytesViewMut::from_slice(&mut recv),
        );
        let end = team.alltoall(wait, Some(send), into, blocks, blocks);
        assert_eq!((end, recv), (Ok(()), expected));
    });
    memory.staging_pages(RANKS)
}

#[test]
#[cfg_attr(miri, ignore = "many threads take Miri minutes")]
fn short_blocks_take_few_pages() {
    // In the flag; then a page for each rank; then as many as seven blocks of 2 KiB.
    assert_eq!((pages_of(1), pages_of(11)), (0, 0));
    assert_eq!((pages_of(12), pages_of(64)), (8, 8));
    assert!(pages_of(65) > 8);
}
