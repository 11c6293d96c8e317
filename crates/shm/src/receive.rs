// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Progress: what has arrived in polled lanes goes to the owner at once. Called through
//! `Peer::progress`.
//!
//! The cost of an empty call is one load for each polled lane and one for all bells together.

use weft_contract::{AckToken, Envelope, OfferId, Owner, RemoteId, TransferError};
use weft_memory::BytesView;
use weft_os::{clock, crash_point};
use weft_ring::{Arrival, Consumer, Pool, Way};

use crate::protocol::cell::{self, Carrier, Cell, Control, Cts, Eager, Malformed, MatchHeader};
use crate::published::Received;
use crate::remote::Link;
use crate::stores::{StoreTrial, TIMED_BYTES};
use crate::stream::Beginning;
use crate::transport::{Inbound, Receipt, Transfers, Transport};

/// Messages taken from one lane before the next one's turn. Chosen: bounds the time of one call,
/// while the cost of changing lanes is spread over many messages.
const LANE_BUDGET: usize = 32;

/// What a cell that is not a whole message asks of the transport, once the lane is let go.
pub(crate) enum Request {
    /// Nothing more.
    None,
    /// Send a FIN for this id.
    Finish(u64),
    /// Send what this CTS asks for.
    Transfer(Cts),
    /// A message that has begun has come further: this stream.
    GoOn(usize),
    /// The lane is at its end.
    Bye,
    /// The remote broke the protocol.
    Corrupt,
    /// The same, by a cell that says what cannot be.
    Malformed(Malformed),
}

impl Transport {
    /// Whether no polled lane has a message, no bell rang and nothing is under way. Most rounds
    /// find nothing, so that is decided first, in few instructions. Fast path.
    #[inline(always)]
    pub(crate) fn is_quiet(&self) -> bool {
        for &slot in &self.polled {
            if let Some(lane) = &self.inbound[slot]
                && lane.consumer.has_message()
            {
                return false;
            }
        }
        !self.own.region.doorbell().is_rung() && !self.has_work()
    }

    /// One round of progress. Fast path.
    #[inline(always)]
    pub(crate) fn receive<O: Owner>(&mut self, owner: &mut O) -> usize {
        let mut events = 0;
        let mut index = 0;
        while index < self.polled.len() {
            let slot = self.polled[index];
            events += self.receive_from(slot, owner);
            index += 1;
        }
        if self.own.region.doorbell().is_rung() {
            events += self.answer_bells(owner);
        }
        if self.has_work() {
            events += self.work(owner);
        }
        if events == 0 {
            self.idle(owner);
        } else if self.housekeeping.busy() {
            self.look_at_clock(owner);
        }
        events
    }

    /// Takes what lies in one lane. Whole messages in one cell are taken here, in a loop that is
    /// kept small; all else is a call.
    #[inline(always)]
    fn receive_from<O: Owner>(&mut self, slot: usize, owner: &mut O) -> usize {
        let mut events = 0;
        loop {
            let Some(lane) = self.inbound[slot].as_mut() else {
                return events;
            };
            let remote = lane.remote;
            let is_over = loop {
                let Some(arrival) = lane.consumer.peek() else {
                    break true;
                };
                let payload = match arrival.inline_payload() {
                    Some(payload) if cell::is_inline(arrival.head) => payload,
                    _ => break false,
                };
                events += 1;
                lane.received += 1;
                step_seen();
                lane.counts.bytes += u64::from(arrival.head.length_bytes);
                owner.on_message(&inline_envelope(remote, &arrival), payload, None);
                let length_bytes = arrival.head.length_bytes;
                step_handed_over();
                lane.consumer.advance_inline(length_bytes);
                if events >= LANE_BUDGET {
                    break true;
                }
            };
            if is_over {
                lane.consumer.settle();
                return events;
            }
            events += 1;
            if !self.receive_other(slot, owner, events < LANE_BUDGET) {
                return events;
            }
        }
    }

    /// The same where speed does not matter.
    #[inline(never)]
    pub(crate) fn receive_seldom<O: Owner>(&mut self, slot: usize, owner: &mut O) -> usize {
        self.receive_from(slot, owner)
    }

    /// Takes a cell that is not a whole message. False if the lane's turn is over, as it is unless
    /// there `may_be_more`.
    #[inline(never)]
    fn receive_other<O: Owner>(&mut self, slot: usize, owner: &mut O, may_be_more: bool) -> bool {
        let Some(lane) = self.inbound[slot].as_mut() else {
            return false;
        };
        let remote = lane.remote;
        if !lane.consumer.has_message() {
            return false;
        }
        lane.received += 1;
        step_seen();
        let is_answered = matches!(self.remotes[remote.index()].link, Link::Ready(_));
        if !is_answered && self.refuses(slot) {
            return false;
        }
        let Some(lane) = self.inbound[slot].as_mut() else {
            return false;
        };
        let opposite = match &mut self.remotes[remote.index()].link {
            Link::Ready(attached) => Some(&mut attached.pool),
            _ => None,
        };
        let (data_bytes, request) = take(lane, opposite, &mut self.transfers, owner);
        step_handed_over();
        lane.consumer.advance(data_bytes);
        let goes_on = may_be_more && matches!(request, Request::None | Request::GoOn(_));
        if !goes_on {
            lane.consumer.settle();
        }
        if !matches!(request, Request::None) {
            self.grant(remote, request, owner);
        }
        if let Some(lane) = self.inbound[slot].as_ref().filter(|_| goes_on)
            && (lane.stream.is_some() || lane.parted > 0)
        {
            // The next piece is being copied now: coming back through the application takes longer.
            lane.await_message(self.housekeeping.patience());
        }
        goes_on
    }

