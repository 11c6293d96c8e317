// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The end of a remote: noticing it, taking what it sent before, ending all that was under way with it, freeing its lane.
//!
//! Called by lives, which looks after the living now and then, and by whoever finds a remote gone or its words broken (receive,
//! fetch, contact).

use weft_contract::{Landing, Owner, RemoteId, TransferError, TurnedAway};
use weft_os::crash_point;

use crate::own::bell_name;
use crate::refusal;
use crate::remote::{Attempt, Link};
use crate::rendezvous::Offer;
use crate::stream::Target;
use crate::transport::Transport;

impl Transport {
    /// Tells the owner of a remote that was given up where the owner could not be told. If it is dead, what it has sent is
    /// taken first, and its lane is freed.
    pub(crate) fn give_up<O: Owner>(
        &mut self,
        remote: RemoteId,
        why: TransferError,
        owner: &mut O,
    ) {
        if self.remotes[remote.index()].attempt.is_replaced {
            return self.part(remote, owner);
        }
        let entry = &mut self.remotes[remote.index()];
        if matches!(entry.link, Link::Elsewhere { is_told: false }) {
            if !self.transfers.owe_answers(remote) {
                return self.turn_away(remote, owner);
            }
            entry.link = Link::Failed(why);
        } else if entry.has_refused(&self.own.identity) {
            return self.turn_away(remote, owner);
        }
        if !matches!(entry.link, Link::Failed(_)) {
            return; // another process has taken its address over
        }
        if why == TransferError::RemoteLost && entry.inbound.is_some() {
            entry.link = Link::Unknown;
            self.drain(remote, owner);
            self.lose(remote, why, owner);
        } else {
            entry.watched = false;
            // It may live and go on sending, but what needs an answer of ours never comes.
            for landing in self.take_landings_of(remote, true) {
                owner.on_landed(landing.token, Err(why));
            }
            owner.on_remote_lost(remote, why);
        }
    }

    /// Gives the owner back what a remote has not received, to be sent another way.
    #[cold]
    fn turn_away<O: Owner>(&mut self, remote: RemoteId, owner: &mut O) {
        let why = TransferError::NoMemory;
        let entry = &mut self.remotes[remote.index()];
        let was_watched = std::mem::take(&mut entry.watched);
        entry.controls.clear();
        let waiting = std::mem::take(&mut entry.waiting);
        let told = Link::Elsewhere { is_told: true };
        let mut sends = Vec::new();
        if let Link::Ready(attached) = std::mem::replace(&mut entry.link, told) {
            self.wide_lanes -= u32::from(attached.is_wide()).min(self.wide_lanes);
            let (returned, lost) =
                refusal::take_back(remote, *attached, waiting, &mut self.transfers);
            sends = returned;
            for token in lost {
                owner.on_sent(token, Err(why));
            }
        }
        self.sending.retain(|&other| other != remote);
        owner.on_turned_away(TurnedAway {
            remote,
            why,
            sends,
            was_watched,
        });
    }

    /// Whether the lane of a slot is refused: the cell at its front needs an answer, and its sender
    /// cannot be answered. Slow path.
    #[cold]
    pub(crate) fn refuses(&mut self, slot: usize) -> bool {
        let lane = self.inbound[slot].as_ref();
        let Some(lane) = lane.filter(|lane| lane.needs_answer()) else {
            return false;
        };
        let (remote, incarnation) = (lane.remote, lane.claimant.incarnation);
        self.contact(remote);
        let entry = &mut self.remotes[remote.index()];
        if !matches!(entry.link, Link::Elsewhere { .. }) {
            return false;
        }
        entry.inbound = None;
        if let Some(mut lane) = self.inbound[slot].take() {
            lane.consumer.settle();
        }
        self.polled.retain(|&other| other != slot);
        self.own.region.slots().refuse(slot);
        // It may sleep.
        self.own.ringer.ring(&bell_name(incarnation));
        true
    }

