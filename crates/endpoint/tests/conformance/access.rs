// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of reads and writes of a remote's memory. fi_rma(3), fi_mr(3).

use std::time::Instant;

use weft_endpoint::{Access, Error, FiAddr, KeyChoice, Range, RegionSettings, UserBuffer, flags};
use weft_memory::BytesView;

use crate::pair::*;

const LENGTHS: [usize; 16] = [
    0, 1, 7, 8, 16, 17, 40, 64, 1000, 4096, 8168, 8169, 8192, 65_537, 300_001, 2_000_000,
];
const GUARD: usize = 64;

/// Registers memory of one side for everything, under a key of its own.
pub fn register<F: Fabric>(pair: &mut Pair<F>, side: usize, memory: &UserBuffer) -> u64 {
    register_for(pair, side, memory, (true, true))
}

pub fn register_for<F: Fabric>(
    pair: &mut Pair<F>,
    side: usize,
    memory: &UserBuffer,
    (readable, writable): (bool, bool),
) -> u64 {
    let settings = RegionSettings {
        memory: memory.clone(),
        base: 0,
        readable,
        writable,
        key: KeyChoice::Ours,
    };
    pair.sides[side]
        .domain
        .regions()
        .register(settings)
        .unwrap()
}

pub fn range(key: u64, address: usize, length: usize) -> Range {
    Range {
        address: address as u64,
        length_bytes: length as u64,
        key,
    }
}

pub fn access<'a>(to: FiAddr, ranges: &'a [Range], context: usize) -> Access<'a> {
    Access {
        to,
        ranges,
        cq_data: None,
        flags: None,
        inject: false,
        context,
    }
}

pub fn write<F: Fabric>(pair: &mut Pair<F>, side: usize, access: &Access<'_>, bytes: &UserBuffer) {
    pair.insist(|pair| {
        let side = &mut pair.sides[side];
        side.calls().write(access, bytes)
    });
}

pub fn read<F: Fabric>(pair: &mut Pair<F>, side: usize, access: &Access<'_>, target: &UserBuffer) {
    pair.insist(|pair| {
        let side = &mut pair.sides[side];
        side.calls().read(access, target.clone())
    });
}

pub fn every_length_is_written_and_read_back_and_nothing_beside_it<F: Fabric>() {
    let mut pair = Pair::<F>::open();
    let to = pair.sides[A].other;
    for (index, length) in LENGTHS.into_iter().enumerate() {
        let memory = buffer_of(&vec![0xEE; length + 2 * GUARD]);
        let key = register(&mut pair, B, &memory);
        let (bytes, ranges) = (pattern(index, length), [range(key, GUARD, length)]);
        write(&mut pair, A, &access(to, &ranges, 1), &buffer_of(&bytes));
        let done = pair.success(A);
        assert_eq!((done.context, done.flags), (1, flags::RMA | flags::WRITE));
        let guard = vec![0xEE; GUARD];
        let expected = [&guard[..], &bytes, &guard].concat();
        assert!(bytes_in(&memory) == expected, "{length} bytes went wrong");
        let target = room(length);
        read(&mut pair, A, &access(to, &ranges, 2), &target);
        let done = pair.success(A);
        assert_eq!((done.context, done.flags), (2, flags::RMA | flags::READ));
        assert!(bytes_in(&target) == bytes, "{length} bytes came back wrong");
        close(&mut pair, key);
    }
    pair.quiet(B);
    let count = LENGTHS.len() as u64;
    assert_eq!(pair.accesses(A), [count, count, 0, 0]);
    if !F::IS_DIRECT {
        assert_eq!(pair.accesses(B), [0, 0, count, count]);
    }
}

pub fn scattered_memory_is_touched_in_order_on_both_sides<F: Fabric>() {
    let mut pair = Pair::<F>::open();
    let to = pair.sides[A].other;
    for length in [12, 100, 9000, 200_000] {
        let memories = [UserBuffer::leaked(&[length, 5]), room(length)];
        let keys = [0, 1].map(|index| register(&mut pair, B, &memories[index]));
        let third = length / 3;
        let ranges = [
            range(keys[1], 1, third),
            range(keys[0], length - third, third + 3),
            range(keys[1], 1 + third, length - 2 * third - 3),
        ];
        let bytes = pattern(length, length);
        let source = UserBuffer::leaked(&[2, length / 2, length - length / 2 - 2]);
        source.fill(0, BytesView::from_slice(&bytes));
        write(&mut pair, A, &access(to, &ranges, 1), &source);
        pair.success(A);
        let second = &bytes_in(&memories[0])[length - third..][..third + 3];
        assert!(second == &bytes[third..2 * third + 3], "{length} bytes");
        let target = UserBuffer::leaked(&[third, 1, length - third - 1]);
        read(&mut pair, A, &access(to, &ranges, 2), &target);
        pair.success(A);
        assert!(bytes_in(&target) == bytes, "{length} bytes came back wrong");
    }
}

