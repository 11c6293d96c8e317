// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All remotes, the lanes that they send through, and what the next round must see to. Everything
//! that goes to a remote or comes from one asks here for its end of the lane.

use std::net::SocketAddr;

use weft_contract::{RemoteId, TransferError};
use weft_os::{clock, crash_point};
use weft_ring::layout::{LANE_BYTES, SHARED_BYTES, SLOT_COUNT};
use weft_ring::{Identity, Pool};

use crate::contact::attached::{Attached, warm_pipe};
use crate::contact::backing;
use crate::contact::lane::Inbound;
use crate::contact::lanes::Lanes;
use crate::contact::outbound::{WIDE_LANES, warm_lane};
use crate::contact::own::Own;
use crate::contact::reach::{Obstacle, Sought};
use crate::contact::remote::{Attempt, Link, Remote};
use crate::contact::remotes::Remotes;
use crate::protocol::cell::Control;

/// How long a remote whose slots are all taken is asked again. Chosen: an owner that makes progress
/// looks after the dead ten times a second, and frees what they held.
const FULL_LIMIT_NS: u64 = 2_000_000_000;

/// What the next round of progress must see to.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    /// Remotes with something to send, each once.
    sending: Vec<RemoteId>,
    /// Remotes whose contact came to an end of which their owner is to hear.
    lost: Vec<(RemoteId, TransferError)>,
}

impl Agenda {
    /// How much there is. Fast path.
    #[inline(always)]
    pub(crate) fn count(&self) -> usize {
        self.sending.len() | self.lost.len()
    }

    /// One of the remotes with something to send.
    #[inline(always)]
    pub(crate) fn sending(&self, index: usize) -> Option<RemoteId> {
        self.sending.get(index).copied()
    }

    /// Whether some have.
    pub(crate) fn is_sending(&self) -> bool {
        !self.sending.is_empty()
    }

    pub(crate) fn note_sending(&mut self, remote: RemoteId) {
        if !self.sending.contains(&remote) {
            self.sending.push(remote);
        }
    }

    /// The remote at this place has nothing to send any more; another one takes its place.
    pub(crate) fn end_sending(&mut self, index: usize) {
        self.sending.swap_remove(index);
    }

    /// The owner is to hear that contact with a remote is over.
    pub(crate) fn note_lost(&mut self, remote: RemoteId, why: TransferError) {
        self.lost.push((remote, why));
    }

    pub(crate) fn take_lost(&mut self) -> Vec<(RemoteId, TransferError)> {
        std::mem::take(&mut self.lost)
    }

    /// Nothing is to be sent to a remote any more.
    pub(crate) fn forget(&mut self, remote: RemoteId) {
        self.sending.retain(|&other| other != remote);
    }
}

/// All remotes, and who we are to them.
#[derive(Debug)]
pub(crate) struct Contacts {
    pub(crate) own: Own,
    pub(crate) remotes: Remotes,
    pub(crate) lanes: Lanes,
    pub(crate) agenda: Agenda,
    has_other_route: bool,
    /// Remotes that were in contact so far.
    met: u64,
}

impl Contacts {
    /// Opens what others find us by. Set-up.
    pub(crate) fn new(own: Own, has_other_route: bool) -> Self {
        Self {
            own,
            remotes: Remotes::default(),
            lanes: Lanes::new(),
            agenda: Agenda::default(),
            has_other_route,
            met: 0,
        }
    }

    #[inline(always)]
    pub(crate) fn remote(&self, remote: RemoteId) -> &Remote {
        &self.remotes[remote]
    }

    #[inline(always)]
    pub(crate) fn remote_mut(&mut self, remote: RemoteId) -> &mut Remote {
        &mut self.remotes[remote]
    }

    /// Remotes that were in contact so far.
    pub(crate) fn met(&self) -> u64 {
        self.met
    }

    /// Makes sure that `remote` is in contact, or on the way there, or known to be out of reach.
    /// Cheap if it is in contact; else slow path.
    #[inline(always)]
    pub(crate) fn contact(&mut self, remote: RemoteId) {
        if !matches!(self.remotes[remote].link, Link::Ready(_)) {
            self.make_contact(remote);
        }
    }

    #[cold]
    fn make_contact(&mut self, remote: RemoteId) {
        let entry = self.remote(remote);
        if matches!(entry.link, Link::Unknown) && !entry.attempt.is_replaced {
            let reached = self.sought(remote).reach(&self.own);
            self.keep(remote, reached);
        }
    }

