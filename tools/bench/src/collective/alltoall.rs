// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `alltoall`: the time of MPI_Alltoall; the size is that of one rank's part. And the parts that it shares with alltoallv and alltoallw.
//!
//! Made by catalogue, called by runner.

use super::{Collective, Resize};
use crate::options::Settings;
use crate::pattern::{self, Message};
use crate::runner::Benchmark;
use crate::timing::Exercise;
use weft_mpi::{Buffer, Communicator, Datatype, Result};

/// What every rank gives to and takes from every other: one part for each, back to back.
pub(super) struct Parts {
    rank: usize,
    ranks: usize,
    given: Buffer,
    taken: Buffer,
    size_bytes: usize,
}

impl Parts {
    pub(super) fn new(world: &Communicator<'_>, settings: &Settings) -> Self {
        let largest = settings
            .max_bytes
            .min(settings.memory_limit_bytes / world.size());
        let length = largest * world.size();
        let (given, taken) = (Buffer::new(length), Buffer::new(length));
        Self {
            rank: world.rank(),
            ranks: world.size(),
            given,
            taken,
            size_bytes: 0,
        }
    }

    pub(super) fn resize(&mut self, size_bytes: usize) {
        self.size_bytes = size_bytes;
        let (given, taken) = self.slices();
        given.fill(b'a');
        taken.fill(b'b');
    }

    /// What is given and the room for what is taken, in the size in use.
    #[inline]
    pub(super) fn slices(&mut self) -> (&mut [u8], &mut [u8]) {
        let used = self.size_bytes * self.ranks;
        (
            &mut self.given.bytes()[..used],
            &mut self.taken.bytes()[..used],
        )
    }

    pub(super) fn prepare(&mut self, iteration: usize) {
        for other in 0..self.ranks {
            let place = other * self.size_bytes..(other + 1) * self.size_bytes;
            let (to, from) = (
                self.message(iteration, self.rank, other),
                self.message(iteration, other, self.rank),
            );
            let (given, taken) = self.slices();
            pattern::fill(&mut given[place.clone()], to);
            pattern::spoil(&mut taken[place], from);
        }
    }

    pub(super) fn mismatches(&mut self, iteration: usize) -> u64 {
        let mut wrong = 0;
        for other in 0..self.ranks {
            let place = other * self.size_bytes..(other + 1) * self.size_bytes;
            let from = self.message(iteration, other, self.rank);
            wrong += pattern::mismatches(&self.slices().1[place], from);
        }
        wrong
    }

    fn message(&self, iteration: usize, sender: usize, receiver: usize) -> Message {
        Message {
            size_bytes: self.size_bytes,
            iteration,
            sender,
            receiver,
        }
    }
}

struct Alltoall<'a> {
    world: &'a Communicator<'a>,
    kind: Datatype,
    parts: Parts,
}

/// Makes it.
///
/// # Errors
/// None; the signature is the catalogue's.
pub fn make<'a>(
    world: &'a Communicator<'a>,
    settings: &'a Settings,
) -> Result<Box<dyn Benchmark + 'a>> {
    let parts = Parts::new(world, settings);
    Ok(Collective::boxed(
        world,
        settings,
        Alltoall {
            world,
            kind: settings.kind,
            parts,
        },
    ))
}

impl Resize for Alltoall<'_> {
    fn resize(&mut self, size_bytes: usize) -> Result<()> {
        self.parts.resize(size_bytes);
        Ok(())
    }
}

impl Exercise for Alltoall<'_> {
    fn prepare(&mut self, iteration: usize) {
        self.parts.prepare(iteration);
    }

    fn settle(&mut self) -> Result<()> {
        self.world.barrier()
    }

    #[inline]
    fn exchange(&mut self, _iteration: usize) -> Result<()> {
        let (given, taken) = self.parts.slices();
        self.world.alltoall(given, taken, self.kind)
    }

    fn mismatches(&mut self, iteration: usize) -> u64 {
        self.parts.mismatches(iteration)
    }
}
