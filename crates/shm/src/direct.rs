// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Registered memory that is accessed without its owner's help (docs/one-sided.md, clause 8):
//! showing one's own and taking it back, and accessing a remote's, by load and store where it lies
//! in a shared file, else by single copy where that pays.
//!
//! Called by the endpoint; calls ring's registrations and memory. Whatever cannot be done here, or must not be, is asked of
//! the owner by message, which also finds out what was wrong with it.

use weft_contract::{DirectOp, Range, Registration, RemoteId};
use weft_memory::atomic::apply;
use weft_memory::single_copy::ProcessMemory;
use weft_memory::{ForeignMemory, single_copy};
use weft_os::{clock, sleep};
use weft_ring::{Lease, Registrations};

use crate::choice::prefers_single_copy;
use crate::remote::Link;
use crate::transport::Transport;

/// An owner that showed no sign of progress for so long is not waited for. Chosen: some of the ticks in which it shows one.
const AWAY_NS: u64 = 5_000_000;

/// Lengths that are copied by system call even while the owner serves requests. Measured
/// (docs/lab/2026-11-22-one-sided-beside-shm.md): below, the system call costs more than an answer;
/// above, both sides at work through chunks are as fast, and the choice is that of messages.
const COPIED_BYTES: std::ops::Range<usize> = 8192..1 << 20;

/// Longest wait for remotes that are at memory which is taken back. Chosen: a copy of a gigabyte, many times over; who takes
/// longer was stopped.
pub(crate) const LEAVE_LIMIT_NS: u64 = if cfg!(test) {
    50_000_000
} else {
    5_000_000_000
};

/// Time between looks whether a remote that is waited for lives. Chosen.
const LEAVE_LOOK_NS: u64 = 1_000_000;

/// Views of a remote's registrations above which those taken back are unmapped at the next access. Chosen.
const VIEWS_COUNT: usize = 16;

/// Showing our own memory.
impl Transport {
    /// Lets remotes of this host touch memory without our help. It need not succeed: who does not find it asks. Setup.
    pub fn publish_registration(&mut self, registration: &Registration) {
        let leaving = &self.leaving;
        let is_left = |index: usize| leaving.iter().all(|&(_, entry)| entry != index);
        let shown = weft_ring::Registration {
            key: registration.key,
            base: registration.base,
            length_bytes: registration.length_bytes,
            address: registration.address,
            readable: registration.readable,
            writable: registration.writable,
        };
        Registrations::of(self.own.region.mapping()).publish(&shown, is_left);
    }

    /// Takes memory back: when this answers true, no remote touches it any more without our help. False if one is still at
    /// it and does not come to an end: ask again. Setup; waits for copies that are under way.
    pub fn withdraw_registration(&mut self, key: u64) -> bool {
        if let Some(index) = Registrations::of(self.own.region.mapping()).withdraw(key) {
            self.leaving.push((key, index));
        }
        let mut entries = std::mem::take(&mut self.leaving);
        entries.retain(|&(of, index)| of != key || !self.wait_until_left(index));
        self.leaving = entries;
        self.leaving.iter().all(|&(of, _)| of != key)
    }

    /// Takes all memory back, before the endpoint goes.
    pub(crate) fn withdraw_all(&mut self) {
        for key in Registrations::of(self.own.region.mapping()).keys() {
            if !self.withdraw_registration(key) {
                (self.settings.report)(
                    "a process of this host was stopped while it accessed registered memory of this one, which closes its endpoint",
                );
            }
        }
    }

