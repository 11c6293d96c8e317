// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The end of a remote: noticing it, taking what it sent before, ending all that was under way with
//! it in every room, freeing its lane.
//!
//! Called at ticks, to look after the living, and by whoever finds a remote gone or its words
//! broken.

use weft_contract::{Landing, Owner, RemoteId, TransferError, TurnedAway};

use crate::contact::lives;
use crate::send::refusal;
use crate::transport::traffic::Traffic;

impl Traffic {
    /// Asks for every remote that somebody waits for whether it still lives, and for some of the
    /// others.
    pub(super) fn check_lives<O: Owner>(&mut self, owner: &mut O) {
        let under_way = self.sends.remotes().chain(self.fetches.remotes());
        let under_way = under_way.chain(self.receives.streams.remotes());
        for remote in self.lives.cared_for(&self.contacts, under_way) {
            if lives::is_gone(&mut self.contacts, remote) {
                self.drain(remote, owner);
                self.lose(remote, TransferError::RemoteLost, owner);
            }
        }
    }

    /// Tells the owner of a remote that was given up where the owner could not be told. If it is
    /// dead, what it has sent is taken first, and its lane is freed.
    pub(super) fn give_up<O: Owner>(
        &mut self,
        remote: RemoteId,
        why: TransferError,
        owner: &mut O,
    ) {
        let own = self.contacts.own.identity();
        let entry = self.contacts.remote(remote);
        if entry.is_replaced() {
            return self.part(remote, owner);
        }
        if entry.is_to_be_turned_away() {
            let is_fetched = self.fetches.remotes().any(|other| other == remote);
            if !is_fetched && !self.receives.owe_answers(remote) {
                return self.turn_away(remote, owner);
            }
            self.contacts.remote_mut(remote).fail(why);
        } else if entry.has_refused(own) {
            return self.turn_away(remote, owner);
        }
        let entry = self.contacts.remote_mut(remote);
        if entry.failed().is_none() {
            return; // another process has taken its address over
        }
        if why == TransferError::RemoteLost && entry.slot().is_some() {
            entry.forget();
            self.drain(remote, owner);
            self.lose(remote, why, owner);
        } else {
            entry.fail(why);
            // It may live and go on sending, but what needs an answer of ours never comes.
            for landing in self.take_landings(remote, true) {
                owner.on_landed(landing.token, Err(why));
            }
            owner.on_remote_lost(remote, why);
        }
    }

    /// Gives the owner back what a remote has not received, to be sent another way.
    #[cold]
    fn turn_away<O: Owner>(&mut self, remote: RemoteId, owner: &mut O) {
        let why = TransferError::NoMemory;
        let left = self.contacts.remote_mut(remote).turn_away();
        let mut returned = Vec::new();
        if let Some(mut attached) = left.attached {
            self.sender.forget_lane(attached.lane());
            let (sends, waiting) = (&mut self.sends, left.waiting);
            let (back, lost) = refusal::take_back(remote, &mut attached, waiting, sends);
            returned = back;
            for token in lost {
                owner.on_sent(token, Err(why));
            }
        }
        self.contacts.agenda.forget(remote);
        owner.on_turned_away(TurnedAway {
            remote,
            why,
            sends: returned,
            was_watched: left.was_watched,
        });
    }

    /// Takes everything that a remote has sent so far, before it is given up. Its first word may
    /// have been its last: then its lane is not known yet, and its bell rings.
    pub(super) fn drain<O: Owner>(&mut self, remote: RemoteId, owner: &mut O) {
        if self.contacts.remote(remote).slot().is_none() {
            self.answer_bells(owner);
        }
        while let Some(slot) = self.contacts.remote(remote).slot() {
            if self.receive_seldom(slot, owner) == 0 {
                return;
            }
        }
    }

    /// Gives a remote up: everything under way with it fails, its lane is free for another.
    #[cold]
    pub(super) fn lose<O: Owner>(&mut self, remote: RemoteId, why: TransferError, owner: &mut O) {
        let Some(left) = self.contacts.remote_mut(remote).lose(why) else {
            return;
        };
        self.lost += 1;
        if let Some(attached) = left.attached {
            self.sender.forget_lane(attached.lane());
        }
        self.contacts.agenda.forget(remote);
        self.feeds.lose(remote);
        self.data.lose(remote);
        self.receives.receipts.lose(remote);
        self.helps.lose(remote);
        for token in self.sends.lose(remote) {
            owner.on_sent(token, Err(why));
        }
        // A waiting send that asked for a receipt is among the others already.
        for send in left.waiting.iter().filter(|send| send.outgoing.is_none()) {
            owner.on_sent(send.op.token, Err(why));
        }
        for landing in self.take_landings(remote, false) {
            owner.on_landed(landing.token, Err(why));
        }
        let contacts = &mut self.contacts;
        match left.slot {
            Some(slot) if why == TransferError::RemoteLost => {
                contacts.lanes.free(slot, &contacts.own);
            }
            Some(slot) => contacts.lanes.shut(slot),
            None => {}
        }
        owner.on_remote_lost(remote, why);
    }

    /// Loses the process that was at the address of a remote, so that the one that is there now can
    /// be reached.
    pub(super) fn part<O: Owner>(&mut self, remote: RemoteId, owner: &mut O) {
        let entry = self.contacts.remote_mut(remote);
        if entry.failed().is_some() {
            entry.forget();
        }
        if entry.slot().is_some() {
            self.drain(remote, owner);
        }
        self.lose(remote, TransferError::RemoteLost, owner);
        self.contacts.remote_mut(remote).forget();
    }

    /// Receives of the owner that were being filled by a remote; forgets what it announced. If its
    /// lane stays, pieces that still come are dropped.
    fn take_landings(&mut self, remote: RemoteId, lane_stays: bool) -> Vec<Landing> {
        let mut landings = self.receives.lose(remote, lane_stays);
        landings.extend(self.fetches.lose(&self.contacts, remote));
        landings
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use weft_contract::*;
    use weft_memory::{BytesView, BytesViewMut, UserBuffer};

    use crate::contact::remote::Link;
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
        ours.traffic.check_lives(&mut told);
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
        let (remote, why) = (RemoteId(0), TransferError::NoMemory);
        let contacts = &mut ours.traffic.contacts;
        contacts.remote_mut(remote).set_link(Link::Failed(why));
        contacts.agenda.note_lost(remote, why);
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
