// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sending: one protocol by size, one lane, in order. Called through `Peer::post_send`; calls
//! ring's producer.

use std::ops::Range;

use weft_contract::{CompletionLevel, Owner, PostError, Posted, RemoteId, SendOp, TransferError};
use weft_memory::UserBuffer;
use weft_os::{clock, crash_point};
use weft_ring::{Full, Pool};

use crate::manner::Manner;
use crate::protocol::cell::{Carrier, Eager, MatchHeader, inline_head};
use crate::protocol::{
    CELL_BYTES, EAGER_BYTES, EARLY_BYTES, FIRST_PIECE_BYTES, INLINE_BYTES, MAPPED_BYTES,
    MESSAGE_BYTES, PIECE_BYTES, STREAM_BYTES,
};
use crate::remote::{Attached, Link, Waiting};
use crate::rendezvous::Outgoing;
use crate::statistics::Protocol;
use crate::transport::Transport;

/// Sends to one remote that may wait for room before callers are told to come back. Chosen: the
/// window of the usual bandwidth tests, twice.
const WAITING_LIMIT: usize = 128;

/// Payload that counts as long.
const LONG_BYTES: usize = 2048;

/// Payload from here on counts too, by a sixteenth unless the lane has its pages. Measured: a
/// stream of such messages is faster in a wide lane by a seventh to a third, which pays for the
/// pages of one after about 8 MiB (docs/lab/2026-11-21-wide-lanes.md).
const MEDIUM_BYTES: usize = 256;

/// Payload that goes in a chunk if there is one. Measured: from here on two
/// processes that answer each other gain by it (docs/lab/2026-11-22-chunks.md).
const CHUNK_FROM_BYTES: usize = 1024;

/// Long payload after which a lane is made wide. Chosen: a quarter of the memory that this costs
/// the receiver, some tens of messages.
const WIDEN_AFTER_BYTES: u64 = 512 << 10;

/// Wide lanes of one sender. Measured: with more of them, or where ranks share cores, the lanes
/// together exceed the cache that they are meant for, and their pages cost more than they bring.
pub(crate) const WIDE_LANES: u32 = 2;

/// Longest piece at some place of a streamed message: the first ones are short, so that the
/// receiver begins soon.
#[inline(always)]
fn piece_limit(sent_bytes: usize) -> usize {
    match sent_bytes {
        0 => FIRST_PIECE_BYTES,
        sent => sent.next_power_of_two().min(PIECE_BYTES),
    }
}

impl Attached {
    /// Publishes a cell with these bytes of a payload: in a chunk if there is one, else in the data
    /// area.
    #[inline(always)]
    pub(crate) fn push(
        &mut self,
        back: Option<&mut Pool>,
        carrier: Carrier,
        payload: &UserBuffer,
        bytes: Range<usize>,
    ) -> Result<(), Full> {
        let (head, words) = carrier.encode();
        if bytes.len() >= CHUNK_FROM_BYTES
            && let Some(chunk) = Pool::pick(&mut self.pool, back)
        {
            return self.producer.push_chunk(head, words, chunk, payload, bytes);
        }
        self.producer.push_data(head, words, payload, bytes)
    }
}

impl Transport {
    /// Starts a send. Fast path for messages up to [`EAGER_BYTES`].
    #[inline(always)]
    pub(crate) fn send(&mut self, op: &SendOp, payload: &UserBuffer) -> Result<Posted, PostError> {
        let entry = &mut self.remotes[op.remote.index()];
        let length_bytes = payload.length_bytes();
        if let Link::Ready(attached) = &mut entry.link
            && length_bytes <= CELL_BYTES
            && op.level != CompletionLevel::Delivery
            && entry.waiting.is_empty()
            && attached.producer.knows_of_room()
        {
            let head = inline_head(op.class, op.cq_data.is_some(), length_bytes);
            if attached
                .producer
                .push_inline(head, op.tag, op.cq_data.unwrap_or(0), payload)
                .is_err()
            {
                return Err(PostError::Busy);
            }
            if !attached.producer.is_polled() {
                self.ring(op.remote);
            }
            self.statistics.count(Protocol::Inline, length_bytes as u64);
            return Ok(Posted::Complete);
        }
        // A copy, so that the operation need not be in memory above.
        let op = *op;
        if length_bytes <= INLINE_BYTES {
            return self.send_run(&op, payload);
        }
        self.send_longer(&op, payload)
    }

