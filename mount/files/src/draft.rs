// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A file that is being written. Nobody else sees what is written before it is published, whole, at
//! close(2) or fsync(2); then under the condition that the object is still the one that was opened.
//!
//! What is written in order leaves in parts of an upload while the writer goes on. The last bytes
//! stay here, and may be written again in any order: all bytes of a small file. Of a large file
//! that is appended to, the store itself copies what was there. [`crate::open_files`] calls it.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use bytes::{Bytes, BytesMut};
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use weft_store::{Condition, ETag, Failure, ObjectInfo, Part, Range, StoreError, Upload};

use crate::core::Core;
use crate::fault::{Fault, Reason, mount_ends};
use crate::names::Listed;
use crate::part_copies::PartCopies;

/// Chosen: parts of an upload, and what is kept here.
pub const PART_BYTES: u64 = 8 << 20;
/// S3's largest copy of one part.
const COPY_BYTES: u64 = 4 << 30;
/// Chosen: parts of one file under way; the writer waits beyond that.
const PARTS_UNDER_WAY: usize = 16;
/// Chosen: a file up to this size is held here whole once it is written out of order.
const STAGED_BYTES: u64 = 64 << 20;
/// Chosen: after so many parts their size doubles, so that 10,000 parts are enough for 2 TB.
const PARTS_OF_A_SIZE: u32 = 1000;

/// What is there before the first write.
pub struct Origin {
    /// The object whose beginning is taken over.
    pub etag: Option<ETag>,
    /// How much of it the store shall copy; the rest is in `held`.
    pub copied_bytes: u64,
    /// Bytes behind those.
    pub held: BytesMut,
    /// Whether the object may be published though nothing is written: it is new, or shorter.
    pub is_changed: bool,
    /// What must still be so when it is published.
    pub when: Condition,
}

/// A file that is being written.
pub struct Draft {
    core: Arc<Core>,
    ino: u64,
    state: Mutex<State>,
}

struct State {
    origin: Origin,
    /// What lies before `origin.held`: sent, or to be copied.
    before_bytes: u64,
    upload: Option<Running>,
    /// All of it is here, and stays until it is published.
    is_staged: bool,
    /// Something was written since it was opened or published last.
    is_written: bool,
    is_unlinked: bool,
    failed: Option<Fault>,
}

struct Running {
    upload: Upload,
    parts: Vec<Part>,
    sending: JoinSet<Result<Part, StoreError>>,
    next_number: u32,
}

/// Where the bytes of a read are.
pub enum Place {
    /// Here.
    Here(Bytes),
    /// In the object, which is published.
    Published,
}

impl Draft {
    /// Of a node.
    pub fn new(core: Arc<Core>, ino: u64, origin: Origin) -> Self {
        let before_bytes = origin.copied_bytes;
        Self {
            core,
            ino,
            state: Mutex::new(State {
                origin,
                before_bytes,
                upload: None,
                is_staged: false,
                is_written: false,
                is_unlinked: false,
                failed: None,
            }),
        }
    }

    /// Writes `data` at `offset`, or at the end.
    ///
    /// # Errors
    /// `Unsupported` for what was sent already; what the store said to parts that were sent.
    pub async fn write(&self, offset: Option<u64>, data: &[u8]) -> Result<(), Fault> {
        let mut state = self.state.lock().await;
        state.check()?;
        let offset = offset.unwrap_or(state.size());
        if offset < state.before_bytes {
            state.stage(&self.core, self.ino).await?;
        }
        let at = offset - state.before_bytes;
        state.fill(&self.core, self.ino, at).await?;
        let at = (offset - state.before_bytes) as usize;
        let held = &mut state.origin.held;
        let over = held.len().saturating_sub(at).min(data.len());
        held[at..at + over].copy_from_slice(&data[..over]);
        held.extend_from_slice(&data[over..]);
        state.origin.is_changed = true;
        state.is_written = true;
        state.send_full(&self.core, self.ino).await?;
        self.show(state.size());
        Ok(())
    }

    /// Makes the file `size` bytes long.
    ///
    /// # Errors
    /// As [`Draft::write`].
    pub async fn resize(&self, size: u64) -> Result<(), Fault> {
        let mut state = self.state.lock().await;
        state.check()?;
        if size == state.size() {
            return Ok(());
        }
        if size == 0 {
            state.drop_upload(&self.core);
            state.origin.held.clear();
            state.origin.copied_bytes = 0;
            state.before_bytes = 0;
        } else if size < state.before_bytes {
            state.stage(&self.core, self.ino).await?;
        }
        let held = size - state.before_bytes;
        if held < state.origin.held.len() as u64 {
            state.origin.held.truncate(held as usize);
        } else {
            state.fill(&self.core, self.ino, held).await?;
        }
        state.origin.is_changed = true;
        state.is_written |= size > 0;
        self.show(state.size());
        Ok(())
    }

