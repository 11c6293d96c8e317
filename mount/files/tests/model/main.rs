// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A mount over a store that fails and loses answers, against a plain file system in memory. After
//! a call that failed because of the store, more than one state may be right: [`world`] says
//! which. From then on the mount must behave as one of them, and always as the same.

mod driver;
mod steps;
mod world;

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;
use weft_files::Reason;

use driver::Driver;
use steps::{Step, Trouble, calls, end, step, trouble};
use world::{Call, Seen, World};

/// A mount, and all the worlds that it may show.
struct Law {
    driver: Driver,
    worlds: BTreeSet<World>,
    told: Vec<String>,
}

impl Law {
    fn new(ttl: Duration) -> Self {
        Self {
            driver: Driver::new(ttl),
            worlds: BTreeSet::from([World::default()]),
            told: Vec::new(),
        }
    }

    fn first(&self) -> &World {
        self.worlds.first().expect("one is right")
    }

    /// Makes a call; an error if no world answers so.
    fn make(&mut self, call: &Call, trouble: Trouble) -> Result<(), TestCaseError> {
        let is_met = {
            let mut faults = self.driver.store.faults();
            match trouble {
                Trouble::Nothing => {}
                Trouble::Fails(operation, skipped, failure) => {
                    faults.fail(operation, skipped, failure);
                }
                Trouble::Unheard(operation, skipped) => faults.lose_answer(operation, skipped),
                Trouble::Away(count, is_next_done) => faults.away_after(count, is_next_done),
            }
            !matches!(trouble, Trouble::Nothing)
        };
        let outcome = self.driver.call(call);
        self.driver.store.faults().clear();
        self.told
            .push(format!("{call:?}, {trouble:?}: {outcome:?}"));
        let is_refused = matches!(outcome, Err(Reason::Broken | Reason::Denied));
        let mut closed = BTreeSet::new();
        if is_met && is_refused {
            closed = self.unsure(call);
            for slot in &closed {
                // What a call that failed did to open files is told in no other way.
                let outcome = self.driver.call(&Call::Close(*slot));
                self.told.push(format!("closed {slot}: {outcome:?}"));
            }
            self.driver.await_renames();
        }
        let mut next = BTreeSet::new();
        for world in &self.worlds {
            let (wanted, after) = world.call(call);
            if wanted == outcome {
                next.extend(after);
            }
            if is_met {
                next.extend(world.troubled(call, &outcome, &closed));
            }
        }
        if next.is_empty() {
            let wanted: Vec<_> = self.worlds.iter().map(|world| world.call(call).0).collect();
            let text = format!(
                "no world answers so; they answer {wanted:?}\n{}\n{:?}\n{:?}",
                self.told.join("\n"),
                self.first(),
                self.driver.store.keys(),
            );
            return Err(TestCaseError::fail(text));
        }
        self.worlds = next;
        Ok(())
    }

    /// Open files of which nobody knows what became of them, if a call failed.
    fn unsure(&self, call: &Call) -> BTreeSet<usize> {
        let worlds = self.worlds.iter();
        match call {
            Call::Rename(old, new, _) => worlds
                .flat_map(|world| world.slots_of(&[old, new]))
                .collect(),
            Call::Unlink(path) => worlds.flat_map(|world| world.slots_of(&[path])).collect(),
            Call::Close(slot) => worlds
                .flat_map(|world| world.slots_of_last_writer(*slot))
                .collect(),
            _ => BTreeSet::new(),
        }
    }

    /// Compares all names and contents.
    fn compare(&mut self) -> Result<(), TestCaseError> {
        let mut folders = vec![String::new()];
        while let Some(folder) = folders.pop() {
            self.make(&Call::List(folder.clone()), Trouble::Nothing)?;
            let Ok(Seen::Names(names)) = self.first().call(&Call::List(folder.clone())).0 else {
                continue;
            };
            for (name, is_folder) in names {
                let path = format!("{folder}/{name}");
                let path = path.trim_start_matches('/').to_owned();
                if is_folder {
                    folders.push(path);
                } else {
                    self.make(&Call::Look(path.clone()), Trouble::Nothing)?;
                    self.make(&Call::ReadWhole(path), Trouble::Nothing)?;
                }
            }
        }
        Ok(())
    }
}

fn run(steps: &[(Step, Trouble)], ttl: Duration) -> Result<(), TestCaseError> {
    let mut law = Law::new(ttl);
    for (step, trouble) in steps {
        let calls = calls(step, law.first());
        for (at, call) in calls.iter().enumerate() {
            let is_last = at + 1 == calls.len() && *call != Call::Remount;
            let trouble = if is_last { *trouble } else { Trouble::Nothing };
            law.make(call, trouble)?;
        }
    }
    law.compare()?;
    for call in end(law.first()) {
        law.make(&call, Trouble::Nothing)?;
    }
    law.compare()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn mount_behaves_as_a_file_system_in_memory(
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let steps: Vec<_> = steps.into_iter().map(|step| (step, Trouble::Nothing)).collect();
        run(&steps, Duration::ZERO)?;
    }

    #[test]
    fn mount_over_a_store_that_fails_behaves_as_a_file_system_in_memory(
        steps in prop::collection::vec((step(), trouble()), 1..40),
    ) {
        run(&steps, Duration::ZERO)?;
    }
}
