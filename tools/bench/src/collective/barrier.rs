// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `barrier`: the time of MPI_Barrier. It moves no data, so -c has nothing to check and always passes.
//!
//! Made by catalogue, called by runner.

use super::{Collective, Resize};
use crate::options::Settings;
use crate::runner::Benchmark;
use crate::timing::Exercise;
use weft_mpi::{Communicator, Result};

struct Barrier<'a>(&'a Communicator<'a>);

/// Makes it.
///
/// # Errors
/// None; the signature is the catalogue's.
pub fn make<'a>(
    world: &'a Communicator<'a>,
    settings: &'a Settings,
) -> Result<Box<dyn Benchmark + 'a>> {
    Ok(Collective::boxed(world, settings, Barrier(world)))
}

impl Resize for Barrier<'_> {
    fn resize(&mut self, _size_bytes: usize) -> Result<()> {
        Ok(())
    }
}

impl Exercise for Barrier<'_> {
    fn prepare(&mut self, _iteration: usize) {}

    fn settle(&mut self) -> Result<()> {
        self.0.barrier()
    }

    #[inline]
    fn exchange(&mut self, _iteration: usize) -> Result<()> {
        self.0.barrier()
    }

    fn mismatches(&mut self, _iteration: usize) -> u64 {
        0
    }
}
