// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `alltoallw`: the time of MPI_Alltoallw with equal parts of one type; the size is that of one rank's part.
//!
//! Made by catalogue, called by runner; the memory is alltoall's.

use super::alltoall::Parts;
use super::{Collective, Resize};
use crate::options::Settings;
use crate::runner::Benchmark;
use crate::timing::Exercise;
use weft_mpi::{Communicator, Datatype, Result, TypedLayout};

struct Alltoallw<'a> {
    world: &'a Communicator<'a>,
    kind: Datatype,
    parts: Parts,
    layout: TypedLayout,
}

/// Makes it.
///
/// # Errors
/// None in practice: an empty layout always fits.
pub fn make<'a>(
    world: &'a Communicator<'a>,
    settings: &'a Settings,
) -> Result<Box<dyn Benchmark + 'a>> {
    let (parts, layout) = (Parts::new(world, settings), TypedLayout::new(world, [])?);
    Ok(Collective::boxed(
        world,
        settings,
        Alltoallw {
            world,
            kind: settings.kind,
            parts,
            layout,
        },
    ))
}

impl Resize for Alltoallw<'_> {
    fn resize(&mut self, size_bytes: usize) -> Result<()> {
        self.parts.resize(size_bytes);
        let count = size_bytes / self.kind.size_bytes();
        let kind = self.kind;
        self.layout = TypedLayout::new(
            self.world,
            (0..self.world.size()).map(|rank| (count, rank * size_bytes, kind)),
        )?;
        Ok(())
    }
}

impl Exercise for Alltoallw<'_> {
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
            .alltoallw((given, &self.layout), (taken, &self.layout))
    }

    fn mismatches(&mut self, iteration: usize) -> u64 {
        self.parts.mismatches(iteration)
    }
}
