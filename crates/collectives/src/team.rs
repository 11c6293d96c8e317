// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The calls: checks the arguments, then runs the algorithm. Called by whoever has a communicator.

use core::ptr::NonNull;

use weft_memory::{BytesView, BytesViewMut};

use crate::arithmetic::Reduction;
use crate::blocks::{Blocks, Chunks};
use crate::buffers::{Buffers, Receivers};
use crate::by_domain::ByDomain;
use crate::domains::Domains;
use crate::exchange::{Call, Exchange, Notices};
use crate::fault::Fault;
use crate::gathering::Gathering;
use crate::kind::{Kind, with_lengths};
use crate::layout::{CONTROL_BYTES, INLINE_BYTES, RANK_LIMIT};
use crate::reach::Shown;
use crate::reduce_scatter::{self, ReduceScatter};
use crate::scan::Scan;
use crate::segment::Segment;
use crate::shape::Shape;
use crate::spreading::{self, Givers, Spreading, Taken};
use crate::uneven::{self, Terms};
use crate::wait::{Patience, Wait};
use crate::{agreement, barrier, bcast, pipeline};

/// A call in which ranks know only some of the lengths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Uneven {
    /// [`Team::gather`].
    Gather {
        /// Its root.
        root: usize,
    },
    /// [`Team::scatter`].
    Scatter {
        /// Its root.
        root: usize,
    },
    /// [`Team::alltoall`].
    Alltoall,
}

/// One rank's end of a communicator's collectives. Used by one thread at a time.
///
/// All ranks must make the same calls, with the same lengths, roots and reductions, in the same
/// order; a rank that does not is found out mostly ([`Fault::Mismatch`]). A call reads and writes
/// the caller's buffers only until it returns. None allocates or calls the system by itself.
#[derive(Debug)]
pub struct Team {
    /// The hand-over.
    pub(crate) exchange: Exchange,
    /// What ranks show of their data in a call that reads them in place.
    pub(crate) shown: Box<[Shown]>,
    /// The ranks' cache domains, where there are several.
    pub(crate) domains: Option<Box<Domains>>,
}

impl Team {
    /// Takes rank `rank` of `ranks` in a segment. Set-up.
    ///
    /// # Errors
    /// [`Fault::Ranks`], or [`Fault::Unaligned`].
    ///
    /// # Safety
    /// `base` must be mapped, readable and writable, for [`crate::segment_bytes`] bytes as long as
    /// the team lives; the memory must have been all zero before the first rank attached. Other
    /// ranks may write anything to it at any time; no Rust reference to it may exist.
    pub unsafe fn attach(
        base: NonNull<u8>,
        ranks: usize,
        rank: usize,
        shape: &Shape,
    ) -> Result<Self, Fault> {
        if rank >= ranks || ranks > RANK_LIMIT {
            return Err(Fault::Ranks { ranks, rank });
        }
        if !base.addr().get().is_multiple_of(CONTROL_BYTES) {
            return Err(Fault::Unaligned);
        }
        // SAFETY: the caller vouches for the memory, and the alignment was just checked.
        let segment = unsafe { Segment::new(base, ranks) };
        Ok(Self::over(segment, ranks, rank, shape))
    }

