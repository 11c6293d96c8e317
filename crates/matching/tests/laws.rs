// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The laws of matching, one test each, on the public interface.

use weft_contract::RemoteId;
use weft_matching::{Matcher, Want};

const A: RemoteId = RemoteId(1);
const B: RemoteId = RemoteId(2);

fn exact(source: RemoteId, tag: u64) -> Want {
    Want {
        source: Some(source),
        tag,
        ignore: 0,
    }
}

fn any_source(tag: u64) -> Want {
    Want {
        source: None,
        tag,
        ignore: 0,
    }
}

const ANYTHING: Want = Want {
    source: None,
    tag: 0,
    ignore: u64::MAX,
};

fn arrive(matcher: &mut Matcher<u32, u32>, source: RemoteId, tag: u64) -> Option<u32> {
    matcher.find_posted(source, tag).map(|posted| posted.take())
}

fn receive(matcher: &mut Matcher<u32, u32>, want: Want) -> Option<u32> {
    let id = matcher.find_unexpected(want)?;
    matcher.remove_unexpected(id)
}

#[test]
fn ignored_bits_are_not_compared_on_either_side() {
    let want = Want {
        source: Some(A),
        tag: 0xff12,
        ignore: 0xff00,
    };
    for tag in [0x0012, 0xab12] {
        let mut matcher = Matcher::new();
        matcher.post(want, 1);
        assert_eq!(arrive(&mut matcher, B, tag), None);
        assert_eq!(arrive(&mut matcher, A, tag ^ 1), None);
        assert_eq!(arrive(&mut matcher, A, tag), Some(1));
        matcher.push_unexpected(A, tag, 2);
        assert_eq!(receive(&mut matcher, Want { tag: 0x13, ..want }), None);
        assert_eq!(receive(&mut matcher, want), Some(2));
    }
    assert!(want.matches(A, 0x0012) && !want.matches(A, 0x0013) && !want.matches(B, 0x0012));
}

#[test]
fn receives_of_one_want_are_matched_in_order_of_posting() {
    let mut matcher = Matcher::new();
    for receive in 0..1000 {
        matcher.post(exact(A, 5), receive);
    }
    for receive in 0..1000 {
        assert_eq!(arrive(&mut matcher, A, 5), Some(receive));
    }
    assert_eq!(arrive(&mut matcher, A, 5), None);
}

#[test]
fn message_takes_the_earliest_of_exact_and_wildcard_receives() {
    let wants = [
        exact(A, 5),
        any_source(5),
        ANYTHING,
        Want {
            source: Some(A),
            tag: 0,
            ignore: u64::MAX,
        },
    ];
    for turn in 0..wants.len() {
        let mut matcher = Matcher::new();
        for n in 0..wants.len() {
            matcher.post(wants[(turn + n) % wants.len()], n as u32);
        }
        for n in 0..wants.len() {
            assert_eq!(arrive(&mut matcher, A, 5), Some(n as u32), "turn {turn}");
        }
    }
}

#[test]
fn messages_of_one_source_are_received_in_order_of_arrival() {
    for count in [1, 3, 1000] {
        let mut matcher = Matcher::new();
        for message in 0..count {
            matcher.push_unexpected(A, 5, message);
        }
        assert_eq!(receive(&mut matcher, exact(B, 5)), None);
        for message in 0..count {
            let want = [exact(A, 5), any_source(5), ANYTHING][message as usize % 3];
            assert_eq!(receive(&mut matcher, want), Some(message));
        }
        assert_eq!(matcher.unexpected_count(), 0);
    }
}

#[test]
fn peeking_removes_nothing() {
    let mut matcher: Matcher<u32, u32> = Matcher::new();
    let id = matcher.push_unexpected(A, 5, 7);
    assert_eq!(matcher.find_unexpected(any_source(5)), Some(id));
    assert_eq!(matcher.unexpected(id), Some(&7));
    *matcher.unexpected_mut(id).unwrap() = 8;
    assert_eq!(matcher.remove_unexpected(id), Some(8));

    let id = matcher.post(any_source(5), 1);
    let mut posted = matcher.find_posted(A, 5).unwrap();
    *posted.receive() += 1;
    assert_eq!((posted.id(), posted.want()), (id, any_source(5)));
    assert_eq!(matcher.posted_count(), 1);
    assert_eq!(matcher.remove_posted(id), Some(2));
}

#[test]
fn stale_ids_name_nothing() {
    let mut matcher: Matcher<u32, u32> = Matcher::new();
    let posted = matcher.post(exact(A, 5), 1);
    let message = matcher.push_unexpected(A, 6, 2);
    assert_eq!(arrive(&mut matcher, A, 5), Some(1));
    assert!(matcher.remove_unexpected(message).is_some());
    matcher.post(exact(A, 5), 3);
    matcher.push_unexpected(A, 6, 4);
    assert_eq!(matcher.remove_posted(posted), None);
    assert_eq!(matcher.unexpected(message), None);
    assert_eq!(matcher.unexpected_mut(message), None);
    assert_eq!(matcher.remove_unexpected(message), None);
    assert_eq!((matcher.posted_count(), matcher.unexpected_count()), (1, 1));
}

