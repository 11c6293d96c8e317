// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of atomic operations on a remote's memory. fi_atomic(3). What each operation makes of each
//! type is tested where it is calculated, in weft-memory.

use weft_endpoint::{Access, Atomic, Element, Error, Operator, UserBuffer, flags};

use crate::access::{access, range, register};
use crate::pair::*;

fn words(values: &[u64]) -> UserBuffer {
    let bytes: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    buffer_of(&bytes)
}

fn words_in(buffer: &UserBuffer) -> Vec<u64> {
    let bytes = bytes_in(buffer);
    let words = bytes.chunks_exact(8);
    words
        .map(|word| u64::from_le_bytes(word.try_into().unwrap()))
        .collect()
}

/// One atomic operation on words.
struct Step {
    operator: Operator,
    operands: UserBuffer,
    comparands: UserBuffer,
    result: Option<UserBuffer>,
}

fn step(operator: Operator, operands: &[u64]) -> Step {
    Step {
        operator,
        operands: words(operands),
        comparands: UserBuffer::empty(),
        result: None,
    }
}

fn change<F: Fabric>(pair: &mut Pair<F>, side: usize, access: &Access<'_>, step: &Step) {
    let atomic = Atomic {
        operator: step.operator,
        element: Element::U64,
        operands: &step.operands,
        comparands: &step.comparands,
    };
    pair.insist(|pair| {
        let side = &mut pair.sides[side];
        let result = step.result.clone();
        side.calls().atomic(access, &atomic, result)
    });
}

pub fn elements_are_changed_fetched_and_compared<F: Fabric>() {
    let mut pair = Pair::<F>::open();
    let (to, memory) = (pair.sides[A].other, words(&[10, 20, 30, 40]));
    let key = register(&mut pair, B, &memory);
    let ranges = [range(key, 8, 16)];
    let call = access(to, &ranges, 5);
    change(&mut pair, A, &call, &step(Operator::Sum, &[1, 2]));
    let done = pair.success(A);
    assert_eq!(
        (done.context, done.flags),
        (5, flags::ATOMIC | flags::WRITE)
    );
    assert_eq!(words_in(&memory), [10, 21, 32, 40]);
    let result = room(16);
    let fetch = Step {
        result: Some(result.clone()),
        ..step(Operator::BitOr, &[8, 64])
    };
    change(&mut pair, A, &call, &fetch);
    assert_eq!(pair.success(A).flags, flags::ATOMIC | flags::READ);
    assert_eq!(words_in(&result), [21, 32]);
    assert_eq!(words_in(&memory), [10, 29, 96, 40]);
    let look = Step {
        operands: UserBuffer::empty(),
        ..Step {
            result: Some(result.clone()),
            ..step(Operator::Read, &[])
        }
    };
    change(&mut pair, A, &call, &look);
    pair.success(A);
    assert_eq!(words_in(&result), [29, 96]);
    let swap = Step {
        comparands: words(&[29, 0]),
        result: Some(result.clone()),
        ..step(Operator::SwapIfEqual, &[1, 2])
    };
    change(&mut pair, A, &call, &swap);
    pair.success(A);
    assert_eq!(words_in(&result), [29, 96]);
    assert_eq!(words_in(&memory), [10, 1, 96, 40], "only the equal one");
    pair.settle();
    assert_eq!(pair.accesses(A), [3, 1, 0, 0]);
    if !F::IS_DIRECT {
        assert_eq!(pair.accesses(B)[2..], [3, 3]);
    }
}

pub fn long_rows_and_several_ranges_are_changed_element_by_element<F: Fabric>() {
    let mut pair = Pair::<F>::open();
    let to = pair.sides[A].other;
    let memory = words(&[1; 1200]);
    let key = register(&mut pair, B, &memory);
    let ranges = [range(key, 800, 4000), range(key, 5600, 4000)];
    let operands: Vec<u64> = (0..1000).collect();
    let result = UserBuffer::leaked(&[17, 7983]);
    let fetch = Step {
        result: Some(result.clone()),
        ..step(Operator::Sum, &operands)
    };
    change(&mut pair, A, &access(to, &ranges, 1), &fetch);
    pair.success(A);
    assert_eq!(words_in(&result), vec![1; 1000]);
    let found = words_in(&memory);
    let expected = |index: usize| match index {
        100..600 => 1 + index as u64 - 100,
        700..1200 => 1 + index as u64 - 200,
        _ => 1,
    };
    assert!((0..1200).all(|index| found[index] == expected(index)));
}

pub fn additions_from_both_sides_at_once_are_all_counted<F: Fabric>() {
    const COUNT: usize = 400;
    let mut pair = Pair::<F>::open();
    let memory = words(&[0]);
    let key = register(&mut pair, B, &memory);
    let ranges = [range(key, 0, 8)];
    let result = [A, B].map(|_| room(8 * COUNT));
    for index in 0..COUNT {
        for side in [A, B] {
            let to = [pair.sides[A].other, pair.sides[B].myself][side];
            let fetch = Step {
                result: Some(result[side].part(8 * index, 8)),
                ..step(Operator::Sum, &[1])
            };
            change(&mut pair, side, &access(to, &ranges, index), &fetch);
        }
    }
    for side in [A, B] {
        for _ in 0..COUNT {
            pair.success(side);
        }
    }
    assert_eq!(words_in(&memory), [2 * COUNT as u64]);
    let mut seen = [words_in(&result[A]), words_in(&result[B])].concat();
    seen.sort_unstable();
    let each: Vec<u64> = (0..2 * COUNT as u64).collect();
    assert_eq!(seen, each, "every sum was seen by exactly one");
}

