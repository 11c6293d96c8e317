// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Looking into the sockets: which one, with which call, and how long what is found has waited there. Called by sockets.rs in
//! each call of progress; asks attention.rs and lone.rs.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

use weft_os::clock;
use weft_os::datagrams::ReceiveBatch;
use weft_os::sleep::READABLE_LIMIT;
use weft_os::udp_socket::{Complaint, UdpSocket};
use weft_srd::{Origin, PORT_COUNT};

use crate::attention::{Look, STREAM_COUNT};
use crate::ports::Incoming;
use crate::sockets::SocketPorts;

/// Rounds over all sockets before timers are asked. Chosen: more than a socket's buffer holds in datagrams of 9000 bytes.
const REST_ROUNDS: usize = 8;
/// A wait that is longer may be none: CLOCK_REALTIME may have been set meanwhile. Chosen.
const WAITED_LONG_NS: u64 = 1_000_000_000;

/// How long datagrams have waited in sockets. Stamps are times of CLOCK_REALTIME, which somebody
/// may set and which goes on while a machine is suspended: long waits count only if it has kept its
/// distance from CLOCK_MONOTONIC.
#[derive(Debug)]
pub(super) struct Waits {
    /// Of CLOCK_REALTIME from CLOCK_MONOTONIC, and since when it is known.
    distance_ns: u64,
    since_ns: u64,
}

impl Waits {
    /// For sockets that are opened now.
    pub(super) fn new() -> Self {
        let since_ns = clock::monotonic_ns();
        Self {
            distance_ns: clock::realtime_ns().wrapping_sub(since_ns),
            since_ns,
        }
    }

    /// Of a datagram that is read at one time by both clocks and has this stamp; 0 if that is not
    /// known. Fast path.
    #[inline]
    fn of(&mut self, now_ns: u64, realtime_ns: u64, stamp_ns: u64) -> u64 {
        let waited_ns = realtime_ns.saturating_sub(stamp_ns);
        if stamp_ns == 0 {
            0
        } else if waited_ns < WAITED_LONG_NS {
            waited_ns
        } else {
            self.of_long(now_ns, realtime_ns, waited_ns)
        }
    }

    /// One process that computed, or was stopped, for a while.
    #[cold]
    fn of_long(&mut self, now_ns: u64, realtime_ns: u64, waited_ns: u64) -> u64 {
        let distance_ns = realtime_ns.wrapping_sub(now_ns);
        let moved_ns = distance_ns.wrapping_sub(self.distance_ns) as i64;
        if moved_ns.unsigned_abs() >= WAITED_LONG_NS {
            (self.distance_ns, self.since_ns) = (distance_ns, now_ns);
            return 0;
        }
        // It came before the clock was seen as it is now.
        let came_before = now_ns.saturating_sub(waited_ns) < self.since_ns;
        if came_before { 0 } else { waited_ns }
    }
}

