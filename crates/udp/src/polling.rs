// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Socket polling: which socket to look into next. Called by sockets/reader.rs in every call of
//! progress.
//!
//! A look into one socket costs one system call, a look around all of them one more. While messages
//! come one by one they come in through one socket (srd-protocol 10.1), so that one is looked into
//! alone, and now and then the others.

use weft_srd::Instant;

use crate::absence::Absence;

/// Rounds with arrivals in the same socket alone, after which it is looked into alone. Chosen.
const ALONE_AFTER: u32 = 4;
/// Looks into one socket between two looks around. Chosen: a datagram in another one waits for a
/// few microseconds.
const LOOKS: u32 = 8;

/// Datagrams, joined ones counted once, that are found at once and are no single message but a
/// stream, which comes in everywhere.
/// Chosen.
pub(crate) const STREAM_COUNT: usize = 2;

/// Where to look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Look {
    /// Into this socket.
    At(usize),
    /// Around all of them.
    Everywhere,
}

/// What was found lately.
#[derive(Debug, Default)]
pub(crate) struct SocketPolling {
    last: usize,
    /// Times in a row that something was found in `last`, and nowhere else.
    alone_count: u32,
    looks: u32,
    absence: Absence,
}

impl SocketPolling {
    /// Where to look now. Fast path.
    #[inline]
    pub(crate) fn next(&mut self) -> Look {
        if self.alone_count < ALONE_AFTER || self.looks >= LOOKS {
            self.looks = 0;
            return Look::Everywhere;
        }
        self.looks += 1;
        Look::At(self.last)
    }

    /// A look into one socket, in vain.
    #[inline]
    pub(crate) fn on_one_empty(&mut self) {
        self.absence.on_one_empty();
    }

    /// A look around all of them, in vain.
    #[inline]
    pub(crate) fn on_all_empty(&mut self) {
        self.absence.on_all_empty();
    }

    /// The clock was read.
    #[inline]
    pub(crate) fn on_clock(&mut self, now_ns: Instant) {
        self.absence.on_clock(now_ns);
    }

    /// A look has found something; answers whether it is the first one after an absence. Fast path.
    #[inline]
    pub(crate) fn comes_back(&mut self, now_ns: Instant) -> bool {
        self.absence.ends(now_ns)
    }

    /// What a look into the one socket found.
    #[inline]
    pub(crate) fn after_one(&mut self, count: usize) {
        if count > STREAM_COUNT {
            self.alone_count = 0;
        }
    }

    /// What a look around found in a socket.
    #[inline]
    pub(crate) fn found(&mut self, index: usize, count: usize) {
        if count == 0 {
            return;
        }
        if self.last == index && count <= STREAM_COUNT {
            self.alone_count = self.alone_count.saturating_add(1);
        } else {
            self.last = index;
            self.alone_count = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled_on(index: usize) -> SocketPolling {
        let mut polling = SocketPolling::default();
        for _ in 0..=ALONE_AFTER {
            assert_eq!(polling.next(), Look::Everywhere);
            polling.found(index, 1);
        }
        polling
    }

    #[test]
    fn one_busy_socket_is_looked_into_alone_and_the_others_now_and_then() {
        let mut polling = settled_on(3);
        for _ in 0..3 {
            for _ in 0..LOOKS {
                assert_eq!(polling.next(), Look::At(3));
                polling.after_one(0);
            }
            assert_eq!(polling.next(), Look::Everywhere);
        }
    }

    #[test]
    fn a_busy_socket_never_keeps_the_others_waiting() {
        let mut polling = settled_on(3);
        let looks = (0..3 * LOOKS).map(|_| {
            let look = polling.next();
            polling.after_one(1);
            look
        });
        assert_eq!(looks.filter(|look| *look == Look::Everywhere).count(), 2);
        polling.after_one(STREAM_COUNT + 1);
        assert_eq!(polling.next(), Look::Everywhere);
    }

    #[test]
    fn another_socket_with_arrivals_brings_back_the_look_around() {
        let mut polling = settled_on(3);
        polling.found(5, 2);
        assert_eq!(polling.next(), Look::Everywhere);
    }
}