pub fn additions_of_eight_initiators_are_all_counted<F: Fabric>() {
    const INITIATORS: usize = 8;
    const COUNT: usize = 50;
    let mut pair = Pair::<F>::open();
    let memory = words(&[0]);
    let key = register(&mut pair, B, &memory);
    let ranges = [range(key, 0, 8)];
    let mut initiators: Vec<_> = (0..INITIATORS).map(|_| pair.newcomer()).collect();
    let (one, nothing) = (words(&[1]), UserBuffer::empty());
    let atomic = Atomic {
        operator: Operator::Sum,
        element: Element::U64,
        operands: &one,
        comparands: &nothing,
    };
    let results: Vec<UserBuffer> = (0..INITIATORS).map(|_| room(8 * COUNT)).collect();
    for index in 0..COUNT {
        for number in 0..INITIATORS {
            pair.insist(|_| {
                let side = &mut initiators[number];
                side.poll();
                let (call, result) = (
                    access(side.other, &ranges, index),
                    results[number].part(8 * index, 8),
                );
                side.calls().atomic(&call, &atomic, Some(result))
            });
        }
    }
    let start = std::time::Instant::now();
    let total = (INITIATORS * COUNT) as u64;
    while initiators.iter_mut().map(|side| side.reads()).sum::<u64>() < total {
        assert!(start.elapsed() < PATIENCE, "some additions never ended");
        pair.poll();
        initiators.iter_mut().for_each(|side| side.poll());
    }
    assert_eq!(words_in(&memory), [total]);
    let mut seen: Vec<u64> = results.iter().flat_map(words_in).collect();
    seen.sort_unstable();
    assert_eq!(seen, (0..total).collect::<Vec<u64>>(), "each sum seen once");
}

pub fn a_compare_and_swap_elects_one<F: Fabric>() {
    let mut pair = Pair::<F>::open();
    for round in 1..50 {
        let memory = words(&[0]);
        let key = register(&mut pair, B, &memory);
        let ranges = [range(key, 0, 8)];
        let results = [A, B].map(|_| room(8));
        for side in [A, B] {
            let to = [pair.sides[A].other, pair.sides[B].myself][side];
            let swap = Step {
                comparands: words(&[0]),
                result: Some(results[side].clone()),
                ..step(Operator::SwapIfEqual, &[round + side as u64])
            };
            change(&mut pair, side, &access(to, &ranges, 0), &swap);
        }
        for side in [A, B] {
            pair.success(side);
        }
        let seen = results.map(|result| words_in(&result)[0]);
        let winner = words_in(&memory)[0];
        let elected: Vec<usize> = [A, B].into_iter().filter(|&side| seen[side] == 0).collect();
        assert_eq!(elected.len(), 1, "{seen:?}");
        assert_eq!(winner, round + elected[0] as u64);
        assert_eq!(seen[1 - elected[0]], winner, "the other sees who won");
    }
}

pub fn what_has_no_meaning_is_refused_at_once_and_bad_keys_in_the_end<F: Fabric>() {
    let mut pair = Pair::<F>::open();
    let to = pair.sides[A].other;
    let key = register(&mut pair, B, &room(64));
    let ranges = [range(key, 0, 8)];
    let call = access(to, &ranges, 3);
    let side = &mut pair.sides[A];
    let nothing = UserBuffer::empty();
    let (one, two) = (words(&[1]), words(&[1, 2]));
    let mut refused =
        |operator, element, operands: &UserBuffer, comparands: &UserBuffer, result| {
            let atomic = Atomic {
                operator,
                element,
                operands,
                comparands,
            };
            side.calls().atomic(&call, &atomic, result).unwrap_err()
        };
    let (double, word) = (Element::F64, Element::U64);
    let xor = refused(Operator::BitXor, double, &one, &nothing, None);
    assert_eq!(xor, Error::Unsupported, "no bits of a fraction");
    let swap = refused(Operator::SwapIfEqual, word, &one, &one, None);
    assert_eq!(swap, Error::Unsupported, "a comparison has a result");
    let longer = refused(Operator::Sum, word, &two, &nothing, None);
    assert_eq!(longer, Error::Invalid);
    let uncompared = refused(Operator::SwapIfEqual, word, &one, &nothing, Some(room(8)));
    assert_eq!(uncompared, Error::Invalid);
    let half = refused(Operator::Sum, Element::U128, &one, &nothing, None);
    assert_eq!(half, Error::Invalid);
    let wrong = [range(key + 1, 0, 8)];
    change(
        &mut pair,
        A,
        &access(to, &wrong, 9),
        &step(Operator::Sum, &[1]),
    );
    let failed = pair.failure(A);
    assert_eq!(
        (failed.error, failed.completion.context),
        (Error::KeyRejected, 9)
    );
    assert_eq!(failed.completion.flags, flags::ATOMIC | flags::WRITE);
}
