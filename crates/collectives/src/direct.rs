// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Long data straight from where they lie in their rank's memory to where they belong
//! (docs/collectives.md, clause 4.9): one copy in place of two. Called by whoever has a team and a
//! [`Reach`]; calls reach.rs, and sliced.rs for reductions.
//!
//! In the first step whoever gives shows its data; if one of them cannot, all find that out alike,
//! and the call is refused. In the second step whoever has read says so, since the data must stay
//! until then.

use weft_memory::{BytesView, BytesViewMut};

use crate::blocks::{Block, Blocks};
use crate::buffers::Buffers;
use crate::exchange::Exchange;
use crate::fault::Fault;
use crate::kind::Kind;
use crate::reach::{Reach, Seen, Sight};
use crate::reductions::{Combining, Reductions};
use crate::segment::Part;
use crate::sliced::{Sliced, Slices};
use crate::team::Team;
use crate::uneven::{self, Terms};
use crate::wait::Wait;

/// A team whose ranks may read each other's memory. All calls take long data: more than short data
/// of a flag. Each is refused ([`Fault::Refused`]) if the data of one of the ranks that give cannot
/// be read; then the team is as before, and nothing was written.
#[derive(Debug)]
pub struct Direct<'a> {
    team: &'a mut Team,
    reach: &'a mut dyn Reach,
    has_read_in_place: bool,
}

impl std::fmt::Debug for dyn Reach + '_ {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("Reach")
    }
}

impl<'a> Direct<'a> {
    /// For one call or more.
    pub fn new(team: &'a mut Team, reach: &'a mut dyn Reach) -> Self {
        Self {
            team,
            reach,
            has_read_in_place: false,
        }
    }

    /// Whether the last reduction read all data in place, and did not go through the segment; alike
    /// on all ranks.
    pub fn has_read_in_place(&self) -> bool {
        self.has_read_in_place
    }

    fn parts(&mut self) -> (&mut Exchange, Sight<'_>) {
        let sight = Sight {
            reach: &mut *self.reach,
            shown: &mut self.team.shown,
        };
        (&mut self.team.exchange, sight)
    }

    /// All ranks show their data; what is so of all of them. One step.
    fn see_all(
        &mut self,
        wait: &mut dyn Wait,
        given: BytesView<'_>,
        stays: bool,
    ) -> Result<Seen, Fault> {
        let (exchange, mut sight) = self.parts();
        let step = show_to_all(exchange, wait, &mut sight, given, stays)?;
        let mut all = Seen {
            is_there: true,
            stays: true,
        };
        for rank in 0..exchange.ranks() {
            let seen = sight.look(exchange, rank, step);
            all.is_there &= seen.is_there;
            all.stays &= seen.stays;
        }
        exchange.finish(step);
        Ok(all)
    }

    /// As [`Team::bcast`]. A root that names an empty buffer has the call refused, here and in the
    /// calls below.
    ///
    /// # Errors
    /// As there; [`Fault::Refused`], [`Fault::Unreachable`], here and below.
    pub fn bcast(
        &mut self,
        wait: &mut dyn Wait,
        mut buffer: BytesViewMut<'_>,
        length_bytes: usize,
        root: usize,
    ) -> Result<(), Fault> {
        self.team.check_root(root)?;
        self.team.begin(Kind::Bcast as u8, root, length_bytes)?;
        let (exchange, mut sight) = self.parts();
        let given = buffer.as_view();
        if !show_from_root(exchange, wait, &mut sight, given, root)? {
            return Err(Fault::Refused);
        }
        if exchange.rank() != root {
            sight.pull(exchange, root, 0, &mut buffer)?;
        }
        all_have_read(exchange, wait, root)
    }

    /// As [`Team::scatter`] with even blocks.
    ///
    /// # Errors
    /// As there.
    pub fn scatter(
        &mut self,
        wait: &mut dyn Wait,
        send: BytesView<'_>,
        recv: Option<BytesViewMut<'_>>,
        block_bytes: usize,
        root: usize,
    ) -> Result<(), Fault> {
        self.team.check_root(root)?;
        let own = self.team.rank();
        if own == root {
            check_given(send, block_bytes, self.team.ranks())?;
        }
        if let Some(recv) = &recv {
            Blocks::Even(block_bytes).check(1, recv.length_bytes())?;
        }
        self.team.begin(Kind::Scatter as u8, root, block_bytes)?;
        let (exchange, mut sight) = self.parts();
        if !show_from_root(exchange, wait, &mut sight, send, root)? {
            return Err(Fault::Refused);
        }
        if let Some(mut recv) = recv {
            let block = Part {
                offset_bytes: own * block_bytes,
                length_bytes: block_bytes,
            };
            let mut target = recv.part(0, block_bytes);
            if own == root {
                target.fill(0, block.of(send));
            } else {
                sight.pull(exchange, root, block.offset_bytes, &mut target)?;
            }
        }
        all_have_read(exchange, wait, root)
    }