    #[cold]
    fn grant<O: Owner>(&mut self, remote: RemoteId, request: Request, owner: &mut O) {
        match request {
            Request::None => {}
            Request::Finish(send_id) => self.finish(remote, send_id),
            Request::Transfer(cts) => self.start_transfer(&cts),
            Request::GoOn(stream) => self.go_on(stream, owner),
            Request::Bye => self.lose(remote, TransferError::RemoteLost, owner),
            Request::Corrupt => self.cut_off(remote, "", owner),
            Request::Malformed(Malformed { what, value }) => {
                self.cut_off(remote, &format!(" ({what} {value})"), owner);
            }
        }
    }

    /// Ends what is under way with a remote that broke the protocol.
    #[cold]
    fn cut_off<O: Owner>(&mut self, remote: RemoteId, how: &str, owner: &mut O) {
        let address = self.remotes[remote.index()].address;
        (self.settings.report)(&format!(
            "the process at {address} broke the protocol{how}; it is cut off"
        ));
        self.lose(remote, TransferError::Corrupt, owner);
    }

    /// Looks at the lanes whose bells rang, and polls them from now on.
    #[cold]
    pub(crate) fn answer_bells<O: Owner>(&mut self, owner: &mut O) -> usize {
        let mut slots = Vec::new();
        self.own.region.doorbell().collect(|slot| slots.push(slot));
        let mut events = 0;
        for slot in slots {
            if self.inbound.get(slot).is_some_and(Option::is_none) {
                self.adopt(slot, owner);
            }
            if self.inbound.get(slot).is_some_and(Option::is_some) {
                self.start_polling(slot);
                events += self.receive_seldom(slot, owner);
            }
        }
        events
    }

    /// Learns who claimed a slot.
    fn adopt<O: Owner>(&mut self, slot: usize, owner: &mut O) {
        if self.housekeeping.shut.contains(&slot) {
            return; // it was cut off
        }
        let Some(claimant) = self.own.region.slots().claimant(slot) else {
            return;
        };
        let own = self.own.region.mapping();
        let (Some(consumer), Some(pool)) = (Consumer::attach(own, slot), Pool::attach(own, slot))
        else {
            return;
        };
        let remote = owner.remote_at(claimant.address);
        while self.remotes.len() <= remote.index() {
            self.remotes
                .push(crate::remote::Remote::new(claimant.address));
        }
        if !self.part_with_others(remote, &claimant, owner) {
            return; // its slot is freed with the next look after the dead
        }
        crash_point!(19, "adopt: a claimant is known, its lane not attached");
        let entry = &mut self.remotes[remote.index()];
        if matches!(entry.link, Link::Failed(_)) {
            entry.link = Link::Unknown;
        }
        entry.inbound = Some(slot);
        self.inbound[slot] = Some(Inbound {
            consumer,
            pool,
            remote,
            claimant,
            stream: None,
            parted: 0,
            received: 0,
            counts: Received::default(),
            quiet_ticks: 0,
            both_ways: 0,
            stores: StoreTrial::default(),
        });
        self.expect_long(remote, slot);
    }

    /// Whether anything is under way that a call of progress can move.
    #[inline(always)]
    fn has_work(&self) -> bool {
        // Added up, so that there is one branch.
        self.sending.len()
            | self.transfers.fetches.len()
            | self.transfers.accepted.len()
            | self.pipes.feeds.len()
            | self.parts.len()
            | self.transfers.pushes.len()
            | self.lost_again.len()
            != 0
    }

    #[inline(never)]
    fn work<O: Owner>(&mut self, owner: &mut O) -> usize {
        for (remote, why) in std::mem::take(&mut self.lost_again) {
            self.give_up(remote, why, owner);
        }
        let mut events = self.start_accepted(owner);
        events += self.send_waiting(owner);
        events += self.send_parts(owner);
        events += self.feed(owner);
        events += self.push_shares();
        events + self.fetch(owner)
    }
}

#[inline(always)]
fn step_seen() {
    crash_point!(22, "take: a cell is seen, not taken");
}

#[inline(always)]
fn step_handed_over() {
    crash_point!(23, "take: a message is handed over, its cell not let go");
}

#[inline(always)]
fn inline_envelope(remote: RemoteId, arrival: &Arrival<'_>) -> Envelope {
    let length_bytes = u64::from(arrival.head.length_bytes);
    MatchHeader::of_inline(arrival).envelope(remote, length_bytes)
}

