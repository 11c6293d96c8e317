// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Accepted messages whose payload the receiver fetches. When it is a message's turn, its copy
//! method is chosen, and its sender is lent what that method needs: a pipe, or chunk claims. Each
//! round of progress then moves the message on until all of it is here.

use std::time::Instant;

use weft_contract::{Landing, Owner, RemoteId, TransferError};
use weft_os::crash_point;
use weft_ring::layout::{CHUNK_BYTES, PIPE_CHUNKS};

use crate::contact::contacts::Contacts;
use crate::copy::cooperative::{Cooperation, Turn};
use crate::copy::fetch::{Fetch, Stage};
use crate::copy::fetch_list::FetchList;
use crate::copy::laps::PIPE_LAP_BYTES;
use crate::copy::lent::LentByRemote;
use crate::copy::methods::{CopyMethods, Wanted};
use crate::copy::pipes::{Pipe, Pipes};
use crate::copy::single::PULL_BYTES;
use crate::protocol::cell::{Control, Cts, Fin, Transfer};
use crate::protocol::copy_method::CopyMethod;
use crate::send::sends::Sends;

/// Chunks taken out of pipes in one call of progress. Chosen: as [`PULL_BYTES`].
const CHUNKS_PER_ROUND: u32 = (PULL_BYTES / CHUNK_BYTES) as u32;

/// As [`CHUNKS_PER_ROUND`], while we also send through a pipe; and the most chunks filled then in
/// one call. Chosen: longer turns leave the other direction waiting for some hundred microseconds.
pub(super) const CHUNKS_BIDIRECTIONAL: u32 = 16;

/// Messages of one remote for which a pipe is lent at the same time. They share one pipe, so that
/// they use no more memory than the caches hold. Chosen: the sender goes on with the next messages
/// while we take the last chunks of one.
const TRANSFERS_PER_PIPE: u32 = 4;

/// Chunk claims lent to one remote at a time. Chosen: its sender goes on with the next message
/// while the last chunk of one is copied.
const COOPERATIVE_PER_REMOTE: u32 = 2;

/// A remote whose message cannot be fetched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Broken {
    pub(crate) remote: RemoteId,
    pub(crate) why: TransferError,
}

/// All fetches.
#[derive(Debug, Default)]
pub(crate) struct Fetches {
    fetches: FetchList,
    lent: LentByRemote,
    pipes: Pipes,
    /// Chunks that this round may still take out of pipes.
    chunks_left: u32,
    /// Rounds in which fetches were moved on.
    rounds: u64,
    /// Chunk claims lent so far.
    tickets: u64,
}

/// Starting and ending fetches, and counting them.
impl Fetches {
    #[inline(always)]
    pub(crate) fn count(&self) -> usize {
        self.fetches.len()
    }

    /// The remotes from which messages are fetched.
    pub(crate) fn remotes(&self) -> impl Iterator<Item = RemoteId> {
        self.fetches.iter().map(|fetch| fetch.offer.remote)
    }

    pub(crate) fn start(&mut self, fetch: Fetch) {
        self.fetches.push(fetch);
    }

    /// The pages of this remote's pipes were made early, so the first lap may be timed.
    pub(crate) fn skip_first_lap(&mut self, remote: RemoteId) {
        self.lent.to(remote).laps.skip_first();
    }
}

/// Choosing methods, and lending pipes and chunk claims to senders.
impl Fetches {
    /// Chooses the copy method of fetches whose turn it is, those of one remote in order, and lends
    /// their senders what they need. Returns to how many senders.
    fn lend(
        &mut self,
        contacts: &mut Contacts,
        sends: &mut Sends,
        methods: &mut CopyMethods,
    ) -> usize {
        let mut lent_count = 0;
        self.rounds += 1;
        let round = self.rounds;
        // Remotes whose next message cannot begin in this round.
        let mut held_count = 0;
        for index in 0..self.fetches.len() {
            if held_count == self.fetches.remote_count() {
                break;
            }
            let fetch = &self.fetches[index];
            let (remote, is_lent) = (fetch.offer.remote, fetch.is_lent());
            let waits =
                matches!(fetch.stage, Stage::Undecided | Stage::AwaitPipe) && !fetch.is_complete();
            let lent = self.lent.to(remote);
            let is_next = lent.held_round != round;
            if !is_lent && is_next {
                lent.held_round = round;
                held_count += 1;
            }
            // No byte of a dropped message is wanted; its sender is only told that it has ended.
            if !is_next || !waits || contacts.remote(remote).failed().is_some() {
                continue;
            }
            let depth = self.fetches.count_of(remote);
            let fetch = &mut self.fetches[index];
            if matches!(fetch.stage, Stage::Undecided) {
                let wanted = Wanted::of(fetch.wanted_bytes, &fetch.landing.buffer, depth);
                let (method, lesson) = methods.choose(contacts, sends, &fetch.offer, &wanted);
                fetch.decide(method, lesson);
            }
            let is_lent = match (&fetch.stage, fetch.method) {
                (Stage::AwaitPipe, CopyMethod::Cooperative) => {
                    self.lend_chunk_claims(contacts, index)
                }
                (Stage::AwaitPipe, _) => self.lend_pipe(contacts, index),
                _ => false,
            };
            if is_lent {
                lent_count += 1;
                held_count -= 1;
                self.lent.to(remote).held_round = 0;
            }
        }
        lent_count
    }