    fn sought(&self, remote: RemoteId) -> Sought {
        Sought {
            address: self.remote(remote).address,
            sender: self.sender_at(remote).map(|known| known.incarnation),
            is_warmed: self.own.node().has_few_ranks && self.met < u64::from(WIDE_LANES),
        }
    }

    /// Looks whether remotes that were asked for their regions have sent them.
    pub(crate) fn continue_asking(&mut self) {
        for remote in self.remotes.ids() {
            let Link::Asking(connection, process, reserved) = &mut self.remotes[remote].link else {
                continue;
            };
            let reached = match connection.receive_file() {
                Ok(None) => continue,
                Ok(Some(file)) => {
                    let pid = process.map_or(0, |process| process.pid);
                    reserved.give_back();
                    self.sought(remote).attach(&self.own, file, pid)
                }
                Err(_) => Err(Obstacle::Lasting(TransferError::RemoteLost)),
            };
            self.keep(remote, reached);
        }
    }

    /// Keeps what came of an attempt to make contact.
    fn keep(&mut self, remote: RemoteId, reached: Result<Link, Obstacle>) {
        let entry = &mut self.remotes[remote];
        let why = match reached {
            Ok(link) => {
                if matches!(link, Link::Ready(_)) {
                    self.met += 1;
                    entry.told = None;
                    entry.attempt = Attempt::default();
                }
                entry.link = link;
                return;
            }
            Err(Obstacle::Replaced) => {
                entry.attempt.is_replaced = true;
                entry.link = Link::Unknown;
                return self.agenda.note_lost(remote, TransferError::RemoteLost);
            }
            Err(Obstacle::Full) => {
                let now_ns = clock::monotonic_ns();
                if entry.attempt.full_since_ns == 0 {
                    entry.attempt.full_since_ns = now_ns;
                }
                if now_ns - entry.attempt.full_since_ns < FULL_LIMIT_NS {
                    entry.link = Link::Unknown;
                    return;
                }
                entry.told = Some(TransferError::NoMemory);
                self.own.report(&format!(
                    "all {SLOT_COUNT} slots of the endpoint at {} are taken by processes that \
                     live: no more processes of its host can send to it",
                    entry.address
                ));
                TransferError::NoMemory
            }
            Err(Obstacle::Lasting(why)) => why,
        };
        // For each reason once: whoever names its address again and again waits for it.
        if entry.told.replace(why) != Some(why) {
            self.own
                .report(&why_no_contact(entry.address, why, self.has_other_route));
        }
        if self.has_other_route && why == TransferError::NoMemory {
            entry.link = Link::Elsewhere { is_told: false };
            return self.agenda.note_lost(remote, why);
        }
        entry.link = Link::Failed(why);
        if entry.watched || entry.slot.is_some() {
            // Somebody waits for what now never comes, or its lane is to be freed.
            self.agenda.note_lost(remote, why);
        }
    }

    /// Takes the lane of a slot into use, which `claimant` has claimed. Its pages are made now, in
    /// this process, too, if there are few ranks and it is one of the first; true if they were.
    pub(crate) fn adopt(&mut self, slot: usize, claimant: Identity, remote: RemoteId) -> bool {
        let own = self.own.region();
        let Some(lane) = Inbound::attach(own.mapping(), slot, remote, claimant) else {
            return false;
        };
        let entry = &mut self.remotes[remote];
        // The same process through another slot: it has let the other one go.
        if let Some(other) = entry.slot.take() {
            self.lanes.free(other, &self.own);
        }
        crash_point!(19, "adopt: a claimant is known, its lane not attached");
        if matches!(entry.link, Link::Failed(_)) {
            entry.link = Link::Unknown;
        }
        entry.slot = Some(slot);
        self.lanes.adopt(slot, lane);
        let is_warmed = self.own.node().has_few_ranks
            && self.lanes.iter().count() <= WIDE_LANES as usize
            && !self.own.is_at(entry.address)
            && backing::grows(self.own.file());
        if is_warmed {
            warm_lane(own.mapping(), slot);
            warm_pipe(own);
        }
        is_warmed
    }

    /// Who sends to us from the address of a remote.
    pub(crate) fn sender_at(&self, remote: RemoteId) -> Option<&Identity> {
        let slot = self.remote(remote).slot?;
        Some(self.lanes.get(slot)?.claimant())
    }

    /// Who a remote is, as far as we are in contact.
    pub(crate) fn who_is(&self, remote: RemoteId) -> Option<&Identity> {
        match &self.remote(remote).link {
            Link::Ready(attached) => Some(attached.owner()),
            _ => self.sender_at(remote),
        }
    }

