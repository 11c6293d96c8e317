// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The folder of the cache: which contents are open, which blocks it accepts, and which it removes.
//! docs/mount-cache.md, clauses 3 to 5. `mount/files` calls it from threads that may block.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, DirEntry};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use crate::content::Content;
use crate::format::{BLOCK_BYTES, ContentName, FOLDER};

/// Chosen: descriptors that the cache keeps open, two for each content.
const OPEN_CONTENTS: usize = 200;
/// Specified (4.1, 4.2): what leaves at once, and after how much is counted anew.
const SHARE: u64 = 8;
/// Specified (4.1): a limit below this is told where the disk set it.
const SMALL_BYTES: u64 = 1 << 30;
/// Specified (4.2).
const PAUSE: Duration = Duration::from_secs(10);

/// How much the cache may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// So many bytes.
    Bytes(u64),
    /// All but a twentieth of the file system.
    OfDisk,
}

/// Part of what was asked for.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    /// These bytes are there, and right.
    Here(Vec<u8>),
    /// This range of bytes is not.
    Missing(Range<u64>),
}

/// The cache. Its calls wait for the disk.
pub struct DiskCache {
    folder: PathBuf,
    limit_bytes: u64,
    state: Mutex<State>,
    tell: fn(&str),
}

struct State {
    open: HashMap<ContentName, (Arc<Content>, SystemTime)>,
    taken_bytes: u64,
    /// Since the folder was counted.
    written_bytes: u64,
    paused_until: Option<Instant>,
}

impl DiskCache {
    /// Opens the cache in `folder`, which it makes where it is missing. `tell` takes warnings, one
    /// line each. Takes as long as the folder has files.
    ///
    /// # Errors
    /// A folder that cannot be made or written, or in which others may write.
    pub fn open(folder: &Path, limit: Limit, tell: fn(&str)) -> io::Result<Self> {
        let folder = folder.join(FOLDER);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)?;
        check_owner(&folder)?;
        let taken_bytes: u64 = files(&folder)?.iter().map(|file| file.taken_bytes).sum();
        let limit_bytes = match limit {
            Limit::Bytes(bytes) => bytes,
            Limit::OfDisk => limit_of_disk(&folder, taken_bytes, tell)?,
        };
        let cache = Self {
            folder,
            limit_bytes,
            state: Mutex::new(State {
                open: HashMap::new(),
                taken_bytes,
                written_bytes: 0,
                paused_until: None,
            }),
            tell,
        };
        cache.make_room();
        Ok(cache)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the cache takes on the disk, in bytes, as far as this process knows.
    pub fn taken_bytes(&self) -> u64 {
        self.state().taken_bytes
    }

    /// What is there of `range`, whose ends are those of blocks, in order and without gaps. What
    /// the disk refuses is missing.
    ///
    /// # Panics
    /// When the range is not of whole blocks of the content.
    pub fn read(&self, name: &ContentName, range: Range<u64>) -> Vec<Found> {
        check_range(name, &range);
        let found = self.content(name, false).and_then(|content| {
            let Some(content) = content else {
                return Ok(vec![Found::Missing(range.clone())]);
            };
            self.read_content(name, &content, range.clone())
        });
        found.unwrap_or_else(|error| {
            self.refused("read", &error);
            vec![Found::Missing(range)]
        })
    }

    fn read_content(
        &self,
        name: &ContentName,
        content: &Content,
        range: Range<u64>,
    ) -> io::Result<Vec<Found>> {
        let first = range.start / BLOCK_BYTES;
        let last = range.end.div_ceil(BLOCK_BYTES);
        let present = content.present(first, last - first)?;
        let mut found: Vec<Found> = Vec::new();
        let mut at = 0;
        while at < present.len() {
            let same = present[at..].iter().take_while(|is| **is == present[at]);
            let count = same.count();
            let begin = first + at as u64;
            let end = begin + count as u64;
            if present[at] {
                self.read_run(name, content, begin..end, &mut found)?;
            } else {
                push_missing(&mut found, bytes_of(name, begin..end));
            }
            at += count;
        }
        Ok(found)
    }