    /// Lends a pipe to the sender of a fetch: the pipe of the fetch before it, or a free one, if
    /// there is any.
    fn lend_pipe(&mut self, contacts: &mut Contacts, index: usize) -> bool {
        let remote = self.fetches[index].offer.remote;
        let (stage, number, first_chunk) = match self.lent.to(remote).pipes {
            0 => {
                let Some(pipe) = self.pipes.take(&contacts.own) else {
                    return false;
                };
                let (number, first_chunk) = (pipe.number, pipe.reader.next_chunk());
                (Stage::Piped(pipe), number, first_chunk)
            }
            lent if lent < TRANSFERS_PER_PIPE => match self.end_of_pipe(remote) {
                Some((number, first_chunk)) => (Stage::Follows, number, first_chunk),
                None => return false,
            },
            _ => return false,
        };
        let fetch = &mut self.fetches[index];
        if matches!(stage, Stage::Piped(_)) {
            fetch.started = Some(Instant::now());
        }
        fetch.stage = stage;
        let by = Transfer::Pipe {
            pipe: number,
            first_chunk,
            is_non_temporal: fetch.method == CopyMethod::PipelinedNonTemporal,
        };
        crash_point!(33, "pipe: lent, its borrower not told");
        self.tell(contacts, index, by);
        true
    }

    /// The pipe through which messages of this remote come in, and the chunk after the last one
    /// that they will use.
    fn end_of_pipe(&self, remote: RemoteId) -> Option<(usize, usize)> {
        let mut end = None;
        let fetches = self.fetches.iter();
        for fetch in fetches.filter(|fetch| fetch.offer.remote == remote) {
            let left_chunks = (fetch.wanted_bytes - fetch.done_bytes).div_ceil(CHUNK_BYTES);
            end = match (&fetch.stage, end) {
                (Stage::Piped(pipe), None) => {
                    Some((pipe.number, pipe.reader.next_chunk() + left_chunks))
                }
                (Stage::Follows, Some((number, chunk))) => Some((number, chunk + left_chunks)),
                _ => end,
            };
        }
        end.map(|(number, chunk)| (number, chunk % PIPE_CHUNKS))
    }

    /// Lends chunk claims to the sender of a fetch that both processes copy, if some are free.
    fn lend_chunk_claims(&mut self, contacts: &mut Contacts, index: usize) -> bool {
        let remote = self.fetches[index].offer.remote;
        if self.lent.to(remote).pipes >= COOPERATIVE_PER_REMOTE {
            return false;
        }
        let Some(pipe) = self.pipes.take_for_states(&contacts.own) else {
            return false;
        };
        self.tickets += 1;
        let fetch = &mut self.fetches[index];
        let bytes = fetch.done_bytes..fetch.wanted_bytes;
        let cooperation = match Cooperation::open(contacts, pipe, self.tickets, bytes) {
            Ok(cooperation) => cooperation,
            Err(pipe) => {
                self.pipes.give_back(pipe);
                return false;
            }
        };
        let by = cooperation.transfer(fetch.landing.buffer.address() as u64);
        fetch.stage = Stage::Cooperative(cooperation);
        crash_point!(56, "chunk claims: lent, its borrower not told");
        self.tell(contacts, index, by);
        true
    }

    /// Tells the sender of a fetch, by a CTS, what it is lent.
    fn tell(&mut self, contacts: &mut Contacts, index: usize, by: Transfer) {
        let fetch = &self.fetches[index];
        let remote = fetch.offer.remote;
        let cts = Cts {
            send_id: fetch.offer.send_id,
            bytes: fetch.done_bytes as u64..fetch.wanted_bytes as u64,
            by,
        };
        self.lent.to(remote).pipes += 1;
        contacts.answer(remote, Control::Cts(cts));
    }

    /// A message has come through a pipe: the next message uses the pipe, or the pipe is free.
    fn pass_on(&mut self, remote: RemoteId, pipe: Pipe, now: Instant) {
        let follows = |fetch: &&mut Fetch| {
            fetch.offer.remote == remote && matches!(fetch.stage, Stage::Follows)
        };
        match self.fetches.iter_mut().find(follows) {
            Some(next) => {
                next.stage = Stage::Piped(pipe);
                next.started = Some(now);
            }
            None => self.pipes.give_back(pipe),
        }
    }

