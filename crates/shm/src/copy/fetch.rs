// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One described message on its way in, and the copies that its receiver makes alone: out of the
//! sender's heap, which is mapped here (docs/shm-layout.md, clause 11), by single copy, or from one
//! buffer of ours to the other.
//!
//! What the sender says of its memory is a claim: memory checks the file before it is mapped, and
//! each stretch before it is copied. The worst that a liar gains is that its own message holds
//! other bytes that it shares.

use std::time::Instant;

use weft_contract::{Landing, TransferError};
use weft_memory::remote_heap::Lying;
use weft_memory::{UserBuffer, single_copy};
use weft_os::crash_point;

use crate::contact::attached::Attached;
use crate::copy::cooperative::{Cooperation, Source, Turn};
use crate::copy::offer::RemoteOffer;
use crate::copy::pipes::Pipe;
use crate::copy::single::{Fault, PULL_BYTES, outcome};
use crate::protocol::copy_method::CopyMethod;
use crate::tuner::copies::Lesson;

/// How an accepted message comes in.
#[derive(Debug)]
pub(super) enum Stage {
    /// Not decided yet. It is decided when the message's turn comes, so that the times of the
    /// messages before it count.
    Undecided,
    /// We read the sender's memory.
    SingleCopy,
    /// We copy out of the sender's heap, which we have mapped.
    Mapped,
    /// We are the sender, too, and copy from one buffer to the other.
    Own,
    /// All pipes are lent; we wait for one.
    AwaitPipe,
    /// Through the pipe that the fetch before it uses, as soon as that fetch is complete; the
    /// sender already knows this.
    Follows,
    /// Through this pipe.
    Piped(Pipe),
    /// We and its sender copy.
    Cooperative(Cooperation),
}

/// An accepted message on its way in.
#[derive(Debug)]
pub(crate) struct Fetch {
    pub(super) offer: RemoteOffer,
    pub(super) landing: Landing,
    pub(super) wanted_bytes: usize,
    pub(super) done_bytes: usize,
    /// What had come along with the offer.
    pub(super) begun_bytes: usize,
    pub(super) stage: Stage,
    /// How it was meant to come.
    pub(super) method: CopyMethod,
    /// What its time teaches.
    pub(super) lesson: Lesson,
    /// When its bytes began to move.
    pub(super) started: Option<Instant>,
}

impl Stage {
    /// Where a fetch by this method begins.
    fn of(method: CopyMethod) -> Self {
        match method {
            CopyMethod::SingleCopy => Self::SingleCopy,
            CopyMethod::Mapped | CopyMethod::MappedNonTemporal => Self::Mapped,
            CopyMethod::Pipelined | CopyMethod::PipelinedNonTemporal | CopyMethod::Cooperative => {
                Self::AwaitPipe
            }
        }
    }
}

impl Fetch {
    /// Fetches what has not come along with its description.
    pub(crate) fn new(offer: RemoteOffer, landing: Landing, begun_bytes: usize) -> Self {
        Self {
            wanted_bytes: offer.wanted_bytes(landing.buffer.length_bytes()),
            offer,
            landing,
            done_bytes: begun_bytes,
            begun_bytes,
            stage: Stage::Undecided,
            method: CopyMethod::Pipelined,
            lesson: Lesson::Nothing,
            started: None,
        }
    }

    /// How it comes; until this is called that is decided when it is its turn.
    pub(crate) fn by(mut self, method: CopyMethod, lesson: Lesson) -> Self {
        self.decide(method, lesson);
        self
    }

    /// It comes from one buffer of ours to the other.
    pub(crate) fn out_of_own(mut self) -> Self {
        self.stage = Stage::Own;
        self
    }

    pub(super) fn decide(&mut self, method: CopyMethod, lesson: Lesson) {
        (self.method, self.lesson, self.stage) = (method, lesson, Stage::of(method));
    }

    pub(super) fn is_complete(&self) -> bool {
        self.done_bytes == self.wanted_bytes
    }

    /// Whether its sender has what it needs, so that the next one of the same sender may begin.
    pub(super) fn is_lent(&self) -> bool {
        matches!(
            self.stage,
            Stage::Piped(_) | Stage::Follows | Stage::Cooperative(_)
        )
    }

    /// Whether nothing of it can move before those of the same sender that came before it have.
    pub(super) fn awaits_turn(&self) -> bool {
        let waits = matches!(
            self.stage,
            Stage::Undecided | Stage::AwaitPipe | Stage::Follows
        );
        waits && !self.is_complete()
    }

    /// Whether it is this processor that copies, which can do no other meanwhile.
    pub(super) fn is_ours_to_copy(&self) -> bool {
        matches!(
            self.stage,
            Stage::SingleCopy | Stage::Mapped | Stage::Cooperative(_)
        )
    }

