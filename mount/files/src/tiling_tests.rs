// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of [`super`]: every key comes once and in order, and with few requests.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::time::UNIX_EPOCH;

use proptest::prelude::*;
use weft_store::{ETag, ObjectInfo};

use super::*;

/// What a store answers, without groups.
fn answer(all: &BTreeSet<String>, ask: &Ask) -> Page {
    let after = ask.start.token.as_ref().or(ask.start.after.as_ref());
    let from = after.map_or(Bound::Unbounded, Bound::Excluded);
    let keys = all.range::<String, _>((from, Bound::Unbounded));
    let folder = ask.folder.as_deref().unwrap_or("");
    let mut keys = keys.filter(|key| key.starts_with(folder));
    let info = ObjectInfo {
        size_bytes: 1,
        etag: ETag::new("1"),
        modified: UNIX_EPOCH,
        is_archived: false,
    };
    let found = keys
        .by_ref()
        .take(1000)
        .map(|key| (key.clone(), info.clone()));
    let objects: Vec<_> = found.collect();
    let next = keys.next().map(|_| objects[objects.len() - 1].0.clone());
    Page {
        objects,
        next,
        folders: Vec::new(),
    }
}

/// Reads a listing to its end; answers arrive in an order that `seed` chooses. How many
/// requests that took, and in how many rounds if all that is under way comes at once.
fn read(mut tiling: Tiling<()>, all: &BTreeSet<String>, seed: Option<u64>) -> (usize, usize) {
    let mut random = seed.unwrap_or(1);
    let (mut asked, mut read): (Vec<Ask>, Vec<String>) = Default::default();
    let (mut count, mut rounds) = (0, 0);
    loop {
        while let Some((page, (), _)) = tiling.take() {
            read.extend(page.objects.into_iter().map(|(key, _)| key));
        }
        if tiling.is_done() {
            break;
        }
        while let Some(ask) = tiling.ask() {
            count += 1;
            asked.push(ask);
        }
        assert!(
            !asked.is_empty(),
            "nothing is under way, and it is not done"
        );
        rounds += 1;
        if seed.is_some() {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let ask = asked.swap_remove((random >> 33) as usize % asked.len());
            if random >> 60 == 0 {
                tiling.failed(ask.id);
            } else {
                assert!(tiling.came(ask.id, answer(all, &ask), ()));
            }
        } else {
            for ask in std::mem::take(&mut asked) {
                assert!(tiling.came(ask.id, answer(all, &ask), ()));
            }
        }
    }
    assert!(read.iter().eq(all), "{} keys of {}", read.len(), all.len());
    (count, rounds)
}

fn whole(all: &BTreeSet<String>) -> (usize, usize) {
    read(Tiling::new(Start::default()), all, None)
}

#[test]
fn hundred_thousand_numbered_keys_take_few_more_than_their_pages_and_few_rounds() {
    let all = (0..100_000).map(|n| format!("d/f{n:07}")).collect();
    let (count, rounds) = whole(&all);
    assert!(
        count <= 104 && rounds <= 9,
        "{count} requests in {rounds} rounds"
    );
}

#[test]
fn scattered_keys_take_few_more_than_their_pages() {
    let scatter = |n: u64| n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let all = (1..50_000)
        .map(|n| format!("{:016x}", scatter(n)))
        .collect();
    let (count, rounds) = whole(&all);
    assert!(
        count <= 75 && rounds <= 14,
        "{count} requests in {rounds} rounds"
    );
}

#[test]
fn folders_of_few_pages_take_few_requests_more() {
    for (size, most) in [
        (0, 1),
        (999, 1),
        (1000, 1),
        (1001, 3),
        (5000, 6),
        (9_999, 14),
    ] {
        let all = (0..size).map(|n| format!("{n:05}")).collect();
        let (count, _) = whole(&all);
        assert!(count <= most, "{size} keys: {count} requests");
    }
}

#[test]
fn keys_without_a_guess_are_read_page_by_page() {
    let all = (0..5_500).map(|n| format!("ä{n}")).collect();
    assert_eq!(whole(&all), (6, 6));
}

#[test]
fn empty_page_that_has_a_token_ends_nothing() {
    let all: BTreeSet<String> = (0..9000).map(|n| format!("{n:05}")).collect();
    for seed in 0..20 {
        let mut tiling = Tiling::new(Start::default());
        let (mut asked, mut read): (Vec<Ask>, Vec<String>) = Default::default();
        while !tiling.is_done() {
            while let Some(ask) = tiling.ask() {
                asked.push(ask);
            }
            let ask = asked.swap_remove(seed % asked.len());
            // Every start answers with nothing at first, and its token goes on where it began.
            let page = match &ask.start {
                Start { token: None, after } => Page {
                    next: Some(after.clone().unwrap_or_default()),
                    ..Page::default()
                },
                _ => answer(&all, &ask),
            };
            assert!(tiling.came(ask.id, page, ()));
            while let Some((page, (), _)) = tiling.take() {
                read.extend(page.objects.into_iter().map(|(key, _)| key));
            }
        }
        assert!(read.iter().eq(&all), "seed {seed}: {} keys", read.len());
    }
}

