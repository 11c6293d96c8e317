// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Models of registrations, through every interleaving: a remote that touches memory while its
//! owner takes it back (docs/shm-layout.md, clause 10).
//!
//! Run by tests/loom/run.sh. Each says which change of the code it is there to catch.

use loom::sync::Arc;
use loom::thread;

use super::*;
use crate::sync::UnsafeCell;

struct Shared {
    entry: [Entry; 1],
    mark: [Mark; 1],
    memory: UnsafeCell<u64>,
}

// SAFETY: loom itself finds accesses of the memory that are not ordered.
unsafe impl Sync for Shared {}

fn shared() -> Arc<Shared> {
    let zero = || AtomicU64::new(0);
    Arc::new(Shared {
        entry: [Entry {
            generation: zero(),
            key: zero(),
            base: zero(),
            length_bytes: zero(),
            address: zero(),
            rights: zero(),
        }],
        mark: [Mark { entry: zero() }],
        memory: UnsafeCell::new(0),
    })
}

fn table(shared: &Shared) -> Registrations<'_> {
    Registrations {
        entries: &shared.entry,
        marks: &shared.mark,
    }
}

/// A remote that finds the registration touches its memory, so many times; the owner takes it back
/// meanwhile, waits for whoever is there, and reads.
fn taken_back_while_it_is_touched(times: usize) {
    loom::model(move || {
        let own = shared();
        let registration = Registration {
            key: 5,
            ..Registration::default()
        };
        assert!(table(&own).publish(&registration, |_| true));
        let theirs = own.clone();
        let remote = thread::spawn(move || {
            for _ in 0..times {
                if table(&theirs).begin(0, 5).is_some() {
                    theirs.memory.with_mut(|place| {
                        // SAFETY: what this model is about; loom checks it.
                        unsafe { *place = 1 }
                    });
                    table(&theirs).end(0);
                }
            }
        });
        let index = table(&own).withdraw(5).expect("published");
        while !table(&own).users(index, 1).is_empty() {
            thread::yield_now();
        }
        own.memory.with(|place| {
            // SAFETY: nobody uses the entry any more, so the remote has written; loom checks it.
            unsafe { *place }
        });
        remote.join().expect("the remote ends");
    });
}

/// Catches: either fence left out, the mark set after the second look or cleared without release.
#[test]
fn memory_is_the_owners_alone_once_it_is_taken_back_and_left() {
    taken_back_while_it_is_touched(1);
}

/// An owner publishes while a remote looks. Catches: the generation raised without release, or
/// no fence between its load and those of the rest.
#[test]
fn a_registration_is_seen_whole_or_not_at_all() {
    loom::model(|| {
        let own = shared();
        let registration = Registration {
            key: 5,
            base: 6,
            length_bytes: 7,
            ..Registration::default()
        };
        let theirs = own.clone();
        let remote = thread::spawn(move || {
            if let Some(lease) = table(&theirs).begin(0, 5) {
                assert_eq!(lease.registration, registration, "half a registration");
                table(&theirs).end(0);
            }
        });
        assert!(table(&own).publish(&registration, |_| true));
        remote.join().expect("the remote ends");
    });
}

/// A remote touches memory, and is refused when it begins again. Catches: the mark of the refused
/// one cleared before the fence, so that the owner sees it cleared and not what was touched before.
#[test]
fn what_was_touched_before_a_refusal_is_seen_after_it() {
    taken_back_while_it_is_touched(2);
}
