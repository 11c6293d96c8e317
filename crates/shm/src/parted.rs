// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rendezvous with early data: the first bytes of a long message come along with its RTS, and the
//! receiver asks for the rest while they are copied (docs/shm-layout.md, clause 5). The rest comes
//! in DATA cells through the lane and its chunks, so that two processes that answer each other go
//! to and fro in the same memory; or as any described message does, where that has lately been
//! faster. Called by send (to begin), by receive (parts, what has come further) and by pipelined (a
//! CTS that names the lane).
//!
//! Only one message at a time begins so: with more under way nobody waits for a CTS, and pipes keep
//! long messages out of the way of short ones.

use std::ops::Range;

use weft_contract::{CompletionLevel, Owner, RemoteId, SendToken};
use weft_memory::UserBuffer;
use weft_os::{clock, crash_point};

use crate::choice::{Lesson, Method, class_of};
use crate::protocol::cell::{Carrier, Control, Cts, Rts, Transfer};
use crate::protocol::{EARLY_BYTES, EARLY_CELLS, EARLY_LIMIT_BYTES, PIECE_BYTES, STREAM_BYTES};
use crate::receive::{Piece, Request};
use crate::remote::{LANE_LAP_BYTES, Link, Waiting};
use crate::rendezvous::{Outgoing, RemoteOffer};
use crate::settings::SingleCopy;
use crate::statistics::Protocol;
use crate::stream::{StreamEnd, Target};
use crate::transport::{Transfers, Transport};

/// What there is of a message that comes in, beyond its beginning.
#[derive(Debug)]
pub(crate) struct Rest {
    offer: RemoteOffer,
    /// How it is to come, once that is decided, and when it was.
    way: Option<(Method, Lesson)>,
    started_ns: u64,
}

impl Rest {
    /// As its RTS tells.
    pub(crate) fn of(remote: RemoteId, rts: &Rts) -> Self {
        Self {
            offer: RemoteOffer::of(remote, rts),
            way: None,
            started_ns: 0,
        }
    }
}

/// A message of ours whose rest was asked for.
#[derive(Debug)]
pub(crate) struct Parts {
    /// Index of the send; its entry stays until the last part or the receipt.
    send_id: usize,
    pub(crate) remote: RemoteId,
    token: SendToken,
    payload: UserBuffer,
    /// What is still to go.
    bytes: Range<usize>,
    /// The receiver's number for it.
    number: u64,
    wants_receipt: bool,
}

/// What we send.
impl Transport {
    /// Announces a long message: with its first bytes if nothing else of ours is under way and its
    /// receiver cannot copy it out of our heap, else by an offer alone. True if it went.
    pub(crate) fn announce(&mut self, waiting: &mut Waiting) -> bool {
        let length_bytes = waiting.payload.length_bytes() as u64;
        self.remotes[waiting.op.remote.index()].announced = Some(class_of(length_bytes));
        let is_middle =
            (STREAM_BYTES + 1..=EARLY_LIMIT_BYTES).contains(&waiting.payload.length_bytes());
        let may_begin = is_middle && self.may_begin(waiting.op.remote);
        let is_mapped = waiting.is_shown;
        waiting.is_streamed_on = may_begin && is_mapped && self.is_faster_streamed(waiting);
        if may_begin && (!is_mapped || waiting.is_streamed_on) {
            self.begin(waiting)
        } else {
            self.offer(waiting)
        }
    }

    fn may_begin(&mut self, remote: RemoteId) -> bool {
        let is_own = |remote: RemoteId| self.own.is_at(self.remotes[remote.index()].address);
        let mut others = self.transfers.outgoing.iter();
        let is_alone = !is_own(remote) && others.all(|(_, other)| is_own(other.remote));
        let asks_for_copies =
            self.housekeeping.shares_cores || self.settings.single_copy == SingleCopy::Always;
        match &mut self.remotes[remote.index()].link {
            Link::Ready(attached) => {
                is_alone
                    && !asks_for_copies
                    && attached.is_wide()
                    && attached.producer.has_room(EARLY_CELLS, EARLY_BYTES)
            }
            _ => false,
        }
    }

    fn begin(&mut self, waiting: &mut Waiting) -> bool {
        let op = &waiting.op;
        let remote = op.remote;
        let index = self.transfers.outgoing.insert(Outgoing {
            remote,
            token: op.token,
            payload: Some(waiting.payload.clone()),
            wants_receipt: op.level == CompletionLevel::Delivery,
            length_bytes: waiting.payload.length_bytes() as u64,
        });
        waiting.outgoing = Some(index);
        if !self.push_pieces(waiting) {
            self.transfers.outgoing.remove(index);
            waiting.outgoing = None;
            return false;
        }
        debug_assert_eq!(waiting.sent_bytes, EARLY_BYTES, "there was room for it");
        self.ring(remote);
        waiting.sent_bytes = waiting.payload.length_bytes();
        true
    }