#[test]
fn receive_removed_from_the_middle_leaves_the_order_of_the_others() {
    let mut matcher = Matcher::new();
    let ids: Vec<_> = (0..10).map(|n| matcher.post(exact(A, 5), n)).collect();
    for n in [4, 0, 9] {
        assert_eq!(matcher.remove_posted(ids[n]), Some(n as u32));
    }
    for n in [1, 2, 3, 5, 6, 7, 8] {
        assert_eq!(arrive(&mut matcher, A, 5), Some(n));
    }
}

#[test]
fn cancel_takes_the_earliest_that_is_selected() {
    let mut matcher = Matcher::<u32, u32>::new();
    // Frees a low cell late, so that order of storage is not order of posting.
    let first = matcher.post(exact(A, 1), 10);
    matcher.post(exact(A, 2), 20);
    matcher.remove_posted(first);
    matcher.post(exact(A, 3), 30);
    assert_eq!(matcher.cancel(|&receive| receive > 15), Some(20));
    assert_eq!(matcher.cancel(|&receive| receive > 30), None);
    assert_eq!(matcher.cancel(|_| true), Some(30));
    assert_eq!(matcher.cancel(|_| true), None);
}

#[test]
fn lost_source_gives_up_its_directed_receives_in_order_and_no_others() {
    let mut matcher = Matcher::<u32, u32>::new();
    for n in 0..100 {
        matcher.post(
            [exact(A, n), exact(B, n), any_source(n)][n as usize % 3],
            n as u32,
        );
    }
    assert_eq!(matcher.directed_count(A), 34);
    assert_eq!(matcher.remove_posted_from(A), Some(0));
    assert_eq!(arrive(&mut matcher, A, 3), Some(3));
    matcher.post(exact(A, 200), 200);
    for n in (6..100).step_by(3).chain([200]) {
        assert_eq!(matcher.remove_posted_from(A), Some(n));
    }
    assert_eq!(matcher.remove_posted_from(A), None);
    assert_eq!(
        (matcher.directed_count(A), matcher.directed_count(B)),
        (0, 33)
    );
    assert_eq!(matcher.posted_count(), 66);
}

#[test]
fn lost_source_gives_up_its_selected_messages_in_order() {
    let mut matcher = Matcher::<u32, u32>::new();
    for n in 0..20 {
        matcher.push_unexpected(if n % 2 == 0 { A } else { B }, 1, n);
    }
    for n in [0, 4, 8, 12, 16] {
        assert_eq!(
            matcher.remove_unexpected_from(A, |message| message % 4 == 0),
            Some(n)
        );
    }
    assert_eq!(
        matcher.remove_unexpected_from(A, |message| message % 4 == 0),
        None
    );
    assert_eq!(receive(&mut matcher, ANYTHING), Some(1));
    assert_eq!(receive(&mut matcher, any_source(1)), Some(2));
    assert_eq!(matcher.unexpected_count(), 13);
}

#[test]
fn more_masks_than_indexes_still_find_the_earliest() {
    let mut matcher = Matcher::<u32, u32>::new();
    for n in 0..2000u32 {
        matcher.push_unexpected(RemoteId(n % 3), u64::from(n), n);
    }
    for n in 0..2000u32 {
        // Twenty masks in turn, then one alone for long enough that the others are dropped.
        let bit = if n < 600 { n % 20 } else { 40 };
        let want = Want {
            source: Some(RemoteId(n % 3)),
            tag: u64::from(n) ^ 1 << (bit + 11),
            ignore: 1 << (bit + 11),
        };
        assert_eq!(receive(&mut matcher, want), Some(n));
        matcher.push_unexpected(B, 1 << 63 | u64::from(n), n);
    }
    for n in 0..2000u32 {
        assert_eq!(
            receive(&mut matcher, any_source(1 << 63 | u64::from(n))),
            Some(n)
        );
    }
}

#[test]
fn many_masks_of_posted_receives_are_forgotten_again() {
    let mut matcher = Matcher::<u32, u32>::new();
    for round in 0..3u32 {
        for n in 0..50u32 {
            matcher.post(
                Want {
                    source: None,
                    tag: u64::from(n) << 8,
                    ignore: u64::from(round * 50 + n),
                },
                n,
            );
        }
        for n in 0..50u32 {
            assert_eq!(arrive(&mut matcher, A, u64::from(n) << 8), Some(n));
        }
    }
    assert_eq!(matcher.posted_count(), 0);
}

#[test]
fn what_was_looked_for_in_vain_is_found_once_it_has_arrived() {
    let mut matcher = Matcher::new();
    for message in 0..100 {
        matcher.push_unexpected(A, 1000 + u64::from(message), message);
    }
    for (round, want) in [exact(B, 7), any_source(7), exact(A, 7)]
        .into_iter()
        .enumerate()
    {
        for _ in 0..3 {
            assert_eq!(receive(&mut matcher, want), None);
        }
        // Leaving messages find nothing that was not there.
        assert!(receive(&mut matcher, exact(A, 1000 + round as u64)).is_some());
        assert_eq!(receive(&mut matcher, want), None);
        matcher.push_unexpected(want.source.unwrap_or(B), 7, 500);
        assert_eq!(receive(&mut matcher, want), Some(500));
        assert_eq!(receive(&mut matcher, want), None);
    }
}