    /// Its bytes begin to move, if they have not yet.
    fn start(&mut self) {
        self.started.get_or_insert_with(Instant::now);
    }

    /// The method that it was meant to come by is not open: it comes through a pipe.
    pub(super) fn fall_back(&mut self) -> Stage {
        self.method = CopyMethod::Pipelined;
        std::mem::replace(&mut self.stage, Stage::AwaitPipe)
    }

    /// One stretch of a message that we have sent to ourselves, `payload`.
    pub(super) fn copy_own(&mut self, payload: Option<&UserBuffer>) -> Result<(), TransferError> {
        let payload = payload.ok_or(TransferError::Corrupt)?;
        let count = (self.wanted_bytes - self.done_bytes).min(PULL_BYTES);
        let stretch = payload.part(self.done_bytes, count);
        let copied = stretch.copy_to(&self.landing.buffer, self.done_bytes);
        self.done_bytes += copied;
        (copied > 0).then_some(()).ok_or(TransferError::Corrupt)
    }

    /// One stretch out of what the sender shares. Should that be gone, the rest comes through a
    /// pipe.
    pub(super) fn copy_mapped(&mut self, sender: Option<&mut Attached>) {
        self.start();
        crash_point!(51, "mapped heap: about to copy");
        let count = (self.wanted_bytes - self.done_bytes).min(PULL_BYTES);
        let heap = sender.and_then(Attached::heap);
        let copied = match (heap, self.offer.address) {
            (Some(heap), Some(address)) => {
                let message = Lying {
                    address,
                    length_bytes: self.offer.length_bytes,
                    place: self.offer.send_id,
                };
                let is_non_temporal = self.method == CopyMethod::MappedNonTemporal;
                let stretch = self.done_bytes..self.done_bytes + count;
                heap.pull(&message, &self.landing.buffer, stretch, is_non_temporal)
            }
            _ => 0,
        };
        self.done_bytes += copied;
        if copied == 0 {
            self.fall_back();
        }
    }

    /// One read of the sender's memory. Where it is refused, the rest comes through a pipe.
    pub(super) fn pull(&mut self, sender: Option<&mut Attached>) -> Result<(), TransferError> {
        self.start();
        let (Some(attached), Some(address)) = (sender, self.offer.address) else {
            return Err(TransferError::RemoteLost);
        };
        crash_point!(30, "single copy: about to read");
        let count = (self.wanted_bytes - self.done_bytes).min(PULL_BYTES);
        let copied = single_copy::pull(
            &attached.memory(),
            address.wrapping_add(self.done_bytes as u64),
            &self.landing.buffer,
            self.done_bytes,
            count,
        );
        match outcome(copied) {
            Ok(copied) => self.done_bytes += copied,
            Err(Fault::Gone) => return Err(TransferError::RemoteLost),
            Err(Fault::Refused) => {
                attached.must_not_be_read();
                self.fall_back();
            }
        }
        Ok(())
    }

    /// A turn of a message that both copy.
    pub(super) fn cooperate(
        &mut self,
        sender: Option<&Attached>,
        looks: u32,
    ) -> Result<Turn, TransferError> {
        self.start();
        let Stage::Cooperative(cooperation) = &mut self.stage else {
            return Ok(Turn::Waits);
        };
        let (Some(attached), Some(address)) = (sender, self.offer.address) else {
            return Err(TransferError::RemoteLost);
        };
        let source = Source {
            memory: &attached.memory(),
            address,
            buffer: &self.landing.buffer,
        };
        let turn = cooperation.pull(&source, looks)?;
        if matches!(turn, Turn::Over) {
            self.done_bytes = self.wanted_bytes;
        }
        Ok(turn)
    }

    /// Takes chunks out of its pipe, up to a limit; answers how many. After one it looks so many
    /// times for the next.
    pub(super) fn empty(&mut self, limit: u32, looks: u32) -> Result<u32, TransferError> {
        let Stage::Piped(pipe) = &mut self.stage else {
            return Ok(0);
        };
        let mut left = self.done_bytes..self.wanted_bytes;
        let taken = pipe.empty(&self.landing, &mut left, limit, looks);
        self.done_bytes = left.start;
        taken
    }
}

#[cfg(test)]
impl Fetch {
    /// Whether both copy it.
    pub(crate) fn is_cooperative(&self) -> bool {
        matches!(self.stage, Stage::Cooperative(_))
    }

    /// As if its sender had named another place.
    pub(crate) fn move_to(&mut self, address: u64) {
        self.offer.address = Some(address);
    }
}
