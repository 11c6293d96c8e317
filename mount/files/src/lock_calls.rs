// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The calls on locks in a job. Who takes a lock sees what others wrote before under a lock, and
//! who gives one up publishes first, as NFS does. [`crate::locks`] has the locks.
//!
//! Where several nodes write one file ([`crate::shared`]), whoever has it open asks its owner, and
//! sees every write at once. So locks of such a file publish nothing.

use std::sync::Arc;

use tokio::sync::OwnedMutexGuard;
use weft_store::Store;

use crate::draft::{Draft, Rebased, rebase};
use crate::fault::{Fault, Reason};
use crate::handles::REMOTE;
use crate::locks::seat::Asked;
use crate::locks::table::{Lock, Span};
use crate::locks::{Locks, WHOLE, waiting};
use crate::names::Listed;
use crate::open_files::{OpenFiles, read_all_of};
use crate::turns::Turns;
use crate::version::Version;

/// What a program asks for.
#[derive(Debug, Clone, Copy)]
pub struct LockCall {
    /// The node of the file.
    pub ino: u64,
    /// The open file.
    pub handle: u64,
    /// The kernel's number of who asks.
    pub owner: u64,
    /// The bytes.
    pub span: Span,
    /// Exclusive or shared; nothing gives the lock up.
    pub is_exclusive: Option<bool>,
    /// Who asks, for others to see.
    pub process: u32,
}

/// What follows from a call.
#[derive(Debug, Default)]
pub struct Locked {
    /// The kernel's pages and attributes are of an older content.
    pub drops_pages: bool,
    /// Others who take locks of the file wait until this is dropped, so that none reads old pages.
    pub turn: Option<OwnedMutexGuard<()>>,
}

/// The calls of a mount in a job.
pub struct LockCalls {
    locks: Arc<Locks>,
    store: Arc<dyn Store>,
    /// One who looks at a file's object at a time, until the kernel has dropped its old pages.
    turns: Turns,
}

impl LockCall {
    fn asked(&self, locks: &Locks) -> Asked {
        Asked {
            ino: self.ino,
            handle: self.handle,
            lock: Lock {
                holder: locks.holder(self.owner),
                span: self.span,
                is_exclusive: self.is_exclusive.unwrap_or_default(),
                process: self.process,
            },
        }
    }
}

impl LockCalls {
    /// With these locks; `store` is asked for contents itself, not what the job remembers of it.
    pub fn new(locks: Arc<Locks>, store: Arc<dyn Store>) -> Self {
        Self {
            locks,
            store,
            turns: Turns::default(),
        }
    }

    /// For what others say.
    pub fn locks(&self) -> &Arc<Locks> {
        &self.locks
    }

    /// What is in the way of a lock.
    ///
    /// # Errors
    /// `NoLocks`.
    pub async fn test(&self, files: &OpenFiles, call: &LockCall) -> Result<Option<Lock>, Fault> {
        let key = files.core.key(call.ino)?;
        self.locks.test(key, &call.asked(&self.locks)).await
    }

    /// Takes a lock or gives it up, without waiting for others.
    ///
    /// # Errors
    /// `Taken`, `NoLocks`; `Broken` for locks that are lost; those of publishing, and then the lock
    /// is given up all the same.
    pub async fn set(&self, files: &OpenFiles, call: &LockCall) -> Result<Locked, Fault> {
        if call.is_exclusive.is_none() {
            return self.give_up(files, call).await;
        }
        self.locks.check(call.handle)?;
        let key = files.core.key(call.ino)?;
        let had = self.locks.has(call.ino, call.owner, call.span);
        self.locks.take(key, &call.asked(&self.locks)).await?;
        self.taken(files, call, had).await
    }

    /// Takes a lock as soon as nothing is in its way, unless `interrupted` ends before.
    ///
    /// # Errors
    /// As [`LockCalls::set`]; `Interrupted`, `Deadlock`.
    pub async fn wait(
        &self,
        files: &OpenFiles,
        call: &LockCall,
        interrupted: impl Future<Output = ()>,
    ) -> Result<Locked, Fault> {
        if call.is_exclusive.is_none() {
            return self.give_up(files, call).await;
        }
        self.locks.check(call.handle)?;
        let key = files.core.key(call.ino)?;
        let asked = call.asked(&self.locks);
        let had = self.locks.has(call.ino, call.owner, call.span);
        waiting::wait(&self.locks, key, &asked, interrupted).await?;
        self.taken(files, call, had).await
    }

    /// A process closed a file: its record locks go, once what it wrote is published, unless
    /// nothing may be (`publishes`).
    ///
    /// # Errors
    /// Those of publishing.
    pub async fn flushed(
        &self,
        files: &OpenFiles,
        ino: u64,
        owner: u64,
        publishes: bool,
    ) -> Result<(), Fault> {
        if !self.locks.has(ino, owner, WHOLE) {
            return Ok(());
        }
        let published = if publishes {
            publish(files, ino).await
        } else {
            Ok(())
        };
        let holder = self.locks.holder(owner);
        // If the keeper does not answer, the locks are lost, which is what is wanted.
        let _ = self.locks.release(ino, holder, WHOLE).await;
        published
    }

