// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Non-blocking collectives (docs/collectives.md, clause 4.11): calls are begun, and go on each
//! time somebody asks. Called by whoever has a communicator; runs the algorithms of pipeline.rs,
//! but waits for nobody.
//!
//! Ranks begin the calls of a communicator in the same order, so that each call's steps are known
//! when it is begun. A rank publishes the steps in this order, and reads them in this order; a call
//! that has to wait for another rank lets those behind it publish, but not end.

use std::collections::VecDeque;
use std::fmt;

use weft_memory::{BytesView, BytesViewMut};

use crate::arithmetic::Reduction;
use crate::barrier::Meeting;
use crate::bcast::Broadcast;
use crate::blocks::{Blocks, Chunks};
use crate::buffers::{Buffers, Receivers};
use crate::exchange::{Call, Exchange, Ready};
use crate::fault::{Fault, Stopped};
use crate::gathering::Gathering;
use crate::kind::Kind;
use crate::pipeline::Transfer;
use crate::reduce_scatter::{self, ReduceScatter};
use crate::scan::Scan;
use crate::spreading::{self, Givers, Spreading, Taken};
use crate::team::Team;
use crate::wait::Wait;

/// Which ranks combine whose data, in [`Nonblocking::combine`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Combination {
    /// Each rank those of all (allreduce).
    All,
    /// One rank those of all (reduce).
    Root(usize),
    /// Each rank its own and those of the ranks below it (scan).
    UpTo,
    /// Each rank those of the ranks below it (exscan).
    Below,
}

/// One rank's end of a communicator's non-blocking collectives. Has a segment of its own. Used by
/// one thread at a time.
///
/// All ranks must begin the same calls in the same order, as for [`Team`]. Results are combined in
/// the order of ranks. Beginning a call takes two allocations at most.
pub struct Nonblocking {
    exchange: Exchange,
    /// Those that have not ended, in the order in which they were begun.
    calls: VecDeque<UnderWay>,
    /// How many of them have published everything.
    given: usize,
}

impl fmt::Debug for Nonblocking {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Nonblocking")
            .field("exchange", &self.exchange)
            .field("calls", &self.calls.len())
            .finish_non_exhaustive()
    }
}

// SAFETY: what keeps it from being sent are the views of the callers' buffers, which belong to the
// process and not to a thread.
unsafe impl Send for Nonblocking {}

/// One call.
struct UnderWay {
    transfer: Box<dyn Transfer>,
    call: Call,
    first_step: u64,
    /// Chunks that were published, or that others publish.
    given: usize,
    /// Chunks that were read.
    taken: usize,
}

impl UnderWay {
    /// Whether the next chunk's turn to be published has come: one ahead of what was read, as in
    /// pipeline.rs.
    fn may_give(&self) -> bool {
        self.given < self.transfer.count() && self.given <= self.taken + 1
    }
}

/// Nothing here may wait.
struct Never;

impl Wait for Never {
    fn pause(&mut self, _: u32) -> Result<(), Stopped> {
        Err(Stopped)
    }
}

impl Nonblocking {
    /// In place of a team that has made no call.
    pub fn new(team: Team) -> Self {
        Self {
            exchange: team.exchange,
            calls: VecDeque::new(),
            given: 0,
        }
    }

    /// How many calls are under way.
    pub fn count(&self) -> usize {
        self.calls.len()
    }

    fn begin(
        &mut self,
        kind: u8,
        root: usize,
        length_bytes: usize,
        transfer: impl Transfer + 'static,
    ) -> Result<(), Fault> {
        Ready(&mut self.exchange).check()?;
        let first_step = self.exchange.next_step();
        for _ in 1..transfer.count() {
            self.exchange.next_step();
        }
        self.calls.push_back(UnderWay {
            transfer: Box::new(transfer),
            call: Call {
                kind,
                root,
                length_bytes,
            },
            first_step,
            given: 0,
            taken: 0,
        });
        Ok(())
    }

    /// Goes on with all calls as far as that goes without waiting; answers how many more have
    /// ended, in the order in which they were begun.
    ///
    /// # Errors
    /// [`Fault::Mismatch`]; then no call ends any more.
    pub fn advance(&mut self) -> Result<usize, Fault> {
        Ready(&mut self.exchange).check()?;
        let mut ended = 0;
        loop {
            let has_given = self.give()?;
            let (has_taken, count) = self.take()?;
            ended += count;
            if !has_given && !has_taken {
                return Ok(ended);
            }
        }
    }

