// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The end of a remote: noticing it, taking what it sent before, ending all that was under way with
//! it in every part of the crate, freeing its lane.
//!
//! Called at ticks, to look after the living, and by whoever finds a remote gone or its words
//! broken.

use weft_contract::{Landing, Owner, RemoteId, TransferError, TurnedAway};

use crate::contact::liveness;
use crate::receive::streams::LostLane;
use crate::send::refusal;
use crate::transport::traffic::Traffic;

impl Traffic {
    /// Asks for every remote that somebody waits for whether it still lives, and for some of the
    /// others.
    pub(super) fn check_lives<O: Owner>(&mut self, owner: &mut O) {
        let under_way = self.sends.remotes().chain(self.fetches.remotes());
        let under_way = under_way.chain(self.receives.streams.remotes());
        for remote in self.liveness.cared_for(&self.contacts, under_way) {
            if liveness::is_gone(&mut self.contacts, remote) {
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
            for landing in self.take_landings(remote, LostLane::Stays, owner) {
                owner.on_landed(landing.token, Err(why));
            }
            owner.on_remote_lost(remote, why);
        }
    }

    /// Gives the owner back what a remote has not received, to be sent by another route.
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

    /// Gives a remote up: what is whole already gets to its receive, everything else under way with
    /// it fails, its lane is free for another.
    #[cold]
    pub(super) fn lose<O: Owner>(&mut self, remote: RemoteId, why: TransferError, owner: &mut O) {
        if why == TransferError::RemoteLost && self.contacts.remote(remote).failed().is_none() {
            // Their sender was told that they are over: streams that the owner has named a receive
            // for since the last round, and what lies in pipes.
            self.start_accepted(owner);
            let (contacts, methods) = (&mut self.contacts, &mut self.methods);
            self.fetches.take_rest(contacts, methods, remote, owner);
        }
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
        for landing in self.take_landings(remote, LostLane::Ends, owner) {
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

    /// Receives of the owner that were being filled by a remote; forgets what it announced, but for
    /// what is whole, which the owner gets.
    fn take_landings<O: Owner>(
        &mut self,
        remote: RemoteId,
        lane: LostLane,
        owner: &mut O,
    ) -> Vec<Landing> {
        self.receives.hand_over(remote, owner);
        let mut landings = self.receives.lose(remote, lane);
        landings.extend(self.fetches.lose(&self.contacts, remote));
        landings
    }
}
