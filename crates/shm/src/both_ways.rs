// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The choice between ways where long messages go both ways at once (docs/shm-layout.md, clause
//! 7b): one of the two processes makes it for both, so that each way is judged with both directions
//! taking it. Judged alone, a pipe that is tried while the other direction goes by single copy
//! waits for a sender that is in a system call, and looks several times as slow as it is. Called by
//! ways and by what ends a transfer; calls choice.
//!
//! The other process's word is a claim: it names a way, which is taken only if it is open to us,
//! and only while we see for ourselves that messages of this size go both ways. One that lies, or
//! says nothing any more, makes its own messages slow.

use weft_contract::RemoteId;

use crate::choice::{Lesson, Method, Open, Traffic, class_of};
use crate::remote::Link;
use crate::transport::Transport;

/// Sends under way that are looked at for one of the same size. Chosen: the window of the usual
/// bandwidth tests.
const SENDS_SEEN: usize = 64;

/// Fetches from a remote from which on several are under way. Chosen: more than one that ends and
/// one that begins.
const DEEP: usize = 3;

/// Messages that come after the last sign that some go, too, and still count as going both ways.
/// Chosen: one of the two processes is ahead of the other now and then.
const BOTH_WAYS_FOR: u32 = 32;

/// What a transfer is charged at most, in its own times: more than that between two ends was the
/// application's. Chosen: buffers that lie in another processor's cache cost the application up to
/// three times as much as the transfer took (docs/lab/2026-11-22-choice-of-copies.md).
const CHARGE_LIMIT: u64 = 4;

/// The word of clause 7b.
pub(crate) fn word_of(class: usize, way: Method) -> u64 {
    (class as u64) << 8 | (way as u64 + 1)
}

/// The way in such a word, if it is about this class.
pub(crate) fn way_of(word: u64, class: usize) -> Option<Method> {
    Method::numbered(word & 0xFF).filter(|_| word >> 8 == class as u64)
}

impl Transport {
    /// The way for a message of `bytes` from this remote, and what it will teach.
    pub(crate) fn choose(&mut self, remote: RemoteId, bytes: u64, open: Open) -> (Method, Lesson) {
        let class = class_of(bytes);
        let goes_both_ways = self.goes_both_ways(remote, class);
        let leads = self.who_is(remote).map(|theirs| theirs.incarnation);
        let entry = &mut self.remotes[remote.index()];
        let leads = leads.is_some_and(|theirs| self.own.identity.incarnation < theirs);
        if goes_both_ways && !leads {
            let word = match &entry.link {
                Link::Ready(attached) => attached.producer.both_ways(),
                _ => 0,
            };
            if let Some(way) = way_of(word, class).filter(|&way| open.holds(way)) {
                self.choice.follow(bytes, way);
                return (way, Lesson::Nothing);
            }
        }
        let inbound = &self.inbound;
        let lane = entry
            .inbound
            .filter(|&slot| leads && inbound[slot].is_some());
        let (traffic, lesson) = if goes_both_ways && lane.is_some() {
            (self.depth(remote), Lesson::BothWays)
        } else {
            (Traffic::OneWay, Lesson::OneWay)
        };
        let way = self.choice.next(bytes, open, traffic);
        let word = match lesson {
            Lesson::BothWays => word_of(class, way),
            _ => 0,
        };
        if let Some(lane) = lane.and_then(|slot| self.inbound[slot].as_mut())
            && lane.both_ways != word
        {
            lane.both_ways = word;
            lane.consumer.set_both_ways(word);
        }
        (way, lesson)
    }

    /// How many of a remote's messages are under way, where they go both ways.
    fn depth(&self, remote: RemoteId) -> Traffic {
        let fetches = self.transfers.fetches.iter();
        let its = fetches.filter(|fetch| fetch.offer.remote == remote);
        if its.take(DEEP).count() < DEEP {
            Traffic::BothWays
        } else {
            Traffic::BothWaysDeep
        }
    }

    /// Whether messages of this class go to the remote, too: one is on its way, or went since the
    /// last one came, or it was so lately.
    fn goes_both_ways(&mut self, remote: RemoteId, class: usize) -> bool {
        let entry = &mut self.remotes[remote.index()];
        let went = entry.announced.take() == Some(class);
        let mut sends = self.transfers.outgoing.iter().take(SENDS_SEEN);
        let goes = went
            || sends.any(|(_, send)| send.remote == remote && class_of(send.length_bytes) == class);
        entry.both_ways = match entry.both_ways {
            _ if goes => Some((class, BOTH_WAYS_FOR)),
            Some((of, left)) if of == class && left > 1 => Some((class, left - 1)),
            _ => None,
        };
        entry.both_ways.is_some()
    }

    /// What a transfer that began then and ends now is charged: the time since the last one ended.
    pub(crate) fn charge(&mut self, started_ns: u64, now_ns: u64) -> u64 {
        let since_last_ns = now_ns.saturating_sub(self.last_fetch_ns);
        let own_ns = now_ns.saturating_sub(started_ns.max(self.last_fetch_ns));
        self.last_fetch_ns = now_ns;
        since_last_ns.min(own_ns.saturating_mul(CHARGE_LIMIT))
    }
}