    /// Blocks of which all were there a moment ago; some may be wrong.
    fn read_run(
        &self,
        name: &ContentName,
        content: &Content,
        blocks: Range<u64>,
        found: &mut Vec<Found>,
    ) -> io::Result<()> {
        let (bytes, missing, wrong_count) =
            content.read(blocks.start, blocks.end - blocks.start)?;
        if missing.is_empty() {
            found.push(Found::Here(bytes));
            return Ok(());
        }
        if wrong_count > 0 {
            (self.tell)(&format!(
                "{wrong_count} blocks of {} in the cache are not what was written; they are \
                 fetched anew. Look at the disk below {}.",
                name.text(),
                self.folder.display()
            ));
        }
        for (block, part) in blocks.zip(bytes.chunks(BLOCK_BYTES as usize)) {
            if missing.contains(&block) {
                push_missing(found, bytes_of(name, block..block + 1));
            } else {
                found.push(Found::Here(part.to_vec()));
            }
        }
        Ok(())
    }

    /// Keeps whole blocks that begin at byte `start`, unless the disk is full.
    ///
    /// # Panics
    /// When they are not whole blocks of the content.
    pub fn write(&self, name: &ContentName, start: u64, bytes: &[u8]) {
        check_range(name, &(start..start + bytes.len() as u64));
        if self.is_paused() || name.size_bytes.min(bytes.len() as u64) > self.limit_bytes {
            return;
        }
        let written = self.content(name, true).and_then(|content| {
            let content = content.expect("it is made where it is missing");
            content.write(start / BLOCK_BYTES, bytes)
        });
        match written {
            Ok(added) => {
                let is_over = {
                    let mut state = self.state();
                    state.taken_bytes += added;
                    state.written_bytes += added;
                    state.taken_bytes > self.limit_bytes
                        || state.written_bytes > self.limit_bytes / SHARE
                };
                if is_over {
                    self.make_room();
                }
            }
            Err(error) => {
                self.state().paused_until = Some(Instant::now() + PAUSE);
                self.refused("write", &error);
                self.remove_oldest(self.taken_bytes() / SHARE * (SHARE - 1));
            }
        }
    }

    /// A descriptor of a content's bytes where all are there and right. Reads all of them.
    pub fn whole(&self, name: &ContentName) -> Option<fs::File> {
        let content = self.content(name, false).ok()??;
        content.whole().ok()?
    }

    fn is_paused(&self) -> bool {
        let until = self.state().paused_until;
        until.is_some_and(|until| Instant::now() < until)
    }

    fn refused(&self, what: &str, error: &io::Error) {
        (self.tell)(&format!(
            "cannot {what} the cache below {}: {error}. Give it room, or another folder \
             by --cache.",
            self.folder.display()
        ));
    }

