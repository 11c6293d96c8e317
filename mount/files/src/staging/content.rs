// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The bytes of a file that is being written. Bytes that were written lie in its log; the others
//! are in objects of the store, or are zeros. [`crate::draft`] holds one, and says when it is
//! published.

use std::sync::Arc;

use bytes::Bytes;
use tokio::task::block_in_place;
use weft_store::{ETag, Range};

use crate::fault::{Fault, Reason};
use crate::staging::extents::Source;
use crate::staging::log::Log;
use crate::staging::places::Places;
use crate::staging::record::{Note, When};
use crate::staging::stage::Stage;
use crate::staging::staged_id::StagedId;
use crate::staging::tail::Tail;
use crate::staging::ways::Ways;
use crate::version::Version;

/// Chosen: no file grows beyond that; the parts of an upload reach so far.
const MOST_FILE_BYTES: u64 = 2 << 40;
/// Chosen: a log is written anew when it has twice what is needed, and this many bytes more.
const SPARE_BYTES: u64 = 64 << 20;
/// Chosen: or when its file lies in more pieces than that, and in twice as many as before.
const MOST_EXTENTS: usize = 1 << 17;
/// Chosen: what was sent is let go behind this many bytes only, or behind an eighth of what may be
/// staged, since formats that end a file write their head again.
const HEAD_BYTES: u64 = 16 << 20;
/// Chosen: what is moved at once when a log is written anew.
const MOVE_BYTES: u64 = 1 << 20;

/// The bytes of one file.
#[derive(Debug)]
pub struct Content {
    stage: Arc<Stage>,
    /// Where they are.
    pub places: Places,
    /// What of it is still in memory, and goes into the next part.
    pub tail: Tail,
    log: Option<Log>,
    /// Names the next object that is published, in its metadata.
    pub id: StagedId,
    /// What must be so for it to be published.
    pub when: When,
    extents_before: usize,
    /// When the log has so many bytes of data, it is counted how many are of use.
    look_at_bytes: u64,
    /// The last that the log names: a new log names it, too.
    upload: Option<Note>,
}

impl Content {
    /// As an object is, or empty.
    pub fn new(stage: &Arc<Stage>, version: Option<&Arc<Version>>, when: When) -> Self {
        Self {
            stage: Arc::clone(stage),
            places: Places::new(version),
            tail: Tail::default(),
            log: None,
            id: StagedId::default(),
            when,
            extents_before: 0,
            look_at_bytes: SPARE_BYTES,
            upload: None,
        }
    }

    /// What a dead mount left, to be filled with what its log says.
    pub fn found(stage: &Arc<Stage>, log: Log, id: &str, when: When) -> Self {
        let mut content = Self::new(stage, None, when);
        content.log = Some(log);
        content.id = StagedId::found(id);
        content
    }

    /// In bytes.
    pub fn size(&self) -> u64 {
        self.places.size()
    }

    /// Whether anything lies on the disk here.
    pub fn log(&mut self) -> Option<&mut Log> {
        self.log.as_mut()
    }

    /// Has a log, begun with all that the file is.
    fn log_of(&mut self, key: &str) -> Result<&mut Log, Fault> {
        if self.log.is_none() {
            let log = self.new_log(key)?;
            self.log = Some(log);
        }
        self.log.as_mut().ok_or_else(|| Reason::Broken.into())
    }

    fn new_log(&self, key: &str) -> Result<Log, Fault> {
        let mut log = Log::create(&self.stage)?;
        log.note(Note::Begin {
            id: self.id.to_string(),
            key: key.to_owned(),
            when: self.when.clone(),
            size_bytes: self.size(),
        })?;
        for (range, source) in self.places.all() {
            if let Source::Object(version, at) = source {
                log.note(copy_note(range, &version, at))?;
            }
        }
        log.note(Note::Ready)?;
        if let Some(upload) = &self.upload {
            log.note(upload.clone())?;
        }
        Ok(log)
    }

    /// Writes `data` at `offset`, behind zeros where the file was shorter.
    ///
    /// # Errors
    /// `NoSpace`, `TooLarge`; what the system said.
    pub fn write(&mut self, key: &str, offset: u64, data: &[u8]) -> Result<(), Fault> {
        if data.is_empty() {
            return Ok(());
        }
        let end = offset.saturating_add(data.len() as u64);
        check_size(self.size(), end)?;
        self.id.note_change();
        if self.must_tidy() {
            let log_bytes = self.log.as_ref().map_or(0, Log::data_bytes);
            match block_in_place(|| self.tidy(key)) {
                // There may be room for these data all the same.
                Err(fault) if fault.reason == Reason::NoSpace => {
                    self.look_at_bytes = log_bytes * 5 / 4;
                    self.extents_before = self.places.count();
                }
                tidied => tidied?,
            }
        }
        let at = self.log_of(key)?.write(offset, data)?;
        self.places.wrote(Range::new(offset, end), at);
        Ok(())
    }

