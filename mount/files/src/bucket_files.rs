// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The file system: the calls on names and attributes, and two tables, of open files and of open
//! folders, which have calls of their own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::runtime::Handle;
use weft_store::{Condition, ETag, ObjectInfo, Store};

use crate::attribute_calls::{self, AttributeCalls};
use crate::attribute_sync;
use crate::attributes::{Entry, Making};
use crate::changes::{Changes, Name};
use crate::core::{Core, Settings};
use crate::fault::{Fault, Reason};
use crate::folders::Folders;
use crate::job::{ANSWER_BYTES, ELSE, EXTENT_BYTES, FOLLOWS, refusal};
use crate::job_messages::Question;
use crate::job_store::JobStore;
use crate::lock_calls::LockCalls;
use crate::locks::{Locks, messages};
use crate::names;
use crate::nodes::Body;
use crate::open_files::OpenFiles;
use crate::open_names;
use crate::renames::hold::Times;
use crate::search;
use crate::sources::Disk;
use crate::version::Version;

/// Chosen: as many of the first pauses fill the wait for another rename; the others are longer.
const FIRST_PAUSES: u32 = 50;
/// Chosen: as many of the longest ones.
const LAST_PAUSES: u32 = 8;

/// What a rename finds at its new name.
struct Target {
    /// The object there.
    info: Option<ObjectInfo>,
    /// It may be replaced.
    may_replace: bool,
}

/// Files and folders over a store.
pub struct BucketFiles {
    pub(crate) core: Arc<Core>,
    pub(crate) job_store: Option<Arc<JobStore>>,
    /// Locks that hold across the job, in a job.
    pub lock_calls: Option<LockCalls>,
    changes: Changes,
    /// Modes, owners, times, extended attributes, links.
    pub attribute_calls: AttributeCalls,
    /// Open folders.
    pub folders: Folders,
    /// Open files.
    pub open_files: OpenFiles,
}

impl BucketFiles {
    /// Over `store`; requests run on `runtime`. `tell` takes warnings, one line each.
    pub fn new(store: Arc<dyn Store>, runtime: Handle, settings: Settings, tell: fn(&str)) -> Self {
        let core = Arc::new(Core::new(store, runtime, settings, tell));
        Self {
            changes: Changes::new(Arc::clone(&core)),
            attribute_calls: AttributeCalls::new(Arc::clone(&core)),
            folders: Folders::new(Arc::clone(&core)),
            open_files: OpenFiles::new(Arc::clone(&core)),
            core,
            job_store: None,
            lock_calls: None,
        }
    }

    /// Keeps what it fetches on a disk, and looks there before it asks the store.
    pub fn with_disk(mut self, disk: Disk) -> Self {
        self.open_files = self.open_files.with_disk(disk);
        self
    }

    /// Finishes the renames of folders that other mounts left; looks for them now, and when a
    /// listing shows some.
    pub fn finish_renames(&self, times: Times) {
        self.core.renames.watch_from_now(times);
    }

    /// Asks the other mounts of a job; `store` is the one of [`BucketFiles::new`].
    pub fn with_job(mut self, store: Arc<JobStore>) -> Self {
        self.open_files = self.open_files.with_job(Arc::clone(&store.job));
        self.core.renames.ask_past_job(store.beneath());
        self.job_store = Some(store);
        self
    }

    /// Has locks hold across the job of [`BucketFiles::with_job`].
    pub fn with_locks(mut self, locks: Arc<Locks>) -> Self {
        let store = self.job_store.as_ref().map(|store| store.beneath());
        self.lock_calls = store.map(|store| LockCalls::new(locks, store));
        self
    }