    /// Publishes at close(2), if something was written. A shell opens a file with O_TRUNC and
    /// closes a copy of the descriptor before the program writes: that publishes nothing yet.
    ///
    /// # Errors
    /// Those of [`Draft::publish`].
    pub async fn flush(&self) -> Result<(), Fault> {
        let is_written = {
            let state = self.state.lock().await;
            state.check()?;
            state.is_written
        };
        if is_written {
            self.publish().await?;
        }
        Ok(())
    }

    /// The bytes of a read; what was sent is published first, and read from there.
    ///
    /// # Errors
    /// Those of publishing.
    pub async fn read(&self, offset: u64, size: u64) -> Result<Place, Fault> {
        let state = self.state.lock().await;
        let end = offset.saturating_add(size).min(state.size());
        if offset >= end {
            return Ok(Place::Here(Bytes::new()));
        }
        if offset >= state.before_bytes {
            let at = |place: u64| (place - state.before_bytes) as usize;
            let bytes = &state.origin.held[at(offset)..at(end)];
            return Ok(Place::Here(Bytes::copy_from_slice(bytes)));
        }
        drop(state);
        self.publish().await?;
        Ok(Place::Published)
    }

    /// Makes what was written the object. Nothing is done if nothing was written.
    ///
    /// # Errors
    /// `Stale` where somebody else wrote the object meanwhile; what the store said.
    pub async fn publish(&self) -> Result<(), Fault> {
        let mut state = self.state.lock().await;
        state.check()?;
        if !state.origin.is_changed || state.is_unlinked {
            return Ok(());
        }
        let key = self.core.key(self.ino)?;
        let published = state.publish(&self.core, self.ino, &key).await;
        let etag = published.map_err(|fault| state.fail(&self.core, fault))?;
        state.origin.is_changed = false;
        state.is_written = false;
        state.origin.when = Condition::IfMatch(etag.clone());
        state.origin.etag = Some(etag.clone());
        let info = ObjectInfo {
            size_bytes: state.size(),
            etag,
            modified: SystemTime::now(),
            is_archived: false,
        };
        note_published(&self.core, self.ino, &info);
        Ok(())
    }

    /// The object was renamed, and has this content now.
    pub async fn renamed(&self, etag: ETag) {
        let mut state = self.state.lock().await;
        state.origin.when = Condition::IfMatch(etag.clone());
        state.origin.etag = Some(etag);
    }

    /// The name is gone: nothing is published any more.
    pub async fn unlink(&self) {
        let mut state = self.state.lock().await;
        state.is_unlinked = true;
        state.drop_upload(&self.core);
    }

    /// Nobody writes any more: parts that were not published are given up.
    pub async fn end(&self) {
        self.state.lock().await.drop_upload(&self.core);
    }

    fn show(&self, size_bytes: u64) {
        if let Some(file) = self.core.nodes().file(self.ino) {
            file.info.size_bytes = size_bytes;
            file.info.modified = SystemTime::now();
            file.at = Instant::now();
        }
    }
}

impl State {
    fn size(&self) -> u64 {
        self.before_bytes + self.origin.held.len() as u64
    }

    /// A file of which something was lost stays broken until it is closed.
    fn check(&self) -> Result<(), Fault> {
        match &self.failed {
            Some(fault) => Err(Fault::from(fault.reason)),
            None => Ok(()),
        }
    }

    fn fail(&mut self, core: &Core, fault: Fault) -> Fault {
        self.failed = Some(fault.clone());
        self.drop_upload(core);
        fault
    }

    fn drop_upload(&mut self, core: &Core) {
        if let Some(mut running) = self.upload.take() {
            running.sending.abort_all();
            let store = Arc::clone(&core.store);
            // Whoever lists uploads of the bucket finds those that this does not reach.
            core.runtime
                .spawn(async move { store.abort(&running.upload).await });
        }
    }

    /// Has all of the file here, so that it can be written in any order.
    async fn stage(&mut self, core: &Core, ino: u64) -> Result<(), Fault> {
        let key = core.key(ino)?;
        let etag = self.origin.etag.clone();
        let etag = etag.filter(|_| self.upload.is_none() && self.size() <= STAGED_BYTES);
        let Some(etag) = etag else {
            let text = format!(
                "write of `{key}` before {}: that was sent already, or the file is larger than \
                 {STAGED_BYTES} bytes. Write it in order, or elsewhere and copy it",
                self.before_bytes
            );
            return Err(Fault::because(Reason::Unsupported, text));
        };
        let mut whole = BytesMut::with_capacity(self.size() as usize);
        while (whole.len() as u64) < self.before_bytes {
            let start = whole.len() as u64;
            let range = Range::new(start, self.before_bytes.min(start + PART_BYTES));
            whole.extend_from_slice(&core.store.get(&key, range, &etag).await?);
        }
        whole.extend_from_slice(&self.origin.held);
        self.origin.held = whole;
        self.origin.copied_bytes = 0;
        self.before_bytes = 0;
        self.is_staged = true;
        Ok(())
    }

    /// Zeros up to `at` behind what is here.
    async fn fill(&mut self, core: &Core, ino: u64, at: u64) -> Result<(), Fault> {
        let goal = self.before_bytes + at;
        while self.size() < goal {
            let more = (goal - self.size()).min(PART_BYTES) as usize;
            let length = self.origin.held.len();
            self.origin.held.resize(length + more, 0);
            self.send_full(core, ino).await?;
        }
        Ok(())
    }