    /// As [`Team::allgather`].
    ///
    /// # Errors
    /// As there.
    pub fn allgather(
        &mut self,
        wait: &mut dyn Wait,
        send: Option<BytesView<'_>>,
        mut recv: BytesViewMut<'_>,
        blocks: Blocks<'_>,
    ) -> Result<(), Fault> {
        let own = self.team.rank();
        blocks.check(self.team.ranks(), recv.length_bytes())?;
        self.team
            .begin(Kind::Allgather as u8, 0, blocks.longest_bytes())?;
        let (exchange, mut sight) = self.parts();
        let given = send.unwrap_or(blocks.of(own).of(recv.as_view()));
        let step = show_to_all(exchange, wait, &mut sight, given, true)?;
        let is_needed = |rank: &usize| blocks.of(*rank).length_bytes > 0;
        let mut ranks = (0..exchange.ranks()).filter(is_needed);
        let is_shown = ranks.all(|rank| sight.look(exchange, rank, step).is_there);
        exchange.finish(step);
        if !is_shown {
            return Err(Fault::Refused);
        }
        if let Some(send) = send {
            blocks.of(own).of_mut(&mut recv).fill(0, send);
        }
        for rank in exchange.others() {
            let mut target = blocks.of(rank).of_mut(&mut recv);
            sight.pull(exchange, rank, 0, &mut target)?;
        }
        meet(exchange, wait)
    }

    /// As [`Team::alltoall`] with even blocks; refused without `send`.
    ///
    /// # Errors
    /// As there.
    pub fn alltoall(
        &mut self,
        wait: &mut dyn Wait,
        send: Option<BytesView<'_>>,
        mut recv: BytesViewMut<'_>,
        block_bytes: usize,
    ) -> Result<(), Fault> {
        let (own, blocks) = (self.team.rank(), Blocks::Even(block_bytes));
        blocks.check(self.team.ranks(), recv.length_bytes())?;
        if let Some(send) = send {
            check_given(send, block_bytes, self.team.ranks())?;
        }
        self.team.begin(Kind::Alltoall as u8, 0, block_bytes)?;
        let (exchange, mut sight) = self.parts();
        let given = send.unwrap_or(BytesView::from_slice(&[]));
        let step = show_to_all(exchange, wait, &mut sight, given, true)?;
        let mut ranks = 0..exchange.ranks();
        let is_shown = ranks.all(|rank| sight.look(exchange, rank, step).is_there);
        exchange.finish(step);
        if !is_shown {
            return Err(Fault::Refused);
        }
        let block = blocks.of(own);
        block.of_mut(&mut recv).fill(0, block.of(given));
        for rank in exchange.others() {
            let mut target = blocks.of(rank).of_mut(&mut recv);
            sight.pull(exchange, rank, block.offset_bytes, &mut target)?;
        }
        meet(exchange, wait)
    }

    /// As [`Team::alltoall`] with uneven blocks, in place where all ranks show theirs, else through
    /// the segment. Refused if a block is too long for that, or a rank refuses ([`Team::refuse`]).
    ///
    /// # Errors
    /// As there.
    pub fn alltoall_of_lengths(
        &mut self,
        wait: &mut dyn Wait,
        send: Option<BytesView<'_>>,
        recv: BytesViewMut<'_>,
        lengths: Lengths<'_>,
        terms: Terms,
    ) -> Result<(), Fault> {
        let Lengths { given, taken } = lengths;
        let (given, taken) = (Blocks::Uneven(given), Blocks::Uneven(taken));
        let mut spreading = self
            .team
            .alltoall_of(Buffers { send, recv }, given, taken)?;
        let (exchange, sight) = self.parts();
        uneven::run(exchange, wait, &mut spreading, Some(sight), terms)
    }

    /// As [`Team::gather`] with even blocks.
    ///
    /// # Errors
    /// As there.
    pub fn gather(
        &mut self,
        wait: &mut dyn Wait,
        send: Option<BytesView<'_>>,
        mut recv: BytesViewMut<'_>,
        block_bytes: usize,
        root: usize,
    ) -> Result<(), Fault> {
        self.team.check_root(root)?;
        let (own, blocks) = (self.team.rank(), Blocks::Even(block_bytes));
        if own == root {
            blocks.check(self.team.ranks(), recv.length_bytes())?;
        }
        self.team.begin(Kind::Gather as u8, root, block_bytes)?;
        let (exchange, mut sight) = self.parts();
        let step = exchange.next_step();
        if own != root {
            exchange.open(wait, step)?;
            sight.show(exchange, step, send.unwrap_or(recv.as_view()), true);
            return hear_root(exchange, wait, root);
        }
        let mut is_shown = true;
        for rank in exchange.others() {
            exchange.heed(wait, rank, step)?;
            is_shown &= sight.look(exchange, rank, step).is_there;
        }
        if is_shown {
            for rank in exchange.others() {
                let mut target = blocks.of(rank).of_mut(&mut recv);
                sight.pull(exchange, rank, 0, &mut target)?;
            }
            if let Some(send) = send {
                blocks.of(own).of_mut(&mut recv).fill(0, send);
            }
        }
        tell_others(exchange, wait, is_shown)
    }
}

