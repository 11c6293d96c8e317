// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of when buffers are shared.

use super::*;
use proptest::prelude::*;

const KIB: usize = 1024;
const MIB: usize = KIB * KIB;

fn span_at(start: usize, bytes: usize) -> Span {
    let end = start + bytes.next_multiple_of(PAGE_BYTES);
    Span { start, end }
}

fn span(bytes: usize) -> Span {
    span_at(8192, bytes)
}

fn offers_until_due(offers: &mut Offers, span: Span) -> u64 {
    1 + (0..).find(|_| offers.note(span)).unwrap_or(u64::MAX)
}

/// What the messages of a buffer's life cost beyond copies out of shared memory.
fn cost_of_life_ns(offers: &mut Offers, span: Span, messages: u64) -> u64 {
    let (mut cost_ns, mut is_shared) = (0, false);
    for _ in 0..messages {
        if is_shared {
            offers.use_shared(span);
        } else if offers.note(span) {
            offers.begin(span);
            (cost_ns, is_shared) = (cost_ns + sharing_ns(span.bytes()), true);
        } else {
            cost_ns += loss_ns(span.bytes());
        }
    }
    if is_shared {
        offers.end(span);
    }
    cost_ns
}

/// What they would have cost if somebody had known how many there would be.
fn least_cost_ns(span: Span, messages: u64) -> u64 {
    sharing_ns(span.bytes()).min(messages * loss_ns(span.bytes()))
}

#[test]
fn a_buffer_is_shared_once_its_messages_lost_what_sharing_costs() {
    for (bytes, least, most) in [
        (8 * KIB, 100, 110),
        (16 * KIB, 80, 95),
        (64 * KIB, 45, 55),
        (256 * KIB, 25, 32),
        (MIB, 19, 24),
        (8 * MIB, 18, 22),
        (1 << 30, 18, 20),
    ] {
        let due = offers_until_due(&mut Offers::new(), span(bytes));
        assert!((least..=most).contains(&due), "{due} offers of {bytes}");
    }
}

#[test]
fn programs_that_send_some_long_messages_share_nothing() {
    // The most long messages of a rank in FT and in IS of class A.
    for (bytes, messages) in [(32 * MIB, 8), (64 * MIB, 8), (8 * MIB, 11)] {
        let mut offers = Offers::new();
        let is_due = (0..messages).any(|_| offers.note(span(bytes)));
        assert!(!is_due, "{bytes}");
    }
}

#[test]
fn where_it_is_asked_for_a_buffer_is_shared_at_its_first_offer_unless_that_brought_nothing() {
    let mut offers = Offers::new();
    offers.is_asked = true;
    assert!(offers.note(span(MIB)));
    offers.begin(span(MIB));
    (0..100).for_each(|_| offers.use_shared(span(MIB)));
    offers.end(span(MIB));
    assert!(offers.note(span(MIB)));
    offers.begin(span(MIB));
    offers.end(span(MIB));
    assert!(!offers.note(span(MIB)));
}

#[test]
fn what_was_refused_is_looked_at_again_less_and_less_often() {
    let mut offers = Offers::new();
    let mut waited = Vec::new();
    for _ in 0..8 {
        waited.push(offers_until_due(&mut offers, span(MIB)));
        offers.refuse(span(MIB));
    }
    assert_eq!(waited[1].div_ceil(waited[0]), 4, "{waited:?}");
    assert!(waited[2] > 15 * waited[0] && waited[7] <= 1024 * waited[0]);
    assert_eq!(waited[6], waited[7], "but never never");
}

proptest! {
    #[test]
    fn a_buffer_never_costs_more_than_twice_the_least(
        bytes in 8 * KIB..1 << 30,
        messages in 1_u64..2000,
    ) {
        let span = span(bytes);
        let cost_ns = cost_of_life_ns(&mut Offers::new(), span, messages);
        let least_ns = least_cost_ns(span, messages);
        prop_assert!(cost_ns <= 2 * least_ns, "{cost_ns} ns instead of {least_ns}");
    }

    /// Lives in which nothing is shared leave their loss to the next one: so all of them together
    /// are compared.
    #[test]
    fn buffers_that_are_freed_cost_at_most_three_times_the_least(
        lives in proptest::collection::vec((8 * KIB..4 * MIB, 1_u64..2000), 1..40),
    ) {
        let mut offers = Offers::new();
        let (mut cost_ns, mut private_ns, mut apart_ns) = (0, 0, 0);
        for (index, &(bytes, messages)) in lives.iter().enumerate() {
            let span = span(bytes);
            let life_ns = cost_of_life_ns(&mut offers, span, messages);
            cost_ns += life_ns;
            private_ns += messages * loss_ns(span.bytes());
            prop_assert!(cost_ns <= 3 * private_ns, "life {index}: {cost_ns} of {private_ns}");
            let mut fresh = Offers::new();
            apart_ns += cost_of_life_ns(&mut fresh, span, messages);
        }
        prop_assert!(cost_ns <= 3 * private_ns.min(2 * apart_ns), "{cost_ns} of {private_ns}");
    }

    /// A life that is shared costs at most three times the least, whatever the lives before.
    #[test]
    fn a_life_like_no_other_costs_at_most_three_times_the_least(
        bytes in 8 * KIB..16 * MIB,
        lives in proptest::collection::vec(1_u64..3000, 1..20),
        last in 1_u64..3000,
    ) {
        let (mut offers, span) = (Offers::new(), span(bytes));
        for messages in lives {
            // Each life begins where nothing is left of the one before.
            cost_of_life_ns(&mut offers, span, messages);
            offers.entry(span.start).lost_ns = 0;
        }
        let cost_ns = cost_of_life_ns(&mut offers, span, last);
        let least_ns = least_cost_ns(span, last);
        prop_assert!(cost_ns <= 3 * least_ns + 1, "{cost_ns} ns instead of {least_ns}");
    }

    #[test]
    fn buffers_do_not_count_for_each_other(other in 3_usize..100_000, messages in 1_u64..20) {
        let mut offers = Offers::new();
        let mut is_due = false;
        for _ in 0..messages {
            is_due |= offers.note(span_at(other * PAGE_BYTES, MIB));
        }
        prop_assert!(!is_due && !offers.note(span(MIB)));
    }
}
