// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The table of drafts: files that are being written, or wait to be published. All programs that
//! have a file open share one draft, found by the node's number. [`crate::open_files`] holds this.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore};

use crate::core::Core;
use crate::draft::{Draft, Origin};

/// Chosen: files that are published side by side behind their writers.
const SIDE_BY_SIDE: usize = 64;
/// Chosen: between two attempts to publish.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// Chosen: and no longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

struct Entry {
    draft: Arc<Draft>,
    writers: usize,
    /// A task publishes it.
    is_waiting: bool,
    /// Its name is gone. Nothing else has its bytes, so it stays for those who read the file.
    is_unlinked: bool,
}

#[derive(Default)]
struct Table {
    entries: HashMap<u64, Entry>,
    /// Open files by which nodes are only read, also of nodes without a draft.
    readers: HashMap<u64, u64>,
}

impl Table {
    /// Takes out the draft of a node that nobody needs any more.
    fn take_unused(&mut self, ino: u64) -> Option<Arc<Draft>> {
        let is_read = self.readers.contains_key(&ino);
        let entry = self.entries.get(&ino)?;
        if entry.writers > 0 || entry.is_waiting || (entry.is_unlinked && is_read) {
            return None;
        }
        self.entries.remove(&ino).map(|entry| entry.draft)
    }
}

/// All drafts of a mount.
pub struct Drafts {
    core: Arc<Core>,
    table: Mutex<Table>,
    turns: Arc<Semaphore>,
    published: Notify,
}

