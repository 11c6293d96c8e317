// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A draft: a file that is being written. Nobody else sees its bytes until the whole file is
//! published, at close(2) or fsync(2). It is published only if the object is still the one that was
//! opened.
//!
//! All written bytes lie in a log on this host ([`crate::staging`]). They may be written in any
//! order, and again. If they are written in order, parts are uploaded while the program still
//! writes. [`crate::drafts`] has the table of drafts, [`crate::open_files`] calls them.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{Mutex, MutexGuard};
use weft_store::{Condition, ETag, Range};

use crate::core::Core;
use crate::draft_node::DraftNode;
use crate::draft_reads::DraftReads;
use crate::draft_state::State;
use crate::fault::Fault;
use crate::pieces::Pieces;
use crate::staging::content::{Content, begin_anew};
use crate::staging::extents::Source;
use crate::staging::publication::Publication;
use crate::staging::record::{Note, When};
use crate::version::Version;

/// What is there before the first write.
pub struct Origin {
    /// The object that was opened, unless it is cut to nothing.
    pub version: Option<Arc<Version>>,
    /// Whether the file may be published though nothing is written: it is new, or shorter.
    pub is_changed: bool,
    /// What must still be so when it is published.
    pub when: Condition,
}

/// What became of bytes that were written without waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// All is done.
    Done,
    /// They are staged, and a part is whole: [`Draft::send_ready`] remains, which may wait.
    MustSend,
}

/// A file that is being written.
pub struct Draft {
    node: DraftNode,
    state: Mutex<State>,
    reads: DraftReads,
}

impl Draft {
    /// Of a node.
    pub fn new(core: Arc<Core>, ino: u64, origin: &Origin) -> Self {
        let when = When::of(&origin.when);
        let content = Content::new(&core.stage, origin.version.as_ref(), when);
        Self {
            node: DraftNode::new(core, ino),
            state: Mutex::new(State::new(content, origin.is_changed)),
            reads: DraftReads::default(),
        }
    }

