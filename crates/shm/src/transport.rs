// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The transport as a whole: only this module uses all parts of the crate, and it gives each part
//! what that part needs. Here are opening and closing, and the traits of a route (`Peer`, `Route`,
//! `Sleep`, `DirectAccess`), whose calls are only passed on.
//!
//! - [`traffic`]: one round of progress; [`loss`]: the end of a remote
//! - [`published`]: what tools see of it

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::fd::RawFd;

use weft_contract::{
    AckToken, Closing, DirectAccess, DirectOp, Landing, OfferId, Owner, Peer, Place, PostError,
    Posted, Range, Registration, RemoteId, Route, RouteError, RouteErrorKind, SendOp, Sleep,
    TransferError,
};
use weft_memory::UserBuffer;
use weft_os::{clock, crash_point};

use crate::contact::own::Own;
use crate::direct::access::Access;
use crate::direct::shown::Shown;
use crate::protocol::cell::Control;
use crate::protocol::{INLINE_BYTES, MESSAGE_BYTES};
use crate::receive::offers::Offer;
use crate::send::post;
use crate::settings::{OpenError, Settings};
use crate::statistics::{Protocol, Statistics};
use crate::transport::traffic::Traffic;
#[cfg(test)]
use crate::wait::node::Node;
use crate::wait::pace::{Due, Pace};
use crate::wait::sleeper::Sleeper;

#[cfg(test)]
mod bidirectional_tests;
#[cfg(test)]
mod cooperative_tests;
#[cfg(test)]
mod heap_tests;
#[cfg(test)]
mod lanes_tests;
mod loss;
#[cfg(test)]
mod loss_tests;
mod published;
#[cfg(test)]
mod refusal_tests;
mod traffic;

/// The shared-memory route of one endpoint.
#[derive(Debug)]
pub struct Transport {
    traffic: Traffic,
    pace: Pace,
    sleeper: Sleeper,
    access: Access,
    shown: Shown,
}

/// Opening, and who is there.
impl Transport {
    /// Opens the route: makes the region, and the sockets by which remotes find it. Setup; starts
    /// no threads, installs no signal handlers, and leaves nothing in the file system.
    ///
    /// # Errors
    /// [`OpenError`], each variant as its name says.
    pub fn open(settings: Settings) -> Result<Self, OpenError> {
        let own = Own::open(&settings)?;
        crash_point!(4, "open: others can make contact");
        let opened = Self {
            pace: Pace::new(own.node()),
            sleeper: Sleeper::new(&own).map_err(OpenError::Sockets)?,
            access: Access::new(settings.single_copy),
            shown: Shown::default(),
            traffic: Traffic::new(own, &settings),
        };
        // The first sign of life, by which remotes tell whether we make progress.
        opened.publish(clock::monotonic_ns());
        Ok(opened)
    }

    /// Lets others reach us under every address of this host, loopback included, except where
    /// somebody else has the port. Setup.
    pub fn listen_everywhere(&mut self) {
        let own = &mut self.traffic.contacts.own;
        own.listen_everywhere(self.sleeper.wait_set());
    }

    /// The address under which others reach us.
    pub fn local_address(&self) -> SocketAddr {
        self.traffic.contacts.own.identity().address
    }

    /// Says which address `remote` has. Ids come in order, each before it is used.
    pub fn add_remote(&mut self, remote: RemoteId, address: SocketAddr) {
        self.traffic.contacts.remotes.add(remote, address);
    }

    /// The user has inserted the address of `remote` again. If that remote was lost, another
    /// process may have the address now. Slow path.
    pub fn name_again(&mut self, remote: RemoteId) {
        if let Some(remote) = self.traffic.contacts.remotes.known(remote) {
            remote.name_again();
        }
    }

    /// Sets whether the owner wants to know when `remote` dies, even while nothing is under way. If
    /// `remote` is given up already, the next progress reports this again.
    pub fn watch(&mut self, remote: RemoteId, on: bool) {
        let contacts = &mut self.traffic.contacts;
        let failed = contacts
            .remotes
            .known(remote)
            .and_then(|entry| entry.watch(on));
        if let Some(why) = failed {
            contacts.agenda.note_lost(remote, why);
        }
    }

    /// What was sent so far.
    pub fn statistics(&self) -> Statistics {
        let contacts = &self.traffic.contacts;
        Statistics {
            sent: self.traffic.sends.sent(),
            received: contacts.lanes.received(),
            mapped: self.access.mapped(),
            copied: self.access.copied(),
            remotes: contacts.met(),
            lost: self.traffic.lost,
        }
    }

