// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How the connected socket is looked into: with the cheapest call while single messages come
//! through it, and with one that takes them joined while several come at a time. Asked by
//! sockets/reader.rs.
//!
//! Of what a single datagram costs in the kernel, time stamps, joined datagrams, a member of the
//! wait set and the headers of recvmsg(2) and sendmsg(2) are a fifth (measured). So this socket has
//! none of them while messages are single: who sent a datagram is known, when it arrived is asked
//! only where it may have waited (SIOCGSTAMPNS), and the wait set has it only while somebody
//! sleeps.

use weft_srd::{Instant, Nanos};

use crate::last_look::LastLook;
/// A datagram found within this time of a look that found nothing has not waited. Chosen: a fifth
/// of the delay that is aimed at.
const FRESH_NS: Nanos = Nanos(5_000);
/// Datagrams found in a row, with no look in vain between them, after which it is asked whether
/// several wait. Chosen.
const ROW_COUNT: u32 = 4;
/// Looks for an answer after a message was sent, and how many of them one call of progress makes.
/// Chosen: three take less than a microsecond, and a caller that yields its processor between calls
/// takes as long.
const ANSWER_LOOKS: u32 = 64;
/// See [`ANSWER_LOOKS`].
const LOOKS_PER_CALL: u32 = 3;
/// The same while nothing but the network brings anything: then nobody local is kept waiting, and
/// what a caller does between calls only delays the answer (measured under MPICH, which yields:
/// eight 5.3 us, three 5.5, sixteen 5.6, 32 6.4).
const LOOKS_UNDISTURBED: u32 = 8;
/// Datagrams in a row that come single, after which the kernel need not join any. Chosen.
const SINGLE_AFTER: u32 = 64;
/// Calls of progress after a sleep until the wait set is left. Chosen: whoever sleeps between
/// messages stays in it.
const AWAKE_CALLS: u32 = 64;

/// The state of that socket.
#[derive(Debug, Default)]
pub(crate) struct ConnectedPolling {
    exists: bool,
    /// The kernel joins what comes through it, as far as it can, and stamps each datagram.
    joined: bool,
    /// Datagrams in a row that came single nevertheless.
    single_count: u32,
    /// The wait set has it.
    watched: bool,
    /// When it was empty last.
    emptied: LastLook,
    /// Datagrams in a row.
    row_count: u32,
    /// Looks for an answer that are left.
    answer_looks: u32,
    /// The last call came from who waits for nothing else.
    undisturbed: bool,
    awake_calls: u32,
    /// Somebody sleeps on the wait set, while other threads may make progress.
    asleep: bool,
}

impl ConnectedPolling {
    /// A new socket, in no wait set, without stamps and without joined datagrams.
    pub(crate) fn begin(&mut self) {
        *self = Self {
            exists: true,
            undisturbed: self.undisturbed,
            asleep: self.asleep,
            ..Self::default()
        };
    }

    /// It is gone.
    pub(crate) fn end(&mut self) {
        *self = Self {
            undisturbed: self.undisturbed,
            asleep: self.asleep,
            ..Self::default()
        };
    }

    /// Whether there is one.
    #[inline]
    pub(crate) fn exists(&self) -> bool {
        self.exists
    }

    /// Whether joined datagrams may come through it.
    #[inline]
    pub(crate) fn is_joined(&self) -> bool {
        self.joined
    }

    /// Joined datagrams may come from now on.
    pub(crate) fn join(&mut self) {
        self.joined = true;
        self.single_count = 0;
    }

    /// Single ones come from now on.
    pub(crate) fn separate(&mut self) {
        self.joined = false;
    }

    /// A look at joined datagrams has found so many, and so many if joined ones count as one;
    /// answers whether single ones will do.
    pub(crate) fn ends_joined(&mut self, datagram_count: usize, joined_count: usize) -> bool {
        if datagram_count > joined_count {
            self.single_count = 0;
        } else {
            self.single_count = self.single_count.saturating_add(joined_count as u32);
        }
        self.single_count >= SINGLE_AFTER
    }

    /// Whether what came last through the joined socket was single: then one call may find many.
    pub(crate) fn is_single(&self) -> bool {
        self.single_count >= ROW_COUNT
    }

    /// How often to look in this call. Fast path.
    #[inline]
    pub(crate) fn looks(&mut self) -> u32 {
        if self.answer_looks == 0 {
            return 1;
        }
        let most = if self.undisturbed {
            LOOKS_UNDISTURBED
        } else {
            LOOKS_PER_CALL
        };
        let looks = most.min(self.answer_looks);
        self.answer_looks -= looks;
        looks
    }

    /// Whether whoever makes progress waits for nothing but the network, and so may be kept.
    #[inline]
    pub(crate) fn set_undisturbed(&mut self, undisturbed: bool) {
        self.undisturbed = undisturbed;
    }

    /// A message has left through it, which mostly has an answer.
    #[inline]
    pub(crate) fn on_sent(&mut self) {
        self.answer_looks = ANSWER_LOOKS;
    }

    /// A look in vain.
    #[inline]
    pub(crate) fn on_empty(&mut self) {
        self.emptied.on_vain();
        self.row_count = 0;
    }

    /// The clock was read.
    #[inline]
    pub(crate) fn on_clock(&mut self, now_ns: Instant) {
        self.emptied.on_clock(now_ns);
    }

