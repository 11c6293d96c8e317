// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Offered messages: the sender describes, the receiver fetches when a receive is matched. Called by send (to
//! offer) and by receive (offers, accepts, finishes); how they come in is in fetch.

use weft_contract::{CompletionLevel, Owner, RemoteId, SendToken};
use weft_memory::UserBuffer;
use weft_os::crash_point;
use weft_ring::{Arrival, Head};

use crate::pipelined::Accepted;
use crate::protocol::{FLAG_RECEIPT, MESSAGE_BYTES, OFFER, SHARED, SHARED_ADDRESS, message_flags};
use crate::receive::{Request, envelope, offer_id};
use crate::remote::{Link, Waiting};
use crate::stream::StreamEnd;
use crate::transport::{Transfers, Transport};

/// A send of ours that waits for its remote.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) remote: RemoteId,
    pub(crate) token: SendToken,
    /// The message, while the remote may still ask for it.
    pub(crate) payload: Option<UserBuffer>,
    /// Length of the message; 0 for one that is already in the lane.
    pub(crate) length_bytes: u64,
    /// Whether a FINISH comes after the last byte went through a pipe.
    pub(crate) wants_receipt: bool,
}

impl Outgoing {
    /// A message that is already in the lane and only waits to be delivered.
    pub(crate) fn receipt(remote: RemoteId, token: SendToken) -> Self {
        Self {
            remote,
            token,
            payload: None,
            length_bytes: 0,
            wants_receipt: true,
        }
    }
}

/// A message of a remote that the owner has not accepted yet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Offer {
    /// It lies in its sender's memory.
    Remote(RemoteOffer),
    /// It is streaming in, or has; index of the stream.
    Stream(usize),
}

/// What an OFFER cell says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RemoteOffer {
    pub(crate) remote: RemoteId,
    pub(crate) send_id: u64,
    /// Where it lies in the sender's memory, in one stretch; 0 if it does not.
    pub(crate) address: u64,
    /// Its whole pages lie in what its sender shares, and its ends in the place of that send id.
    pub(crate) is_shared: bool,
    pub(crate) length_bytes: u64,
    pub(crate) wants_receipt: bool,
}

impl RemoteOffer {
    /// As a cell tells.
    pub(crate) fn of(
        remote: RemoteId,
        [send_id, address, length_bytes]: [u64; 3],
        flags: u8,
    ) -> Self {
        Self {
            remote,
            send_id,
            address: address & !SHARED_ADDRESS,
            is_shared: address & SHARED_ADDRESS != 0,
            length_bytes,
            wants_receipt: flags & FLAG_RECEIPT != 0,
        }
    }
}

impl Transfers {
    /// Whether something of a remote was taken that still needs an answer.
    pub(crate) fn owe_answers(&self, remote: RemoteId) -> bool {
        let mut streams = self.streams.iter();
        let is_offer =
            |offer: &Offer| matches!(offer, Offer::Remote(offer) if offer.remote == remote);
        streams.any(|(_, stream)| stream.remote == remote && stream.needs_answer())
            || self.offers.iter().any(|(_, offer)| is_offer(offer))
            || self.accepted.iter().any(|(offer, _)| is_offer(offer))
            || self
                .fetches
                .iter()
                .any(|fetch| fetch.offer.remote == remote)
    }

    /// An OFFER came in.
    pub(crate) fn take_offer<O: Owner>(
        &mut self,
        remote: RemoteId,
        arrival: &Arrival<'_>,
        owner: &mut O,
    ) -> Request {
        let [_, _, send_id, address, length_bytes, ..] = arrival.words();
        if length_bytes > MESSAGE_BYTES {
            return Request::Corrupt;
        }
        let described = [send_id, address, length_bytes];
        let offer = Offer::Remote(RemoteOffer::of(remote, described, arrival.head.flags));
        crash_point!(29, "offer: taken");
        let index = self.offers.insert(offer);
        let envelope = weft_contract::Envelope {
            length_bytes,
            ..envelope(remote, arrival)
        };
        if let Some(landing) = owner.on_offer(&envelope, offer_id(index)) {
            self.offers.remove(index);
            self.accepted.push((offer, landing));
        }
        Request::None
    }

