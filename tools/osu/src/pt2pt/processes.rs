// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `latency_mp`: latency while each rank has child processes, which were forked after MPI was initialised and only sleep.
//!
//! Made by catalogue; the exchange is latency's. It shows whether an MPI and its transport bear a fork: memory that is shared
//! with children on write, and handles that children inherit.

use super::latency;
use crate::format::Row;
use crate::options::Settings;
use crate::runner::Benchmark;
use crate::timing::Plan;
use weft_mpi::{Communicator, Result, Sleepers};

struct Processes<'a> {
    latency: Box<dyn Benchmark + 'a>,
    _children: Sleepers,
}

/// Makes it: forks the children of this rank.
///
/// # Errors
/// `Argument` when the system refuses a process.
pub fn make<'a>(
    world: &'a Communicator<'a>,
    settings: &'a Settings,
) -> Result<Box<dyn Benchmark + 'a>> {
    let (senders, receivers) = settings.special.threads;
    let own = if world.rank() == 0 {
        senders
    } else {
        receivers
    };
    let _children = Sleepers::fork(own)?;
    let latency = latency::make(world, settings)?;
    Ok(Box::new(Processes { latency, _children }))
}

impl Benchmark for Processes<'_> {
    fn measure(&mut self, size_bytes: usize, plan: &Plan) -> Result<Row> {
        self.latency.measure(size_bytes, plan)
    }
}