    /// Writes what was counted so far into our region.
    fn publish(&self, now_ns: u64) {
        let counters = published::counters(&self.traffic, &self.statistics(), now_ns);
        self.traffic.contacts.own.region().publish(&counters);
    }

    #[cold]
    fn look_at_clock<O: Owner>(&mut self, owner: &mut O) {
        let now_ns = clock::monotonic_ns();
        let due = self.pace.due(now_ns);
        if due == Due::Nothing {
            return;
        }
        let contacts = &mut self.traffic.contacts;
        contacts.own.answer_askers();
        contacts.continue_asking();
        contacts.hear_refusals(self.traffic.sends.remotes());
        contacts.lanes.tick(&contacts.own);
        self.publish(now_ns);
        if due == Due::LifeCheck {
            self.traffic.check_lives(owner);
            let contacts = &mut self.traffic.contacts;
            contacts.lanes.free_abandoned(&contacts.own);
        }
    }
}

/// Sending.
impl Transport {
    /// Sends a message that takes several cells, or for which it is not known whether a cell is
    /// free. First the way of most messages, `send_run`; if that fails, the way of all others.
    #[inline(never)]
    fn post_run(&mut self, op: &SendOp, payload: &UserBuffer) -> Result<Posted, PostError> {
        let Traffic {
            contacts, sends, ..
        } = &mut self.traffic;
        if !post::send_run(contacts.remote_mut(op.remote), op, payload) {
            return self.post_longer(op, payload);
        }
        contacts.ring(op.remote);
        sends.count(Protocol::Inline, payload.length_bytes());
        Ok(Posted::Complete)
    }

    #[inline(never)]
    fn post_longer(&mut self, op: &SendOp, payload: &UserBuffer) -> Result<Posted, PostError> {
        if payload.length_bytes() as u64 > MESSAGE_BYTES {
            return Err(PostError::Failed(TransferError::TooLong));
        }
        let Traffic {
            contacts,
            sends,
            sender,
            ..
        } = &mut self.traffic;
        contacts.contact(op.remote);
        if let Err(why) = contacts.remote(op.remote).takes_sends() {
            if why == PostError::Busy {
                self.pace.hurry();
            }
            return Err(why);
        }
        sender.post(contacts, sends, op, payload)
    }
}

impl Peer for Transport {
    /// Fast path for messages up to [`crate::protocol::EAGER_BYTES`].
    #[inline(always)]
    fn post_send(&mut self, op: &SendOp, payload: &UserBuffer) -> Result<Posted, PostError> {
        let contacts = &mut self.traffic.contacts;
        if let Some(sent) = post::send_inline(contacts.remote_mut(op.remote), op, payload) {
            if sent? {
                contacts.ring(op.remote);
            }
            self.traffic
                .sends
                .count(Protocol::Inline, payload.length_bytes());
            return Ok(Posted::Complete);
        }
        // A copy, so that the operation need not be in memory above.
        let op = *op;
        if payload.length_bytes() <= INLINE_BYTES {
            return self.post_run(&op, payload);
        }
        self.post_longer(&op, payload)
    }

    fn accept(&mut self, offer: OfferId, landing: Landing) {
        self.traffic.receives.offers.accept(offer, landing);
    }

    fn discard(&mut self, offer: OfferId) {
        let Traffic {
            contacts, receives, ..
        } = &mut self.traffic;
        // Its sender sees it as delivered.
        match receives.offers.discard(offer) {
            Offer::Remote(offer) => contacts.answer(offer.remote, Control::fin(offer.send_id)),
            Offer::Stream(index) => {
                if let Some(due) = receives.streams.discard(index).finish {
                    contacts.answer(due.remote, Control::fin(due.send_id));
                }
            }
        }
    }

    fn acknowledge(&mut self, ack: AckToken) {
        if let Some(due) = self.traffic.receives.receipts.take(ack) {
            self.traffic
                .contacts
                .answer(due.remote, Control::fin(due.send_id));
        }
    }

    #[inline(always)]
    fn pass(&mut self) -> bool {
        self.traffic.is_quiet() && self.pace.pass()
    }

    #[inline(always)]
    fn progress<O: Owner>(&mut self, owner: &mut O) -> usize {
        let events = self.traffic.round(owner);
        let is_time = if events == 0 {
            self.pace.idle()
        } else {
            self.pace.busy()
        };
        if is_time {
            self.look_at_clock(owner);
        }
        events
    }
}

