// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of sets of pages, by a model that keeps one truth value for each page.

use super::*;
use proptest::prelude::*;

const PAGES: usize = 40;

fn span(from: usize, to: usize) -> Span {
    Span {
        start: from * PAGE_BYTES,
        end: to * PAGE_BYTES,
    }
}

fn spans_of(model: &[bool; PAGES]) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for page in (0..PAGES).filter(|&page| model[page]) {
        match spans.last_mut() {
            Some(last) if last.end == page * PAGE_BYTES => last.end += PAGE_BYTES,
            _ => spans.push(span(page, page + 1)),
        }
    }
    spans
}

#[test]
fn whole_pages_inside_a_stretch_and_all_pages_around_it() {
    for (address, length, inside, around) in [
        (4096, 4096, Some(span(1, 2)), Some(span(1, 2))),
        (4097, 8191, Some(span(2, 3)), Some(span(1, 3))),
        (4097, 8190, None, Some(span(1, 3))),
        (5000, 10, None, Some(span(1, 2))),
        (8192, 0, None, None),
    ] {
        assert_eq!(Span::inside(address, length), inside, "{address} {length}");
        assert_eq!(Span::around(address, length), around, "{address} {length}");
    }
    assert_eq!(Span::inside(ADDRESS_LIMIT - 4096, 8192), None);
    assert_eq!(Span::inside(usize::MAX - 5000, 8192), None);
}

proptest! {
    #[test]
    fn a_set_holds_what_was_added_and_not_taken_out(
        steps in proptest::collection::vec((0_u8..2, 0..PAGES, 1..PAGES), 1..60),
    ) {
        let mut model = [false; PAGES];
        let mut set = Spans::<PAGES>::new();
        for (kind, from, length) in steps {
            let to = (from + length).min(PAGES);
            let touched = span(from, to);
            if kind == 0 {
                prop_assert!(set.add(touched));
            } else {
                prop_assert_eq!(set.remove(touched), Ok(()));
            }
            model[from..to].fill(kind == 0);
            let expected = spans_of(&model);
            prop_assert_eq!(set.as_slice(), &expected[..]);
            for (from, to) in [(0, PAGES), (3, 17), (20, 21), (from, to)] {
                let asked = span(from, to);
                let common = expected.iter().find_map(|held| held.common(&asked));
                prop_assert_eq!(set.first_common(asked), common);
                let all = model[from..to].iter().all(|&held| held);
                prop_assert_eq!(set.holds(asked), all);
                let gap = (from..to).find(|&page| !model[page]).map(|first| {
                    let end = (first..to).find(|&page| model[page]);
                    span(first, end.unwrap_or(to))
                });
                prop_assert_eq!(set.first_gap(asked), gap);
            }
        }
    }
}

#[test]
fn a_full_set_refuses_more_and_tells_what_it_lost_of_a_span_that_was_cut() {
    let mut set = Spans::<2>::new();
    assert!(set.has_room());
    assert!(set.add(span(0, 3)));
    assert!(!set.has_room());
    assert!(set.add(span(10, 13)));
    assert!(!set.add(span(5, 6)));
    assert!(set.add(span(3, 4)), "what merges needs no room");
    assert_eq!(set.remove(span(11, 12)), Err(span(12, 13)));
    assert_eq!(set.as_slice(), [span(0, 4), span(10, 11)]);
    assert_eq!(set.remove(span(0, 4)), Ok(()));
    assert_eq!(set.remove(span(0, 99)), Ok(()));
    assert_eq!(set.as_slice(), []);
}

#[test]
fn where_there_is_no_room_the_nearest_become_one() {
    let mut set = Spans::<3>::new();
    for (from, to) in [(0, 1), (10, 11), (13, 14), (20, 21)] {
        set.add_coarsely(span(from, to));
    }
    assert_eq!(set.as_slice(), [span(0, 1), span(10, 14), span(20, 21)]);
}
