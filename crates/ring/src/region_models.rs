// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Models of first contact, through every interleaving: opening, claiming, freeing, closing
//! (docs/shm-layout.md, clauses 1 to 3).
//!
//! Run by tests/loom/run.sh. Each says which change of the code it is there to catch.

use std::net::SocketAddr;

use loom::sync::Arc;
use loom::thread;
use weft_os::process_id::ProcessId;

use super::*;

fn identity(number: u64) -> Identity {
    Identity {
        address: SocketAddr::from(([127, 0, 0, number as u8], number as u16)),
        incarnation: number * 1000,
        process: ProcessId {
            pid: number as u32,
            ..ProcessId::default()
        },
    }
}

fn words() -> IdentityWords {
    IdentityWords {
        words: [0; 5].map(AtomicU64::new),
    }
}

fn slot() -> Arc<Slot> {
    Arc::new(Slot {
        state: AtomicU64::new(SLOT_FREE),
        claimant: words(),
        received: [AtomicU64::new(0), AtomicU64::new(0)],
    })
}

fn header() -> Arc<RegionHeader> {
    let zero = || AtomicU64::new(0);
    Arc::new(RegionHeader {
        magic: zero(),
        version: zero(),
        fingerprint: zero(),
        owner: words(),
        probe: [zero(), zero()],
        state: zero(),
        claim_hint: zero(),
        heap: [zero(), zero(), zero(), zero()],
        doorbell: Doorbell::new(),
        published: Published::new(),
    })
}

/// Catches: the magic stored without release, or loaded without acquire.
#[test]
fn who_finds_a_region_finds_all_of_its_header() {
    loom::model(|| {
        let own = header();
        let theirs = own.clone();
        let owner = thread::spawn(move || own.write(&identity(1), (5, 6)));
        match theirs.check() {
            Ok(()) => {
                assert_eq!(theirs.owner.load(), identity(1));
                assert_eq!(theirs.probe[1].load(Ordering::Relaxed), 6);
            }
            Err(why) => assert_eq!(why, AttachError::NotARegion, "half a header was believed"),
        }
        owner.join().expect("owner");
    });
}

/// Catches: the claim made by a load and a store instead of one exchange.
#[test]
fn a_slot_has_one_claimant() {
    loom::model(|| {
        let slot = slot();
        let other = slot.clone();
        let claimant = thread::spawn(move || other.claim(&identity(1)));
        let ours = slot.claim(&identity(2));
        let theirs = claimant.join().expect("claimant");
        assert!(ours != theirs, "one of two gets it");
        let expected = identity(if ours { 2 } else { 1 });
        assert_eq!(slot.claimant(), Some(expected));
    });
}

/// A claimant that dies at any step has said who it was. Catches: a slot taken first, and its
/// holder written after.
#[test]
fn a_slot_that_is_taken_names_its_holder() {
    loom::model(|| {
        let slot = slot();
        let other = slot.clone();
        let claimant = thread::spawn(move || other.claim(&identity(7)));
        if let Some(holder) = slot.holder() {
            assert_eq!(holder, identity(7).incarnation);
        }
        claimant.join().expect("claimant");
        assert_eq!(slot.holder(), Some(identity(7).incarnation));
    });
}

/// Catches: the state set to active before the identity is written, or without release.
#[test]
fn a_claimant_is_named_whole_or_not_at_all() {
    loom::model(|| {
        let slot = slot();
        let other = slot.clone();
        let claimant = thread::spawn(move || other.claim(&identity(7)));
        if let Some(seen) = slot.claimant() {
            assert_eq!(seen, identity(7));
        }
        claimant.join().expect("claimant");
        assert_eq!(slot.claimant(), Some(identity(7)));
    });
}

/// The owner resets a lane and frees its slot; the next claimant must find the lane reset. Catches:
/// the slot freed without release, or claimed without acquire.
#[test]
fn whoever_claims_a_freed_slot_finds_its_lane_reset() {
    loom::model(|| {
        let slot = slot();
        assert!(slot.claim(&identity(1)));
        let lane = Arc::new(loom::cell::UnsafeCell::new(1_u64));
        let (their_slot, their_lane) = (slot.clone(), lane.clone());
        let claimant = thread::spawn(move || {
            if their_slot.claim(&identity(2)) {
                // SAFETY: the owner has let the lane go; the model fails if it still writes.
                their_lane.with(|lane| assert_eq!(unsafe { *lane }, 0, "an old lane"));
            }
        });
        // SAFETY: nobody else has claimed the slot.
        lane.with_mut(|lane| unsafe { *lane = 0 });
        slot.free();
        claimant.join().expect("claimant");
    });
}

/// An owner closes while a remote makes contact. A claim that came through is one that the owner
/// can see, and whoever looks later finds the region closed. Catches: a close that does not release
/// what was done before it.
#[test]
fn a_close_is_seen_by_all_who_come_later() {
    loom::model(|| {
        let header = header();
        header.write(&identity(1), (0, 0));
        let slot = slot();
        let goodbye = Arc::new(AtomicU64::new(0));
        let (own, their_slot, said) = (header.clone(), slot.clone(), goodbye.clone());
        let remote = thread::spawn(move || match own.check() {
            Ok(()) => their_slot.claim(&identity(2)),
            Err(why) => {
                assert_eq!(why, AttachError::Closed);
                assert_eq!(said.load(Ordering::Relaxed), 1);
                false
            }
        });
        goodbye.store(1, Ordering::Relaxed);
        header.close();
        let claimed = remote.join().expect("remote");
        assert_eq!(slot.claimant().is_some(), claimed);
        assert_eq!(header.check(), Err(AttachError::Closed));
    });
}