/// Not refused: data that cannot be read in place go through the segment.
impl Reductions for Direct<'_> {
    fn team(&self) -> &Team {
        self.team
    }

    fn combine(&mut self, wait: &mut dyn Wait, mut call: Combining<'_>) -> Result<(), Fault> {
        let length_bytes = call.buffers.given().length_bytes();
        let (kind, root) = call.kind_and_root();
        self.team.begin(kind, root, length_bytes)?;
        let stays = call.buffers.send.is_some();
        let seen = self.see_all(wait, call.buffers.given(), stays)?;
        self.has_read_in_place = seen.is_there;
        let (exchange, sight) = self.parts();
        let ranks = exchange.ranks();
        let (slices, sight) = match seen.is_there {
            true => (Slices::in_place(ranks, length_bytes), Some(sight)),
            false => (Slices::staged(exchange, length_bytes, call.receivers), None),
        };
        let mut sliced = Sliced {
            exchange,
            wait,
            slices,
            reduction: call.reduction,
            sight,
        };
        if seen.is_there && seen.stays && ranks <= ALONE_RANKS {
            return sliced.run_alone(&mut call.buffers, call.receivers);
        }
        sliced.run(&mut call.buffers, call.receivers)
    }
}

/// Blocks that one rank gives to and takes from each rank.
#[derive(Clone, Copy, Debug)]
pub struct Lengths<'a> {
    /// Where they lie in `send`; none where that is not there.
    pub given: &'a [Block],
    /// Where they go.
    pub taken: &'a [Block],
}

/// Up to so many ranks each that gets the result combines all data by itself. Chosen: with two it
/// takes no more passes over memory than to combine one half and to copy the other.
const ALONE_RANKS: usize = 2;

/// # Errors
/// [`Fault::Length`] for data that are neither none nor a block for each rank.
fn check_given(given: BytesView<'_>, block_bytes: usize, ranks: usize) -> Result<(), Fault> {
    match given.length_bytes() {
        0 => Ok(()),
        given_bytes => Blocks::Even(block_bytes).check(ranks, given_bytes),
    }
}

/// The root shows its data; whether it could. One step.
fn show_from_root(
    exchange: &mut Exchange,
    wait: &mut dyn Wait,
    sight: &mut Sight<'_>,
    given: BytesView<'_>,
    root: usize,
) -> Result<bool, Fault> {
    let step = exchange.next_step();
    if exchange.rank() == root {
        exchange.open(wait, step)?;
        sight.show(exchange, step, given, true);
    } else {
        exchange.heed(wait, root, step)?;
    }
    let is_shown = sight.look(exchange, root, step).is_there;
    exchange.finish(step);
    Ok(is_shown)
}

/// All ranks but the root say that they have read, and the root waits for them. One step.
fn all_have_read(exchange: &mut Exchange, wait: &mut dyn Wait, root: usize) -> Result<(), Fault> {
    crate::barrier::report(exchange, wait, root)
}

/// All ranks show their data and hear of all others; answers in which step, for [`Sight::look`].
fn show_to_all(
    exchange: &mut Exchange,
    wait: &mut dyn Wait,
    sight: &mut Sight<'_>,
    given: BytesView<'_>,
    stays: bool,
) -> Result<u64, Fault> {
    let step = exchange.next_step();
    exchange.open(wait, step)?;
    sight.show(exchange, step, given, stays);
    for rank in exchange.others() {
        exchange.heed(wait, rank, step)?;
    }
    exchange.all_have_finished(step - 1);
    Ok(step)
}

/// All wait for all. One step.
fn meet(exchange: &mut Exchange, wait: &mut dyn Wait) -> Result<(), Fault> {
    crate::barrier::run(exchange, wait)
}

/// The root of a gather says whether it has read. One step.
fn tell_others(exchange: &mut Exchange, wait: &mut dyn Wait, has_read: bool) -> Result<(), Fault> {
    let step = exchange.next_step();
    exchange.open(wait, step)?;
    exchange.publish_inline(step, BytesView::from_words(&[u64::from(has_read)]));
    exchange.finish(step);
    has_read.then_some(()).ok_or(Fault::Refused)
}

/// The others wait for that.
fn hear_root(exchange: &mut Exchange, wait: &mut dyn Wait, root: usize) -> Result<(), Fault> {
    let step = exchange.next_step();
    exchange.heed(wait, root, step)?;
    let word = exchange.inline(root, step, size_of::<u64>());
    let has_read = word.view(size_of::<u64>()).first_word() == 1;
    exchange.finish(step);
    has_read.then_some(()).ok_or(Fault::Refused)
}
