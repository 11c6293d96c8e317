// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether remotes live: which remotes to check now, whether one is gone, and whether another
//! process has the address of one that we knew. The transport asks at its ticks and at first
//! contact; loss.rs ends what was under way with a dead remote.

use std::io::ErrorKind;

use weft_contract::RemoteId;
use weft_os::own_listener;
use weft_os::process_id::ProcessId;
use weft_ring::Identity;
use weft_ring::layout::SLOT_COUNT;

use crate::contact::contacts::Contacts;
use crate::contact::own::listener_name;
use crate::contact::remote::Link;

/// How many lanes and remotes that no operation waits for are checked at a time. Chosen: with ten
/// checks in a second these are 640, at some ten microseconds each.
const SILENT_COUNT: usize = 64;

/// If this many slots are in use, all of them are checked at a time. Chosen: a server with many
/// short-lived clients then has room for the next ones within a tenth of a second.
const MANY_COUNT: usize = SLOT_COUNT / 2;

/// Which remotes are checked next.
#[derive(Debug, Default)]
pub(crate) struct Liveness {
    /// The remote at which the next check of silent remotes begins.
    next_silent: usize,
}

impl Liveness {
    /// The remotes to check now: all with operations under way, or watched; and some of the others
    /// that hold a slot of ours, or in whose region we hold a slot, since they may be gone, or
    /// another process may have their address.
    pub(crate) fn cared_for(
        &mut self,
        contacts: &Contacts,
        under_way: impl Iterator<Item = RemoteId>,
    ) -> Vec<RemoteId> {
        let remotes = &contacts.remotes;
        let is_awaited = |link: &Link| matches!(link, Link::Asking(..));
        let cared = remotes.iter().map(|entry| {
            entry.watched || entry.waiting_counts().all() > 0 || is_awaited(&entry.link)
        });
        let mut cared: Vec<bool> = cared.collect();
        under_way.for_each(|remote| cared[remote.index()] = true);
        let has_many = contacts.lanes.iter().count() >= MANY_COUNT;
        let mut left_count = if has_many { cared.len() } else { SILENT_COUNT };
        let first = self.next_silent;
        for step in 0..cared.len() {
            let index = (first + step) % cared.len();
            let entry = &remotes[RemoteId(index as u32)];
            let is_held = entry.slot.is_some() || matches!(entry.link, Link::Ready(_));
            if cared[index] || !is_held {
                continue;
            }
            if left_count == 0 {
                self.next_silent = index;
                break;
            }
            left_count -= 1;
            cared[index] = true;
        }
        let cared = cared.into_iter().enumerate().filter(|&(_, cared)| cared);
        cared.map(|(index, _)| RemoteId(index as u32)).collect()
    }
}

/// Whether a remote is gone.
pub(crate) fn is_gone(contacts: &mut Contacts, remote: RemoteId) -> bool {
    let (own, entry) = (&contacts.own, contacts.remote(remote));
    if own.is_at(entry.address) {
        return false;
    }
    let own_process = &own.identity().process;
    match &entry.link {
        Link::Failed(_) => false,
        Link::Ready(attached) => !attached.region().is_open() || own.is_gone(attached.owner()),
        Link::Asking(_, Some(process), _) => process.has_ended(own_process),
        Link::Asking(_, None, _) => false,
        // Whether it lives is the business of the route that it is reached by.
        Link::Elsewhere { .. } if entry.slot.is_none() => false,
        Link::Unknown | Link::Elsewhere { .. } => {
            match (contacts.sender_at(remote), entry.attempt.seen) {
                (Some(claimant), _) => own.is_gone(claimant),
                (None, Some(process)) => process.has_ended(own_process),
                (None, None) => is_nobody_at(contacts, remote),
            }
        }
    }
}

/// Looks who listens at the address of a remote that was never in contact. Its process is looked
/// after from then on; one whose process cannot be seen is brought into contact for that.
fn is_nobody_at(contacts: &mut Contacts, remote: RemoteId) -> bool {
    let address = contacts.remote(remote).address;
    let who = match own_listener::connect(&listener_name(address)) {
        Ok((_, who)) => who,
        Err(error) => return error.kind() == ErrorKind::ConnectionRefused,
    };
    match ProcessId::of(who.pid, &contacts.own.identity().process) {
        Some(process) => contacts.remote_mut(remote).attempt.seen = Some(process),
        None => contacts.contact(remote),
    }
    false
}

/// Somebody who sends to us from the address of a remote, beside whom we know there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Newcomer {
    /// The one we know, or the first one.
    Known,
    /// Another process: the one that we know is gone, and nothing that belongs to it may reach the
    /// new one.
    Other,
    /// It was there before, and only its bell is heard late.
    Late,
}

/// Whether `claimant`, who sends to us from the address of a remote, is whom we know there.
pub(crate) fn meet(contacts: &Contacts, remote: RemoteId, claimant: &Identity) -> Newcomer {
    let known = contacts.who_is(remote);
    match known.filter(|known| known.incarnation != claimant.incarnation) {
        None => Newcomer::Known,
        Some(known) if contacts.own.is_gone(claimant) && !contacts.own.is_gone(known) => {
            Newcomer::Late
        }
        Some(_) => Newcomer::Other,
    }
}
