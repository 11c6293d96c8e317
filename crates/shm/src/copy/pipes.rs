// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Our pipes: chunks of our region that we lend to a sender, which fills them while we empty them,
//! so that two processors copy at once and every chunk stays in the cache they share. Works where
//! no process may read another's memory.

use weft_contract::{Landing, TransferError};
use weft_ring::PipeReader;
use weft_ring::layout::{CHUNK_BYTES, PIPE_COUNT};

use crate::contact::backing;
use crate::contact::own::Own;

/// One of our pipes, ours to lend or to read.
#[derive(Debug)]
pub(crate) struct Pipe {
    pub(super) number: usize,
    pub(super) reader: PipeReader,
}

/// Those that are not lent.
#[derive(Debug, Default)]
pub(crate) struct Pipes {
    /// With the last one given back on top: its chunks are the warmest.
    free: Vec<Pipe>,
    /// Pipes from here on were never lent.
    untouched: usize,
}

impl Pipes {
    /// A pipe whose message was read to its end may be lent again as it is.
    pub(super) fn give_back(&mut self, pipe: Pipe) {
        self.free.push(pipe);
    }

    /// The same for one of which only the states were used: it is lent after those whose chunks are
    /// warm.
    pub(super) fn give_back_states(&mut self, pipe: Pipe) {
        self.free.insert(0, pipe);
    }

    /// A pipe whose sender is gone is emptied before it may be lent again.
    pub(super) fn recover(&mut self, number: usize, own: &Own) {
        if let Some(reader) = PipeReader::attach(own.region().mapping(), number) {
            self.free.push(Pipe { number, reader });
        }
    }

    /// The pipe whose chunks are the warmest.
    pub(super) fn take(&mut self, own: &Own) -> Option<Pipe> {
        self.free.pop().or_else(|| self.take_new(own))
    }

    /// A pipe of which only the states are used, so that the warmest chunks are there for those who
    /// want them.
    pub(super) fn take_for_states(&mut self, own: &Own) -> Option<Pipe> {
        if self.free.len() > 1 {
            return Some(self.free.remove(0));
        }
        self.take_new(own).or_else(|| self.free.pop())
    }

    fn take_new(&mut self, own: &Own) -> Option<Pipe> {
        let number = (self.untouched < PIPE_COUNT).then_some(self.untouched)?;
        // Where there is no room for another one, those that are lent come back.
        backing::reserve_pipe(own.file(), number).ok()?;
        let reader = PipeReader::attach(own.region().mapping(), number)?;
        self.untouched += 1;
        Some(Pipe { number, reader })
    }
}

impl Pipe {
    /// Takes chunks out into a receive whose bytes from `bytes.start` on are still to come, up to a
    /// limit; answers how many. After one it looks so many times for the next.
    pub(super) fn empty(
        &mut self,
        landing: &Landing,
        bytes: &mut std::ops::Range<usize>,
        limit: u32,
        looks: u32,
    ) -> Result<u32, TransferError> {
        let (mut taken, mut left_looks) = (0, 0);
        while taken < limit && bytes.start < bytes.end {
            let left = bytes.len();
            let mut is_full = true;
            let moved = self
                .reader
                .read(|chunk| {
                    is_full = chunk.length_bytes() == left.min(CHUNK_BYTES);
                    bytes.start += landing.buffer.fill(bytes.start, chunk).min(left);
                })
                .map_err(|_| TransferError::Corrupt)?;
            if !is_full {
                return Err(TransferError::Corrupt);
            }
            if moved {
                (taken, left_looks) = (taken + 1, looks);
            } else if left_looks == 0 {
                break;
            } else {
                left_looks -= 1;
                std::hint::spin_loop();
            }
        }
        Ok(taken)
    }
}
