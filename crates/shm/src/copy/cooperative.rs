// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Cooperative copy, the receiver's side (docs/shm-layout.md, clause 7a): the receiver reads chunks
//! out of the sender's memory from the front, the sender writes chunks into the receiver's memory
//! from the back, until they meet. Who copies which chunk stands in chunk claims, which are the
//! states of a pipe. A sender that does not look, or may not, leaves all of it to the receiver.
//!
//! Called by fetches; calls ring's chunk_claims. Nobody's memory is written once its owner has been
//! told that the receive is over: what is free is taken back first, and a chunk that is being
//! written is waited for.

use std::ops::Range;

use weft_contract::{RemoteId, TransferError};
use weft_memory::UserBuffer;
use weft_memory::single_copy::{self, ProcessMemory};
use weft_os::{clock, crash_point, sleep};
use weft_ring::{CLAIM_LIMIT, ChunkClaims, ChunkStage};

use crate::contact::contacts::Contacts;
use crate::copy::pipes::Pipe;
use crate::copy::single::{Fault, PULL_BYTES, copy_all};
use crate::direct::shown::LEAVE_LIMIT_NS;
use crate::protocol::cell::Transfer;

/// Chunks are multiples of this. Measured (docs/lab/2026-11-22-cooperative-copy.md): shorter system
/// calls cost more than they share out.
const CHUNK_STEP_BYTES: usize = 64 * 1024;

/// Longest chunk of a message that is not too long for it. Measured as the above.
const LONG_CHUNK_BYTES: usize = 256 * 1024;

/// Chunks that a message is cut into if their lengths permit it. Chosen: who ends first waits for a
/// sixteenth of it on average.
const CHUNKS: usize = 8;

/// How the bytes of a message are cut into chunks: both sides do it alike.
#[derive(Clone, Debug)]
pub(super) struct Division {
    bytes: Range<usize>,
    chunk_bytes: usize,
}

impl Division {
    pub(super) fn of(bytes: Range<usize>) -> Self {
        let even = |count: usize| {
            bytes
                .len()
                .div_ceil(count)
                .next_multiple_of(CHUNK_STEP_BYTES)
        };
        let chunk_bytes = even(CHUNKS).min(LONG_CHUNK_BYTES).max(even(CLAIM_LIMIT));
        Self { bytes, chunk_bytes }
    }

    /// How many chunks there are.
    pub(super) fn count(&self) -> usize {
        self.bytes.len().div_ceil(self.chunk_bytes)
    }

    /// Which bytes of the message a chunk is.
    pub(super) fn chunk(&self, index: usize) -> Range<usize> {
        let start = self.bytes.start + index * self.chunk_bytes;
        start..(start + self.chunk_bytes).min(self.bytes.end)
    }
}

/// A message that both copy, in its receiver.
#[derive(Debug)]
pub(crate) struct Cooperation {
    pipe: Pipe,
    claims: ChunkClaims,
    ticket: u64,
    division: Division,
    /// Chunks before this one are copied.
    next: usize,
}

/// What the receiver has to do next.
enum Next {
    Copy(Range<usize>),
    Wait,
    End,
}

/// What came of a turn.
pub(super) enum Turn {
    /// Nothing was to do.
    Waits,
    /// Some chunks were copied.
    Moved,
    /// All is here.
    Over,
    /// Reading the sender's memory is refused.
    Refused,
}

/// What is copied to where: the message begins at `address` of the sender's memory.
pub(super) struct Source<'a> {
    pub(super) memory: &'a ProcessMemory,
    pub(super) address: u64,
    pub(super) buffer: &'a UserBuffer,
}

impl Cooperation {
    /// Opens chunk claims for these bytes of a message; the pipe comes back if that cannot be.
    pub(super) fn open(
        contacts: &Contacts,
        pipe: Pipe,
        ticket: u64,
        bytes: Range<usize>,
    ) -> Result<Self, Pipe> {
        let division = Division::of(bytes);
        let own = contacts.own.region().mapping();
        let Some(claims) = ChunkClaims::attach(own, pipe.number, ticket, division.count()) else {
            return Err(pipe);
        };
        claims.open();
        Ok(Self {
            pipe,
            claims,
            ticket,
            division,
            next: 0,
        })
    }

