// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Alltoall with blocks whose lengths only some ranks know (docs/collectives.md, clause 4.8).
//! Called by team.rs and direct.rs; calls beginnings.rs and spreading.rs, and reach.rs for data
//! that are read in place.
//!
//! In the first step each rank names its longest block. With it comes the beginning of each block,
//! or, from a rank that shows its data, where in them each block lies. So short blocks take one
//! step, and all ranks see alike whether the data of all can be read in place.

use weft_memory::{BytesView, BytesViewMut};

use crate::agreement::{self, REFUSAL};
use crate::beginnings::Room;
use crate::exchange::Exchange;
use crate::fault::Fault;
use crate::layout::{RANK_LIMIT, STAGE_BYTES};
use crate::pipeline;
use crate::reach::{Shown, Sight};
use crate::segment::Part;
use crate::spreading::{self, Spreading};
use crate::wait::Wait;

const WORD_BYTES: usize = size_of::<u64>();

/// Words of the first step's flag: the longest block, the [`Way`], and what is shown.
const CLAIM_WORDS: usize = 5;

const CLAIM_BYTES: usize = CLAIM_WORDS * WORD_BYTES;

/// How a call with lengths that only some ranks know may be carried out.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// Whether this rank tries to show its data. They must have no gaps.
    pub tries: bool,
    /// If not all ranks show theirs, longer blocks are refused; the same on all ranks.
    pub most_staged_bytes: usize,
}

/// How a rank gives its blocks in the first step. Specified by docs/collectives.md, clause 4.8.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// Their beginnings are published.
    Staged(Room),
    /// They are shown.
    Shown,
    /// All are empty.
    Either,
}

impl Way {
    fn word(self) -> u64 {
        match self {
            Self::Staged(Room::Shares) => 0,
            Self::Shown => 1,
            Self::Either => 2,
            Self::Staged(Room::Close) => 3,
            Self::Staged(Room::Flag(_)) => 4,
        }
    }

    /// Anything else that a rank wrote counts as 0.
    fn of(word: u64) -> Self {
        match word {
            1 => Self::Shown,
            2 => Self::Either,
            3 => Self::Staged(Room::Close),
            4 => Self::Staged(Room::Flag(CLAIM_BYTES)),
            _ => Self::Staged(Room::Shares),
        }
    }
}

/// What a rank says in the first step.
#[derive(Clone, Copy)]
struct Claim {
    longest_bytes: u64,
    way: Way,
    shown: Shown,
}

impl Claim {
    fn words(self) -> [u64; CLAIM_WORDS] {
        let Shown([first, second, third]) = self.shown;
        [self.longest_bytes, self.way.word(), first, second, third]
    }

    /// What `rank` said in a step of which we have heard.
    fn of(exchange: &Exchange, rank: usize, step: u64) -> Self {
        let inline = exchange.inline(rank, step, CLAIM_BYTES);
        let view = inline.view(CLAIM_BYTES);
        let word = |at: usize| view.part(at * WORD_BYTES, WORD_BYTES).first_word();
        Self {
            longest_bytes: word(0),
            way: Way::of(word(1)),
            shown: Shown([word(2), word(3), word(4)]),
        }
    }
}

/// What all ranks said, read once: a rank may change its words at any time.
struct Heard {
    longest_bytes: u64,
    /// How each rank gives its blocks: the word of its [`Way`].
    ways: [u8; RANK_LIMIT],
    /// None has to be staged.
    are_shown: bool,
    /// None is shown.
    are_staged: bool,
}

impl Heard {
    fn add(&mut self, rank: usize, claim: Claim) {
        self.ways[rank] = claim.way.word() as u8;
        self.longest_bytes = self.longest_bytes.max(claim.longest_bytes);
        self.are_shown &= !matches!(claim.way, Way::Staged(_));
        self.are_staged &= claim.way != Way::Shown;
    }
}

/// Words of an entry in a table of where blocks lie: where one begins, and how long it is.
const ENTRY_WORDS: usize = 2;

const ENTRY_BYTES: usize = ENTRY_WORDS * WORD_BYTES;

const _: () = assert!(RANK_LIMIT * ENTRY_BYTES <= STAGE_BYTES);

/// The entry of a rank.
fn entry(rank: usize) -> Part {
    Part {
        offset_bytes: rank * ENTRY_BYTES,
        length_bytes: ENTRY_BYTES,
    }
}

/// Carries out a call. All ranks have a [`Sight`], or none.
///
/// # Errors
/// [`Fault::Refused`] on all ranks alike.
pub(crate) fn run(
    exchange: &mut Exchange,
    wait: &mut dyn Wait,
    spreading: &mut Spreading<'_>,
    mut sight: Option<Sight<'_>>,
    terms: Terms,
) -> Result<(), Fault> {
    let step = exchange.next_step();
    exchange.open(wait, step)?;
    let own = claim(exchange, spreading, &mut sight, terms);
    say(exchange, step, spreading, own);
    let heard = hear(exchange, wait, step, own, &mut sight)?;
    let are_too_long = !heard.are_shown && heard.longest_bytes > terms.most_staged_bytes as u64;
    if heard.longest_bytes == REFUSAL as u64 || are_too_long {
        exchange.finish(step);
        return Err(Fault::Refused);
    }
    match &mut sight {
        _ if heard.are_staged => {
            take_beginnings(exchange, step, spreading, &heard);
            spreading.skipped_bytes = spreading.chunks.chunk_bytes;
        }
        Some(sight) if heard.are_shown => {
            pull(exchange, step, spreading, sight)?;
            exchange.finish(step);
            return crate::barrier::run(exchange, wait);
        }
        _ => {}
    }
    exchange.finish(step);
    let longest_bytes = heard.longest_bytes as usize;
    let left_bytes = longest_bytes.saturating_sub(spreading.skipped_bytes);
    spreading.chunks = spreading::chunks(exchange, left_bytes);
    pipeline::run(exchange, wait, spreading)
}