impl Drafts {
    /// None yet.
    pub fn new(core: Arc<Core>) -> Self {
        Self {
            core,
            table: Mutex::default(),
            turns: Arc::new(Semaphore::new(SIDE_BY_SIDE)),
            published: Notify::new(),
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The draft of a node, if it has one.
    pub fn get(&self, ino: u64) -> Option<Arc<Draft>> {
        let table = self.table();
        let entry = table.entries.get(&ino)?;
        Some(Arc::clone(&entry.draft))
    }

    /// The nodes that have one.
    pub fn inos(&self) -> Vec<u64> {
        self.table().entries.keys().copied().collect()
    }

    /// The draft of a node, for one writer more.
    pub fn share(&self, ino: u64) -> Option<Arc<Draft>> {
        let mut table = self.table();
        let entry = table.entries.get_mut(&ino)?;
        entry.writers += 1;
        Some(Arc::clone(&entry.draft))
    }

    /// A node has one reader more.
    pub fn add_reader(&self, ino: u64) {
        *self.table().readers.entry(ino).or_default() += 1;
    }

    /// One reader less. The last one takes a draft with it that was there for readers alone.
    pub async fn release_reader(&self, ino: u64) {
        let draft = {
            let mut table = self.table();
            if let Some(count) = table.readers.get_mut(&ino) {
                *count -= 1;
                if *count == 0 {
                    table.readers.remove(&ino);
                }
            }
            table.take_unused(ino)
        };
        if let Some(draft) = draft {
            self.end(ino, draft, false).await;
        }
    }

    /// The name of a node is gone: what is written is never published, and read by those who have
    /// the file open until the last of them closes it.
    pub async fn unlink(&self, ino: u64) {
        let draft = {
            let mut table = self.table();
            let Some(entry) = table.entries.get_mut(&ino) else {
                return;
            };
            entry.is_unlinked = true;
            Arc::clone(&entry.draft)
        };
        draft.unlink().await;
    }

    /// The same, made where there is none. Two may come here at once; the second writes to the
    /// first one's draft.
    pub fn begin(&self, ino: u64, origin: &Origin) -> Arc<Draft> {
        let draft = {
            let mut table = self.table();
            let new = || Entry {
                draft: Arc::new(Draft::new(Arc::clone(&self.core), ino, origin)),
                writers: 0,
                is_waiting: false,
                is_unlinked: false,
            };
            let entry = table.entries.entry(ino).or_insert_with(new);
            entry.writers += 1;
            Arc::clone(&entry.draft)
        };
        if let Some(file) = self.core.nodes().file(ino) {
            file.is_draft = true;
        }
        draft
    }

    /// One writer less. What the last one leaves is published by a task if it may be `later`.
    pub async fn release(self: &Arc<Self>, ino: u64, later: bool, was_published: bool) {
        let unused = {
            let mut table = self.table();
            let Some(entry) = table.entries.get_mut(&ino) else {
                return;
            };
            entry.writers = entry.writers.saturating_sub(1);
            if later && entry.writers == 0 && !entry.is_waiting {
                entry.is_waiting = true;
                let (this, draft) = (Arc::clone(self), Arc::clone(&entry.draft));
                self.core
                    .runtime
                    .spawn(async move { this.publish_behind(ino, draft).await });
                return;
            }
            table.take_unused(ino)
        };
        if let Some(draft) = unused {
            self.end(ino, draft, !was_published).await;
        }
    }

    /// Publishes what nobody writes any more, as often as that takes.
    async fn publish_behind(self: Arc<Self>, ino: u64, draft: Arc<Draft>) {
        let _turn = self.turns.acquire().await;
        let mut pause = FIRST_PAUSE;
        let outcome = loop {
            match draft.publish().await {
                Err(fault) if fault.may_pass() => {
                    if pause == FIRST_PAUSE {
                        self.core
                            .tell(&format!("publishing is tried again: {fault}"));
                    }
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                outcome => break outcome,
            }
        };
        if let Err(fault) = &outcome {
            self.core
                .tell(&format!("a closed file was not published: {fault}"));
        }
        drop(draft);
        let unused = {
            let mut table = self.table();
            if let Some(entry) = table.entries.get_mut(&ino) {
                entry.is_waiting = false;
            }
            table.take_unused(ino)
        };
        match unused {
            Some(draft) => self.end(ino, draft, outcome.is_err()).await,
            None => self.published.notify_waiters(),
        }
    }

    /// Nobody needs a draft any more: it was taken out of the table.
    async fn end(&self, ino: u64, draft: Arc<Draft>, was_lost: bool) {
        if let Some(log) = draft.end().await {
            self.core.tell(&format!(
                "what was not published stays in {log} for the next mount"
            ));
        }
        self.show_ended(ino, was_lost);
        // Its log goes before anybody hears that nothing waits; large data may still be leaving.
        drop(draft);
        self.published.notify_waiters();
    }

    /// A node has no draft any more, unless somebody writes it again by now.
    fn show_ended(&self, ino: u64, was_lost: bool) {
        let mut nodes = self.core.nodes();
        let Some(node) = nodes.get(ino) else {
            return;
        };
        let (parent, name) = (node.parent, node.name.clone());
        let is_draft = self.table().entries.contains_key(&ino);
        if let Some(file) = nodes.file(ino) {
            file.is_draft = is_draft;
            file.is_lost |= was_lost;
        }
        // The name may be another file's by now.
        if was_lost && nodes.find(parent, &name) == Some(ino) {
            // What is there now only the store knows.
            if let Some(folder) = nodes.folder(parent) {
                folder.own.remove(&name);
                folder.forget(&name);
            }
        }
        nodes.forget(ino, 0);
    }

    /// Waits until nothing is being written, nor waits to be published, at the end of a mount. What
    /// the kernel never closes is waited for no longer than `limit`.
    pub async fn settle_all(&self, limit: Duration) {
        let end = tokio::time::Instant::now() + limit;
        loop {
            let published = self.published.notified();
            let (is_open, is_waiting) = {
                let table = self.table();
                (
                    !table.entries.is_empty(),
                    table.entries.values().any(|entry| entry.is_waiting),
                )
            };
            if !is_open {
                return;
            }
            if is_waiting {
                published.await;
            } else if tokio::time::timeout_at(end, published).await.is_err() {
                return;
            }
        }
    }
}