#[cfg(test)]
impl Transport {
    /// For tests: sets whether the ranks of the node share processors.
    fn set_shares_cores(&mut self, shares_cores: bool) {
        let own = &mut self.traffic.contacts.own;
        own.set_node(Node {
            shares_cores,
            ..own.node()
        });
    }
}

impl Drop for Transport {
    /// Says goodbye to all remotes, so that nobody waits for us and our slots are free again. Only
    /// then is the region closed: a remote that sees it closed frees our slot, and a later goodbye
    /// would be written into the lane of the process that claimed the slot next.
    fn drop(&mut self) {
        let Traffic {
            contacts, fetches, ..
        } = &mut self.traffic;
        if contacts.own.is_inherited() {
            return; // what there is to close is its parent's
        }
        self.shown.withdraw_all(&contacts.own);
        fetches.close(contacts);
        crash_point!(47, "close: begun, the region still open");
        contacts.leave();
        crash_point!(49, "close: goodbyes are said, the region still open");
        contacts.own.region().close();
    }
}

impl Route for Transport {
    type Settings = Settings;
    type Statistics = Statistics;

    fn open(settings: &Settings, place: Place) -> Result<Self, RouteError> {
        let settings = Settings {
            address: place.address,
            port_is_held: place.is_held,
            has_other_route: place.is_held,
            ..settings.clone()
        };
        let mut opened = Self::open(settings).map_err(|error| RouteError {
            kind: kind_of(&error),
            words: error.to_string(),
        })?;
        if place.everywhere {
            opened.listen_everywhere();
        }
        Ok(opened)
    }

    fn local_address(&self) -> SocketAddr {
        self.local_address()
    }

    fn add_remote(&mut self, remote: RemoteId, address: SocketAddr) {
        self.add_remote(remote, address);
    }

    fn name_again(&mut self, remote: RemoteId) {
        self.name_again(remote);
    }

    fn watch(&mut self, remote: RemoteId, on: bool) {
        self.watch(remote, on);
    }

    fn statistics(&self) -> Statistics {
        self.statistics()
    }

    #[inline]
    fn direct(&mut self) -> Option<&mut impl DirectAccess> {
        Some(self)
    }
}

impl Closing for Transport {
    fn owed(&mut self) -> Vec<SocketAddr> {
        self.traffic.contacts.remotes.owed().collect()
    }
}

impl Sleep for Transport {
    fn wait_fd(&self) -> Option<RawFd> {
        Some(self.sleeper.wait_set().descriptor())
    }

    fn before_sleep(&mut self) -> bool {
        let is_busy = self.is_busy();
        let Traffic {
            contacts, sends, ..
        } = &mut self.traffic;
        if is_busy || !self.sleeper.begin(contacts) {
            return false;
        }
        // A remote that refuses a lane rings once, perhaps before the bell was silenced.
        contacts.hear_refusals(sends.remotes());
        let has_news = contacts.agenda.count() > 0;
        if has_news {
            Sleeper::end(contacts);
        }
        !has_news
    }

    fn after_sleep(&mut self) {
        let contacts = &mut self.traffic.contacts;
        Sleeper::end(contacts);
        contacts.hear_refusals(self.traffic.sends.remotes());
    }

    fn is_busy(&self) -> bool {
        let traffic = &self.traffic;
        traffic.contacts.agenda.is_sending()
            || traffic.receives.offers.accepted_count() > 0
            || traffic.fetches.count() > 0
            || traffic.feeds.count() > 0
    }
}

impl DirectAccess for Transport {
    fn publish_registration(&mut self, registration: &Registration) {
        self.shown.publish(&self.traffic.contacts.own, registration);
    }

    fn withdraw_registration(&mut self, key: u64) -> bool {
        self.shown.withdraw(&self.traffic.contacts.own, key)
    }

    #[inline]
    fn access_directly(&mut self, remote: RemoteId, range: &Range, op: &mut DirectOp<'_>) -> bool {
        self.access
            .access(&mut self.traffic.contacts, remote, range, op)
    }
}

fn kind_of(error: &OpenError) -> RouteErrorKind {
    match error {
        OpenError::Address(_, source) if source.kind() == ErrorKind::AddrInUse => {
            RouteErrorKind::AddressInUse
        }
        OpenError::Address(..) => RouteErrorKind::AddressNotAvailable,
        OpenError::Directory(..) => RouteErrorKind::Invalid,
        OpenError::Region(_) | OpenError::Sockets(_) => RouteErrorKind::NoResources,
    }
}