    /// A fetch from this remote ends before all of it is here: the pipe or the claims lent for it
    /// are ours again, and the remote writes no more of the message.
    fn abandon(&mut self, contacts: &Contacts, stage: Stage, remote: RemoteId) {
        let number = match stage {
            Stage::Piped(pipe) => Some(pipe.number),
            Stage::Cooperative(cooperation) => Some(cooperation.abandon(contacts, remote)),
            Stage::Follows => None,
            Stage::Undecided
            | Stage::SingleCopy
            | Stage::Mapped
            | Stage::Own
            | Stage::AwaitPipe => return,
        };
        if let Some(number) = number {
            self.pipes.recover(number, &contacts.own);
        }
        self.lent.to(remote).pipes -= 1;
    }
}

/// One round of progress.
impl Fetches {
    /// Moves every fetch on; returns how many moved. Takes fewer chunks out of pipes while we also
    /// send through pipes.
    ///
    /// # Errors
    /// A remote whose message cannot be fetched, and which the caller must give up. That changes
    /// the list of fetches, so the caller goes on in the next round.
    pub(crate) fn advance<O: Owner>(
        &mut self,
        contacts: &mut Contacts,
        sends: &mut Sends,
        methods: &mut CopyMethods,
        is_feeding: bool,
        owner: &mut O,
    ) -> Result<usize, Broken> {
        let mut events = self.lend(contacts, sends, methods);
        self.chunks_left = if is_feeding {
            CHUNKS_BIDIRECTIONAL
        } else {
            CHUNKS_PER_ROUND
        };
        let mut index = 0;
        let mut has_copied = false;
        // The last remote of which we found that we can reach it.
        let mut reached = None;
        while index < self.fetches.len() {
            let fetch = &self.fetches[index];
            let remote = fetch.offer.remote;
            // This processor copies one message in each round. Fetches whose turn has not come
            // wait; of those only one for each remote is moved on, to see whether it is reachable.
            let is_ours = fetch.is_ours_to_copy();
            if (is_ours && has_copied) || (fetch.awaits_turn() && reached == Some(remote)) {
                index += 1;
                continue;
            }
            reached = Some(remote);
            let before = events;
            let outcome = self.advance_one(contacts, sends, index, &mut events);
            has_copied |= is_ours && events > before;
            match outcome {
                Ok(()) if self.fetches[index].is_complete() => {
                    self.end(contacts, methods, index, owner);
                    // The sender hears of the end before we take chunks of the next message.
                    events += self.lend(contacts, sends, methods);
                }
                Ok(()) => index += 1,
                Err(why) => {
                    if contacts.remote(remote).failed().is_none() {
                        return Err(Broken { remote, why });
                    }
                    // The remote reaches us, but we cannot reach it.
                    let fetch = self.fetches.take_out(index);
                    self.abandon(contacts, fetch.stage, remote);
                    owner.on_landed(fetch.landing.token, Err(why));
                }
            }
        }
        Ok(events)
    }

    /// Moves one fetch on by one step.
    fn advance_one(
        &mut self,
        contacts: &mut Contacts,
        sends: &Sends,
        index: usize,
        events: &mut usize,
    ) -> Result<(), TransferError> {
        let looks = contacts.own.node().patience();
        let fetch = &mut self.fetches[index];
        if fetch.is_complete() {
            return Ok(());
        }
        let remote = contacts.remote_mut(fetch.offer.remote);
        // If we cannot reach the sender, it is never told to begin.
        if let Some(why) = remote.failed() {
            return Err(why);
        }
        let attached = remote.attached_mut();
        match &fetch.stage {
            Stage::Undecided | Stage::AwaitPipe | Stage::Follows => return Ok(()),
            Stage::SingleCopy => fetch.pull(attached)?,
            Stage::Mapped => fetch.copy_mapped(attached),
            Stage::Own => {
                let (send_id, remote) = (fetch.offer.send_id as usize, fetch.offer.remote);
                fetch.copy_own(sends.payload(send_id, remote))?;
            }
            Stage::Piped(_) => {
                let taken = fetch.empty(self.chunks_left, looks)?;
                self.chunks_left -= taken;
                *events += usize::from(taken > 0);
                return Ok(());
            }
            Stage::Cooperative(_) => match fetch.cooperate(attached.as_deref(), looks)? {
                Turn::Waits => return Ok(()),
                Turn::Moved | Turn::Over => {}
                Turn::Refused => {
                    if let Some(attached) = attached {
                        attached.must_not_be_read();
                    }
                    self.refuse(contacts, index);
                }
            },
        }
        *events += 1;
        Ok(())
    }