    async fn state(&self) -> Result<MutexGuard<'_, State>, Fault> {
        let state = self.state.lock().await;
        match &state.failed {
            // A file of which something was lost stays broken until it is closed.
            Some(fault) => Err(Fault::from(fault.reason)),
            None => Ok(state),
        }
    }

    /// Writes `data` at `offset`, or at the end.
    ///
    /// # Errors
    /// `NoSpace` before anything is taken; `TooLarge`.
    pub async fn write(self: &Arc<Self>, offset: Option<u64>, data: Bytes) -> Result<(), Fault> {
        if self.node.must_wait_renamed() {
            self.node.wait_renamed().await;
        }
        let mut state = self.state().await?;
        if data.is_empty() {
            return Ok(());
        }
        let key = self.node.key()?;
        state.write(self.node.ways(), &key, offset, &data)?;
        drop(data);
        self.node.show(state.file.content.size());
        send(self, &mut state, &key).await
    }

    /// The same, without waiting for anything but the disk, and only while it takes `data`: `None`
    /// where somebody else is at the file or more is to be done, and then nothing is done.
    ///
    /// # Errors
    /// As [`Draft::write`].
    pub fn write_now(&self, offset: Option<u64>, data: &[u8]) -> Option<Result<Written, Fault>> {
        let mut state = self.state.try_lock().ok()?;
        if let Some(fault) = &state.failed {
            return Some(Err(Fault::from(fault.reason)));
        }
        if data.is_empty() {
            return Some(Ok(Written::Done));
        }
        let must_wait = state.file.content.must_wait(data.len() as u64);
        if must_wait || self.node.must_wait_renamed() {
            return None;
        }
        let staged = self.node.key().and_then(|key| {
            state.write(self.node.ways(), &key, offset, data)?;
            self.node.show(state.file.content.size());
            Ok(if state.has_ready() {
                Written::MustSend
            } else {
                Written::Done
            })
        });
        Some(staged)
    }

    /// Sends whole parts of what was written in order.
    ///
    /// # Errors
    /// Those of reading what is sent.
    pub async fn send_ready(self: &Arc<Self>) -> Result<(), Fault> {
        let mut state = self.state().await?;
        let key = self.node.key()?;
        send(self, &mut state, &key).await
    }

    /// Makes the file `size` bytes long.
    ///
    /// # Errors
    /// As [`Draft::write`].
    pub async fn resize(&self, size: u64) -> Result<(), Fault> {
        let mut state = self.state().await?;
        if size == state.file.content.size() {
            // It has another time, though it may be as it was.
            self.node.show(size);
            return Ok(());
        }
        state.file.cut(self.node.ways(), size)?;
        let key = self.node.key()?;
        state.file.content.resize(&key, size)?;
        state.is_in_order &= size == 0;
        if size == 0 {
            state.appended_bytes = 0;
        }
        state.is_changed = true;
        state.is_written |= size > 0;
        self.node.show(size);
        Ok(())
    }

    /// Makes a range that of an object, without its bytes coming here.
    ///
    /// # Errors
    /// As [`Draft::write`].
    pub async fn copy(
        &self,
        offset: u64,
        version: &Arc<Version>,
        from: Range,
    ) -> Result<(), Fault> {
        let mut state = self.state().await?;
        let key = self.node.key()?;
        let range = Range::new(offset, offset.saturating_add(from.byte_count()));
        state.file.touch(self.node.ways(), range)?;
        state.file.content.copy(&key, range, version, from.start)?;
        state.is_in_order = false;
        state.is_changed = true;
        state.is_written = true;
        self.node.show(state.file.content.size());
        Ok(())
    }

    /// Publishes at close(2), if something was written. A shell opens a file with O_TRUNC and
    /// closes a copy of the descriptor before the program writes: that publishes nothing yet.
    ///
    /// # Errors
    /// Those of [`Draft::publish`].
    pub async fn flush(&self) -> Result<(), Fault> {
        let is_written = self.state().await?.is_written;
        if is_written {
            self.publish().await?;
        }
        Ok(())
    }

    /// Up to `size` bytes from `offset` on; fewer only at the end of the file.
    ///
    /// # Errors
    /// Those of the disk and of the store.
    pub async fn read(&self, pieces: &Pieces, offset: u64, size: u64) -> Result<Bytes, Fault> {
        let range = Range::new(offset, offset.saturating_add(size));
        self.reads.read(&self.state, pieces, range).await
    }

    /// Where a range lies, if all of it is in one object: for copies inside the store.
    pub async fn in_one_object(&self, range: Range) -> Option<(Arc<Version>, u64)> {
        let state = self.state.lock().await;
        let stretches = state.file.content.places.stored(range);
        match &stretches[..] {
            [one] => match &one.source {
                Some(Source::Object(version, at)) => Some((Arc::clone(version), *at)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Makes what was written the object. Nothing is done if nothing was written.
    ///
    /// # Errors
    /// `Stale` where somebody else wrote the object meanwhile; what the store said.
    pub async fn publish(&self) -> Result<(), Fault> {
        loop {
            self.node.wait_renamed().await;
            let mut state = self.state().await?;
            if !self.node.is_renaming() {
                return state.publish(&self.node).await;
            }
        }
    }

    /// The same, for who is about to rename it.
    ///
    /// # Errors
    /// Those of [`Draft::publish`].
    pub async fn settle(&self) -> Result<(), Fault> {
        self.state().await?.publish(&self.node).await
    }

    /// Whether the store has nothing of it, and shall have.
    pub async fn is_only_here(&self) -> bool {
        let state = self.state.lock().await;
        let is_absent = state.file.content.when == When::Absent && !state.file.is_unheard();
        is_absent && !state.is_unlinked
    }

    /// The file has another name, which is free: nothing was published yet, so nothing is copied.
    /// False where an upload holds bytes that are not here any more.
    ///
    /// # Errors
    /// What the system said of the log.
    pub async fn rename(&self, key: &str, when: &Condition) -> Result<bool, Fault> {
        let mut state = self.state().await?;
        if !state.file.has_all() {
            return Ok(false);
        }
        state.file.upload.give_up(self.node.ways());
        state.file.content.rename(key, When::of(when))?;
        Ok(true)
    }

    /// An object that it was made of, or which it was itself, lies elsewhere now.
    pub async fn moved(&self, version: &Arc<Version>, old: &ETag, is_renamed: bool) {
        let mut state = self.state.lock().await;
        if is_renamed {
            let when = match &state.file.content.when {
                When::Match(etag) if etag == old.as_str() => {
                    When::Match(version.etag.as_str().to_owned())
                }
                when => when.clone(),
            };
            // Without the note, only the mount after a kill would look at the old name.
            let _ = state.file.content.rename(&version.key, when);
        }
        // Something may be written by now that is not in the object.
        self.node.keep_size(state.file.content.size());
        let places = &mut state.file.content.places;
        places.moved(|one, _| (one.etag == *old).then(|| Arc::clone(version)));
    }

    /// The name is gone: nothing is published any more.
    pub async fn unlink(&self) {
        let mut state = self.state.lock().await;
        state.is_unlinked = true;
        let _ = state.file.content.note(Note::Unlinked);
        if state.file.has_all() {
            state.file.upload.give_up(self.node.ways());
        }
    }

    /// Nobody writes it any more, and it waits to be published: its files are closed.
    ///
    /// # Errors
    /// What the system said of the log.
    pub async fn wait_closed(&self) -> Result<(), Fault> {
        let mut state = self.state().await?;
        state.file.content.note(Note::Whole)?;
        state.file.content.tail.clear();
        if let Some(log) = state.file.content.log() {
            log.sleep();
        }
        Ok(())
    }

    /// Waits until what was written is on the disk here.
    ///
    /// # Errors
    /// What the system said.
    pub async fn sync(&self) -> Result<(), Fault> {
        let mut state = self.state().await?;
        match state.file.content.log() {
            Some(log) => tokio::task::block_in_place(|| log.sync()),
            None => Ok(()),
        }
    }

    /// A program hears that it was not published.
    pub async fn told(&self) {
        self.state.lock().await.is_told = true;
    }

    /// Nobody writes any more: parts that were not published are given up. Where the log is, if
    /// something was not published and nobody heard of it.
    pub async fn end(&self) -> Option<String> {
        let mut state = self.state.lock().await;
        state.file.upload.give_up(self.node.ways());
        if !state.is_changed || state.is_unlinked || state.is_told {
            return None;
        }
        let log = state.file.content.log()?;
        Some(log.keep().with_extension("log").display().to_string())
    }
}

/// What became of a draft when the object was looked at anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rebased {
    /// It is what the object is.
    Clean,
    /// It has something that was not published, and may be.
    Changed,
    /// It has something that was not published, and the object is another one now.
    Conflicts,
    /// Something newer is known of the object.
    Outdated,
}

/// Makes a draft of which all is published what the object is now. `is_newest` says whether that
/// is so still; nothing is published while it is asked.
///
/// # Errors
/// What was wrong with it before.
pub async fn rebase(
    draft: &Draft,
    version: &Arc<Version>,
    is_newest: impl Fn() -> bool,
) -> Result<Rebased, Fault> {
    let mut state = draft.state().await?;
    let content = &state.file.content;
    // Made here by open(2) when another node had made it, but not yet published it.
    let is_fresh = content.when == When::Absent && !state.is_written && content.size() == 0;
    let when = When::Match(version.etag.as_str().to_owned());
    if state.is_unlinked || (state.is_changed && !is_fresh && content.when == when) {
        return Ok(Rebased::Changed);
    }
    if !is_newest() {
        return Ok(Rebased::Outdated);
    }
    if state.is_changed && !is_fresh {
        return Ok(Rebased::Conflicts);
    }
    if content.when != when {
        let ways = draft.node.ways();
        state.file.upload.give_up(ways);
        begin_anew(&mut state.file.content, ways, version, when);
        state.is_changed = false;
        state.is_in_order = true;
        state.appended_bytes = 0;
    }
    Ok(Rebased::Clean)
}

/// Sends whole parts of what was written in order.
async fn send(draft: &Arc<Draft>, state: &mut State, key: &str) -> Result<(), Fault> {
    let ways = draft.node.ways();
    // What would be sent to the old name would be sent in vain.
    if !state.has_ready() || draft.node.is_renaming() {
        return Ok(());
    }
    let Publication {
        content, upload, ..
    } = &mut state.file;
    let Some(begun) = upload.begin(ways, key, content) else {
        return state.send_ready(ways, key).await;
    };
    // The program need not wait, nor write again before the parts leave.
    let draft = Arc::downgrade(draft);
    ways.runtime.spawn(async move {
        let _ = begun.is_here.await;
        if let Some(draft) = draft.upgrade() {
            // What fails is tried again by the next write, or when the file is published.
            let _ = send_begun(&draft, begun.number).await;
        }
    });
    Ok(())
}

/// Sends the parts that waited until their upload began.
async fn send_begun(draft: &Draft, number: u64) -> Result<(), Fault> {
    let mut state = draft.state().await?;
    if !state.file.upload.is_beginning(number) {
        return Ok(());
    }
    let ways = draft.node.ways();
    if state.file.is_small() {
        // It was cut meanwhile.
        state.file.upload.give_up(ways);
        return Ok(());
    }
    let key = draft.node.key()?;
    state.send_ready(ways, &key).await
}