    /// The answer to what the mount of another node of the job asks, in two parts.
    pub async fn answer(&self, node: usize, question: Bytes) -> [Bytes; 2] {
        if let Some(about) = messages::read(question.clone()) {
            return match &self.lock_calls {
                Some(calls) => calls.locks().answer(node, about).await,
                None => refusal(ELSE, "this mount keeps no locks"),
            };
        }
        match (Question::read(question), &self.job_store) {
            (None, _) => refusal(
                ELSE,
                "the question is not understood, or its key or a mark in it is too long",
            ),
            (_, None) => refusal(ELSE, "this mount is in no job"),
            (
                Some(Question::Bytes {
                    key,
                    etag,
                    size_bytes,
                    range,
                    whole,
                }),
                _,
            ) => {
                if range.byte_count() > ANSWER_BYTES || whole.byte_count() > EXTENT_BYTES {
                    return refusal(ELSE, "more is asked for than an answer holds");
                }
                let version = Version::named(key, &etag, size_bytes);
                match self.open_files.owned(version, range, whole).await {
                    Ok(bytes) => [Bytes::from_static(&[FOLLOWS]), bytes],
                    Err(error) => refusal(ELSE, &error.to_string()),
                }
            }
            (Some(question), Some(store)) => store.answer(question).await,
        }
    }

    /// What a name in a folder stands for. The kernel is told of the node: it forgets it later.
    ///
    /// # Errors
    /// `NotFound`; `NameTooLong`.
    pub async fn lookup(&self, parent: u64, name: &str) -> Result<Entry, Fault> {
        match names::check(name) {
            Err(Reason::NameTooLong) => return Err(Reason::NameTooLong.into()),
            Err(_) => return Err(Reason::NotFound.into()),
            Ok(()) => {}
        }
        let (listed, at) = search::search(&self.core, parent, name).await?;
        Ok(self.core.enter(parent, name, &listed, at))
    }

    /// What stat(2) shows of a node.
    ///
    /// # Errors
    /// `NotFound` where a file is gone.
    pub async fn attributes(&self, ino: u64) -> Result<Entry, Fault> {
        let ttl = self.core.settings.ttl;
        if !search::is_listed(&self.core, ino) {
            search::freshen(&self.core, ino, ttl).await?;
        }
        let place = self.core.nodes().attribute_place(ino);
        if let Some((folder, _)) = place {
            attribute_sync::ensure(&self.core, folder).await?;
        }
        let mut nodes = self.core.nodes();
        let attributes = self.core.attributes_in(&nodes, ino).ok_or(Reason::Stale)?;
        let node = nodes.get(ino).ok_or(Reason::Stale)?;
        let valid = match &node.body {
            Body::Folder(_) | Body::Special(_) => ttl,
            Body::File(file) => {
                let (at, parent) = (file.at, node.parent);
                let folder = nodes.folder(parent);
                folder.map_or(Duration::ZERO, |folder| folder.valid(at, ttl))
            }
        };
        Ok(Entry { attributes, valid })
    }

    /// Makes a folder.
    ///
    /// # Errors
    /// `Exists`.
    pub async fn make_folder(&self, new: Name<'_>, making: &Making) -> Result<Entry, Fault> {
        let entry = self.changes.make_folder(new).await?;
        attribute_calls::made(&self.core, new, making, None);
        let ino = entry.attributes.ino;
        self.core.touched(ino);
        let attributes = self.core.attributes_in(&self.core.nodes(), ino);
        let attributes = attributes.ok_or(Reason::Stale)?;
        Ok(Entry {
            attributes,
            ..entry
        })
    }

    /// Removes a folder that is empty.
    ///
    /// # Errors
    /// `NotEmpty`, `NotFolder`, `NotFound`.
    pub async fn remove_folder(&self, old: Name<'_>) -> Result<(), Fault> {
        self.changes.remove_folder(old).await?;
        self.attribute_calls.gone(old);
        Ok(())
    }

