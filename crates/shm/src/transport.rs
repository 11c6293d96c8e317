// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The transport as a whole: what it holds, how it is opened and closed, and its face as a route
//! (`Peer`, `Route`, `Sleep`, `DirectAccess`), which only passes each call on to the file that does
//! the work.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::fd::RawFd;

use slab::Slab;
use weft_contract::{
    AckToken, DirectAccess, DirectOp, Landing, OfferId, Owner, Peer, Place, PostError, Posted,
    Range, Registration, RemoteId, Route, RouteError, RouteErrorKind, SendOp, Sleep, TransferError,
};
use weft_memory::UserBuffer;
use weft_os::{clock, crash_point};
use weft_ring::layout::SLOT_COUNT;
use weft_ring::{Consumer, Identity, Pool};

use crate::choice::Choice;
use crate::fetch::Fetch;
use crate::housekeeping::Housekeeping;
use crate::manner::Manners;
use crate::own::{Own, bell_name};
use crate::parted::Parts;
use crate::pipelined::Pipes;
use crate::protocol::cell::{Control, Fin, needs_answer};
use crate::published::Received;
use crate::remote::{Link, Remote};
use crate::rendezvous::{Offer, Outgoing};
use crate::settings::{OpenError, Settings};
use crate::shares::Push;
use crate::sleep::Sleeper;
use crate::statistics::{Count, Statistics};
use crate::stores::StoreTrial;
use crate::stream::Stream;

/// A lane we receive from.
#[derive(Debug)]
pub(crate) struct Inbound {
    pub(crate) consumer: Consumer,
    /// The chunks of this lane; ours are those that came with messages.
    pub(crate) pool: Pool,
    pub(crate) remote: RemoteId,
    /// Who claimed it.
    pub(crate) claimant: Identity,
    /// The streamed message that is arriving here, if one is.
    pub(crate) stream: Option<usize>,
    /// Messages whose rest is to come through it in parts.
    pub(crate) parted: u32,
    /// Cells since the last tick.
    pub(crate) received: u32,
    /// Ticks without any.
    pub(crate) quiet_ticks: u32,
    /// What it has sent.
    pub(crate) counts: Received,
    /// What its sender was told of messages that go both ways.
    pub(crate) both_ways: u64,
    /// How its sender should store long payload.
    pub(crate) stores: StoreTrial,
}

impl Inbound {
    /// Whether the cell at its front can only be taken by somebody who can answer.
    pub(crate) fn needs_answer(&self) -> bool {
        let front = self.consumer.peek().map(|arrival| arrival.head);
        self.stream.is_none() && front.is_some_and(needs_answer)
    }

    /// Looks so many times for a message that is known to be on its way.
    pub(crate) fn await_message(&self, looks: u32) {
        for _ in 0..looks {
            if self.consumer.has_message() {
                return;
            }
            std::hint::spin_loop();
        }
    }
}

/// A receipt that the owner still has to ask for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Receipt {
    pub(crate) remote: RemoteId,
    pub(crate) send_id: u64,
    /// Whoever waited for it is gone. Another process at its address may use the same number for a send of its own.
    pub(crate) is_void: bool,
}

/// Transfers under way, by who names them.
#[derive(Debug, Default)]
pub(crate) struct Transfers {
    /// Sends that wait for a FIN or CTS; the index travels in cells.
    pub(crate) outgoing: Slab<Outgoing>,
    /// Messages the owner has not accepted yet; the index is the owner's `OfferId`.
    pub(crate) offers: Slab<Offer>,
    /// Streamed messages on their way in.
    pub(crate) streams: Slab<Stream>,
    /// Offered messages being fetched.
    pub(crate) fetches: Vec<Fetch>,
    /// Offers accepted since the last progress.
    pub(crate) accepted: Vec<(Offer, Landing)>,
    /// Messages of ours that their receivers asked us to help with, in the order of asking.
    pub(crate) pushes: Vec<Push>,
    /// Chunks that may still be taken in this round.
    pub(crate) chunks_left: u32,
    /// Rounds in which fetches were moved on.
    pub(crate) rounds: u64,
    /// Boards lent so far.
    pub(crate) tickets: u64,
    /// By index, which is the owner's `AckToken`.
    pub(crate) receipts: Slab<Receipt>,
    /// Offered messages of ours that their receivers fetched by single copy.
    pub(crate) pulled: Count,
    /// The same out of our heap.
    pub(crate) mapped: Count,
}

