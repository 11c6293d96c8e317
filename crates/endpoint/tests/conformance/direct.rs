// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of one-sided operations that are carried out without their target (docs/one-sided.md,
//! clause 8): by load and store in shared files, by single copy elsewhere. The other laws run on
//! such a fabric too (`SharedMemoryDirect`).

use std::sync::atomic::{AtomicU64, Ordering};

use weft_endpoint::{
    Access, Atomic, Element, Error, KeyChoice, Operator, RegionSettings, UserBuffer, flags,
};
use weft_memory::single_copy::can_read;

use crate::access::{access, range, read, register, register_for, write};
use crate::fabrics::{SharedMemory, SharedMemoryConfined, SharedMemoryDirect};
use crate::pair::*;

fn uncounted<F: Fabric>() -> Pair<F> {
    Pair::with(Options {
        uncounted: true,
        ..Options::default()
    })
}

fn shared(length_bytes: usize) -> UserBuffer {
    UserBuffer::leaked_shared(length_bytes).expect("a shared file")
}

/// The end of an operation for which only its initiator makes progress.
fn alone<F: Fabric>(pair: &mut Pair<F>) -> Option<Outcome> {
    (0..100).find_map(|_| {
        pair.sides[A].poll();
        pair.sides[A].heard()
    })
}

/// How many accesses of side A needed no message: by load and store, and by single copy.
fn direct_counts(pair: &mut Pair<impl Fabric<Local = weft_shm::Transport>>) -> (u64, u64) {
    let side = &mut pair.sides[A];
    let statistics = side.domain.endpoints().statistics(side.endpoint).unwrap();
    let local = statistics.local.unwrap();
    (local.mapped.messages, local.copied.messages)
}

fn may_copy() -> bool {
    let word = Box::new(77_u64);
    let may = can_read(std::process::id(), (&raw const *word) as u64, 77);
    if !may {
        eprintln!("skip: single copy is not permitted here");
    }
    may
}

/// Writes and reads of every length; the target never calls.
fn every_length_without_the_target<F: Fabric>(pair: &mut Pair<F>, memory: &UserBuffer) {
    let to = pair.sides[A].other;
    let key = register(pair, B, memory);
    for length in [1, 8, 63, 4096, 8193, 300_000] {
        let ranges = [range(key, 5, length)];
        let source = buffer_of(&pattern(length, length));
        write(pair, A, &access(to, &ranges, 1), &source);
        let written = alone(pair).expect("the target is not needed").unwrap();
        assert_eq!(written.context, 1);
        assert_eq!(written.flags, flags::RMA | flags::WRITE);
        assert!(bytes_in(memory)[5..][..length] == pattern(length, length));
        let target = room(length);
        read(pair, A, &access(to, &ranges, 2), &target);
        assert_eq!(alone(pair).expect("at once").unwrap().context, 2);
        assert!(bytes_in(&target) == pattern(length, length));
    }
    let ranges = [range(key, 0, 4)];
    let inject = Access {
        inject: true,
        ..access(to, &ranges, 3)
    };
    write(pair, A, &inject, &buffer_of(&[1, 2, 3, 4]));
    assert_eq!(bytes_in(memory)[..4], [1, 2, 3, 4]);
    assert!(alone(pair).is_none(), "an inject has no entry");
}

#[test]
fn shared_files_are_read_and_written_while_their_owner_is_away() {
    let mut pair = uncounted::<SharedMemoryConfined>();
    every_length_without_the_target(&mut pair, &shared(400_000));
    assert_eq!(direct_counts(&mut pair), (13, 0));
}

#[test]
fn private_memory_is_read_and_written_while_its_owner_is_away() {
    if may_copy() {
        let mut pair = uncounted::<SharedMemory>();
        std::thread::sleep(std::time::Duration::from_millis(20));
        every_length_without_the_target(&mut pair, &room(400_000));
        assert_eq!(direct_counts(&mut pair), (0, 13));
    }
}