    /// Removes a file. What is being written to it is never published.
    ///
    /// # Errors
    /// `IsFolder`, `NotFound`.
    pub async fn unlink(&self, old: Name<'_>) -> Result<(), Fault> {
        let ino = self.core.nodes().find(old.parent, old.name);
        let Some(ino) = ino else {
            self.changes.unlink(old, true).await?;
            self.attribute_calls.gone(old);
            return Ok(());
        };
        if self.core.nodes().folder(ino).is_some() {
            return Err(Reason::IsFolder.into());
        }
        // The attributes of its folder are known then, which go with the name.
        search::search(&self.core, old.parent, old.name).await?;
        // Nothing is published until it is known whether the name goes.
        let _removing = self.core.begin_rename(ino);
        let is_only_here = open_names::is_only_here(&self.open_files, ino).await;
        open_names::hide(&self.open_files, ino).await?;
        if let Err(fault) = self.changes.unlink(old, !is_only_here).await {
            open_names::stay(&self.open_files, ino);
            return Err(fault);
        }
        open_names::unlink(&self.open_files, ino).await;
        self.core.gone(ino);
        self.attribute_calls.gone(old);
        Ok(())
    }

    /// Another mount of the job removed a file.
    pub(crate) fn unlinked(&self, old: Name<'_>) {
        let ino = self.core.nodes().find(old.parent, old.name);
        self.changes.gone(old);
        if let Some(ino) = ino {
            self.core.gone(ino);
        }
        self.attribute_calls.gone(old);
    }

    /// Gives a file or a folder another name. What is being written to the file is published first.
    ///
    /// # Errors
    /// `Exists` where nothing may be replaced; `NotEmpty`, `IsFolder`, `NotFolder`; `Stale` where
    /// somebody else wrote the object meanwhile; `Busy` where another rename of the same folders
    /// does not end, and then nothing was changed; `Broken` where a folder has not all of its files
    /// by now.
    pub async fn rename(
        &self,
        old: Name<'_>,
        new: Name<'_>,
        may_replace: bool,
    ) -> Result<(), Fault> {
        let (began, wait) = (Instant::now(), self.core.renames.wait());
        let mut pause = wait / FIRST_PAUSES;
        loop {
            let renamed = self.rename_once(old, new, may_replace).await;
            let is_busy = matches!(&renamed, Err(fault) if fault.reason == Reason::Busy);
            if !is_busy || began.elapsed() >= wait {
                return renamed;
            }
            // Two mounts that gave way to each other do not meet again at once.
            tokio::time::sleep(pause.mul_f64(0.5 + fastrand::f64())).await;
            pause = (pause * 2).min(wait / LAST_PAUSES);
        }
    }

    /// The same, as long as no other rename is in the way.
    async fn rename_once(
        &self,
        old: Name<'_>,
        new: Name<'_>,
        may_replace: bool,
    ) -> Result<(), Fault> {
        let (from, to) = {
            let nodes = self.core.nodes();
            let find = |name: Name<'_>| nodes.find(name.parent, name.name);
            (find(old), find(new))
        };
        if from.is_some() && from == to {
            return Ok(());
        }
        let folders = [old, new].map(|name| {
            let above = self.core.nodes().path(name.parent).unwrap_or_default();
            format!("{above}{}/", name.name)
        });
        self.core.renames.finish_left(&folders).await?;
        let to = to.filter(|ino| self.core.nodes().file(*ino).is_some());
        // What is written from now on is published under the new name, and what is replaced is not.
        let _renaming = from.map(|from| self.core.begin_rename(from));
        let _replacing = to.map(|to| self.core.begin_rename(to));
        let found = self.changes.check_rename(old, new, may_replace).await?;
        let target = Target {
            info: self.replaced(to, new, found).await?,
            may_replace,
        };
        if let Some(from) = from
            && !open_names::is_only_here(&self.open_files, from).await
        {
            // If this fails, what has the new name is still there.
            open_names::settle(&self.open_files, from).await?;
        }
        let own = match to {
            None => None,
            Some(to) => {
                open_names::hide(&self.open_files, to).await?;
                let mut nodes = self.core.nodes();
                let folder = nodes.folder(new.parent);
                folder.and_then(|folder| folder.own.remove(new.name))
            }
        };
        let renamed = self.rename_from(from, old, new, target).await;
        match (to, &renamed) {
            (None, _) => {}
            (Some(to), Ok(())) => {
                self.core.gone(to);
                open_names::unlink(&self.open_files, to).await;
            }
            (Some(to), Err(_)) => {
                open_names::stay(&self.open_files, to);
                let mut nodes = self.core.nodes();
                if let Some((folder, own)) = nodes.folder(new.parent).zip(own) {
                    folder.own.insert(new.name.into(), own);
                }
            }
        }
        renamed
    }

