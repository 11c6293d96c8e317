// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who lives: looking after remotes that somebody waits for, after those that are silent, and after
//! whoever took a slot of ours and was never heard; and telling a new process from the one that was
//! at its address before. Called by housekeeping, receive and contact; what ends with a remote is
//! in loss.

use std::io::ErrorKind;

use weft_contract::{Owner, RemoteId, TransferError};
use weft_os::local_socket::Connection;
use weft_os::process_id::ProcessId;
use weft_ring::layout::SLOT_COUNT;
use weft_ring::{Consumer, Identity};

use crate::own::listener_name;
use crate::remote::Link;
use crate::transport::Transport;

/// Lanes and remotes nobody waits for that are looked after at a time. Chosen: ten looks in a
/// second then see to 640, at some ten microseconds each.
const SILENT_COUNT: usize = 64;

/// Slots in use from which on all of them are looked after at a time. Chosen: a server that many
/// short clients visit has room for the next ones within a tenth of a second.
const CROWDED_COUNT: usize = SLOT_COUNT / 2;

impl Transport {
    /// Asks for every remote that somebody waits for whether it still lives, and for some of the
    /// others.
    pub(crate) fn check_lives<O: Owner>(&mut self, owner: &mut O) {
        for remote in self.cared_for() {
            if self.is_lost(remote) {
                self.drain(remote, owner);
                self.lose(remote, TransferError::RemoteLost, owner);
            }
        }
    }

    /// Whether a remote is gone.
    fn is_lost(&mut self, remote: RemoteId) -> bool {
        let entry = &self.remotes[remote.index()];
        if self.own.is_at(entry.address) {
            return false;
        }
        let own = &self.own.identity.process;
        match &entry.link {
            Link::Failed(_) => false,
            Link::Ready(attached) => {
                !attached.region.is_open() || self.own.is_gone(&attached.owner)
            }
            Link::Asking(_, Some(process), _) => process.has_ended(own),
            Link::Asking(_, None, _) => false,
            // What comes of it is the business of the way that it is reached by.
            Link::Elsewhere { .. } if entry.inbound.is_none() => false,
            Link::Unknown | Link::Elsewhere { .. } => {
                let inbound = entry.inbound.and_then(|slot| self.inbound[slot].as_ref());
                match (inbound, entry.attempt.seen) {
                    (Some(lane), _) => self.own.is_gone(&lane.claimant),
                    (None, Some(process)) => process.has_ended(own),
                    (None, None) => self.is_nobody_at(remote),
                }
            }
        }
    }

    /// Looks who listens at the address of a remote that was never in contact. Its process is
    /// looked after from then on; one whose process cannot be seen is brought into contact for
    /// that.
    fn is_nobody_at(&mut self, remote: RemoteId) -> bool {
        let address = self.remotes[remote.index()].address;
        let who = match Connection::open_own(&listener_name(address)) {
            Ok((_, who)) => who,
            Err(error) => return error.kind() == ErrorKind::ConnectionRefused,
        };
        match ProcessId::of(who.pid, &self.own.identity.process) {
            Some(process) => self.remotes[remote.index()].attempt.seen = Some(process),
            None => self.contact(remote),
        }
        false
    }

