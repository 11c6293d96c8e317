// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Pipelined copy: the receiver of an offered message lends a pipe, its sender fills chunks while
//! the receiver empties them, so that two processors copy at once and every chunk stays in the
//! cache they share. Works where no process may read another's memory. Called by rendezvous (to
//! lend) and by receive's work (to feed).

use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

use weft_contract::{Owner, RemoteId, SendToken};
use weft_memory::{Mapping, UserBuffer};
use weft_os::{clock, crash_point};
use weft_ring::layout::{CHUNK_BYTES, PIPE_CHUNKS, PIPE_COUNT};
use weft_ring::{PipeReader, PipeWriter};

use crate::backing;
use crate::choice::Method;
use crate::fetch::{CHUNKS_BOTH_WAYS, Fetch, Stage};
use crate::protocol::cell::{Control, Cts, Transfer};
use crate::remote::Link;
use crate::statistics::Protocol;
use crate::transport::Transport;

/// Messages of one remote that a pipe is lent for at a time; it has one pipe, so that its messages
/// go round no more memory than the caches hold. Chosen: its sender goes on with the next ones
/// while we take the last chunks of one.
const TRANSFERS_PER_PIPE: u32 = 4;

/// Our pipes that are not lent, and what we feed into the pipes of others.
#[derive(Debug)]
pub(crate) struct Pipes {
    /// With the last one given back on top: its chunks are the warmest.
    free: Vec<(usize, PipeReader)>,
    /// Pipes from here on were never lent.
    untouched: usize,
    pub(crate) feeds: Vec<Feed>,
}

/// A message of ours on its way through a remote's pipe.
#[derive(Debug)]
pub(crate) struct Feed {
    /// Index of the send; its entry stays until the feed or its receipt ends.
    pub(crate) send_id: usize,
    pub(crate) remote: RemoteId,
    token: SendToken,
    payload: UserBuffer,
    bytes: Range<usize>,
    past_cache: bool,
    /// Which pipe; messages go through it one after the other.
    pipe: usize,
    writer: PipeWriter,
    wants_receipt: bool,
}

impl Pipes {
    pub(crate) fn new() -> Self {
        Self {
            free: Vec::new(),
            untouched: 0,
            feeds: Vec::new(),
        }
    }

    /// A pipe whose message was read to its end may be lent again as it is.
    pub(crate) fn give_back(&mut self, pipe: usize, reader: PipeReader) {
        self.free.push((pipe, reader));
    }

    /// The same for one of which only the states were used: it is lent after those whose chunks are
    /// warm.
    pub(crate) fn give_back_states(&mut self, pipe: usize, reader: PipeReader) {
        self.free.insert(0, (pipe, reader));
    }

    /// A pipe whose sender is gone is emptied before it may be lent again.
    pub(crate) fn recover(&mut self, pipe: usize, own: &Mapping) {
        if let Some(reader) = PipeReader::attach(own, pipe) {
            self.free.push((pipe, reader));
        }
    }

    pub(crate) fn take(
        &mut self,
        own: &Mapping,
        file: BorrowedFd<'_>,
    ) -> Option<(usize, PipeReader)> {
        if let Some(warm) = self.free.pop() {
            return Some(warm);
        }
        self.take_new(own, file)
    }

    /// A pipe of which only the states are used, so that the warmest chunks are there for those who
    /// want them.
    pub(crate) fn take_for_states(
        &mut self,
        own: &Mapping,
        file: BorrowedFd<'_>,
    ) -> Option<(usize, PipeReader)> {
        if self.free.len() > 1 {
            return Some(self.free.remove(0));
        }
        self.take_new(own, file).or_else(|| self.free.pop())
    }

    fn take_new(&mut self, own: &Mapping, file: BorrowedFd<'_>) -> Option<(usize, PipeReader)> {
        let pipe = (self.untouched < PIPE_COUNT).then_some(self.untouched)?;
        // Where there is no room for another one, those that are lent come back.
        backing::reserve_pipe(file, pipe).ok()?;
        let reader = PipeReader::attach(own, pipe)?;
        self.untouched += 1;
        Some((pipe, reader))
    }
}

impl Transport {
    /// Lends a pipe to the sender of a fetch, if one is free; or the one that the fetch before it
    /// uses.
    pub(crate) fn lend_pipe(&mut self, fetch_index: usize) -> bool {
        let remote = self.transfers.fetches[fetch_index].offer.remote;
        let (stage, pipe, first_chunk) = match self.remotes[remote.index()].pipes_lent {
            0 => {
                let own = self.own.region.mapping();
                let Some((pipe, reader)) = self.pipes.take(own, self.own.file.as_fd()) else {
                    return false;
                };
                let first_chunk = reader.next_chunk();
                (Stage::Piped(pipe, reader), pipe, first_chunk)
            }
            lent if lent < TRANSFERS_PER_PIPE => match self.end_of_pipe(remote) {
                Some((pipe, first_chunk)) => (Stage::Follows, pipe, first_chunk),
                None => return false,
            },
            _ => return false,
        };
        let fetch = &mut self.transfers.fetches[fetch_index];
        if matches!(stage, Stage::Piped(..)) {
            fetch.started_ns = clock::monotonic_ns();
        }
        fetch.stage = stage;
        self.remotes[remote.index()].pipes_lent += 1;
        let cts = Cts {
            send_id: fetch.offer.send_id,
            bytes: fetch.done_bytes as u64..fetch.wanted_bytes as u64,
            by: Transfer::Pipe {
                pipe,
                first_chunk,
                is_non_temporal: fetch.method == Method::PastCache,
            },
        };
        crash_point!(33, "pipe: lent, its borrower not told");
        self.answer(remote, Control::Cts(cts));
        true
    }