pub fn what_may_not_be_touched_is_refused_and_stays_as_it_is<F: Fabric>() {
    let mut pair = Pair::<F>::open();
    let to = pair.sides[A].other;
    for length in [8, 5000, 100_000] {
        let memory = buffer_of(&pattern(1, length));
        let [open, readable, writable] = [(true, true), (true, false), (false, true)]
            .map(|rights| register_for(&mut pair, B, &memory, rights));
        let closed = register(&mut pair, B, &memory);
        close(&mut pair, closed);
        let (whole, source) = (
            |key| [range(key, 0, length)],
            buffer_of(&pattern(2, length)),
        );
        let writes = [
            (whole(99), Error::KeyRejected),
            (whole(closed), Error::KeyRejected),
            (whole(readable), Error::AccessDenied),
            ([range(open, 1, length)], Error::OutOfRange),
            ([range(open, usize::MAX, length)], Error::OutOfRange),
        ];
        for (index, (ranges, expected)) in writes.into_iter().enumerate() {
            write(&mut pair, A, &access(to, &ranges, index), &source);
            let failed = pair.failure(A);
            assert_eq!((failed.error, failed.completion.context), (expected, index));
            assert_eq!(failed.completion.flags, flags::RMA | flags::WRITE);
        }
        let target = buffer_of(&vec![7; length]);
        for (ranges, expected) in [
            (whole(99), Error::KeyRejected),
            (whole(writable), Error::AccessDenied),
            ([range(open, length, length)], Error::OutOfRange),
        ] {
            read(&mut pair, A, &access(to, &ranges, 3), &target);
            let failed = pair.failure(A);
            assert_eq!(failed.error, expected);
            assert_eq!(failed.completion.flags, flags::RMA | flags::READ);
        }
        assert_eq!(bytes_in(&target), vec![7; length]);
        assert_eq!(bytes_in(&memory), pattern(1, length));
        write(&mut pair, A, &access(to, &whole(writable), 4), &source);
        assert_eq!(pair.success(A).context, 4, "the endpoint goes on");
        assert_eq!(bytes_in(&memory), pattern(2, length));
    }
}

/// Closes a region of side B, with both sides driven while messages are at it.
fn close<F: Fabric>(pair: &mut Pair<F>, key: u64) {
    let start = Instant::now();
    while let Err(error) = pair.sides[B].domain.regions().deregister(key) {
        assert_eq!(error, Error::Busy);
        assert!(start.elapsed() < PATIENCE, "the region stays busy");
        pair.poll();
    }
    let again = pair.sides[B].domain.regions().deregister(key);
    assert_eq!(again, Err(Error::NoSuch));
}

/// A long write and a long read are posted, move for some rounds, and then their target closes the
/// region.
pub fn nothing_moves_to_or_from_a_region_after_it_was_closed<F: Fabric>() {
    let (untouched, length) = (0xEE, 300_000);
    for rounds in [0, 1, 2, 3, 5, 8, 13] {
        let mut pair = Pair::<F>::open();
        let to = pair.sides[A].other;
        let (written, shown) = (buffer_of(&vec![untouched; length]), room(length));
        let (bytes, target) = (pattern(rounds, length), room(length));
        shown.fill(0, BytesView::from_slice(&pattern(1, length)));
        let keys = [&written, &shown].map(|memory| register(&mut pair, B, memory));
        let source = buffer_of(&bytes);
        let ranges = keys.map(|key| [range(key, 0, length)]);
        write(&mut pair, A, &access(to, &ranges[0], 1), &source);
        read(&mut pair, A, &access(to, &ranges[1], 2), &target);
        for side in [B, A].repeat(rounds) {
            let side = &mut pair.sides[side];
            side.calls().progress();
        }
        for key in keys {
            close(&mut pair, key);
        }
        let at_close = bytes_in(&written);
        shown.fill(0, BytesView::from_slice(&vec![untouched; length]));
        for _ in keys {
            match pair.next(A) {
                Ok(done) if done.context == 1 => assert!(at_close == bytes, "ended unwritten"),
                Ok(_) => assert!(bytes_in(&target) == pattern(1, length), "read too late"),
                Err(failed) => assert_eq!(failed.error, Error::KeyRejected, "{rounds} rounds"),
            }
        }
        pair.settle();
        assert!(
            bytes_in(&written) == at_close,
            "written after {rounds} rounds and the close"
        );
    }
}

