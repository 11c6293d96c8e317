// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A route between endpoints of one process: what the conformance suite measures other routes by.
//! All that a route takes is here: `Peer`, which moves messages, `Sleep`, of which it has nothing,
//! and `Route`.
//!
//! Endpoints with the same IP address share a [`Network`], made first by [`Network::open`] with the
//! conditions that a test wants: where eager ends and offers begin, how much fits, how slowly
//! messages trickle in. It is simple rather than fast: one lock, and payloads are copied twice.
#![forbid(unsafe_code)]

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

use weft_contract::{
    AckToken, Closing, CompletionLevel, Envelope, Landing, LandingToken, OfferId, Owner, Peer,
    Place, PostError, Posted, RemoteId, Route, RouteError, RouteErrorKind, SendOp, SendToken,
    Sleep, TransferError,
};
use weft_memory::{BytesView, BytesViewMut, UserBuffer};

mod network;

pub use network::{Conditions, Network};
use network::{Packet, Shared, lock};

/// An offer that was accepted, to be fetched at the next progress.
struct Fetch {
    offer: Offered,
    landing: Landing,
}

/// An offer as its receiver knows it.
struct Offered {
    from: SocketAddr,
    token: SendToken,
    number: u64,
}

/// The transport of one endpoint.
pub struct InProcess {
    network: Shared,
    address: SocketAddr,
    remotes: HashMap<RemoteId, SocketAddr>,
    ids: HashMap<SocketAddr, RemoteId>,
    watched: Vec<RemoteId>,
    /// Sends that wait to be done, and to whom they went.
    pending: HashMap<SendToken, SocketAddr>,
    offers: HashMap<OfferId, Offered>,
    receipts: HashMap<AckToken, (SocketAddr, SendToken)>,
    fetches: Vec<Fetch>,
    trickle: Option<fastrand::Rng>,
    next_receipt: u64,
}

impl InProcess {
    /// How many packets this progress handles.
    fn allowance(&mut self) -> usize {
        match &mut self.trickle {
            None => usize::MAX,
            Some(random) => random.usize(..4),
        }
    }

    fn id<O: Owner>(&mut self, owner: &mut O, address: SocketAddr) -> RemoteId {
        if let Some(&known) = self.ids.get(&address) {
            return known;
        }
        let new = owner.remote_at(address);
        self.add_remote(new, address);
        new
    }

    /// Moves the payloads of accepted offers. The senders' lock is held: their buffers are ours to
    /// read.
    fn fetch_all<O: Owner>(&mut self, owner: &mut O) -> usize {
        let fetches = std::mem::take(&mut self.fetches);
        let count = fetches.len();
        for Fetch { offer, landing } in fetches {
            let outcome = self.fetch(&offer, &landing.buffer);
            owner.on_landed(landing.token, outcome);
        }
        count
    }

    fn fetch(&mut self, offer: &Offered, target: &UserBuffer) -> Result<(), TransferError> {
        let mut network = lock(&self.network);
        let (_, source) = network
            .offered
            .remove(&offer.number)
            .ok_or(TransferError::RemoteLost)?;
        let mut bytes = vec![0; source.length_bytes().min(target.length_bytes())];
        source.drain(0, &mut BytesViewMut::from_slice(&mut bytes));
        target.fill(0, BytesView::from_slice(&bytes));
        network.send(self.address, offer.from, Packet::Done(offer.token));
        Ok(())
    }

    fn handle<O: Owner>(&mut self, owner: &mut O, from: SocketAddr, packet: Packet) {
        if matches!(packet, Packet::Gone) && !self.ids.contains_key(&from) {
            return;
        }
        let remote = self.id(owner, from);
        match packet {
            Packet::Whole {
                op,
                bytes,
                wants_receipt,
            } => {
                let envelope = envelope(remote, &op, bytes.len() as u64);
                self.next_receipt += 1;
                let ack = wants_receipt.then_some(AckToken(self.next_receipt));
                let delivered = owner.on_message(&envelope, BytesView::from_slice(&bytes), ack);
                if let Some(ack) = ack {
                    self.receipts.insert(ack, (from, op.token));
                    if delivered {
                        self.acknowledge(ack);
                    }
                }
            }
            Packet::Offer {
                op,
                length_bytes,
                number,
            } => {
                let offer = Offered {
                    from,
                    token: op.token,
                    number,
                };
                match owner.on_offer(&envelope(remote, &op, length_bytes), OfferId(number)) {
                    Some(landing) => self.fetches.push(Fetch { offer, landing }),
                    None => drop(self.offers.insert(OfferId(number), offer)),
                }
            }
            Packet::Done(token) => {
                if self.pending.remove(&token).is_some() {
                    owner.on_sent(token, Ok(()));
                }
            }
            Packet::Gone => self.lose(owner, remote, from),
        }
    }

    fn lose<O: Owner>(&mut self, owner: &mut O, remote: RemoteId, address: SocketAddr) {
        self.watched.retain(|&watched| watched != remote);
        let failed: Vec<SendToken> = self
            .pending
            .iter()
            .filter(|(_, to)| **to == address)
            .map(|(token, _)| *token)
            .collect();
        for token in failed {
            self.pending.remove(&token);
            owner.on_sent(token, Err(TransferError::RemoteLost));
        }
        self.offers.retain(|_, offer| offer.from != address);
        owner.on_remote_lost(remote, TransferError::RemoteLost);
    }

