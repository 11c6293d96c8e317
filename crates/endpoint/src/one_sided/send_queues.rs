// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One queue for each remote, of messages of one-sided operations that wait to be sent: answers,
//! which are never sent from within a transport's callback, and payload that found no room.
//!
//! Filled by target.rs and initiator.rs, emptied by state.rs after each round of progress.

use std::collections::VecDeque;

use weft_contract::{Class, CompletionLevel, Peer, PostError, RemoteId, SendOp, SendToken};
use weft_memory::{BytesView, BytesViewMut, Scratch, UserBuffer};

use super::request::{Kind, Tag};
use super::token;

/// Results up to here are kept without memory of their own. Chosen: what shared memory takes in one
/// cell.
const SHORT_BYTES: usize = 40;

/// Memory for long results that is kept for the next ones. Chosen: what an initiator's window of
/// some tens needs, half a megabyte.
const SPARE_COUNT: usize = 64;

/// Bytes of an operation's name in an answer.
const ID_BYTES: usize = 4;

/// Bytes that were read when the request was carried out, at most
/// [`REQUEST_LIMIT_BYTES`](super::access::REQUEST_LIMIT_BYTES).
#[derive(Debug)]
pub(super) enum Bytes {
    Short([u8; SHORT_BYTES], u8),
    /// As many at the beginning of the memory, which is sent from there.
    Long(Scratch, usize),
}

/// A message that waits.
#[derive(Debug)]
pub(super) enum SendEntry {
    /// The remote's operation is carried out.
    Done(u32),
    /// The remote's operation was refused, for this reason.
    Refused(u32, u8),
    /// What the remote's operation read.
    Result(u32, Bytes),
    /// What it read, still where it lies: the outgoing result of this number.
    LongResult(u32),
    /// The payload of a long write of ours.
    Payload(u32),
}

/// Entries by remote, each remote's in order.
pub(super) struct SendQueues {
    queues: Vec<VecDeque<SendEntry>>,
    /// Remotes with entries, each once.
    active: Vec<RemoteId>,
    /// Memory that held long results.
    spare: Vec<Scratch>,
    /// Where a short message lies while it is posted.
    pub(super) scratch: Scratch,
    /// Messages of ours of which nobody hears, counted for their tokens.
    nameless_count: u64,
}

/// A message between endpoints, to be sent at once or not at all.
pub(super) fn service(remote: RemoteId, tag: Tag, token: u64, inject: bool) -> SendOp {
    SendOp {
        remote,
        class: Class::Service,
        tag: tag.pack(),
        cq_data: None,
        level: if inject {
            CompletionLevel::Inject
        } else {
            CompletionLevel::Transmit
        },
        token: SendToken(token),
        inject,
    }
}

impl SendQueues {
    pub(super) fn new() -> Self {
        Self {
            queues: Vec::new(),
            active: Vec::new(),
            spare: Vec::new(),
            scratch: Scratch::take(),
            nameless_count: 0,
        }
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.active.is_empty()
    }

    /// A token for what nobody waits for; each is used once.
    pub(super) fn nameless_token(&mut self) -> u64 {
        self.nameless_count += 1;
        token::nameless(self.nameless_count)
    }

    /// What lies in `source` now. Fast path.
    #[inline]
    pub(super) fn keep(&mut self, source: &UserBuffer) -> Bytes {
        let length_bytes = source.length_bytes();
        if length_bytes <= SHORT_BYTES {
            let mut bytes = [0; SHORT_BYTES];
            source.drain(0, &mut BytesViewMut::from_slice(&mut bytes[..length_bytes]));
            return Bytes::Short(bytes, length_bytes as u8);
        }
        let memory = self.spare.pop().unwrap_or_else(Scratch::take);
        memory.copy_in(0, source);
        Bytes::Long(memory, length_bytes)
    }

    /// The same of a slice. Fast path.
    #[inline]
    pub(super) fn keep_slice(&mut self, source: &[u8]) -> Bytes {
        if source.len() <= SHORT_BYTES {
            let mut bytes = [0; SHORT_BYTES];
            bytes[..source.len()].copy_from_slice(source);
            return Bytes::Short(bytes, source.len() as u8);
        }
        let memory = self.spare.pop().unwrap_or_else(Scratch::take);
        memory.write(0, source);
        Bytes::Long(memory, source.len())
    }

