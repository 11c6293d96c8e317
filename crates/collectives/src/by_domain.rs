// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Short calls by cache domain (docs/collectives.md, clause 4.12): the ranks of a domain meet their
//! leader, the leaders meet each other. A rank then reads the lines of its domain and of the
//! leaders in place of all ranks' lines. Called by team.rs; who is in which domain says domains.rs.
//!
//! Data are combined in the order of ranks, as in allreduce.rs, whatever the domains: leaders hand
//! on their ranks' data, not sums of them. So the bits are the same.

use weft_memory::{BytesView, BytesViewMut};

use crate::arithmetic::Reduction;
use crate::buffers::{Buffers, Receivers};
use crate::domains::Domains;
use crate::exchange::{Exchange, Inline};
use crate::fault::Fault;
use crate::layout::{INLINE_BYTES, STAGE_BYTES};
use crate::segment::Part;
use crate::wait::Wait;

/// A call of ranks in several domains.
#[derive(Debug)]
pub(crate) struct ByDomain<'a> {
    pub(crate) exchange: &'a mut Exchange,
    pub(crate) domains: &'a Domains,
}

impl<'a> ByDomain<'a> {
    /// If there are several domains. Fast path.
    #[inline(always)]
    pub(crate) fn of(exchange: &'a mut Exchange, domains: Option<&'a Domains>) -> Option<Self> {
        domains.map(|domains| Self { exchange, domains })
    }

    /// Returns once all ranks have called. Three steps: the others of a domain come, leaders meet,
    /// leaders let the others go.
    pub(crate) fn barrier(&mut self, wait: &mut dyn Wait) -> Result<(), Fault> {
        let nothing = BytesView::from_slice(&[]);
        let come = self.exchange.next_step();
        let (meet, go) = (self.exchange.next_step(), self.exchange.next_step());
        let domains = self.domains;
        if domains.leads() {
            self.heed_followers(wait, come)?;
            self.exchange.finish(come);
            self.publish(wait, meet, nothing)?;
            for leader in domains.other_leaders() {
                self.exchange.heed(wait, leader, meet)?;
            }
            self.publish_to_followers(wait, go, nothing)?;
        } else {
            self.publish(wait, come, nothing)?;
            self.exchange.finish(meet);
            self.exchange.heed(wait, domains.leader(), go)?;
        }
        self.exchange.finish(go);
        self.exchange.all_have_finished(come - 1);
        Ok(())
    }

    /// Brings the root's bytes, at most [`INLINE_BYTES`], to all ranks. Two steps: the root's
    /// domain and the other leaders read the root, the others their leader.
    pub(crate) fn bcast(
        &mut self,
        wait: &mut dyn Wait,
        mut buffer: BytesViewMut<'_>,
        root: usize,
    ) -> Result<(), Fault> {
        let length_bytes = buffer.length_bytes();
        let (first, second) = (self.exchange.next_step(), self.exchange.next_step());
        let domains = self.domains;
        let is_at_home = domains.are_together(self.exchange.rank(), root);
        if self.exchange.rank() == root {
            self.publish(wait, first, buffer.as_view())?;
        } else if is_at_home || domains.leads() {
            self.exchange.heed(wait, root, first)?;
            let data = self.exchange.inline(root, first, length_bytes);
            if !is_at_home {
                self.publish_to_followers(wait, second, data.view(length_bytes))?;
            }
            buffer.fill(0, data.view(length_bytes));
        } else {
            self.exchange.heed(wait, domains.leader(), second)?;
            let data = self.exchange.inline(domains.leader(), second, length_bytes);
            buffer.fill(0, data.view(length_bytes));
        }
        self.exchange.finish(second);
        Ok(())
    }

    /// Whether data of so many bytes are combined here: they lie in flags, and those of a domain in
    /// the staging of one.
    #[inline]
    pub(crate) fn combines(&self, length_bytes: usize) -> bool {
        length_bytes <= INLINE_BYTES && length_bytes * self.domains.most_ranks() <= STAGE_BYTES
    }