    /// Reports watched remotes that are not there.
    fn look_after_watched<O: Owner>(&mut self, owner: &mut O) {
        let gone: Vec<(RemoteId, SocketAddr)> = {
            let network = lock(&self.network);
            let address = |remote: &RemoteId| Some((*remote, *self.remotes.get(remote)?));
            let watched = self.watched.iter().filter_map(address);
            watched
                .filter(|(_, address)| !network.mailboxes.contains_key(address))
                .collect()
        };
        for (remote, address) in gone {
            // What the dead sent before it died comes first.
            let waits = lock(&self.network)
                .mailboxes
                .get(&self.address)
                .is_some_and(|mailbox| !mailbox.is_empty());
            if !waits {
                self.lose(owner, remote, address);
            }
        }
    }
}

fn envelope(remote: RemoteId, op: &SendOp, length_bytes: u64) -> Envelope {
    Envelope {
        remote,
        class: op.class,
        tag: op.tag,
        cq_data: op.cq_data,
        length_bytes,
    }
}

impl Peer for InProcess {
    fn post_send(&mut self, op: &SendOp, payload: &UserBuffer) -> Result<Posted, PostError> {
        let to = *self
            .remotes
            .get(&op.remote)
            .ok_or(PostError::Failed(TransferError::Unreachable))?;
        let mut network = lock(&self.network);
        let (conditions, number) = (network.conditions, network.next_number);
        let mailbox = network
            .mailboxes
            .get_mut(&to)
            .ok_or(PostError::Failed(TransferError::RemoteLost))?;
        if mailbox.len() >= conditions.room_count {
            return Err(PostError::Busy);
        }
        let length_bytes = payload.length_bytes();
        let whole = op.inject || length_bytes <= conditions.eager_limit_bytes;
        let wants_receipt = op.level == CompletionLevel::Delivery;
        if whole {
            let mut bytes = vec![0; length_bytes];
            payload.drain(0, &mut BytesViewMut::from_slice(&mut bytes));
            mailbox.push_back((
                self.address,
                Packet::Whole {
                    op: *op,
                    bytes,
                    wants_receipt,
                },
            ));
            if !wants_receipt {
                return Ok(Posted::Complete);
            }
        } else {
            mailbox.push_back((
                self.address,
                Packet::Offer {
                    op: *op,
                    length_bytes: length_bytes as u64,
                    number,
                },
            ));
            network.next_number += 1;
            network
                .offered
                .insert(number, (self.address, payload.clone()));
        }
        self.pending.insert(op.token, to);
        Ok(Posted::Pending)
    }

    fn accept(&mut self, offer: OfferId, landing: Landing) {
        let unknown = Offered {
            from: self.address,
            token: SendToken(u64::MAX),
            number: u64::MAX,
        };
        let offer = self.offers.remove(&offer).unwrap_or(unknown);
        self.fetches.push(Fetch { offer, landing });
    }

    fn discard(&mut self, offer: OfferId) {
        let Some(offer) = self.offers.remove(&offer) else {
            return;
        };
        let landing = Landing {
            token: LandingToken(u64::MAX),
            buffer: UserBuffer::empty(),
        };
        // Fetching nothing tells the sender that it is done.
        let _ = self.fetch(&offer, &landing.buffer);
    }

    fn acknowledge(&mut self, ack: AckToken) {
        if let Some((to, token)) = self.receipts.remove(&ack) {
            lock(&self.network).send(self.address, to, Packet::Done(token));
        }
    }

    fn progress<O: Owner>(&mut self, owner: &mut O) -> usize {
        let mut count = self.fetch_all(owner);
        for _ in 0..self.allowance() {
            let next = lock(&self.network)
                .mailboxes
                .get_mut(&self.address)
                .and_then(VecDeque::pop_front);
            let Some((from, packet)) = next else { break };
            self.handle(owner, from, packet);
            count += 1;
        }
        if !self.watched.is_empty() {
            self.look_after_watched(owner);
        }
        count
    }
}

impl Sleep for InProcess {}

impl Closing for InProcess {}

impl Route for InProcess {
    type Settings = ();
    type Statistics = ();

    fn open((): &(), place: Place) -> Result<Self, RouteError> {
        let wanted = place.address;
        let wanted = wanted.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0)));
        let network = Network::at(wanted.ip());
        let mut inside = lock(&network);
        let Some(address) = inside.enter(wanted) else {
            return Err(RouteError {
                kind: RouteErrorKind::AddressInUse,
                words: format!("{wanted} is taken by another endpoint of this process"),
            });
        };
        let seed = inside.conditions.trickle_seed;
        let trickle = seed.map(|seed| seed ^ u64::from(address.port()) << 32);
        drop(inside);
        Ok(Self {
            network,
            address,
            remotes: HashMap::new(),
            ids: HashMap::new(),
            watched: Vec::new(),
            pending: HashMap::new(),
            offers: HashMap::new(),
            receipts: HashMap::new(),
            fetches: Vec::new(),
            trickle: trickle.map(fastrand::Rng::with_seed),
            next_receipt: 0,
        })
    }

    fn add_remote(&mut self, remote: RemoteId, address: SocketAddr) {
        self.remotes.insert(remote, address);
        self.ids.insert(address, remote);
    }

    fn local_address(&self) -> SocketAddr {
        self.address
    }

    fn name_again(&mut self, _: RemoteId) {}

    fn watch(&mut self, remote: RemoteId, on: bool) {
        self.watched.retain(|&watched| watched != remote);
        if on {
            self.watched.push(remote);
        }
    }

    fn statistics(&self) {}
}

impl Drop for InProcess {
    fn drop(&mut self) {
        lock(&self.network).leave(self.address);
    }
}
