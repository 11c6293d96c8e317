// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Pipelined copy: the receiver of an offered message lends a pipe, its sender fills chunks while the receiver
//! empties them, so that two processors copy at once and every chunk stays in the cache they share. Works where
//! no process may read another's memory. Called by rendezvous (to lend) and by receive's work (to feed).

use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

use weft_contract::{Owner, SendToken};
use weft_memory::{Mapping, UserBuffer};
use weft_os::{clock, crash_point};
use weft_ring::layout::PIPE_COUNT;
use weft_ring::{PipeReader, PipeWriter};

use crate::backing;
use crate::choice::Method;
use crate::protocol::{ACCEPT, BY_LANE};
use crate::remote::Link;
use crate::rendezvous::Stage;
use crate::statistics::Protocol;
use crate::transport::Transport;

/// Pipes lent to one remote at a time. Chosen: its transfers then go round no more memory than the caches hold,
/// and each can be timed.
const PIPES_PER_REMOTE: u32 = 1;

/// Our pipes that are not lent, and what we feed into the pipes of others.
#[derive(Debug)]
pub(crate) struct Pipes {
    /// With the last one given back on top: its chunks are the warmest.
    free: Vec<(usize, PipeReader)>,
    /// Pipes from here on were never lent.
    untouched: usize,
    pub(crate) feeds: Vec<Feed>,
}

/// What an ACCEPT cell says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Accepted {
    /// The receiver's pipe, and where in it to begin; or [`BY_LANE`], and the receiver's number for the message.
    pub(crate) pipe: usize,
    pub(crate) first_chunk: usize,
    /// Which bytes of the message.
    pub(crate) bytes: Range<usize>,
    /// Whether to store past our cache.
    pub(crate) past_cache: bool,
}

/// A message of ours on its way through a remote's pipe.
#[derive(Debug)]
pub(crate) struct Feed {
    /// Index of the send; its entry stays until the feed or its receipt ends.
    pub(crate) send_id: usize,
    pub(crate) remote: weft_contract::RemoteId,
    token: SendToken,
    payload: UserBuffer,
    bytes: Range<usize>,
    past_cache: bool,
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

    /// A pipe whose sender is gone is emptied before it may be lent again.
    pub(crate) fn recover(&mut self, pipe: usize, own: &Mapping) {
        if let Some(reader) = PipeReader::attach(own, pipe) {
            self.free.push((pipe, reader));
        }
    }

    fn take(&mut self, own: &Mapping, file: BorrowedFd<'_>) -> Option<(usize, PipeReader)> {
        if let Some(warm) = self.free.pop() {
            return Some(warm);
        }
        let pipe = (self.untouched < PIPE_COUNT).then_some(self.untouched)?;
        // Where there is no room for another one, those that are lent come back.
        backing::reserve_pipe(file, pipe).ok()?;
        let reader = PipeReader::attach(own, pipe)?;
        self.untouched += 1;
        Some((pipe, reader))
    }
}

impl Transport {
    /// Lends a pipe to the sender of a fetch, if one is free.
    pub(crate) fn lend_pipe(&mut self, fetch_index: usize) -> bool {
        let remote = self.transfers.fetches[fetch_index].offer.remote;
        if self.remotes[remote.index()].pipes_lent >= PIPES_PER_REMOTE {
            return false;
        }
        let Some((pipe, reader)) = self
            .pipes
            .take(self.own.region.mapping(), self.own.file.as_fd())
        else {
            return false;
        };
        let fetch = &mut self.transfers.fetches[fetch_index];
        let first_chunk = reader.next_chunk() as u64;
        fetch.stage = Stage::Piped(pipe, reader);
        fetch.started_ns = clock::monotonic_ns();
        self.remotes[remote.index()].pipes_lent += 1;
        let (done, wanted) = (fetch.done_bytes as u64, fetch.wanted_bytes as u64);
        let past_cache = u64::from(fetch.method == Method::PastCache);
        crash_point!(33, "pipe: lent, its borrower not told");
        let words = [
            fetch.offer.send_id,
            pipe as u64,
            done,
            wanted,
            first_chunk,
            past_cache,
            0,
        ];
        self.answer(remote, ACCEPT, words);
        true
    }

    /// Starts to send part of an offered message through a pipe. The request was checked against the send.
    pub(crate) fn start_feed(&mut self, send_id: usize, accepted: &Accepted) {
        let outgoing = &mut self.transfers.outgoing[send_id];
        if accepted.pipe as u64 == BY_LANE {
            return self.start_parts(send_id, accepted);
        }
        let Link::Ready(attached) = &self.remotes[outgoing.remote.index()].link else {
            return;
        };
        let Some(writer) = PipeWriter::attach(
            attached.region.mapping(),
            accepted.pipe,
            accepted.first_chunk,
        ) else {
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
            bytes: accepted.bytes.clone(),
            past_cache: accepted.past_cache,
            writer,
            wants_receipt: outgoing.wants_receipt,
        });
    }

    /// Fills what chunks are empty; answers how many feeds moved.
    pub(crate) fn feed<O: Owner>(&mut self, owner: &mut O) -> usize {
        let mut events = 0;
        let mut index = 0;
        while index < self.pipes.feeds.len() {
            let feed = &mut self.pipes.feeds[index];
            events += usize::from(feed.fill_chunks());
            if !feed.bytes.is_empty() {
                index += 1;
                continue;
            }
            let feed = self.pipes.feeds.swap_remove(index);
            if !feed.wants_receipt {
                self.transfers.outgoing.try_remove(feed.send_id);
                owner.on_sent(feed.token, Ok(()));
            }
        }
        events
    }
}

impl Feed {
    fn fill_chunks(&mut self) -> bool {
        let mut moved = false;
        while !self.bytes.is_empty() {
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
            moved = true;
        }
        moved
    }
}