    /// A message that takes several cells, or one of which it is not known whether it is free, if
    /// it is of the kind that most are; else as all others.
    #[inline(never)]
    fn send_run(&mut self, op: &SendOp, payload: &UserBuffer) -> Result<Posted, PostError> {
        let entry = &mut self.remotes[op.remote.index()];
        let Link::Ready(attached) = &mut entry.link else {
            return self.send_longer(op, payload);
        };
        if op.level == CompletionLevel::Delivery || !entry.waiting.is_empty() {
            return self.send_longer(op, payload);
        }
        let length_bytes = payload.length_bytes();
        let head = inline_head(op.class, op.cq_data.is_some(), length_bytes);
        let data = op.cq_data.unwrap_or(0);
        let producer = &mut attached.producer;
        let pushed = if length_bytes <= CELL_BYTES {
            producer.push_inline(head, op.tag, data, payload)
        } else {
            producer.push_run(head, op.tag, data, payload)
        };
        if pushed.is_err() {
            // One cell may be free, and room in the data area.
            return self.send_longer(op, payload);
        }
        if !attached.producer.is_polled() {
            self.ring(op.remote);
        }
        self.statistics.count(Protocol::Inline, length_bytes as u64);
        Ok(Posted::Complete)
    }

    #[inline(never)]
    fn send_longer(&mut self, op: &SendOp, payload: &UserBuffer) -> Result<Posted, PostError> {
        let length_bytes = payload.length_bytes();
        if length_bytes as u64 > MESSAGE_BYTES {
            return Err(PostError::Failed(TransferError::TooLong));
        }
        self.contact(op.remote);
        let entry = &self.remotes[op.remote.index()];
        match &entry.link {
            Link::Ready(_) => {}
            Link::Failed(why) => return Err(PostError::Failed(*why)),
            Link::Elsewhere { is_told: true } => {
                return Err(PostError::Failed(TransferError::NoMemory));
            }
            // Whoever is told sends it another way.
            Link::Unknown | Link::Asking(..) | Link::Elsewhere { is_told: false } => {
                self.housekeeping.hurry();
                return Err(PostError::Busy);
            }
        }
        if !entry.waiting.is_empty() {
            // A short one is complete as soon as its owner has copied it.
            if length_bytes <= EAGER_BYTES || entry.waiting.len() >= WAITING_LIMIT {
                return Err(PostError::Busy);
            }
            let waiting = self.begin_send(op, payload);
            self.remotes[op.remote.index()].waiting.push_back(waiting);
            return Ok(Posted::Pending);
        }
        if length_bytes <= EAGER_BYTES {
            self.send_eager(op, payload)
        } else {
            self.send_in_parts(op, payload)
        }
    }

    /// One cell and its data. Also for short messages that ask for a receipt, whose id needs a
    /// word.
    fn send_eager(&mut self, op: &SendOp, payload: &UserBuffer) -> Result<Posted, PostError> {
        let receipt = (op.level == CompletionLevel::Delivery).then(|| {
            self.transfers
                .outgoing
                .insert(Outgoing::receipt(op.remote, op.token))
        });
        let length_bytes = payload.length_bytes();
        let carrier = Carrier::Eager(Eager {
            header: MatchHeader::of(op),
            length_bytes: length_bytes as u32,
            receipt: receipt.map(|id| id as u64),
        });
        let entry = &mut self.remotes[op.remote.index()];
        let inbound = entry.inbound.and_then(|slot| self.inbound[slot].as_mut());
        let back = inbound.map(|lane| &mut lane.pool);
        let Link::Ready(attached) = &mut entry.link else {
            return Err(PostError::Busy);
        };
        if attached
            .push(back, carrier, payload, 0..length_bytes)
            .is_err()
        {
            if let Some(id) = receipt {
                self.transfers.outgoing.remove(id);
            }
            return Err(PostError::Busy);
        }
        self.ring(op.remote);
        self.note_long(op.remote, length_bytes);
        self.statistics.count(Protocol::Eager, length_bytes as u64);
        Ok(if receipt.is_some() {
            Posted::Pending
        } else {
            Posted::Complete
        })
    }

