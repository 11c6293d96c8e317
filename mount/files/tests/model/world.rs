// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The model: a file system in memory that says what each call answers, and what may be there after
//! a call that failed because of the store. [`crate`] compares a mount with it.

mod calls;
mod failures;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use weft_files::Reason;

/// How many files may be open at a time.
pub const SLOTS: usize = 3;

/// A call of a program. Paths are those of the mount's folder, `""` is that folder itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    Create(String, usize),
    Open(String, usize, Opens),
    Write(usize, u64, Vec<u8>),
    /// ftruncate(2).
    Cut(usize, u64),
    /// truncate(2).
    Resize(String, u64),
    Read(usize, u64, u64),
    Sync(usize),
    Close(usize),
    /// stat(2).
    Look(String),
    /// Opens, reads all, and closes.
    ReadWhole(String),
    List(String),
    /// With `true` it may replace what has the new name.
    Rename(String, String, bool),
    Unlink(String),
    MakeFolder(String),
    RemoveFolder(String),
    /// The kernel forgets all nodes that nobody has open.
    Forget,
    /// The mount ends, and another one begins.
    Remount,
}

/// How a file is opened that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opens {
    Reads,
    Writes,
    Truncates,
}

/// What a call answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    Done,
    Bytes(Vec<u8>),
    Folder,
    File(u64),
    /// In order; with `true` for folders.
    Names(Vec<(String, bool)>),
}

type Content = Arc<Vec<u8>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Thing {
    Folder,
    File(usize),
}

/// A file, with a name or without.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct File {
    /// What programs of the mount see.
    now: Content,
    /// What the store has.
    stored: Option<Content>,
    /// Something was written since it was opened or published last.
    is_written: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Slot {
    file: usize,
    writes: bool,
}

/// One state in which the file system may be.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct World {
    names: BTreeMap<String, Thing>,
    files: BTreeMap<usize, File>,
    slots: [Option<Slot>; SLOTS],
}

fn above(path: &str) -> &str {
    path.rfind('/').map_or("", |at| &path[..at])
}

/// Whether a path is in a folder, or the same.
fn is_in(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn resized(content: &Content, size: u64) -> Content {
    let mut content = content.to_vec();
    content.resize(size as usize, 0);
    Arc::new(content)
}

impl World {
    /// All folders, and the mount's own.
    pub fn folders(&self) -> Vec<String> {
        let folders = self
            .names
            .iter()
            .filter(|(_, thing)| **thing == Thing::Folder);
        let mut all = vec![String::new()];
        all.extend(folders.map(|(path, _)| path.clone()));
        all
    }

    pub fn is_open(&self, slot: usize) -> bool {
        self.slots[slot].is_some()
    }

    /// The open files that have one of these names or are below it, and what else was opened of
    /// these files.
    pub fn slots_of(&self, paths: &[&str]) -> BTreeSet<usize> {
        let is_named = |file: usize| {
            let mut names = self.names.iter();
            names.any(|(path, thing)| {
                *thing == Thing::File(file) && paths.iter().any(|one| is_in(path, one))
            })
        };
        let is_meant = |slot: &usize| self.slots[*slot].is_some_and(|slot| is_named(slot.file));
        (0..SLOTS).filter(is_meant).collect()
    }

    /// Who else has the file of a slot open, if nobody else writes it.
    pub fn slots_of_last_writer(&self, slot: usize) -> BTreeSet<usize> {
        let Some(one) = self.slots[slot].filter(|one| one.writes) else {
            return BTreeSet::new();
        };
        let is_same = |at: &usize| self.slots[*at].is_some_and(|other| other.file == one.file);
        let others: BTreeSet<usize> = (0..SLOTS).filter(|at| *at != slot && is_same(at)).collect();
        let is_writer = |at: &usize| self.slots[*at].is_some_and(|other| other.writes);
        if others.iter().any(is_writer) {
            return BTreeSet::new();
        }
        others
    }

    fn find(&self, path: &str) -> Result<Thing, Reason> {
        if path.is_empty() {
            return Ok(Thing::Folder);
        }
        if self.find(above(path))? != Thing::Folder {
            return Err(Reason::NotFolder);
        }
        self.names.get(path).copied().ok_or(Reason::NotFound)
    }

    fn find_file(&self, path: &str) -> Result<usize, Reason> {
        match self.find(path)? {
            Thing::Folder => Err(Reason::IsFolder),
            Thing::File(file) => Ok(file),
        }
    }

    fn is_empty(&self, folder: &str) -> bool {
        let mut names = self.names.keys();
        !names.any(|path| path != folder && is_in(path, folder))
    }

    fn names_in(&self, folder: &str) -> Vec<(String, bool)> {
        let names = self.names.iter().filter(|(path, _)| above(path) == folder);
        let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        names
            .map(|(path, thing)| (name(path), *thing == Thing::Folder))
            .collect()
    }

    fn has_writer(&self, file: usize) -> bool {
        let mut slots = self.slots.iter().flatten();
        slots.any(|slot| slot.file == file && slot.writes)
    }

    fn file_mut(&mut self, file: usize) -> &mut File {
        self.files.get_mut(&file).expect("it has a name or is open")
    }

    fn add(&mut self, now: Content, stored: Option<Content>) -> usize {
        let next = self.files.keys().last().map_or(0, |last| last + 1);
        let file = File {
            now,
            stored,
            is_written: false,
        };
        self.files.insert(next, file);
        next
    }

    fn publish(&mut self, file: usize) {
        let file = self.file_mut(file);
        file.stored = Some(Arc::clone(&file.now));
        file.is_written = false;
    }

    fn resize(&mut self, file: usize, size: u64) {
        let file = self.file_mut(file);
        if file.now.len() as u64 != size {
            file.now = resized(&file.now, size);
            file.is_written |= size > 0;
        }
    }

    fn open(&mut self, file: usize, slot: usize, opens: Opens) {
        self.slots[slot] = Some(Slot {
            file,
            writes: opens != Opens::Reads,
        });
        if opens == Opens::Truncates {
            self.resize(file, 0);
        }
    }

    /// Drops files without names that nobody has open.
    fn tidy(mut self) -> Self {
        let named: BTreeSet<usize> = self
            .names
            .values()
            .filter_map(|thing| match thing {
                Thing::File(file) => Some(*file),
                Thing::Folder => None,
            })
            .collect();
        let open: BTreeSet<usize> = self.slots.iter().flatten().map(|slot| slot.file).collect();
        self.files
            .retain(|file, _| named.contains(file) || open.contains(file));
        self
    }
}