    /// Nobody has an open file any more: the locks that were taken by it go, once what was written
    /// is published. Whether it is, nobody hears here; who publishes later says so.
    pub async fn released(&self, files: &OpenFiles, ino: u64, handle: u64) {
        if self.locks.has_by(ino, handle)
            && let Some(draft) = draft_of_this_node(files, ino)
        {
            let _ = draft.publish().await;
        }
        self.locks.closed(ino, handle).await;
    }

    async fn give_up(&self, files: &OpenFiles, call: &LockCall) -> Result<Locked, Fault> {
        self.locks.check(call.handle)?;
        if !self.locks.has(call.ino, call.owner, WHOLE) {
            return Ok(Locked::default());
        }
        let published = publish(files, call.ino).await;
        // It may have been lost meanwhile; then somebody else may have read too early.
        let kept = self.locks.check(call.handle);
        let holder = self.locks.holder(call.owner);
        let released = self.locks.release(call.ino, holder, call.span).await;
        published
            .and(kept)
            .and(released)
            .map(|()| Locked::default())
    }

    /// A program has a lock: it must see what others wrote. `had`: it held some of the bytes
    /// before, and believes that it still does whatever is answered; so it must not go on by this
    /// open file if the lock cannot stand.
    async fn taken(&self, files: &OpenFiles, call: &LockCall, had: bool) -> Result<Locked, Fault> {
        let turn = self.turns.take(call.ino).await;
        let seen = if is_seen_by_all(files, call) {
            Ok(false)
        } else {
            self.see(files, call.ino).await
        };
        // It may have been lost meanwhile.
        let seen = seen.and_then(|seen| self.locks.check(call.handle).map(|()| seen));
        if seen.is_err() && had {
            self.locks.lose(call.handle);
        } else if seen.is_err() {
            let holder = self.locks.holder(call.owner);
            let _ = self.locks.release(call.ino, holder, call.span).await;
        }
        seen.map(|drops_pages| Locked {
            drops_pages,
            turn: drops_pages.then_some(turn),
        })
    }

    /// Looks at the object anew; whether the kernel's pages are of another content.
    async fn see(&self, files: &OpenFiles, ino: u64) -> Result<bool, Fault> {
        loop {
            if let Some(drops_pages) = self.look(files, ino).await? {
                return Ok(drops_pages);
            }
        }
    }

    /// The same; nothing where this mount published or learned something newer meanwhile.
    async fn look(&self, files: &OpenFiles, ino: u64) -> Result<Option<bool>, Fault> {
        let core = &files.core;
        let at = std::time::Instant::now();
        let key = core.key(ino)?;
        let Some(info) = self.store.find(&key).await? else {
            return Ok(Some(false));
        };
        let version = Arc::new(Version::new(key, &info));
        let is_newest = || {
            let mut nodes = core.nodes();
            nodes.file(ino).is_none_or(|file| file.at <= at)
        };
        if let Some(draft) = files.draft(ino) {
            match rebase(&draft, &version, is_newest).await? {
                Rebased::Clean => {}
                Rebased::Changed => return Ok(Some(false)),
                Rebased::Outdated => return Ok(None),
                Rebased::Conflicts => {
                    let text = "what was written to it here was not published, and another host \
                                has changed it: close it and open it again";
                    return Err(Fault::because(Reason::Stale, text));
                }
            }
        }
        let (parent, name) = {
            let mut nodes = core.nodes();
            let node = nodes.get(ino).ok_or(Reason::Stale)?;
            let place = (node.parent, node.name.clone());
            let file = nodes.file(ino).ok_or(Reason::IsFolder)?;
            if file.is_gone {
                return Ok(Some(false));
            }
            if file.at > at {
                return Ok(None);
            }
            file.is_written_here &= file.info.etag == info.etag;
            file.see(&info, at);
            place
        };
        core.learn(parent, &name, at, Some(Listed::File(info)));
        read_all_of(files, ino, &version);
        let mut nodes = core.nodes();
        let file = nodes.file(ino).ok_or(Reason::IsFolder)?;
        let had = file.pages_of.replace(version.etag.clone());
        Ok(Some(had.as_ref() != Some(&version.etag)))
    }
}

/// Whether an open file shows what all nodes wrote, published or not. What the store has may be
/// older.
fn is_seen_by_all(files: &OpenFiles, call: &LockCall) -> bool {
    let is_owners = call.handle & REMOTE != 0 || files.draft(call.ino).is_some();
    files.core.settings.writes.is_shared && is_owners
}

/// What must be published before a lock is given up.
fn draft_of_this_node(files: &OpenFiles, ino: u64) -> Option<Arc<Draft>> {
    let is_shared = files.core.settings.writes.is_shared;
    files.draft(ino).filter(|_| !is_shared)
}

/// Publishes what was written to a file, by whomever.
async fn publish(files: &OpenFiles, ino: u64) -> Result<(), Fault> {
    let Some(draft) = draft_of_this_node(files, ino) else {
        return Ok(());
    };
    let published = draft.publish().await;
    if published.is_err() {
        draft.told().await;
    }
    published
}