    /// Counts long payload towards a wide lane. The first remotes to get much of it have theirs
    /// widened.
    #[inline]
    pub(crate) fn note_long(&mut self, remote: RemoteId, length_bytes: usize) {
        if length_bytes < MEDIUM_BYTES {
            return;
        }
        let Link::Ready(attached) = &mut self.remotes[remote.index()].link else {
            return;
        };
        let weight_bytes = if length_bytes < LONG_BYTES && !attached.is_warm {
            length_bytes / 16
        } else {
            length_bytes
        };
        attached.long_bytes = attached.long_bytes.saturating_add(weight_bytes as u64);
        if attached.long_bytes > WIDEN_AFTER_BYTES
            && attached.long_bytes != u64::MAX
            && self.wide_lanes < WIDE_LANES
            && !self.housekeeping.shares_cores
        {
            attached.long_bytes = u64::MAX;
            attached.producer.widen();
            // At once, and not in each of the messages of the first lap.
            attached.warm();
            attached.pool.open();
            self.wide_lanes += 1;
        }
    }

    /// A send of which nothing has gone yet. To be made once for each.
    fn begin_send(&mut self, op: &SendOp, payload: &UserBuffer) -> Waiting {
        let is_shown = payload.length_bytes() >= MAPPED_BYTES && self.shows(op.remote, payload);
        Waiting {
            op: *op,
            payload: payload.clone(),
            sent_bytes: 0,
            outgoing: None,
            is_offered: self.is_offered(op, payload, is_shown),
            is_shown,
            is_streamed_on: false,
        }
    }

    /// Whether a message is offered, for its receiver to fetch: what is too long to be streamed,
    /// and what the receiver can copy out of our heap, if it is one of a row, or that has been
    /// found to be faster.
    fn is_offered(&mut self, op: &SendOp, payload: &UserBuffer, is_shown: bool) -> bool {
        let length_bytes = payload.length_bytes();
        if length_bytes > STREAM_BYTES {
            return true;
        }
        if !is_shown {
            return false;
        }
        if self.is_in_a_row(op.remote) {
            self.manners.disturb(length_bytes);
            return true;
        }
        // Where ranks share cores one copy is worth more, unless it is found otherwise.
        let shares_cores = self.housekeeping.shares_cores;
        let default = if shares_cores {
            Manner::Offered
        } else {
            Manner::Streamed
        };
        let clock = clock::monotonic_ns;
        self.manners
            .next(length_bytes, default, shares_cores, clock)
            == Manner::Offered
    }

    /// Whether a message that is too long to be streamed as a whole, and that might begin so,
    /// leaves faster in that manner than by an offer alone. To be asked once for each.
    pub(crate) fn is_faster_streamed(&mut self, waiting: &Waiting) -> bool {
        let (default, clock) = (Manner::Offered, clock::monotonic_ns);
        self.manners
            .next(waiting.payload.length_bytes(), default, false, clock)
            == Manner::Streamed
    }

    /// Messages longer than one stretch: streamed, or offered.
    fn send_in_parts(&mut self, op: &SendOp, payload: &UserBuffer) -> Result<Posted, PostError> {
        if op.inject {
            // Longer than the provider's inject size; it has refused such a call already.
            return Err(PostError::Failed(TransferError::TooLong));
        }
        let mut waiting = self.begin_send(op, payload);
        if self.advance(&mut waiting) {
            let complete = !waiting.is_offered && op.level != CompletionLevel::Delivery;
            return Ok(if complete {
                Posted::Complete
            } else {
                Posted::Pending
            });
        }
        self.remotes[op.remote.index()].waiting.push_back(waiting);
        self.note_sending(op.remote);
        Ok(Posted::Pending)
    }

