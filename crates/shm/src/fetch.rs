// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Accepted offers on their way in: each is decided when it is its turn, lent what it needs, and
//! moved on in every round of progress until all of it is here. Called by rendezvous and parted (to
//! start) and by receive's work; pipes are lent by pipelined, boards by shares, mapped heaps are
//! copied by heap.

use weft_contract::{Landing, Owner, TransferError};
use weft_memory::single_copy;
use weft_os::{clock, crash_point};
use weft_ring::PipeReader;
use weft_ring::layout::CHUNK_BYTES;

use crate::choice::{Lesson, Method};
use crate::protocol::cell::{Control, Fin};
use crate::remote::{Link, PIPE_LAP_BYTES};
use crate::rendezvous::RemoteOffer;
use crate::shares::Sharing;
use crate::transport::Transport;

/// No such process (errno 3, errno-base.h).
pub(crate) const ESRCH: i32 = 3;

/// Bytes fetched by single copy in one call of progress. Chosen: long enough that the system call
/// does not count, short enough that other messages are not kept waiting for long.
pub(crate) const PULL_BYTES: usize = 512 * 1024;

/// Chunks taken out of one pipe in one call of progress. Chosen: as [`PULL_BYTES`].
const CHUNKS_PER_ROUND: u32 = (PULL_BYTES / CHUNK_BYTES) as u32;

/// The same while we send through a pipe, too; and most that are then filled in one call. Chosen:
/// longer turns leave the other direction waiting for some hundred microseconds.
pub(crate) const CHUNKS_BOTH_WAYS: u32 = 16;

/// How an accepted offer comes in.
#[derive(Debug)]
pub(crate) enum Stage {
    /// It is not decided yet: that waits until it is its turn, so that what those before it took
    /// counts.
    Undecided,
    /// We read the sender's memory.
    SingleCopy,
    /// We copy out of the sender's heap, which we have mapped.
    Mapped,
    /// We are the sender, too, and copy from one buffer to the other.
    Own,
    /// All pipes are lent; we wait for one.
    AwaitPipe,
    /// Through the pipe that the fetch before it uses, as soon as that one is through; its sender
    /// is told already.
    Follows,
    /// Through this pipe.
    Piped(usize, PipeReader),
    /// We and its sender copy shares.
    Shared(Sharing),
}

/// An accepted offer on its way in.
#[derive(Debug)]
pub(crate) struct Fetch {
    pub(crate) offer: RemoteOffer,
    pub(crate) landing: Landing,
    pub(crate) wanted_bytes: usize,
    pub(crate) done_bytes: usize,
    /// What had come along with the offer.
    pub(crate) begun_bytes: usize,
    pub(crate) stage: Stage,
    /// How it was meant to come.
    pub(crate) method: Method,
    /// What its time teaches.
    pub(crate) lesson: Lesson,
    /// When its bytes began to move; 0 before.
    pub(crate) started_ns: u64,
}

impl Stage {
    /// Where a fetch by this way begins.
    fn of(method: Method) -> Self {
        match method {
            Method::SingleCopy => Self::SingleCopy,
            Method::Mapped | Method::MappedPastCache => Self::Mapped,
            Method::Pipelined | Method::PastCache | Method::Shared => Self::AwaitPipe,
        }
    }
}

impl Fetch {
    /// Whether its sender has what it needs, so that the next one of the same sender may begin.
    fn is_lent(&self) -> bool {
        matches!(
            self.stage,
            Stage::Piped(..) | Stage::Follows | Stage::Shared(_)
        )
    }

