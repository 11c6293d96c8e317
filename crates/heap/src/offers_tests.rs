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

/// A message out of private memory.
fn message(span: Span) -> Offer {
    Offer {
        span,
        private_bytes: span.bytes(),
        messages: 1,
        are_close: false,
    }
}

fn close_message(span: Span) -> Offer {
    Offer {
        are_close: true,
        ..message(span)
    }
}

fn offers_until_due(offers: &mut Offers, offer: Offer) -> u64 {
    1 + (0..).find(|_| offers.note(offer)).unwrap_or(u64::MAX)
}

/// What the messages of a buffer's life cost beyond copies out of shared memory.
fn cost_of_life_ns(offers: &mut Offers, offer: Offer, messages: u64) -> u64 {
    let (span, mut cost_ns, mut is_shared) = (offer.span, 0, false);
    for _ in 0..messages {
        if is_shared {
            offers.use_shared(span, 1);
        } else if offers.note(offer) {
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
        (8 * KIB, 70, 80),
        (16 * KIB, 58, 66),
        (64 * KIB, 35, 42),
        (256 * KIB, 22, 28),
        (MIB, 18, 23),
        (8 * MIB, 18, 22),
        (1 << 30, 18, 20),
    ] {
        let due = offers_until_due(&mut Offers::new(), message(span(bytes)));
        assert!((least..=most).contains(&due), "{due} offers of {bytes}");
    }
}

#[test]
fn where_messages_are_close_it_is_shared_at_a_tenth_of_that_as_far_as_the_credit_goes() {
    for (bytes, most) in [(16 * KIB, 7), (64 * KIB, 5), (256 * KIB, 4), (MIB, 3)] {
        let due = offers_until_due(&mut Offers::new(), close_message(span(bytes)));
        assert!((2..=most).contains(&due), "{due} offers of {bytes}");
    }
    // A run that was found out to be close counts at once.
    let mut offers = Offers::new();
    let run = Offer {
        messages: 7,
        ..close_message(span(16 * KIB))
    };
    assert!(offers.note(run));
    // FT of class W calls alltoall eight times with 4 MiB, closely.
    let long = offers_until_due(&mut Offers::new(), close_message(span(4 * MIB)));
    assert!(long > 8, "{long}: its cost exceeds the credit");
}

#[test]
fn credit_comes_back_from_buffers_that_are_used_and_not_from_others() {
    let mut offers = Offers::new();
    for (uses, is_back) in [(100, true), (1000, true), (1, false)] {
        let before_ns = offers.credit_ns;
        offers_until_due(&mut offers, close_message(span(256 * KIB)));
        offers.begin(span(256 * KIB));
        assert!(offers.credit_ns < before_ns);
        (0..uses).for_each(|_| offers.use_shared(span(256 * KIB), 1));
        offers.end(span(256 * KIB));
        assert_eq!(offers.credit_ns == before_ns, is_back, "{uses}");
    }
    let mut offers = Offers::new();
    let mut early = 0;
    for place in 1..100 {
        let span = span_at(place * MIB, 256 * KIB);
        if offers_until_due(&mut offers, close_message(span)) < 15 {
            early += 1;
        }
        offers.begin(span);
    }
    // A buffer's stake is 0.3 ms.
    assert!((4..8).contains(&early), "{early} buffers for nothing");
}

#[test]
fn a_buffer_that_is_refused_takes_no_credit() {
    let mut offers = Offers::new();
    offers_until_due(&mut offers, close_message(span(MIB)));
    offers.refuse(span(MIB));
    offers.begin(span(MIB));
    assert_eq!(offers.credit_ns, CREDIT_NS);
}

#[test]
fn the_end_of_a_buffer_that_has_grown_costs_only_what_is_private_of_it() {
    let grown = Offer {
        private_bytes: 16 * KIB,
        ..message(span(256 * KIB))
    };
    let due = offers_until_due(&mut Offers::new(), grown);
    assert!(due < 10, "{due}");
}

#[test]
fn programs_that_send_some_long_messages_share_nothing() {
    // The most long messages of a rank in FT and in IS of class A.
    for (bytes, messages) in [(32 * MIB, 8), (64 * MIB, 8), (8 * MIB, 11)] {
        let mut offers = Offers::new();
        let is_due = (0..messages).any(|_| offers.note(message(span(bytes))));
        assert!(!is_due, "{bytes}");
    }
}

#[test]
fn where_it_is_asked_for_a_buffer_is_shared_at_its_first_offer_unless_that_brought_nothing() {
    let mut offers = Offers::new();
    offers.is_asked = true;
    assert!(offers.note(message(span(MIB))));
    offers.begin(span(MIB));
    offers.use_shared(span(MIB), 100);
    offers.end(span(MIB));
    assert!(offers.note(message(span(MIB))));
    offers.begin(span(MIB));
    offers.end(span(MIB));
    assert!(!offers.note(message(span(MIB))));
}

#[test]
fn what_was_refused_is_looked_at_again_less_and_less_often() {
    for offer in [message(span(MIB)), close_message(span(MIB))] {
        let mut offers = Offers::new();
        let mut waited = Vec::new();
        for _ in 0..9 {
            waited.push(offers_until_due(&mut offers, offer));
            offers.refuse(span(MIB));
        }
        assert_eq!(waited[2].div_ceil(waited[1]), 4, "{waited:?}");
        assert!(waited[3] > 15 * waited[1] && waited[8] <= 4096 * waited[1]);
        assert_eq!(waited[7], waited[8], "but never never");
    }
}

proptest! {
    #[test]
    fn a_buffer_never_costs_more_than_twice_the_least_and_the_credit(
        bytes in 8 * KIB..1 << 30,
        messages in 1_u64..2000,
        are_close: bool,
    ) {
        let offer = Offer { are_close, ..message(span(bytes)) };
        let cost_ns = cost_of_life_ns(&mut Offers::new(), offer, messages);
        let credit_ns = if are_close { CREDIT_NS } else { 0 };
        let least_ns = least_cost_ns(offer.span, messages);
        prop_assert!(cost_ns <= 2 * least_ns + credit_ns, "{cost_ns} ns instead of {least_ns}");
    }

    /// What is lost beyond twice the least is what is missing of the credit in the end. Each
    /// buffer has a place of its own.
    #[test]
    fn buffers_cost_at_most_twice_the_least_and_the_credit_all_together(
        lives in proptest::collection::vec((8 * KIB..4 * MIB, 1_u64..200), 1..60),
    ) {
        let mut offers = Offers::new();
        let (mut cost_ns, mut least_ns) = (0, 0);
        for (index, &(bytes, messages)) in lives.iter().enumerate() {
            let span = span_at((index + 1) * 8 * MIB, bytes);
            cost_ns += cost_of_life_ns(&mut offers, close_message(span), messages);
            least_ns += least_cost_ns(span, messages);
        }
        let lost_ns = CREDIT_NS - offers.credit_ns;
        prop_assert!(cost_ns <= 2 * least_ns + lost_ns, "{cost_ns} ns instead of {least_ns}");
    }

    /// Lives in which nothing is shared leave their loss to the next one: so all of them together
    /// are compared.
    #[test]
    fn buffers_that_are_freed_cost_at_most_three_times_the_least_and_the_credit(
        lives in proptest::collection::vec((8 * KIB..4 * MIB, 1_u64..2000), 1..40),
        are_close: bool,
    ) {
        let mut offers = Offers::new();
        let (mut cost_ns, mut private_ns, mut apart_ns) = (0, 0, 0);
        for (index, &(bytes, messages)) in lives.iter().enumerate() {
            let offer = Offer { are_close, ..message(span(bytes)) };
            let life_ns = cost_of_life_ns(&mut offers, offer, messages);
            cost_ns += life_ns;
            private_ns += messages * loss_ns(offer.span.bytes());
            let lost_ns = CREDIT_NS - offers.credit_ns;
            prop_assert!(
                cost_ns <= 3 * private_ns + lost_ns,
                "life {index}: {cost_ns} of {private_ns}"
            );
            let fresh_ns = cost_of_life_ns(&mut Offers::new(), message(span(bytes)), messages);
            apart_ns += fresh_ns;
        }
        let lost_ns = CREDIT_NS - offers.credit_ns;
        prop_assert!(
            cost_ns <= 3 * private_ns.min(2 * apart_ns) + lost_ns,
            "{cost_ns} of {private_ns}"
        );
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
            cost_of_life_ns(&mut offers, message(span), messages);
            offers.entry(span.start).lost_ns = 0;
        }
        let cost_ns = cost_of_life_ns(&mut offers, message(span), last);
        let least_ns = least_cost_ns(span, last);
        prop_assert!(cost_ns <= 3 * least_ns + 1, "{cost_ns} ns instead of {least_ns}");
    }

    #[test]
    fn buffers_do_not_count_for_each_other(other in 3_usize..100_000, messages in 1_u64..20) {
        let mut offers = Offers::new();
        let mut is_due = false;
        for _ in 0..messages {
            is_due |= offers.note(message(span_at(other * PAGE_BYTES, MIB)));
        }
        prop_assert!(!is_due && !offers.note(message(span(MIB))));
    }
}