/// Requests and rounds of a walk over folders with so many files each.
fn walk(sizes: &[usize]) -> (usize, usize) {
    let name = |n: usize| format!("d/{n:05}/");
    let prefixes = Arc::new((0..sizes.len()).map(name).collect());
    let keys = |n: usize| (0..sizes[n]).map(move |file| format!("{}f{file:04}", name(n)));
    let all = (0..sizes.len()).flat_map(keys).collect();
    read(Tiling::new(Start::behind("d/")).below(prefixes), &all, None)
}

#[test]
fn walk_over_folders_of_one_size_takes_its_pages_alone() {
    for (folders, files) in [(16, 1000), (1600, 10)] {
        let (count, rounds) = walk(&vec![files; folders]);
        assert!(count <= 19, "{folders} folders: {count} requests");
        assert!(rounds <= 3, "{folders} folders: {rounds} rounds");
    }
}

#[test]
fn walk_over_folders_of_unlike_sizes_takes_few_requests_more() {
    for sizes in [
        [9000, 1, 1, 1],
        [1, 1, 1, 9000],
        [1, 1, 9000, 1],
        [1, 1, 1, 1],
    ] {
        let (count, _) = walk(&sizes);
        assert!(count <= 14, "{sizes:?} files: {count} requests");
    }
}

/// A walk as a mount does it: narrow until all of the first folder came.
struct Walk {
    requests: usize,
    rounds: usize,
    pages: usize,
}

fn walk_behind_first(sizes: &[usize]) -> Walk {
    let name = |n: usize| format!("d/{n:05}/");
    let prefixes = Arc::new((0..sizes.len()).map(name).collect());
    let keys = |n: usize| (0..sizes[n]).map(move |file| format!("{}f{file:05}", name(n)));
    let all: BTreeSet<String> = (0..sizes.len()).flat_map(keys).collect();
    let mut tiling = Tiling::new(Start::behind(&name(0))).below(prefixes);
    tiling = tiling.first_apart();
    tiling.set_narrow(true);
    let (mut requests, mut rounds, mut key_count) = (0, 0, 0);
    while !tiling.is_done() {
        let mut asked = Vec::new();
        while let Some(ask) = tiling.ask() {
            asked.push(ask);
        }
        requests += asked.len();
        rounds += 1;
        for ask in asked {
            assert!(tiling.came(ask.id, answer(&all, &ask), ()));
        }
        while let Some((page, (), _)) = tiling.take() {
            key_count += page.objects.len();
            tiling.set_narrow(key_count < sizes[0]);
        }
    }
    assert_eq!(key_count, all.len());
    let pages = all.len().div_ceil(1000);
    Walk {
        requests,
        rounds,
        pages,
    }
}

#[test]
fn walk_waits_twice_where_its_first_folder_fills_a_page() {
    for (folders, files) in [(16, 1000), (1600, 10)] {
        let walk = walk_behind_first(&vec![files; folders]);
        assert_eq!(walk.rounds, 2, "{folders} folders of {files}");
        assert!(walk.requests <= walk.pages + 3, "{}", walk.requests);
    }
}

#[test]
fn early_page_that_failed_is_no_fault_of_the_reader_before_it() {
    let folders = ["d/0/", "d/1/", "d/2/"].map(str::to_owned).to_vec();
    let mut tiling = Tiling::<()>::new(Start::default()).below(Arc::new(folders));
    tiling = tiling.first_apart();
    tiling.set_narrow(true);
    let (first, early) = (tiling.ask().unwrap(), tiling.ask().unwrap());
    assert_eq!((tiling.ask(), tiling.failed(early.id)), (None, false));
    let all = ["d/0/f", "d/1/f", "d/2/f"].map(str::to_owned).into();
    assert!(tiling.came(first.id, answer(&all, &first), ()));
    assert_eq!(tiling.ask(), None, "nobody wants it yet");
    assert!(tiling.take().is_some());
    let again = tiling.ask().unwrap();
    assert_eq!(again.start, early.start);
    assert!(tiling.failed(again.id));
}

