// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The upload of a staged file. Its parts are sent while the program still writes. A part that was
//! written again is sent again before the upload is completed. [`crate::staging::uploading`]
//! holds one.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::task::JoinSet;
use weft_store::{ETag, Failure, Metadata, Part, Range, Store, StoreError, Upload};

use crate::fault::{Fault, mount_ends};
use crate::staging::content::Content;
use crate::staging::plan::{Aim, LEAST_PART_BYTES, PART_BYTES, Step, part_bytes, plan};
use crate::staging::record::{Note, When};
use crate::staging::tail::Grid;
use crate::staging::ways::Ways;
use crate::version::Version;

/// Chosen: parts of one file under way; the writer waits beyond that.
const PARTS_UNDER_WAY: usize = 16;
/// Chosen: a part that is larger is not sent, but planned anew.
const LARGEST_SENT_BYTES: u64 = 8 * PART_BYTES;
/// In an object's metadata: which staged file it was.
pub const ID: &str = "weft-id";

struct Sent {
    step: Step,
    /// None: it is under way, it failed, or its bytes were written again.
    part: Option<Part>,
    /// Written again since it was sent.
    is_stale: bool,
}

/// What must be sent again when bytes are written again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// The parts that have them, if any.
    Parts,
    /// All: a part that was copied is too large to be sent.
    All,
    /// It cannot: bytes beside them were let go.
    Never,
}

/// An upload that is under way.
pub struct Sending {
    upload: Upload,
    /// In the metadata of the object that it will be.
    id: String,
    /// The file's length when the store was last asked to make the object.
    asked_bytes: Option<u64>,
    /// Bytes were written again since: an object of another content may say that it is this file.
    is_ambiguous: bool,
    parts: BTreeMap<u32, Sent>,
    tasks: JoinSet<(u32, Result<Part, StoreError>)>,
    failed: Option<StoreError>,
    /// All before it is in parts.
    reached: u64,
}

impl Sending {
    /// Of an upload that was begun.
    ///
    /// # Errors
    /// What the system said of the log.
    pub fn new(
        ways: &Ways,
        upload: Upload,
        id: String,
        content: &mut Content,
    ) -> Result<Self, Fault> {
        let noted = content.note(Note::Upload {
            key: upload.key.clone(),
            upload: upload.id.clone(),
        });
        let sending = Self {
            upload,
            id,
            asked_bytes: None,
            is_ambiguous: false,
            parts: BTreeMap::new(),
            tasks: JoinSet::new(),
            failed: None,
            reached: 0,
        };
        match noted {
            Ok(()) => Ok(sending),
            Err(fault) => {
                sending.give_up(ways);
                Err(fault)
            }
        }
    }

    /// All bytes before it are in parts.
    pub fn reached(&self) -> u64 {
        self.reached
    }

    /// Which parts come next, if they are sent.
    pub fn grid(&self) -> Grid {
        let (number, start) = match self.short_end() {
            Some((number, range)) => (number, range.start),
            None => (self.parts.len() as u32 + 1, self.reached),
        };
        Grid {
            start,
            part_bytes: part_bytes(number),
        }
    }

    /// The last part, if it may stand before no other one: it was the end of the file when the
    /// upload was to be completed.
    fn short_end(&self) -> Option<(u32, Range)> {
        let (number, last) = self.parts.last_key_value()?;
        let range = last.step.range();
        (range.byte_count() < LEAST_PART_BYTES).then_some((*number, range))
    }

    /// Whether enough was written for the next part.
    pub fn has_whole_part(&self, content: &Content) -> bool {
        let Grid { start, part_bytes } = self.grid();
        content.size() >= start + part_bytes
    }

    /// Sends what is ready: whole parts, or all at the end.
    ///
    /// # Errors
    /// Those of reading what is sent. What the store says of parts comes with [`Sending::finish`].
    pub async fn advance(
        &mut self,
        ways: &Ways,
        content: &mut Content,
        is_end: bool,
    ) -> Result<(), Fault> {
        if self.reached >= content.size() {
            return Ok(());
        }
        if let Some((number, range)) = self.short_end() {
            // It may be under way, and would come after the part that replaces it.
            self.drain().await;
            self.parts.remove(&number);
            self.reached = range.start;
        }
        let rest = content
            .places
            .stored(Range::new(self.reached, content.size()));
        let first_number = self.parts.len() as u32 + 1;
        let aim = Aim {
            first_number,
            is_end,
        };
        for (index, step) in plan(&rest, aim).into_iter().enumerate() {
            let range = step.range();
            self.send(ways, content, first_number + index as u32, step)
                .await?;
            self.reached = range.end;
        }
        if let Some(from) = content.may_go_from() {
            self.drain().await;
            self.drop_sent(content, from);
        }
        Ok(())
    }