#[test]
fn where_single_copy_is_refused_private_memory_is_accessed_by_message() {
    let mut pair = uncounted::<SharedMemoryConfined>();
    let (to, memory) = (pair.sides[A].other, room(8));
    let key = register(&mut pair, B, &memory);
    let ranges = [range(key, 0, 8)];
    write(&mut pair, A, &access(to, &ranges, 1), &buffer_of(&[7; 8]));
    assert!(alone(&mut pair).is_none(), "it takes the target");
    assert_eq!(pair.success(A).context, 1);
    assert_eq!(bytes_in(&memory), [7; 8]);
    assert_eq!(direct_counts(&mut pair), (0, 0));
}

#[test]
fn what_the_target_is_to_hear_of_goes_by_message() {
    let mut pair = Pair::<SharedMemoryConfined>::open();
    let (to, memory) = (pair.sides[A].other, shared(8));
    let key = register(&mut pair, B, &memory);
    let ranges = [range(key, 0, 8)];
    write(&mut pair, A, &access(to, &ranges, 1), &room(8));
    pair.success(A);
    assert_eq!(pair.accesses(B)[3], 1, "counted");
    let mut pair = uncounted::<SharedMemoryConfined>();
    let key = register(&mut pair, B, &memory);
    let ranges = [range(key, 0, 8)];
    let told = Access {
        cq_data: Some(9),
        ..access(pair.sides[A].other, &ranges, 1)
    };
    write(&mut pair, A, &told, &room(8));
    assert_eq!(pair.success(B).cq_data, 9);
    pair.success(A);
    let counter = pair.sides[B].domain.counters().open();
    let domain = &mut pair.sides[B].domain;
    domain.regions().bind_counter(key, counter).unwrap();
    let to = pair.sides[A].other;
    write(&mut pair, A, &access(to, &ranges, 1), &room(8));
    pair.success(A);
    let counted = pair.sides[B].domain.counters().read(counter).unwrap();
    assert_eq!((counted, direct_counts(&mut pair)), (1, (0, 0)));
}

#[test]
fn an_access_does_not_overtake_one_that_goes_by_message() {
    let mut pair = uncounted::<SharedMemoryConfined>();
    let (to, memory) = (pair.sides[A].other, shared(8));
    let key = register(&mut pair, B, &memory);
    let ranges = [range(key, 0, 8)];
    for inject in [false, true] {
        let told = Access {
            cq_data: Some(1),
            inject,
            ..access(to, &ranges, 1)
        };
        write(&mut pair, A, &told, &buffer_of(&[1; 8]));
        let last = Access {
            inject,
            ..access(to, &ranges, 2)
        };
        write(&mut pair, A, &last, &buffer_of(&[2; 8]));
        assert_eq!(bytes_in(&memory), [0; 8], "both wait for the target");
        pair.settle();
        assert_eq!(bytes_in(&memory), [2; 8]);
        write(&mut pair, A, &access(to, &ranges, 3), &buffer_of(&[0; 8]));
        assert_eq!(bytes_in(&memory), [0; 8], "and then it is direct again");
    }
}

#[test]
fn what_is_not_in_order_is_refused_by_the_target_and_touched_by_nobody() {
    let mut pair = uncounted::<SharedMemoryDirect>();
    let to = pair.sides[A].other;
    for memory in [shared(100), room(100)] {
        let readable = register_for(&mut pair, B, &memory, (true, false));
        let writable = register_for(&mut pair, B, &memory, (false, true));
        let closed = register(&mut pair, B, &memory);
        let nothing = [range(closed, 0, 100)];
        write(&mut pair, A, &access(to, &nothing, 0), &room(100));
        pair.success(A);
        pair.sides[B].domain.regions().deregister(closed).unwrap();
        for (ranges, expected) in [
            ([range(closed, 0, 8)], Error::KeyRejected),
            ([range(readable, 0, 8)], Error::AccessDenied),
            ([range(writable, 93, 8)], Error::OutOfRange),
            ([range(writable, usize::MAX, 8)], Error::OutOfRange),
        ] {
            write(&mut pair, A, &access(to, &ranges, 1), &buffer_of(&[7; 8]));
            assert_eq!(pair.failure(A).error, expected);
        }
        let ranges = [range(writable, 0, 8)];
        read(&mut pair, A, &access(to, &ranges, 1), &room(8));
        assert_eq!(pair.failure(A).error, Error::AccessDenied);
        assert_eq!(bytes_in(&memory), [0; 100]);
    }
}

