// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The choice against made-up machines: each method takes the time that a test says.

use std::time::Duration;

use super::*;

fn open(single_copy: bool, mapped: bool) -> Open {
    Open {
        single_copy,
        cooperative: false,
        mapped,
    }
}

/// Runs transfers of a MiB that take the given times; answers how often each method was taken.
fn run(
    choice: &mut CopyTuner,
    transfers: u32,
    may_single_copy: bool,
    elapsed_ns: [u64; 3],
) -> [u32; 3] {
    let mut taken = [0; 3];
    for _ in 0..transfers {
        let method = choice.next(
            1 << 20,
            open(may_single_copy, false),
            Direction::Unidirectional,
        );
        taken[method as usize] += 1;
        choice.learn(
            method,
            1 << 20,
            Duration::from_nanos(elapsed_ns[method as usize]),
            Lesson::Unidirectional,
        );
    }
    taken
}

#[test]
fn the_fastest_way_is_taken_nearly_always() {
    for fastest in 0..3 {
        let mut elapsed_ns = [100_000; 3];
        elapsed_ns[fastest] = 40_000;
        let taken = run(&mut CopyTuner::new(), 1000, true, elapsed_ns);
        assert!(
            taken[fastest] > 960,
            "{taken:?}, where {fastest} is the fastest"
        );
    }
}

#[test]
fn a_change_of_the_machine_changes_the_choice() {
    let mut choice = CopyTuner::new();
    run(&mut choice, 500, true, [100_000, 40_000, 60_000]);
    let taken = run(&mut choice, 1000, true, [150_000, 150_000, 50_000]);
    assert!(taken[2] > 600, "{taken:?}");
}

#[test]
fn single_copy_is_never_taken_where_it_is_not_permitted() {
    let taken = run(&mut CopyTuner::new(), 500, false, [1, 40_000, 60_000]);
    assert_eq!(taken[0], 0);
    assert!(taken[1] > 480);
}

#[test]
fn a_mapped_heap_leaves_only_how_to_store() {
    for (mapped_ns, non_temporal_ns) in [(50_000, 90_000), (90_000, 50_000)] {
        let mut choice = CopyTuner::new();
        let elapsed_ns = [1, 1, 1, mapped_ns, non_temporal_ns];
        let mut taken = [0; 5];
        for _ in 0..1000 {
            let method = choice.next(1 << 20, open(true, true), Direction::Unidirectional);
            taken[method as usize] += 1;
            choice.learn(
                method,
                1 << 20,
                Duration::from_nanos(elapsed_ns[method as usize]),
                Lesson::Unidirectional,
            );
        }
        assert_eq!(taken[..3], [0; 3]);
        assert_eq!(taken[3] > 940, mapped_ns < non_temporal_ns, "{taken:?}");
        assert_eq!(taken[4] > 940, mapped_ns > non_temporal_ns, "{taken:?}");
    }
}

#[test]
fn size_classes_do_not_disturb_each_other() {
    let mut choice = CopyTuner::new();
    run(&mut choice, 500, true, [100_000, 40_000, 60_000]);
    for _ in 0..10 {
        choice.learn(
            CopyMethod::SingleCopy,
            1 << 26,
            Duration::from_millis(1),
            Lesson::Unidirectional,
        );
        choice.learn(
            CopyMethod::Pipelined,
            1 << 26,
            Duration::from_millis(9),
            Lesson::Unidirectional,
        );
        choice.learn(
            CopyMethod::PipelinedNonTemporal,
            1 << 26,
            Duration::from_millis(9),
            Lesson::Unidirectional,
        );
    }
    assert_eq!(
        choice.next(1 << 26, open(true, false), Direction::Unidirectional),
        CopyMethod::SingleCopy
    );
}

#[test]
fn what_the_way_before_has_left_is_not_charged_to_the_one_that_follows() {
    for direction in [
        Direction::Unidirectional,
        Direction::Bidirectional,
        Direction::BidirectionalDeep,
    ] {
        let lesson = match direction {
            Direction::Unidirectional => Lesson::Unidirectional,
            _ => Lesson::Bidirectional,
        };
        let mut choice = CopyTuner::new();
        let (mut before, mut taken) = (CopyMethod::Pipelined, 0);
        for _ in 0..1000 {
            let method = choice.next(1 << 20, open(true, false), direction);
            taken += u32::from(method == CopyMethod::Pipelined);
            // Each is paid for by the message after it.
            let elapsed = Duration::from_nanos([100_000, 40_000, 100_000][before as usize]);
            choice.learn(method, 1 << 20, elapsed, lesson);
            before = method;
        }
        assert!(taken > 920, "{taken} of {direction:?}");
    }
}

#[test]
fn bidirectional_traffic_is_known_apart() {
    let mut choice = CopyTuner::new();
    run(&mut choice, 500, true, [100_000, 40_000, 60_000]);
    for _ in 0..500 {
        let method = choice.next(1 << 20, open(true, false), Direction::Bidirectional);
        let elapsed = Duration::from_nanos([10_000, 40_000, 60_000][method as usize]);
        choice.learn(method, 1 << 20, elapsed, Lesson::Bidirectional);
    }
    assert_eq!(choice.published(20), 2 | 1 << 4);
    choice.follow(1 << 21, CopyMethod::Cooperative);
    assert_eq!(choice.published(21), 6 << 4);
}

#[test]
fn a_way_that_is_hopeless_in_the_next_class_is_not_tried_first() {
    let mut choice = CopyTuner::new();
    run(&mut choice, 500, true, [200_000, 40_000, 50_000]);
    let mut taken = [0; 3];
    for _ in 0..30 {
        let method = choice.next(1 << 19, open(true, false), Direction::Unidirectional);
        taken[method as usize] += 1;
        choice.learn(
            method,
            1 << 19,
            Duration::from_micros(20),
            Lesson::Unidirectional,
        );
    }
    assert!(taken[0] == 0 && taken[2] > 0, "{taken:?}");
}
