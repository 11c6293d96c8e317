// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Recovers what a dead mount left; the next mount of the same place does this:
//!
//! - Complete files are published, on the condition that nobody has written the object since.
//! - Others are saved as plain files on this host, and a message says where.
//! - Uploads are aborted.
//!
//! docs/mount-stage.md specifies the files.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::fcntl::{Flock, FlockArg};
use weft_store::{Condition, Range, Upload};

use crate::fault::{Fault, Reason};
use crate::renames::finish_dead;
use crate::staging::content::{Content, named_version};
use crate::staging::log::{Log, read_records};
use crate::staging::publication::Publication;
use crate::staging::record::{Note, Record, When, Write, crc};
use crate::staging::stage::{SESSION_FILE, Session, Stage, make_private};
use crate::staging::staged_id::StagedId;
use crate::staging::ways::Ways;
use crate::version::Version;

/// Names the folder of files that were saved.
const SAVED: &str = "saved";
/// Chosen: what is read at once.
const READ_BYTES: u64 = 8 << 20;

/// One file that a dead mount was writing.
struct Left {
    key: String,
    content: Content,
    uploads: Vec<Upload>,
    /// The log was begun whole.
    is_ready: bool,
    /// Something is not published.
    is_changed: bool,
    /// Bytes are not those that were written.
    is_damaged: bool,
}

/// Looks after all dead sessions of `place`. `tell` hears what was done, a line each.
///
/// # Errors
/// Where the folder cannot be read. What goes wrong with one file is told.
pub async fn recover(
    ways: &Ways,
    stage: &Arc<Stage>,
    place: &str,
    tell: fn(&str),
) -> io::Result<()> {
    let Some(parent) = stage.folder().parent() else {
        return Ok(());
    };
    for entry in std::fs::read_dir(parent)? {
        let folder = entry?.path();
        let Some(_lock) = dead_session(&folder, place) else {
            continue;
        };
        let mut is_done = remove_hidden(ways, &folder).await;
        is_done &= finish_renames(ways, &folder, tell).await;
        for name in logs(&folder)? {
            let path = name.with_extension("log");
            match look_after(ways, stage, &name, tell).await {
                Ok(()) => {
                    let _ = std::fs::remove_file(&path);
                    let _ = std::fs::remove_file(name.with_extension("data"));
                }
                Err(fault) => {
                    is_done = false;
                    tell(&format!(
                        "{} stays for the next mount: {fault}",
                        path.display()
                    ));
                }
            }
        }
        if is_done {
            std::fs::remove_dir_all(&folder)?;
        }
    }
    Ok(())
}

/// Removes objects that were hidden for those who had them open.
async fn remove_hidden(ways: &Ways, folder: &Path) -> bool {
    let mut is_done = true;
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|ending| ending == "hidden") {
            let key = std::fs::read_to_string(&path).unwrap_or_default();
            let deleted = ways.store.delete(&key, &Condition::Always).await;
            is_done &= deleted.is_ok() && std::fs::remove_file(&path).is_ok();
        }
    }
    is_done
}

/// Finishes renames of folders.
async fn finish_renames(ways: &Ways, folder: &Path, tell: fn(&str)) -> bool {
    let mut is_done = true;
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|ending| ending == "rename")
            && let Err(fault) = finish_dead(ways, &path, tell).await
        {
            is_done = false;
            tell(&format!(
                "a folder's rename stays for the next mount: {fault}"
            ));
        }
    }
    is_done
}

/// The lock of a session that is of `place`, and whose mount is dead.
fn dead_session(folder: &Path, place: &str) -> Option<Flock<File>> {
    let path = folder.join(SESSION_FILE);
    let file = OpenOptions::new().read(true).write(true).open(&path).ok()?;
    let lock = Flock::lock(file, FlockArg::LockExclusiveNonblock).ok()?;
    let session: Session = serde_json::from_slice(&std::fs::read(&path).ok()?).ok()?;
    (session.version == 1 && session.place == place).then_some(lock)
}

/// The logs of a session, without their ending, in the order in which they were begun.
fn logs(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "log") {
            found.push(path.with_extension(""));
        }
    }
    found.sort();
    Ok(found)
}

async fn look_after(
    ways: &Ways,
    stage: &Arc<Stage>,
    name: &Path,
    tell: fn(&str),
) -> Result<(), Fault> {
    let broken = |error: io::Error| Fault::because(Reason::Broken, error.to_string());
    let records = read_records(name).map_err(broken)?;
    let Some(left) = Left::of(stage, name, &records).map_err(broken)? else {
        return Ok(());
    };
    for upload in &left.uploads {
        ways.store.abort(upload).await?;
    }
    if !left.is_ready || !left.is_changed {
        return Ok(());
    }
    let key = left.key.clone();
    if left.is_damaged {
        let text = "the staged bytes are not those that were written; what can be read is saved";
        tell(&format!("`{key}` was not published: {text}"));
    } else if left.content.id.is_whole() {
        let mut file = Publication::found(left.content);
        return match file.publish(ways, &key).await {
            Ok(_) => {
                tell(&format!(
                    "`{key}` was published: the mount before had ended too early"
                ));
                Ok(())
            }
            Err(fault) if fault.reason == Reason::Stale => {
                tell(&format!(
                    "`{key}` was not published: somebody else wrote it since"
                ));
                save(ways, stage, &key, file.content, tell).await
            }
            Err(fault) => Err(fault),
        };
    } else {
        tell(&format!(
            "`{key}` was not published: its program had not closed it"
        ));
    }
    save(ways, stage, &key, left.content, tell).await
}

