// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Open files: open, create, read, write, flush, release. [`crate::bucket_files`] holds them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use weft_store::{Condition, ETag, Failure, ObjectInfo, Range, StoreError};

use crate::attribute_calls;
use crate::attributes::{Entry, Making};
use crate::changes::Name;
use crate::core::{Core, Publish};
use crate::draft::{Draft, Origin};
use crate::drafts::Drafts;
use crate::fault::{Fault, Reason};
use crate::handles::Open;
use crate::hidden::Hidden;
use crate::job::Job;
use crate::mode::Mode;
use crate::names::{self, Listed};
use crate::pieces::Pieces;
use crate::reader::Reader;
use crate::search;
use crate::sources::Disk;
use crate::version::Version;

/// Chosen: a name that is opened was looked up the moment before, also where nothing is believed
/// for any time.
const SAME_MOMENT: Duration = Duration::from_millis(100);

/// A file that is open.
pub(crate) struct OpenFile {
    /// The node's number.
    pub(crate) ino: u64,
    reader: Mutex<Arc<Reader>>,
    /// Of who may write.
    pub(crate) draft: Option<Arc<Draft>>,
    pub(crate) mode: Mode,
}

impl OpenFile {
    /// Whether it only reads, and reads what anybody writes meanwhile.
    fn reads_drafts(&self) -> bool {
        self.draft.is_none() && !self.mode.is_pinned
    }

    /// The content with the tag `old` lies elsewhere now.
    pub(crate) fn read_of(&self, version: &Arc<Version>, old: Option<&ETag>) {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        if old.is_some_and(|old| old == reader.etag()) {
            *reader = Arc::new(Reader::new(Arc::clone(version)));
        }
    }

    /// This content is read from now on.
    fn read_only_of(&self, version: &Arc<Version>) {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        if version.etag != *reader.etag() {
            *reader = Arc::new(Reader::new(Arc::clone(version)));
        }
    }
}

/// The open files of a mount.
pub struct OpenFiles {
    pub(crate) core: Arc<Core>,
    pub(crate) open: Open<OpenFile>,
    pieces: Pieces,
    /// Files that are being written, or wait to be published.
    pub(crate) drafts: Arc<Drafts>,
    /// Files that are open, and whose names are gone.
    pub(crate) hidden: Hidden,
}

/// A file was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened {
    /// For the calls that follow.
    pub handle: u64,
    /// The content is the one whose pages the kernel may hold.
    pub keeps_pages: bool,
}

/// A place in an open file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Of the file.
    pub handle: u64,
    /// In bytes.
    pub offset: u64,
}

impl OpenFiles {
    /// None yet.
    pub fn new(core: Arc<Core>) -> Self {
        let (store, runtime) = (Arc::clone(&core.store), core.runtime.clone());
        let pieces = Pieces::new(store, runtime, core.settings.cache_bytes);
        Self {
            drafts: Arc::new(Drafts::new(Arc::clone(&core))),
            hidden: Hidden::new(Arc::clone(&core)),
            core,
            open: Open::default(),
            pieces,
        }
    }

    /// Looks on a disk before it asks the store.
    pub fn with_disk(mut self, disk: Disk) -> Self {
        self.pieces = self.pieces.with_disk(disk);
        self
    }

    /// Asks the owners in a job before it asks the store.
    pub fn with_job(mut self, job: Arc<Job>) -> Self {
        self.pieces = self.pieces.with_job(job);
        self
    }

    /// Bytes that another node of the job asks for. It asks for all of `whole` at once, in several
    /// questions: the first of them has it fetched by one request.
    ///
    /// # Errors
    /// What the store said.
    pub async fn owned(
        &self,
        version: Version,
        range: Range,
        whole: Range,
    ) -> Result<Bytes, StoreError> {
        let version = Arc::new(version);
        // Where much is under way already, each question fetches for itself.
        self.pieces.fetch_ahead(&version, whole);
        let read = self.pieces.read(&version, range).await;
        read.map(|(bytes, _)| bytes)
    }