    /// Makes the file `size` bytes long.
    ///
    /// # Errors
    /// As [`Content::write`].
    pub fn resize(&mut self, key: &str, size: u64) -> Result<(), Fault> {
        check_size(self.size(), size)?;
        self.id.note_change();
        self.log_of(key)?.note(Note::Size(size))?;
        self.places.resize(size);
        Ok(())
    }

    /// Makes a range that of an object, which the store copies later.
    ///
    /// # Errors
    /// As [`Content::write`].
    pub fn copy(
        &mut self,
        key: &str,
        range: Range,
        version: &Arc<Version>,
        at: u64,
    ) -> Result<(), Fault> {
        check_size(self.size(), range.end)?;
        self.id.note_change();
        self.log_of(key)?.note(copy_note(range, version, at))?;
        self.places.copied(range, version, at);
        Ok(())
    }

    /// Says something in the log, if there is one.
    ///
    /// # Errors
    /// What the system said.
    pub fn note(&mut self, note: Note) -> Result<(), Fault> {
        if matches!(note, Note::Upload { .. }) {
            self.upload = Some(note.clone());
        }
        let is_whole = note == Note::Whole;
        if let Some(log) = &mut self.log {
            log.note(note)?;
        }
        if is_whole {
            self.id.note_whole();
        }
        Ok(())
    }

    /// The object that is published has another name, or another condition.
    ///
    /// # Errors
    /// What the system said.
    pub fn rename(&mut self, key: &str, when: When) -> Result<(), Fault> {
        self.when = when.clone();
        self.note(Note::Key {
            key: key.to_owned(),
            when,
        })
    }

    /// The object, of which some of its bytes are, was replaced by one that was made of the file
    /// before it changed: these bytes have the same place there.
    pub fn replaced(&mut self, version: &Arc<Version>) -> Result<(), Fault> {
        let when = When::Match(version.etag.as_str().to_owned());
        if let When::Match(old) = std::mem::replace(&mut self.when, when.clone()) {
            let is_old = |one: &Version| one.key == version.key && one.etag.as_str() == old;
            self.places.moved(|one, is_in_place| {
                (is_in_place && is_old(one)).then(|| Arc::clone(version))
            });
        }
        self.rename(&version.key, when)
    }

    /// Staged bytes.
    ///
    /// # Errors
    /// `NoSpace` where they were let go; what the system said.
    pub fn read_staged(&mut self, range: Range, at: u64, into: &mut [u8]) -> Result<(), Fault> {
        log_with(self, range)?.read(at, into)
    }

    /// All bytes of a range, from wherever they are.
    ///
    /// # Errors
    /// Those of the disk and of the store.
    pub async fn fetch(&mut self, ways: &Ways, range: Range) -> Result<Bytes, Fault> {
        if let Some(bytes) = self.tail.take(ways, range) {
            return Ok(bytes);
        }
        let mut whole = ways.buffers.take(range.byte_count() as usize);
        for stretch in self.places.stretches(range) {
            let length = stretch.range.byte_count();
            match &stretch.source {
                None => whole.resize(whole.len() + length as usize, 0),
                Some(Source::Staged(at)) => {
                    let log = log_with(self, stretch.range)?;
                    log.read_behind(Range::new(*at, at + length), &mut whole)?;
                }
                Some(Source::Object(version, at)) => {
                    let there = Range::new(*at, at + length);
                    let bytes = ways.store.get(&version.key, there, &version.etag).await?;
                    whole.extend_from_slice(&bytes);
                }
            }
        }
        Ok(ways.buffers.share(whole))
    }

    /// All of it is an object now.
    pub fn published(&mut self, ways: &Ways, version: &Arc<Version>) {
        self.when = When::Match(version.etag.as_str().to_owned());
        self.id = StagedId::default();
        let noted = self.note(Note::Published {
            etag: version.etag.as_str().to_owned(),
            next_id: self.id.to_string(),
        });
        self.places.published(version);
        self.tail.clear();
        self.upload = None;
        let is_small = self
            .log
            .as_ref()
            .is_none_or(|log| log.data_bytes() <= SPARE_BYTES);
        if !is_small || noted.is_err() || self.places.has_dropped() || self.stage.is_crowded() {
            self.places.left();
            self.look_at_bytes = SPARE_BYTES;
            if let Some(log) = self.log.take() {
                remove(ways, log);
            }
        }
    }