    /// A CTS asked for these bytes of a message through the lane, and named the receiver's number
    /// for it. The request was checked against the send.
    pub(crate) fn start_parts(&mut self, cts: &Cts, number: u64) {
        let send_id = cts.send_id as usize;
        let outgoing = &mut self.transfers.outgoing[send_id];
        let Some(payload) = outgoing.payload.take() else {
            return;
        };
        self.statistics
            .count(Protocol::Streamed, payload.length_bytes() as u64);
        self.parts.push(Parts {
            send_id,
            remote: outgoing.remote,
            token: outgoing.token,
            payload,
            bytes: cts.bytes.start as usize..cts.bytes.end as usize,
            number,
            wants_receipt: outgoing.wants_receipt,
        });
    }

    /// Sends parts as long as there is room; answers how many messages moved.
    pub(crate) fn send_parts<O: Owner>(&mut self, owner: &mut O) -> usize {
        let mut events = 0;
        let mut index = 0;
        while index < self.parts.len() {
            if self.push_parts(index) {
                events += 1;
                self.ring(self.parts[index].remote);
            }
            if !self.parts[index].bytes.is_empty() {
                index += 1;
                continue;
            }
            let parts = self.parts.remove(index);
            if !parts.wants_receipt {
                self.transfers.outgoing.try_remove(parts.send_id);
                owner.on_sent(parts.token, Ok(()));
            }
        }
        events
    }

    /// Pushes parts of one message until the lane is full; true if any went.
    fn push_parts(&mut self, index: usize) -> bool {
        let parts = &mut self.parts[index];
        let entry = &mut self.remotes[parts.remote.index()];
        let inbound = entry.inbound.and_then(|slot| self.inbound[slot].as_mut());
        let mut back = inbound.map(|lane| &mut lane.pool);
        let Link::Ready(attached) = &mut entry.link else {
            return false;
        };
        let mut pushed = false;
        while !parts.bytes.is_empty() {
            let start = parts.bytes.start;
            let end = parts.bytes.end.min(start + PIECE_BYTES);
            let carrier = Carrier::Data(parts.number, (end - start) as u32);
            if attached
                .push(back.as_deref_mut(), carrier, &parts.payload, start..end)
                .is_err()
            {
                break;
            }
            parts.bytes.start = end;
            pushed = true;
            crash_point!(52, "data: one is sent");
        }
        pushed
    }
}

impl Transfers {
    /// A DATA cell came in, for the message of this number.
    pub(crate) fn take_part(&mut self, piece: &Piece<'_>, number: u64) -> (u32, Request) {
        let index = number as usize;
        let (Some(stream), Some(payload)) = (self.streams.get_mut(index), piece.payload) else {
            return (0, Request::Corrupt);
        };
        // Parts are its sender's, were asked for, and come after the beginning.
        let is_expected = stream.remote == piece.remote
            && stream.expected_bytes > stream.unasked_bytes
            && stream.received_bytes >= stream.unasked_bytes
            && payload.length_bytes() > 0;
        if !is_expected || !stream.take(payload, stream.expected_bytes) {
            return (0, Request::Corrupt);
        }
        crash_point!(53, "data: one is taken");
        let request = if stream.is_complete() {
            Request::GoOn(index)
        } else {
            Request::None
        };
        (payload.length_bytes() as u32, request)
    }
}

/// What we receive.
impl Transport {
    /// A message that has begun has come further, or its receive is known: asks for the rest, or
    /// ends it.
    pub(crate) fn go_on<O: Owner>(&mut self, index: usize, owner: &mut O) {
        let Some(stream) = self.transfers.streams.get(index) else {
            return;
        };
        let (Some(rest), Target::Landing(landing)) = (&stream.rest, &stream.target) else {
            return self.end_unwanted(index);
        };
        let (offer, way) = (rest.offer, rest.way);
        let (unasked_bytes, has_begun) = (stream.unasked_bytes, stream.has_begun());
        let wanted_bytes = usize::try_from(offer.length_bytes)
            .unwrap_or(usize::MAX)
            .min(landing.buffer.length_bytes());
        if wanted_bytes <= unasked_bytes {
            if has_begun {
                self.end_parted(index, true, owner);
            }
            return;
        }
        let way = match way {
            Some(way) => way,
            None => self.ask_for_rest(index, wanted_bytes),
        };
        if way.0 == Method::Pipelined {
            if self.transfers.streams[index].is_complete() {
                self.learn_parted(index);
                self.end_parted(index, offer.wants_receipt, owner);
            }
        } else if has_begun
            && let Target::Landing(landing) = self.transfers.streams.remove(index).target
        {
            self.start_fetch_by(Some(way), (offer, landing), wanted_bytes, unasked_bytes);
        }
    }

