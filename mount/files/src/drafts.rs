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
}

/// All drafts of a mount.
pub struct Drafts {
    core: Arc<Core>,
    table: Mutex<HashMap<u64, Entry>>,
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

    fn table(&self) -> MutexGuard<'_, HashMap<u64, Entry>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The draft of a node, if it has one.
    pub fn get(&self, ino: u64) -> Option<Arc<Draft>> {
        self.table().get(&ino).map(|entry| Arc::clone(&entry.draft))
    }

    /// The nodes that have one.
    pub fn inos(&self) -> Vec<u64> {
        self.table().keys().copied().collect()
    }

    /// The draft of a node, for one writer more.
    pub fn share(&self, ino: u64) -> Option<Arc<Draft>> {
        let mut table = self.table();
        let entry = table.get_mut(&ino)?;
        entry.writers += 1;
        Some(Arc::clone(&entry.draft))
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
            };
            let entry = table.entry(ino).or_insert_with(new);
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
        let draft = {
            let mut table = self.table();
            let Some(entry) = table.get_mut(&ino) else {
                return;
            };
            entry.writers = entry.writers.saturating_sub(1);
            if entry.writers > 0 || entry.is_waiting {
                return;
            }
            if later {
                entry.is_waiting = true;
                Arc::clone(&entry.draft)
            } else {
                let Some(entry) = table.remove(&ino) else {
                    return;
                };
                entry.draft
            }
        };
        if !later {
            self.end(ino, &draft, !was_published).await;
            drop(draft);
            self.published.notify_waiters();
            return;
        }
        let this = Arc::clone(self);
        self.core
            .runtime
            .spawn(async move { this.publish_behind(ino, draft).await });
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
        let is_last = {
            let mut table = self.table();
            let writers = table.get_mut(&ino).map_or(0, |entry| {
                entry.is_waiting = false;
                entry.writers
            });
            if writers == 0 {
                table.remove(&ino);
            }
            writers == 0
        };
        if is_last {
            self.end(ino, &draft, outcome.is_err()).await;
        }
        // Its log goes before anybody hears that nothing waits; large data may still be leaving.
        drop(draft);
        self.published.notify_waiters();
    }

    /// Nobody writes a file any more, and nothing of it waits.
    async fn end(&self, ino: u64, draft: &Draft, was_lost: bool) {
        if let Some(log) = draft.end().await {
            self.core.tell(&format!(
                "what was not published stays in {log} for the next mount"
            ));
        }
        let mut nodes = self.core.nodes();
        let Some(node) = nodes.get(ino) else {
            return;
        };
        let (parent, name) = (node.parent, node.name.clone());
        // Somebody may write it again by now.
        let is_draft = self.table().contains_key(&ino);
        if let Some(file) = nodes.file(ino) {
            file.is_draft = is_draft;
            file.is_lost |= was_lost;
        }
        if was_lost {
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
                    !table.is_empty(),
                    table.values().any(|entry| entry.is_waiting),
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
