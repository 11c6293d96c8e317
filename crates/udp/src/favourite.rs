// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which way has a connected socket of its own, beside the eight. Asked by sockets.rs for every datagram that leaves.
//!
//! A connected socket keeps its route in both directions. While messages come and go one by one they keep to one path
//! (srd-protocol 10.1), and it is their latency that the route's look-up adds to: so there is one such socket, for the
//! way that lone datagrams have taken lately. The number of sockets stays fixed whatever the number of remotes.

use std::net::SocketAddr;

/// Lone datagrams the same way, in a row, after which it is the favourite; twice as many for each favourite before it.
/// Chosen: the change costs some ten system calls, which a way that does not last cannot earn back.
const SETTLED_AFTER: u32 = 64;
/// The most that it doubles to.
const SETTLED_AFTER_MOST: u32 = 1 << 20;

/// One of our ports, by index, and where from there.
type Way = (usize, SocketAddr);

/// The favourite, and who may become it.
#[derive(Debug)]
pub(crate) struct Favourite {
    current: Option<Way>,
    /// A stream has come that way since; once only lone datagrams leave that way again, it is settled on anew.
    is_wide: bool,
    candidate: Option<Way>,
    run_count: u32,
    settled_after: u32,
}

impl Default for Favourite {
    fn default() -> Self {
        Self {
            current: None,
            is_wide: false,
            candidate: None,
            run_count: 0,
            settled_after: SETTLED_AFTER,
        }
    }
}

impl Favourite {
    /// Whether this way has the socket of its own. Fast path.
    #[inline]
    pub(crate) fn is(&self, index: usize, to: SocketAddr) -> bool {
        self.current == Some((index, to))
    }

    /// Counts a lone datagram; true when its way should become the favourite. Fast path.
    #[inline]
    pub(crate) fn is_settled_by(&mut self, index: usize, to: SocketAddr) -> bool {
        if self.is(index, to) && !self.is_wide {
            self.run_count = 0;
            return false;
        }
        if self.candidate != Some((index, to)) {
            self.candidate = Some((index, to));
            self.run_count = 0;
        }
        self.run_count += 1;
        let settled = self.run_count >= self.settled_after;
        if settled {
            self.run_count = 0;
            self.settled_after = (2 * self.settled_after).min(SETTLED_AFTER_MOST);
        }
        settled
    }

    /// It has a socket.
    pub(crate) fn settle(&mut self, index: usize, to: SocketAddr) {
        self.current = Some((index, to));
        self.is_wide = false;
    }

    /// Its socket has become like the others.
    pub(crate) fn widen(&mut self) {
        self.is_wide = true;
    }

    /// The socket is gone.
    pub(crate) fn leave(&mut self) {
        self.current = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], port))
    }

    #[test]
    fn a_way_that_is_taken_often_in_a_row_becomes_the_favourite_and_others_do_not_end_it() {
        let mut favourite = Favourite::default();
        let settled = |favourite: &mut Favourite, port, count| {
            (0..count)
                .filter(|_| favourite.is_settled_by(3, to(port)))
                .count()
        };
        assert_eq!(settled(&mut favourite, 7, SETTLED_AFTER - 1), 0);
        assert_eq!(settled(&mut favourite, 8, 1), 0, "the row is broken");
        assert_eq!(settled(&mut favourite, 7, SETTLED_AFTER), 1);
        favourite.settle(3, to(7));
        assert!(favourite.is(3, to(7)) && !favourite.is(2, to(7)) && !favourite.is(3, to(8)));
        assert_eq!(settled(&mut favourite, 8, 2 * SETTLED_AFTER - 1), 0);
        assert_eq!(settled(&mut favourite, 7, 1), 0, "used again");
        assert_eq!(settled(&mut favourite, 8, 2 * SETTLED_AFTER - 1), 0);
        assert!(favourite.is(3, to(7)));
        assert_eq!(settled(&mut favourite, 8, 1), 1);
    }

    #[test]
    fn a_way_that_carried_a_stream_is_settled_on_anew_when_only_lone_datagrams_take_it() {
        let mut favourite = Favourite::default();
        favourite.settle(3, to(7));
        favourite.widen();
        let settled = |favourite: &mut Favourite, count| {
            (0..count)
                .filter(|_| favourite.is_settled_by(3, to(7)))
                .count()
        };
        assert_eq!(settled(&mut favourite, SETTLED_AFTER - 1), 0);
        assert!(favourite.is(3, to(7)), "it is used meanwhile");
        assert_eq!(settled(&mut favourite, 1), 1);
        favourite.settle(3, to(7));
        assert_eq!(settled(&mut favourite, 4 * SETTLED_AFTER), 0);
    }

    #[test]
    fn ways_that_do_not_last_are_settled_on_ever_more_rarely() {
        let mut favourite = Favourite::default();
        let tries = (0..31 * SETTLED_AFTER).filter(|_| favourite.is_settled_by(0, to(1)));
        assert_eq!(tries.count(), 5);
    }
}