    /// Lets the staged bytes of a range go, which were sent.
    pub fn drop_sent(&mut self, range: Range) {
        for place in self.places.drop_sent(range) {
            if let Some(log) = &mut self.log {
                log.punch(place);
            }
        }
    }

    /// Where room is so short that what was sent should go: from where on.
    pub fn may_go_from(&self) -> Option<u64> {
        let head = HEAD_BYTES.min(self.stage.limit_bytes() / 8);
        self.stage.is_crowded().then_some(head)
    }

    /// Whether a write of so many bytes takes longer than the disk takes for them.
    pub fn must_wait(&mut self, byte_count: u64) -> bool {
        self.must_tidy() || self.stage.must_wait(byte_count)
    }

    /// Whether much of the log is of no use any more.
    fn must_tidy(&mut self) -> bool {
        let Some(log) = &self.log else {
            return false;
        };
        let too_many = MOST_EXTENTS.max(2 * self.extents_before);
        let may = !self.places.has_dropped();
        if may && self.places.count() > too_many {
            return true;
        }
        // Counting costs time: it is looked at when the data have grown by a quarter.
        if log.data_bytes() <= self.look_at_bytes {
            return false;
        }
        let is_long = log.data_bytes() > 2 * self.places.staged_bytes() + SPARE_BYTES;
        if !is_long || !may {
            self.look_at_bytes = log.data_bytes() * 5 / 4;
        }
        is_long && may
    }

    /// Writes the log anew.
    fn tidy(&mut self, key: &str) -> Result<(), Fault> {
        let mut new = self.new_log(key)?;
        let mut moves = Vec::new();
        let mut buffer = vec![0; MOVE_BYTES as usize];
        for (range, source) in self.places.all() {
            let Source::Staged(at) = source else {
                continue;
            };
            let mut done = 0;
            while done < range.byte_count() {
                let length = MOVE_BYTES.min(range.byte_count() - done);
                let piece = &mut buffer[..length as usize];
                if let Some(log) = &mut self.log {
                    log.read(at + done, piece)?;
                }
                let start = range.start + done;
                let at = new.write(start, piece)?;
                moves.push((Range::new(start, start + length), at));
                done += length;
            }
        }
        for (range, at) in moves {
            self.places.read_at(range, at);
        }
        self.extents_before = self.places.count();
        self.look_at_bytes = SPARE_BYTES.max(new.data_bytes());
        self.log = Some(new);
        Ok(())
    }
}

/// The log, if all bytes of a range are here.
fn log_with(content: &mut Content, range: Range) -> Result<&mut Log, Fault> {
    if !content.places.has(range) {
        let text = "these bytes were sent and dropped from the stage, because the file is larger \
                    than --stage-limit; close the file to read them";
        return Err(Fault::because(Reason::NoSpace, text));
    }
    content.log.as_mut().ok_or_else(|| Reason::Broken.into())
}

/// Nothing that lies here is of use any more: all of it is this object.
pub fn begin_anew(content: &mut Content, ways: &Ways, version: &Arc<Version>, when: When) {
    if let Some(log) = content.log.take() {
        remove(ways, log);
    }
    *content = Content::new(&content.stage, Some(version), when);
}

fn check_size(before: u64, size: u64) -> Result<(), Fault> {
    if size > MOST_FILE_BYTES && size > before {
        let text = format!("{size} bytes; the most are {MOST_FILE_BYTES}");
        return Err(Fault::because(Reason::TooLarge, text));
    }
    Ok(())
}

/// Removes a log that is not needed any more. The kernel takes a tenth of a second for 512 MiB that
/// are on their way to the disk, and a program waits for close(2).
fn remove(ways: &Ways, mut log: Log) {
    log.retire();
    if log.data_bytes() > SPARE_BYTES {
        ways.runtime.spawn_blocking(move || drop(log));
    }
}

fn copy_note(range: Range, version: &Version, at: u64) -> Note {
    Note::Copy {
        offset: range.start,
        length: range.byte_count(),
        key: version.key.clone(),
        etag: version.etag.as_str().to_owned(),
        object_bytes: version.size_bytes,
        at,
    }
}

/// A version that a log names.
pub fn named_version(key: &str, etag: &str, size_bytes: u64) -> Arc<Version> {
    let etag = ETag::new(etag);
    Arc::new(Version::named(key.to_owned(), &etag, size_bytes))
}