    pub(crate) fn over(segment: Segment, ranks: usize, rank: usize, shape: &Shape) -> Self {
        let patience = Patience::new(shape.oversubscribed);
        Self {
            exchange: Exchange::new(segment, ranks, rank, patience),
            shown: vec![Shown::default(); ranks].into(),
            domains: Domains::of(shape, rank).map(Box::new),
        }
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> usize {
        self.exchange.ranks()
    }

    /// Our rank.
    pub fn rank(&self) -> usize {
        self.exchange.rank()
    }

    /// Returns once all ranks have called it. Fast path.
    ///
    /// # Errors
    /// [`Fault::Stopped`], [`Fault::Mismatch`].
    pub fn barrier(&mut self, wait: &mut dyn Wait) -> Result<(), Fault> {
        self.begin(Kind::Barrier as u8, 0, 0)?;
        match ByDomain::of(&mut self.exchange, self.domains.as_deref()) {
            Some(mut by_domain) => by_domain.barrier(wait),
            None => barrier::run(&mut self.exchange, wait),
        }
    }

    /// Returns at once, but at `root`, where it returns once all ranks have called it. Fast path.
    ///
    /// # Errors
    /// [`Fault::Stopped`], [`Fault::Mismatch`]; [`Fault::Ranks`] if there is no such root.
    pub fn report(&mut self, wait: &mut dyn Wait, root: usize) -> Result<(), Fault> {
        self.check_root(root)?;
        self.begin(Kind::Report as u8, root, 0)?;
        barrier::report(&mut self.exchange, wait, root)
    }

    /// Ends the team: whoever waits for what this rank publishes next gets [`Fault::Mismatch`], and
    /// all later calls of this rank fail. For ranks that cannot carry on what others wait for.
    pub fn abandon(&mut self, wait: &mut dyn Wait) {
        if self.begin(Kind::Abandon as u8, 0, 0).is_err() {
            return;
        }
        let step = self.exchange.next_step();
        // A flag that does not open belongs to a rank that has ended.
        if self.exchange.open(wait, step).is_ok() {
            let nothing = BytesView::from_slice(&[]);
            self.exchange.publish_inline(step, nothing);
        }
        Notices(&mut self.exchange).give_up();
        self.exchange.give_up(Fault::Stopped);
    }

    /// Brings the bytes of `root` to all ranks. Fast path.
    ///
    /// # Errors
    /// [`Fault::Stopped`], [`Fault::Mismatch`]; [`Fault::Ranks`] if there is no such root.
    pub fn bcast(
        &mut self,
        wait: &mut dyn Wait,
        buffer: BytesViewMut<'_>,
        root: usize,
    ) -> Result<(), Fault> {
        self.check_root(root)?;
        if buffer.length_bytes() == 0 {
            return Ok(());
        }
        self.begin(Kind::Bcast as u8, root, buffer.length_bytes())?;
        match ByDomain::of(&mut self.exchange, self.domains.as_deref()) {
            Some(mut by_domain) if buffer.length_bytes() <= INLINE_BYTES => {
                by_domain.bcast(wait, buffer, root)
            }
            _ => bcast::run(&mut self.exchange, wait, buffer, root),
        }
    }

    /// Brings all ranks' blocks to `root`, which says where they go; what `blocks` says on other
    /// ranks does not count, but all name either even or uneven ones. What a rank gives is `send`;
    /// the root may have its block in `recv` already and give none. `recv` of other ranks may be
    /// empty. Fast path; uneven blocks take a step more.
    ///
    /// # Errors
    /// [`Fault::Stopped`], [`Fault::Mismatch`]; [`Fault::Ranks`] if there is no such root;
    /// [`Fault::Length`] if a block lies outside of the root's `recv`.
    pub fn gather(
        &mut self,
        wait: &mut dyn Wait,
        send: Option<BytesView<'_>>,
        recv: BytesViewMut<'_>,
        blocks: Blocks<'_>,
        root: usize,
    ) -> Result<(), Fault> {
        self.check_root(root)?;
        let buffers = Buffers { send, recv };
        let mut own_bytes = buffers.send.map_or(0, |send| send.length_bytes());
        if self.rank() == root {
            blocks.check(self.ranks(), buffers.recv.length_bytes())?;
            own_bytes = blocks.longest_bytes();
        }
        self.begin(
            with_lengths(Kind::Gather, blocks),
            root,
            blocks.common_bytes(),
        )?;
        let longest_bytes = match blocks {
            Blocks::Even(length_bytes) => length_bytes,
            Blocks::Uneven(_) => agreement::longest(&mut self.exchange, wait, own_bytes)?,
        };
        let mut gathering = Gathering {
            buffers,
            blocks,
            receivers: Receivers::Only(root),
            chunks: Chunks::new(longest_bytes, self.exchange.chunk_bytes(longest_bytes)),
        };
        pipeline::run(&mut self.exchange, wait, &mut gathering)
    }

    /// Brings all ranks' blocks to all ranks. What a rank gives is `send`, or its block in `recv`
    /// where there is none. All name the same blocks. Fast path.
    ///
    /// # Errors
    /// [`Fault::Stopped`], [`Fault::Mismatch`]; [`Fault::Length`] if a block lies outside of
    /// `recv`.
    pub fn allgather(
        &mut self,
        wait: &mut dyn Wait,
        send: Option<BytesView<'_>>,
        recv: BytesViewMut<'_>,
        blocks: Blocks<'_>,
    ) -> Result<(), Fault> {
        blocks.check(self.ranks(), recv.length_bytes())?;
        self.begin(
            with_lengths(Kind::Allgather, blocks),
            0,
            blocks.common_bytes(),
        )?;
        let longest_bytes = blocks.longest_bytes();
        let mut gathering = Gathering {
            buffers: Buffers { send, recv },
            blocks,
            receivers: Receivers::All,
            chunks: Chunks::new(longest_bytes, self.exchange.chunk_bytes(longest_bytes)),
        };
        pipeline::run(&mut self.exchange, wait, &mut gathering)
    }

    /// Brings a block of the root's `send` to each rank's `recv`. Only the root's `blocks` count,
    /// but all name either even or uneven ones. Without `recv` the root leaves its own block where
    /// it is. Fast path; uneven blocks take a step more.
    ///
    /// # Errors
    /// [`Fault::Stopped`], [`Fault::Mismatch`]; [`Fault::Ranks`] if there is no such root;
    /// [`Fault::Length`] if a block lies outside of the root's `send`, or is longer than `recv`.
    pub fn scatter(
        &mut self,
        wait: &mut dyn Wait,
        send: BytesView<'_>,
        recv: Option<BytesViewMut<'_>>,
        blocks: Blocks<'_>,
        root: usize,
    ) -> Result<(), Fault> {
        self.check_root(root)?;
        if let Some(recv) = &recv {
            Blocks::Even(blocks.common_bytes()).check(1, recv.length_bytes())?;
        }
        let mut recv = recv.unwrap_or(BytesViewMut::from_slice(&mut []));
        let mut longest_bytes = recv.length_bytes();
        if self.rank() == root {
            blocks.check(self.ranks(), send.length_bytes())?;
            longest_bytes = blocks.longest_bytes();
        }
        self.begin(
            with_lengths(Kind::Scatter, blocks),
            root,
            blocks.common_bytes(),
        )?;
        if let Blocks::Uneven(_) = blocks {
            longest_bytes = agreement::longest(&mut self.exchange, wait, longest_bytes)?;
        } else {
            longest_bytes = blocks.common_bytes();
        }
        // All that this rank takes is one block at the beginning of `recv`.
        let taken_bytes = recv.length_bytes().min(longest_bytes);
        let mut spreading = Spreading {
            buffers: Buffers {
                send: Some(send),
                recv: recv.part(0, taken_bytes),
            },
            given: blocks,
            taken: Taken::One(taken_bytes),
            givers: Givers::Only(root),
            chunks: spreading::chunks(&self.exchange, longest_bytes),
            skipped_bytes: 0,
        };
        pipeline::run(&mut self.exchange, wait, &mut spreading)
    }

    /// Brings a block from each rank to each rank. Block `i` of `given` lies in `send` and goes to
    /// rank `i`; block `i` of `taken` lies in `recv` and comes from rank `i`. Without `send` the
    /// blocks given are those that lie in `recv` before, and `given` does not count. Fast path;
    /// uneven blocks take a step more.
    ///
    /// # Errors
    /// [`Fault::Stopped`], [`Fault::Mismatch`]; [`Fault::Length`] if a block lies outside of its
    /// buffer.
    pub fn alltoall(
        &mut self,
        wait: &mut dyn Wait,
        send: Option<BytesView<'_>>,
        recv: BytesViewMut<'_>,
        given: Blocks<'_>,
        taken: Blocks<'_>,
    ) -> Result<(), Fault> {
        let mut spreading = self.alltoall_of(Buffers { send, recv }, given, taken)?;
        let exchange = &mut self.exchange;
        match taken {
            Blocks::Even(length_bytes) => {
                spreading.chunks = spreading::chunks(exchange, length_bytes);
                pipeline::run(exchange, wait, &mut spreading)
            }
            Blocks::Uneven(_) => {
                let terms = Terms {
                    tries: false,
                    most_staged_bytes: usize::MAX,
                };
                uneven::run(exchange, wait, &mut spreading, None, terms)
            }
        }
    }

    /// Begins an alltoall; how it is cut is left open.
    pub(crate) fn alltoall_of<'a>(
        &mut self,
        buffers: Buffers<'a>,
        given: Blocks<'a>,
        taken: Blocks<'a>,
    ) -> Result<Spreading<'a>, Fault> {
        let given = match buffers.send {
            Some(send) => given
                .check(self.ranks(), send.length_bytes())
                .map(|()| given)?,
            None => taken,
        };
        taken.check(self.ranks(), buffers.recv.length_bytes())?;
        self.begin(with_lengths(Kind::Alltoall, taken), 0, taken.common_bytes())?;
        Ok(Spreading {
            buffers,
            given,
            taken: Taken::Each(taken),
            givers: Givers::All,
            chunks: Chunks::new(0, 1),
            skipped_bytes: 0,
        })
    }

    /// Combines all ranks' elements, in the order of ranks, and leaves each rank its own block of
    /// the result at the beginning of `recv`. What a rank gives is `send`, or what `recv` holds
    /// where there is none. All name the same blocks. Fast path.
    ///
    /// # Errors
    /// [`Fault::Stopped`], [`Fault::Mismatch`]; [`Fault::Length`] if a block lies outside of what
    /// is given, or the result outside of `recv`.
    pub fn reduce_scatter(
        &mut self,
        wait: &mut dyn Wait,
        send: Option<BytesView<'_>>,
        recv: BytesViewMut<'_>,
        blocks: Blocks<'_>,
        reduction: Reduction,
    ) -> Result<(), Fault> {
        let buffers = Buffers { send, recv };
        blocks.check(self.ranks(), buffers.given().length_bytes())?;
        buffers.check_recv(blocks.of(self.rank()).length_bytes)?;
        let kind = Kind::ReduceScatter.with(reduction);
        self.begin(kind, 0, blocks.common_bytes())?;
        let mut reduce_scatter = ReduceScatter {
            buffers,
            blocks,
            reduction,
            chunks: reduce_scatter::chunks(self.ranks(), blocks.longest_bytes()),
        };
        pipeline::run(&mut self.exchange, wait, &mut reduce_scatter)
    }

    /// Combines the elements of all ranks up to this one, in the order of ranks. What a rank gives
    /// is `send`, or what `recv` holds where there is none. Fast path.
    ///
    /// # Errors
    /// As [`crate::Reductions::allreduce`].
    pub fn scan(
        &mut self,
        wait: &mut dyn Wait,
        send: Option<BytesView<'_>>,
        recv: BytesViewMut<'_>,
        reduction: Reduction,
    ) -> Result<(), Fault> {
        self.prefix(wait, Buffers { send, recv }, reduction, Kind::Scan)
    }

    /// As [`Self::scan`], without this rank's own elements. The first rank's `recv` stays.
    ///
    /// # Errors
    /// As [`crate::Reductions::allreduce`].
    pub fn exscan(
        &mut self,
        wait: &mut dyn Wait,
        send: Option<BytesView<'_>>,
        recv: BytesViewMut<'_>,
        reduction: Reduction,
    ) -> Result<(), Fault> {
        self.prefix(wait, Buffers { send, recv }, reduction, Kind::Exscan)
    }

    fn prefix(
        &mut self,
        wait: &mut dyn Wait,
        buffers: Buffers<'_>,
        reduction: Reduction,
        kind: Kind,
    ) -> Result<(), Fault> {
        let counted = self.rank() + usize::from(kind == Kind::Scan);
        if counted > 0 {
            buffers.check()?;
        }
        let length_bytes = buffers.given().length_bytes();
        if length_bytes == 0 {
            return Ok(());
        }
        self.begin(kind.with(reduction), 0, length_bytes)?;
        let mut scan = Scan {
            buffers,
            reduction,
            counted,
            length_bytes,
            chunks: Chunks::new(length_bytes, self.exchange.chunk_bytes(length_bytes)),
        };
        pipeline::run(&mut self.exchange, wait, &mut scan)
    }

    /// Takes part in a call with uneven blocks in place of [`Self::gather`], [`Self::scatter`] or
    /// [`Self::alltoall`], without data: the call fails on all ranks, and the team is as before.
    ///
    /// # Errors
    /// Always: [`Fault::Refused`], or [`Fault::Stopped`] and [`Fault::Mismatch`].
    pub fn refuse(&mut self, wait: &mut dyn Wait, call: Uneven) -> Result<(), Fault> {
        let (kind, root) = match call {
            Uneven::Gather { root } => (Kind::Gather, root),
            Uneven::Scatter { root } => (Kind::Scatter, root),
            Uneven::Alltoall => (Kind::Alltoall, 0),
        };
        self.check_root(root)?;
        self.begin(with_lengths(kind, Blocks::Uneven(&[])), root, 0)?;
        agreement::longest(&mut self.exchange, wait, agreement::REFUSAL).map(|_| ())
    }

    #[inline(always)]
    pub(crate) fn begin(
        &mut self,
        kind: u8,
        root: usize,
        length_bytes: usize,
    ) -> Result<(), Fault> {
        self.exchange.begin(Call {
            kind,
            root,
            length_bytes,
        })
    }

    pub(crate) fn check_root(&self, root: usize) -> Result<(), Fault> {
        let ranks = self.ranks();
        if root < ranks {
            Ok(())
        } else {
            Err(Fault::Ranks { ranks, rank: root })
        }
    }
}