    /// Something was found; answers whether it may have waited.
    #[inline]
    pub(crate) fn on_found(&mut self, now_ns: Instant) -> bool {
        self.row_count += 1;
        self.answer_looks = 0;
        self.emptied.was_longer_ago(now_ns, FRESH_NS)
    }

    /// Whether one datagram is expected, as most often.
    #[inline]
    pub(crate) fn expects_one(&self) -> bool {
        !self.joined && self.row_count < ROW_COUNT
    }

    /// Whether several may wait, so that they should be asked for by one call. Begins a new row.
    #[inline]
    pub(crate) fn ends_row(&mut self) -> bool {
        let ends = self.row_count >= ROW_COUNT;
        if ends {
            self.row_count = 0;
        }
        ends
    }

    /// Somebody goes to sleep; whether the wait set must be given the socket.
    pub(crate) fn on_sleep(&mut self) -> bool {
        self.awake_calls = 0;
        self.asleep = true;
        self.exists && !std::mem::replace(&mut self.watched, true)
    }

    /// Whether somebody sleeps on the wait set.
    pub(crate) fn is_asleep(&self) -> bool {
        self.asleep
    }

    /// Nobody sleeps any more.
    pub(crate) fn on_wake(&mut self) {
        self.asleep = false;
    }

    /// A call of progress; whether the socket should leave the wait set. Fast path.
    #[inline]
    pub(crate) fn on_call(&mut self) -> bool {
        if !self.watched {
            return false;
        }
        self.awake_calls = self.awake_calls.saturating_add(1);
        // Another thread's calls do not take it from one that sleeps.
        let leaves = self.awake_calls > AWAKE_CALLS && !self.asleep;
        if leaves {
            self.watched = false;
        }
        leaves
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun() -> ConnectedPolling {
        let mut polling = ConnectedPolling::default();
        polling.begin();
        polling
    }

    #[test]
    fn what_is_found_right_after_a_look_in_vain_has_not_waited() {
        let mut polling = begun();
        polling.on_clock(Instant(1_000_000));
        assert!(
            polling.on_found(Instant(1_000_000)),
            "nobody has looked yet"
        );
        polling.on_empty();
        polling.on_clock(Instant(2_000_000));
        assert!(!polling.on_found(Instant(2_000_000) + FRESH_NS));
        assert!(
            polling.on_found(Instant(2_000_001) + FRESH_NS),
            "the caller was away"
        );
        polling.on_empty();
        assert!(
            !polling.on_found(Instant(9_000_000)),
            "two looks in one call"
        );
    }

    #[test]
    fn single_datagrams_in_a_row_end_joining_and_looks_in_vain_do_not_count() {
        let mut polling = begun();
        polling.join();
        for _ in 1..SINGLE_AFTER {
            assert!(!polling.ends_joined(0, 0) && !polling.ends_joined(1, 1));
        }
        assert!(!polling.ends_joined(2, 1), "a message of two datagrams");
        for _ in 1..SINGLE_AFTER {
            assert!(!polling.ends_joined(1, 1));
        }
        assert!(polling.ends_joined(1, 1));
        polling.separate();
        assert!(polling.exists() && !polling.is_joined());
    }

    #[test]
    fn a_row_without_a_look_in_vain_is_asked_about_now_and_then() {
        let mut polling = begun();
        for _ in 0..2 {
            for _ in 0..ROW_COUNT {
                assert!(!polling.ends_row());
                polling.on_found(Instant::START);
            }
            assert!(polling.ends_row());
        }
        for _ in 0..10 * ROW_COUNT {
            polling.on_found(Instant::START);
            polling.on_empty();
            assert!(!polling.ends_row());
        }
    }

    #[test]
    fn an_answer_is_looked_for_several_times_a_call_until_it_comes_or_for_a_while() {
        let mut polling = begun();
        assert_eq!(polling.looks(), 1);
        polling.on_sent();
        assert_eq!(polling.looks(), LOOKS_PER_CALL);
        polling.on_found(Instant::START);
        assert_eq!(polling.looks(), 1);
        polling.on_sent();
        for (undisturbed, most) in [(false, LOOKS_PER_CALL), (true, LOOKS_UNDISTURBED)] {
            polling.on_sent();
            polling.set_undisturbed(undisturbed);
            assert_eq!(polling.looks(), most);
            let looks: Vec<u32> = (0..ANSWER_LOOKS).map(|_| polling.looks()).collect();
            assert!(looks.iter().all(|looks| (1..=most).contains(looks)));
            let several = looks.iter().filter(|looks| **looks > 1);
            assert_eq!(
                most + several.sum::<u32>(),
                ANSWER_LOOKS - ANSWER_LOOKS % most
            );
            assert_eq!(polling.looks(), 1);
        }
    }

    #[test]
    fn the_wait_set_has_the_socket_while_its_owner_sleeps_and_for_a_while_after() {
        let mut polling = ConnectedPolling::default();
        assert!(!polling.on_sleep() && !polling.on_call(), "there is none");
        polling.begin();
        for _ in 0..2 {
            assert!(polling.on_sleep());
            assert!(!polling.on_sleep(), "it is there already");
            let others = 2 * AWAKE_CALLS;
            assert!((0..others).all(|_| !polling.on_call()), "it sleeps still");
            // The end of a sleep is told like another one.
            assert!(!polling.on_sleep());
            polling.on_wake();
            assert_eq!((0..AWAKE_CALLS).filter(|_| polling.on_call()).count(), 0);
            assert!(polling.on_call());
            assert!(!polling.on_call());
        }
    }
}