    /// Looks whether somebody who was sent to cannot answer. Slow path.
    pub(crate) fn hear_refusals(&mut self) {
        let own = &self.own.identity;
        if let Some(remote) = refusal::refusing(&self.transfers, &self.remotes, own) {
            self.lost_again.push((remote, TransferError::NoMemory));
        }
    }

    /// Takes everything that a remote has sent so far, before it is given up. Its first word may have been its last: then its lane is
    /// not known yet, and its bell rings.
    pub(crate) fn drain<O: Owner>(&mut self, remote: RemoteId, owner: &mut O) {
        if self.remotes[remote.index()].inbound.is_none() {
            self.answer_bells(owner);
        }
        while let Some(slot) = self.remotes[remote.index()].inbound {
            if self.receive_seldom(slot, owner) == 0 {
                return;
            }
        }
    }

    /// Gives a remote up: everything under way with it fails, its lane is free for another.
    #[cold]
    pub(crate) fn lose<O: Owner>(&mut self, remote: RemoteId, why: TransferError, owner: &mut O) {
        if matches!(self.remotes[remote.index()].link, Link::Failed(_)) {
            return;
        }
        self.statistics.lost += 1;
        let entry = &mut self.remotes[remote.index()];
        entry.link = Link::Failed(why);
        entry.watched = false;
        entry.attempt = Attempt::default();
        entry.controls.clear();
        let waiting = std::mem::take(&mut entry.waiting);
        let inbound = entry.inbound.take();
        self.sending.retain(|&other| other != remote);
        self.pipes.feeds.retain(|feed| feed.remote != remote);
        self.parts.retain(|parts| parts.remote != remote);
        for (_, receipt) in &mut self.transfers.receipts {
            receipt.is_void |= receipt.remote == remote;
        }
        self.transfers.pushes.retain(|push| push.remote != remote);
        let mut lost_sends = Vec::new();
        self.transfers.outgoing.retain(|_, outgoing| {
            let keep = outgoing.remote != remote;
            if !keep {
                lost_sends.push(outgoing.token);
            }
            keep
        });
        // A waiting send that asked for a receipt is among the outgoing already.
        lost_sends.extend(
            waiting
                .iter()
                .filter(|waiting| waiting.outgoing.is_none())
                .map(|waiting| waiting.op.token),
        );
        for token in lost_sends {
            owner.on_sent(token, Err(why));
        }
        for landing in self.take_landings_of(remote, false) {
            owner.on_landed(landing.token, Err(why));
        }
        match inbound {
            Some(slot) if why == TransferError::RemoteLost => self.free_lane(slot),
            // It lives, and may go on writing there: nobody else gets the slot before it is dead
            // (shm-layout, clause 3).
            Some(slot) => {
                self.inbound[slot] = None;
                self.polled.retain(|&other| other != slot);
                self.housekeeping.shut.insert(slot);
            }
            None => {}
        }
        owner.on_remote_lost(remote, why);
    }

    /// Gives the lane of one that is gone to whoever claims its slot next.
    pub(crate) fn free_lane(&mut self, slot: usize) {
        if let Some(mut lane) = self.inbound[slot].take() {
            crash_point!(45, "loss: noticed, the lane not reset");
            lane.consumer.reset();
            crash_point!(46, "loss: the lane is reset, its slot not free");
            self.polled.retain(|&other| other != slot);
            self.own.region.slots().free(slot);
        }
    }

