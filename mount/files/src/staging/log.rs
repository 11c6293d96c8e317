// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One staged file: its log, and its data beside it. Both files only grow, so every record can be
//! verified. Bytes that were written again lie there twice until [`crate::staging::content`] writes
//! a new log. docs/mount-stage.md specifies both.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::fcntl::{FallocateFlags, fallocate};
use weft_store::Range;

use crate::fault::Fault;
use crate::staging::record::{HEAD, Note, Record, Write, crc};
use crate::staging::stage::{Stage, refused};

/// Measured: what is written at once. Of 64 KiB to 1 MiB this costs least; 1 MiB costs 2.6 times as
/// much (docs/lab/2026-11-27-writing-in-order-through-a-mount.md).
const PIECE_BYTES: usize = 256 << 10;

/// The two files of a staged file.
#[derive(Debug)]
pub struct Log {
    stage: Arc<Stage>,
    /// Without the endings `.log` and `.data`.
    name: PathBuf,
    /// None while nobody uses them: many files may wait to be published.
    files: Option<Files>,
    log_bytes: u64,
    data_bytes: u64,
    /// Room that was taken of the stage.
    held_bytes: u64,
    /// Of them, what is only removed now.
    leaving_bytes: u64,
    /// Stays for the next mount when this is dropped.
    is_kept: bool,
}

#[derive(Debug)]
struct Files {
    log: File,
    data: File,
}

impl Log {
    /// An empty one.
    ///
    /// # Errors
    /// What the system said; `NoSpace`.
    pub fn create(stage: &Arc<Stage>) -> Result<Self, Fault> {
        let name = stage.new_name();
        let mut log = Self {
            stage: Arc::clone(stage),
            files: None,
            name,
            log_bytes: 0,
            data_bytes: 0,
            held_bytes: 0,
            leaving_bytes: 0,
            is_kept: false,
        };
        log.open(true)?;
        log.append(&HEAD)?;
        Ok(log)
    }

    /// One that is there.
    pub fn found(stage: &Arc<Stage>, name: PathBuf) -> Self {
        let length = |ending| {
            let found = std::fs::metadata(name.with_extension(ending));
            found.map_or(0, |found| found.len())
        };
        Self {
            stage: Arc::clone(stage),
            files: None,
            log_bytes: length("log"),
            data_bytes: length("data"),
            name,
            held_bytes: 0,
            leaving_bytes: 0,
            is_kept: true,
        }
    }

    fn path(&self, ending: &str) -> PathBuf {
        self.name.with_extension(ending)
    }

    fn open(&mut self, is_new: bool) -> Result<&Files, Fault> {
        if self.files.is_none() {
            let open = |path: &Path| {
                let mut options = OpenOptions::new();
                options.read(true).write(true).mode(0o600);
                options
                    .create_new(is_new)
                    .open(path)
                    .map_err(|error| refused(&error, path))
            };
            let log = open(&self.path("log"))?;
            let data = open(&self.path("data"))?;
            self.files = Some(Files { log, data });
        }
        // It was just set.
        self.files
            .as_ref()
            .ok_or_else(|| crate::fault::Reason::Broken.into())
    }

    /// Closes the files until they are used again.
    pub fn sleep(&mut self) {
        self.files = None;
    }

    /// How many bytes of data lie here, those that were written again too.
    pub fn data_bytes(&self) -> u64 {
        self.data_bytes
    }