    /// Pushes as much of a send as there is room for; true when all of it is in the lane.
    fn advance(&mut self, waiting: &mut Waiting) -> bool {
        let length_bytes = waiting.payload.length_bytes();
        if waiting.is_offered {
            return self.announce(waiting);
        }
        if waiting.op.level == CompletionLevel::Delivery && waiting.outgoing.is_none() {
            let receipt = Outgoing::receipt(waiting.op.remote, waiting.op.token);
            waiting.outgoing = Some(self.transfers.outgoing.insert(receipt));
        }
        let pushed = self.push_pieces(waiting);
        if pushed {
            self.ring(waiting.op.remote);
        }
        let done = pushed && waiting.sent_bytes == length_bytes;
        if done {
            self.note_long(waiting.op.remote, length_bytes);
            let protocol = if length_bytes <= EAGER_BYTES {
                Protocol::Eager
            } else {
                Protocol::Streamed
            };
            self.statistics.count(protocol, length_bytes as u64);
        }
        done
    }

    /// Pushes pieces until the lane is full or all has gone that may go unasked; true if anything
    /// went.
    pub(crate) fn push_pieces(&mut self, waiting: &mut Waiting) -> bool {
        let Some(first) = self.first_carrier(waiting) else {
            return false;
        };
        let length_bytes = match first {
            Carrier::EarlyRts(_, early_bytes) => early_bytes as usize,
            _ => waiting.payload.length_bytes(),
        };
        let entry = &mut self.remotes[waiting.op.remote.index()];
        let inbound = entry.inbound.and_then(|slot| self.inbound[slot].as_mut());
        let mut back = inbound.map(|lane| &mut lane.pool);
        let Link::Ready(attached) = &mut entry.link else {
            return false;
        };
        let mut pushed = false;
        loop {
            let start = waiting.sent_bytes;
            let end = length_bytes.min(start + piece_limit(start));
            let carrier = match start {
                0 => first,
                _ => Carrier::Piece((end - start) as u32),
            };
            if attached
                .push(back.as_deref_mut(), carrier, &waiting.payload, start..end)
                .is_err()
            {
                return pushed;
            }
            pushed = true;
            waiting.sent_bytes = end;
            crash_point!(24, "stream: a piece is sent");
            if end == length_bytes {
                return true;
            }
            // The receiver can begin with the first piece while we copy the next.
            if start == 0 && !attached.producer.is_polled() {
                let _ = attached.region.doorbell().ring(attached.slot);
            }
        }
    }

    /// The cell that a message begins with whose first bytes go unasked; None if it was not
    /// announced though it must be.
    fn first_carrier(&self, waiting: &Waiting) -> Option<Carrier> {
        let whole_bytes = waiting.payload.length_bytes();
        if whole_bytes > STREAM_BYTES {
            let rts = self.rts_of(waiting, waiting.outgoing?);
            return Some(Carrier::EarlyRts(rts, EARLY_BYTES as u32));
        }
        let is_receipt = waiting.op.level == CompletionLevel::Delivery;
        let receipt = waiting.outgoing.filter(|_| is_receipt);
        let eager = Eager {
            header: MatchHeader::of(&waiting.op),
            length_bytes: whole_bytes as u32,
            receipt: receipt.map(|id| id as u64),
        };
        Some(if whole_bytes <= piece_limit(0) {
            Carrier::Eager(eager)
        } else {
            Carrier::Stream(eager)
        })
    }

    /// Sends what waited, for every remote that has something; answers how many sends ended or
    /// moved.
    pub(crate) fn send_waiting<O: Owner>(&mut self, owner: &mut O) -> usize {
        let mut events = 0;
        let mut index = 0;
        while index < self.sending.len() {
            let remote = self.sending[index];
            events += self.send_waiting_to(remote, owner);
            if self.remotes[remote.index()].has_waiting() {
                index += 1;
            } else {
                self.sending.swap_remove(index);
            }
        }
        events
    }

    fn send_waiting_to<O: Owner>(&mut self, remote: RemoteId, owner: &mut O) -> usize {
        let mut events = 0;
        if self.remotes[remote.index()].flush_controls() {
            self.ring(remote);
            events += 1;
        }
        while let Some(mut waiting) = self.remotes[remote.index()].waiting.pop_front() {
            let before = waiting.sent_bytes;
            if !self.advance(&mut waiting) {
                events += usize::from(waiting.sent_bytes != before);
                self.remotes[remote.index()].waiting.push_front(waiting);
                return events;
            }
            events += 1;
            if !waiting.is_offered && waiting.op.level != CompletionLevel::Delivery {
                owner.on_sent(waiting.op.token, Ok(()));
            }
        }
        events
    }
}
