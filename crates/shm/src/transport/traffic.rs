// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All that is under way with remotes, and one round of progress: first it takes messages from the
//! lanes that it polls and gives them to the owner at once, then it moves on everything else that
//! can move. Called through `Peer::progress`.
//!
//! An empty round costs one load for each polled lane, and one load for all doorbells together.

use std::time::Instant;

use weft_contract::{Owner, RemoteId, TransferError};

use crate::contact::contacts::Contacts;
use crate::contact::liveness::{self, Liveness, Newcomer};
use crate::contact::own::Own;
use crate::copy::feeds::Feeds;
use crate::copy::fetch::Fetch;
use crate::copy::fetches::Fetches;
use crate::copy::helps::Helps;
use crate::copy::methods::{CopyMethods, Wanted};
use crate::protocol::cell::{Control, Malformed, Transfer};
use crate::protocol::copy_method::CopyMethod;
use crate::receive::offers::{Accepted, Offer};
use crate::receive::receives::Receives;
use crate::receive::request::Request;
use crate::receive::stream::StreamEnd;
use crate::receive::streams::Step;
use crate::receive::take::take;
use crate::send::data::DataSends;
use crate::send::post::Sender;
use crate::send::sends::Sends;
use crate::settings::Settings;

/// Messages that a round takes from one lane before it goes to the next lane. Chosen: it bounds the
/// time of one call, and still spreads the cost of changing lanes over many messages.
const LANE_BUDGET: usize = 32;

/// All parts of the crate in which operations can be under way.
#[derive(Debug)]
pub(super) struct Traffic {
    pub(super) contacts: Contacts,
    pub(super) liveness: Liveness,
    /// Sending: sends that wait for their remote, how messages leave, and payload that remotes
    /// asked for.
    pub(super) sends: Sends,
    pub(super) sender: Sender,
    pub(super) data: DataSends,
    pub(super) feeds: Feeds,
    pub(super) helps: Helps,
    /// Receiving: messages that are not whole yet, and how their payload is fetched.
    pub(super) receives: Receives,
    pub(super) fetches: Fetches,
    pub(super) methods: CopyMethods,
    /// Remotes that died or broke the protocol.
    pub(super) lost: u64,
}

impl Traffic {
    pub(super) fn new(own: Own, settings: &Settings) -> Self {
        Self {
            contacts: Contacts::new(own, settings.has_other_route),
            liveness: Liveness::default(),
            sends: Sends::default(),
            sender: Sender::new(settings),
            data: DataSends::default(),
            feeds: Feeds::default(),
            helps: Helps::new(settings.single_copy),
            receives: Receives::default(),
            fetches: Fetches::default(),
            methods: CopyMethods::new(settings.single_copy),
            lost: 0,
        }
    }

    /// Whether no polled lane has a message, no bell rang and nothing is under way. Most rounds
    /// find nothing, so that is decided first, in few instructions. Fast path.
    #[inline(always)]
    pub(super) fn is_quiet(&self) -> bool {
        !self.contacts.lanes.have_message()
            && !self.contacts.own.doorbell().is_rung()
            && !self.has_work()
    }

    /// Whether anything is under way that a call of progress can move.
    #[inline(always)]
    fn has_work(&self) -> bool {
        // `|` and not `||`: one branch instead of six.
        self.contacts.agenda.count()
            | self.fetches.count()
            | self.receives.offers.accepted_count()
            | self.feeds.count()
            | self.data.count()
            | self.helps.count()
            != 0
    }

    /// One round of progress. Fast path.
    #[inline(always)]
    pub(super) fn round<O: Owner>(&mut self, owner: &mut O) -> usize {
        let mut events = 0;
        let mut index = 0;
        while let Some(slot) = self.contacts.lanes.polled(index) {
            events += self.receive_from(slot, owner);
            index += 1;
        }
        if self.contacts.own.doorbell().is_rung() {
            events += self.answer_bells(owner);
        }
        if self.has_work() {
            events += self.work(owner);
        }
        events
    }

