// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Offered messages: the sender describes, the receiver fetches when a receive is matched. Called by send (to
//! offer) and by receive (offers, accepts, finishes); pipelined copies are in pipelined.

use weft_contract::{CompletionLevel, Landing, Owner, RemoteId, SendToken, TransferError};
use weft_memory::{UserBuffer, single_copy};
use weft_os::{clock, crash_point};
use weft_ring::layout::CHUNK_BYTES;
use weft_ring::{Arrival, Head, PipeReader};

use crate::choice::Method;
use crate::pipelined::Accepted;
use crate::protocol::{FLAG_RECEIPT, MESSAGE_BYTES, OFFER, message_flags};
use crate::receive::{Request, envelope, offer_id};
use crate::remote::{Link, PIPE_LAP_BYTES, Waiting};
use crate::stream::StreamEnd;
use crate::transport::{Transfers, Transport};

/// Bytes fetched by single copy in one call of progress. Chosen: long enough that the system call does not
/// count, short enough that other messages are not kept waiting for long.
pub(crate) const PULL_BYTES: usize = 512 * 1024;

/// Chunks taken out of one pipe in one call of progress. Chosen: as [`PULL_BYTES`].
const CHUNKS_PER_ROUND: u32 = (PULL_BYTES / CHUNK_BYTES) as u32;

/// A send of ours that waits for its remote.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) remote: RemoteId,
    pub(crate) token: SendToken,
    /// The message, while the remote may still ask for it.
    pub(crate) payload: Option<UserBuffer>,
    /// Whether a FINISH comes after the last byte went through a pipe.
    pub(crate) wants_receipt: bool,
}

impl Outgoing {
    /// A message that is already in the lane and only waits to be delivered.
    pub(crate) fn receipt(remote: RemoteId, token: SendToken) -> Self {
        Self {
            remote,
            token,
            payload: None,
            wants_receipt: true,
        }
    }
}

/// A message of a remote that the owner has not accepted yet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Offer {
    /// It lies in its sender's memory.
    Remote(RemoteOffer),
    /// It is streaming in, or has; index of the stream.
    Stream(usize),
}

/// What an OFFER cell says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RemoteOffer {
    pub(crate) remote: RemoteId,
    pub(crate) send_id: u64,
    /// Where it lies in the sender's memory, in one stretch; 0 if it does not.
    pub(crate) address: u64,
    pub(crate) length_bytes: u64,
    pub(crate) wants_receipt: bool,
}

/// How an accepted offer comes in.
#[derive(Debug)]
pub(crate) enum Stage {
    /// We read the sender's memory.
    SingleCopy,
    /// We copy out of the sender's heap, which we have mapped.
    Mapped,
    /// All pipes are lent; we wait for one.
    AwaitPipe,
    /// Through this pipe.
    Piped(usize, PipeReader),
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
    /// When its bytes began to move; 0 before.
    pub(crate) started_ns: u64,
}

