// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The calls of this node's programs on files that several nodes may write. Where the mount shares
//! them, a file that is open for writing anywhere is that of its owner: calls on it go there. All
//! other calls are those of [`BucketFiles`]. `mount/daemon` calls this.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::attribute_calls;
use crate::attribute_sync;
use crate::attributes::{Entry, Maker, Making};
use crate::bucket_files::BucketFiles;
use crate::changes::Name;
use crate::core::{Core, Publish};
use crate::draft::Written;
use crate::fault::{Fault, Reason};
use crate::handles::{Open, REMOTE};
use crate::job::Job;
use crate::mode::Mode;
use crate::names::Listed;
use crate::open_files::{self, Opened, close_unpublished};
use crate::search;
use crate::shared::messages::{Call, DATA_BYTES};
use crate::shared::others::{Others, There, key};
use crate::shared::owned_files::OwnedFiles;
use crate::shared::remote_file::RemoteFile;
use crate::writing_now;

/// A file was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedOpened {
    /// As without a job.
    pub opened: Opened,
    /// The kernel must ask for each read and write: other nodes write the file.
    pub is_direct: bool,
}

/// The files of a mount, some of them shared with other nodes.
pub struct SharedFiles {
    /// Those of this node.
    pub files: Arc<BucketFiles>,
    pub(crate) others: Others,
    pub(crate) owned: OwnedFiles,
    pub(crate) remote: Open<RemoteFile>,
    /// Files that must be new are made one after the other.
    making: tokio::sync::Mutex<()>,
}

impl SharedFiles {
    /// Of a mount; nothing is shared without a job. Each other node may have `open_limit` files
    /// open here.
    pub fn new(files: Arc<BucketFiles>, job: Option<Arc<Job>>, open_limit: usize) -> Arc<Self> {
        Arc::new(Self {
            others: Others::new(Arc::clone(&files.core), job),
            files,
            owned: OwnedFiles::new(open_limit),
            remote: Open::default(),
            making: tokio::sync::Mutex::default(),
        })
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.files.core
    }

    fn add_remote(&self, there: &There, ino: u64, key: &str, mode: Mode) -> SharedOpened {
        // There is a job where there is an owner.
        let job = Arc::clone(self.others.job.as_ref().expect("in a job"));
        let file = RemoteFile::new(job, there.place, ino, key, mode);
        self.others.drafts().insert(ino);
        SharedOpened {
            opened: Opened {
                handle: self.remote.add(file) | REMOTE,
                keeps_pages: false,
            },
            is_direct: true,
        }
    }

    fn remote(&self, handle: u64) -> Option<Result<Arc<RemoteFile>, Reason>> {
        (handle & REMOTE != 0).then(|| self.remote.get(handle & !REMOTE))
    }

    /// As [`open_files::OpenFiles::open`].
    ///
    /// # Errors
    /// As there; those of the owner.
    pub async fn open(&self, ino: u64, mode: Mode) -> Result<SharedOpened, Fault> {
        if self.others.job.is_none() {
            let opened = self.files.open_files.open(ino, mode).await;
            return Ok(SharedOpened {
                opened: opened.map_err(|fault| self.looked_up_in_vain(ino, fault))?,
                is_direct: false,
            });
        }
        let key = self.core().key(ino)?;
        if !mode.writes && !mode.truncates {
            match self.others.look(&key).await? {
                Some(seen) if seen.is_draft => {}
                seen => {
                    if let Some(seen) = seen {
                        self.others.learn(ino, &seen);
                    }
                    return self.open_here(ino, mode).await;
                }
            }
        }
        let there = self.others.open(&key, mode, false).await;
        match there.map_err(|fault| self.looked_up_in_vain(ino, fault))? {
            None => self.open_here(ino, mode).await,
            Some(there) => {
                self.others.learn(ino, &there.seen);
                Ok(self.add_remote(&there, ino, &key, mode))
            }
        }
    }