    /// Combines all ranks' data. Three steps: the others of a domain publish their data, leaders
    /// publish those of their domain, and the result; two where only one rank gets it.
    pub(crate) fn combine(
        &mut self,
        wait: &mut dyn Wait,
        buffers: &mut Buffers<'_>,
        reduction: Reduction,
        receivers: Receivers,
    ) -> Result<(), Fault> {
        let length_bytes = buffers.given().length_bytes();
        let (given, brought) = (self.exchange.next_step(), self.exchange.next_step());
        let domains = self.domains;
        if domains.leads() {
            self.heed_followers(wait, given)?;
            self.bring(wait, given, brought, buffers.given())?;
            self.exchange.finish(given);
        } else {
            self.publish(wait, given, buffers.given())?;
        }
        let (last, sum) = match receivers {
            Receivers::Only(root) if root != self.exchange.rank() => {
                self.exchange.finish(brought);
                return Ok(());
            }
            Receivers::Only(_) => (brought, self.sum(wait, brought, reduction, length_bytes)?),
            Receivers::All => {
                let last = self.exchange.next_step();
                (last, self.sum_for_all(wait, last, reduction, length_bytes)?)
            }
        };
        buffers.recv.fill(0, sum.view(length_bytes));
        self.exchange.finish(last);
        self.exchange.all_have_finished(given - 1);
        Ok(())
    }

    /// Leaders combine all ranks' data and publish the result in step `last`, for their domain.
    fn sum_for_all(
        &mut self,
        wait: &mut dyn Wait,
        last: u64,
        reduction: Reduction,
        length_bytes: usize,
    ) -> Result<Inline, Fault> {
        let domains = self.domains;
        if domains.leads() {
            let sum = self.sum(wait, last - 1, reduction, length_bytes)?;
            self.publish_to_followers(wait, last, sum.view(length_bytes))?;
            return Ok(sum);
        }
        self.exchange.finish(last - 1);
        self.exchange.heed(wait, domains.leader(), last)?;
        Ok(self.exchange.inline(domains.leader(), last, length_bytes))
    }

    /// A leader publishes its ranks' data in their order, its own among them.
    fn bring(
        &mut self,
        wait: &mut dyn Wait,
        given: u64,
        brought: u64,
        own: BytesView<'_>,
    ) -> Result<(), Fault> {
        let length_bytes = own.length_bytes();
        self.exchange.open(wait, brought)?;
        for (at, rank) in self.domains.own_ranks().enumerate() {
            let part = Part {
                offset_bytes: at * length_bytes,
                length_bytes,
            };
            let mut place = self.exchange.stage(brought, part);
            if rank == self.exchange.rank() {
                place.fill(0, own);
            } else {
                let data = self.exchange.inline(rank, given, length_bytes);
                place.fill(0, data.view(length_bytes));
            }
        }
        self.exchange.publish(brought);
        Ok(())
    }

    /// All ranks' data, which the leaders bring, combined in the order of ranks.
    fn sum(
        &mut self,
        wait: &mut dyn Wait,
        brought: u64,
        reduction: Reduction,
        length_bytes: usize,
    ) -> Result<Inline, Fault> {
        for leader in self.domains.leaders() {
            self.exchange.heed(wait, leader, brought)?;
        }
        let mut sum = Inline::EMPTY;
        for rank in 0..self.exchange.ranks() {
            let place = self.domains.place(rank);
            let part = Part {
                offset_bytes: place.at * length_bytes,
                length_bytes,
            };
            let data = self.exchange.staged(place.leader, brought, part);
            let mut target = sum.view_mut(length_bytes);
            if rank == 0 {
                target.fill(0, data);
            } else {
                reduction.combine(&mut target, data);
            }
        }
        Ok(sum)
    }

    fn heed_followers(&mut self, wait: &mut dyn Wait, step: u64) -> Result<(), Fault> {
        for rank in self.domains.followers() {
            self.exchange.heed(wait, rank, step)?;
        }
        Ok(())
    }

    fn publish(
        &mut self,
        wait: &mut dyn Wait,
        step: u64,
        data: BytesView<'_>,
    ) -> Result<(), Fault> {
        self.exchange.open(wait, step)?;
        self.exchange.publish_inline(step, data);
        Ok(())
    }

    /// A leader publishes what nobody but its domain reads.
    fn publish_to_followers(
        &mut self,
        wait: &mut dyn Wait,
        step: u64,
        data: BytesView<'_>,
    ) -> Result<(), Fault> {
        match self.domains.followers().next() {
            Some(_) => self.publish(wait, step, data),
            None => Ok(()),
        }
    }
}