impl Fetch {
    /// Takes chunks out of the pipe, up to [`CHUNKS_PER_ROUND`]; true if there were any. After one it looks so many times for the next.
    fn empty_chunks(&mut self, looks: u32) -> Result<bool, TransferError> {
        let Stage::Piped(_, reader) = &mut self.stage else {
            return Ok(false);
        };
        let (mut taken, mut left_looks) = (0, 0);
        while taken < CHUNKS_PER_ROUND && self.done_bytes < self.wanted_bytes {
            let (done_bytes, landing) = (&mut self.done_bytes, &self.landing);
            let left = self.wanted_bytes - *done_bytes;
            let mut surplus = false;
            let moved = reader
                .read(|chunk| {
                    surplus = chunk.length_bytes() > left;
                    *done_bytes += landing.buffer.fill(*done_bytes, chunk).min(left);
                })
                .map_err(|_| TransferError::Corrupt)?;
            if surplus {
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
        Ok(taken > 0)
    }
}

impl Transfers {
    /// An OFFER came in.
    pub(crate) fn take_offer<O: Owner>(
        &mut self,
        remote: RemoteId,
        arrival: &Arrival<'_>,
        owner: &mut O,
    ) -> Request {
        let [_, _, send_id, address, length_bytes, ..] = arrival.words();
        if length_bytes > MESSAGE_BYTES {
            return Request::Corrupt;
        }
        let wants_receipt = arrival.head.flags & FLAG_RECEIPT != 0;
        let offer = Offer::Remote(RemoteOffer {
            remote,
            send_id,
            address,
            length_bytes,
            wants_receipt,
        });
        crash_point!(29, "offer: taken");
        let index = self.offers.insert(offer);
        let envelope = weft_contract::Envelope {
            length_bytes,
            ..envelope(remote, arrival)
        };
        if let Some(landing) = owner.on_offer(&envelope, offer_id(index)) {
            self.offers.remove(index);
            self.accepted.push((offer, landing));
        }
        Request::None
    }

    /// A FINISH came in: a send of ours is delivered.
    pub(crate) fn take_finish<O: Owner>(
        &mut self,
        remote: RemoteId,
        [send_id, is_mapped]: [u64; 2],
        owner: &mut O,
    ) -> Request {
        let index = send_id as usize;
        // A remote may only finish what was sent to it, and not while it is still being piped to it.
        let is_its = self.outgoing.get(index).is_some_and(|outgoing| {
            outgoing.remote == remote && (outgoing.payload.is_some() || outgoing.wants_receipt)
        });
        if !is_its {
            return Request::Corrupt;
        }
        crash_point!(32, "finish: taken, the send not completed");
        let outgoing = self.outgoing.remove(index);
        if let Some(payload) = &outgoing.payload {
            let fetched = if is_mapped == 0 {
                &mut self.pulled
            } else {
                &mut self.mapped
            };
            fetched.add(payload.length_bytes() as u64);
        }
        owner.on_sent(outgoing.token, Ok(()));
        Request::None
    }

    /// An ACCEPT came in: the remote wants an offered message through one of its pipes.
    pub(crate) fn take_accept(&mut self, remote: RemoteId, arrival: &Arrival<'_>) -> Request {
        let [
            send_id,
            pipe,
            offset_bytes,
            wanted_bytes,
            first_chunk,
            past_cache,
            _,
        ] = arrival.words();
        let is_its = self.outgoing.get(send_id as usize).is_some_and(|outgoing| {
            let payload = outgoing.payload.as_ref();
            let length_bytes = payload.map_or(0, UserBuffer::length_bytes) as u64;
            outgoing.remote == remote && offset_bytes < wanted_bytes && wanted_bytes <= length_bytes
        });
        if !is_its {
            return Request::Corrupt;
        }
        let accepted = Accepted {
            pipe: pipe as usize,
            first_chunk: first_chunk as usize,
            bytes: offset_bytes as usize..wanted_bytes as usize,
            past_cache: past_cache != 0,
        };
        Request::Feed(send_id as usize, accepted)
    }
}

impl Transport {
    /// Offers a message; true if the cell went.
    pub(crate) fn offer(&mut self, waiting: &mut Waiting) -> bool {
        let op = &waiting.op;
        let Link::Ready(attached) = &mut self.remotes[op.remote.index()].link else {
            return false;
        };
        let wants_receipt = op.level == CompletionLevel::Delivery;
        let index = self.transfers.outgoing.insert(Outgoing {
            remote: op.remote,
            token: op.token,
            payload: Some(waiting.payload.clone()),
            wants_receipt,
        });
        let length_bytes = waiting.payload.length_bytes();
        let address = waiting.address();
        let flags = message_flags(op.class, op.cq_data.is_some())
            | if wants_receipt { FLAG_RECEIPT } else { 0 };
        let head = Head {
            kind: OFFER,
            flags,
            length_bytes: 0,
        };
        let words = [
            op.tag,
            op.cq_data.unwrap_or(0),
            index as u64,
            address,
            length_bytes as u64,
            0,
            0,
        ];
        if attached.producer.push_words(head, words).is_err() {
            self.transfers.outgoing.remove(index);
            return false;
        }
        crash_point!(28, "offer: sent, the bell not rung");
        self.ring(op.remote);
        self.note_long(op.remote, length_bytes);
        waiting.sent_bytes = length_bytes;
        true
    }

    /// Starts fetching what the owner accepted since the last call.
    pub(crate) fn start_accepted<O: Owner>(&mut self, owner: &mut O) -> usize {
        let mut events = 0;
        for (offer, landing) in std::mem::take(&mut self.transfers.accepted) {
            events += 1;
            match offer {
                Offer::Remote(offer) => self.start_fetch(offer, landing),
                Offer::Stream(index) => {
                    let end = self.transfers.land_stream(index, landing);
                    self.end_stream(end, owner);
                    self.go_on(index, owner);
                }
            }
        }
        events
    }

    pub(crate) fn end_stream<O: Owner>(&mut self, end: StreamEnd, owner: &mut O) {
        if let Some(token) = end.landed {
            owner.on_landed(token, Ok(()));
        }
        if let Some((remote, send_id)) = end.finish {
            self.finish(remote, send_id);
        }
    }

    /// The owner does not want an offered message; its sender sees it as delivered.
    pub(crate) fn discard_offer(&mut self, offer: Offer) {
        match offer {
            Offer::Remote(offer) => self.finish(offer.remote, offer.send_id),
            Offer::Stream(index) => {
                if let Some((remote, send_id)) = self.transfers.drop_stream(index).finish {
                    self.finish(remote, send_id);
                }
                self.end_unwanted(index);
            }
        }
    }

    fn start_fetch(&mut self, offer: RemoteOffer, landing: Landing) {
        let wanted_bytes = usize::try_from(offer.length_bytes)
            .unwrap_or(usize::MAX)
            .min(landing.buffer.length_bytes());
        let method = self.method_for(&offer, wanted_bytes as u64);
        self.start_fetch_by(method, (offer, landing), wanted_bytes, 0);
    }

    /// Fetches by a way that is chosen what has not come along with the offer.
    pub(crate) fn start_fetch_by(
        &mut self,
        method: Method,
        (offer, landing): (RemoteOffer, Landing),
        wanted_bytes: usize,
        begun_bytes: usize,
    ) {
        let stage = match method {
            Method::SingleCopy => Stage::SingleCopy,
            Method::Mapped | Method::MappedPastCache => Stage::Mapped,
            Method::Pipelined | Method::PastCache => Stage::AwaitPipe,
        };
        self.transfers.fetches.push(Fetch {
            offer,
            landing,
            wanted_bytes,
            done_bytes: begun_bytes,
            begun_bytes,
            stage,
            method,
            started_ns: 0,
        });
    }

    /// Moves every fetch on; answers how many moved.
    pub(crate) fn fetch<O: Owner>(&mut self, owner: &mut O) -> usize {
        let mut events = 0;
        let mut index = 0;
        let mut pulled = false;
        while index < self.transfers.fetches.len() {
            // One single copy at a time: the processor that does it can do no other meanwhile.
            let stage = &self.transfers.fetches[index].stage;
            let is_single = matches!(stage, Stage::SingleCopy | Stage::Mapped);
            if is_single && std::mem::replace(&mut pulled, true) {
                index += 1;
                continue;
            }
            let outcome = self.fetch_one(index, &mut events);
            match outcome {
                Ok(false) => index += 1,
                Ok(true) => self.end_fetch(index, owner),
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
            Stage::AwaitPipe => *events += usize::from(self.lend_pipe(index)),
            Stage::Piped(..) => {
                let looks = self.housekeeping.patience();
                *events += usize::from(fetch.empty_chunks(looks)?);
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
        let Link::Ready(attached) = &mut self.remotes[remote.index()].link else {
            return Err(TransferError::RemoteLost);
        };
        crash_point!(30, "single copy: about to read");
        let count = (fetch.wanted_bytes - fetch.done_bytes).min(PULL_BYTES);
        let address = fetch.offer.address.wrapping_add(fetch.done_bytes as u64);
        match single_copy::pull(
            attached.pid,
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
        if let Stage::Piped(pipe, _) = fetch.stage {
            self.pipes.recover(pipe, self.own.region.mapping());
            self.remotes[fetch.offer.remote.index()].pipes_lent -= 1;
        }
        owner.on_landed(fetch.landing.token, Err(why));
    }

    fn end_fetch<O: Owner>(&mut self, index: usize, owner: &mut O) {
        let fetch = self.transfers.fetches.remove(index);
        let bytes = (fetch.wanted_bytes - fetch.begun_bytes) as u64;
        let now_ns = clock::monotonic_ns();
        // What it took beyond the fetch before it; of several that went side by side nothing can be learned.
        let elapsed_ns = now_ns - fetch.started_ns.max(self.last_fetch_ns).min(now_ns);
        self.last_fetch_ns = now_ns;
        let moving = |fetch: &Fetch| fetch.started_ns != 0;
        let alone = !self.transfers.fetches.iter().any(moving);
        // Where nothing was wanted no pipe was lent, and there is nothing to learn.
        let by_pipe = matches!(fetch.stage, Stage::Piped(..));
        let is_mapped = matches!(fetch.stage, Stage::Mapped);
        let came_from = &mut self.remotes[fetch.offer.remote.index()];
        let was_warm = !by_pipe || came_from.piped.note(bytes as usize, PIPE_LAP_BYTES);
        if bytes > 0 && alone && was_warm {
            // As if all of it had come so: the choice is made for whole messages.
            let whole_ns = elapsed_ns.saturating_mul(fetch.wanted_bytes as u64) / bytes;
            self.choice
                .learn(fetch.method, fetch.wanted_bytes as u64, whole_ns);
        }
        if let Stage::Piped(pipe, reader) = fetch.stage {
            self.pipes.give_back(pipe, reader);
            self.remotes[fetch.offer.remote.index()].pipes_lent -= 1;
        }
        crash_point!(31, "fetch: complete, its sender not told");
        let slot = self.remotes[fetch.offer.remote.index()].inbound;
        if let Some(lane) = slot.and_then(|slot| self.inbound[slot].as_mut()) {
            lane.counts.bytes += bytes;
        }
        owner.on_landed(fetch.landing.token, Ok(()));
        // After its last chunk a piped send is over for its sender, unless it waits for the receipt.
        if is_mapped {
            self.finish_mapped(fetch.offer.remote, fetch.offer.send_id);
        } else if !by_pipe || fetch.offer.wants_receipt {
            self.finish(fetch.offer.remote, fetch.offer.send_id);
        }
    }
}

/// No such process (errno 3, errno-base.h).
const ESRCH: i32 = 3;
