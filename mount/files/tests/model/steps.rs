// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random steps, and the calls that they come to in a world.

use proptest::prelude::*;
use weft_store::Failure;
use weft_store::memory::Operation;

use crate::world::{Call, Opens, SLOTS, World};

/// A name in one of the folders that there are.
#[derive(Debug, Clone)]
pub struct Place {
    folder: usize,
    name: usize,
}

/// A call, before it is known which names there are.
#[derive(Debug, Clone)]
pub enum Step {
    Create(Place, usize),
    Open(Place, usize, Opens),
    Write(usize, u64, Vec<u8>),
    Cut(usize, u64),
    Resize(Place, u64),
    Read(usize, u64, u64),
    Sync(usize),
    Close(usize),
    Look(Place),
    ReadWhole(Place),
    List(usize),
    Rename(Place, Place, bool),
    Unlink(Place),
    MakeFolder(Place),
    RemoveFolder(Place),
    Forget,
    Remount,
}

/// What happens to the requests of one call.
#[derive(Debug, Clone, Copy)]
pub enum Trouble {
    Nothing,
    /// The request of this kind after so many others fails.
    Fails(Operation, u64, Failure),
    /// It is done, and its answer is lost.
    Unheard(Operation, u64),
    /// After so many requests all fail; the next one is done or not.
    Away(u64, bool),
}

const NAMES: [&str; 4] = ["a", "b", "b.c", "d"];
const OPERATIONS: [Operation; 10] = [
    Operation::Head,
    Operation::Get,
    Operation::List,
    Operation::Put,
    Operation::Delete,
    Operation::Copy,
    Operation::Begin,
    Operation::Send,
    Operation::CopyPart,
    Operation::Complete,
];

fn place() -> impl Strategy<Value = Place> {
    (0usize..4, 0..NAMES.len()).prop_map(|(folder, name)| Place { folder, name })
}

/// Mostly small; a few are sent in parts.
fn offset() -> impl Strategy<Value = u64> {
    prop_oneof![
        30 => 0u64..300,
        1 => Just(9 << 20),
    ]
}

pub fn step() -> impl Strategy<Value = Step> {
    let slot = || 0..SLOTS;
    let data = (any::<u8>(), 1usize..100).prop_map(|(byte, length)| vec![byte; length]);
    let opens = prop_oneof![
        Just(Opens::Reads),
        Just(Opens::Writes),
        Just(Opens::Truncates),
    ];
    prop_oneof![
        6 => (place(), slot()).prop_map(|(place, slot)| Step::Create(place, slot)),
        4 => (place(), slot(), opens).prop_map(|(place, slot, opens)| {
            Step::Open(place, slot, opens)
        }),
        8 => (slot(), offset(), data).prop_map(|(slot, at, data)| Step::Write(slot, at, data)),
        2 => (slot(), offset()).prop_map(|(slot, size)| Step::Cut(slot, size)),
        2 => (place(), offset()).prop_map(|(place, size)| Step::Resize(place, size)),
        4 => (slot(), offset(), 1u64..200).prop_map(|(slot, at, size)| {
            Step::Read(slot, at, size)
        }),
        3 => slot().prop_map(Step::Sync),
        5 => slot().prop_map(Step::Close),
        3 => place().prop_map(Step::Look),
        5 => place().prop_map(Step::ReadWhole),
        4 => (0usize..4).prop_map(Step::List),
        6 => (place(), place(), any::<bool>()).prop_map(|(old, new, may)| {
            Step::Rename(old, new, may)
        }),
        4 => place().prop_map(Step::Unlink),
        4 => place().prop_map(Step::MakeFolder),
        3 => place().prop_map(Step::RemoveFolder),
        1 => Just(Step::Forget),
        1 => Just(Step::Remount),
    ]
}

pub fn trouble() -> impl Strategy<Value = Trouble> {
    let operation = || (0..OPERATIONS.len()).prop_map(|at| OPERATIONS[at]);
    let failure = prop_oneof![
        Just(Failure::Unreachable),
        Just(Failure::Busy),
        Just(Failure::Denied),
    ];
    prop_oneof![
        6 => Just(Trouble::Nothing),
        2 => (operation(), 0u64..3, failure).prop_map(|(operation, skipped, failure)| {
            Trouble::Fails(operation, skipped, failure)
        }),
        1 => (operation(), 0u64..3).prop_map(|(operation, skipped)| {
            Trouble::Unheard(operation, skipped)
        }),
        1 => (0u64..6, any::<bool>()).prop_map(|(count, is_next_done)| {
            Trouble::Away(count, is_next_done)
        }),
    ]
}

impl Place {
    fn path(&self, folders: &[String]) -> String {
        let folder = &folders[self.folder % folders.len()];
        let is_deep = folder.matches('/').count() > 1;
        let name = NAMES[self.name];
        match folder.as_str() {
            _ if is_deep => name.to_owned(),
            "" => name.to_owned(),
            folder => format!("{folder}/{name}"),
        }
    }
}

/// The calls of a step, in a world.
pub fn calls(step: &Step, world: &World) -> Vec<Call> {
    let folders = world.folders();
    let path = |place: &Place| place.path(&folders);
    let into = |slot: usize, call: Call| {
        let first = world.is_open(slot).then_some(Call::Close(slot));
        first.into_iter().chain([call]).collect()
    };
    let call = match step {
        Step::Create(place, slot) => return into(*slot, Call::Create(path(place), *slot)),
        Step::Open(place, slot, opens) => {
            return into(*slot, Call::Open(path(place), *slot, *opens));
        }
        Step::Write(slot, offset, data) => Call::Write(*slot, *offset, data.clone()),
        Step::Cut(slot, size) => Call::Cut(*slot, *size),
        Step::Resize(place, size) => Call::Resize(path(place), *size),
        Step::Read(slot, offset, size) => Call::Read(*slot, *offset, *size),
        Step::Sync(slot) => Call::Sync(*slot),
        Step::Close(slot) => Call::Close(*slot),
        Step::Look(place) => Call::Look(path(place)),
        Step::ReadWhole(place) => Call::ReadWhole(path(place)),
        Step::List(folder) => Call::List(folders[folder % folders.len()].clone()),
        Step::Rename(old, new, may) => {
            let (old, new) = (path(old), path(new));
            // The kernel answers these itself.
            let overlap =
                |one: &str, other: &str| format!("{one}/").starts_with(&format!("{other}/"));
            if overlap(&old, &new) || overlap(&new, &old) {
                return vec![];
            }
            Call::Rename(old, new, *may)
        }
        Step::Unlink(place) => Call::Unlink(path(place)),
        Step::MakeFolder(place) => Call::MakeFolder(path(place)),
        Step::RemoveFolder(place) => Call::RemoveFolder(path(place)),
        Step::Forget => Call::Forget,
        Step::Remount => return end(world),
    };
    vec![call]
}

/// Closes what is open, and mounts anew.
pub fn end(world: &World) -> Vec<Call> {
    let open = (0..SLOTS).filter(|slot| world.is_open(*slot));
    open.map(Call::Close).chain([Call::Remount]).collect()
}
