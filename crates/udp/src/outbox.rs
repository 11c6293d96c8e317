// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Datagrams that the machine has given out and the ports have not taken yet. Called by transport.
//!
//! Nothing is asked of the machine while some are left, so a full socket slows the sender where it stands.

use weft_srd::{Machine, Transmit};

use crate::ports::Ports;
use crate::sends::Sends;

/// Datagrams taken from the machine at a time. Chosen: more than a batch of the smallest path has.
const OUTBOX_LIMIT: usize = 48;

/// After so many bytes what has arrived is read before more leaves. Chosen: a batch. With all of a window in a row, its
/// acknowledgements wait until its end, and its memory is in no cache any more.
const FLUSH_BYTES: usize = 48 << 10;

/// The outbox.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    waiting: Vec<Transmit>,
    /// So many of them have left.
    left_count: usize,
    /// Taken from the machine, but not for the same path as those waiting.
    next: Option<Transmit>,
    /// The last `flush` ended before the machine had no more to send.
    pub(crate) has_more: bool,
    /// Times that a socket was full.
    pub(crate) blocked_count: u64,
}

impl Outbox {
    /// Whether datagrams wait for room.
    pub(crate) fn is_blocked(&self) -> bool {
        self.left_count < self.waiting.len()
    }

    /// Takes what leaves on one path. Nothing beyond the end of a batch is taken in advance: the machine notes when each
    /// datagram leaves, and a call that sends takes its time.
    #[inline]
    fn refill(&mut self, machine: &mut Machine, now_ns: u64) {
        self.waiting.clear();
        self.left_count = 0;
        self.waiting.extend(self.next.take());
        while self.waiting.len() < OUTBOX_LIMIT {
            let Some(transmit) = machine.poll_transmit(now_ns) else {
                return;
            };
            let joins = |first: &Transmit| first.path == transmit.path && first.to == transmit.to;
            if self.waiting.first().is_none_or(joins) {
                self.waiting.push(transmit);
                if machine.batch_has_ended() {
                    return;
                }
            } else {
                self.next = Some(transmit);
                return;
            }
        }
    }

    /// Sends what may leave now, a batch at most; answers how many datagrams did. Fast path.
    #[inline]
    pub(crate) fn flush<P: Ports>(
        &mut self,
        ports: &mut P,
        machine: &mut Machine,
        sends: &Sends,
        mut now_ns: u64,
    ) -> usize {
        let mut sent_count = 0;
        let mut sent_bytes = 0;
        self.has_more = false;
        loop {
            if !self.is_blocked() {
                self.refill(machine, now_ns);
                if self.waiting.is_empty() {
                    return sent_count;
                }
            }
            let departed = ports.send(&self.waiting[self.left_count..], sends);
            let left = &self.waiting[self.left_count..][..departed.count];
            sent_bytes += left.iter().map(Transmit::length_bytes).sum::<usize>();
            self.left_count += departed.count;
            sent_count += departed.count;
            if departed.blocked {
                self.blocked_count += 1;
                return sent_count;
            }
            let left_ns = ports.now_ns();
            machine.handle_departed(now_ns, left_ns);
            now_ns = left_ns;
            if sent_bytes >= FLUSH_BYTES {
                self.has_more = true;
                return sent_count;
            }
        }
    }
}