    /// Publishes what may be published now; whether that was anything.
    fn give(&mut self) -> Result<bool, Fault> {
        let mut has_given = false;
        while let Some(call) = self.calls.get_mut(self.given) {
            while call.may_give() {
                let step = call.first_step + call.given as u64;
                if !Ready(&mut self.exchange).is_open(step) {
                    return Ok(has_given);
                }
                self.exchange.begin(call.call)?;
                let chunk = call.given;
                call.transfer
                    .give(&mut self.exchange, &mut Never, chunk, step)?;
                call.given += 1;
                has_given = true;
            }
            if call.given < call.transfer.count() {
                break;
            }
            self.given += 1;
        }
        Ok(has_given)
    }

    /// Reads what can be read now; whether that was anything, and how many calls it ended.
    fn take(&mut self) -> Result<(bool, usize), Fault> {
        let (mut has_taken, mut ended) = (false, 0);
        while let Some(call) = self.calls.front_mut() {
            while call.taken < call.given {
                let (step, chunk) = (call.first_step + call.taken as u64, call.taken);
                let (own, ranks) = (self.exchange.rank(), self.exchange.ranks());
                let ready = Ready(&mut self.exchange);
                let is_missing = |rank| {
                    call.transfer.awaits(own, rank, chunk) && !ready.is_published(rank, step)
                };
                if (0..ranks).any(is_missing) {
                    return Ok((has_taken, ended));
                }
                self.exchange.begin(call.call)?;
                call.transfer
                    .take(&mut self.exchange, &mut Never, chunk, step)?;
                self.exchange.finish(step);
                call.taken += 1;
                has_taken = true;
            }
            if call.taken < call.transfer.count() {
                break;
            }
            self.calls.pop_front();
            self.given -= 1;
            ended += 1;
        }
        Ok((has_taken, ended))
    }

    fn check_root(&self, root: usize) -> Result<(), Fault> {
        let ranks = self.exchange.ranks();
        match root < ranks {
            true => Ok(()),
            false => Err(Fault::Ranks { ranks, rank: root }),
        }
    }

    /// Begins a barrier.
    ///
    /// # Errors
    /// What an earlier call failed with, here and below.
    pub fn barrier(&mut self) -> Result<(), Fault> {
        self.begin(Kind::Barrier as u8, 0, 0, Meeting)
    }

    /// Begins a bcast. No data of no length: here and below, a call that moves nothing is none.
    ///
    /// # Errors
    /// [`Fault::Ranks`] if there is no such root, here and below.
    pub fn bcast(&mut self, buffer: BytesViewMut<'static>, root: usize) -> Result<(), Fault> {
        self.check_root(root)?;
        let length_bytes = buffer.length_bytes();
        let chunks = Chunks::new(length_bytes, self.exchange.chunk_bytes(length_bytes));
        let transfer = Broadcast {
            buffer,
            root,
            chunks,
        };
        self.begin(Kind::Bcast as u8, root, length_bytes, transfer)
    }

    /// Begins a gather to a root, or to all where there is none. As [`Team::gather`] and
    /// [`Team::allgather`], with even blocks.
    ///
    /// # Errors
    /// [`Fault::Length`], here and below.
    pub fn gather(
        &mut self,
        send: Option<BytesView<'static>>,
        recv: BytesViewMut<'static>,
        block_bytes: usize,
        root: Option<usize>,
    ) -> Result<(), Fault> {
        let (blocks, own) = (Blocks::Even(block_bytes), self.exchange.rank());
        let (kind, receivers) = match root {
            Some(root) => (Kind::Gather, Receivers::Only(root)),
            None => (Kind::Allgather, Receivers::All),
        };
        self.check_root(root.unwrap_or(0))?;
        if receivers.include(own) {
            blocks.check(self.exchange.ranks(), recv.length_bytes())?;
        }
        let transfer = Gathering {
            buffers: Buffers { send, recv },
            blocks,
            receivers,
            chunks: Chunks::new(block_bytes, self.exchange.chunk_bytes(block_bytes)),
        };
        self.begin(kind as u8, root.unwrap_or(0), block_bytes, transfer)
    }