    /// Of a file that is being written.
    pub(crate) fn draft(&self, ino: u64) -> Option<Arc<Draft>> {
        self.drafts.get(ino)
    }

    /// The nodes of all files that are open, or wait to be published.
    pub(crate) fn inos(&self) -> Vec<u64> {
        let open = self.open.all().into_iter().map(|file| file.ino);
        open.chain(self.drafts.inos()).collect()
    }

    /// Opens a file: the content that the store has now, or had within the time to live. Later
    /// changes of the object by others are not read through this handle.
    ///
    /// # Errors
    /// `NotFound`, `IsFolder`, and `Denied` for what lies in an archive.
    pub async fn open(&self, ino: u64, mode: Mode) -> Result<Opened, Fault> {
        let ttl = self.core.settings.ttl.max(SAME_MOMENT);
        search::freshen(&self.core, ino, ttl).await?;
        let version = Arc::new(self.version(ino)?);
        // Before this writer counts: only who wrote before has pages that the store has not.
        let keeps_pages = !mode.truncates && {
            let mut nodes = self.core.nodes();
            let file = nodes.file(ino);
            file.is_some_and(|file| file.take_pages(&version.etag))
        };
        let draft = if mode.writes || mode.truncates {
            Some(self.write_to(ino, &version, mode.truncates))
        } else {
            None
        };
        if let Some(draft) = draft.as_ref().filter(|_| mode.truncates)
            && let Err(fault) = draft.resize(0).await
        {
            // The writer that began above is none.
            self.drafts.release(ino, false, true).await;
            return Err(fault);
        }
        let file = OpenFile {
            ino,
            reader: Mutex::new(Arc::new(Reader::new(version))),
            draft,
            mode,
        };
        if file.reads_drafts() {
            self.drafts.add_reader(ino);
        }
        Ok(Opened {
            handle: self.open.add(file),
            keeps_pages,
        })
    }

    /// The content of a file now.
    pub(crate) fn version(&self, ino: u64) -> Result<Version, Fault> {
        let key = self.core.key(ino)?;
        let mut nodes = self.core.nodes();
        let Some(file) = nodes.file(ino) else {
            return Err(Reason::IsFolder.into());
        };
        if file.info.is_archived {
            let text = format!("`{key}` lies in an archive; restore it, then open it again");
            return Err(Fault::because(Reason::Denied, text));
        }
        Ok(Version::new(key, &file.info))
    }

    /// The draft of a file, made where nobody writes it yet.
    fn write_to(&self, ino: u64, version: &Arc<Version>, is_truncated: bool) -> Arc<Draft> {
        if let Some(draft) = self.drafts.share(ino) {
            return draft;
        }
        let origin = Origin {
            version: (!is_truncated).then(|| Arc::clone(version)),
            is_changed: is_truncated,
            when: Condition::IfMatch(version.etag.clone()),
        };
        self.drafts.begin(ino, &origin)
    }

    /// Makes a file and opens it for writing. The store has nothing of it before it is published.
    ///
    /// # Errors
    /// `Exists`; those of [`OpenFiles::open`].
    pub async fn create(
        &self,
        new: Name<'_>,
        mode: Mode,
        making: &Making,
    ) -> Result<(Entry, Opened), Fault> {
        names::check(new.name)?;
        match search::find(&self.core, new.parent, new.name).await? {
            Some((Listed::Folder, _)) => return Err(Reason::IsFolder.into()),
            Some((Listed::Special(_), _)) => return Err(Reason::Exists.into()),
            Some((listed, at)) => {
                let entry = self.core.enter(new.parent, new.name, &listed, at);
                let opened = self.open(entry.attributes.ino, mode).await?;
                return Ok((entry, opened));
            }
            None => {}
        }
        names::check_key(&format!("{}{}", self.core.key(new.parent)?, new.name))?;
        let at = Instant::now();
        let listed = Listed::File(ObjectInfo {
            size_bytes: 0,
            etag: ETag::new(""),
            modified: SystemTime::now(),
            is_archived: false,
        });
        if let Some(folder) = self.core.nodes().folder(new.parent) {
            folder.own.insert(new.name.into(), listed.clone());
        }
        attribute_calls::made(&self.core, new, making, None);
        let entry = self.core.enter(new.parent, new.name, &listed, at);
        let ino = entry.attributes.ino;
        let origin = Origin {
            version: None,
            is_changed: true,
            when: Condition::IfAbsent,
        };
        let draft = self.drafts.begin(ino, &origin);
        let version = Arc::new(self.version(ino)?);
        let handle = self.open.add(OpenFile {
            ino,
            reader: Mutex::new(Arc::new(Reader::new(version))),
            draft: Some(draft),
            mode,
        });
        let opened = Opened {
            handle,
            keeps_pages: true,
        };
        Ok((entry, opened))
    }

