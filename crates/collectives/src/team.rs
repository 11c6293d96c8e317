// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The calls: checks the arguments, then runs the algorithm. Called by whoever has a communicator.

use core::ptr::NonNull;

use weft_memory::{BytesView, BytesViewMut};

use crate::arithmetic::Reduction;
use crate::buffers::{Buffers, Receivers};
use crate::exchange::{Call, Exchange};
use crate::fault::Fault;
use crate::layout::{CONTROL_BYTES, RANK_LIMIT};
use crate::segment::Segment;
use crate::shape::Shape;
use crate::wait::{Patience, Wait};
use crate::{allreduce, barrier, bcast};

/// Which collective a call is, in a mark. Specified by docs/collectives.md, clause 3.
#[derive(Clone, Copy)]
enum Kind {
    Barrier = 1,
    Bcast,
    Reduce,
    Allreduce,
}

/// One rank's end of a communicator's collectives. Used by one thread at a time.
///
/// All ranks must make the same calls, with the same lengths, roots and reductions, in the same
/// order; a rank that does not is found out mostly ([`Fault::Mismatch`]). A call reads and writes
/// the caller's buffers only until it returns. None allocates or calls the system by itself.
#[derive(Debug)]
pub struct Team {
    exchange: Exchange,
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
        if base.addr().get() % CONTROL_BYTES != 0 {
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
        barrier::run(&mut self.exchange, wait)
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
        bcast::run(&mut self.exchange, wait, buffer, root)
    }

    /// Combines all ranks' elements, in the order of ranks, for `root`. What a rank gives is
    /// `send`, or what `recv` holds where there is none; `recv` of other ranks than the root may be
    /// empty where there is `send`, and keeps its bytes. Fast path.
    ///
    /// # Errors
    /// [`Fault::Stopped`], [`Fault::Mismatch`]; [`Fault::Ranks`] if there is no such root;
    /// [`Fault::Length`] if the root's `recv` is shorter than its `send`.
    pub fn reduce(
        &mut self,
        wait: &mut dyn Wait,
        send: Option<BytesView<'_>>,
        recv: BytesViewMut<'_>,
        reduction: Reduction,
        root: usize,
    ) -> Result<(), Fault> {
        self.check_root(root)?;
        let mut buffers = Buffers { send, recv };
        if self.rank() == root {
            buffers.check()?;
        }
        self.combine(wait, &mut buffers, reduction, Receivers::Only(root))
    }

    /// Combines all ranks' elements, in the order of ranks, for all ranks: the same bits on each of
    /// them. What a rank gives is `send`, or what `recv` holds where there is none. Fast path.
    ///
    /// # Errors
    /// [`Fault::Stopped`], [`Fault::Mismatch`]; [`Fault::Length`] if `recv` is shorter than `send`.
    pub fn allreduce(
        &mut self,
        wait: &mut dyn Wait,
        send: Option<BytesView<'_>>,
        recv: BytesViewMut<'_>,
        reduction: Reduction,
    ) -> Result<(), Fault> {
        let mut buffers = Buffers { send, recv };
        buffers.check()?;
        self.combine(wait, &mut buffers, reduction, Receivers::All)
    }

    fn combine(
        &mut self,
        wait: &mut dyn Wait,
        buffers: &mut Buffers<'_>,
        reduction: Reduction,
        receivers: Receivers,
    ) -> Result<(), Fault> {
        let length_bytes = buffers.given().length_bytes();
        if length_bytes == 0 {
            return Ok(());
        }
        let (kind, root) = match receivers {
            Receivers::All => (Kind::Allreduce, 0),
            Receivers::Only(root) => (Kind::Reduce, root),
        };
        let kind = (kind as u8).wrapping_add(reduction.code().wrapping_mul(16));
        self.begin(kind, root, length_bytes)?;
        allreduce::run(&mut self.exchange, wait, buffers, reduction, receivers)
    }

    #[inline(always)]
    fn begin(&mut self, kind: u8, root: usize, length_bytes: usize) -> Result<(), Fault> {
        self.exchange.begin(Call {
            kind,
            root,
            length_bytes,
        })
    }

    fn check_root(&self, root: usize) -> Result<(), Fault> {
        let ranks = self.ranks();
        if root < ranks {
            Ok(())
        } else {
            Err(Fault::Ranks { ranks, rank: root })
        }
    }
}
