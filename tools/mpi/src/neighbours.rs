// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Communicators in which each rank says from whom it takes and to whom it gives, for neighbourhood
//! collectives.
//!
//! Called by programs; the result is used by planned. Source: MPI 3.1, section 7.5.4.

use crate::communicator::Communicator;
use crate::error::{Error, Result};
use std::ffi::c_int;

impl<'session> Communicator<'session> {
    /// `MPI_Dist_graph_create_adjacent` with equal weights and ranks as they are. Collective;
    /// setup. A rank may be listed several times; the n-th message from a rank then meets the n-th
    /// place for it.
    ///
    /// # Errors
    /// `Argument` for a rank that there is not; `Call` when MPI fails.
    pub fn graph(&self, sources: &[usize], targets: &[usize]) -> Result<Communicator<'session>> {
        let (sources, targets) = (self.ranks_as_ints(sources)?, self.ranks_as_ints(targets)?);
        let weights = vec![1; sources.len().max(targets.len()).max(1)];
        let graph = self.session.functions.environment.graph;
        let mut handle = 0;
        // SAFETY: each array holds as many entries as said, and a weight for each.
        let code = unsafe {
            graph(
                self.handle,
                sources.len() as c_int,
                sources.as_ptr(),
                weights.as_ptr(),
                targets.len() as c_int,
                targets.as_ptr(),
                weights.as_ptr(),
                self.session.no_info,
                0,
                &mut handle,
            )
        };
        self.session.check("MPI_Dist_graph_create_adjacent", code)?;
        let mut graph = Communicator::of_handle(self.session, handle, true)?;
        graph.degrees = Some((sources.len(), targets.len()));
        Ok(graph)
    }

    fn ranks_as_ints(&self, ranks: &[usize]) -> Result<Vec<c_int>> {
        let whole = |rank: &usize| {
            (*rank < self.size())
                .then_some(*rank as c_int)
                .ok_or_else(|| {
                    let limit = format!("must be below the number of ranks, {}", self.size());
                    Error::argument("rank of a neighbour", rank, limit)
                })
        };
        ranks.iter().map(whole).collect()
    }
}
