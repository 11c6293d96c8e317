// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `bcast`: the time of MPI_Bcast from the root of -k.
//!
//! Made by catalogue, called by runner.

use super::{Collective, Resize};
use crate::options::{Root, Settings};
use crate::pattern::{self, Message};
use crate::runner::Benchmark;
use crate::timing::Exercise;
use weft_mpi::{Buffer, Communicator, Result};

struct Broadcast<'a> {
    world: &'a Communicator<'a>,
    settings: &'a Settings,
    bytes: Buffer,
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
    let bytes = Buffer::new(settings.max_bytes);
    Ok(Collective::boxed(
        world,
        settings,
        Broadcast {
            world,
            settings,
            bytes,
            size_bytes: 0,
        },
    ))
}

impl Broadcast<'_> {
    #[inline]
    fn root(&self, iteration: usize) -> usize {
        match self.settings.root {
            Root::Fixed(root) => root,
            Root::Rotate => iteration % self.world.size(),
        }
    }

    fn message(&self, iteration: usize) -> Message {
        Message {
            size_bytes: self.size_bytes,
            iteration,
            sender: self.root(iteration),
            receiver: 0,
        }
    }
}

impl Resize for Broadcast<'_> {
    fn resize(&mut self, size_bytes: usize) -> Result<()> {
        self.size_bytes = size_bytes;
        self.bytes.bytes()[..size_bytes].fill(b'a');
        Ok(())
    }
}

impl Exercise for Broadcast<'_> {
    fn prepare(&mut self, iteration: usize) {
        let message = self.message(iteration);
        let is_root = message.sender == self.world.rank();
        let bytes = &mut self.bytes.bytes()[..self.size_bytes];
        if is_root {
            pattern::fill(bytes, message)
        } else {
            pattern::spoil(bytes, message)
        }
    }

    fn settle(&mut self) -> Result<()> {
        self.world.barrier()
    }

    #[inline]
    fn exchange(&mut self, iteration: usize) -> Result<()> {
        let root = self.root(iteration);
        self.world.bcast(
            &mut self.bytes.bytes()[..self.size_bytes],
            self.settings.kind,
            root,
        )
    }

    fn mismatches(&mut self, iteration: usize) -> u64 {
        let message = self.message(iteration);
        pattern::mismatches(&self.bytes.bytes()[..self.size_bytes], message)
    }
}