    async fn send(
        &mut self,
        ways: &Ways,
        content: &mut Content,
        number: u32,
        step: Step,
    ) -> Result<(), Fault> {
        while self.tasks.len() >= PARTS_UNDER_WAY {
            self.take_one().await;
        }
        let (store, upload) = (Arc::clone(&ways.store), self.upload.clone());
        match step.clone() {
            Step::Copy(range, version, at) => {
                let there = Range::new(at, at + range.byte_count());
                self.tasks.spawn_on(
                    async move {
                        let source = (version.key.as_str(), &version.etag);
                        (
                            number,
                            store.copy_part(&upload, number, source, there).await,
                        )
                    },
                    &ways.runtime,
                );
            }
            Step::Send(range) => {
                let room = ways.room_for(range).await;
                let body = content.fetch(ways, range).await?;
                self.tasks.spawn_on(
                    async move {
                        let sent = store.send(&upload, number, body).await;
                        drop(room);
                        (number, sent)
                    },
                    &ways.runtime,
                );
            }
        }
        let sent = Sent {
            step,
            part: None,
            is_stale: false,
        };
        self.parts.insert(number, sent);
        Ok(())
    }

    async fn take_one(&mut self) {
        match self.tasks.join_next().await {
            Some(Ok((number, Ok(part)))) => {
                if let Some(sent) = self.parts.get_mut(&number) {
                    sent.part = Some(part);
                }
            }
            Some(Ok((_, Err(error)))) => self.failed = Some(error),
            Some(Err(_)) => self.failed = Some(mount_ends("UploadPart", &self.upload.key)),
            None => {}
        }
    }

    /// Bytes that were sent are about to be written again.
    pub fn will_change(&mut self, range: Range, content: &Content) -> Again {
        let is_touched = |sent: &Sent| {
            let part = sent.step.range();
            part.start < range.end && range.start < part.end
        };
        let touched = self.parts.values().filter(|sent| is_touched(sent));
        let touched: Vec<Range> = touched.map(|sent| sent.step.range()).collect();
        if !touched.iter().all(|part| content.places.has(*part)) {
            // Nothing is written: all that was sent stays as it is.
            return Again::Never;
        }
        for sent in self.parts.values_mut().filter(|sent| is_touched(sent)) {
            sent.is_stale = true;
        }
        self.is_ambiguous |= self.asked_bytes.is_some() && !touched.is_empty();
        let is_large = |part: &Range| part.byte_count() > LARGEST_SENT_BYTES;
        if touched.iter().any(is_large) {
            Again::All
        } else {
            Again::Parts
        }
    }

    /// Completes the upload, after what was written again and what failed were sent again.
    ///
    /// # Errors
    /// What the store said; the upload stays, for another attempt.
    pub async fn finish(&mut self, ways: &Ways, content: &mut Content) -> Result<ETag, Fault> {
        // What was written again may still be under way as it was before.
        if !self.parts.values().any(|sent| sent.is_stale) {
            self.advance(ways, content, true).await?;
        }
        self.drain().await;
        self.failed = None;
        let again: Vec<(u32, Step)> = self
            .parts
            .iter()
            .filter(|(_, sent)| sent.is_stale || sent.part.is_none())
            .map(|(number, sent)| match (&sent.step, sent.is_stale) {
                // What the store had is not what the file has now.
                (step, true) => (*number, Step::Send(step.range())),
                (step, false) => (*number, step.clone()),
            })
            .collect();
        for (number, step) in again {
            self.send(ways, content, number, step).await?;
        }
        self.advance(ways, content, true).await?;
        self.drain().await;
        if let Some(error) = self.failed.take() {
            return Err(error.into());
        }
        let parts: Vec<Part> = self
            .parts
            .values()
            .filter_map(|sent| sent.part.clone())
            .collect();
        self.asked_bytes = Some(self.reached);
        let when = content.when.condition();
        let completed = ways.store.complete(&self.upload, &parts, &when).await;
        let completed = match completed {
            Err(error) if error.failure == Failure::Unsupported => {
                let always = When::Always.condition();
                ways.store.complete(&self.upload, &parts, &always).await
            }
            completed => completed,
        };
        match completed {
            Err(error) if self.is_ambiguous => Err(error.into()),
            Err(error) => {
                let own = Own {
                    key: &self.upload.key,
                    id: &self.id,
                    size_bytes: self.reached,
                };
                let etag = published_unheard(&*ways.store, own, error).await?;
                // It may have been the upload of a mount before.
                let _ = ways.store.abort(&self.upload).await;
                Ok(etag)
            }
            Ok(etag) => Ok(etag),
        }
    }