    /// Takes the cells of one lane. This small loop takes inline messages; for other cells it calls
    /// a function.
    #[inline(always)]
    fn receive_from<O: Owner>(&mut self, slot: usize, owner: &mut O) -> usize {
        let mut events = 0;
        loop {
            let Some(lane) = self.contacts.lanes.get_mut(slot) else {
                return events;
            };
            if lane.take_inline(&mut events, LANE_BUDGET, owner) {
                lane.settle();
                return events;
            }
            events += 1;
            if !self.receive_other(slot, owner, events < LANE_BUDGET) {
                return events;
            }
        }
    }

    /// The same, not inlined, for places where speed does not matter.
    #[inline(never)]
    pub(super) fn receive_seldom<O: Owner>(&mut self, slot: usize, owner: &mut O) -> usize {
        self.receive_from(slot, owner)
    }

    /// Takes a cell that is not an inline message. Returns whether to go on with this lane: never
    /// without `may_be_more`, which says that the lane's budget is not used up.
    #[inline(never)]
    fn receive_other<O: Owner>(&mut self, slot: usize, owner: &mut O, may_be_more: bool) -> bool {
        let Some(lane) = self.contacts.lanes.get_mut(slot) else {
            return false;
        };
        let remote = lane.remote();
        if !lane.see() {
            return false;
        }
        let is_answered = self.contacts.remote(remote).attached().is_some();
        if !is_answered && self.contacts.refuses(slot) {
            return false;
        }
        let Some((lane, opposite)) = self.contacts.lane_from(slot) else {
            return false;
        };
        let request = take(lane, opposite, &mut self.receives, &mut self.sends, owner);
        let goes_on = may_be_more
            && matches!(
                request,
                Request::None | Request::Finished(_) | Request::GoOn(_)
            );
        if !goes_on {
            lane.settle();
        }
        match request {
            Request::None => {}
            Request::Finished(send_id) => self.helps.end(send_id),
            request => self.grant(remote, request, owner),
        }
        if let Some(lane) = self.contacts.lanes.get(slot).filter(|_| goes_on) {
            // Coming back through the application takes longer.
            lane.await_rest(self.contacts.own.node().patience());
        }
        goes_on
    }

    #[cold]
    fn grant<O: Owner>(&mut self, remote: RemoteId, request: Request, owner: &mut O) {
        let how = match request {
            Request::None | Request::Finished(_) => return,
            Request::Finish(send_id) => return self.contacts.answer(remote, Control::fin(send_id)),
            Request::Transfer(cts) => {
                let (contacts, sends) = (&self.contacts, &mut self.sends);
                match cts.by {
                    Transfer::Pipe { .. } => {
                        self.helps.end(cts.send_id as usize);
                        self.feeds.start(contacts, sends, &cts);
                    }
                    Transfer::Lane { number } => self.data.start(sends, &cts, number),
                    Transfer::Copy { .. } => self.helps.start(contacts, sends, &cts),
                }
                return;
            }
            Request::GoOn(stream) => return self.go_on(stream, owner),
            Request::Bye => return self.lose(remote, TransferError::RemoteLost, owner),
            Request::Corrupt => String::new(),
            Request::Malformed(Malformed { what, value }) => format!(" ({what} {value})"),
        };
        let address = self.contacts.remote(remote).address();
        self.contacts.own.report(&format!(
            "the process at {address} broke the protocol{how}; it is cut off"
        ));
        self.lose(remote, TransferError::Corrupt, owner);
    }

    /// Looks at the lanes whose bells rang, and polls them from now on.
    #[cold]
    pub(super) fn answer_bells<O: Owner>(&mut self, owner: &mut O) -> usize {
        let mut slots = Vec::new();
        self.contacts
            .own
            .doorbell()
            .collect(|slot| slots.push(slot));
        let mut events = 0;
        for slot in slots {
            if self.contacts.lanes.is_new(slot) {
                self.adopt(slot, owner);
            }
            if self.contacts.lanes.start_polling(slot) {
                events += self.receive_seldom(slot, owner);
            }
        }
        events
    }

    /// Finds out which process claimed a slot.
    fn adopt<O: Owner>(&mut self, slot: usize, owner: &mut O) {
        let Some(claimant) = self.contacts.own.slots().claimant(slot) else {
            return;
        };
        let remote = owner.remote_at(claimant.address);
        self.contacts.remotes.add(remote, claimant.address);
        match liveness::meet(&self.contacts, remote, &claimant) {
            Newcomer::Known => {}
            Newcomer::Other => self.part(remote, owner),
            Newcomer::Late => return, // its slot is freed with the next look after the dead
        }
        if self.contacts.remote(remote).slot().is_some() {
            self.drain(remote, owner);
        }
        if self.contacts.adopt(slot, claimant, remote) {
            self.fetches.skip_first_lap(remote);
            self.receives.streams.skip_first_lap(remote);
        }
    }

