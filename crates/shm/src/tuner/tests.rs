// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The laws of every tuner, whatever its costs are.

use proptest::prelude::*;

use super::*;

const KEPT: Rules = Rules {
    recent: 3,
    estimate: Estimate::Median,
    settling: 1,
    first: 2,
    trial: 3,
    alternates: false,
    hopeless: 2,
    costs: Costs::Kept,
    shortest_period: 256,
    first_period: 256,
    longest_period: 4096,
};

const FRESH: Rules = Rules {
    recent: 2,
    estimate: Estimate::Least,
    settling: 0,
    first: 2,
    trial: 2,
    alternates: true,
    hopeless: 2,
    costs: Costs::Fresh {
        margin: Some(16),
        slower: Some((4, 16)),
    },
    shortest_period: 64,
    first_period: 8,
    longest_period: 1024,
};

const ALL: Open<4> = Open {
    alternatives: [true; 4],
    default: 0,
    may_try: true,
};

const BOTH: Open<2> = Open {
    alternatives: [true; 2],
    default: 0,
    may_try: true,
};

/// Takes so many samples; answers how often each alternative was taken.
fn take<const N: usize>(
    tuner: &mut Tuner<N>,
    (rules, open): (&Rules, &Open<N>),
    count: usize,
    mut cost: impl FnMut(usize) -> u64,
) -> [usize; N] {
    let mut taken = [0; N];
    for _ in 0..count {
        let one = tuner.next(rules, open);
        taken[one] += 1;
        tuner.learn(rules, one, cost(one));
    }
    taken
}

proptest! {
    #[test]
    fn the_cheapest_is_taken_nearly_always(
        costs in prop::collection::vec(100_u64..10_000, 4),
        open in prop::array::uniform4(any::<bool>()),
    ) {
        let open = Open { alternatives: [true, open[1], open[2], open[3]], ..ALL };
        let mut tuner = Tuner::new(&KEPT);
        tuner.settle_for(1);
        let taken = take(&mut tuner, (&KEPT, &open), 10_000, |one| costs[one]);
        let is_open = |one: &usize| open.alternatives[*one];
        let least = (0..4).filter(is_open).map(|one| costs[one]).min();
        let well = (0..4).filter(|one| is_open(one) && costs[*one] * 9 <= least.unwrap_or(0) * 10);
        prop_assert!(well.map(|one| taken[one]).sum::<usize>() > 9_000, "{:?}", taken);
        prop_assert!((0..4).all(|one| is_open(&one) || taken[one] == 0), "{:?}", taken);
    }

    #[test]
    fn the_other_one_becomes_usual_if_and_only_if_it_is_cheaper_by_the_margin(
        usual in 1_000_u64..10_000,
        other in 1_000_u64..10_000,
    ) {
        let mut tuner = Tuner::new(&FRESH);
        let costs = [usual, other];
        take(&mut tuner, (&FRESH, &BOTH), 10, |one| costs[one]);
        let taken = take(&mut tuner, (&FRESH, &BOTH), 50, |one| costs[one]);
        prop_assert_eq!(taken[1] == 50, other < usual - usual / 16, "{:?}", taken);
    }

    #[test]
    fn one_interruption_decides_nothing(interrupted in 0_usize..10, by in 1_u64..1_000_000) {
        let mut tuner = Tuner::new(&FRESH);
        let mut count = 0;
        let interrupted = |one: usize| {
            count += 1;
            [2_000, 1_000][one] + if count == interrupted + 1 { by } else { 0 }
        };
        take(&mut tuner, (&FRESH, &BOTH), 10, interrupted);
        // A trial that was given up comes again.
        let taken = take(&mut tuner, (&FRESH, &BOTH), 1_000, |one| [2_000, 1_000][one]);
        prop_assert!(taken[1] > 800, "{:?}", taken);
    }
}

#[test]
fn trials_that_fail_become_rare_up_to_a_limit() {
    let mut tuner = Tuner::new(&FRESH);
    let between: Vec<usize> = (0..9)
        .map(|_| {
            let mut count = 0;
            while tuner.next(&FRESH, &BOTH) == 0 {
                tuner.learn(&FRESH, 0, 1_000);
                count += 1;
            }
            // The first sample of a hopeless one is its last.
            tuner.learn(&FRESH, 1, 2_001);
            count
        })
        .collect();
    assert_eq!(between, [2, 16, 32, 64, 128, 256, 512, 1024, 1024]);
}

#[test]
fn a_usual_one_that_becomes_slower_brings_the_next_trial_forward() {
    let mut tuner = Tuner::new(&FRESH);
    take(&mut tuner, (&FRESH, &BOTH), 100, |one| [1_000, 1_500][one]);
    let taken = take(&mut tuner, (&FRESH, &BOTH), 10, |one| [2_000, 1_500][one]);
    assert!(taken[1] >= 2, "{taken:?}");
    let taken = take(&mut tuner, (&FRESH, &BOTH), 10, |one| [2_000, 1_500][one]);
    assert_eq!(taken, [0, 10]);
}

#[test]
fn no_trial_begins_while_none_may() {
    let mut tuner = Tuner::new(&FRESH);
    let closed = Open {
        may_try: false,
        ..BOTH
    };
    let taken = take(&mut tuner, (&FRESH, &closed), 1_000, |one| [1_000, 1][one]);
    assert_eq!(taken, [1_000, 0]);
    assert!(!tuner.is_trying() && tuner.next(&FRESH, &BOTH) == 1 && tuner.is_trying());
    tuner.give_up(&FRESH);
    assert_eq!(tuner.next(&FRESH, &BOTH), 0);
}

#[test]
fn samples_that_settle_tell_nothing() {
    let mut tuner = Tuner::new(&KEPT);
    tuner.settle_for(1);
    let mut before = 0;
    // Each sample is paid for by the one after it.
    let late = |one: usize| [1_000, 400, 1_000, 1_000][std::mem::replace(&mut before, one)];
    let taken = take(&mut tuner, (&KEPT, &ALL), 1_000, late);
    assert!(taken[1] > 900, "{taken:?}");
}

#[test]
fn what_costs_too_much_where_something_alike_is_tuned_is_not_tried_at_first() {
    let mut known = Tuner::new(&KEPT);
    take(&mut known, (&KEPT, &ALL), 100, |one| {
        [1_000, 1_100, 1_501, 9_000][one]
    });
    let mut tuner = Tuner::new(&KEPT);
    tuner.learn_from(&KEPT, &known, 3);
    let taken = take(&mut tuner, (&KEPT, &ALL), 50, |_| 1_000);
    assert!(
        taken[0] > 0 && taken[1] > 0 && taken[2..] == [0, 0],
        "{taken:?}"
    );
}