    /// Takes chunks out of the pipe, up to a limit; answers how many. After one it looks so many
    /// times for the next.
    fn empty_chunks(&mut self, limit: u32, looks: u32) -> Result<u32, TransferError> {
        let Stage::Piped(_, reader) = &mut self.stage else {
            return Ok(0);
        };
        let (mut taken, mut left_looks) = (0, 0);
        while taken < limit && self.done_bytes < self.wanted_bytes {
            let (done_bytes, landing) = (&mut self.done_bytes, &self.landing);
            let left = self.wanted_bytes - *done_bytes;
            let mut is_full = true;
            let moved = reader
                .read(|chunk| {
                    is_full = chunk.length_bytes() == left.min(CHUNK_BYTES);
                    *done_bytes += landing.buffer.fill(*done_bytes, chunk).min(left);
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

impl Transport {
    pub(crate) fn start_fetch(&mut self, offer: RemoteOffer, landing: Landing) {
        let wanted_bytes = usize::try_from(offer.length_bytes)
            .unwrap_or(usize::MAX)
            .min(landing.buffer.length_bytes());
        let is_own = self.own.is_at(self.remotes[offer.remote.index()].address);
        self.start_fetch_by(None, (offer, landing), wanted_bytes, 0);
        if is_own && let Some(fetch) = self.transfers.fetches.last_mut() {
            fetch.stage = Stage::Own;
        }
    }

    /// One stretch of a message that we have sent to ourselves.
    fn copy_own(&mut self, index: usize) -> Result<(), TransferError> {
        let fetch = &mut self.transfers.fetches[index];
        let send = self.transfers.outgoing.get(fetch.offer.send_id as usize);
        let payload = send
            .filter(|send| send.remote == fetch.offer.remote)
            .and_then(|send| send.payload.as_ref())
            .ok_or(TransferError::Corrupt)?;
        let count = (fetch.wanted_bytes - fetch.done_bytes).min(PULL_BYTES);
        let stretch = payload.part(fetch.done_bytes, count);
        let copied = stretch.copy_to(&fetch.landing.buffer, fetch.done_bytes);
        fetch.done_bytes += copied;
        (copied > 0).then_some(()).ok_or(TransferError::Corrupt)
    }

    /// It is the turn of a fetch.
    fn decide(&mut self, index: usize) {
        let fetch = &self.transfers.fetches[index];
        let (offer, buffer) = (fetch.offer, fetch.landing.buffer.clone());
        let (method, lesson) = self.method_for(&offer, &buffer, fetch.wanted_bytes as u64);
        let fetch = &mut self.transfers.fetches[index];
        (fetch.method, fetch.stage) = (method, Stage::of(method));
        fetch.lesson = lesson;
    }

    /// Fetches what has not come along with the offer, by this way; `None` is decided when it is
    /// its turn.
    pub(crate) fn start_fetch_by(
        &mut self,
        method: Option<(Method, Lesson)>,
        (offer, landing): (RemoteOffer, Landing),
        wanted_bytes: usize,
        begun_bytes: usize,
    ) {
        self.transfers.fetches.push(Fetch {
            offer,
            landing,
            wanted_bytes,
            done_bytes: begun_bytes,
            begun_bytes,
            stage: method.map_or(Stage::Undecided, |(way, _)| Stage::of(way)),
            method: method.map_or(Method::Pipelined, |(way, _)| way),
            lesson: method.map_or(Lesson::Nothing, |(_, lesson)| lesson),
            started_ns: 0,
        });
    }

    /// Decides on fetches whose turn it is, those of one remote in order, and lends their senders
    /// what they need; answers to how many.
    fn lend(&mut self) -> usize {
        let mut lent = 0;
        self.transfers.rounds += 1;
        for index in 0..self.transfers.fetches.len() {
            let fetch = &self.transfers.fetches[index];
            let entry = &mut self.remotes[fetch.offer.remote.index()];
            let is_next = entry.held_round != self.transfers.rounds;
            if !fetch.is_lent() {
                entry.held_round = self.transfers.rounds;
            }
            // Of what is dropped nothing is wanted, and its sender is only told that it is over.
            let waits = matches!(fetch.stage, Stage::Undecided | Stage::AwaitPipe)
                && fetch.done_bytes < fetch.wanted_bytes;
            if !is_next || !waits || matches!(entry.link, Link::Failed(_)) {
                continue;
            }
            if matches!(fetch.stage, Stage::Undecided) {
                self.decide(index);
            }
            let fetch = &self.transfers.fetches[index];
            let (method, remote) = (fetch.method, fetch.offer.remote);
            let is_lent = match (&fetch.stage, method) {
                (Stage::AwaitPipe, Method::Shared) => self.lend_board(index),
                (Stage::AwaitPipe, _) => self.lend_pipe(index),
                _ => false,
            };
            if is_lent {
                lent += 1;
                self.remotes[remote.index()].held_round = 0;
            }
        }
        lent
    }

    /// Moves every fetch on; answers how many moved.
    pub(crate) fn fetch<O: Owner>(&mut self, owner: &mut O) -> usize {
        let mut events = self.lend();
        self.transfers.chunks_left = if self.pipes.feeds.is_empty() {
            CHUNKS_PER_ROUND
        } else {
            CHUNKS_BOTH_WAYS
        };
        let mut index = 0;
        let mut pulled = false;
        while index < self.transfers.fetches.len() {
            // One single copy at a time: the processor that does it can do no other meanwhile.
            let stage = &self.transfers.fetches[index].stage;
            let is_single = matches!(stage, Stage::SingleCopy | Stage::Mapped | Stage::Shared(_));
            if is_single && pulled {
                index += 1;
                continue;
            }
            let before = events;
            let outcome = self.fetch_one(index, &mut events);
            pulled |= is_single && events > before;
            match outcome {
                Ok(false) => index += 1,
                Ok(true) => {
                    self.end_fetch(index, owner);
                    // Its sender is not to wait until what is here of the next one is taken.
                    events += self.lend();
                }
                Err(why) => {
                    let remote = self.transfers.fetches[index].offer.remote;
                    if matches!(self.remotes[remote.index()].link, Link::Failed(_)) {
                        self.fail_fetch(index, why, owner);
                        continue;
                    }
                    self.lose(remote, why, owner);
                    // The list has changed: begin again with the next call.
                    return events + 1;
                }
            }
        }
        events
    }

    /// Moves one fetch on; true when it is complete.
    fn fetch_one(&mut self, index: usize, events: &mut usize) -> Result<bool, TransferError> {
        let fetch = &mut self.transfers.fetches[index];
        if fetch.done_bytes == fetch.wanted_bytes {
            return Ok(true);
        }
        // Where we cannot reach its sender it is never told to begin.
        if let Link::Failed(why) = self.remotes[fetch.offer.remote.index()].link {
            return Err(why);
        }
        match &mut fetch.stage {
            Stage::SingleCopy => {
                *events += 1;
                self.pull(index)?;
            }
            Stage::Mapped => {
                *events += 1;
                self.copy_mapped(index);
            }
            Stage::Own => {
                *events += 1;
                self.copy_own(index)?;
            }
            Stage::Undecided | Stage::AwaitPipe | Stage::Follows => {}
            Stage::Shared(_) => *events += usize::from(self.pull_shares(index)?),
            Stage::Piped(..) => {
                let looks = self.housekeeping.patience();
                let taken = fetch.empty_chunks(self.transfers.chunks_left, looks)?;
                self.transfers.chunks_left -= taken;
                *events += usize::from(taken > 0);
            }
        }
        let fetch = &self.transfers.fetches[index];
        Ok(fetch.done_bytes == fetch.wanted_bytes)
    }

    /// One read of the sender's memory. Where it is refused, the rest comes through a pipe.
    fn pull(&mut self, index: usize) -> Result<(), TransferError> {
        let fetch = &mut self.transfers.fetches[index];
        if fetch.started_ns == 0 {
            fetch.started_ns = clock::monotonic_ns();
        }
        let remote = fetch.offer.remote;
        let (Link::Ready(attached), Some(address)) =
            (&mut self.remotes[remote.index()].link, fetch.offer.address)
        else {
            return Err(TransferError::RemoteLost);
        };
        crash_point!(30, "single copy: about to read");
        let count = (fetch.wanted_bytes - fetch.done_bytes).min(PULL_BYTES);
        let address = address.wrapping_add(fetch.done_bytes as u64);
        match single_copy::pull(
            &attached.memory(),
            address,
            &fetch.landing.buffer,
            fetch.done_bytes,
            count,
        ) {
            Ok(copied) if copied > 0 => fetch.done_bytes += copied,
            Err(error) if error.raw_os_error() == Some(ESRCH) => {
                return Err(TransferError::RemoteLost);
            }
            Ok(_) | Err(_) => {
                attached.single_copy = Some(false);
                fetch.stage = Stage::AwaitPipe;
                fetch.method = Method::Pipelined;
            }
        }
        Ok(())
    }

    /// Ends a fetch from a remote that we cannot reach, though it reaches us.
    #[cold]
    fn fail_fetch<O: Owner>(&mut self, index: usize, why: TransferError, owner: &mut O) {
        let fetch = self.transfers.fetches.remove(index);
        self.abandon(fetch.stage, fetch.offer.remote);
        owner.on_landed(fetch.landing.token, Err(why));
    }

    fn end_fetch<O: Owner>(&mut self, index: usize, owner: &mut O) {
        let fetch = self.transfers.fetches.remove(index);
        let bytes = (fetch.wanted_bytes - fetch.begun_bytes) as u64;
        let now_ns = clock::monotonic_ns();
        // Of several that went side by side nothing can be learned.
        let charged_ns = self.charge(fetch.started_ns, now_ns);
        // Shared ones follow each other closely: what one is charged too much the next is charged
        // too little.
        let moving = |other: &Fetch| {
            other.started_ns != 0
                && (other.method, fetch.method) != (Method::Shared, Method::Shared)
        };
        let alone = !self.transfers.fetches.iter().any(moving);
        // Where nothing was wanted no pipe was lent, and there is nothing to learn.
        let by_pipe = matches!(fetch.stage, Stage::Piped(..));
        let is_mapped = matches!(fetch.stage, Stage::Mapped);
        let came_from = &mut self.remotes[fetch.offer.remote.index()];
        let was_warm = !by_pipe || came_from.piped.note(bytes as usize, PIPE_LAP_BYTES);
        if bytes > 0 && alone && was_warm {
            let whole_bytes = fetch.wanted_bytes as u64;
            self.choice
                .learn(fetch.method, whole_bytes, charged_ns, fetch.lesson);
        }
        let remote = fetch.offer.remote;
        match fetch.stage {
            Stage::Piped(pipe, reader) => {
                self.remotes[remote.index()].pipes_lent -= 1;
                self.pass_on(remote, (pipe, reader), now_ns);
            }
            Stage::Shared(sharing) => self.close_board(sharing, remote),
            _ => {}
        }
        crash_point!(31, "fetch: complete, its sender not told");
        let slot = self.remotes[fetch.offer.remote.index()].inbound;
        if let Some(lane) = slot.and_then(|slot| self.inbound[slot].as_mut()) {
            lane.counts.bytes += bytes;
        }
        owner.on_landed(fetch.landing.token, Ok(()));
        // After its last chunk a piped send is over for its sender, unless it waits for the
        // receipt.
        if !by_pipe || fetch.offer.wants_receipt {
            let fin = Fin {
                send_id: fetch.offer.send_id,
                is_mapped,
            };
            self.answer(remote, Control::Fin(fin));
        }
    }
}
