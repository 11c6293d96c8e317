// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `allgather`: the time of MPI_Allgather; the size is that of one rank's part.
//!
//! Made by catalogue, called by runner.

use super::{Collective, Resize};
use crate::options::Settings;
use crate::pattern::{self, Message};
use crate::runner::Benchmark;
use crate::timing::Exercise;
use weft_mpi::{Buffer, Communicator, Datatype, Result};

struct Allgather<'a> {
    world: &'a Communicator<'a>,
    kind: Datatype,
    given: Buffer,
    gathered: Buffer,
    size_bytes: usize,
}

/// Makes it.
///
/// # Errors
/// None; the signature is the catalogue's.
pub fn make<'a>(
    world: &'a Communicator<'a>,
    settings: &'a Settings,
) -> Result<Box<dyn Benchmark + 'a>> {
    let largest = settings
        .max_bytes
        .min(settings.memory_limit_bytes / world.size());
    let (given, gathered) = (Buffer::new(largest), Buffer::new(largest * world.size()));
    let exercise = Allgather {
        world,
        kind: settings.kind,
        given,
        gathered,
        size_bytes: 0,
    };
    Ok(Collective::boxed(world, settings, exercise))
}

impl Allgather<'_> {
    fn message(&self, iteration: usize, sender: usize) -> Message {
        Message {
            size_bytes: self.size_bytes,
            iteration,
            sender,
            receiver: 0,
        }
    }

    #[inline]
    fn slices(&mut self) -> (&mut [u8], &mut [u8]) {
        let gathered = self.size_bytes * self.world.size();
        (
            &mut self.given.bytes()[..self.size_bytes],
            &mut self.gathered.bytes()[..gathered],
        )
    }
}

impl Resize for Allgather<'_> {
    fn resize(&mut self, size_bytes: usize) -> Result<()> {
        self.size_bytes = size_bytes;
        let (given, gathered) = self.slices();
        given.fill(b'a');
        gathered.fill(b'b');
        Ok(())
    }
}

impl Exercise for Allgather<'_> {
    fn prepare(&mut self, iteration: usize) {
        let own = self.message(iteration, self.world.rank());
        pattern::fill(self.slices().0, own);
        for sender in 0..self.world.size() {
            let place = sender * self.size_bytes..(sender + 1) * self.size_bytes;
            let expected = self.message(iteration, sender);
            pattern::spoil(&mut self.slices().1[place], expected);
        }
    }

    fn settle(&mut self) -> Result<()> {
        self.world.barrier()
    }

    #[inline]
    fn exchange(&mut self, _iteration: usize) -> Result<()> {
        let (world, kind) = (self.world, self.kind);
        let (given, gathered) = self.slices();
        world.allgather(given, gathered, kind)
    }

    fn mismatches(&mut self, iteration: usize) -> u64 {
        let mut wrong = 0;
        for sender in 0..self.world.size() {
            let place = sender * self.size_bytes..(sender + 1) * self.size_bytes;
            let expected = self.message(iteration, sender);
            wrong += pattern::mismatches(&self.slices().1[place], expected);
        }
        wrong
    }
}