    /// Up to `size` bytes from `offset` on; fewer only at the end of the file.
    ///
    /// # Errors
    /// `Stale` where the object is another one since it was opened.
    pub async fn read(&self, handle: u64, offset: u64, size: u64) -> Result<Bytes, Fault> {
        let file = self.open.get(handle)?;
        if let Some(draft) = self.draft(file.ino).filter(|_| !file.mode.is_pinned) {
            return draft.read(&self.pieces, offset, size).await;
        }
        let reader = self.reader(&file)?;
        let read = reader.read(&self.pieces, offset, size).await;
        read.map_err(|error| match error.failure {
            Failure::Missing | Failure::Changed => Fault::because(Reason::Stale, error.to_string()),
            _ => error.into(),
        })
    }

    /// The same where nothing must be waited for: the bytes are here, and nobody writes the file.
    pub fn read_now(&self, handle: u64, offset: u64, size: u64) -> Option<Bytes> {
        let file = self.open.get(handle).ok()?;
        if !file.mode.is_pinned && self.draft(file.ino).is_some() {
            return None;
        }
        let reader = self.reader(&file).ok()?;
        reader.read_now(&self.pieces, offset, size)
    }

    /// The reader of a handle. What this mount published itself is read on, by all who have the
    /// file open.
    pub(crate) fn reader(&self, file: &OpenFile) -> Result<Arc<Reader>, Fault> {
        let mut reader = file.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let was_written_here = !file.mode.is_pinned && {
            let mut nodes = self.core.nodes();
            let node = nodes.file(file.ino);
            node.is_some_and(|node| {
                node.is_written_here && !node.is_gone && node.info.etag != *reader.etag()
            })
        };
        if was_written_here {
            *reader = Arc::new(Reader::new(Arc::new(self.version(file.ino)?)));
        }
        Ok(Arc::clone(&reader))
    }

    /// Writes `data` at `offset`, or at the end of a file that is opened for appending.
    ///
    /// # Errors
    /// `NotOpen` for files that are opened for reading; those of the draft.
    pub async fn write(&self, handle: u64, offset: u64, data: Bytes) -> Result<(), Fault> {
        let file = self.open.get(handle)?;
        let draft = file.draft.as_ref().ok_or(Reason::NotOpen)?;
        let offset = (!file.mode.appends).then_some(offset);
        draft.write(offset, data).await
    }

    /// Publishes what was written, at close(2) by `process`. Another process than the one that
    /// opened the file closes a descriptor that it inherited, and publishes nothing.
    ///
    /// # Errors
    /// What kept it from being published.
    pub async fn flush(&self, handle: u64, process: u32) -> Result<(), Fault> {
        let file = self.open.get(handle)?;
        let Some(draft) = &file.draft else {
            return Ok(());
        };
        if self.core.settings.writes.publish != Publish::Close
            || ![0, file.mode.process].contains(&process)
        {
            return Ok(());
        }
        told(draft, draft.flush().await).await
    }

    /// Publishes the file as it is, at fsync(2).
    ///
    /// # Errors
    /// What kept it from being published.
    pub async fn publish(&self, handle: u64) -> Result<(), Fault> {
        let file = self.open.get(handle)?;
        let Some(draft) = &file.draft else {
            return Ok(());
        };
        let done = match self.core.settings.writes.publish {
            Publish::Async => draft.sync().await,
            Publish::Close | Publish::Fsync => draft.publish().await,
        };
        told(draft, done).await
    }