    /// Remotes with something under way, or watched; and some of the others that hold a slot of
    /// ours, or in whose region we hold one: they might be gone, or have been replaced.
    fn cared_for(&mut self) -> Vec<RemoteId> {
        let mut cared = vec![false; self.remotes.len()];
        let transfers = &self.transfers;
        let under_way = transfers
            .outgoing
            .iter()
            .map(|(_, outgoing)| outgoing.remote);
        let under_way = under_way.chain(transfers.fetches.iter().map(|fetch| fetch.offer.remote));
        for remote in under_way.chain(transfers.streams.iter().map(|(_, stream)| stream.remote)) {
            cared[remote.index()] = true;
        }
        for (index, entry) in self.remotes.iter().enumerate() {
            let is_asked = matches!(entry.link, Link::Asking(..));
            cared[index] |= entry.watched || entry.has_waiting() || is_asked;
        }
        let held_count = self.inbound.iter().flatten().count();
        let mut left_count = if held_count >= CROWDED_COUNT {
            cared.len()
        } else {
            SILENT_COUNT
        };
        let first = self.housekeeping.next_silent;
        for step in 0..cared.len() {
            let index = (first + step) % cared.len();
            let entry = &self.remotes[index];
            let is_held = entry.inbound.is_some() || matches!(entry.link, Link::Ready(_));
            if cared[index] || !is_held {
                continue;
            }
            if left_count == 0 {
                self.housekeeping.next_silent = index;
                break;
            }
            left_count -= 1;
            cared[index] = true;
        }
        let cared = cared.into_iter().enumerate().filter(|&(_, cared)| cared);
        cared.map(|(index, _)| RemoteId(index as u32)).collect()
    }

    /// Frees slots whose claimants died before they rang for the first time: nobody adopted them;
    /// and those of the dead that were cut off while they lived.
    pub(crate) fn free_abandoned_slots(&mut self) {
        let region = &self.own.region;
        for slot in 0..region.slots().claimed_count() {
            if self.inbound[slot].is_some() {
                continue;
            }
            let Some(incarnation) = region.slots().holder(slot) else {
                continue;
            };
            // The order matters: who is dead now and has rung before is heard in the next round.
            let is_dead = match region.slots().claimant(slot) {
                Some(claimant) => self.own.is_gone(&claimant),
                // It died before it could write more than its incarnation.
                None => self.own.has_closed(incarnation),
            };
            if is_dead
                && !region.doorbell().is_rung()
                && let Some(mut lane) = Consumer::attach(region.mapping(), slot)
            {
                lane.reset();
                self.housekeeping.shut.remove(&slot);
                region.slots().free(slot);
            }
        }
    }

    /// Who a remote is, as far as we are in contact.
    pub(crate) fn who_is(&self, remote: RemoteId) -> Option<&Identity> {
        let entry = &self.remotes[remote.index()];
        match &entry.link {
            Link::Ready(attached) => Some(&attached.owner),
            _ => self.sender_at(remote),
        }
    }

    /// Who sends to us from the address of a remote.
    pub(crate) fn sender_at(&self, remote: RemoteId) -> Option<&Identity> {
        let slot = self.remotes[remote.index()].inbound?;
        Some(&self.inbound[slot].as_ref()?.claimant)
    }

    /// Somebody sends to us from the address of a remote: if that is another process than the one
    /// we know there, that one is gone, and nothing of it must meet the new one. False if the one
    /// that sends was there before, and only its bell is heard late.
    pub(crate) fn part_with_others<O: Owner>(
        &mut self,
        remote: RemoteId,
        claimant: &Identity,
        owner: &mut O,
    ) -> bool {
        let known = self.who_is(remote);
        if let Some(known) = known.filter(|known| known.incarnation != claimant.incarnation) {
            if self.own.is_gone(claimant) && !self.own.is_gone(known) {
                return false;
            }
            self.part(remote, owner);
        }
        // The same process through another slot: it has let the other one go.
        if let Some(slot) = self.remotes[remote.index()].inbound {
            self.drain(remote, owner);
            if self.remotes[remote.index()].inbound.take().is_some() {
                self.free_lane(slot);
            }
        }
        true
    }

    /// Loses the process that was at the address of a remote, so that the one that is there now can
    /// be reached.
    pub(crate) fn part<O: Owner>(&mut self, remote: RemoteId, owner: &mut O) {
        let entry = &mut self.remotes[remote.index()];
        if matches!(entry.link, Link::Failed(_)) {
            entry.link = Link::Unknown;
        }
        if entry.inbound.is_some() {
            self.drain(remote, owner);
        }
        self.lose(remote, TransferError::RemoteLost, owner);
        self.remotes[remote.index()].link = Link::Unknown;
    }
}
