// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Datagrams that the machine has given out and the ports have not taken yet. Called by transport.
//!
//! While some are left, the outbox takes no more from the machine. So a full socket slows the
//! machine down.

use weft_srd::{Instant, Machine, Transmit};

use crate::ports::Ports;
use crate::sends::Sends;

/// Datagrams taken from the machine at a time. Chosen: more than a batch of the smallest path has.
const OUTBOX_LIMIT: usize = 48;

/// After this many bytes the sockets are read before more datagrams leave. Chosen: a batch. If a
/// whole window left in one go, its acknowledgements would wait for its end, and its memory would
/// have left the caches by then.
const FLUSH_BYTES: usize = 48 << 10;
/// The same within one message. Chosen: the longest message that is sent unasked. A look into the
/// sockets after each batch takes half as long as the batch, and the receiver waits for it
/// (docs/lab/2026-11-28-long-messages-and-looks-between-batches.md).
const MESSAGE_FLUSH_BYTES: usize = 256 << 10;

/// Datagrams on their way from the machine to the ports.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// Places for datagrams, which the machine writes to, again and again.
    places: Vec<Transmit>,
    /// How many places at the front hold datagrams of the present batch.
    waiting_count: usize,
    /// How many of these have left.
    left_count: usize,
    /// Whether the place after the batch holds a datagram that the machine gave out for another
    /// path.
    has_next: bool,
    /// The last `flush` ended before the machine had said that it has no more to send.
    pub(crate) has_more: bool,
    /// Times that a socket was full.
    pub(crate) blocked_count: u64,
}

/// Whether more of a message follows after these datagrams.
fn is_within_message(batch: &[Transmit], sends: &Sends) -> bool {
    let part = batch.last().and_then(|last| last.payload);
    part.is_some_and(|part| {
        let end_bytes = part.offset_bytes as usize + part.length_bytes as usize;
        end_bytes < sends.length_bytes(part.token)
    })
}

impl Outbox {
    /// Whether datagrams wait for room.
    pub(crate) fn is_blocked(&self) -> bool {
        self.left_count < self.waiting_count
    }

    /// Whether datagrams wait for room, or the machine may have more to send.
    pub(crate) fn is_held_up(&self) -> bool {
        self.has_more || self.is_blocked()
    }

    /// Takes datagrams for one path from the machine, up to the end of a batch at most: the machine
    /// notes the time at which it gives each one out, and the system call that sends a batch takes
    /// long. Returns whether more may leave after these.
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

    /// Sends datagrams that may leave now, about one batch at most; returns how many left. Fast
    /// path.
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
            // For a message that leaves alone, asking the machine again would cost as much as
            // writing the message.
            if !may_follow && !self.is_blocked() {
                return sent_count;
            }
            let most_bytes = match is_within_message(waiting, sends) {
                true => MESSAGE_FLUSH_BYTES,
                false => FLUSH_BYTES,
            };
            if sent_bytes >= most_bytes {
                self.has_more = true;
                return sent_count;
            }
        }
    }
}