    async fn drain(&mut self) {
        while !self.tasks.is_empty() {
            self.take_one().await;
        }
    }

    /// Lets what was sent go from the disk, but for the head of the file.
    fn drop_sent(&mut self, content: &mut Content, from: u64) {
        for sent in self.parts.values() {
            let range = sent.step.range();
            // What is too short may have to be sent again.
            let is_long = range.byte_count() >= LEAST_PART_BYTES;
            if sent.part.is_some() && !sent.is_stale && is_long && range.start >= from {
                content.drop_sent(range);
            }
        }
    }

    /// The store had made the object when nobody heard of it: the ranges of the file that are still
    /// as they are in `version`.
    pub fn kept_in(&self, version: &Version) -> Vec<Range> {
        let Some(asked) = self
            .asked_bytes
            .filter(|asked| *asked == version.size_bytes)
        else {
            return Vec::new();
        };
        let sent = self.parts.values();
        let sent = sent.filter(|sent| sent.part.is_some() && !sent.is_stale);
        let ranges = sent.map(|sent| sent.step.range());
        ranges.filter(|range| range.end <= asked).collect()
    }

    /// Whether an object of another content may say that it is this file: bytes were written again
    /// since the store was asked to make it.
    pub fn is_ambiguous(&self) -> bool {
        self.is_ambiguous
    }

    /// Gives the upload up.
    pub fn give_up(mut self, ways: &Ways) {
        self.tasks.abort_all();
        let (store, upload) = (Arc::clone(&ways.store), self.upload.clone());
        // What this does not reach is in the log, and in the bucket's list of uploads.
        ways.runtime
            .spawn(async move { store.abort(&upload).await });
    }
}

/// What stands in the metadata of a file's object.
pub fn about(content: &Content) -> Metadata {
    Metadata::from([(ID.to_owned(), content.id.to_string())])
}

/// An object that a staged file may have become.
#[derive(Debug, Clone, Copy)]
pub struct Own<'a> {
    /// Its name.
    pub key: &'a str,
    /// What its metadata say then.
    pub id: &'a str,
    /// Of the file.
    pub size_bytes: u64,
}

/// A write failed, or its answer was lost and the next attempt found the condition broken by the
/// first one: the object says whose it is.
///
/// # Errors
/// `error`, where it is somebody else's.
pub async fn published_unheard(
    store: &dyn Store,
    own: Own<'_>,
    error: StoreError,
) -> Result<ETag, Fault> {
    let may_be_done = matches!(
        error.failure,
        Failure::Changed | Failure::Missing | Failure::Unreachable | Failure::Busy
    );
    if may_be_done && let Some(etag) = own_object(store, own).await {
        return Ok(etag);
    }
    Err(error.into())
}

/// The object of a key, if it is the one that was published of this staged file.
pub async fn own_object(store: &dyn Store, own: Own<'_>) -> Option<ETag> {
    let (info, about) = store.describe(own.key).await.ok()?;
    let is_own = about.get(ID).is_some_and(|found| found == own.id);
    (is_own && info.size_bytes == own.size_bytes).then_some(info.etag)
}

/// The object of a key, if it was published of what this staged file was before it was changed.
///
/// # Errors
/// What the store said.
pub async fn earlier_object(
    store: &dyn Store,
    key: &str,
    content: &Content,
) -> Result<Option<Version>, StoreError> {
    let (info, about) = match store.describe(key).await {
        Err(error) if error.failure == Failure::Missing => return Ok(None),
        described => described?,
    };
    let is_earlier = about.get(ID).is_some_and(|id| content.id.was_before(id));
    Ok(is_earlier.then(|| Version::new(key.to_owned(), &info)))
}