    /// Decides how the rest comes, and asks for it if it is to come in parts.
    fn ask_for_rest(&mut self, index: usize, wanted_bytes: usize) -> (Method, Lesson) {
        let nothing = (Method::PastCache, Lesson::Nothing);
        let Some(offer) = self.transfers.streams[index]
            .rest
            .as_ref()
            .map(|rest| rest.offer)
        else {
            return nothing;
        };
        let buffer = match &self.transfers.streams[index].target {
            Target::Landing(landing) => landing.buffer.clone(),
            _ => return nothing,
        };
        let (mut way, lesson) = self.method_for(&offer, &buffer, wanted_bytes as u64);
        let entry = &self.remotes[offer.remote.index()];
        if way == Method::Pipelined && !matches!(entry.link, Link::Ready(_)) {
            // A pipe is lent as soon as its sender can be told, and the fetch fails if that cannot
            // be.
            way = Method::PastCache;
        }
        let lane = entry.inbound.and_then(|slot| self.inbound[slot].as_mut());
        let stream = &mut self.transfers.streams[index];
        if let Some(rest) = &mut stream.rest {
            (rest.way, rest.started_ns) = (Some((way, lesson)), clock::monotonic_ns());
        }
        if way != Method::Pipelined {
            return (way, lesson);
        }
        if let Some(lane) = lane {
            lane.parted += 1;
        }
        stream.expected_bytes = wanted_bytes;
        let cts = Cts {
            send_id: offer.send_id,
            bytes: stream.unasked_bytes as u64..wanted_bytes as u64,
            by: Transfer::Lane {
                number: index as u64,
            },
        };
        crash_point!(54, "early data: the rest is to be asked for");
        self.answer(offer.remote, Control::Cts(cts));
        (way, lesson)
    }

    /// Learns how long it took to come in parts, if nothing else came meanwhile.
    fn learn_parted(&mut self, index: usize) {
        let stream = &self.transfers.streams[index];
        let Some(rest) = &stream.rest else {
            return;
        };
        let (remote, bytes, started_ns) = (stream.remote, stream.expected_bytes, rest.started_ns);
        let lesson = rest.way.map_or(Lesson::Nothing, |(_, lesson)| lesson);
        if let Some(slot) = self.remotes[remote.index()].inbound
            && let Some(lane) = &mut self.inbound[slot]
        {
            lane.parted = lane.parted.saturating_sub(1);
        }
        let was_warm = self.remotes[remote.index()]
            .parted
            .note(bytes, LANE_LAP_BYTES);
        let now_ns = clock::monotonic_ns();
        let charged_ns = self.charge(started_ns, now_ns);
        let alone = self.transfers.fetches.is_empty() && self.transfers.streams.len() == 1;
        if alone && was_warm {
            self.choice
                .learn(Method::Pipelined, bytes as u64, charged_ns, lesson);
        }
    }

    /// All that is wanted of a message is in its receive.
    fn end_parted<O: Owner>(&mut self, index: usize, is_to_finish: bool, owner: &mut O) {
        let stream = self.transfers.streams.remove(index);
        let landed = match stream.target {
            Target::Landing(landing) => Some(landing.token),
            _ => None,
        };
        let send_id = stream.rest.map(|rest| rest.offer.send_id);
        let finish = send_id
            .filter(|_| is_to_finish)
            .map(|send_id| (stream.remote, send_id));
        self.end_stream(StreamEnd { landed, finish }, owner);
    }

    /// Ends a message that has begun and that nobody wants, once all that comes unasked is here.
    pub(crate) fn end_unwanted(&mut self, index: usize) {
        let Some(stream) = self.transfers.streams.get(index) else {
            return;
        };
        if stream.has_begun()
            && matches!(stream.target, Target::Nowhere)
            && let Some(rest) = &stream.rest
        {
            let offer = rest.offer;
            self.transfers.streams.remove(index);
            self.finish(offer.remote, offer.send_id);
        }
    }
}
