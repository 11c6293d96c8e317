// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The files that this node has for all nodes of a job while programs write them: who has them
//! open, and whose close is the last. [`crate::shared::shared_files`] has one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::watch;
use weft_store::ObjectInfo;

use crate::fault::{Fault, Reason};
use crate::shared::messages::FileAt;

/// Specified (5.2): files that one node may have open here.
pub const OPEN_OF_A_NODE: usize = 65_536;
/// Chosen: published files that are remembered; more than are closed in the time that matters.
const PUBLISHED: usize = 10_000;

/// A file that another node has open here.
pub struct OwnedFile {
    /// Which node.
    pub node: usize,
    /// Since when.
    pub since: Instant,
    /// Of the file layer.
    pub handle: u64,
    /// Its node here.
    pub ino: u64,
    /// When it was opened.
    pub key: String,
    state: Mutex<FileState>,
}

#[derive(Default)]
struct FileState {
    /// Calls that are under way, or whose answer nobody took yet.
    running: HashMap<u64, watch::Receiver<Option<Bytes>>>,
    is_closed: bool,
}

/// An open file that its program may write.
struct Writer {
    ino: u64,
    process: u32,
    /// It was closed, or a copy of its descriptor, and nothing was written since.
    is_done: bool,
}

#[derive(Default)]
struct Table {
    last: u64,
    files: HashMap<u64, Arc<OwnedFile>>,
    /// How many of those each node has.
    counts: HashMap<usize, usize>,
    /// Of this node's programs and of others', by handle.
    writers: HashMap<u64, Writer>,
    published: HashMap<String, (Instant, ObjectInfo)>,
}

/// All of a node.
pub struct OwnedFiles {
    session: u64,
    open_limit: usize,
    table: Mutex<Table>,
}

impl Table {
    fn remove(&mut self, number: u64) -> Option<Arc<OwnedFile>> {
        let file = self.files.remove(&number)?;
        if let Some(count) = self.counts.get_mut(&file.node) {
            *count -= 1;
        }
        Some(file)
    }
}