impl SocketPorts {
    /// Looks where something is expected. Fast path.
    #[inline]
    pub(super) fn look(&mut self, visit: &mut impl FnMut(u64, Incoming<'_>)) -> usize {
        for _ in 0..self.lone.looks() {
            let index = match self.attention.next() {
                Look::At(index) if index < self.sockets.len() => index,
                _ => match self.receive_from_all(visit) {
                    // Of several looks this is one.
                    0 => continue,
                    count => return count,
                },
            };
            self.leaves = true;
            let count = if index == PORT_COUNT && self.lone.is_plain() {
                self.receive_lone(visit)
            } else {
                self.receive_from(index, ReceiveBatch::receive_one, visit)
            };
            self.attention.after_one(count);
            if count > 0 {
                return count;
            }
        }
        0
    }

    /// What [`Self::look`] may have left.
    pub(super) fn look_for_rest(&mut self, visit: &mut impl FnMut(u64, Incoming<'_>)) -> usize {
        let mut total = 0;
        for _ in 0..REST_ROUNDS {
            if !std::mem::take(&mut self.leaves) {
                break;
            }
            total += self.receive_from_all(visit);
        }
        total
    }

    /// Receives from every socket in which something waits.
    fn receive_from_all(&mut self, visit: &mut impl FnMut(u64, Incoming<'_>)) -> usize {
        let mut total = 0;
        if self.lone.is_plain() {
            total = self.receive_lone(visit);
            self.attention.found(PORT_COUNT, total);
            // There may be another one behind it.
            self.leaves |= total > 0;
        }
        let mut found = [0; READABLE_LIMIT];
        self.calls.1 += 1;
        let ready = self.wait_set.readable(&mut found);
        for descriptor in &found[..ready] {
            let named = |socket: &UdpSocket| socket.as_fd().as_raw_fd() == *descriptor;
            let index = self.sockets.iter().position(named);
            if let Some(index) = index.filter(|index| *index < PORT_COUNT || !self.lone.is_plain())
            {
                let count = self.receive_from(index, ReceiveBatch::receive, visit);
                self.attention.found(index, count);
                total += count;
            }
        }
        total
    }

    /// Receives from the favourite while it is for lone datagrams.
    fn receive_lone(&mut self, visit: &mut impl FnMut(u64, Incoming<'_>)) -> usize {
        if !self.lone.ends_row() {
            return self.receive_alone(visit);
        }
        let count = self.receive_from(PORT_COUNT, ReceiveBatch::receive, visit);
        if count > STREAM_COUNT {
            self.widen();
        }
        count
    }

    /// The same with the cheapest call. Who sent what it finds is known.
    #[inline]
    fn receive_alone(&mut self, visit: &mut impl FnMut(u64, Incoming<'_>)) -> usize {
        self.calls.1 += 1;
        let socket = &self.sockets[PORT_COUNT];
        let datagram = match self.batch.receive_lone(socket) {
            Ok(Some(datagram)) => datagram,
            Ok(None) => {
                self.lone.on_empty();
                return 0;
            }
            Err(_) => {
                collect_complaints(socket, &mut self.complaints);
                // What waits behind the complaint was not read.
                self.leaves = true;
                return 0;
            }
        };
        let now_ns = clock::monotonic_ns();
        let Some(from) = socket.peer().filter(|_| !datagram.is_empty()) else {
            return 0;
        };
        let mut origin = Origin { from, waited_ns: 0 };
        if self.lone.on_found(now_ns) && self.stamps {
            let arrived_ns = socket.last_arrival_realtime_ns().unwrap_or(0);
            let realtime_ns = clock::realtime_ns();
            origin.waited_ns = self.waits.of(now_ns, realtime_ns, arrived_ns);
        }
        let admitted = self.gate.admit(from, datagram, self.trouble.report);
        let Some(datagram) = admitted else { return 0 };
        visit(now_ns, Incoming::Datagram(origin, datagram));
        1
    }

    /// Reads the favourite out and makes it anew. What arrives between the two is lost, and sent again.
    #[cold]
    pub(super) fn renew(&mut self, visit: &mut impl FnMut(u64, Incoming<'_>)) -> usize {
        let mut total = 0;
        let Some((index, to)) = self.renews.take() else {
            return 0;
        };
        for _ in 0..REST_ROUNDS {
            match self.receive_from(PORT_COUNT, ReceiveBatch::receive, visit) {
                0 => break,
                count => total += count,
            }
        }
        // A stream still comes this way where there was more.
        if total <= STREAM_COUNT {
            self.settle(index, to);
        }
        total
    }

    /// Receives what one call finds in a socket.
    fn receive_from(
        &mut self,
        index: usize,
        receive: impl Fn(&mut ReceiveBatch, &UdpSocket) -> io::Result<usize>,
        visit: &mut impl FnMut(u64, Incoming<'_>),
    ) -> usize {
        self.calls.1 += 1;
        let socket = &self.sockets[index];
        let is_lone = index == PORT_COUNT && self.lone.is_plain();
        let Ok(count) = receive(&mut self.batch, socket) else {
            collect_complaints(socket, &mut self.complaints);
            self.leaves = true;
            return 0;
        };
        if count == 0 {
            if is_lone {
                self.lone.on_empty();
            }
            return 0;
        }
        let now_ns = clock::monotonic_ns();
        // Of lone ones the last one's time is that of all.
        let asks = is_lone && self.lone.on_found(now_ns);
        let lone_ns = asks.then(|| socket.last_arrival_realtime_ns()).flatten();
        let realtime_ns = if self.stamps && (asks || !is_lone) {
            clock::realtime_ns()
        } else {
            0
        };
        let mut total = 0;
        for received in (0..count).filter_map(|place| self.batch.get(place)) {
            let arrived_ns = lone_ns.unwrap_or(received.arrived_realtime_ns);
            let origin = Origin {
                from: received.from,
                waited_ns: self.waits.of(now_ns, realtime_ns, arrived_ns),
            };
            for datagram in received.bytes.chunks(received.segment_bytes) {
                let admitted = self.gate.admit(origin.from, datagram, self.trouble.report);
                if let Some(datagram) = admitted {
                    total += 1;
                    visit(now_ns, Incoming::Datagram(origin, datagram));
                }
            }
        }
        self.leaves |= self.batch.is_full();
        total
    }
}

/// Takes the answers to datagrams sent earlier out of a socket's error queue.
#[cold]
pub(super) fn collect_complaints(socket: &UdpSocket, complaints: &mut VecDeque<Incoming<'static>>) {
    while let Some(complaint) = socket.complaint() {
        match complaint {
            Complaint::Refused(to) => complaints.push_back(Incoming::Refused(to)),
            Complaint::TooLong(to) => complaints.push_back(Incoming::TooLong(to)),
            Complaint::Unreachable(_) | Complaint::Other => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn waits() -> Waits {
        Waits {
            distance_ns: 1_000 * SECOND,
            since_ns: SECOND,
        }
    }

    #[test]
    fn waits_of_seconds_are_known_as_long_as_nobody_sets_the_clock() {
        let mut waits = waits();
        assert_eq!(waits.of(9 * SECOND, 1_009 * SECOND, 0), 0, "no stamp");
        for seconds in [0, 1, 7] {
            let stamp_ns = (1_009 - seconds) * SECOND;
            let waited_ns = waits.of(9 * SECOND, 1_009 * SECOND, stamp_ns);
            assert_eq!(waited_ns, seconds * SECOND);
        }
    }

    /// Set forwards by an hour, or the machine was suspended for so long.
    #[test]
    fn what_came_before_the_clock_jumped_has_no_known_wait_and_what_comes_later_has() {
        let mut waits = waits();
        let jump_ns = 3_600 * SECOND;
        let (now_ns, stamp_ns) = (20 * SECOND, 1_018 * SECOND);
        for _ in 0..2 {
            assert_eq!(waits.of(now_ns, 1_020 * SECOND + jump_ns, stamp_ns), 0);
        }
        let stamp_ns = 1_021 * SECOND + jump_ns;
        let waited_ns = waits.of(26 * SECOND, 1_026 * SECOND + jump_ns, stamp_ns);
        assert_eq!(waited_ns, 5 * SECOND);
        // Back again.
        assert_eq!(waits.of(30 * SECOND, 1_030 * SECOND, stamp_ns), 0);
        let waited_ns = waits.of(40 * SECOND, 1_040 * SECOND, 1_033 * SECOND);
        assert_eq!(waited_ns, 0, "known no sooner than a long wait shows it");
        let waited_ns = waits.of(50 * SECOND, 1_050 * SECOND, 1_043 * SECOND);
        assert_eq!(waited_ns, 7 * SECOND);
    }
}