pub fn calls_that_contradict_themselves_are_refused_at_once<F: Fabric>() {
    let mut pair = Pair::<F>::open();
    let to = pair.sides[A].other;
    let key = register(&mut pair, B, &room(100));
    let side = &mut pair.sides[A];
    let mut try_write =
        |ranges: &[Range], to, length| side.calls().write(&access(to, ranges, 0), &room(length));
    assert_eq!(try_write(&[range(key, 0, 8)], to, 9), Err(Error::Invalid));
    assert_eq!(
        try_write(&[range(key, 0, 1); 9], to, 9),
        Err(Error::Invalid)
    );
    assert_eq!(try_write(&[], to, 1), Err(Error::Invalid));
    let huge = [range(key, 0, usize::MAX), range(key, 0, 2)];
    assert_eq!(try_write(&huge, to, 1), Err(Error::Invalid));
    let nobody = FiAddr(77);
    assert_eq!(
        try_write(&[range(key, 0, 8)], nobody, 8),
        Err(Error::Invalid)
    );
    pair.quiet(A);
}

pub fn data_of_a_write_is_an_entry_at_its_target<F: Fabric>() {
    let mut pair = Pair::<F>::with(Options {
        selective: true,
        ..Options::default()
    });
    let (to, source) = (pair.sides[A].other, pair.sides[B].other);
    for (index, length) in [0, 8, 6000, 70_000].into_iter().enumerate() {
        let memory = room(length);
        let key = register(&mut pair, B, &memory);
        let bytes = pattern(index, length);
        let ranges = [range(key, 0, length)];
        let call = Access {
            cq_data: Some(index as u64 + 1),
            ..access(to, &ranges, 0)
        };
        write(&mut pair, A, &call, &buffer_of(&bytes));
        let told = pair.success(B);
        let expected = flags::RMA | flags::REMOTE_WRITE | flags::REMOTE_CQ_DATA;
        assert_eq!((told.flags, told.cq_data), (expected, index as u64 + 1));
        assert_eq!((told.length_bytes, told.source), (length, source));
        assert_eq!(bytes_in(&memory), bytes, "the bytes are there before it");
    }
    pair.quiet(A);
}

pub fn an_injected_write_needs_its_buffer_no_longer_and_has_no_entry<F: Fabric>() {
    let mut pair = Pair::<F>::with(Options {
        long_injects: true,
        ..Options::default()
    });
    let to = pair.sides[A].other;
    let lengths = [1, 40, 5000, 8192, 8193, LONG_INJECT_BYTES];
    for (count, length) in lengths.into_iter().enumerate() {
        let memory = room(length);
        let key = register(&mut pair, B, &memory);
        let (bytes, ranges) = (pattern(length, length), [range(key, 0, length)]);
        let call = Access {
            inject: true,
            ..access(to, &ranges, 0)
        };
        let source = buffer_of(&bytes);
        write(&mut pair, A, &call, &source);
        source.fill(0, BytesView::from_slice(&vec![0; length]));
        pair.quiet(A);
        pair.quiet(B);
        assert_eq!(bytes_in(&memory), bytes);
        assert_eq!(pair.accesses(A)[1], count as u64 + 1, "counted");
    }
    let too_long = LONG_INJECT_BYTES + 1;
    let ranges = [range(0, 0, too_long)];
    let side = &mut pair.sides[A];
    let call = Access {
        inject: true,
        ..access(to, &ranges, 0)
    };
    let long = side.calls().write(&call, &room(too_long));
    assert_eq!(long, Err(Error::TooLong));
}

pub fn what_travels_with_its_request_keeps_the_order_of_messages<F: Fabric>() {
    let mut pair = Pair::<F>::open();
    let (to, memory) = (pair.sides[A].other, room(4000));
    let key = register(&mut pair, B, &memory);
    let ranges = [range(key, 0, 4000)];
    for round in 0..40 {
        pair.receive(B, want_tag(round as u64, round), &room(1));
        let (first, second) = (pattern(2 * round, 4000), pattern(2 * round + 1, 4000));
        write(&mut pair, A, &access(to, &ranges, 0), &buffer_of(&first));
        write(&mut pair, A, &access(to, &ranges, 0), &buffer_of(&second));
        let target = room(4000);
        read(&mut pair, A, &access(to, &ranges, 0), &target);
        pair.send(A, tagged(round as u64, 0), &[1]);
        assert_eq!(pair.success(B).context, round);
        assert!(bytes_in(&memory) == second, "both were written before");
        for _ in 0..4 {
            pair.success(A);
        }
        assert!(bytes_in(&target) == second, "and seen by the read");
    }
}