    /// Stages `data`, which is at `offset` of the file; where it lies in the data.
    ///
    /// # Errors
    /// `NoSpace` before anything is taken; what the system said.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> Result<u64, Fault> {
        let length = data.len() as u64;
        self.stage.take(length)?;
        self.held_bytes += length;
        let at = self.data_bytes;
        let path = self.path("data");
        let write = Record::Write(Write {
            offset,
            at,
            length,
            crc: crc(data),
        });
        let written = write_in_pieces(&self.open(false)?.data, data, at);
        let written = written.map_err(|error| refused(&error, &path));
        if let Err(fault) = written.and_then(|()| self.append(&write.encode())) {
            self.stage.give(length);
            self.held_bytes -= length;
            return Err(fault);
        }
        self.data_bytes += length;
        Ok(at)
    }

    /// Writes a record beside those of writes.
    ///
    /// # Errors
    /// What the system said.
    pub fn note(&mut self, note: Note) -> Result<(), Fault> {
        self.append(&Record::Note(note).encode())
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let length = bytes.len() as u64;
        self.stage.take(length)?;
        let (at, path) = (self.log_bytes, self.path("log"));
        if let Err(error) = self.open(false)?.log.write_all_at(bytes, at) {
            self.stage.give(length);
            return Err(refused(&error, &path));
        }
        self.held_bytes += length;
        self.log_bytes += length;
        Ok(())
    }

    /// Reads data.
    ///
    /// # Errors
    /// What the system said.
    pub fn read(&mut self, at: u64, into: &mut [u8]) -> Result<(), Fault> {
        let path = self.path("data");
        let read = self.open(false)?.data.read_exact_at(into, at);
        read.map_err(|error| refused(&error, &path))
    }

    /// Reads data behind what `into` has, which need not be filled with zeros first.
    ///
    /// # Errors
    /// What the system said.
    pub fn read_behind(&mut self, place: Range, into: &mut Vec<u8>) -> Result<(), Fault> {
        let path = self.path("data");
        let mut data = &self.open(false)?.data;
        let read = data.seek(SeekFrom::Start(place.start));
        let read = read.and_then(|_| data.take(place.byte_count()).read_to_end(into));
        match read {
            Ok(read) if read as u64 == place.byte_count() => Ok(()),
            Ok(_) => Err(refused(&io::ErrorKind::UnexpectedEof.into(), &path)),
            Err(error) => Err(refused(&error, &path)),
        }
    }

    /// Lets data go that nobody needs here any more.
    pub fn punch(&mut self, range: Range) {
        let Ok(files) = self.open(false) else {
            return;
        };
        let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
        let (at, length) = (range.start as i64, range.byte_count() as i64);
        // Where the file system cannot, the bytes stay till the end.
        if fallocate(&files.data, flags, at, length).is_ok() {
            self.stage.give(range.byte_count());
            self.held_bytes = self.held_bytes.saturating_sub(range.byte_count());
        }
    }

    /// Waits until all is on the disk.
    ///
    /// # Errors
    /// What the system said.
    pub fn sync(&mut self) -> Result<(), Fault> {
        let path = self.path("data");
        let files = self.open(false)?;
        let synced = files.data.sync_data().and_then(|()| files.log.sync_data());
        synced.map_err(|error| refused(&error, &path))
    }

    /// Nobody needs it any more: it takes no room of the stage, and no other mount finds it. Its
    /// data go when this is dropped, which may take long; who needs their room waits for it.
    pub fn retire(&mut self) {
        let _ = std::fs::remove_file(self.path("log"));
        self.stage.leave(self.held_bytes);
        self.leaving_bytes += self.held_bytes;
        self.held_bytes = 0;
    }

    /// Leaves the files for the next mount.
    pub fn keep(&mut self) -> &Path {
        self.is_kept = true;
        &self.name
    }

    /// Removes the files when this is dropped.
    pub fn discard(&mut self) {
        self.is_kept = false;
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.stage.give(self.held_bytes);
        if !self.is_kept {
            // The log first: data without a log are nobody's.
            let _ = std::fs::remove_file(self.path("log"));
            let _ = std::fs::remove_file(self.path("data"));
        }
        // The kernel removes it when nobody has it open.
        self.files = None;
        self.stage.left(self.leaving_bytes);
    }
}

fn write_in_pieces(file: &File, data: &[u8], mut at: u64) -> io::Result<()> {
    for piece in data.chunks(PIECE_BYTES) {
        file.write_all_at(piece, at)?;
        at += piece.len() as u64;
    }
    Ok(())
}

/// The records of a log, up to the first that is not whole.
///
/// # Errors
/// What the system said; `InvalidData` for what is no log of this version.
pub fn read_records(name: &Path) -> io::Result<Vec<Record>> {
    let bytes = std::fs::read(name.with_extension("log"))?;
    let Some(mut rest) = bytes.strip_prefix(&HEAD) else {
        let text = "this is no log of version 1";
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    };
    let mut records = Vec::new();
    while let Some((record, length)) = Record::decode(rest) {
        records.push(record);
        rest = &rest[length..];
    }
    Ok(records)
}