    /// The owner or the store knows that a name is gone, and this node did not hear of it. The
    /// kernel looks the name up again after ESTALE, and then makes the file if it may.
    fn looked_up_in_vain(&self, ino: u64, fault: Fault) -> Fault {
        if fault.reason != Reason::NotFound {
            return fault;
        }
        let place = {
            let nodes = self.core().nodes();
            nodes.get(ino).map(|node| (node.parent, node.name.clone()))
        };
        if let Some((parent, name)) = place {
            self.core().learn(parent, &name, Instant::now(), None);
        }
        Reason::Stale.into()
    }

    /// Opens a file that this node owns, or that nobody writes.
    pub(crate) async fn open_here(&self, ino: u64, mode: Mode) -> Result<SharedOpened, Fault> {
        let writes = mode.writes || mode.truncates;
        let is_direct = writes || self.files.open_files.draft(ino).is_some();
        let mode = Mode {
            is_pinned: !is_direct,
            ..mode
        };
        let opened = self.files.open_files.open(ino, mode).await?;
        if writes {
            self.owned.add_writer(opened.handle, ino, mode.process);
        }
        Ok(SharedOpened { opened, is_direct })
    }

    /// As [`open_files::OpenFiles::create`].
    ///
    /// # Errors
    /// As there; those of the owner.
    pub async fn create(
        &self,
        new: Name<'_>,
        mode: Mode,
        making: &Making,
    ) -> Result<(Entry, SharedOpened), Fault> {
        if self.others.job.is_none() {
            let (entry, opened) = self.files.open_files.create(new, mode, making).await?;
            let is_direct = false;
            return Ok((entry, SharedOpened { opened, is_direct }));
        }
        let key = key(self.core(), new)?;
        let Some(there) = self.others.open(&key, mode, true).await? else {
            return self.create_here(new, mode, making).await;
        };
        if there.is_new {
            let making = Making {
                maker: Maker::HereByOther,
                ..*making
            };
            attribute_calls::made(self.core(), new, &making, None);
        }
        let listed = Listed::File(there.seen.info.clone());
        let core = self.core();
        let mut entry = core.enter(new.parent, new.name, &listed, Instant::now());
        entry.valid = Duration::ZERO;
        self.others.learn(entry.attributes.ino, &there.seen);
        let opened = self.add_remote(&there, entry.attributes.ino, &key, mode);
        Ok((entry, opened))
    }

    /// Makes a file that this node owns.
    pub(crate) async fn create_here(
        &self,
        new: Name<'_>,
        mode: Mode,
        making: &Making,
    ) -> Result<(Entry, SharedOpened), Fault> {
        let _turn = self.making.lock().await;
        if mode.is_new
            && search::find(self.core(), new.parent, new.name)
                .await?
                .is_some()
        {
            return Err(Reason::Exists.into());
        }
        let (mut entry, opened) = self.files.open_files.create(new, mode, making).await?;
        let ino = entry.attributes.ino;
        entry.valid = Duration::ZERO;
        let is_direct = true;
        self.owned.add_writer(opened.handle, ino, mode.process);
        Ok((entry, SharedOpened { opened, is_direct }))
    }

    /// A file of this node is written: who closed it before has to do so again. Nothing to note
    /// where nothing is shared.
    fn note_write(&self, handle: u64) {
        if self.others.job.is_some() {
            self.owned.wrote(handle);
        }
    }

    /// As [`open_files::OpenFiles::read`].
    ///
    /// # Errors
    /// As there; those of the owner.
    pub async fn read(&self, handle: u64, offset: u64, size: u64) -> Result<Bytes, Fault> {
        match self.remote(handle) {
            Some(file) => file?.read(offset, size).await,
            None => self.files.open_files.read(handle, offset, size).await,
        }
    }

    /// As [`open_files::OpenFiles::write`].
    ///
    /// # Errors
    /// As there; those of the owner.
    pub async fn write(&self, handle: u64, offset: u64, data: Bytes) -> Result<(), Fault> {
        let Some(file) = self.remote(handle) else {
            self.note_write(handle);
            return self.files.open_files.write(handle, offset, data).await;
        };
        let file = file?;
        if !file.mode.writes {
            return Err(Reason::NotOpen.into());
        }
        attribute_sync::leave_time(self.core(), file.ino);
        let (mut data, mut at) = (data, offset);
        while !data.is_empty() {
            let part = data.split_to(data.len().min(DATA_BYTES as usize));
            let length = part.len() as u64;
            file.write(at, part).await?;
            at += length;
        }
        Ok(())
    }

