// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The laws of extents, for any order of calls. Run by cargo test of this crate; proptest prints the seed of what fails.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const PAGES: u32 = 300;

#[derive(Clone, Debug)]
enum Step {
    Allocate(u32, u32),
    Free(usize),
    Resize(usize, u32),
    Clean,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..60_u32, 0..5_u32).prop_map(|(pages, align)| Step::Allocate(pages, 1 << align)),
        3 => any::<usize>().prop_map(Step::Free),
        2 => (any::<usize>(), 1..60_u32).prop_map(|(which, pages)| Step::Resize(which, pages)),
        1 => Just(Step::Clean),
    ]
}

/// What a page holds: nothing, what was left behind, or the allocation that begins there.
#[derive(Debug)]
struct Model {
    used: BTreeMap<u32, u32>,
    touched: Vec<bool>,
}

impl Model {
    fn is_free(&self, first: u32, pages: u32) -> bool {
        first + pages <= PAGES
            && self
                .used
                .iter()
                .all(|(&start, &length)| start + length <= first || first + pages <= start)
    }

    fn pick(&self, which: usize) -> Option<u32> {
        let count = self.used.len();
        (count > 0).then(|| *self.used.keys().nth(which % count).expect("below count"))
    }

    fn touch(&mut self, first: u32, pages: u32) {
        self.touched[first as usize..(first + pages) as usize].fill(true);
    }

    /// The longest stretch of free pages that all were touched, or all not: such pages are one extent.
    fn longest(&self) -> u32 {
        let is_free = |page: u32| self.is_free(page, 1);
        let (mut longest, mut run) = (0, 0);
        for page in 0..PAGES {
            let touched = |page: u32| self.touched[page as usize];
            let goes_on = run > 0 && touched(page) == touched(page - 1);
            run = match (is_free(page), goes_on) {
                (false, _) => 0,
                (true, false) => 1,
                (true, true) => run + 1,
            };
            longest = longest.max(run);
        }
        longest
    }
}

fn run(steps: &[Step]) -> Result<(), TestCaseError> {
    let mut entries = vec![Entry::default(); PAGES as usize];
    let mut extents = Extents::new(&mut entries);
    let mut model = Model {
        used: BTreeMap::new(),
        touched: vec![false; PAGES as usize],
    };
    for step in steps {
        match *step {
            Step::Allocate(pages, align) => match extents.allocate(pages, align) {
                Some(extent) => {
                    prop_assert_eq!((extent.pages, extent.first % align), (pages, 0));
                    prop_assert!(model.is_free(extent.first, pages));
                    let range = extent.first as usize..(extent.first + pages) as usize;
                    prop_assert!(!extent.is_clean || !model.touched[range].contains(&true));
                    model.used.insert(extent.first, pages);
                    model.touch(extent.first, pages);
                }
                None => prop_assert!(model.longest() < pages + align - 1),
            },
            Step::Free(which) => {
                let Some(first) = model.pick(which) else {
                    continue;
                };
                let merged = extents.free(first).expect("it is allocated");
                model.used.remove(&first);
                prop_assert!(model.is_free(merged.first, merged.pages));
                prop_assert_eq!(extents.free(first), None, "freed twice");
            }
            Step::Resize(which, pages) => {
                let Some(first) = model.pick(which) else {
                    continue;
                };
                let before = model.used[&first];
                match extents.resize(first, pages) {
                    Some(was) => {
                        prop_assert_eq!(was, before);
                        model.used.remove(&first);
                        prop_assert!(model.is_free(first, pages));
                        model.used.insert(first, pages);
                        model.touch(first, pages);
                    }
                    None => prop_assert!(pages > before),
                }
            }
            Step::Clean => {
                while let Some(extent) = extents.idle() {
                    prop_assert!(model.is_free(extent.first, extent.pages));
                    let range = extent.first as usize..(extent.first + extent.pages) as usize;
                    model.touched[range].fill(false);
                    extents.cleaned(extent);
                }
                prop_assert_eq!(extents.idle_pages(), 0);
            }
        }
        let used: u32 = model.used.values().sum();
        prop_assert_eq!(extents.used_pages(), u64::from(used));
        for page in 0..PAGES {
            prop_assert_eq!(extents.used(page), model.used.get(&page).copied());
        }
    }
    free_all(extents, model)
}

/// Frees what is left: then all is one clean extent again.
fn free_all(mut extents: Extents<'_>, model: Model) -> Result<(), TestCaseError> {
    for first in model.used.into_keys() {
        extents.free(first).expect("it is allocated");
    }
    while let Some(extent) = extents.idle() {
        extents.cleaned(extent);
    }
    let whole = extents.allocate(PAGES, 1).expect("one extent");
    prop_assert_eq!((whole.first, whole.is_clean), (0, true));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn allocations_never_overlap_and_all_pages_come_back(steps in prop::collection::vec(step(), 0..200)) {
        run(&steps)?;
    }
}

#[test]
fn an_alignment_is_kept_by_skipping_pages_that_stay_free() {
    let mut entries = vec![Entry::default(); 64];
    let mut extents = Extents::new(&mut entries);
    assert_eq!(extents.allocate(1, 1).map(|extent| extent.first), Some(0));
    assert_eq!(extents.allocate(8, 32).map(|extent| extent.first), Some(32));
    assert_eq!(extents.allocate(31, 1).map(|extent| extent.first), Some(1));
    assert_eq!(extents.allocate(25, 1), None);
    assert_eq!(extents.allocate(24, 1).map(|extent| extent.first), Some(40));
}

#[test]
fn freed_pages_are_used_again_before_fresh_ones() {
    let mut entries = vec![Entry::default(); 1000];
    let mut extents = Extents::new(&mut entries);
    let first = extents.allocate(20, 1).expect("room");
    let _ = extents.allocate(20, 1).expect("room");
    extents.free(first.first).expect("allocated");
    let again = extents.allocate(20, 1).expect("room");
    assert_eq!((again.first, again.is_clean), (first.first, false));
}

#[test]
fn what_was_never_allocated_cannot_be_freed() {
    let mut entries = vec![Entry::default(); 100];
    let mut extents = Extents::new(&mut entries);
    let extent = extents.allocate(10, 1).expect("room");
    for page in [extent.first + 1, extent.first + 9, 50, 99, 100, u32::MAX] {
        assert_eq!(extents.free(page), None, "{page}");
    }
}
