// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `alltoallv`: the time of MPI_Alltoallv with equal parts; the size is that of one rank's part.
//!
//! Made by catalogue, called by runner; the memory is alltoall's.

use super::alltoall::Parts;
use super::{Collective, Resize};
use crate::options::Settings;
use crate::runner::Benchmark;
use crate::timing::Exercise;
use weft_mpi::{Communicator, Datatype, Layout, Result};

struct Alltoallv<'a> {
    world: &'a Communicator<'a>,
    kind: Datatype,
    parts: Parts,
    layout: Layout,
}

/// Makes it.
///
/// # Errors
/// None in practice: an empty layout always fits.
pub fn make<'a>(
    world: &'a Communicator<'a>,
    settings: &'a Settings,
) -> Result<Box<dyn Benchmark + 'a>> {
    let (parts, layout) = (Parts::new(world, settings), Layout::new([])?);
    Ok(Collective::boxed(
        world,
        settings,
        Alltoallv {
            world,
            kind: settings.kind,
            parts,
            layout,
        },
    ))
}

impl Resize for Alltoallv<'_> {
    fn resize(&mut self, size_bytes: usize) -> Result<()> {
        self.parts.resize(size_bytes);
        let count = size_bytes / self.kind.size_bytes();
        self.layout = Layout::new((0..self.world.size()).map(|rank| (count, rank * count)))?;
        Ok(())
    }
}

impl Exercise for Alltoallv<'_> {
    fn prepare(&mut self, iteration: usize) {
        self.parts.prepare(iteration);
    }

    fn settle(&mut self) -> Result<()> {
        self.world.barrier()
    }

    #[inline]
    fn exchange(&mut self, _iteration: usize) -> Result<()> {
        let (given, taken) = self.parts.slices();
        self.world
            .alltoallv((given, &self.layout), (taken, &self.layout), self.kind)
    }

    fn mismatches(&mut self, iteration: usize) -> u64 {
        self.parts.mismatches(iteration)
    }
}
