// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of published registrations, between one owner and its remotes in one process.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::layout::REGION_BYTES;

fn mapping() -> Mapping {
    let file = weft_os::region_file::create_memfd("weft-registrations", REGION_BYTES as u64)
        .expect("memfd");
    Mapping::shared(file.as_fd(), REGION_BYTES).expect("map")
}

fn registration(key: u64) -> Registration {
    Registration {
        key,
        base: 100 * key,
        length_bytes: 50,
        address: 0x7000 + key,
        readable: true,
        writable: key.is_multiple_of(2),
    }
}

#[test]
#[cfg_attr(miri, ignore = "Miri knows no memfd_create(2)")]
fn what_is_published_is_found_until_it_is_withdrawn() {
    let mapping = mapping();
    let table = Registrations::of(&mapping);
    for key in [0, 1, 2, u64::MAX] {
        assert_eq!(table.begin(3, key), None, "nothing there yet");
        let shown = registration(key % 1000);
        let shown = Registration { key, ..shown };
        assert!(table.publish(&shown, |_| true));
        let lease = table.begin(3, key).expect("published");
        assert_eq!(lease.registration, shown);
        table.end(3);
    }
    assert_eq!(table.keys().len(), 4);
    let index = table.withdraw(1).expect("published");
    assert_eq!((table.withdraw(1), table.begin(3, 1)), (None, None));
    assert!(table.users(index, 10).is_empty());
    assert!(table.begin(3, 2).is_some(), "the others stay");
}

#[test]
#[cfg_attr(miri, ignore = "Miri knows no memfd_create(2)")]
fn the_owner_sees_who_is_at_what_it_takes_back() {
    let mapping = mapping();
    let table = Registrations::of(&mapping);
    assert!(table.publish(&registration(8), |_| true));
    let first = table.begin(5, 8).expect("published");
    let index = table.withdraw(8).expect("published");
    assert_eq!(table.users(index, SLOT_COUNT), [5]);
    assert!(table.publish(&registration(8), |entry| entry != index));
    let second = table.begin(6, 8).expect("elsewhere");
    assert_ne!(
        first.index, second.index,
        "an entry in use is not used again"
    );
    table.end(5);
    assert!(table.users(index, SLOT_COUNT).is_empty());
    assert_eq!(table.users(second.index, SLOT_COUNT), [6]);
}

#[test]
#[cfg_attr(miri, ignore = "Miri knows no memfd_create(2)")]
fn a_registration_in_the_same_entry_is_another() {
    let mapping = mapping();
    let table = Registrations::of(&mapping);
    let mut seen = Vec::new();
    for _ in 0..3 {
        assert!(table.publish(&registration(4), |_| true));
        let lease = table.begin(0, 4).expect("published");
        table.end(0);
        assert!(!seen.contains(&(lease.index, lease.generation)));
        seen.push((lease.index, lease.generation));
        table.withdraw(4);
    }
}

#[test]
#[cfg_attr(miri, ignore = "Miri knows no memfd_create(2)")]
fn what_finds_no_room_is_not_published_and_all_else_stays() {
    let mapping = mapping();
    let table = Registrations::of(&mapping);
    let published: Vec<u64> = (0..5000)
        .filter(|&key| table.publish(&registration(key), |_| true))
        .collect();
    assert!(published.len() > REGISTRATION_COUNT / 2 && published.len() <= REGISTRATION_COUNT);
    for key in 0..5000 {
        let found = table.begin(0, key).map(|lease| lease.registration);
        assert_eq!(found.is_some(), published.contains(&key));
        assert!(found.is_none_or(|found| found == registration(key)));
    }
    assert_eq!(table.begin(SLOT_COUNT, published[0]), None, "no such slot");
}

#[test]
#[cfg_attr(miri, ignore = "Miri knows no memfd_create(2)")]
fn nothing_is_touched_after_it_was_taken_back() {
    let mapping = mapping();
    let memory = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for slot in 0..2 {
            let (mapping, memory) = (&mapping, &memory);
            scope.spawn(move || {
                let table = Registrations::of(mapping);
                let mut touched = 0;
                while touched < 2000 {
                    if let Some(lease) = table.begin(slot, 7) {
                        let now = memory.load(Ordering::Relaxed);
                        assert_eq!(
                            now, lease.registration.base,
                            "it is what it was registered as"
                        );
                        table.end(slot);
                        touched += 1;
                    }
                    if memory.load(Ordering::Relaxed) == u64::MAX {
                        break;
                    }
                }
            });
        }
        let table = Registrations::of(&mapping);
        for round in 1..3000_u64 {
            memory.store(round, Ordering::Relaxed);
            let shown = Registration {
                base: round,
                ..registration(7)
            };
            assert!(table.publish(&shown, |_| true));
            if round % 8 == 0 {
                std::thread::yield_now();
            }
            let index = table.withdraw(7).expect("published");
            while !table.users(index, 2).is_empty() {
                std::hint::spin_loop();
            }
        }
        memory.store(u64::MAX, Ordering::Relaxed);
    });
}