/// The shared-memory route of one endpoint.
#[derive(Debug)]
// structure: allow struct-fields because it is the whole of a route, and each field is one file's state
pub struct Transport {
    pub(crate) settings: Settings,
    pub(crate) own: Own,
    pub(crate) remotes: Vec<Remote>,
    pub(crate) inbound: Vec<Option<Inbound>>,
    /// Slots whose lanes are polled.
    pub(crate) polled: Vec<usize>,
    pub(crate) transfers: Transfers,
    pub(crate) pipes: Pipes,
    /// Messages of ours whose rest we send in parts.
    pub(crate) parts: Vec<Parts>,
    /// Remotes with something to send, each once.
    pub(crate) sending: Vec<RemoteId>,
    /// Remotes given up whose loss the owner wants to hear of again.
    pub(crate) lost_again: Vec<(RemoteId, TransferError)>,
    pub(crate) choice: Choice,
    pub(crate) manners: Manners,
    /// When the last fetch ended.
    pub(crate) last_fetch_ns: u64,
    pub(crate) housekeeping: Housekeeping,
    pub(crate) sleeper: Sleeper,
    pub(crate) statistics: Statistics,
    /// Lanes of ours that use their whole data area.
    pub(crate) wide_lanes: u32,
    /// Registrations of ours that were taken back while a remote was at them: key and entry.
    pub(crate) leaving: Vec<(u64, usize)>,
}

impl Transport {
    /// Opens the route: makes the region and the sockets under which others find it. Setup; no threads, no
    /// signal handlers, nothing in the file system.
    ///
    /// # Errors
    /// [`OpenError`], each variant as its name says.
    pub fn open(settings: Settings) -> Result<Self, OpenError> {
        let own = Own::open(&settings)?;
        crash_point!(4, "open: others can make contact");
        let sleeper = Sleeper::new(&own).map_err(OpenError::Sockets)?;
        let opened = Self {
            settings,
            own,
            remotes: Vec::new(),
            inbound: (0..SLOT_COUNT).map(|_| None).collect(),
            polled: Vec::new(),
            transfers: Transfers::default(),
            pipes: Pipes::new(),
            parts: Vec::new(),
            sending: Vec::new(),
            lost_again: Vec::new(),
            choice: Choice::new(),
            manners: Manners::new(),
            last_fetch_ns: 0,
            housekeeping: Housekeeping::new(),
            sleeper,
            statistics: Statistics::default(),
            wide_lanes: 0,
            leaving: Vec::new(),
        };
        // The first sign of life, by which remotes tell whether we make progress.
        opened.publish(clock::monotonic_ns());
        Ok(opened)
    }

    /// Has others reach us under every address of this host, loopback included, wherever nobody else has the port.
    /// Setup.
    pub fn listen_everywhere(&mut self) {
        let sleeper = &self.sleeper;
        self.own
            .listen_everywhere(|alias| sleeper.learn(alias).is_ok());
    }

    /// The address under which others reach us.
    pub fn local_address(&self) -> SocketAddr {
        self.own.identity.address
    }

    /// Says who `remote` is. Ids come in order, each before it is used.
    pub fn add_remote(&mut self, remote: RemoteId, address: SocketAddr) {
        debug_assert_eq!(remote.index(), self.remotes.len(), "ids are dense");
        self.remotes.push(Remote::new(address));
    }

    /// The user has named the address of `remote` again: if it was lost, another process may be there now. Slow path.
    pub fn name_again(&mut self, remote: RemoteId) {
        if let Some(entry) = self.remotes.get_mut(remote.index())
            && matches!(entry.link, Link::Failed(TransferError::RemoteLost))
        {
            entry.link = Link::Unknown;
        }
    }

    /// Whether the owner wants to know when `remote` dies even while nothing is under way. If it is given up
    /// already, the next progress says so again.
    pub fn watch(&mut self, remote: RemoteId, on: bool) {
        let Some(entry) = self.remotes.get_mut(remote.index()) else {
            return;
        };
        match entry.link {
            Link::Failed(why) if on => self.lost_again.push((remote, why)),
            _ => entry.watched = on,
        }
    }

    /// What was sent so far.
    pub fn statistics(&self) -> Statistics {
        self.statistics
            .with_fetched(self.transfers.pulled, self.transfers.mapped)
    }

