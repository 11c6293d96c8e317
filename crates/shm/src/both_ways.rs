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

use crate::choice::{Choice, Lesson, Method, Open, Traffic, class_of};
use crate::contact::contacts::Contacts;
use crate::send::sends::Sends;

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

/// What goes both ways, and when the last transfer ended.
#[derive(Debug, Default)]
pub(crate) struct Exchanges {
    /// By remote, the size class that goes both ways, and for how many more messages that is taken
    /// for granted.
    both_ways: Vec<Option<(usize, u32)>>,
    /// When the last transfer ended.
    last_ns: u64,
}

/// A message that comes from a remote.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coming {
    pub(crate) remote: RemoteId,
    pub(crate) bytes: u64,
    /// How many of its messages are under way, if they go both ways.
    pub(crate) depth: Option<usize>,
}

impl Exchanges {
    /// The way for a message, and what it will teach.
    pub(crate) fn choose(
        &self,
        choice: &mut Choice,
        contacts: &mut Contacts,
        coming: Coming,
        open: Open,
    ) -> (Method, Lesson) {
        let Coming {
            remote,
            bytes,
            depth,
        } = coming;
        let class = class_of(bytes);
        let own = contacts.own.identity().incarnation;
        let theirs = contacts.who_is(remote).map(|theirs| theirs.incarnation);
        let leads = theirs.is_some_and(|theirs| own < theirs);
        if depth.is_some() && !leads {
            let attached = contacts.remote(remote).attached();
            let word = attached.map_or(0, |attached| attached.lane().producer().both_ways());
            if let Some(way) = way_of(word, class).filter(|&way| open.holds(way)) {
                choice.follow(bytes, way);
                return (way, Lesson::Nothing);
            }
        }
        let lane = contacts.lane_of(remote).filter(|_| leads);
        let (traffic, lesson) = match depth {
            Some(depth) if lane.is_some() && depth < DEEP => (Traffic::BothWays, Lesson::BothWays),
            Some(_) if lane.is_some() => (Traffic::BothWaysDeep, Lesson::BothWays),
            _ => (Traffic::OneWay, Lesson::OneWay),
        };
        let way = choice.next(bytes, open, traffic);
        if let Some(lane) = lane {
            lane.advise(match lesson {
                Lesson::BothWays => word_of(class, way),
                _ => 0,
            });
        }
        (way, lesson)
    }

    /// Whether messages of this length go to the remote, too: one is on its way, or went since the
    /// last one came, or it was so lately.
    pub(crate) fn goes_both_ways(
        &mut self,
        sends: &mut Sends,
        remote: RemoteId,
        bytes: u64,
    ) -> bool {
        let class = class_of(bytes);
        let went = sends.take_described(remote).map(class_of) == Some(class);
        let mut under_way = sends.iter().take(SENDS_SEEN);
        let goes = went
            || under_way
                .any(|send| send.remote() == remote && class_of(send.length_bytes()) == class);
        let index = remote.index();
        if self.both_ways.len() <= index {
            self.both_ways.resize(index + 1, None);
        }
        let known = &mut self.both_ways[index];
        *known = match *known {
            _ if goes => Some((class, BOTH_WAYS_FOR)),
            Some((of, left)) if of == class && left > 1 => Some((class, left - 1)),
            _ => None,
        };
        known.is_some()
    }

    /// What a transfer that began then and ends now is charged: the time since the last one ended.
    pub(crate) fn charge(&mut self, started_ns: u64, now_ns: u64) -> u64 {
        let since_last_ns = now_ns.saturating_sub(self.last_ns);
        let own_ns = now_ns.saturating_sub(started_ns.max(self.last_ns));
        self.last_ns = now_ns;
        since_last_ns.min(own_ns.saturating_mul(CHARGE_LIMIT))
    }
}