    /// Waits until no remote is at an entry, or those that are have died.
    fn wait_until_left(&self, index: usize) -> bool {
        let region = &self.own.region;
        let registrations = Registrations::of(region.mapping());
        let begin_ns = clock::monotonic_ns();
        let mut next_look_ns = begin_ns + LEAVE_LOOK_NS;
        loop {
            let users = registrations.users(index, region.slots().claimed_count());
            if users.is_empty() {
                return true;
            }
            let now_ns = clock::monotonic_ns();
            if now_ns >= next_look_ns {
                next_look_ns = now_ns + LEAVE_LOOK_NS;
                let is_dead = |slot: &usize| {
                    region
                        .slots()
                        .claimant(*slot)
                        .is_none_or(|claimant| self.own.is_gone(&claimant))
                };
                let dead = users.into_iter().filter(is_dead);
                dead.for_each(|slot| registrations.end(slot));
            }
            if now_ns - begin_ns > LEAVE_LIMIT_NS {
                return false;
            }
            sleep::yield_now();
        }
    }
}

/// Accessing a remote's.
impl Transport {
    /// Reads or writes registered memory of `remote` now, without its help; false if that cannot
    /// be, and nothing was done. Fast path where the memory is mapped.
    pub fn access_directly(
        &mut self,
        remote: RemoteId,
        range: &Range,
        op: &mut DirectOp<'_>,
    ) -> bool {
        self.contact(remote);
        let Some(Link::Ready(attached)) = self
            .remotes
            .get_mut(remote.index())
            .map(|entry| &mut entry.link)
        else {
            return false;
        };
        let registrations = Registrations::of(attached.region.mapping());
        let (slot, length_bytes) = (attached.slot, range.length_bytes as usize);
        let Some(lease) = registrations.begin(slot, range.key) else {
            return false;
        };
        let Some(offset_bytes) = allowed_offset(&lease, range, op) else {
            registrations.end(slot);
            return false;
        };
        if attached.views.count() > VIEWS_COUNT {
            let is_current = |index, generation| registrations.is_current(index, generation);
            attached.views.forget(is_current);
        }
        if let Some(memory) = attached
            .views
            .memory(&lease, (attached.pid, &attached.owner.process))
        {
            let done = load_and_store(memory, (offset_bytes, length_bytes), op);
            registrations.end(slot);
            if done {
                self.statistics.mapped.add(length_bytes as u64);
            }
            return done;
        }
        let address = lease.registration.address.wrapping_add(offset_bytes as u64);
        let done = self.copy_if_that_pays(remote, (address, length_bytes), op);
        if let Link::Ready(attached) = &self.remotes[remote.index()].link {
            Registrations::of(attached.region.mapping()).end(slot);
        }
        done
    }

    /// Copies by system call where that is permitted and faster than to ask: for a short length it costs more than the answer of a
    /// remote that waits for requests, and far less than waiting for one that computes or has no processor.
    #[inline(never)]
    fn copy_if_that_pays(
        &mut self,
        remote: RemoteId,
        (address, length_bytes): (u64, usize),
        op: &DirectOp<'_>,
    ) -> bool {
        let Link::Ready(attached) = &self.remotes[remote.index()].link else {
            return false;
        };
        let (memory, last_ns) = (attached.memory(), attached.region.last_progress_ns());
        let is_away = || clock::monotonic_ns().saturating_sub(last_ns) > AWAY_NS;
        let shares_cores = self.housekeeping.shares_cores;
        let pays = !matches!(op, DirectOp::Atomic(..))
            && (COPIED_BYTES.contains(&length_bytes)
                || prefers_single_copy(self.settings.single_copy, shares_cores)
                || is_away())
            && self.may_single_copy(remote);
        let done = pays && copy(&memory, address, length_bytes, op);
        if done {
            self.statistics.copied.add(length_bytes as u64);
        }
        done
    }
}

/// Where a range begins in its registration, if it lies inside and may be accessed so.
#[inline]
fn allowed_offset(lease: &Lease, range: &Range, op: &DirectOp<'_>) -> Option<usize> {
    let registration = &lease.registration;
    let (reads, writes) = op.reads_and_writes();
    let offset = range.address.checked_sub(registration.base)?;
    let end = offset.checked_add(range.length_bytes)?;
    let is_allowed = (!reads || registration.readable) && (!writes || registration.writable);
    (is_allowed && end <= registration.length_bytes).then_some(offset as usize)
}