    /// A FINISH came in: a send of ours is delivered.
    pub(crate) fn take_finish<O: Owner>(
        &mut self,
        remote: RemoteId,
        [send_id, is_mapped]: [u64; 2],
        owner: &mut O,
    ) -> Request {
        let index = send_id as usize;
        // A remote may only finish what was sent to it, and not while it is still being piped to it.
        let is_its = self.outgoing.get(index).is_some_and(|outgoing| {
            outgoing.remote == remote && (outgoing.payload.is_some() || outgoing.wants_receipt)
        });
        if !is_its {
            return Request::Corrupt;
        }
        crash_point!(32, "finish: taken, the send not completed");
        let outgoing = self.outgoing.remove(index);
        self.pushes.retain(|push| push.send_id != index);
        if let Some(payload) = &outgoing.payload {
            let fetched = if is_mapped == 0 {
                &mut self.pulled
            } else {
                &mut self.mapped
            };
            fetched.add(payload.length_bytes() as u64);
        }
        owner.on_sent(outgoing.token, Ok(()));
        Request::None
    }

    /// An ACCEPT came in: the remote wants an offered message through one of its pipes.
    pub(crate) fn take_accept(&mut self, remote: RemoteId, arrival: &Arrival<'_>) -> Request {
        let [
            send_id,
            pipe,
            offset_bytes,
            wanted_bytes,
            first_chunk,
            past_cache,
            target,
        ] = arrival.words();
        let is_its = self.outgoing.get(send_id as usize).is_some_and(|outgoing| {
            let payload = outgoing.payload.as_ref();
            let length_bytes = payload.map_or(0, UserBuffer::length_bytes) as u64;
            outgoing.remote == remote && offset_bytes < wanted_bytes && wanted_bytes <= length_bytes
        });
        if !is_its {
            return Request::Corrupt;
        }
        let accepted = Accepted {
            pipe: pipe as usize,
            first_chunk: first_chunk as usize,
            bytes: offset_bytes as usize..wanted_bytes as usize,
            past_cache: past_cache == 1,
            is_shared: past_cache == SHARED,
            target,
        };
        Request::Feed(send_id as usize, accepted)
    }
}

impl Transport {
    /// Offers a message; true if the cell went.
    pub(crate) fn offer(&mut self, waiting: &mut Waiting) -> bool {
        let op = &waiting.op;
        let wants_receipt = op.level == CompletionLevel::Delivery;
        let index = self.transfers.outgoing.insert(Outgoing {
            remote: op.remote,
            token: op.token,
            payload: Some(waiting.payload.clone()),
            wants_receipt,
            length_bytes: waiting.payload.length_bytes() as u64,
        });
        let length_bytes = waiting.payload.length_bytes();
        let address = self.address_to_tell(waiting, index);
        let flags = message_flags(op.class, op.cq_data.is_some())
            | if wants_receipt { FLAG_RECEIPT } else { 0 };
        let head = Head {
            kind: OFFER,
            flags,
            length_bytes: 0,
        };
        let words = [
            op.tag,
            op.cq_data.unwrap_or(0),
            index as u64,
            address,
            length_bytes as u64,
            0,
            0,
        ];
        let pushed = match &mut self.remotes[op.remote.index()].link {
            Link::Ready(attached) => attached.producer.push_words(head, words).is_ok(),
            _ => false,
        };
        if !pushed {
            self.transfers.outgoing.remove(index);
            return false;
        }
        crash_point!(28, "offer: sent, the bell not rung");
        self.ring(op.remote);
        self.note_long(op.remote, length_bytes);
        waiting.sent_bytes = length_bytes;
        true
    }

    /// Starts fetching what the owner accepted since the last call.
    pub(crate) fn start_accepted<O: Owner>(&mut self, owner: &mut O) -> usize {
        let mut events = 0;
        for (offer, landing) in std::mem::take(&mut self.transfers.accepted) {
            events += 1;
            match offer {
                Offer::Remote(offer) => self.start_fetch(offer, landing),
                Offer::Stream(index) => {
                    let end = self.transfers.land_stream(index, landing);
                    self.end_stream(end, owner);
                    self.go_on(index, owner);
                }
            }
        }
        events
    }

    pub(crate) fn end_stream<O: Owner>(&mut self, end: StreamEnd, owner: &mut O) {
        if let Some(token) = end.landed {
            owner.on_landed(token, Ok(()));
        }
        if let Some((remote, send_id)) = end.finish {
            self.finish(remote, send_id);
        }
    }

    /// The owner does not want an offered message; its sender sees it as delivered.
    pub(crate) fn discard_offer(&mut self, offer: Offer) {
        match offer {
            Offer::Remote(offer) => self.finish(offer.remote, offer.send_id),
            Offer::Stream(index) => {
                if let Some((remote, send_id)) = self.transfers.drop_stream(index).finish {
                    self.finish(remote, send_id);
                }
                self.end_unwanted(index);
            }
        }
    }
}
