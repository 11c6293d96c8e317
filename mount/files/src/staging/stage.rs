// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The folder in which a mount stages written bytes, and its size limit. A mount has a session in
//! it, which it locks as long as it lives. A session that nobody locks belongs to a dead mount;
//! [`crate::staging::recovery`] handles it. docs/mount-stage.md specifies the folder.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use tokio::task::block_in_place;

use crate::fault::{Fault, Reason};

/// Names the file that a living mount locks.
pub const SESSION_FILE: &str = "session";

/// What a session is of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Of the folder's format.
    pub version: u32,
    /// Store, bucket and prefix: what is staged belongs there only.
    pub place: String,
    /// Where it is mounted.
    pub folder: PathBuf,
    /// The mount's.
    pub process: u32,
}

/// Where a mount stages what is written.
#[derive(Debug)]
pub struct Stage {
    folder: PathBuf,
    limit_bytes: u64,
    /// Removed with everything at the end.
    is_temporary: bool,
    counts: Mutex<Counts>,
    has_left: Condvar,
    _lock: Flock<File>,
}

#[derive(Debug, Default)]
struct Counts {
    used_bytes: u64,
    /// Of no use any more, and still on the disk.
    leaving_bytes: u64,
    next: u64,
}

impl Stage {
    /// A new session below `parent`.
    ///
    /// # Errors
    /// Where the folder is somebody else's, or cannot be written.
    pub fn open(parent: &Path, limit_bytes: u64, session: &Session) -> io::Result<Self> {
        make_private(parent)?;
        let mark = format!("{}-{}", std::process::id(), new_id());
        let folder = parent.join(mark);
        DirBuilder::new().mode(0o700).create(&folder)?;
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(folder.join(SESSION_FILE))?;
        file.write_all(&serde_json::to_vec(session)?)?;
        let lock = Flock::lock(file, FlockArg::LockExclusiveNonblock);
        let lock = lock.map_err(|(_, errno)| io::Error::from(errno))?;
        Ok(Self {
            folder,
            limit_bytes,
            is_temporary: false,
            counts: Mutex::default(),
            has_left: Condvar::new(),
            _lock: lock,
        })
    }

    /// A session of its own in the system's folder for temporary files, for tests.
    ///
    /// # Errors
    /// As [`Stage::open`].
    pub fn temporary(limit_bytes: u64) -> io::Result<Self> {
        let parent = std::env::temp_dir().join(format!("weft-stage-{}", new_id()));
        let session = Session {
            version: 1,
            place: String::new(),
            folder: PathBuf::new(),
            process: std::process::id(),
        };
        let mut stage = Self::open(&parent, limit_bytes, &session)?;
        stage.is_temporary = true;
        Ok(stage)
    }

    /// The session's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A path that no other log of this session has, without its ending.
    pub fn new_name(&self) -> PathBuf {
        let mut counts = self.counts();
        counts.next += 1;
        self.folder.join(format!("{:08}", counts.next))
    }

    /// Notes an object that is there only for those who have it open, so that the next mount
    /// removes it if this one does not. The path of the note.
    ///
    /// # Errors
    /// What the system said.
    pub fn note_hidden(&self, key: &str) -> io::Result<PathBuf> {
        let path = self.new_name().with_extension("hidden");
        std::fs::write(&path, key)?;
        Ok(path)
    }

    /// Notes the record of a folder's rename, so that the next mount finishes it at once. The path
    /// of the note.
    ///
    /// # Errors
    /// What the system said.
    pub fn note_rename(&self, key: &str) -> io::Result<PathBuf> {
        let path = self.new_name().with_extension("rename");
        std::fs::write(&path, key)?;
        Ok(path)
    }

    fn must_leave_first(&self, counts: &Counts, bytes: u64) -> bool {
        let used = counts.used_bytes + bytes;
        used <= self.limit_bytes && used + counts.leaving_bytes > self.limit_bytes
    }

    /// Whether [`Stage::take`] waits.
    pub fn must_wait(&self, bytes: u64) -> bool {
        self.must_leave_first(&self.counts(), bytes)
    }