pub fn a_fenced_operation_waits_for_all_before_it<F: Fabric>() {
    if F::IS_DIRECT {
        // What is before it has ended when its call returns.
        return;
    }
    let mut pair = Pair::<F>::open();
    let (to, memory) = (pair.sides[A].other, room(300_000));
    let key = register(&mut pair, B, &memory);
    let ranges = [range(key, 0, 300_000)];
    let fenced = |flags| Access {
        flags: Some(flags::COMPLETION | flags),
        ..access(to, &ranges, 2)
    };
    let (first, second) = (pattern(1, 300_000), pattern(2, 300_000));
    write(&mut pair, A, &access(to, &ranges, 1), &buffer_of(&first));
    let side = &mut pair.sides[A];
    let source = buffer_of(&second);
    let refused = side.calls().write(&fenced(flags::FENCE), &source);
    assert_eq!(refused, Err(Error::Again));
    let refused = side.calls().send(
        to,
        &weft_endpoint::Send {
            flags: Some(flags::FENCE),
            ..tagged(1, 1)
        },
        &room(1),
    );
    assert_eq!(refused, Err(Error::Again));
    write(&mut pair, A, &fenced(flags::FENCE), &source);
    assert_eq!(pair.success(A).context, 1, "the first has ended before");
    assert_eq!(pair.success(A).context, 2);
    assert!(bytes_in(&memory) == second);
}

pub fn writes_from_both_sides_to_parts_of_one_region_lose_nothing<F: Fabric>() {
    const PART: usize = 3000;
    const PARTS: usize = 100;
    let mut pair = Pair::<F>::open();
    let memory = room(2 * PART * PARTS);
    let key = register(&mut pair, B, &memory);
    for part in 0..2 * PARTS {
        // The odd parts are written by the memory's own side.
        let side = part % 2;
        let to = [pair.sides[A].other, pair.sides[B].myself][side];
        let ranges = [range(key, part * PART, PART)];
        let bytes = buffer_of(&pattern(part, PART));
        write(&mut pair, side, &access(to, &ranges, part), &bytes);
    }
    for side in [A, B] {
        let mut contexts: Vec<usize> = (0..PARTS).map(|_| pair.success(side).context).collect();
        contexts.sort_unstable();
        let expected: Vec<usize> = (0..PARTS).map(|index| 2 * index + side).collect();
        assert_eq!(contexts, expected);
    }
    let all = bytes_in(&memory);
    for (part, bytes) in all.chunks(PART).enumerate() {
        assert!(bytes == pattern(part, PART), "part {part}");
    }
}

pub fn operations_on_the_dead_end<F: Fabric>() {
    let mut pair = Pair::<F>::open();
    let to = pair.sides[A].other;
    let memory = room(300_000);
    let key = register(&mut pair, B, &memory);
    let (short, long) = ([range(key, 0, 8)], [range(key, 0, 300_000)]);
    write(&mut pair, A, &access(to, &short, 0), &room(8));
    pair.success(A);
    let side = &mut pair.sides[A];
    let mut posted = 0;
    let (source, target) = (room(300_000), room(300_000));
    for ranges in [&short, &long] {
        let length = ranges[0].length_bytes as usize;
        let call = access(to, ranges, 1);
        let buffers = (source.part(0, length), target.part(0, length));
        posted += usize::from(side.calls().write(&call, &buffers.0).is_ok());
        posted += usize::from(side.calls().read(&call, buffers.1).is_ok());
    }
    assert!(posted > 0);
    if F::IS_DIRECT {
        // They ended when they were called; what is posted now finds nobody.
        for _ in 0..posted {
            pair.success(A);
        }
        posted = 1;
    }
    let endpoint = pair.sides[B].endpoint;
    pair.sides[B].domain.endpoints().close(endpoint).unwrap();
    if F::IS_DIRECT {
        write(&mut pair, A, &access(to, &short, 0), &room(8));
    }
    for _ in 0..posted {
        match pair.next(A) {
            Ok(_) => assert!(F::NEEDS_SENDER, "its target did it while it closed"),
            Err(failed) => assert!(matches!(failed.error, Error::Transfer(_))),
        }
    }
    pair.quiet(A);
}