    /// Begins a scatter, as [`Team::scatter`] with even blocks.
    ///
    /// # Errors
    /// As above.
    pub fn scatter(
        &mut self,
        send: BytesView<'static>,
        recv: Option<BytesViewMut<'static>>,
        block_bytes: usize,
        root: usize,
    ) -> Result<(), Fault> {
        self.check_root(root)?;
        let blocks = Blocks::Even(block_bytes);
        if self.exchange.rank() == root {
            blocks.check(self.exchange.ranks(), send.length_bytes())?;
        }
        if let Some(recv) = &recv {
            blocks.check(1, recv.length_bytes())?;
        }
        let recv = recv.unwrap_or(BytesViewMut::from_slice(&mut []));
        let taken_bytes = recv.length_bytes().min(block_bytes);
        let transfer = Spreading {
            buffers: Buffers {
                send: Some(send),
                recv,
            },
            given: blocks,
            taken: Taken::One(taken_bytes),
            givers: Givers::Only(root),
            chunks: spreading::chunks(&self.exchange, block_bytes),
            skipped_bytes: 0,
        };
        self.begin(Kind::Scatter as u8, root, block_bytes, transfer)
    }

    /// Begins an alltoall, as [`Team::alltoall`] with even blocks.
    ///
    /// # Errors
    /// As above.
    pub fn alltoall(
        &mut self,
        send: Option<BytesView<'static>>,
        recv: BytesViewMut<'static>,
        block_bytes: usize,
    ) -> Result<(), Fault> {
        let blocks = Blocks::Even(block_bytes);
        let buffers = Buffers { send, recv };
        blocks.check(self.exchange.ranks(), buffers.given().length_bytes())?;
        blocks.check(self.exchange.ranks(), buffers.recv.length_bytes())?;
        let transfer = Spreading {
            buffers,
            given: blocks,
            taken: Taken::Each(blocks),
            givers: Givers::All,
            chunks: spreading::chunks(&self.exchange, block_bytes),
            skipped_bytes: 0,
        };
        self.begin(Kind::Alltoall as u8, 0, block_bytes, transfer)
    }

    /// Begins a reduce_scatter, as [`Team::reduce_scatter`] with even blocks.
    ///
    /// # Errors
    /// As above.
    pub fn reduce_scatter(
        &mut self,
        send: Option<BytesView<'static>>,
        recv: BytesViewMut<'static>,
        block_bytes: usize,
        reduction: Reduction,
    ) -> Result<(), Fault> {
        let (blocks, ranks) = (Blocks::Even(block_bytes), self.exchange.ranks());
        let buffers = Buffers { send, recv };
        blocks.check(ranks, buffers.given().length_bytes())?;
        buffers.check_recv(block_bytes)?;
        let transfer = ReduceScatter {
            buffers,
            blocks,
            reduction,
            chunks: reduce_scatter::chunks(ranks, block_bytes),
        };
        let kind = Kind::ReduceScatter.with(reduction);
        self.begin(kind, 0, block_bytes, transfer)
    }

    /// Begins a reduce, allreduce, scan or exscan, in which ranks combine all data that they need
    /// by themselves.
    ///
    /// # Errors
    /// As above.
    pub fn combine(
        &mut self,
        send: Option<BytesView<'static>>,
        recv: BytesViewMut<'static>,
        reduction: Reduction,
        combination: Combination,
    ) -> Result<(), Fault> {
        let (own, ranks) = (self.exchange.rank(), self.exchange.ranks());
        let (kind, root, counted) = match combination {
            Combination::All => (Kind::Allreduce, 0, ranks),
            Combination::Root(root) if root == own => (Kind::Reduce, root, ranks),
            Combination::Root(root) => (Kind::Reduce, root, 0),
            Combination::UpTo => (Kind::Scan, 0, own + 1),
            Combination::Below => (Kind::Exscan, 0, own),
        };
        self.check_root(root)?;
        let buffers = Buffers { send, recv };
        if counted > 0 {
            buffers.check()?;
        }
        let length_bytes = buffers.given().length_bytes();
        let transfer = Scan {
            buffers,
            reduction,
            counted,
            length_bytes,
            chunks: Chunks::new(length_bytes, self.exchange.chunk_bytes(length_bytes)),
        };
        self.begin(kind.with(reduction), root, length_bytes, transfer)
    }
}
