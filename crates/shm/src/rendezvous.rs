// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Offered messages: the sender describes, the receiver fetches when a receive is matched. Called
//! by send (to offer) and by receive (offers, accepts, finishes); how they come in is in fetch.

use weft_contract::{CompletionLevel, Owner, RemoteId, SendToken};
use weft_memory::UserBuffer;
use weft_os::crash_point;

use crate::protocol::cell::{Control, Cts, Fin, MatchHeader, Rts};
use crate::receive::{Request, offer_id};
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
    /// Whether a FIN comes after the last byte went through a pipe.
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

/// What an RTS says, and who said it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RemoteOffer {
    pub(crate) remote: RemoteId,
    pub(crate) send_id: u64,
    /// Where it lies in the sender's memory, if in one stretch that may be read there.
    pub(crate) address: Option<u64>,
    /// Its whole pages lie in what its sender shares, and its ends in the place of that send id.
    pub(crate) is_shared: bool,
    pub(crate) length_bytes: u64,
    pub(crate) wants_receipt: bool,
}

impl RemoteOffer {
    pub(crate) fn of(remote: RemoteId, rts: &Rts) -> Self {
        Self {
            remote,
            send_id: rts.send_id,
            address: rts.address,
            is_shared: rts.is_shared,
            length_bytes: rts.length_bytes,
            wants_receipt: rts.wants_receipt,
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

    /// An RTS came in.
    pub(crate) fn take_rts<O: Owner>(
        &mut self,
        remote: RemoteId,
        rts: &Rts,
        owner: &mut O,
    ) -> Request {
        let offer = Offer::Remote(RemoteOffer::of(remote, rts));
        crash_point!(29, "rts: taken");
        let index = self.offers.insert(offer);
        let envelope = rts.header.envelope(remote, rts.length_bytes);
        if let Some(landing) = owner.on_offer(&envelope, offer_id(index)) {
            self.offers.remove(index);
            self.accepted.push((offer, landing));
        }
        Request::None
    }

    /// A FIN came in: a send of ours is delivered.
    pub(crate) fn take_fin<O: Owner>(
        &mut self,
        remote: RemoteId,
        fin: Fin,
        owner: &mut O,
    ) -> Request {
        let index = fin.send_id as usize;
        // A remote may only finish what was sent to it, and not while it is still being piped to
        // it.
        let is_its = self.outgoing.get(index).is_some_and(|outgoing| {
            outgoing.remote == remote && (outgoing.payload.is_some() || outgoing.wants_receipt)
        });
        if !is_its {
            return Request::Corrupt;
        }
        crash_point!(32, "fin: taken, the send not completed");
        let outgoing = self.outgoing.remove(index);
        self.pushes.retain(|push| push.send_id != index);
        if let Some(payload) = &outgoing.payload {
            let fetched = if fin.is_mapped {
                &mut self.mapped
            } else {
                &mut self.pulled
            };
            fetched.add(payload.length_bytes() as u64);
        }
        owner.on_sent(outgoing.token, Ok(()));
        Request::None
    }

    /// A CTS came in: the remote says how a described message is to come. It may only ask for what
    /// was described to it.
    pub(crate) fn take_cts(&mut self, remote: RemoteId, cts: Cts) -> Request {
        let outgoing = self.outgoing.get(cts.send_id as usize);
        let is_its = outgoing.is_some_and(|outgoing| {
            let payload = outgoing.payload.as_ref();
            let length_bytes = payload.map_or(0, UserBuffer::length_bytes) as u64;
            outgoing.remote == remote && cts.bytes.end <= length_bytes
        });
        if is_its {
            Request::Transfer(cts)
        } else {
            Request::Corrupt
        }
    }
}

impl Transport {
    /// Describes a message by an RTS; true if the cell went.
    pub(crate) fn offer(&mut self, waiting: &mut Waiting) -> bool {
        let op = &waiting.op;
        let index = self.transfers.outgoing.insert(Outgoing {
            remote: op.remote,
            token: op.token,
            payload: Some(waiting.payload.clone()),
            wants_receipt: op.level == CompletionLevel::Delivery,
            length_bytes: waiting.payload.length_bytes() as u64,
        });
        let length_bytes = waiting.payload.length_bytes();
        let (head, words) = Control::Rts(self.rts_of(waiting, index)).encode();
        let pushed = match &mut self.remotes[op.remote.index()].link {
            Link::Ready(attached) => attached.producer.push_words(head, words).is_ok(),
            _ => false,
        };
        if !pushed {
            self.transfers.outgoing.remove(index);
            return false;
        }
        crash_point!(28, "rts: sent, the bell not rung");
        self.ring(op.remote);
        self.note_long(op.remote, length_bytes);
        waiting.sent_bytes = length_bytes;
        true
    }

    /// How a message is described; `index` is that of the send.
    pub(crate) fn rts_of(&self, waiting: &Waiting, index: usize) -> Rts {
        let address = waiting.address();
        Rts {
            header: MatchHeader::of(&waiting.op),
            send_id: index as u64,
            length_bytes: waiting.payload.length_bytes() as u64,
            address,
            is_shared: address.is_some() && self.puts_edges(waiting, index),
            wants_receipt: waiting.op.level == CompletionLevel::Delivery,
        }
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