    #[inline(never)]
    fn work<O: Owner>(&mut self, owner: &mut O) -> usize {
        for (remote, why) in self.contacts.agenda.take_lost() {
            self.give_up(remote, why, owner);
        }
        let mut events = self.start_accepted(owner);
        let (contacts, sends) = (&mut self.contacts, &mut self.sends);
        events += self.sender.send_waiting(contacts, sends, owner);
        events += self.data.advance(contacts, sends, owner);
        let is_fetching = self.fetches.count() > 0;
        events += self.feeds.advance(sends, is_fetching, owner);
        if !is_fetching {
            // Not while messages come to us, since this processor has to copy those: sharing the
            // copy would then only make two short system calls out of one long one.
            events += self.helps.advance(contacts);
        }
        let is_feeding = self.feeds.count() > 0;
        let fetched = self
            .fetches
            .advance(contacts, sends, &mut self.methods, is_feeding, owner);
        match fetched {
            Ok(moved) => events + moved,
            Err(broken) => {
                self.lose(broken.remote, broken.why, owner);
                events + 1
            }
        }
    }

    /// Starts to fetch the messages that the owner accepted since the last call.
    pub(super) fn start_accepted<O: Owner>(&mut self, owner: &mut O) -> usize {
        let mut events = 0;
        for Accepted { offer, landing } in self.receives.offers.take_accepted() {
            events += 1;
            match offer {
                Offer::Remote(offer) => {
                    let address = self.contacts.remote(offer.remote).address();
                    let is_own = self.contacts.own.is_at(address);
                    let fetch = Fetch::new(offer, landing, 0);
                    self.fetches
                        .start(if is_own { fetch.out_of_own() } else { fetch });
                }
                Offer::Stream(index) => {
                    let end = self.receives.streams.land(index, landing);
                    end_stream(&mut self.contacts, end, owner);
                    self.go_on(index, owner);
                }
            }
        }
        events
    }

    /// A message with early data has more of its data, or its receive is known now: asks the sender
    /// for the rest, or ends the message.
    fn go_on<O: Owner>(&mut self, index: usize, owner: &mut O) {
        let (contacts, streams) = (&mut self.contacts, &mut self.receives.streams);
        if let Some(undecided) = streams.undecided(index) {
            let offer = &undecided.offer;
            let of_its = self
                .fetches
                .remotes()
                .filter(|&remote| remote == offer.remote);
            let wanted = Wanted::of(undecided.wanted_bytes, &undecided.buffer, of_its.count());
            let (method, lesson) = self
                .methods
                .choose(contacts, &mut self.sends, offer, &wanted);
            streams.decide(contacts, index, method, lesson);
        }
        match streams.go_on(index) {
            Step::Nothing => {}
            Step::Fetch(fetch) => self.fetches.start(fetch),
            Step::End(end) => end_stream(contacts, end, owner),
            Step::Landed(end, timed) => {
                if let Some(lane) = contacts.lane_of(timed.remote) {
                    lane.begun().end_data();
                }
                let was_warm = streams.note_lap(timed.remote, timed.bytes);
                let charged = self.methods.charge(Some(timed.started), Instant::now());
                // The tuner learns nothing from a message beside which another one came.
                if was_warm && self.fetches.count() == 0 && streams.count() == 0 {
                    let bytes = timed.bytes as u64;
                    self.methods
                        .learn(CopyMethod::Pipelined, bytes, charged, timed.lesson);
                }
                end_stream(contacts, end, owner);
            }
        }
    }
}

/// A message that came in pieces has ended.
fn end_stream<O: Owner>(contacts: &mut Contacts, end: StreamEnd, owner: &mut O) {
    if let Some(token) = end.landed {
        owner.on_landed(token, Ok(()));
    }
    if let Some(due) = end.finish {
        contacts.answer(due.remote, Control::fin(due.send_id));
    }
}