/// Payload that a cell names, and who sent it.
pub(crate) struct Piece<'a> {
    pub(crate) remote: RemoteId,
    /// None if the cell names what its sender may not write.
    pub(crate) payload: Option<BytesView<'a>>,
}

/// Everything but inline messages: parses the cell, finds the payload that it names, times its
/// copy, keeps the chunk that it came in. Answers how much of the data area went, and what the
/// transport must do.
#[inline(never)]
fn take<O: Owner>(
    lane: &mut Inbound,
    opposite: Option<&mut Pool>,
    transfers: &mut Transfers,
    owner: &mut O,
) -> (u32, Request) {
    let Some(arrival) = lane.consumer.peek() else {
        return (0, Request::Corrupt);
    };
    let cell = match Cell::of(&arrival) {
        Ok(cell) => cell,
        Err(malformed) => return (0, Request::Malformed(malformed)),
    };
    let begins = cell.begins_message();
    if begins && lane.stream.is_some() {
        // Messages keep their order: none starts inside another. An endpoint may close inside one
        // of its own.
        return (0, Request::Corrupt);
    }
    lane.counts.other_cells += u32::from(!begins);
    let carrier = match cell {
        Cell::Carrier(carrier) => carrier,
        Cell::Control(control) => return (0, take_control(lane.remote, control, transfers, owner)),
    };
    let chunk = arrival.chunk();
    let pool = match chunk.map(|stretch| stretch.way) {
        Some(Way::Opposite) => opposite,
        _ => Some(&mut lane.pool),
    };
    let payload = match (chunk, &pool) {
        (Some(stretch), Some(pool)) => pool.arrived(stretch),
        (Some(_), None) => None,
        (None, _) => arrival.data_payload(),
    };
    let is_long = arrival.head.length_bytes >= TIMED_BYTES;
    let start = (chunk.is_none() && is_long).then(clock::ticks);
    let piece = Piece {
        remote: lane.remote,
        payload,
    };
    let (bytes, request) = take_carrier(&piece, carrier, &mut lane.stream, transfers, owner);
    lane.counts.bytes += u64::from(bytes);
    if let Some(start) = start.filter(|_| bytes >= TIMED_BYTES) {
        let wish = lane.stores.learn(bytes, clock::ticks().wrapping_sub(start));
        if let Some(past_cache) = wish {
            lane.consumer.set_past_cache(past_cache);
        }
    }
    match (chunk, pool) {
        (Some(stretch), Some(pool)) if bytes > 0 => {
            pool.keep(stretch.chunk);
            (0, request)
        }
        _ => (bytes, request),
    }
}

/// A cell of words alone.
fn take_control<O: Owner>(
    remote: RemoteId,
    control: Control,
    transfers: &mut Transfers,
    owner: &mut O,
) -> Request {
    match control {
        Control::Rts(rts) => transfers.take_rts(remote, &rts, owner),
        Control::Cts(cts) => transfers.take_cts(remote, cts),
        Control::Fin(fin) => transfers.take_fin(remote, fin, owner),
        Control::Bye => Request::Bye,
    }
}

/// By kind. Answers how much payload was taken, and what the transport must do.
#[inline(always)]
fn take_carrier<O: Owner>(
    piece: &Piece<'_>,
    carrier: Carrier,
    stream: &mut Option<usize>,
    transfers: &mut Transfers,
    owner: &mut O,
) -> (u32, Request) {
    match carrier {
        Carrier::Eager(eager) => take_eager(piece, eager, transfers, owner),
        Carrier::Stream(eager) => {
            transfers.begin_stream(piece, Beginning::of_eager(eager), stream, owner)
        }
        Carrier::EarlyRts(rts, early_bytes) => {
            let beginning = Beginning::of_rts(piece.remote, &rts, early_bytes);
            transfers.begin_stream(piece, beginning, stream, owner)
        }
        Carrier::Piece(_) => transfers.continue_stream(piece, stream, owner),
        Carrier::Data(number, _) => transfers.take_part(piece, number),
    }
}

#[inline(always)]
fn take_eager<O: Owner>(
    piece: &Piece<'_>,
    eager: Eager,
    transfers: &mut Transfers,
    owner: &mut O,
) -> (u32, Request) {
    let remote = piece.remote;
    let data_bytes = eager.length_bytes;
    let whole = |payload: &BytesView<'_>| payload.length_bytes() == data_bytes as usize;
    let Some(payload) = piece.payload.filter(whole) else {
        return (0, Request::Corrupt);
    };
    let envelope = eager.header.envelope(remote, u64::from(data_bytes));
    let Some(send_id) = eager.receipt else {
        owner.on_message(&envelope, payload, None);
        return (data_bytes, Request::None);
    };
    let receipt = transfers.receipts.insert(Receipt {
        remote,
        send_id,
        is_void: false,
    });
    if owner.on_message(&envelope, payload, Some(AckToken(receipt as u64))) {
        transfers.receipts.remove(receipt);
        return (data_bytes, Request::Finish(send_id));
    }
    (data_bytes, Request::None)
}

/// The id under which the owner knows an offer.
pub(crate) fn offer_id(index: usize) -> OfferId {
    OfferId(index as u64)
}
