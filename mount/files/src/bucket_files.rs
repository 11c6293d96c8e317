// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The file system: calls on names and attributes, and the two tables of what is open, which have
//! calls of their own.

use std::sync::Arc;

use bytes::Bytes;
use tokio::runtime::Handle;
use weft_store::Store;

use crate::attributes::Entry;
use crate::changes::{Changes, Name};
use crate::core::{Core, Settings};
use crate::fault::{Fault, Reason};
use crate::folders::Folders;
use crate::job::{ANSWER_BYTES, ELSE, FOLLOWS, refusal};
use crate::job_store::JobStore;
use crate::names;
use crate::nodes::Body;
use crate::open_files::OpenFiles;
use crate::search;
use crate::sources::Disk;
use crate::version::Version;
use crate::words::Question;

/// Files and folders over a store.
pub struct BucketFiles {
    core: Arc<Core>,
    job_store: Option<Arc<JobStore>>,
    changes: Changes,
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
            folders: Folders::new(Arc::clone(&core)),
            open_files: OpenFiles::new(Arc::clone(&core)),
            core,
            job_store: None,
        }
    }

    /// Keeps what it fetches on a disk, and looks there before it asks the store.
    pub fn with_disk(mut self, disk: Disk) -> Self {
        self.open_files = self.open_files.with_disk(disk);
        self
    }

    /// Asks the other mounts of a job; `store` is the one of [`BucketFiles::new`].
    pub fn with_job(mut self, store: Arc<JobStore>) -> Self {
        self.open_files = self.open_files.with_job(Arc::clone(&store.job));
        self.job_store = Some(store);
        self
    }

    /// The answer to what another mount of the job asks, in two parts.
    pub async fn answer(&self, question: Bytes) -> [Bytes; 2] {
        match (Question::read(question), &self.job_store) {
            (None, _) => refusal(ELSE, "the question is not understood"),
            (_, None) => refusal(ELSE, "this mount is in no job"),
            (
                Some(Question::Bytes {
                    key,
                    etag,
                    size_bytes,
                    range,
                }),
                _,
            ) => {
                if range.byte_count() > ANSWER_BYTES {
                    return refusal(ELSE, "more is asked for than an answer holds");
                }
                let version = Version::named(key, &etag, size_bytes);
                match self.open_files.owned(version, range).await {
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
        search::freshen(&self.core, ino, ttl).await?;
        let nodes = self.core.nodes();
        let attributes = self.core.attributes_in(&nodes, ino).ok_or(Reason::Stale)?;
        let valid = match &nodes.get(ino).ok_or(Reason::Stale)?.body {
            Body::Folder(_) => ttl,
            Body::File(file) => ttl.saturating_sub(file.at.elapsed()),
        };
        Ok(Entry { attributes, valid })
    }

    /// Makes a folder.
    ///
    /// # Errors
    /// `Exists`.
    pub async fn make_folder(&self, new: Name<'_>) -> Result<Entry, Fault> {
        self.changes.make_folder(new).await
    }

    /// Removes a folder that is empty.
    ///
    /// # Errors
    /// `NotEmpty`, `NotFolder`, `NotFound`.
    pub async fn remove_folder(&self, old: Name<'_>) -> Result<(), Fault> {
        self.changes.remove_folder(old).await
    }

    /// Removes a file. What is being written to it is never published.
    ///
    /// # Errors
    /// `IsFolder`, `NotFound`.
    pub async fn unlink(&self, old: Name<'_>) -> Result<(), Fault> {
        let ino = self.core.nodes().find(old.parent, old.name);
        self.changes.unlink(old).await?;
        match ino {
            Some(ino) => self.open_files.settle(ino, true).await,
            None => Ok(()),
        }
    }

    /// Gives a file or a folder another name. What is being written to the file is published first.
    ///
    /// # Errors
    /// `Exists` where nothing may be replaced; `NotEmpty`, `IsFolder`, `NotFolder`; `Stale` where
    /// somebody else wrote the object meanwhile.
    pub async fn rename(
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
        if let Some(from) = from {
            self.open_files.settle(from, false).await?;
        }
        if let Some(to) = to.filter(|to| may_replace && from != Some(*to)) {
            self.open_files.settle(to, true).await?;
        }
        let etag = from.and_then(|ino| Some(self.core.nodes().file(ino)?.info.etag.clone()));
        self.changes.rename(old, new, may_replace).await?;
        if let Some((from, etag)) = from.zip(etag) {
            self.open_files.renamed(from, &etag).await;
        }
        Ok(())
    }

    /// The kernel forgets what it was told `count` times.
    pub fn forget(&self, ino: u64, count: u64) {
        self.core.nodes().forget(ino, count);
    }
}
