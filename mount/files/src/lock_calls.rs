// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The calls on locks in a job. Who takes a lock sees what others wrote before under a lock, and
//! who gives one up publishes first, as NFS does. [`crate::locks`] has the locks.

use std::sync::Arc;

use weft_store::Store;

use crate::draft::{Rebased, rebase};
use crate::fault::{Fault, Reason};
use crate::locks::seat::Asked;
use crate::locks::table::{Lock, Span};
use crate::locks::{Locks, WHOLE};
use crate::names::Listed;
use crate::open_files::{OpenFiles, read_all_of};
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Locked {
    /// The kernel's pages and attributes are of an older content.
    pub drops_pages: bool,
}

/// The calls of a mount in a job.
pub struct LockCalls {
    locks: Arc<Locks>,
    store: Arc<dyn Store>,
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
        Self { locks, store }
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
        let key = files.core.key(call.ino)?;
        self.locks.take(key, &call.asked(&self.locks)).await?;
        self.taken(files, call).await
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
        let key = files.core.key(call.ino)?;
        let asked = call.asked(&self.locks);
        self.locks.wait(key, &asked, interrupted).await?;
        self.taken(files, call).await
    }

    /// A process closed a file: its record locks go, once what it wrote is published.
    ///
    /// # Errors
    /// Those of publishing.
    pub async fn flushed(&self, files: &OpenFiles, ino: u64, owner: u64) -> Result<(), Fault> {
        if !self.locks.has(ino, owner, WHOLE) {
            return Ok(());
        }
        let published = publish(files, ino).await;
        let holder = self.locks.holder(owner);
        // If the keeper does not answer, the locks are lost, which is what is wanted.
        let _ = self.locks.release(ino, holder, WHOLE).await;
        published
    }

    /// Nobody has an open file any more: the locks that were taken by it go.
    pub async fn released(&self, ino: u64, handle: u64) {
        self.locks.closed(ino, handle).await;
    }

    async fn give_up(&self, files: &OpenFiles, call: &LockCall) -> Result<Locked, Fault> {
        let nothing = Locked { drops_pages: false };
        self.locks.check(call.handle)?;
        if !self.locks.has(call.ino, call.owner, WHOLE) {
            return Ok(nothing);
        }
        let published = publish(files, call.ino).await;
        // It may have been lost meanwhile; then somebody else may have read too early.
        let kept = self.locks.check(call.handle);
        let holder = self.locks.holder(call.owner);
        let released = self.locks.release(call.ino, holder, call.span).await;
        published.and(kept).and(released).map(|()| nothing)
    }

    /// A program has a lock: it must see what others wrote.
    async fn taken(&self, files: &OpenFiles, call: &LockCall) -> Result<Locked, Fault> {
        let seen = self.see(files, call.ino).await;
        if seen.is_err() {
            let holder = self.locks.holder(call.owner);
            let _ = self.locks.release(call.ino, holder, call.span).await;
        }
        seen.map(|drops_pages| Locked { drops_pages })
    }

    /// Looks at the object anew; whether the kernel's pages are of another content.
    async fn see(&self, files: &OpenFiles, ino: u64) -> Result<bool, Fault> {
        let core = &files.core;
        let at = std::time::Instant::now();
        let key = core.key(ino)?;
        let Some(info) = self.store.find(&key).await? else {
            return Ok(false);
        };
        let version = Arc::new(Version::new(key, &info));
        if let Some(draft) = files.draft(ino)
            && rebase(&draft, &version).await? == Rebased::Changed
        {
            return Ok(false);
        }
        let (parent, name) = {
            let mut nodes = core.nodes();
            let node = nodes.get(ino).ok_or(Reason::Stale)?;
            let place = (node.parent, node.name.clone());
            let file = nodes.file(ino).ok_or(Reason::IsFolder)?;
            if file.is_gone {
                return Ok(false);
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
        Ok(had.as_ref() != Some(&version.etag))
    }
}

/// Publishes what was written to a file, by whomever.
async fn publish(files: &OpenFiles, ino: u64) -> Result<(), Fault> {
    let Some(draft) = files.draft(ino) else {
        return Ok(());
    };
    let published = draft.publish().await;
    if published.is_err() {
        draft.told().await;
    }
    published
}
