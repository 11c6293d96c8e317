// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which path has the connected socket (connect(2)), beside the eight that have none. Asked by
//! sockets/port_sockets.rs for every datagram that leaves on its own.
//!
//! A connected socket keeps its route in both directions. While messages come and go one by one
//! they keep to one path (srd-protocol 10.1), and it is their latency that the route's look-up adds
//! to: so there is one such socket, for the path that single datagrams have taken lately. The
//! number of sockets stays fixed whatever the number of remotes.

use std::net::SocketAddr;

/// Single datagrams on the same path, in a row, after which it is connected; twice as many for each
/// that was before it. Chosen: the change costs some ten system calls, which a path that does not
/// last cannot earn back.
const SETTLED_AFTER: u32 = 64;
/// The most that it doubles to.
const SETTLED_AFTER_MOST: u32 = 1 << 20;

/// One of our ports, by index, and where from there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Pair {
    port_index: usize,
    to: SocketAddr,
}

fn pair(port_index: usize, to: SocketAddr) -> Pair {
    Pair { port_index, to }
}

/// The path that is connected, and the one that may be next.
#[derive(Debug)]
pub(crate) struct ConnectedPath {
    current: Option<Pair>,
    candidate: Option<Pair>,
    run_count: u32,
    settled_after: u32,
}

impl Default for ConnectedPath {
    fn default() -> Self {
        Self {
            current: None,
            candidate: None,
            run_count: 0,
            settled_after: SETTLED_AFTER,
        }
    }
}

impl ConnectedPath {
    /// Whether this path has the connected socket. Fast path.
    #[inline]
    pub(crate) fn is(&self, index: usize, to: SocketAddr) -> bool {
        self.current == Some(pair(index, to))
    }

    /// Counts a single datagram; true when its path should be connected. Fast path.
    #[inline]
    pub(crate) fn is_settled_by(&mut self, index: usize, to: SocketAddr) -> bool {
        if self.is(index, to) {
            self.run_count = 0;
            return false;
        }
        if self.candidate != Some(pair(index, to)) {
            self.candidate = Some(pair(index, to));
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
        self.current = Some(pair(index, to));
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
    fn a_path_that_is_taken_often_in_a_row_is_connected_and_others_do_not_end_it() {
        let mut connected = ConnectedPath::default();
        let settled = |connected: &mut ConnectedPath, port, count| {
            (0..count)
                .filter(|_| connected.is_settled_by(3, to(port)))
                .count()
        };
        assert_eq!(settled(&mut connected, 7, SETTLED_AFTER - 1), 0);
        assert_eq!(settled(&mut connected, 8, 1), 0, "the row is broken");
        assert_eq!(settled(&mut connected, 7, SETTLED_AFTER), 1);
        connected.settle(3, to(7));
        assert!(connected.is(3, to(7)) && !connected.is(2, to(7)) && !connected.is(3, to(8)));
        assert_eq!(settled(&mut connected, 8, 2 * SETTLED_AFTER - 1), 0);
        assert_eq!(settled(&mut connected, 7, 1), 0, "used again");
        assert_eq!(settled(&mut connected, 8, 2 * SETTLED_AFTER - 1), 0);
        assert!(connected.is(3, to(7)));
        assert_eq!(settled(&mut connected, 8, 1), 1);
    }

    #[test]
    fn paths_that_do_not_last_are_settled_on_ever_more_rarely() {
        let mut connected = ConnectedPath::default();
        let tries = (0..31 * SETTLED_AFTER).filter(|_| connected.is_settled_by(0, to(1)));
        assert_eq!(tries.count(), 5);
    }
}
