// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Datagrams that the machine has given out and the ports have not taken yet. Called by transport.
//!
//! Nothing is asked of the machine while some are left, so a full socket slows the sender where it
//! stands.

use weft_srd::{Instant, Machine, Transmit};

use crate::ports::Ports;
use crate::sends::Sends;

/// Datagrams taken from the machine at a time. Chosen: more than a batch of the smallest path has.
const OUTBOX_LIMIT: usize = 48;

/// After so many bytes what has arrived is read before more leaves. Chosen: a batch. With all of a
/// window in a row, its acknowledgements wait until its end, and its memory is in no cache any
/// more.
const FLUSH_BYTES: usize = 48 << 10;

/// The outbox.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// Places that the machine writes to, again and again.
    places: Vec<Transmit>,
    /// So many at the front wait.
    waiting_count: usize,
    /// So many of them have left.
    left_count: usize,
    /// The place behind them has one that was taken from the machine, but not for the same path.
    has_next: bool,
    /// The last `flush` ended before the machine had no more to send.
    pub(crate) has_more: bool,
    /// Times that a socket was full.
    pub(crate) blocked_count: u64,
}

impl Outbox {
    /// Whether datagrams wait for room.
    pub(crate) fn is_blocked(&self) -> bool {
        self.left_count < self.waiting_count
    }

    /// Whether datagrams that were given out have not left.
    pub(crate) fn is_held_up(&self) -> bool {
        self.has_more || self.is_blocked()
    }

    /// Takes what leaves on one path. Nothing beyond the end of a batch is taken in advance: the
    /// machine notes when each datagram leaves, and a call that sends takes its time. Answers
    /// whether more may leave behind it.
    #[inline]
    fn refill(&mut self, machine: &mut Machine, now_ns: Instant) -> bool {
        if std::mem::take(&mut self.has_next) {
            self.places.swap(0, self.waiting_count);
            self.waiting_count = 1;
        } else {
            self.waiting_count = 0;
        }
        self.left_count = 0;
        while self.waiting_count < OUTBOX_LIMIT {
            if machine.is_at_rest(now_ns) {
                return false;
            }
            if self.places.len() == self.waiting_count {
                self.places.push(Transmit::blank());
            }
            let (waiting, free) = self.places.split_at_mut(self.waiting_count);
            let place = &mut free[0];
            if !machine.poll_transmit_to(now_ns, place) {
                return true;
            }
            let joins = |first: &Transmit| first.path == place.path && first.to == place.to;
            if !waiting.first().is_none_or(joins) {
                self.has_next = true;
                return true;
            }
            self.waiting_count += 1;
            if machine.inspect().batch_has_ended() {
                return true;
            }
        }
        true
    }

    /// Sends what may leave now, a batch at most; answers how many datagrams did. Fast path.
    #[inline]
    pub(crate) fn flush<P: Ports>(
        &mut self,
        ports: &mut P,
        machine: &mut Machine,
        sends: &Sends,
        mut now_ns: Instant,
    ) -> usize {
        let mut sent_count = 0;
        let mut sent_bytes = 0;
        let mut may_follow = true;
        self.has_more = false;
        loop {
            if !self.is_blocked() {
                may_follow = self.refill(machine, now_ns);
                if self.waiting_count == 0 {
                    return sent_count;
                }
            }
            let waiting = &self.places[self.left_count..self.waiting_count];
            let departed = ports.send(waiting, sends);
            let left = &waiting[..departed.count];
            sent_bytes += left.iter().map(Transmit::length_bytes).sum::<usize>();
            self.left_count += departed.count;
            sent_count += departed.count;
            if departed.blocked {
                self.blocked_count += 1;
                return sent_count;
            }
            let left_ns = ports.now_ns();
            machine.handle_sent(now_ns, left_ns);
            now_ns = left_ns;
            // A message that leaves alone: to ask the machine again costs as much as to write it.
            if !may_follow && !self.is_blocked() {
                return sent_count;
            }
            if sent_bytes >= FLUSH_BYTES {
                self.has_more = true;
                return sent_count;
            }
        }
    }
}
