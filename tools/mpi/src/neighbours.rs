// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Communicators in which each rank names the ranks that it receives from and sends to, for
//! neighbourhood collectives.
//!
//! Called by programs; the result is used by prepared. Source: MPI 3.1, section 7.5.4.

use crate::communicator::Communicator;
use crate::error::{Error, Result};
use std::ffi::c_int;

/// `MPI_Dist_graph_create_adjacent` with equal weights and ranks as they are. Collective; setup. A
/// rank may be listed several times; the n-th message from a rank then meets the n-th place for it.
///
/// # Errors
/// `Argument` for a rank that there is not; `Call` when MPI fails.
pub fn graph<'session>(
    world: &Communicator<'session>,
    sources: &[usize],
    targets: &[usize],
) -> Result<Communicator<'session>> {
    let (sources, targets) = (as_ints(world, sources)?, as_ints(world, targets)?);
    let weights = vec![1; sources.len().max(targets.len()).max(1)];
    let session = world.session;
    let mut handle = 0;
    // SAFETY: each array holds as many entries as said, and a weight for each.
    let code = unsafe {
        (session.functions.environment.graph)(
            world.handle,
            sources.len() as c_int,
            sources.as_ptr(),
            weights.as_ptr(),
            targets.len() as c_int,
            targets.as_ptr(),
            weights.as_ptr(),
            session.no_info,
            0,
            &mut handle,
        )
    };
    session.check("MPI_Dist_graph_create_adjacent", code)?;
    let mut graph = Communicator::made(session, handle)?;
    graph.degrees = Some((sources.len(), targets.len()));
    Ok(graph)
}

fn as_ints(world: &Communicator<'_>, ranks: &[usize]) -> Result<Vec<c_int>> {
    let limit = || format!("must be below the number of ranks, {}", world.size());
    let as_int = |rank: &usize| match *rank < world.size() {
        true => Ok(*rank as c_int),
        false => Err(Error::argument("rank of a neighbour", rank, limit())),
    };
    ranks.iter().map(as_int).collect()
}