fn add_one(pair: &mut Pair<SharedMemoryConfined>, key: u64, result: Option<UserBuffer>) {
    let to = pair.sides[A].other;
    let one = buffer_of(&1_u64.to_le_bytes());
    let nothing = UserBuffer::empty();
    let atomic = Atomic {
        operator: Operator::Sum,
        element: Element::U64,
        operands: &one,
        comparands: &nothing,
    };
    pair.insist(|pair| {
        let side = &mut pair.sides[A];
        let ranges = [range(key, 8, 8)];
        let call = access(to, &ranges, 1);
        side.calls().atomic(&call, &atomic, result.clone())
    });
}

#[test]
fn elements_in_shared_files_are_changed_while_their_owner_is_away() {
    let mut pair = uncounted::<SharedMemoryConfined>();
    let memory = shared(64);
    let key = register(&mut pair, B, &memory);
    let result = room(8);
    add_one(&mut pair, key, None);
    alone(&mut pair).expect("at once").unwrap();
    add_one(&mut pair, key, Some(result.clone()));
    let fetched = alone(&mut pair).expect("at once").unwrap();
    assert_eq!(fetched.flags, flags::ATOMIC | flags::READ);
    assert_eq!(bytes_in(&result), 1_u64.to_le_bytes());
    assert_eq!(bytes_in(&memory)[8..16], 2_u64.to_le_bytes());
    assert_eq!(direct_counts(&mut pair), (2, 0));
}

/// Bytes of each write; with its request they fit one message, which is carried out or refused when
/// it arrives.
const LENGTH: usize = 4096;

/// Writes all the time to whatever key it is told, until there is none.
fn write_until_zero(mut side: Side<weft_shm::Transport>, key: &AtomicU64) {
    let (to, source) = (side.other, buffer_of(&[7; LENGTH]));
    loop {
        let key = key.load(Ordering::Relaxed);
        if key == 0 {
            return;
        }
        let ranges = [range(key, 0, LENGTH)];
        // What was closed meanwhile goes by message, and there may be no room for more of them.
        let _ = side.calls().write(&access(to, &ranges, 1), &source);
        side.poll();
        while side.heard().is_some() {}
    }
}

#[test]
fn nothing_lands_after_a_registration_is_closed() {
    for is_shared in [true, false] {
        if !is_shared && !may_copy() {
            continue;
        }
        let mut pair = uncounted::<SharedMemoryDirect>();
        let memory = if is_shared {
            shared(LENGTH)
        } else {
            room(LENGTH)
        };
        let clear = buffer_of(&[0; LENGTH]);
        // Key 0 is the first that we choose; it stands for none here.
        register(&mut pair, B, &room(1));
        let key = AtomicU64::new(register(&mut pair, B, &memory));
        let Pair {
            sides: [a, mut b], ..
        } = pair;
        std::thread::scope(|scope| {
            let told = &key;
            scope.spawn(move || write_until_zero(a, told));
            let mut written_count = 0;
            for _ in 0..300 {
                let start = std::time::Instant::now();
                while bytes_in(&memory)[LENGTH - 1] == 0 && start.elapsed().as_millis() < 10 {
                    b.poll();
                }
                let last = key.load(Ordering::Relaxed);
                b.domain.regions().deregister(last).unwrap();
                written_count += u32::from(bytes_in(&memory)[LENGTH - 1] == 7);
                clear.copy_to(&memory, 0);
                for _ in 0..3 {
                    std::thread::yield_now();
                    b.poll();
                    assert!(
                        bytes_in(&memory) == [0; LENGTH],
                        "written after it was closed"
                    );
                }
                let settings = RegionSettings {
                    memory: memory.clone(),
                    base: 0,
                    readable: true,
                    writable: true,
                    key: KeyChoice::Ours,
                };
                key.store(
                    b.domain.regions().register(settings).unwrap(),
                    Ordering::Relaxed,
                );
            }
            key.store(0, Ordering::Relaxed);
            assert!(written_count > 0, "the other side wrote meanwhile");
        });
    }
}