    /// Receives of the owner that were being filled by a remote, and forgets its offers.
    /// If its lane stays, pieces that still come are dropped.
    fn take_landings_of(&mut self, remote: RemoteId, lane_stays: bool) -> Vec<Landing> {
        let transfers = &mut self.transfers;
        let mut landings = Vec::new();
        let streams = &transfers.streams;
        let is_of_remote = |offer: &Offer| match offer {
            Offer::Remote(offer) => offer.remote == remote,
            Offer::Stream(index) => streams
                .get(*index)
                .is_some_and(|stream| stream.remote == remote),
        };
        transfers.offers.retain(|_, offer| !is_of_remote(offer));
        for (offer, landing) in std::mem::take(&mut transfers.accepted) {
            if is_of_remote(&offer) {
                landings.push(landing);
            } else {
                transfers.accepted.push((offer, landing));
            }
        }
        let indices: Vec<usize> = transfers
            .streams
            .iter()
            .filter(|(_, s)| s.remote == remote)
            .map(|(index, _)| index)
            .collect();
        for index in indices {
            let target = if lane_stays {
                std::mem::replace(&mut transfers.streams[index].target, Target::Nowhere)
            } else {
                transfers.streams.remove(index).target
            };
            if let Target::Landing(landing) = target {
                landings.push(landing);
            }
        }
        let mut index = 0;
        while index < self.transfers.fetches.len() {
            if self.transfers.fetches[index].offer.remote != remote {
                index += 1;
                continue;
            }
            // The others keep their order: what follows in a pipe goes by it.
            let fetch = self.transfers.fetches.remove(index);
            self.abandon(fetch.stage, remote);
            landings.push(fetch.landing);
        }
        landings
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use weft_contract::*;
    use weft_memory::{BytesView, BytesViewMut, UserBuffer};

    use crate::remote::Link;
    use crate::sink::{open_with, tagged};
    use crate::{Settings, SingleCopy, Transport};

    /// What it was told, in order; offers go into its buffer.
    #[derive(Default)]
    struct Told(Vec<&'static str>, Option<UserBuffer>);

    impl Owner for Told {
        fn on_message(&mut self, _: &Envelope, _: BytesView<'_>, _: Option<AckToken>) -> bool {
            self.0.push("word");
            true
        }
        fn on_offer(&mut self, _: &Envelope, _: OfferId) -> Option<Landing> {
            self.0.push("offer");
            let (token, buffer) = (LandingToken(1), self.1.take()?);
            Some(Landing { token, buffer })
        }
        fn on_landed(&mut self, _: LandingToken, outcome: Result<(), TransferError>) {
            self.0
                .push(if outcome.is_ok() { "landed" } else { "failed" });
        }
        fn on_sent(&mut self, _: SendToken, _: Result<(), TransferError>) {}
        fn on_remote_lost(&mut self, _: RemoteId, _: TransferError) {
            self.0.push("lost");
        }
        fn remote_at(&mut self, _: SocketAddr) -> RemoteId {
            RemoteId(0)
        }
    }

    fn say_a_word(transport: &mut Transport) {
        let op = tagged(1, CompletionLevel::Transmit);
        while transport
            .post_send(&op, &UserBuffer::leaked(&[8]))
            .is_err_and(|error| error == PostError::Busy)
        {}
    }

    #[test]
    fn first_and_last_word_of_one_that_leaves_comes_before_its_loss() {
        let [mut ours, mut theirs] = [(), ()].map(|()| open_with(Settings::default()));
        ours.add_remote(RemoteId(0), theirs.local_address());
        theirs.add_remote(RemoteId(0), ours.local_address());
        say_a_word(&mut ours);
        ours.watch(RemoteId(0), true);
        // It contacts us between our look at the bells and our look after the living.
        say_a_word(&mut theirs);
        drop(theirs);
        let mut told = Told::default();
        ours.check_lives(&mut told);
        assert_eq!(told.0, ["word", "lost"]);
    }

    /// Its lane to us works, but we can reach it no more: it has no slot left, or we no addresses.
    #[test]
    fn a_receive_that_needs_our_answer_ends_when_its_sender_cannot_be_answered() {
        const LONG: usize = 3_000_000;
        let [mut ours, mut theirs] = [(), ()].map(|()| {
            open_with(Settings {
                single_copy: SingleCopy::Never,
                ..Settings::default()
            })
        });
        theirs.add_remote(RemoteId(0), ours.local_address());
        ours.add_remote(RemoteId(0), theirs.local_address());
        let op = tagged(1, CompletionLevel::Transmit);
        let payload = UserBuffer::leaked(&[LONG]);
        assert_eq!(theirs.post_send(&op, &payload), Ok(Posted::Pending));
        let mut told = Told(Vec::new(), Some(UserBuffer::leaked(&[LONG])));
        while told.0.is_empty() {
            ours.progress(&mut told);
        }
        ours.remotes[0].link = Link::Failed(TransferError::NoMemory);
        ours.lost_again.push((RemoteId(0), TransferError::NoMemory));
        for _ in 0..100 {
            ours.progress(&mut told);
            theirs.progress(&mut Told::default());
        }
        assert_eq!(told.0, ["offer", "failed", "lost"]);
    }

    /// Takes each offer into a buffer of its own, by its tag.
    struct Taker {
        senders: [SocketAddr; 2],
        buffers: Vec<UserBuffer>,
        offered: usize,
        landed: Vec<u64>,
        lost: usize,
    }

    impl Owner for Taker {
        fn on_message(&mut self, _: &Envelope, _: BytesView<'_>, _: Option<AckToken>) -> bool {
            true
        }
        fn on_offer(&mut self, envelope: &Envelope, _: OfferId) -> Option<Landing> {
            self.offered += 1;
            Some(Landing {
                token: LandingToken(envelope.tag),
                buffer: self.buffers[envelope.tag as usize].clone(),
            })
        }
        fn on_landed(&mut self, landing: LandingToken, outcome: Result<(), TransferError>) {
            self.landed.extend(outcome.is_ok().then_some(landing.0));
        }
        fn on_sent(&mut self, _: SendToken, _: Result<(), TransferError>) {}
        fn on_remote_lost(&mut self, _: RemoteId, _: TransferError) {
            self.lost += 1;
        }
        fn remote_at(&mut self, address: SocketAddr) -> RemoteId {
            RemoteId(u32::from(address == self.senders[1]))
        }
    }

    /// Several messages of one sender go through one pipe, in their order.
    #[test]
    fn messages_of_others_come_into_their_own_receives_when_a_remote_is_lost_among_them() {
        const LONG: usize = 200_000;
        let settings = || Settings {
            address: Some(([127, 0, 0, 1], 0).into()),
            single_copy: SingleCopy::Never,
            ..Settings::default()
        };
        let [mut ours, mut dying, mut other] =
            [(), (), ()].map(|()| Transport::open(settings()).expect("open"));
        let senders = [dying.local_address(), other.local_address()];
        let mut taker = Taker {
            senders,
            buffers: (0..4).map(|_| UserBuffer::leaked(&[LONG])).collect(),
            offered: 0,
            landed: Vec::new(),
            lost: 0,
        };
        for (id, address) in senders.into_iter().enumerate() {
            ours.add_remote(RemoteId(id as u32), address);
        }
        for sender in [&mut dying, &mut other] {
            sender.add_remote(RemoteId(0), ours.local_address());
        }
        for tag in 0..4_u64 {
            let payload = UserBuffer::leaked(&[LONG]);
            payload.fill(0, BytesView::from_slice(&[tag as u8 + 1; LONG]));
            let op = SendOp {
                remote: RemoteId(0),
                class: Class::Tagged,
                tag,
                cq_data: None,
                level: CompletionLevel::Transmit,
                token: SendToken(tag),
                inject: false,
            };
            let sender = if tag == 0 { &mut dying } else { &mut other };
            while sender.post_send(&op, &payload) == Err(PostError::Busy) {
                ours.progress(&mut taker);
            }
            // Their places in our list of what comes in are in this order.
            while taker.offered as u64 <= tag {
                ours.progress(&mut taker);
            }
        }
        for _ in 0..4 {
            ours.progress(&mut taker);
        }
        drop(dying);
        while taker.lost == 0 {
            ours.progress(&mut taker);
        }
        while taker.landed.len() < 3 {
            other.progress(&mut Told::default());
            ours.progress(&mut taker);
        }
        assert_eq!(taker.landed, [1, 2, 3]);
        for tag in taker.landed {
            let mut bytes = vec![0; LONG];
            let buffer = &taker.buffers[tag as usize];
            buffer.drain(0, &mut BytesViewMut::from_slice(&mut bytes));
            assert!(bytes == [tag as u8 + 1; LONG], "message {tag}");
        }
    }
}