    /// What its sender is told; the message's first byte goes to `address` here.
    pub(super) fn transfer(&self, address: u64) -> Transfer {
        Transfer::Copy {
            pipe: self.pipe.number,
            ticket: self.ticket,
            address,
        }
    }

    /// The next chunk that nobody copies is ours.
    fn next(&mut self) -> Result<Next, TransferError> {
        let mut is_helped = false;
        for index in self.next..self.claims.count() {
            if self.claims.take(index) {
                return Ok(Next::Copy(self.division.chunk(index)));
            }
            match self.claims.stage(index) {
                ChunkStage::Own | ChunkStage::Done if !is_helped => self.next = index + 1,
                ChunkStage::Own | ChunkStage::Done => {}
                ChunkStage::Free | ChunkStage::Helped => is_helped = true,
                ChunkStage::Other => return Err(TransferError::Corrupt),
            }
        }
        Ok(if is_helped { Next::Wait } else { Next::End })
    }

    /// Copies chunks that nobody copies, as many as a turn permits; looks so many times for the end
    /// of those that the sender copies.
    pub(super) fn pull(&mut self, source: &Source<'_>, looks: u32) -> Result<Turn, TransferError> {
        let (mut copied_bytes, mut left_looks) = (0, looks);
        while copied_bytes < PULL_BYTES {
            let chunk = match self.next()? {
                Next::Copy(chunk) => chunk,
                Next::End => return Ok(Turn::Over),
                Next::Wait if left_looks == 0 => break,
                Next::Wait => {
                    left_looks -= 1;
                    std::hint::spin_loop();
                    continue;
                }
            };
            crash_point!(57, "chunk claims: a chunk is taken, not read");
            copied_bytes += chunk.len();
            let copied = copy_all(chunk, |at, count| {
                let there = source.address.wrapping_add(at as u64);
                single_copy::pull(source.memory, there, source.buffer, at, count)
            });
            match copied {
                // A test that kills either side needs both of them at work, on a busy machine, too.
                Ok(()) if cfg!(crash_points) => {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
                Ok(()) => {}
                Err(Fault::Gone) => return Err(TransferError::RemoteLost),
                Err(Fault::Refused) => return Ok(Turn::Refused),
            }
        }
        Ok(if copied_bytes > 0 {
            Turn::Moved
        } else {
            Turn::Waits
        })
    }

    /// The whole message is here.
    pub(super) fn close(self) -> Pipe {
        self.claims.close();
        self.pipe
    }

    /// It ends before all of it is here: takes back the chunks that are free, and waits for what
    /// the sender copies, unless it has died. Answers which pipe its states were.
    pub(super) fn abandon(self, contacts: &Contacts, remote: RemoteId) -> usize {
        let end_ns = clock::monotonic_ns() + LEAVE_LIMIT_NS;
        // Not by its address, where another process may be now.
        let helper = contacts.lanes.iter().find(|lane| lane.remote() == remote);
        while !self.claims.revoke() {
            if helper.is_none_or(|lane| contacts.own.is_gone(lane.claimant())) {
                break;
            }
            if clock::monotonic_ns() > end_ns {
                contacts.own.report(&format!(
                    "this process gives up a message, because the process at {} was stopped while \
                     it wrote that message into memory of this one",
                    contacts.remote(remote).address()
                ));
                break;
            }
            sleep::yield_now();
        }
        self.claims.close();
        self.pipe.number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_a_message_and_there_are_no_more_than_chunk_claims_hold() {
        for length in [
            1,
            4096,
            65536,
            65537,
            98304,
            1 << 20,
            (4 << 20) + 1,
            1 << 30,
            1 << 40,
        ] {
            let division = Division::of(7..7 + length);
            let count = division.count();
            assert!(count <= CLAIM_LIMIT, "{count} chunks of {length}");
            let mut next = 7;
            for index in 0..count {
                let chunk = division.chunk(index);
                assert!(chunk.start == next && !chunk.is_empty());
                next = chunk.end;
            }
            assert_eq!(next, 7 + length);
        }
        assert_eq!(Division::of(0..1 << 20).chunk(0).len(), 128 * 1024);
        assert_eq!(Division::of(0..4 << 20).chunk(0).len(), 256 * 1024);
    }
}