    /// Sends an answer to a remote, now or as soon as there is room.
    pub(crate) fn answer(&mut self, remote: RemoteId, control: Control) {
        self.contact(remote);
        let entry = &mut self.remotes[remote.index()];
        if matches!(entry.link, Link::Failed(_) | Link::Elsewhere { .. }) {
            return;
        }
        if entry.push_control(control) {
            self.ring(remote);
        } else {
            self.note_sending(remote);
        }
    }

    /// Tells the sender of a message that it is delivered.
    pub(crate) fn finish(&mut self, remote: RemoteId, send_id: u64) {
        let fin = Fin {
            send_id,
            is_mapped: false,
        };
        self.answer(remote, Control::Fin(fin));
    }

    pub(crate) fn note_sending(&mut self, remote: RemoteId) {
        if !self.sending.contains(&remote) {
            self.sending.push(remote);
        }
    }

    /// After a push: tells the receiver unless it polls our lane.
    #[inline(always)]
    pub(crate) fn ring(&mut self, remote: RemoteId) {
        if let Link::Ready(attached) = &self.remotes[remote.index()].link
            && !attached.producer.is_polled()
        {
            self.ring_bell(remote);
        }
    }

    #[cold]
    fn ring_bell(&mut self, remote: RemoteId) {
        let entry = &self.remotes[remote.index()];
        if let Link::Ready(attached) = &entry.link
            && attached.region.doorbell().ring(attached.slot)
        {
            let bell = bell_name(attached.owner.incarnation);
            self.own.ringer.ring(&bell);
        }
    }
}

impl Peer for Transport {
    #[inline(always)]
    fn post_send(&mut self, op: &SendOp, payload: &UserBuffer) -> Result<Posted, PostError> {
        self.send(op, payload)
    }

    fn accept(&mut self, offer: OfferId, landing: Landing) {
        let offer = self.transfers.offers.remove(offer.0 as usize);
        self.transfers.accepted.push((offer, landing));
    }

    fn discard(&mut self, offer: OfferId) {
        let offer = self.transfers.offers.remove(offer.0 as usize);
        self.discard_offer(offer);
    }

    fn acknowledge(&mut self, ack: AckToken) {
        let receipt = self.transfers.receipts.remove(ack.0 as usize);
        if !receipt.is_void {
            self.finish(receipt.remote, receipt.send_id);
        }
    }

    #[inline(always)]
    fn pass(&mut self) -> bool {
        self.is_quiet() && self.housekeeping.pass()
    }

    #[inline(always)]
    fn progress<O: Owner>(&mut self, owner: &mut O) -> usize {
        self.receive(owner)
    }
}

impl Drop for Transport {
    /// Says goodbye, so that nobody waits for us and our slots are free again. Messages already in lanes stay
    /// deliverable: they lie in their receivers' memory. The region is closed after that: whoever sees it closed frees our
    /// slot, and a goodbye would then be written into the lane of whoever claimed it next.
    fn drop(&mut self) {
        if self.own.is_inherited() {
            return; // what there is to close is its parent's
        }
        self.withdraw_all();
        self.abandon_all();
        crash_point!(47, "close: begun, the region still open");
        for index in 0..self.remotes.len() {
            if matches!(self.remotes[index].link, Link::Ready(_)) {
                self.remotes[index].flush_controls();
                if self.remotes[index].push_control(Control::Bye) {
                    self.ring(RemoteId(index as u32));
                }
                crash_point!(48, "close: one goodbye is said");
            }
        }
        crash_point!(49, "close: goodbyes are said, the region still open");
        self.own.region.close();
    }
}

impl Route for Transport {
    type Settings = Settings;
    type Statistics = Statistics;

    fn open(settings: &Settings, place: Place) -> Result<Self, RouteError> {
        let settings = Settings {
            address: place.address,
            port_is_held: place.is_held,
            has_other_way: place.is_held,
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

impl Sleep for Transport {
    fn wait_fd(&self) -> Option<RawFd> {
        Some(self.wait_fd())
    }

    fn before_sleep(&mut self) -> bool {
        self.before_sleep()
    }

    fn after_sleep(&mut self) {
        self.after_sleep();
    }

    fn is_busy(&self) -> bool {
        self.is_busy()
    }
}

impl DirectAccess for Transport {
    fn publish_registration(&mut self, registration: &Registration) {
        self.publish_registration(registration);
    }

    fn withdraw_registration(&mut self, key: u64) -> bool {
        self.withdraw_registration(key)
    }

    #[inline]
    fn access_directly(&mut self, remote: RemoteId, range: &Range, op: &mut DirectOp<'_>) -> bool {
        self.access_directly(remote, range, op)
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