    /// Sends what is here, as long as it is more than a part.
    async fn send_full(&mut self, core: &Core, ino: u64) -> Result<(), Fault> {
        self.is_staged &= self.size() <= STAGED_BYTES;
        if self.is_staged {
            return Ok(());
        }
        loop {
            let number = self
                .upload
                .as_ref()
                .map_or(1, |running| running.next_number);
            let part = PART_BYTES << (number / PARTS_OF_A_SIZE).min(6);
            if (self.origin.held.len() as u64) <= part {
                return Ok(());
            }
            let body = self.origin.held.split_to(part as usize).freeze();
            let key = core.key(ino)?;
            if let Err(error) = self.send(core, &key, body).await {
                return Err(self.fail(core, error.into()));
            }
        }
    }

    /// Sends one part beside those under way, and waits while there are many.
    async fn send(&mut self, core: &Core, key: &str, body: Bytes) -> Result<(), StoreError> {
        self.begin(core, key).await?;
        self.before_bytes += body.len() as u64;
        let running = self.upload.as_mut().expect("it was begun");
        while running.sending.len() >= PARTS_UNDER_WAY {
            running.take_one().await?;
        }
        let (store, upload) = (Arc::clone(&core.store), running.upload.clone());
        let number = running.next_number;
        running.next_number += 1;
        let send = async move { store.send(&upload, number, body).await };
        running.sending.spawn_on(send, &core.runtime);
        Ok(())
    }

    /// Begins the upload, with what the store copies.
    async fn begin(&mut self, core: &Core, key: &str) -> Result<(), StoreError> {
        if self.upload.is_some() {
            return Ok(());
        }
        let mut running = Running {
            upload: core.store.begin(key).await?,
            parts: Vec::new(),
            sending: JoinSet::new(),
            next_number: 1,
        };
        let copied = copy_whole(core, &mut running, key, self).await;
        self.upload = Some(running);
        copied
    }

    async fn publish(&mut self, core: &Core, ino: u64, key: &str) -> Result<ETag, Fault> {
        let when = self.origin.when.clone();
        if self.upload.is_none() && self.before_bytes == 0 {
            let body = Bytes::copy_from_slice(&self.origin.held);
            return Ok(match core.store.put(key, body.clone(), &when).await {
                Err(error) if error.failure == Failure::Unsupported => {
                    core.store.put(key, body, &Condition::Always).await?
                }
                put => put?,
            });
        }
        self.begin(core, key).await?;
        self.send_full(core, ino).await?;
        if !self.origin.held.is_empty() {
            let rest = self.origin.held.split().freeze();
            self.send(core, key, rest).await?;
        }
        let size = self.size();
        let running = self.upload.as_mut().expect("it was begun");
        while !running.sending.is_empty() {
            running.take_one().await?;
        }
        running.parts.sort_by_key(|part| part.number);
        let (upload, parts) = (&running.upload, &running.parts);
        let etag = match core.store.complete(upload, parts, &when).await {
            Err(error) if error.failure == Failure::Unsupported => {
                core.store
                    .complete(upload, parts, &Condition::Always)
                    .await?
            }
            completed => completed?,
        };
        self.upload = None;
        self.origin.copied_bytes = size;
        self.before_bytes = size;
        Ok(etag)
    }
}

/// What is taken over of the object that was opened becomes parts, without passing through here.
async fn copy_whole(
    core: &Core,
    running: &mut Running,
    key: &str,
    state: &State,
) -> Result<(), StoreError> {
    let Some(etag) = &state.origin.etag else {
        return Ok(());
    };
    let copy = PartCopies {
        store: &*core.store,
        upload: &running.upload,
        source: (key, etag),
        most_bytes: COPY_BYTES,
    };
    running.parts = copy.of(state.origin.copied_bytes).await?;
    running.next_number = running.parts.len() as u32 + 1;
    Ok(())
}

impl Running {
    async fn take_one(&mut self) -> Result<(), StoreError> {
        match self.sending.join_next().await {
            Some(Ok(sent)) => self.parts.push(sent?),
            Some(Err(_)) => return Err(mount_ends("UploadPart", &self.upload.key)),
            None => {}
        }
        Ok(())
    }
}

/// An object was written by this mount: what is known of it.
fn note_published(core: &Core, ino: u64, info: &ObjectInfo) {
    let at = Instant::now();
    let mut nodes = core.nodes();
    let Some(node) = nodes.get(ino) else {
        return;
    };
    let (parent, name) = (node.parent, node.name.clone());
    if let Some(file) = nodes.file(ino) {
        file.info = info.clone();
        file.at = at;
        file.is_written_here = true;
        // The kernel has the pages that were written through it.
        file.pages_of = Some(info.etag.clone());
    }
    if let Some(folder) = nodes.folder(parent) {
        folder.own.remove(&name);
    }
    drop(nodes);
    core.learn(parent, &name, at, Some(Listed::File(info.clone())));
}
