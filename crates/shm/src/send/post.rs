// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sending: the size of a message decides its protocol; all messages to one remote go through one
//! lane, in order. Called by the transport's `post_send`, and in each round of progress for sends
//! that wait; calls ring's producer.

use std::time::Instant;

use weft_contract::{CompletionLevel, Owner, PostError, Posted, RemoteId, SendOp};
use weft_memory::{Density, Offering, OwnHeap, UserBuffer};
use weft_os::crash_point;

use crate::contact::contacts::Contacts;
use crate::contact::outbound::{MEDIUM_BYTES, Outbound, WIDE_LANES};
use crate::contact::remote::{Remote, Waiting};
use crate::protocol::cell::{Carrier, Eager, MatchHeader, inline_head};
use crate::protocol::send_protocol::{Facts, Selection, SendProtocol, select};
use crate::protocol::{
    CELL_BYTES, EAGER_BYTES, EARLY_BYTES, FIRST_PIECE_BYTES, MAPPED_BYTES, PIECE_BYTES,
    STREAM_BYTES,
};
use crate::send::sends::Sends;
use crate::settings::{Settings, SingleCopy};
use crate::statistics::Protocol;
use crate::tuner::protocols::SendTuner;

/// Sends to one remote that may wait for room; further ones are refused with
/// [`PostError::Busy`]. Chosen: twice the window of the usual bandwidth tests.
const WAITING_LIMIT: usize = 128;

/// The longest next piece of a streamed message of which `sent_bytes` were sent: the first pieces
/// are short, so that the receiver begins soon.
#[inline(always)]
fn piece_limit(sent_bytes: usize) -> usize {
    match sent_bytes {
        0 => FIRST_PIECE_BYTES,
        sent => sent.next_power_of_two().min(PIECE_BYTES),
    }
}

/// State that decides by which protocol a message leaves.
#[derive(Debug)]
pub(crate) struct Sender {
    tuner: SendTuner,
    density: Density,
    /// Our memory that others may map.
    pub(super) heap: Option<OwnHeap>,
    pub(super) single_copy: SingleCopy,
    /// Lanes of ours that use their whole data area.
    wide_lanes: u32,
}

/// Sends a message that fits one cell, if no send waits before it and a cell is known to be free.
/// Returns whether the receiver's doorbell must be rung for it, and `None` if the message needs
/// another way ([`send_run`] or [`Sender::post`]). Fast path.
#[inline(always)]
pub(crate) fn send_inline(
    remote: &mut Remote,
    op: &SendOp,
    payload: &UserBuffer,
) -> Option<Result<bool, PostError>> {
    let length_bytes = payload.length_bytes();
    let is_idle = remote.waiting().is_empty();
    let attached = remote.attached_mut()?;
    if length_bytes > CELL_BYTES
        || op.level == CompletionLevel::Delivery
        || !is_idle
        || !attached.lane().producer().knows_of_room()
    {
        return None;
    }
    let head = inline_head(op.class, op.cq_data.is_some(), length_bytes);
    let data = op.cq_data.unwrap_or(0);
    let producer = attached.lane_mut().producer_mut();
    if producer.push_inline(head, op.tag, data, payload).is_err() {
        return Some(Err(PostError::Busy));
    }
    Some(Ok(!producer.is_polled()))
}

/// Sends a message that takes several cells, or one cell that may or may not be free. Returns false
/// if that cannot be done: we are not in contact with the remote, other sends wait before the
/// message, it wants a receipt, or the free cells cannot hold it.
#[inline(always)]
pub(crate) fn send_run(remote: &mut Remote, op: &SendOp, payload: &UserBuffer) -> bool {
    let is_idle = remote.waiting().is_empty();
    let Some(attached) = remote.attached_mut() else {
        return false;
    };
    if op.level == CompletionLevel::Delivery || !is_idle {
        return false;
    }
    let length_bytes = payload.length_bytes();
    let head = inline_head(op.class, op.cq_data.is_some(), length_bytes);
    let data = op.cq_data.unwrap_or(0);
    let producer = attached.lane_mut().producer_mut();
    // If this fails, there may still be one free cell, and room in the data area.
    if length_bytes <= CELL_BYTES {
        producer.push_inline(head, op.tag, data, payload)
    } else {
        producer.push_run(head, op.tag, data, payload)
    }
    .is_ok()
}