impl OwnedFile {
    /// Opened just now.
    pub fn new(node: usize, handle: u64, ino: u64, key: String) -> Self {
        Self {
            node,
            since: Instant::now(),
            handle,
            ino,
            key,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, FileState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call begins; who has what is returned says how it ends.
    pub fn begin(&self, number: u64) -> watch::Sender<Option<Bytes>> {
        let (sender, receiver) = watch::channel(None);
        self.state().running.insert(number, receiver);
        sender
    }

    /// How a call ended, if it does so in time.
    ///
    /// # Errors
    /// There is no such call.
    pub async fn end(&self, number: u64, limit: Duration) -> Result<Option<Bytes>, Fault> {
        let receiver = self.state().running.get(&number).cloned();
        let mut receiver = receiver.ok_or(Reason::Invalid)?;
        let ended = tokio::time::timeout(limit, receiver.wait_for(Option::is_some)).await;
        let answer = match ended {
            Err(_) => return Ok(None),
            Ok(Ok(answer)) => answer.clone(),
            Ok(Err(_)) => None,
        };
        self.state().running.remove(&number);
        answer.map(Some).ok_or(Reason::Broken.into())
    }

    /// It is closed once the answer to that was taken.
    pub fn close(&self) {
        self.state().is_closed = true;
    }
}

impl OwnedFiles {
    /// None yet; each node may have `open_limit` of them open.
    pub fn new(open_limit: usize) -> Self {
        Self {
            session: fastrand::u64(..),
            open_limit,
            table: Mutex::default(),
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a node may open one more.
    ///
    /// # Errors
    /// `TooManyOpen`.
    pub fn check_room(&self, node: usize) -> Result<(), Fault> {
        let count = self.table().counts.get(&node).copied().unwrap_or_default();
        if count < self.open_limit {
            return Ok(());
        }
        let text = format!(
            "node {node} has {count} files of this node's open for writing, and {} is the limit; \
             close some",
            self.open_limit
        );
        Err(Fault::because(Reason::TooManyOpen, text))
    }

    /// Another node has one more.
    pub fn add(&self, file: OwnedFile) -> FileAt {
        let mut table = self.table();
        table.last += 1;
        let number = table.last;
        *table.counts.entry(file.node).or_default() += 1;
        table.files.insert(number, Arc::new(file));
        FileAt {
            session: self.session,
            number,
        }
    }

    /// The file that a node means.
    ///
    /// # Errors
    /// `Stale` where it was open in an earlier mount, was closed because its node did not answer,
    /// or is another node's.
    pub fn get(&self, node: usize, at: FileAt) -> Result<Arc<OwnedFile>, Fault> {
        let file = self.table().files.get(&at.number).cloned();
        let is_meant = |file: &Arc<OwnedFile>| at.session == self.session && file.node == node;
        file.filter(is_meant).ok_or_else(|| {
            let text = "the mount that had the file for all who write it began anew, or did not \
                        hear of this node for a while and closed the file";
            Fault::because(Reason::Stale, text)
        })
    }

    /// Its node has it no more, if it was closed.
    pub fn take_closed(&self, at: FileAt) {
        let mut table = self.table();
        let file = table.files.get(&at.number);
        if file.is_some_and(|file| file.state().is_closed) {
            table.remove(at.number);
        }
    }

    /// Removes those of a node, all or some.
    pub fn drop_of(
        &self,
        node: usize,
        which: impl Fn(u64, &OwnedFile) -> bool,
    ) -> Vec<Arc<OwnedFile>> {
        let mut table = self.table();
        let is_dropped =
            |(number, file): &(&u64, &Arc<OwnedFile>)| file.node == node && which(**number, file);
        let dropped = table.files.iter().filter(is_dropped);
        let numbers: Vec<u64> = dropped.map(|(number, _)| *number).collect();
        let files = numbers.iter().filter_map(|number| table.remove(*number));
        files.collect()
    }

    /// The nodes that have files open here, and which.
    pub fn by_node(&self) -> HashMap<usize, Vec<u64>> {
        let mut nodes: HashMap<usize, Vec<u64>> = HashMap::new();
        for (number, file) in &self.table().files {
            nodes.entry(file.node).or_default().push(*number);
        }
        nodes
    }

    /// Of the mount.
    pub fn session(&self) -> u64 {
        self.session
    }

    /// One more who may write.
    pub fn add_writer(&self, handle: u64, ino: u64, process: u32) {
        let writer = Writer {
            ino,
            process,
            is_done: false,
        };
        self.table().writers.insert(handle, writer);
    }

    /// It was written.
    pub fn wrote(&self, handle: u64) {
        if let Some(writer) = self.table().writers.get_mut(&handle) {
            writer.is_done = false;
        }
    }

    /// A program closes a descriptor: whether nobody else is still to do so.
    pub fn is_last_done(&self, handle: u64, process: u32) -> bool {
        let mut table = self.table();
        let Some(writer) = table.writers.get_mut(&handle) else {
            return false;
        };
        if ![0, writer.process].contains(&process) {
            return false;
        }
        writer.is_done = true;
        let ino = writer.ino;
        let mut others = table.writers.values().filter(|other| other.ino == ino);
        others.all(|other| other.is_done)
    }

    /// A writer is closed: whether others are left. Nothing for who only reads.
    pub fn remove_writer(&self, handle: u64) -> Option<bool> {
        let mut table = self.table();
        let ino = table.writers.remove(&handle)?.ino;
        Some(table.writers.values().any(|other| other.ino == ino))
    }

    /// Whether somebody may write it.
    pub fn has_writers(&self, ino: u64) -> bool {
        self.table()
            .writers
            .values()
            .any(|writer| writer.ino == ino)
    }

    /// A key has this content now.
    pub fn note_published(&self, key: &str, info: ObjectInfo) {
        let mut table = self.table();
        if table.published.len() >= PUBLISHED {
            table.published.clear();
        }
        let now = Instant::now();
        table.published.insert(key.to_owned(), (now, info));
    }

    /// What a key became here, no longer ago than `age`.
    pub fn published(&self, key: &str, age: Duration) -> Option<ObjectInfo> {
        let table = self.table();
        let (at, info) = table.published.get(key)?;
        (at.elapsed() <= age).then(|| info.clone())
    }

    /// Somebody changed it elsewhere.
    pub fn forget(&self, key: &str) {
        self.table().published.remove(key);
    }
}