#[test]
fn page_ahead_that_failed_is_a_fault_of_who_comes_there_alone() {
    let all: BTreeSet<String> = (0..40_000).map(|n| format!("{n:05}")).collect();
    let mut tiling = Tiling::new(Start::default());
    let first = tiling.ask().unwrap();
    assert!(tiling.came(first.id, answer(&all, &first), ()));
    let mut asked: Vec<Ask> = std::iter::from_fn(|| tiling.ask()).collect();
    let farthest = (0..asked.len()).max_by_key(|at| asked[*at].start.after.clone());
    let ahead = asked.swap_remove(farthest.unwrap());
    assert!(!asked.is_empty() && !tiling.failed(ahead.id));
    let mut read = 0;
    let again = loop {
        while let Some((page, (), _)) = tiling.take() {
            read += page.objects.len();
        }
        asked.extend(std::iter::from_fn(|| tiling.ask()));
        let ask = asked.pop().expect("something is under way");
        if ask.start == ahead.start {
            break ask;
        }
        assert!(tiling.came(ask.id, answer(&all, &ask), ()));
    };
    let before = all
        .iter()
        .filter(|key| Some(*key) <= ahead.start.after.as_ref());
    assert_eq!(read, before.count(), "asked for again before it was wanted");
    assert!(tiling.failed(again.id));
}

const FIRST_SIZES: [usize; 12] = [
    1, 499, 501, 999, 1000, 1001, 1010, 1500, 1990, 1999, 5000, 9990,
];

/// Tests a walk behind each first folder. `most` is of the pages; what is asked for to find the
/// measure comes on top. Pages of one folder come one after the other.
fn test_walks(folders: usize, files: usize, most: impl Fn(usize) -> usize) {
    for first in FIRST_SIZES {
        let walk = walk_behind_first(&[&[first], &*vec![files; folders]].concat());
        let Walk {
            requests,
            rounds,
            pages,
        } = walk;
        let of = format!("{first} files, then {folders} folders of {files}");
        assert!(
            requests <= most(pages) + 4,
            "{of}: {requests} requests for {pages} pages"
        );
        assert!(
            rounds <= 5 + (first + files) / 1000 + pages / 24 * 2,
            "{of}: {rounds} rounds for {pages} pages"
        );
    }
}

#[test]
fn walk_takes_few_more_than_its_pages_where_folders_fill_pages() {
    for (folders, files) in [(30_000, 1), (3000, 10), (300, 100), (30, 1000), (10, 3000)] {
        test_walks(folders, files, |pages| pages);
    }
    test_walks(5, 5800, |pages| pages);
}

/// Requests begin where folders do, and a page may end behind the first files of the last one.
#[test]
fn walk_takes_less_than_twice_its_pages_whatever_folders_have() {
    for files in [255, 340, 510, 600, 980, 990, 999, 1001, 1500] {
        test_walks(30_000 / files, files, |pages| 2 * pages);
    }
}

#[test]
fn walk_finds_its_measure_anew_where_folders_become_larger() {
    for ((small, few), (large, many)) in [
        ((1600, 10), (100, 3000)),
        ((1600, 10), (100, 1000)),
        ((16_000, 1), (100, 999)),
    ] {
        let sizes = [vec![few; small], vec![many; large]].concat();
        let walk = walk_behind_first(&sizes);
        let of = format!("{small} folders of {few}, then {large} of {many}");
        assert!(walk.requests <= walk.pages + 10, "{of}: {}", walk.requests);
        let most = 5 + walk.pages / 24 * 2;
        assert!(walk.rounds <= most, "{of}: {} rounds", walk.rounds);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn every_key_is_read_once_and_in_order_whatever_comes_first(
        keys in prop_oneof![
            prop::collection::btree_set("[a-c]{1,3}[0-9]{0,4}", 0..4000),
            prop::collection::btree_set("[a-zA-Z0-9._-]{1,6}", 0..4000),
            prop::collection::btree_set("img-[0-9]{1,5}[.]jpg", 0..4000),
            prop::collection::btree_set("\\PC{1,4}", 0..3000),
            prop::collection::btree_set("[xy]/[0-9]{4}", 0..4000),
        ],
        seed in any::<u64>(),
    ) {
        read(Tiling::new(Start::default()), &keys, Some(seed));
        let folders = Arc::new(vec!["x/".to_owned(), "y/".to_owned()]);
        let tiling = || Tiling::new(Start::default()).below(Arc::clone(&folders));
        read(tiling(), &keys, Some(seed));
        // A walk begins behind the first folder's own object.
        let is_below = |key: &String| key.starts_with("y/") || key.starts_with("x/");
        let below = keys.into_iter().filter(|key| is_below(key) && key != "x/");
        read(tiling().first_apart(), &below.collect(), Some(seed));
    }
}