    /// The object that a rename replaces. Of a file that is being written, the store may have none,
    /// or one of which nobody heard.
    async fn replaced(
        &self,
        to: Option<u64>,
        new: Name<'_>,
        found: Option<ObjectInfo>,
    ) -> Result<Option<ObjectInfo>, Fault> {
        let Some(to) = to.filter(|to| self.open_files.draft(*to).is_some()) else {
            return Ok(found);
        };
        if open_names::is_only_here(&self.open_files, to).await {
            return Ok(None);
        }
        let key = format!("{}{}", self.core.key(new.parent)?, new.name);
        Ok(self.core.store.find(&key).await?)
    }

    /// The same, once the target is out of the way.
    async fn rename_from(
        &self,
        from: Option<u64>,
        old: Name<'_>,
        new: Name<'_>,
        target: Target,
    ) -> Result<(), Fault> {
        if let Some(from) = from {
            let key = format!("{}{}", self.core.key(new.parent)?, new.name);
            let when = match &target.info {
                Some(info) => Condition::IfMatch(info.etag.clone()),
                None => Condition::IfAbsent,
            };
            if open_names::rename_staged(&self.open_files, from, &key, &when).await? {
                self.changes.renamed_staged(from, old, new);
                self.attribute_calls.moved(old, new, None);
                return Ok(());
            }
            open_names::settle(&self.open_files, from).await?;
        }
        let open_below = || {
            let below = |from| open_names::open_below(&self.open_files, from);
            from.map_or(Vec::new(), below)
        };
        for ino in open_below() {
            open_names::settle(&self.open_files, ino).await?;
        }
        let before = from.and_then(|from| self.etag(from));
        let with_etag = |ino| Some((ino, self.etag(ino)?));
        let mut etags: Vec<(u64, ETag)> = open_below().into_iter().filter_map(with_etag).collect();
        let is_whole = self.changes.rename(old, new, target.may_replace).await?;
        let after = from.and_then(|from| self.etag(from));
        let pair = before.as_ref().zip(after.as_ref());
        self.attribute_calls.moved(old, new, pair);
        if let (Some(from), Some(etag)) = (from, &before) {
            open_names::renamed(&self.open_files, from, etag).await;
        }
        // Programs have opened more of them meanwhile.
        let is_known = |ino: &u64| etags.iter().any(|(known, _)| known == ino);
        let new_ones = open_below().into_iter().filter(|ino| !is_known(ino));
        let new_ones: Vec<(u64, ETag)> = new_ones.filter_map(with_etag).collect();
        etags.extend(new_ones);
        for (ino, etag) in etags {
            // Copies may have other entity tags. One that stayed, or that the store does not show
            // now, is stale for those who have it open.
            let _ = search::look_again(&self.core, ino).await;
            open_names::renamed(&self.open_files, ino, &etag).await;
        }
        if is_whole {
            return Ok(());
        }
        let text = format!(
            "not all of `{}` got the new name `{}`: somebody else wrote in one of the two folders \
             meanwhile",
            old.name, new.name
        );
        Err(Fault::because(Reason::Broken, text))
    }

    fn etag(&self, ino: u64) -> Option<ETag> {
        let mut nodes = self.core.nodes();
        let file = nodes.file(ino).filter(|file| !file.is_gone)?;
        Some(file.info.etag.clone())
    }

    /// Has the store know what was written and changed, at the end of the mount. What the kernel
    /// never closes is waited for no longer than `limit`.
    pub async fn settle_all(&self, limit: Duration) {
        self.open_files.settle_all(limit).await;
        if let Err(fault) = self.attribute_calls.sync_all().await {
            self.core
                .tell(&format!("attributes that were changed are lost: {fault}"));
        }
    }

    /// The kernel forgets what it was told `count` times.
    pub fn forget(&self, ino: u64, count: u64) {
        self.core.nodes().forget(ino, count);
    }
}
