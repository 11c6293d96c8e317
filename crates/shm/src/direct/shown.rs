// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Showing our own registered memory, so that remotes of this host touch it without our help, and
//! taking it back. Called by the transport; calls ring's registrations.

use weft_contract::Registration;
use weft_os::{clock, sleep};
use weft_ring::Registrations;

use crate::contact::own::Own;

/// Longest wait for remotes that are at memory which is taken back. Chosen: a copy of a gigabyte,
/// many times over; who takes longer was stopped.
pub(crate) const LEAVE_LIMIT_NS: u64 = if cfg!(test) {
    50_000_000
} else {
    5_000_000_000
};

/// Time between looks whether a remote that is waited for lives. Chosen.
const LEAVE_LOOK_NS: u64 = 1_000_000;

/// Our registrations, as others find them in our region.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    /// Those that were taken back while a remote was at them.
    leaving: Vec<Leaving>,
}

/// A registration that was taken back while a remote was at it.
#[derive(Clone, Copy, Debug)]
struct Leaving {
    key: u64,
    entry: usize,
}

impl Shown {
    /// Lets remotes of this host touch memory without our help. It need not succeed: who does not
    /// find it asks. Set-up.
    pub(crate) fn publish(&self, own: &Own, registration: &Registration) {
        let is_left = |index: usize| self.leaving.iter().all(|leaving| leaving.entry != index);
        let shown = weft_ring::Registration {
            key: registration.key,
            base: registration.base,
            length_bytes: registration.length_bytes,
            address: registration.address,
            readable: registration.readable,
            writable: registration.writable,
        };
        Registrations::of(own.region().mapping()).publish(&shown, is_left);
    }

    /// Takes memory back: when this answers true, no remote touches it any more without our help.
    /// False if one is still at it and does not come to an end: ask again. Set-up; waits for copies
    /// that are under way.
    pub(crate) fn withdraw(&mut self, own: &Own, key: u64) -> bool {
        if let Some(entry) = Registrations::of(own.region().mapping()).withdraw(key) {
            self.leaving.push(Leaving { key, entry });
        }
        self.leaving
            .retain(|leaving| leaving.key != key || !wait_until_left(own, leaving.entry));
        self.leaving.iter().all(|leaving| leaving.key != key)
    }

    /// Takes all memory back, before the endpoint goes.
    pub(crate) fn withdraw_all(&mut self, own: &Own) {
        for key in Registrations::of(own.region().mapping()).keys() {
            if !self.withdraw(own, key) {
                own.report(
                    "this process closes its endpoint, but a process of this host was stopped \
                     while it accessed registered memory of this one",
                );
            }
        }
    }
}

/// Waits until no remote is at an entry, or those that are have died.
fn wait_until_left(own: &Own, entry: usize) -> bool {
    let registrations = Registrations::of(own.region().mapping());
    let begin_ns = clock::monotonic_ns();
    let mut next_look_ns = begin_ns + LEAVE_LOOK_NS;
    loop {
        let users = registrations.users(entry, own.slots().claimed_count());
        if users.is_empty() {
            return true;
        }
        let now_ns = clock::monotonic_ns();
        if now_ns >= next_look_ns {
            next_look_ns = now_ns + LEAVE_LOOK_NS;
            let is_dead = |slot: &usize| {
                let claimant = own.slots().claimant(*slot);
                claimant.is_none_or(|claimant| own.is_gone(&claimant))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;
    use std::net::SocketAddr;
    use weft_os::process_id::ProcessId;
    use weft_ring::{Identity, Lease};

    fn open() -> (Own, Shown) {
        let address = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        let settings = Settings {
            address,
            ..Settings::default()
        };
        (Own::open(&settings).expect("own"), Shown::default())
    }

    fn begin_as(owner: &Own, claimant: &Identity, key: u64) -> (usize, Option<Lease>) {
        let region = owner.region();
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
        let (owner, mut shown) = open();
        shown.publish(&owner, &registration(3));
        let dead = Identity {
            address: SocketAddr::from(([127, 0, 0, 1], 1)),
            incarnation: 4,
            process: ProcessId::default(),
        };
        let (_, lease) = begin_as(&owner, &dead, 3);
        assert!(lease.is_some());
        assert!(
            shown.withdraw(&owner, 3),
            "nobody is left who could touch it"
        );
        assert!(begin_as(&owner, &dead, 3).1.is_none());
    }

    #[test]
    fn an_initiator_that_lives_is_waited_for_and_its_entry_not_used_again() {
        let ((owner, mut shown), (initiator, _)) = (open(), open());
        shown.publish(&owner, &registration(3));
        let (slot, lease) = begin_as(&owner, initiator.identity(), 3);
        assert!(!shown.withdraw(&owner, 3), "it is still at it");
        shown.publish(&owner, &registration(3));
        let (_, other) = begin_as(&owner, initiator.identity(), 3);
        assert_ne!(
            lease.map(|lease| lease.index),
            other.map(|lease| lease.index)
        );
        Registrations::of(owner.region().mapping()).end(slot);
        shown.withdraw_all(&owner);
        assert_eq!(shown.leaving.len(), 1, "the other one is at it now");
    }
}