    /// As [`writing_now::write_now`].
    ///
    /// # Errors
    /// As there.
    pub fn write_now(
        &self,
        handle: u64,
        offset: u64,
        data: &[u8],
    ) -> Option<Result<Written, Fault>> {
        if handle & REMOTE != 0 {
            return None;
        }
        self.note_write(handle);
        writing_now::write_now(&self.files.open_files, handle, offset, data)
    }

    /// As [`open_files::OpenFiles::flush`]; who is not the last to close a file that several have
    /// open for writing publishes nothing.
    ///
    /// # Errors
    /// As there; those of the owner.
    pub async fn flush(&self, handle: u64, process: u32) -> Result<(), Fault> {
        if let Some(file) = self.remote(handle) {
            let file = file?;
            let is_own = [0, file.mode.process].contains(&process);
            if !is_own || !file.mode.writes {
                return Ok(());
            }
            return self.call_there(&file, Call::Flush).await;
        }
        let may_publish = self.others.job.is_none() || self.owned.is_last_done(handle, process);
        if may_publish {
            self.files.open_files.flush(handle, process).await?;
        }
        Ok(())
    }

    async fn call_there(&self, file: &RemoteFile, call: Call) -> Result<(), Fault> {
        let seen = file.do_call(call).await?;
        self.others.learn(file.ino, &seen);
        Ok(())
    }

    /// As [`open_files::OpenFiles::publish`].
    ///
    /// # Errors
    /// As there; those of the owner.
    pub async fn publish(&self, handle: u64) -> Result<(), Fault> {
        match self.remote(handle) {
            Some(file) => self.call_there(&*file?, Call::Sync).await,
            None => self.files.open_files.publish(handle).await,
        }
    }

    /// Makes a file `size` bytes long, at truncate(2) and, with a handle, at ftruncate(2).
    ///
    /// # Errors
    /// As [`open_files::OpenFiles::resize`]; those of the owner.
    pub async fn resize(&self, ino: u64, handle: Option<u64>, size: u64) -> Result<(), Fault> {
        let Some(handle) = handle else {
            if self.others.job.is_none() {
                return self.files.open_files.resize(ino, size).await;
            }
            let mode = Mode {
                truncates: size == 0,
                ..Mode::WRITES
            };
            let opened = self.open(ino, mode).await?.opened;
            let resized = Box::pin(self.resize(ino, Some(opened.handle), size)).await;
            let closed = self.close(opened.handle).await;
            return resized.and(closed);
        };
        match self.remote(handle) {
            Some(file) => self.call_there(&*file?, Call::Resize(size)).await,
            None => {
                self.note_write(handle);
                open_files::resize_open(&self.files.open_files, handle, size).await
            }
        }
    }

    /// As [`open_files::OpenFiles::close`].
    ///
    /// # Errors
    /// As there; those of the owner.
    pub async fn close(&self, handle: u64) -> Result<(), Fault> {
        if handle & REMOTE == 0 {
            return self.close_here(handle).await;
        }
        let Some(file) = self.remote.remove(handle & !REMOTE) else {
            return Ok(());
        };
        self.call_there(&file, Call::Close).await
    }

    /// Closes a file whose program heard that it is broken. What it wrote to a file that several
    /// nodes write, the others saw at once, so it stays; without a job it is not published.
    pub async fn close_broken(&self, handle: u64) {
        if self.others.job.is_none() {
            open_files::close_broken(&self.files.open_files, handle).await;
        } else if let Err(fault) = self.close(handle).await {
            self.core().tell(&format!(
                "a file whose locks were lost was not published: {fault}"
            ));
        }
    }

    /// The last of all who write a file publishes it.
    pub(crate) async fn close_here(&self, handle: u64) -> Result<(), Fault> {
        let others = self.owned.remove_writer(handle);
        let publishes_at_close = self.core().settings.writes.publish == Publish::Close;
        if others == Some(true) && publishes_at_close {
            close_unpublished(&self.files.open_files, handle).await;
            return Ok(());
        }
        self.files.open_files.close(handle).await
    }
}
