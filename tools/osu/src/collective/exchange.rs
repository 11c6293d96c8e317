// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A prepared collective with its contents. The measurements of collectives repeat it.
//!
//! Called by collective and overlap; calls weft-mpi's prepared collectives.

use super::contents::Contents;
use crate::options::{Root, Settings};
use crate::timing::{Exercise, Resize};
use weft_mpi::{Collective, Communicator, Form, Operation, Prepared, Result};

/// The largest message in bytes with which the buffers of one rank stay within -M.
///
/// # Errors
/// What MPI reports about the neighbours.
pub(crate) fn limit_bytes(
    world: &Communicator<'_>,
    settings: &Settings,
    which: Collective,
) -> Result<usize> {
    let (given, taken) = which.parts(world)?;
    Ok(settings.memory_limit_bytes / given.max(taken).max(1))
}

/// A prepared collective with its contents; what the measurements repeat.
pub(super) struct Exchange<'a> {
    /// The collective.
    pub(super) prepared: Prepared<'a>,
    world: &'a Communicator<'a>,
    root: Root,
    contents: Contents,
}

impl<'a> Exchange<'a> {
    /// Prepares the collective with room for the largest size that -M allows. `world` has
    /// neighbours when the collective needs them.
    ///
    /// # Errors
    /// `Unusable` when this MPI lacks the function; what MPI reports.
    pub(super) fn new(
        world: &'a Communicator<'a>,
        settings: &Settings,
        which: Collective,
        form: Form,
    ) -> Result<Self> {
        let specification = weft_mpi::Specification {
            which,
            form,
            kind: settings.kind,
            operation: Operation::Sum,
            largest_bytes: settings.max_bytes.min(limit_bytes(world, settings, which)?),
        };
        let grid = settings.special.neighbours;
        Ok(Self {
            prepared: Prepared::new(world, specification)?,
            world,
            root: settings.root,
            contents: Contents::new(which, settings.kind, world, grid),
        })
    }

    #[inline]
    pub(super) fn root(&self, iteration: usize) -> usize {
        match self.root {
            Root::Fixed(root) => root,
            Root::Rotate => iteration % self.world.size(),
        }
    }
}

impl Resize for Exchange<'_> {
    fn resize(&mut self, size_bytes: usize) -> Result<()> {
        self.contents.resize(size_bytes);
        self.prepared.resize(size_bytes)?;
        self.prepared.given().fill(1);
        self.prepared.taken().fill(2);
        Ok(())
    }
}

impl Exercise for Exchange<'_> {
    fn prepare(&mut self, iteration: usize) {
        let root = self.root(iteration);
        self.contents.prepare(&mut self.prepared, iteration, root);
    }

    fn settle(&mut self) -> Result<()> {
        self.world.barrier()
    }

    #[inline]
    fn exchange(&mut self, iteration: usize) -> Result<()> {
        self.prepared.set_root(self.root(iteration))?;
        self.prepared.run()
    }

    fn mismatches(&mut self, iteration: usize) -> u64 {
        let root = self.root(iteration);
        self.contents
            .mismatches(&mut self.prepared, iteration, root)
    }
}
