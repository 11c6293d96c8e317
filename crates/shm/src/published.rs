// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Shows this route's counts to tools of the same user (docs/shm-layout.md, clause 9). Called by housekeeping about once a millisecond;
//! the fast path only adds to words of its own.

use weft_ring::published::{CLASS_COUNT, Counters, PROTOCOL_COUNT};

use crate::protocol::STREAM_BYTES;
use crate::statistics::Protocol;
use crate::transport::{Inbound, Transport};

impl Transport {
    /// Writes what was counted so far into our region.
    pub(crate) fn publish(&self, now_ns: u64) {
        let statistics = self.statistics();
        let mut sent = [[0; 2]; PROTOCOL_COUNT];
        for protocol in Protocol::ALL {
            let count = statistics.sent(protocol);
            sent[protocol as usize] = [count.messages, count.bytes];
        }
        let waiting = |index: usize| {
            let remote = &self.remotes[self.sending[index].index()];
            remote.waiting.len() + remote.controls.len()
        };
        let mut choices = [0; CLASS_COUNT];
        let first_class = STREAM_BYTES.ilog2() as usize;
        for (class, choice) in choices.iter_mut().enumerate().skip(first_class) {
            *choice = self.choice.published(class);
        }
        self.own.region.publish(&Counters {
            written_ns: now_ns,
            sent,
            received: statistics.received,
            remotes_count: statistics.remotes,
            lost_count: statistics.lost,
            waiting_count: (0..self.sending.len()).map(waiting).sum::<usize>() as u64,
            moving_count: (self.transfers.fetches.len() + self.pipes.feeds.len() + self.parts.len())
                as u64,
            offered_count: self.transfers.offers.len() as u64,
            wide_lanes_count: u64::from(self.wide_lanes),
            choices,
            direct: [statistics.mapped, statistics.copied]
                .map(|count| [count.messages, count.bytes]),
        });
    }
}

/// What one remote has sent, counted without a cost to messages that fill one cell.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Received {
    /// Cells since the last tick that began no message.
    pub(crate) other_cells: u32,
    /// Messages up to the last tick.
    messages: u64,
    /// Bytes, and how many of them were published.
    pub(crate) bytes: u64,
    published_bytes: u64,
}

impl Inbound {
    /// Whether something came since the last tick.
    pub(crate) fn has_news(&self) -> bool {
        self.received > 0 || self.counts.bytes != self.counts.published_bytes
    }

    /// Folds the cells since the last tick in; answers what is new (messages and bytes) and all there is.
    pub(crate) fn fold(&mut self) -> ([u64; 2], [u64; 2]) {
        let counts = &mut self.counts;
        let messages = u64::from(self.received.saturating_sub(counts.other_cells));
        let bytes = counts.bytes - counts.published_bytes;
        (self.received, counts.other_cells) = (0, 0);
        counts.published_bytes = counts.bytes;
        counts.messages += messages;
        ([messages, bytes], [counts.messages, counts.bytes])
    }
}