impl Sender {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            tuner: SendTuner::new(),
            density: Density::new(),
            heap: settings.heap.clone(),
            single_copy: settings.single_copy,
            wide_lanes: 0,
        }
    }

    /// Lanes of ours that use their whole data area.
    pub(crate) fn wide_lanes(&self) -> u32 {
        self.wide_lanes
    }

    /// A lane of ours is gone: if it was wide, another lane may become wide.
    pub(crate) fn forget_lane(&mut self, lane: &Outbound) {
        self.wide_lanes -= u32::from(lane.is_wide());
    }

    /// Sends a message that does not go inline to a remote with which we are in contact.
    pub(crate) fn post(
        &mut self,
        contacts: &mut Contacts,
        sends: &mut Sends,
        op: &SendOp,
        payload: &UserBuffer,
    ) -> Result<Posted, PostError> {
        let length_bytes = payload.length_bytes();
        let waiting = contacts.remote_mut(op.remote).waiting();
        if !waiting.is_empty() {
            // The endpoint queues these with a copy: a short send is complete then, and an inject
            // must be.
            let is_copied = length_bytes <= EAGER_BYTES || op.inject;
            if is_copied || waiting.len() >= WAITING_LIMIT {
                return Err(PostError::Busy);
            }
            let send = self.begin_send(contacts, op, payload);
            contacts.remote_mut(op.remote).waiting().push_back(send);
            return Ok(Posted::Pending);
        }
        let facts = Facts {
            length_bytes,
            wants_receipt: op.level == CompletionLevel::Delivery,
            ..Facts::default()
        };
        match select(&facts) {
            // A message that found no run of free cells may find one cell, and room in the data
            // area.
            Selection::Fixed(SendProtocol::Inline | SendProtocol::Eager) => {
                self.post_eager(contacts, sends, op, payload)
            }
            _ => self.post_long(contacts, sends, op, payload),
        }
    }

    /// Sends one cell, and the payload in the data area. Also for short messages that ask for a
    /// receipt: the receipt's id needs a word of the cell.
    fn post_eager(
        &mut self,
        contacts: &mut Contacts,
        sends: &mut Sends,
        op: &SendOp,
        payload: &UserBuffer,
    ) -> Result<Posted, PostError> {
        let is_receipt = op.level == CompletionLevel::Delivery;
        let receipt = is_receipt.then(|| sends.await_receipt(op));
        let length_bytes = payload.length_bytes();
        let carrier = Carrier::Eager(Eager {
            header: MatchHeader::of(op),
            length_bytes: length_bytes as u32,
            receipt: receipt.map(|id| id as u64),
        });
        let Some((attached, back)) = contacts.lane_to(op.remote) else {
            return Err(PostError::Busy);
        };
        if attached
            .lane_mut()
            .push(back, carrier, payload, 0..length_bytes)
            .is_err()
        {
            if let Some(id) = receipt {
                sends.end(id);
            }
            return Err(PostError::Busy);
        }
        contacts.ring(op.remote);
        self.note_long(contacts, op.remote, length_bytes);
        sends.count(Protocol::Eager, length_bytes);
        Ok(if is_receipt {
            Posted::Pending
        } else {
            Posted::Complete
        })
    }

    /// Counts long payload. The lanes of the first remotes to which we send much of it become wide.
    #[inline]
    pub(crate) fn note_long(
        &mut self,
        contacts: &mut Contacts,
        remote: RemoteId,
        length_bytes: usize,
    ) {
        if length_bytes < MEDIUM_BYTES {
            return;
        }
        let shares_cores = contacts.own.node().shares_cores;
        let Some(attached) = contacts.remote_mut(remote).attached_mut() else {
            return;
        };
        if attached.lane_mut().note_long(length_bytes)
            && self.wide_lanes < WIDE_LANES
            && !shares_cores
        {
            attached.lane_mut().widen();
            self.wide_lanes += 1;
        }
    }

    /// A send of which no byte was sent yet. Call this once for each message, since it counts the
    /// message in the heap and in the tuner.
    fn begin_send(
        &mut self,
        contacts: &mut Contacts,
        op: &SendOp,
        payload: &UserBuffer,
    ) -> Waiting {
        let length_bytes = payload.length_bytes();
        let is_shown = length_bytes >= MAPPED_BYTES && {
            let offering = self.offering(contacts, length_bytes);
            offering.messages > 0 && self.shows(contacts, op.remote, payload, offering)
        };
        Waiting {
            op: *op,
            payload: payload.clone(),
            sent_bytes: 0,
            outgoing: None,
            protocol: self.protocol_at_once(contacts, op.remote, length_bytes, is_shown),
            is_shown,
        }
    }

    /// What a message counts as an offer; nothing if it cannot pay that the receiver copies it out
    /// of memory that we share. Where ranks share cores it may always pay, since the other copies
    /// take both processes, in turns. Call this once for each message, since it is noted.
    fn offering(&mut self, contacts: &Contacts, length_bytes: usize) -> Offering {
        match self.heap.as_ref().is_none_or(OwnHeap::is_asked) {
            true => Offering::ONE,
            false => {
                let counts = contacts.own.node().shares_cores;
                Offering::of(&mut self.density, length_bytes, counts)
            }
        }
    }

    /// The protocol by which a message leaves, as far as it is known now: for messages longer than
    /// [`STREAM_BYTES`] the RTS decides whether early data comes along.
    fn protocol_at_once(
        &mut self,
        contacts: &mut Contacts,
        remote: RemoteId,
        length_bytes: usize,
        is_shared: bool,
    ) -> SendProtocol {
        if length_bytes > STREAM_BYTES {
            return SendProtocol::Rendezvous;
        }
        let is_in_a_row = is_shared && {
            let lane = contacts.lane_of(remote);
            let heard_bytes = lane.map_or(0, |lane| lane.heard_bytes());
            let attached = contacts.remote_mut(remote).attached_mut();
            attached.is_some_and(|attached| attached.is_in_a_row(heard_bytes))
        };
        self.protocol_by(&Facts {
            length_bytes,
            is_shared,
            is_in_a_row,
            shares_cores: contacts.own.node().shares_cores,
            ..Facts::default()
        })
    }

    /// The protocol by which a message leaves. Call this once for each message, since the tuner
    /// counts.
    pub(super) fn protocol_by(&mut self, facts: &Facts) -> SendProtocol {
        if facts.is_in_a_row {
            self.tuner.disturb(facts.length_bytes);
        }
        match select(facts) {
            Selection::Fixed(protocol) => protocol,
            Selection::Tuned(protocols) => {
                let (length_bytes, clock) = (facts.length_bytes, Instant::now);
                let shares_cores = facts.shares_cores;
                self.tuner
                    .next(length_bytes, protocols, shares_cores, clock)
            }
        }
    }

    /// Whether a remote can probably copy a message out of memory that we share: the message lies
    /// in such memory, and we can map the remote's shared memory (so it can probably map ours).
    /// Call this once for each message, since the heap shares memory that was offered often enough.
    /// Fast path, but for the first call and for the call that shares.
    pub(crate) fn shows(
        &self,
        contacts: &mut Contacts,
        remote: RemoteId,
        payload: &UserBuffer,
        offering: Offering,
    ) -> bool {
        let is_own = contacts.own.is_at(contacts.remote(remote).address());
        let attached = contacts.remote_mut(remote).attached_mut();
        let (Some(heap), Some(attached)) = (&self.heap, attached) else {
            return false;
        };
        if self.single_copy == SingleCopy::Always || !payload.is_contiguous() {
            return false;
        }
        // A message to ourselves is copied from one buffer to the other.
        is_own || (attached.heap().is_some() && heap.offers(payload, offering))
    }

    /// Sends a message that is longer than eager messages: streamed, or described by an RTS.
    fn post_long(
        &mut self,
        contacts: &mut Contacts,
        sends: &mut Sends,
        op: &SendOp,
        payload: &UserBuffer,
    ) -> Result<Posted, PostError> {
        if op.inject {
            // Several pieces may not find room at once: the endpoint queues the inject with a copy.
            return Err(PostError::Busy);
        }
        let mut waiting = self.begin_send(contacts, op, payload);
        if self.advance(contacts, sends, &mut waiting) {
            let complete = !waiting.is_described() && op.level != CompletionLevel::Delivery;
            return Ok(if complete {
                Posted::Complete
            } else {
                Posted::Pending
            });
        }
        contacts.remote_mut(op.remote).waiting().push_back(waiting);
        contacts.agenda.note_sending(op.remote);
        Ok(Posted::Pending)
    }

    /// Pushes as much of a send as there is room for; returns true when all of it is in the lane.
    fn advance(
        &mut self,
        contacts: &mut Contacts,
        sends: &mut Sends,
        waiting: &mut Waiting,
    ) -> bool {
        if waiting.is_described() {
            return self.announce(contacts, sends, waiting);
        }
        let (remote, length_bytes) = (waiting.op.remote, waiting.payload.length_bytes());
        let is_receipt = waiting.op.level == CompletionLevel::Delivery;
        if is_receipt && waiting.outgoing.is_none() {
            waiting.outgoing = Some(sends.await_receipt(&waiting.op));
        }
        let eager = Eager {
            header: MatchHeader::of(&waiting.op),
            length_bytes: length_bytes as u32,
            receipt: waiting.outgoing.map(|id| id as u64),
        };
        let first = if length_bytes <= piece_limit(0) {
            Carrier::Eager(eager)
        } else {
            Carrier::Stream(eager)
        };
        let pushed = push_pieces(contacts, waiting, first);
        if pushed {
            contacts.ring(remote);
        }
        let done = pushed && waiting.sent_bytes == length_bytes;
        if done {
            self.note_long(contacts, remote, length_bytes);
            let protocol = if length_bytes <= EAGER_BYTES {
                Protocol::Eager
            } else {
                Protocol::Streamed
            };
            sends.count(protocol, length_bytes);
        }
        done
    }

    /// Moves on the sends that wait, to every remote that has some; returns how many of them ended
    /// or moved.
    pub(crate) fn send_waiting<O: Owner>(
        &mut self,
        contacts: &mut Contacts,
        sends: &mut Sends,
        owner: &mut O,
    ) -> usize {
        let mut events = 0;
        let mut index = 0;
        while let Some(remote) = contacts.agenda.sending(index) {
            events += self.send_waiting_to(remote, contacts, sends, owner);
            if contacts.remote(remote).waiting_counts().all() > 0 {
                index += 1;
            } else {
                contacts.agenda.end_sending(index);
            }
        }
        events
    }

    fn send_waiting_to<O: Owner>(
        &mut self,
        remote: RemoteId,
        contacts: &mut Contacts,
        sends: &mut Sends,
        owner: &mut O,
    ) -> usize {
        let mut events = 0;
        if contacts.remote_mut(remote).flush_controls() {
            contacts.ring(remote);
            events += 1;
        }
        while let Some(mut waiting) = contacts.remote_mut(remote).waiting().pop_front() {
            let before = waiting.sent_bytes;
            if !self.advance(contacts, sends, &mut waiting) {
                events += usize::from(waiting.sent_bytes != before);
                contacts.remote_mut(remote).waiting().push_front(waiting);
                return events;
            }
            events += 1;
            if !waiting.is_described() && waiting.op.level != CompletionLevel::Delivery {
                owner.on_sent(waiting.op.token, Ok(()));
            }
        }
        events
    }
}

/// Pushes pieces of a payload until the lane is full, or until all is pushed that may
/// leave before the receiver asks for more. `first` describes the first piece. Returns true if any
/// piece was pushed.
pub(super) fn push_pieces(contacts: &mut Contacts, waiting: &mut Waiting, first: Carrier) -> bool {
    let length_bytes = match first {
        Carrier::EarlyRts(..) => EARLY_BYTES,
        _ => waiting.payload.length_bytes(),
    };
    let Some((attached, mut back)) = contacts.lane_to(waiting.op.remote) else {
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
            .lane_mut()
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
        if start == 0 && !attached.lane().producer().is_polled() {
            attached.knock();
        }
    }
}

#[cfg(test)]
impl Sender {
    /// For tests: sets what the sender would have found out.
    pub(crate) fn set_tuner(&mut self, tuner: SendTuner) {
        self.tuner = tuner;
    }
}
