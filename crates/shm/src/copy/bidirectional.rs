// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The copy method for bidirectional traffic (docs/shm-layout.md, clause 7b): one of the two
//! processes chooses it for both, so that each method is judged with both directions taking it.
//! Judged alone, a pipe that is tried while the other direction goes by single copy waits for a
//! sender that is in a system call, and looks several times as slow as it is. Called by methods;
//! calls the tuner.
//!
//! The other process's advice is a claim: it names a method, which is taken only if it is open to
//! us, and only while we see for ourselves that messages of this size go, too. One that lies, or
//! says nothing any more, makes its own messages slow.

use std::time::{Duration, Instant};

use weft_contract::RemoteId;

use crate::contact::contacts::Contacts;
use crate::protocol::copy_method::{CopyMethod, Open};
use crate::send::sends::Sends;
use crate::tuner::copies::{CopyTuner, Direction, Lesson, class_of};

/// Sends under way that are looked at for one of the same size. Chosen: the window of the usual
/// bandwidth tests.
const SENDS_SEEN: usize = 64;

/// Fetches from a remote from which on several are under way. Chosen: more than one that ends and
/// one that begins.
const DEEP: usize = 3;

/// Messages that come after the last sign that some go, too, and still count as bidirectional.
/// Chosen: one of the two processes is ahead of the other now and then.
const BIDIRECTIONAL_FOR: u32 = 32;

/// What a transfer is charged at most, in its own times: more than that between two ends was the
/// application's. Chosen: buffers that lie in another processor's cache cost the application up to
/// three times as much as the transfer took (docs/lab/2026-11-22-choice-of-copies.md).
const CHARGE_LIMIT: u32 = 4;

/// The word of clause 7b.
pub(crate) fn advice_of(class: usize, method: CopyMethod) -> u64 {
    (class as u64) << 8 | u64::from(method.number())
}

/// The method in such a word, if it is about this class.
pub(crate) fn advised(word: u64, class: usize) -> Option<CopyMethod> {
    CopyMethod::numbered(word & 0xFF).filter(|_| word >> 8 == class as u64)
}

/// Which traffic is bidirectional, and when the last transfer ended.
#[derive(Debug, Default)]
pub(crate) struct Exchanges {
    /// By remote, the size class that is, and for how many more messages that is taken for granted.
    bidirectional: Vec<Option<(usize, u32)>>,
    /// When the last transfer ended.
    last: Option<Instant>,
}

/// A message that comes from a remote.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coming {
    pub(crate) remote: RemoteId,
    pub(crate) bytes: u64,
    /// How many of its messages are under way, if some go, too.
    pub(crate) depth: Option<usize>,
}

impl Exchanges {
    /// The method for a message, and what it will teach.
    pub(crate) fn choose(
        &self,
        tuner: &mut CopyTuner,
        contacts: &mut Contacts,
        coming: Coming,
        open: Open,
    ) -> (CopyMethod, Lesson) {
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
            let word = attached.map_or(0, |attached| attached.lane().producer().advice());
            let method = advised(word, class).filter(|&method| open.holds(method));
            if let Some(method) = method {
                tuner.follow(bytes, method);
                return (method, Lesson::Nothing);
            }
        }
        let lane = contacts.lane_of(remote).filter(|_| leads);
        let (direction, lesson) = match depth {
            Some(depth) if lane.is_some() && depth < DEEP => {
                (Direction::Bidirectional, Lesson::Bidirectional)
            }
            Some(_) if lane.is_some() => (Direction::BidirectionalDeep, Lesson::Bidirectional),
            _ => (Direction::Unidirectional, Lesson::Unidirectional),
        };
        let method = tuner.next(bytes, open, direction);
        if let Some(lane) = lane {
            lane.advise(match lesson {
                Lesson::Bidirectional => advice_of(class, method),
                _ => 0,
            });
        }
        (method, lesson)
    }

    /// Whether messages of this length go to the remote, too: one is on its way, or went since the
    /// last one came, or it was so lately.
    pub(crate) fn is_bidirectional(
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
        if self.bidirectional.len() <= index {
            self.bidirectional.resize(index + 1, None);
        }
        let known = &mut self.bidirectional[index];
        *known = match *known {
            _ if goes => Some((class, BIDIRECTIONAL_FOR)),
            Some((of, left)) if of == class && left > 1 => Some((class, left - 1)),
            _ => None,
        };
        known.is_some()
    }

    /// What a transfer that began then and ends now is charged: the time since the last one ended.
    pub(crate) fn charge(&mut self, started: Option<Instant>, now: Instant) -> Duration {
        let since = |then: Option<Instant>| {
            then.map_or(Duration::MAX, |then| now.saturating_duration_since(then))
        };
        let (since_last, own) = (since(self.last), since(started.max(self.last)));
        self.last = Some(now);
        since_last.min(own.saturating_mul(CHARGE_LIMIT))
    }
}