/// What this rank says.
fn claim(
    exchange: &Exchange,
    spreading: &Spreading<'_>,
    sight: &mut Option<Sight<'_>>,
    terms: Terms,
) -> Claim {
    let longest_bytes = spreading.longest_bytes();
    let given_bytes = spreading.given.longest_bytes();
    let mut claim = Claim {
        longest_bytes: longest_bytes as u64,
        way: Way::Staged(Room::of(exchange, given_bytes, CLAIM_BYTES)),
        shown: Shown::NOTHING,
    };
    if given_bytes == 0 {
        claim.way = Way::Either;
    } else if let (Some(sight), true, Some(send)) = (sight, terms.tries, spreading.buffers.send)
        && let Some(shown) = sight.reach.show(send)
    {
        claim.way = Way::Shown;
        claim.shown = shown;
    } else if longest_bytes > terms.most_staged_bytes {
        claim.longest_bytes = REFUSAL as u64;
    }
    claim
}

/// Publishes it, with the beginnings of the blocks or where in the data they lie.
fn say(exchange: &mut Exchange, step: u64, spreading: &mut Spreading<'_>, own: Claim) {
    let words = own.words();
    let words = BytesView::from_words(&words);
    match own.way {
        Way::Staged(room) if own.longest_bytes != REFUSAL as u64 => {
            return room.publish(exchange, step, spreading, words);
        }
        Way::Shown => tabulate(exchange, step, spreading),
        Way::Staged(_) | Way::Either => {}
    }
    exchange.publish_inline(step, words);
}

/// Stages where in the data the blocks for the others lie.
fn tabulate(exchange: &Exchange, step: u64, spreading: &Spreading<'_>) {
    for rank in exchange.others() {
        let block = spreading.given.of(rank);
        let words = [block.offset_bytes as u64, block.length_bytes as u64];
        let mut target = exchange.stage(step, entry(rank));
        target.fill(0, BytesView::from_words(&words));
    }
}

/// Hears all ranks.
fn hear(
    exchange: &mut Exchange,
    wait: &mut dyn Wait,
    step: u64,
    own: Claim,
    sight: &mut Option<Sight<'_>>,
) -> Result<Heard, Fault> {
    let mut heard = Heard {
        longest_bytes: 0,
        ways: [0; RANK_LIMIT],
        are_shown: true,
        are_staged: true,
    };
    heard.add(exchange.rank(), own);
    for rank in exchange.others() {
        exchange.heed(wait, rank, step)?;
        let claim = Claim::of(exchange, rank, step);
        agreement::check(exchange, rank, claim.longest_bytes)?;
        heard.add(rank, claim);
        if let Some(sight) = sight {
            sight.shown[rank] = claim.shown;
        }
    }
    exchange.all_have_finished(step - 1);
    Ok(heard)
}

/// Takes the beginnings of all blocks.
fn take_beginnings(exchange: &Exchange, step: u64, spreading: &mut Spreading<'_>, heard: &Heard) {
    for rank in exchange.others() {
        if let Way::Staged(room) = Way::of(u64::from(heard.ways[rank])) {
            room.take(exchange, rank, step, spreading);
        }
    }
    spreading.chunks = spreading::beginnings(exchange);
    spreading.keep_own_chunk(exchange.rank(), 0);
}

/// Takes all blocks from where they lie.
fn pull(
    exchange: &mut Exchange,
    step: u64,
    spreading: &mut Spreading<'_>,
    sight: &mut Sight<'_>,
) -> Result<(), Fault> {
    let own = exchange.rank();
    spreading.keep_own(own);
    for rank in exchange.others() {
        let mut target = spreading.target(rank);
        let shown = sight.shown[rank];
        let begins_at = beginning(exchange, rank, step, shown, target.length_bytes())?;
        if target.length_bytes() > 0 {
            sight.pull(exchange, rank, begins_at, &mut target)?;
        }
    }
    Ok(())
}

/// Where in what `rank` has shown its block for us begins, of which we take so many bytes.
///
/// # Errors
/// [`Fault::Mismatch`], which ends the team, if the block has another length, or lies elsewhere.
fn beginning(
    exchange: &mut Exchange,
    rank: usize,
    step: u64,
    shown: Shown,
    taken_bytes: usize,
) -> Result<usize, Fault> {
    let mut words = [0; ENTRY_WORDS];
    // A rank without data has no table.
    if shown.is_there() {
        let staged = exchange.staged(rank, step, entry(exchange.rank()));
        BytesViewMut::from_words(&mut words).fill(0, staged);
    }
    let [begins_at, length_bytes] = words;
    let end = begins_at.checked_add(length_bytes);
    let lies_in_shown = end.is_some_and(|end| end <= shown.length_bytes());
    if length_bytes != taken_bytes as u64 || !lies_in_shown {
        return Err(exchange.give_up(Fault::Mismatch { rank }));
    }
    Ok(begins_at as usize)
}