/// Accesses mapped memory; false if an element cannot be changed at once from here.
#[inline]
fn load_and_store(
    memory: &ForeignMemory,
    (offset_bytes, length_bytes): (usize, usize),
    op: &mut DirectOp<'_>,
) -> bool {
    memory.with(offset_bytes, length_bytes, |there| match op {
        DirectOp::Read(here) => there.copy_to(here, 0) == length_bytes,
        DirectOp::Write(here) => here.copy_to(there, 0) == length_bytes,
        DirectOp::Atomic(change, before) => {
            let is_atomic = change.is_at_once(there);
            if is_atomic {
                apply(change, there, before);
            }
            is_atomic
        }
    })
}

/// Copies between the two processes; false if it was refused, and the owner must be asked after all.
fn copy(memory: &ProcessMemory, address: u64, length_bytes: usize, op: &DirectOp<'_>) -> bool {
    let mut done = 0;
    while done < length_bytes {
        let (there, left) = (address.wrapping_add(done as u64), length_bytes - done);
        let copied = match op {
            DirectOp::Read(here) => single_copy::pull(memory, there, here, done, left),
            DirectOp::Write(here) => single_copy::push(memory, there, here, done, left),
            DirectOp::Atomic(..) => return false,
        };
        match copied {
            Ok(count) if count > 0 => done += count,
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;
    use std::net::SocketAddr;
    use weft_os::process_id::ProcessId;
    use weft_ring::Identity;

    fn open() -> Transport {
        let address = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        Transport::open(Settings {
            address,
            ..Settings::default()
        })
        .expect("transport")
    }

    fn begin_as(owner: &Transport, claimant: &Identity, key: u64) -> (usize, Option<Lease>) {
        let region = &owner.own.region;
        let slot = region.slots().claim(claimant).expect("a slot");
        (slot, Registrations::of(region.mapping()).begin(slot, key))
    }

    fn registration(key: u64) -> Registration {
        Registration {
            key,
            length_bytes: 8,
            ..Registration::default()
        }
    }

    #[test]
    fn memory_is_taken_back_from_an_initiator_that_died() {
        let mut owner = open();
        owner.publish_registration(&registration(3));
        let dead = Identity {
            address: SocketAddr::from(([127, 0, 0, 1], 1)),
            incarnation: 4,
            process: ProcessId::default(),
        };
        let (_, lease) = begin_as(&owner, &dead, 3);
        assert!(lease.is_some());
        assert!(
            owner.withdraw_registration(3),
            "nobody is left who could touch it"
        );
        assert!(begin_as(&owner, &dead, 3).1.is_none());
    }

    #[test]
    fn an_initiator_that_lives_is_waited_for_and_its_entry_not_used_again() {
        let (mut owner, initiator) = (open(), open());
        owner.publish_registration(&registration(3));
        let (slot, lease) = begin_as(&owner, &initiator.own.identity, 3);
        assert!(!owner.withdraw_registration(3), "it is still at it");
        owner.publish_registration(&registration(3));
        let (_, other) = begin_as(&owner, &initiator.own.identity, 3);
        assert_ne!(
            lease.map(|lease| lease.index),
            other.map(|lease| lease.index)
        );
        Registrations::of(owner.own.region.mapping()).end(slot);
        owner.withdraw_all();
        assert_eq!(owner.leaving.len(), 1, "the other one is at it now");
    }

    #[test]
    fn an_endpoint_that_closes_takes_all_back() {
        let mut owner = open();
        let region = owner.own.region.clone();
        (0..20).for_each(|key| owner.publish_registration(&registration(key)));
        assert_eq!(Registrations::of(region.mapping()).keys().len(), 20);
        drop(owner);
        assert!(Registrations::of(region.mapping()).keys().is_empty());
    }
}
