// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reduce and allreduce as callers see them, over either way to bring the ranks' elements together:
//! through the segment ([`Team`]) or out of the ranks' memory ([`crate::Direct`]).

use weft_memory::{BytesView, BytesViewMut};

use crate::allreduce;
use crate::arithmetic::Reduction;
use crate::buffers::{Buffers, Receivers};
use crate::by_domain::ByDomain;
use crate::fault::Fault;
use crate::kind::Kind;
use crate::team::Team;
use crate::wait::Wait;

/// One call's data and what becomes of them, checked. Made and read in this crate.
#[derive(Debug)]
pub struct Combining<'a> {
    /// What this rank gives, and where the result goes.
    pub(crate) buffers: Buffers<'a>,
    /// What is done with each element.
    pub(crate) reduction: Reduction,
    /// Who gets the result.
    pub(crate) receivers: Receivers,
}

impl Combining<'_> {
    /// The kind and the root in the call's mark.
    #[inline(always)]
    pub(crate) fn kind_and_root(&self) -> (u8, usize) {
        match self.receivers {
            Receivers::All => (Kind::Allreduce.with(self.reduction), 0),
            Receivers::Only(root) => (Kind::Reduce.with(self.reduction), root),
        }
    }
}

/// Reduce and allreduce.
pub trait Reductions {
    /// The ranks that take part.
    fn team(&self) -> &Team;

    /// Carries a call out whose arguments are checked: what both calls come down to.
    ///
    /// # Errors
    /// [`Fault::Stopped`], [`Fault::Mismatch`], [`Fault::Unreachable`].
    fn combine(&mut self, wait: &mut dyn Wait, call: Combining<'_>) -> Result<(), Fault>;

    /// Combines all ranks' elements, in the order of ranks, for `root`. What a rank gives is
    /// `send`, or what `recv` holds where there is none; `recv` of other ranks than the root may be
    /// empty where there is `send`, and keeps its bytes. Fast path.
    ///
    /// # Errors
    /// [`Fault::Stopped`], [`Fault::Mismatch`]; [`Fault::Ranks`] if there is no such root;
    /// [`Fault::Length`] if the root's `recv` is shorter than its `send`.
    #[inline]
    fn reduce(
        &mut self,
        wait: &mut dyn Wait,
        send: Option<BytesView<'_>>,
        recv: BytesViewMut<'_>,
        reduction: Reduction,
        root: usize,
    ) -> Result<(), Fault> {
        self.team().check_root(root)?;
        let buffers = Buffers { send, recv };
        if self.team().rank() == root {
            buffers.check()?;
        }
        let receivers = Receivers::Only(root);
        self.combine(
            wait,
            Combining {
                buffers,
                reduction,
                receivers,
            },
        )
    }

    /// Combines all ranks' elements, in the order of ranks, for all ranks: the same bits on each of
    /// them. What a rank gives is `send`, or what `recv` holds where there is none. Fast path.
    ///
    /// # Errors
    /// [`Fault::Stopped`], [`Fault::Mismatch`]; [`Fault::Length`] if `recv` is shorter than `send`.
    #[inline]
    fn allreduce(
        &mut self,
        wait: &mut dyn Wait,
        send: Option<BytesView<'_>>,
        recv: BytesViewMut<'_>,
        reduction: Reduction,
    ) -> Result<(), Fault> {
        let buffers = Buffers { send, recv };
        buffers.check()?;
        let receivers = Receivers::All;
        self.combine(
            wait,
            Combining {
                buffers,
                reduction,
                receivers,
            },
        )
    }
}

/// Through the segment.
impl Reductions for Team {
    #[inline]
    fn team(&self) -> &Team {
        self
    }

    #[inline]
    fn combine(&mut self, wait: &mut dyn Wait, mut call: Combining<'_>) -> Result<(), Fault> {
        let length_bytes = call.buffers.given().length_bytes();
        if length_bytes == 0 {
            return Ok(());
        }
        let (kind, root) = call.kind_and_root();
        self.begin(kind, root, length_bytes)?;
        let (reduction, receivers) = (call.reduction, call.receivers);
        if let Some(mut by_domain) = ByDomain::of(&mut self.exchange, self.domains.as_deref())
            && by_domain.combines(length_bytes)
        {
            return by_domain.combine(wait, &mut call.buffers, reduction, receivers);
        }
        allreduce::run(
            &mut self.exchange,
            wait,
            &mut call.buffers,
            reduction,
            receivers,
        )
    }
}