    /// The kernel refuses to read the sender's memory: the message comes through a pipe instead, as
    /// soon as the sender has stopped its part of the copy.
    #[cold]
    fn refuse(&mut self, contacts: &Contacts, index: usize) {
        let fetch = &mut self.fetches[index];
        let remote = fetch.offer.remote;
        fetch.done_bytes = fetch.begun_bytes;
        let stage = fetch.fall_back();
        self.abandon(contacts, stage, remote);
    }

    /// All wanted bytes of a message are in its receive.
    fn end<O: Owner>(
        &mut self,
        contacts: &mut Contacts,
        methods: &mut CopyMethods,
        index: usize,
        owner: &mut O,
    ) {
        let fetch = self.fetches.take_out(index);
        let remote = fetch.offer.remote;
        let bytes = fetch.wanted_bytes - fetch.begun_bytes;
        let now = Instant::now();
        let charged = methods.charge(fetch.started, now);
        // If no byte was wanted, no pipe was lent, and the tuner has nothing to learn.
        let by_pipe = matches!(fetch.stage, Stage::Piped(_));
        let is_mapped = matches!(fetch.stage, Stage::Mapped);
        let was_warm = !by_pipe || self.lent.to(remote).laps.note(bytes, PIPE_LAP_BYTES);
        if bytes > 0 && self.was_alone(fetch.method) && was_warm {
            let whole_bytes = fetch.wanted_bytes as u64;
            methods.learn(fetch.method, whole_bytes, charged, fetch.lesson);
        }
        match fetch.stage {
            Stage::Piped(pipe) => {
                self.lent.to(remote).pipes -= 1;
                self.pass_on(remote, pipe, now);
            }
            Stage::Cooperative(cooperation) => {
                self.lent.to(remote).pipes -= 1;
                self.pipes.give_back_states(cooperation.close());
            }
            _ => {}
        }
        crash_point!(31, "fetch: complete, its sender not told");
        if let Some(lane) = contacts.lane_of(remote) {
            lane.note_fetched(bytes as u64);
        }
        owner.on_landed(fetch.landing.token, Ok(()));
        // After its last chunk a piped send is over for its sender, unless it waits for the
        // receipt.
        if !by_pipe || fetch.offer.wants_receipt {
            let fin = Fin {
                send_id: fetch.offer.send_id,
                is_mapped,
            };
            contacts.answer(remote, Control::Fin(fin));
        }
    }

    /// Whether no other fetch was moving: the tuner can learn nothing from fetches that moved side
    /// by side. Cooperative fetches are an exception: they follow each other closely, and time that
    /// one is charged too much the next one is charged too little.
    fn was_alone(&self, method: CopyMethod) -> bool {
        !self.fetches.iter().any(|other| {
            other.started.is_some()
                && (other.method, method) != (CopyMethod::Cooperative, CopyMethod::Cooperative)
        })
    }

    /// Takes what a remote that ends has put into pipes of ours. A message that is whole with that
    /// gets to its receive: its sender saw it end with its last chunk.
    #[cold]
    pub(crate) fn take_rest<O: Owner>(
        &mut self,
        contacts: &mut Contacts,
        methods: &mut CopyMethods,
        remote: RemoteId,
        owner: &mut O,
    ) {
        let mut index = 0;
        while index < self.fetches.len() {
            let fetch = &mut self.fetches[index];
            let is_its = fetch.offer.remote == remote;
            // What means nothing is as good as what is missing: `lose` follows.
            if is_its && fetch.empty(u32::MAX, 0).is_ok() && fetch.is_complete() {
                self.end(contacts, methods, index, owner);
            } else {
                index += 1;
            }
        }
    }

    /// Ends all fetches from a remote; returns the receives that they were to fill.
    pub(crate) fn lose(&mut self, contacts: &Contacts, remote: RemoteId) -> Vec<Landing> {
        let mut landings = Vec::new();
        let mut index = 0;
        while index < self.fetches.len() {
            if self.fetches[index].offer.remote != remote {
                index += 1;
                continue;
            }
            let fetch = self.fetches.take_out(index);
            self.abandon(contacts, fetch.stage, remote);
            landings.push(fetch.landing);
        }
        landings
    }

    /// For the closing of the endpoint: afterwards no sender writes into our memory any more.
    pub(crate) fn close(&mut self, contacts: &Contacts) {
        while self.fetches.len() > 0 {
            let fetch = self.fetches.take_out(0);
            self.abandon(contacts, fetch.stage, fetch.offer.remote);
        }
    }
}

#[cfg(test)]
impl Fetches {
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Fetch> {
        self.fetches.iter_mut()
    }

    /// How many messages of a remote have a pipe of ours.
    pub(crate) fn pipes_lent(&mut self, remote: RemoteId) -> u32 {
        self.lent.to(remote).pipes
    }
}