    /// The lane that a remote sends to us through.
    pub(crate) fn lane_of(&mut self, remote: RemoteId) -> Option<&mut Inbound> {
        let slot = self.remote(remote).slot?;
        self.lanes.get_mut(slot)
    }

    /// Our end of the lane to a remote in contact, and the chunks of the lane that it sends
    /// through, which payload may go back in.
    #[inline(always)]
    pub(crate) fn lane_to(
        &mut self,
        remote: RemoteId,
    ) -> Option<(&mut Attached, Option<&mut Pool>)> {
        let entry = &mut self.remotes[remote];
        let lane = entry.slot.and_then(|slot| self.lanes.get_mut(slot));
        match &mut entry.link {
            Link::Ready(attached) => Some((attached, lane.map(Inbound::pool_mut))),
            _ => None,
        }
    }

    /// The lane of a slot, and the chunks of our lane to its sender, which payload may come in.
    #[inline(always)]
    pub(crate) fn lane_from(&mut self, slot: usize) -> Option<(&mut Inbound, Option<&mut Pool>)> {
        let lane = self.lanes.get_mut(slot)?;
        let sender = self.remotes[lane.remote()].attached_mut();
        Some((lane, sender.map(|sender| sender.lane_mut().pool_mut())))
    }

    /// Sends an answer to a remote, now or as soon as there is room.
    pub(crate) fn answer(&mut self, remote: RemoteId, control: Control) {
        self.contact(remote);
        let entry = &mut self.remotes[remote];
        if matches!(entry.link, Link::Failed(_) | Link::Elsewhere { .. }) {
            return;
        }
        if entry.push_control(control) {
            self.ring(remote);
        } else {
            self.agenda.note_sending(remote);
        }
    }

    /// After a push: tells the receiver unless it polls our lane.
    #[inline(always)]
    pub(crate) fn ring(&mut self, remote: RemoteId) {
        if let Link::Ready(attached) = &self.remotes[remote].link
            && !attached.lane().producer().is_polled()
        {
            attached.ring(&self.own);
        }
    }

    /// Whether the lane of a slot is refused: the cell at its front needs an answer, and its sender
    /// cannot be answered. Slow path.
    #[cold]
    pub(crate) fn refuses(&mut self, slot: usize) -> bool {
        let lane = self.lanes.get(slot);
        let Some(lane) = lane.filter(|lane| lane.needs_answer()) else {
            return false;
        };
        let remote = lane.remote();
        self.contact(remote);
        let entry = &mut self.remotes[remote];
        if !matches!(entry.link, Link::Elsewhere { .. }) {
            return false;
        }
        entry.slot = None;
        self.lanes.refuse(slot, &self.own);
        true
    }

    /// Says goodbye to everybody, before our region is closed: messages already in lanes stay
    /// deliverable, since they lie in their receivers' memory.
    pub(crate) fn leave(&mut self) {
        for remote in self.remotes.ids() {
            let entry = &mut self.remotes[remote];
            if entry.attached().is_some() {
                entry.flush_controls();
                if entry.push_control(Control::Bye) {
                    self.ring(remote);
                }
                crash_point!(48, "close: one goodbye is said");
            }
        }
    }

    /// Looks whether one of these, which we have sent to, cannot answer. Slow path: a shared line
    /// for each send that waits for the first answer of its remote.
    pub(crate) fn hear_refusals(&mut self, mut sent_to: impl Iterator<Item = RemoteId>) {
        let own = self.own.identity();
        let refused = sent_to.find(|&remote| self.remote(remote).has_refused(own));
        if let Some(remote) = refused {
            self.agenda.note_lost(remote, TransferError::NoMemory);
        }
    }
}

/// Why a remote cannot be reached, for the user.
fn why_no_contact(address: SocketAddr, why: TransferError, has_other_route: bool) -> String {
    match why {
        TransferError::VersionMismatch => format!(
            "the process at {address} loaded another version of libweft-fi.so, with another memory \
             layout (ours is {}); let all ranks of the job load the same file",
            weft_ring::layout::LAYOUT_VERSION
        ),
        TransferError::NoMemory => format!(
            "no shared memory with {address}: its region, {} MiB of addresses, cannot be mapped; \
             see the limits of this job on memory (ulimit -v, cgroup) and on mappings \
             (vm.max_map_count){}{}",
            (SHARED_BYTES + LANE_BYTES) >> 20,
            weft_os::limits::in_words(),
            if has_other_route {
                "; its messages go over the network"
            } else {
                "; with a key (FI_WEFT_JOB_KEY) they would go over the network"
            }
        ),
        _ => format!("no contact with {address}: {why}"),
    }
}