    /// Takes room for so many bytes, after what is being removed has left the disk if it must.
    ///
    /// # Errors
    /// `NoSpace`.
    pub fn take(&self, bytes: u64) -> Result<(), Fault> {
        let mut counts = self.counts();
        if self.must_leave_first(&counts, bytes) {
            drop(counts);
            counts = block_in_place(|| {
                let must = |counts: &mut Counts| self.must_leave_first(counts, bytes);
                let left = self.has_left.wait_while(self.counts(), must);
                left.unwrap_or_else(PoisonError::into_inner)
            });
        }
        let used = counts.used_bytes + bytes;
        if used > self.limit_bytes {
            let text = format!(
                "{} bytes of {} in {} are staged: {bytes} more do not fit. Publish or close \
                 files, or give more with --stage-limit",
                counts.used_bytes,
                self.limit_bytes,
                self.folder.display()
            );
            return Err(Fault::because(Reason::NoSpace, text));
        }
        counts.used_bytes = used;
        Ok(())
    }

    /// Gives room back.
    pub fn give(&self, bytes: u64) {
        let mut counts = self.counts();
        counts.used_bytes = counts.used_bytes.saturating_sub(bytes);
    }

    /// Bytes are of no use any more, and are being removed.
    pub fn leave(&self, bytes: u64) {
        let mut counts = self.counts();
        counts.used_bytes = counts.used_bytes.saturating_sub(bytes);
        counts.leaving_bytes += bytes;
    }

    /// They are removed.
    pub fn left(&self, bytes: u64) {
        self.counts().leaving_bytes -= bytes;
        self.has_left.notify_all();
    }

    /// What is staged now.
    pub fn used_bytes(&self) -> u64 {
        self.counts().used_bytes
    }

    /// Whether room is short.
    pub fn is_crowded(&self) -> bool {
        self.used_bytes() > self.limit_bytes / 2
    }

    /// What may be staged in all.
    pub fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if self.is_temporary {
            let parent = self.folder.parent().unwrap_or(&self.folder);
            let _ = std::fs::remove_dir_all(parent);
            return;
        }
        // Logs that are kept keep their folder, for the next mount.
        let files = std::fs::read_dir(&self.folder).map_or(2, Iterator::count);
        if files == 1 {
            let _ = std::fs::remove_file(self.folder.join(SESSION_FILE));
            let _ = std::fs::remove_dir(&self.folder);
        }
    }
}

/// A name that nothing else has: the time, the process, and chance.
pub fn new_id() -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.map_or(0, |now| now.as_nanos() as u64);
    format!(
        "{now:016x}{:08x}{:016x}",
        std::process::id(),
        fastrand::u64(..)
    )
}

/// Makes a folder that nobody else may enter, or finds that it is one: others may write the folder
/// that it is in.
pub fn make_private(folder: &Path) -> io::Result<()> {
    match DirBuilder::new()
        .recursive(false)
        .mode(0o700)
        .create(folder)
    {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let above = folder.parent().unwrap_or(folder);
            DirBuilder::new().recursive(true).create(above)?;
            DirBuilder::new().mode(0o700).create(folder)?;
        }
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = std::fs::symlink_metadata(folder)?;
    let is_ours = found.is_dir() && found.uid() == nix::unistd::geteuid().as_raw();
    if !is_ours || found.mode() & 0o077 != 0 {
        let text = format!(
            "{} is not a folder of yours that only you may enter; `chmod 700` it, or name another \
             one with --stage",
            folder.display()
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    Ok(())
}

/// What the system said when a staged file could not be written or read.
pub fn refused(error: &io::Error, path: &Path) -> Fault {
    let errno = error.raw_os_error().map(Errno::from_raw);
    let reason = match errno {
        Some(Errno::ENOSPC | Errno::EDQUOT | Errno::EFBIG) => Reason::NoSpace,
        _ => Reason::Broken,
    };
    Fault::because(reason, format!("{}: {error}", path.display()))
}