    pub(super) fn push(&mut self, remote: RemoteId, entry: SendEntry) {
        if self.queues.len() <= remote.index() {
            self.queues.resize_with(remote.index() + 1, VecDeque::new);
        }
        let queue = &mut self.queues[remote.index()];
        if queue.is_empty() {
            self.active.push(remote);
        }
        queue.push_back(entry);
    }

    /// The remote at `index` among those with entries, if there are so many.
    pub(super) fn active(&self, index: usize) -> Option<RemoteId> {
        self.active.get(index).copied()
    }

    /// Ends the turn of the remote at `index` if nothing waits for it any more; says whether it
    /// ended.
    pub(super) fn end_turn(&mut self, index: usize) -> bool {
        let is_empty = self.queues[self.active[index].index()].is_empty();
        if is_empty {
            self.active.swap_remove(index);
        }
        is_empty
    }

    /// What has waited longest for a remote.
    pub(super) fn first(&self, remote: RemoteId) -> Option<&SendEntry> {
        self.queues.get(remote.index())?.front()
    }

    /// Forgets the first entries of a remote, which are sent.
    #[inline]
    pub(super) fn forget(&mut self, remote: RemoteId, count: usize) {
        for entry in self.queues[remote.index()].drain(..count) {
            if let SendEntry::Result(_, Bytes::Long(memory, _)) = entry
                && self.spare.len() < SPARE_COUNT
            {
                self.spare.push(memory);
            }
        }
    }

    /// How much waits for `remote`.
    pub(super) fn count(&self, remote: RemoteId) -> usize {
        self.queues.get(remote.index()).map_or(0, VecDeque::len)
    }

    /// Takes away all that waits for `remote`.
    pub(super) fn clear(&mut self, remote: RemoteId) -> VecDeque<SendEntry> {
        self.active.retain(|&other| other != remote);
        let queue = self.queues.get_mut(remote.index());
        queue.map(std::mem::take).unwrap_or_default()
    }

    /// Sends the first entries of a remote as one short answer; says how many it took.
    pub(super) fn send_answer<P: Peer>(
        &self,
        route: &mut P,
        remote: RemoteId,
        token: u64,
    ) -> Result<usize, PostError> {
        let mut taken_count = 1;
        let (tag, payload) = match self.first(remote) {
            Some(SendEntry::Done(_)) => {
                let mut ids = [0; SHORT_BYTES];
                taken_count = gather(&self.queues[remote.index()], &mut ids);
                let length = self.scratch.write(0, &ids[..taken_count * ID_BYTES]);
                (Tag::new(Kind::Done, 0), self.scratch.payload(length))
            }
            Some(SendEntry::Result(id, bytes)) => {
                let payload = match bytes {
                    Bytes::Short(bytes, length_bytes) => {
                        let bytes = &bytes[..usize::from(*length_bytes)];
                        self.scratch.payload(self.scratch.write(0, bytes))
                    }
                    Bytes::Long(memory, length_bytes) => memory.payload(*length_bytes),
                };
                (Tag::new(Kind::Result, *id), payload)
            }
            Some(&SendEntry::Refused(id, reason)) => {
                (Tag::refusal(id, reason), UserBuffer::empty())
            }
            _ => return Ok(0),
        };
        let op = service(remote, tag, token, true);
        route.post_send(&op, &payload)?;
        Ok(taken_count)
    }
}

/// Collects the names of operations that are carried out one after the other; answers how many.
fn gather(queue: &VecDeque<SendEntry>, ids: &mut [u8; SHORT_BYTES]) -> usize {
    let done = queue.iter().map_while(|entry| match entry {
        SendEntry::Done(id) => Some(id),
        _ => None,
    });
    let mut count = 0;
    for (id, place) in done.zip(ids.chunks_exact_mut(ID_BYTES)) {
        place.copy_from_slice(&id.to_le_bytes());
        count += 1;
    }
    count
}

/// Hands each name in an answer to `visit`; does nothing if the answer is not made of names.
pub(super) fn each_id(answer: BytesView<'_>, mut visit: impl FnMut(u32)) {
    let length = answer.length_bytes();
    if length > SHORT_BYTES || length % ID_BYTES != 0 {
        return;
    }
    let mut bytes = [0; SHORT_BYTES];
    answer.copy_to_slice(&mut bytes[..length]);
    for id in bytes[..length].chunks_exact(ID_BYTES) {
        visit(u32::from_le_bytes([id[0], id[1], id[2], id[3]]));
    }
}