    /// A content's files, open.
    fn content(&self, name: &ContentName, is_made: bool) -> io::Result<Option<Arc<Content>>> {
        if let Some((content, used)) = self.state().open.get_mut(name) {
            *used = SystemTime::now();
            return Ok(Some(Arc::clone(content)));
        }
        let opened = if is_made {
            Content::create(&self.folder, name)
        } else {
            Content::open(&self.folder, name)
        };
        let content = match opened {
            Ok(content) => Arc::new(content),
            Err(error) if error.kind() == ErrorKind::NotFound && !is_made => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut state = self.state();
        if state.open.len() >= OPEN_CONTENTS {
            let oldest = state.open.iter().min_by_key(|(_, (_, used))| *used);
            let oldest = oldest.map(|(name, _)| *name);
            if let Some((content, used)) = oldest.and_then(|oldest| state.open.remove(&oldest)) {
                content.mark_used(used);
            }
        }
        state
            .open
            .insert(*name, (Arc::clone(&content), SystemTime::now()));
        Ok(Some(content))
    }

    /// Counts the folder anew, and removes contents if it takes too much.
    fn make_room(&self) {
        self.state()
            .open
            .retain(|_, (content, _)| content.is_named());
        match files(&self.folder) {
            Ok(files) => {
                let taken = files.iter().map(|file| file.taken_bytes).sum();
                let mut state = self.state();
                state.taken_bytes = taken;
                state.written_bytes = 0;
                drop(state);
                if taken > self.limit_bytes {
                    self.remove_oldest(self.limit_bytes / SHARE * (SHARE - 1));
                }
            }
            Err(error) => self.refused("count", &error),
        }
    }

    /// Removes contents until the cache takes `goal_bytes` or less.
    fn remove_oldest(&self, goal_bytes: u64) {
        // The files of open contents say when they were opened, not when they were used last.
        for (content, used) in self.state().open.values() {
            content.mark_used(*used);
        }
        let Ok(mut files) = files(&self.folder) else {
            return;
        };
        let mut taken: u64 = files.iter().map(|file| file.taken_bytes).sum();
        files.sort_by_key(|file| file.used);
        for file in files {
            if taken <= goal_bytes {
                break;
            }
            let _ = fs::remove_file(file.path.with_extension("index"));
            let _ = fs::remove_file(file.path.with_extension("data"));
            let text = file.path.file_stem().unwrap_or_default();
            let mut state = self.state();
            state.open.retain(|name, _| *name.text() != *text);
            taken -= file.taken_bytes;
        }
        self.state().taken_bytes = taken;
    }
}

/// A content as it lies on the disk.
struct OnDisk {
    /// Of the index or of the data.
    path: PathBuf,
    used: SystemTime,
    taken_bytes: u64,
}

/// All contents of the folder.
fn files(folder: &Path) -> io::Result<Vec<OnDisk>> {
    let mut found: HashMap<PathBuf, OnDisk> = HashMap::new();
    for below in fs::read_dir(folder)? {
        let below = below?;
        if !below.file_type()?.is_dir() {
            continue;
        }
        for file in fs::read_dir(below.path())? {
            add(&mut found, &file?);
        }
    }
    Ok(found.into_values().collect())
}

fn add(found: &mut HashMap<PathBuf, OnDisk>, file: &DirEntry) {
    // A file that another process removes meanwhile takes nothing.
    let Ok(metadata) = file.metadata() else {
        return;
    };
    let path = file.path();
    let is_index = path.extension().is_some_and(|end| end == "index");
    let content = found
        .entry(path.with_extension(""))
        .or_insert_with(|| OnDisk {
            path: path.clone(),
            used: SystemTime::UNIX_EPOCH,
            taken_bytes: 0,
        });
    content.taken_bytes += metadata.blocks() * 512;
    if is_index {
        content.used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    }
}

/// What a cache that takes `taken_bytes` may take without a bound of its own (4.1).
fn limit_of_disk(folder: &Path, taken_bytes: u64, tell: fn(&str)) -> io::Result<u64> {
    let disk = nix::sys::statvfs::statvfs(folder)?;
    let unit = disk.fragment_size();
    let (free_bytes, kept_bytes) = (disk.blocks_available() * unit, disk.blocks() * unit / 20);
    let limit_bytes = (free_bytes + taken_bytes).saturating_sub(kept_bytes);
    if limit_bytes < SMALL_BYTES {
        tell(&format!(
            "the cache in {} takes at most {} MiB: its disk has {} MiB free, and a twentieth of \
             it, {} MiB, stays free. Free some space, or give a bound (--max-cache-size).",
            folder.display(),
            limit_bytes >> 20,
            free_bytes >> 20,
            kept_bytes >> 20
        ));
    }
    Ok(limit_bytes)
}

fn check_owner(folder: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(folder)?;
    let is_ours = metadata.uid() == nix::unistd::geteuid().as_raw();
    if !metadata.is_dir() || !is_ours || metadata.mode() & 0o022 != 0 {
        return Err(io::Error::new(
            ErrorKind::PermissionDenied,
            format!(
                "{} must be a folder of this user in which nobody else may write (uid {}, mode \
                 {:o})",
                folder.display(),
                metadata.uid(),
                metadata.mode() & 0o7777
            ),
        ));
    }
    Ok(())
}

fn check_range(name: &ContentName, range: &Range<u64>) {
    let ends_well = range.end.is_multiple_of(BLOCK_BYTES) || range.end == name.size_bytes;
    assert!(
        range.start.is_multiple_of(BLOCK_BYTES)
            && range.start < range.end
            && range.end <= name.size_bytes
            && ends_well,
        "{range:?} is not of whole blocks of {} bytes",
        name.size_bytes
    );
}

fn bytes_of(name: &ContentName, blocks: Range<u64>) -> Range<u64> {
    blocks.start * BLOCK_BYTES..(blocks.end * BLOCK_BYTES).min(name.size_bytes)
}

fn push_missing(found: &mut Vec<Found>, range: Range<u64>) {
    match found.last_mut() {
        Some(Found::Missing(before)) if before.end == range.start => before.end = range.end,
        _ => found.push(Found::Missing(range)),
    }
}