    /// Makes a file `size` bytes long, whoever has it open, at truncate(2). Who closes it meanwhile
    /// publishes what was there before; so this is one writer more, and publishes, too.
    ///
    /// # Errors
    /// Those of the draft, and of publishing.
    pub async fn resize(&self, ino: u64, size: u64) -> Result<(), Fault> {
        let mode = Mode {
            truncates: size == 0,
            ..Mode::WRITES
        };
        let opened = self.open(ino, mode).await?;
        let resized = match &self.open.get(opened.handle)?.draft {
            Some(draft) => draft.resize(size).await,
            None => Ok(()),
        };
        let closed = self.close(opened.handle).await;
        resized.and(closed)
    }

    /// Closes a file. What was not published is published.
    ///
    /// # Errors
    /// Those of publishing, which nobody hears but the log.
    pub async fn close(&self, handle: u64) -> Result<(), Fault> {
        let Some(file) = self.open.remove(handle) else {
            return Ok(());
        };
        let closed = self.close_draft(&file).await;
        if !self.open.all().iter().any(|other| other.ino == file.ino) {
            self.hidden.closed(file.ino).await;
        }
        closed
    }

    async fn close_draft(&self, file: &OpenFile) -> Result<(), Fault> {
        let Some(draft) = &file.draft else {
            release(self, file, true).await;
            return Ok(());
        };
        if self.core.settings.writes.publish == Publish::Close {
            let published = draft.publish().await;
            release(self, file, published.is_ok()).await;
            return published;
        }
        // What the log here does not take must be heard of.
        let noted = draft.wait_closed().await;
        self.drafts.release(file.ino, true, true).await;
        noted
    }

    /// Waits until all is closed and published, at the end of the mount. What the kernel never
    /// closes is waited for no longer than `limit`.
    pub async fn settle_all(&self, limit: Duration) {
        self.drafts.settle_all(limit).await;
    }
}

/// A file that was closed needs no draft any more, and leaves nothing to be published.
async fn release(files: &OpenFiles, file: &OpenFile, was_published: bool) {
    if file.draft.is_some() {
        let drafts = &files.drafts;
        drafts.release(file.ino, false, was_published).await;
    } else if file.reads_drafts() {
        files.drafts.release_reader(file.ino).await;
    }
}

/// Closes a file by which nothing may be published any more: a program heard that it is broken.
/// What others who have it open wrote to the same draft is theirs to publish.
pub async fn close_broken(files: &OpenFiles, handle: u64) {
    let Some(file) = files.open.remove(handle) else {
        return;
    };
    if let Some(draft) = &file.draft {
        draft.told().await;
    }
    release(files, &file, false).await;
    if !files.open.all().iter().any(|other| other.ino == file.ino) {
        files.hidden.closed(file.ino).await;
    }
}

/// Whoever has a file open reads this content from now on.
pub(crate) fn read_all_of(files: &OpenFiles, ino: u64, version: &Arc<Version>) {
    let all = files.open.all().into_iter();
    for file in all.filter(|file| file.ino == ino) {
        file.read_only_of(version);
    }
}

/// Makes an open file `size` bytes long, at ftruncate(2).
///
/// # Errors
/// `NotOpen` for files that are opened for reading; those of the draft.
pub async fn resize_open(files: &OpenFiles, handle: u64, size: u64) -> Result<(), Fault> {
    let file = files.open.get(handle)?;
    let draft = file.draft.as_ref().ok_or(Reason::NotOpen)?;
    draft.resize(size).await
}

/// Closes a file of which others publish what was written.
pub(crate) async fn close_unpublished(files: &OpenFiles, handle: u64) {
    let Some(file) = files.open.remove(handle) else {
        return;
    };
    release(files, &file, true).await;
}

/// A program hears of an outcome.
async fn told(draft: &Draft, outcome: Result<(), Fault>) -> Result<(), Fault> {
    if outcome.is_err() {
        draft.told().await;
    }
    outcome
}
