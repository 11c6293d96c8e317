// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The two files of one content: docs/mount-cache.md, clauses 2 and 3. [`crate::disk_cache`] opens
//! them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::format::{BLOCK_BYTES, ContentName, ENTRY_BYTES, HEAD_BYTES, entry};

/// A content that is open.
#[derive(Debug)]
pub struct Content {
    name: ContentName,
    data: File,
    index: File,
}

/// The paths of a content's files: data, index.
pub fn paths(folder: &Path, name: &ContentName) -> [PathBuf; 2] {
    let text = name.text();
    let below = folder.join(&text[..2]);
    [
        below.join(format!("{text}.data")),
        below.join(format!("{text}.index")),
    ]
}

impl Content {
    /// Opens the files if they are there, and writes down that the content is used now.
    ///
    /// # Errors
    /// The disk's. `NotFound` also where another process is just making the files, and where they
    /// are not of this content: then they are removed.
    pub fn open(folder: &Path, name: &ContentName) -> io::Result<Self> {
        let [data_path, index_path] = paths(folder, name);
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        let content = Self {
            name: *name,
            data: options.open(&data_path)?,
            index: options.open(&index_path)?,
        };
        if !content.is_right()? {
            let _ = fs::remove_file(index_path);
            let _ = fs::remove_file(data_path);
            return Err(ErrorKind::NotFound.into());
        }
        content.mark_used(SystemTime::now());
        Ok(content)
    }

    /// Opens the files, made where they are missing.
    ///
    /// # Errors
    /// The disk's.
    pub fn create(folder: &Path, name: &ContentName) -> io::Result<Self> {
        match Self::open(folder, name) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            opened => return opened,
        }
        let [data_path, index_path] = paths(folder, name);
        if let Some(below) = data_path.parent() {
            match fs::create_dir(below) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).mode(0o600);
        let content = Self {
            name: *name,
            data: options.open(data_path)?,
            index: options.open(index_path)?,
        };
        // Another process may do the same at once: both write the same.
        content.data.set_len(name.size_bytes)?;
        content.index.write_all_at(&name.head(), 0)?;
        content
            .index
            .set_len(HEAD_BYTES as u64 + name.block_count() * ENTRY_BYTES)?;
        Ok(content)
    }

    /// # Errors
    /// The disk's; `NotFound` where there is no head yet.
    fn is_right(&self) -> io::Result<bool> {
        let mut head = [0; HEAD_BYTES];
        match self.index.read_exact_at(&mut head, 0) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                return Err(ErrorKind::NotFound.into());
            }
            read => read?,
        }
        Ok(head == self.name.head() && self.data.metadata()?.len() == self.name.size_bytes)
    }

    /// Writes down when the content was used last.
    pub fn mark_used(&self, used: SystemTime) {
        // Only the order in which contents leave depends on it.
        let _ = self.index.set_modified(used);
    }

    /// Whether the files have names still: another process may have removed them.
    pub fn is_named(&self) -> bool {
        let metadata = self.index.metadata();
        metadata.is_ok_and(|metadata| metadata.nlink() > 0)
    }

    /// The entries of `count` blocks from `first` on; what an index that was cut lacks is missing.
    fn entries(&self, first: u64, count: u64) -> io::Result<Vec<u64>> {
        let mut bytes = vec![0; (count * ENTRY_BYTES) as usize];
        let mut filled = 0;
        while filled < bytes.len() {
            let at = HEAD_BYTES as u64 + first * ENTRY_BYTES + filled as u64;
            match self.index.read_at(&mut bytes[filled..], at)? {
                0 => break,
                read => filled += read,
            }
        }
        let entries = bytes.chunks_exact(ENTRY_BYTES as usize);
        let entries = entries.map(|entry| u64::from_le_bytes(entry.try_into().expect("8 bytes")));
        Ok(entries.collect())
    }

    /// Of `count` blocks from `first` on, which are there; not yet checked.
    ///
    /// # Errors
    /// The disk's.
    pub fn present(&self, first: u64, count: u64) -> io::Result<Vec<bool>> {
        let entries = self.entries(first, count)?;
        Ok(entries.iter().map(|entry| *entry != 0).collect())
    }

    /// Reads `count` blocks from `first` on in one go, and answers the numbers of those that are
    /// missing or wrong; those that are wrong are missing from now on.
    ///
    /// # Errors
    /// The disk's.
    pub fn read(&self, first: u64, count: u64) -> io::Result<(Vec<u8>, Vec<u64>, usize)> {
        let entries = self.entries(first, count)?;
        let start = first * BLOCK_BYTES;
        let end = (start + count * BLOCK_BYTES).min(self.name.size_bytes);
        let mut bytes = vec![0; (end - start) as usize];
        self.data.read_exact_at(&mut bytes, start)?;
        let blocks = bytes.chunks(BLOCK_BYTES as usize);
        let mut missing = Vec::new();
        let mut wrong_count = 0;
        for ((block, bytes), wanted) in (first..).zip(blocks).zip(entries) {
            if wanted == 0 {
                missing.push(block);
            } else if entry(bytes) != wanted {
                self.forget(block)?;
                wrong_count += 1;
                missing.push(block);
            }
        }
        Ok((bytes, missing, wrong_count))
    }

    fn forget(&self, block: u64) -> io::Result<()> {
        let at = HEAD_BYTES as u64 + block * ENTRY_BYTES;
        self.index.write_all_at(&[0; ENTRY_BYTES as usize], at)
    }

    /// Writes whole blocks from `first` on; answers how many bytes of them are new.
    ///
    /// # Errors
    /// The disk's: then some blocks are missing still.
    pub fn write(&self, first: u64, bytes: &[u8]) -> io::Result<u64> {
        let blocks = bytes.chunks(BLOCK_BYTES as usize);
        let old = self.entries(first, blocks.len() as u64)?;
        self.data.write_all_at(bytes, first * BLOCK_BYTES)?;
        let new: Vec<u8> = blocks
            .clone()
            .flat_map(|block| entry(block).to_le_bytes())
            .collect();
        self.index
            .write_all_at(&new, HEAD_BYTES as u64 + first * ENTRY_BYTES)?;
        let added = blocks.zip(old).filter(|(_, old)| *old == 0);
        Ok(added.map(|(block, _)| block.len() as u64).sum())
    }

    /// A descriptor of the data, where every block is there and right: reads it all.
    ///
    /// # Errors
    /// The disk's.
    pub fn whole(&self) -> io::Result<Option<File>> {
        /// Chosen: what is checked at once.
        const STEP: u64 = 64;
        let count = self.name.block_count();
        for first in (0..count).step_by(STEP as usize) {
            let (_, missing, _) = self.read(first, STEP.min(count - first))?;
            if !missing.is_empty() {
                return Ok(None);
            }
        }
        self.data.try_clone().map(Some)
    }

    /// What both files take on the disk, in bytes.
    ///
    /// # Errors
    /// The disk's.
    pub fn taken_bytes(&self) -> io::Result<u64> {
        Ok((self.data.metadata()?.blocks() + self.index.metadata()?.blocks()) * 512)
    }
}
