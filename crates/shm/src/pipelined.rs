// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Pipelined copy: the receiver of an offered message lends a pipe, its sender fills chunks while the receiver
//! empties them, so that two processors copy at once and every chunk stays in the cache they share. Works where
//! no process may read another's memory. Called by rendezvous (to lend) and by receive's work (to feed).

use std::ops::Range;

use weft_contract::{Owner, SendToken};
use weft_memory::UserBuffer;
use weft_ring::layout::PIPE_COUNT;
use weft_ring::{PipeReader, PipeWriter};

use crate::protocol::ACCEPT;
use crate::remote::Link;
use crate::rendezvous::Stage;
use crate::statistics::Protocol;
use crate::transport::Transport;

/// Our pipes that are not lent, and what we feed into the pipes of others.
#[derive(Debug)]
pub(crate) struct Pipes {
    free: Vec<usize>,
    pub(crate) feeds: Vec<Feed>,
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
    writer: PipeWriter,
    wants_receipt: bool,
}

impl Pipes {
    pub(crate) fn new() -> Self {
        Self {
            free: (0..PIPE_COUNT).rev().collect(),
            feeds: Vec::new(),
        }
    }

    pub(crate) fn give_back(&mut self, pipe: usize) {
        self.free.push(pipe);
    }
}

impl Transport {
    /// Lends a pipe to the sender of a fetch, if one is free.
    pub(crate) fn lend_pipe(&mut self, fetch_index: usize) -> bool {
        let Some(pipe) = self.pipes.free.pop() else {
            return false;
        };
        let Some(reader) = PipeReader::attach(self.own.region.mapping(), pipe) else {
            return false;
        };
        let fetch = &mut self.transfers.fetches[fetch_index];
        fetch.stage = Stage::Piped(pipe, reader);
        let words = [
            fetch.offer.send_id,
            pipe as u64,
            fetch.done_bytes as u64,
            fetch.wanted_bytes as u64,
            0,
            0,
            0,
        ];
        let remote = fetch.offer.remote;
        self.answer(remote, ACCEPT, words);
        true
    }

    /// Starts to send part of an offered message through a pipe. The request was checked against the send.
    pub(crate) fn start_feed(&mut self, send_id: usize, pipe: usize, bytes: Range<usize>) {
        let outgoing = &mut self.transfers.outgoing[send_id];
        let Link::Ready(attached) = &self.remotes[outgoing.remote.index()].link else {
            return;
        };
        let Some(writer) = PipeWriter::attach(attached.region.mapping(), pipe) else {
            return;
        };
        let Some(payload) = outgoing.payload.take() else {
            return;
        };
        self.statistics
            .count(Protocol::Pipelined, payload.length_bytes() as u64);
        self.pipes.feeds.push(Feed {
            send_id,
            remote: outgoing.remote,
            token: outgoing.token,
            payload,
            bytes,
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
            let (payload, bytes) = (&self.payload, &self.bytes);
            let mut count = 0;
            let filled = self.writer.write(|chunk| {
                count = chunk.length_bytes().min(bytes.len());
                let (mut part, _) = chunk.split_at(count);
                payload.drain(bytes.start, &mut part)
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
