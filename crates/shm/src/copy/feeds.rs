// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages of ours on their way through pipes that their receivers lent (docs/shm-layout.md,
//! clause 7): we fill chunks while they empty them. Called by the transport, when a CTS names a
//! pipe and in every round.

use weft_contract::{Owner, RemoteId};
use weft_os::crash_point;
use weft_ring::PipeWriter;

use crate::contact::contacts::Contacts;
use crate::copy::fetches::CHUNKS_BIDIRECTIONAL;
use crate::protocol::cell::{Cts, Transfer};
use crate::send::sends::{Asked, Sends};
use crate::statistics::Protocol;

/// A message on its way through a pipe.
#[derive(Debug)]
struct Feed {
    asked: Asked,
    /// By non-temporal stores.
    is_non_temporal: bool,
    /// Which pipe; messages go through it one after the other.
    pipe: usize,
    writer: PipeWriter,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Feeds {
    feeds: Vec<Feed>,
}

impl Feeds {
    #[inline(always)]
    pub(crate) fn count(&self) -> usize {
        self.feeds.len()
    }

    /// A CTS asked for a message through a pipe. It was checked against the send.
    pub(crate) fn start(&mut self, contacts: &Contacts, sends: &mut Sends, cts: &Cts) {
        let Transfer::Pipe {
            pipe,
            first_chunk,
            is_non_temporal,
        } = cts.by
        else {
            return;
        };
        let Some(remote) = sends.remote(cts.send_id as usize) else {
            return;
        };
        let Some(attached) = contacts.remote(remote).attached() else {
            return;
        };
        let region = attached.region().mapping();
        let Some(writer) = PipeWriter::attach(region, pipe, first_chunk) else {
            return;
        };
        crash_point!(34, "pipe: borrowed, no chunk filled");
        if let Some(asked) = sends.start(cts, Protocol::Pipelined) {
            self.feeds.push(Feed {
                asked,
                is_non_temporal,
                pipe,
                writer,
            });
        }
    }

    /// Fills what chunks are empty; answers how many feeds moved. Fewer in one round if messages
    /// come to us, too.
    pub(crate) fn advance<O: Owner>(
        &mut self,
        sends: &mut Sends,
        is_fetching: bool,
        owner: &mut O,
    ) -> usize {
        let mut events = 0;
        let mut index = 0;
        let mut left = if is_fetching {
            CHUNKS_BIDIRECTIONAL
        } else {
            u32::MAX
        };
        while index < self.feeds.len() {
            let (before, rest) = self.feeds.split_at_mut(index);
            let feed = &mut rest[0];
            if !before.iter().any(|other| feed.is_behind(other)) {
                let filled = feed.fill_chunks(left);
                left -= filled;
                events += usize::from(filled > 0);
            }
            if !feed.asked.bytes.is_empty() {
                index += 1;
                continue;
            }
            let feed = self.feeds.remove(index);
            sends.complete(&feed.asked, owner);
        }
        events
    }

    /// Ends what goes to a remote.
    pub(crate) fn lose(&mut self, remote: RemoteId) {
        self.feeds.retain(|feed| feed.asked.remote != remote);
    }
}

impl Feed {
    fn is_behind(&self, other: &Self) -> bool {
        (other.asked.remote, other.pipe) == (self.asked.remote, self.pipe)
    }

    /// Fills empty chunks, up to a limit; answers how many.
    fn fill_chunks(&mut self, limit: u32) -> u32 {
        let mut moved = 0;
        let (payload, bytes) = (&self.asked.payload, &mut self.asked.bytes);
        while moved < limit && bytes.start < bytes.end {
            let mut count = 0;
            let filled = self.writer.write(|chunk| {
                count = chunk.length_bytes().min(bytes.len());
                let (mut part, _) = chunk.split_at(count);
                if self.is_non_temporal {
                    payload.drain_non_temporal(bytes.start, &mut part)
                } else {
                    payload.drain(bytes.start, &mut part)
                }
            });
            if !filled {
                break;
            }
            bytes.start += count;
            moved += 1;
        }
        moved
    }
}