/// Writes a plain file.
async fn save(
    ways: &Ways,
    stage: &Arc<Stage>,
    key: &str,
    mut content: Content,
    tell: fn(&str),
) -> Result<(), Fault> {
    let broken = |error: io::Error| Fault::because(Reason::Broken, error.to_string());
    let parent = stage.folder().parent().unwrap_or(stage.folder());
    let folder = parent.join(SAVED);
    make_private(&folder).map_err(broken)?;
    let name: String = key
        .chars()
        .map(|c| if c == '/' { '_' } else { c })
        .collect();
    let short: String = name
        .chars()
        .rev()
        .take(60)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .collect();
    let path = folder.join(format!("{}-{short}", content.id));
    let file = File::create(&path).map_err(broken)?;
    file.set_len(content.size()).map_err(broken)?;
    let mut is_whole = true;
    for (stretch, _) in content.places.all() {
        let mut at = stretch.start;
        while at < stretch.end {
            let range = Range::new(at, stretch.end.min(at + READ_BYTES));
            match content.fetch(ways, range).await {
                Ok(bytes) => file.write_all_at(&bytes, at).map_err(broken)?,
                Err(fault) if fault.may_pass() => return Err(fault),
                Err(_) => is_whole = false,
            }
            at = range.end;
        }
    }
    let rest = if is_whole {
        ""
    } else {
        ", with zeros for what the store has not any more"
    };
    tell(&format!(
        "the bytes of `{key}` are in {}{rest}",
        path.display()
    ));
    Ok(())
}

impl Left {
    /// From the records; `None` where the log was not even begun.
    fn of(stage: &Arc<Stage>, name: &Path, records: &[Record]) -> io::Result<Option<Self>> {
        let Some(Record::Note(Note::Begin {
            id,
            key,
            when,
            size_bytes,
        })) = records.first()
        else {
            return Ok(None);
        };
        let log = Log::found(stage, name.to_owned());
        let mut left = Self {
            key: key.clone(),
            content: Content::found(stage, log, id, when.clone()),
            uploads: Vec::new(),
            is_ready: false,
            // Files that are made, or cut, have a log only once something was done to them.
            is_changed: *when == When::Absent,
            is_damaged: false,
        };
        left.content.places.resize(*size_bytes);
        let data = File::open(name.with_extension("data"))?;
        for record in &records[1..] {
            match record {
                Record::Write(write) => left.write(&data, write),
                Record::Note(note) => left.note(note),
            }
        }
        Ok(Some(left))
    }

    fn write(&mut self, data: &File, write: &Write) {
        let mut bytes = vec![0; write.length.min(READ_BYTES * 8) as usize];
        let read = data.read_exact_at(&mut bytes, write.at);
        self.is_damaged |= read.is_err() || crc(&bytes) != write.crc;
        if let Some(end) = write
            .offset
            .checked_add(write.length)
            .filter(|_| write.length > 0)
        {
            self.content
                .places
                .wrote(Range::new(write.offset, end), write.at);
        }
        self.changed();
    }

    fn changed(&mut self) {
        self.is_changed |= self.is_ready;
        self.content.id.note_change();
    }

    /// The object that it was lies elsewhere, or was replaced by an attempt to publish the file.
    fn renamed(&mut self, key: &str, when: &When) {
        if let (When::Match(old), When::Match(new)) = (&self.content.when, when) {
            let is_elsewhere = key != self.key;
            let is_old = |one: &Version| one.key == self.key && one.etag.as_str() == old;
            self.content.places.moved(|one, is_in_place| {
                let is_there = is_old(one) && (is_elsewhere || is_in_place);
                is_there.then(|| named_version(key, new, one.size_bytes))
            });
        }
        key.clone_into(&mut self.key);
        self.content.when = when.clone();
    }

    fn note(&mut self, note: &Note) {
        match note {
            Note::Copy {
                offset,
                length,
                key,
                etag,
                object_bytes,
                at,
            } => {
                let version = named_version(key, etag, *object_bytes);
                if let Some(end) = offset.checked_add(*length).filter(|end| end > offset) {
                    self.content
                        .places
                        .copied(Range::new(*offset, end), &version, *at);
                }
                self.changed();
            }
            Note::Ready => self.is_ready = true,
            Note::Size(size) => {
                self.content.places.resize(*size);
                self.changed();
            }
            Note::Key { key, when } => self.renamed(key, when),
            Note::Upload { key, upload } => self.uploads.push(Upload {
                key: key.clone(),
                id: upload.clone(),
            }),
            Note::Published { etag, next_id } => {
                self.is_changed = false;
                self.uploads.clear();
                self.content.when = When::Match(etag.clone());
                let size = self.content.size();
                let version = named_version(&self.key, etag, size);
                self.content.places.published(&version);
                self.content.id = StagedId::found(next_id);
            }
            Note::Whole => self.content.id.note_whole(),
            Note::Unlinked => self.is_changed = false,
            Note::Begin { .. } => self.is_damaged = true,
        }
    }
}