    /// The pipe in which messages of this remote's come in, and the chunk that will follow the last
    /// one of them.
    fn end_of_pipe(&self, remote: RemoteId) -> Option<(usize, usize)> {
        let mut end = None;
        let fetches = self.transfers.fetches.iter();
        for fetch in fetches.filter(|fetch| fetch.offer.remote == remote) {
            let left_chunks = (fetch.wanted_bytes - fetch.done_bytes).div_ceil(CHUNK_BYTES);
            end = match (&fetch.stage, end) {
                (Stage::Piped(pipe, reader), None) => {
                    Some((*pipe, reader.next_chunk() + left_chunks))
                }
                (Stage::Follows, Some((pipe, chunk))) => Some((pipe, chunk + left_chunks)),
                _ => end,
            };
        }
        end.map(|(pipe, chunk)| (pipe, chunk % PIPE_CHUNKS))
    }

    /// A message has come through a pipe: the one that follows it is next, or the pipe is free.
    pub(crate) fn pass_on(
        &mut self,
        remote: RemoteId,
        (pipe, reader): (usize, PipeReader),
        now_ns: u64,
    ) {
        let follows = |fetch: &&mut Fetch| {
            fetch.offer.remote == remote && matches!(fetch.stage, Stage::Follows)
        };
        match self.transfers.fetches.iter_mut().find(follows) {
            Some(next) => {
                next.stage = Stage::Piped(pipe, reader);
                next.started_ns = now_ns;
            }
            None => self.pipes.give_back(pipe, reader),
        }
    }

    /// Starts to send what a CTS asks for. It was checked against the send.
    pub(crate) fn start_transfer(&mut self, cts: &Cts) {
        match cts.by {
            Transfer::Pipe { .. } => self.start_feed(cts),
            Transfer::Lane { number } => self.start_parts(cts, number),
            Transfer::Copy {
                pipe,
                ticket,
                address,
            } => self.start_push(cts, pipe, ticket, address),
        }
    }

    /// Starts to send part of a described message through a pipe.
    fn start_feed(&mut self, cts: &Cts) {
        let Transfer::Pipe {
            pipe,
            first_chunk,
            is_non_temporal,
        } = cts.by
        else {
            return;
        };
        let send_id = cts.send_id as usize;
        self.transfers.pushes.retain(|push| push.send_id != send_id);
        let outgoing = &mut self.transfers.outgoing[send_id];
        let Link::Ready(attached) = &self.remotes[outgoing.remote.index()].link else {
            return;
        };
        let Some(writer) = PipeWriter::attach(attached.region.mapping(), pipe, first_chunk) else {
            return;
        };
        let Some(payload) = outgoing.payload.take() else {
            return;
        };
        crash_point!(34, "pipe: borrowed, no chunk filled");
        self.statistics
            .count(Protocol::Pipelined, payload.length_bytes() as u64);
        self.pipes.feeds.push(Feed {
            send_id,
            remote: outgoing.remote,
            token: outgoing.token,
            payload,
            bytes: cts.bytes.start as usize..cts.bytes.end as usize,
            past_cache: is_non_temporal,
            pipe,
            writer,
            wants_receipt: outgoing.wants_receipt,
        });
    }

    /// Fills what chunks are empty; answers how many feeds moved.
    pub(crate) fn feed<O: Owner>(&mut self, owner: &mut O) -> usize {
        let mut events = 0;
        let mut index = 0;
        let goes_both_ways = !self.transfers.fetches.is_empty();
        let mut left = if goes_both_ways {
            CHUNKS_BOTH_WAYS
        } else {
            u32::MAX
        };
        while index < self.pipes.feeds.len() {
            let (before, rest) = self.pipes.feeds.split_at_mut(index);
            let feed = &mut rest[0];
            let is_behind = |other: &Feed| (other.remote, other.pipe) == (feed.remote, feed.pipe);
            if !before.iter().any(is_behind) {
                let filled = feed.fill_chunks(left);
                left -= filled;
                events += usize::from(filled > 0);
            }
            if !feed.bytes.is_empty() {
                index += 1;
                continue;
            }
            let feed = self.pipes.feeds.remove(index);
            if !feed.wants_receipt {
                self.transfers.outgoing.try_remove(feed.send_id);
                owner.on_sent(feed.token, Ok(()));
            }
        }
        events
    }
}

impl Feed {
    /// Fills empty chunks, up to a limit; answers how many.
    fn fill_chunks(&mut self, limit: u32) -> u32 {
        let mut moved = 0;
        while moved < limit && !self.bytes.is_empty() {
            let (payload, bytes, past_cache) = (&self.payload, &self.bytes, self.past_cache);
            let mut count = 0;
            let filled = self.writer.write(|chunk| {
                count = chunk.length_bytes().min(bytes.len());
                let (mut part, _) = chunk.split_at(count);
                if past_cache {
                    payload.drain_past_cache(bytes.start, &mut part)
                } else {
                    payload.drain(bytes.start, &mut part)
                }
            });
            if !filled {
                break;
            }
            self.bytes.start += count;
            moved += 1;
        }
        moved
    }
}
