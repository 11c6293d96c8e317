// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One file of a test, through POSIX calls: whole transfers at given offsets. An error is a
//! sentence for the user.
//!
//! Called by phase. open(2) with O_DIRECT needs aligned memory, offsets and lengths; the memory is
//! weft-mpi's page-aligned buffer.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::ior::test::Through;
use weft_ranks::refusal::Failed;

/// O_DIRECT as x86-64 and most other Linux systems number it (asm-generic/fcntl.h); 64-bit Arm has
/// its own.
pub(crate) const DIRECT: i32 = if cfg!(target_arch = "aarch64") {
    0o200_000
} else {
    0o40_000
};

/// An open file.
#[derive(Debug)]
pub struct Target {
    file: File,
    path: PathBuf,
    through: Through,
}

fn failed(what: &str, path: &Path, error: &io::Error, through: Through) -> Failed {
    let hint = match error.raw_os_error() {
        // EINVAL
        Some(22) if through.direct => {
            "; with --posix.odirect the file system must allow it, and -t must be a multiple of \
             its blocks (4k is safe)"
        }
        // ENOSPC, EDQUOT
        Some(28 | 122) => "; make room, or choose a smaller -b or -s",
        // ENOENT
        Some(2) => match missing_folder(path) {
            Some(folder) => {
                let folder = folder.display();
                &format!("; the folder {folder} is missing: make it first, or correct -o")
            }
            None => "; write it first (-w, and -k to keep it), or correct -o",
        },
        // EFBIG
        Some(27) => {
            "; `ulimit -f` allows no longer files (the shell's own counts KiB): raise it, or \
             choose a smaller -b"
        }
        // EACCES
        Some(13) => "; choose a place in -o that this user may use",
        _ => "",
    };
    Failed::new(format!(
        "ERROR: cannot {what} {}: {error}{hint}",
        path.display()
    ))
}

/// The outermost folder above a file that is not there.
fn missing_folder(path: &Path) -> Option<&Path> {
    let above = path.ancestors().skip(1);
    above
        .filter(|folder| !folder.as_os_str().is_empty() && !folder.exists())
        .last()
}

/// Makes the folder of a file for -u, as IOR does: one level, and one that is there is no error.
///
/// # Errors
/// Path and reason.
pub fn make_own_folder(path: &str) -> Result<(), Failed> {
    let Some(folder) = Path::new(path).parent() else {
        return Ok(());
    };
    match std::fs::create_dir(folder) {
        Err(error) if !folder.is_dir() => {
            Err(failed("make folder", folder, &error, Through::default()))
        }
        _ => Ok(()),
    }
}

impl Target {
    /// Opens for writing, making the file if it is not there, or for reading.
    ///
    /// # Errors
    /// Path, reason and what may help.
    pub fn open(path: &str, write: bool, through: Through) -> Result<Self, Failed> {
        let path = PathBuf::from(path);
        let mut options = OpenOptions::new();
        options.read(true).write(write).create(write).mode(0o664);
        if through.direct {
            options.custom_flags(DIRECT);
        }
        match options.open(&path) {
            Ok(file) => Ok(Self {
                file,
                path,
                through,
            }),
            Err(error) => Err(failed("open", &path, &error, through)),
        }
    }

    /// Writes all of `bytes` at a place.
    ///
    /// # Errors
    /// As [`Target::open`].
    pub fn write(&self, bytes: &[u8], place_bytes: u64) -> Result<(), Failed> {
        self.file
            .write_all_at(bytes, place_bytes)
            .map_err(|error| failed("write", &self.path, &error, self.through))?;
        if self.through.sync_each {
            self.sync()?;
        }
        Ok(())
    }

    /// Reads all of `room` from a place.
    ///
    /// # Errors
    /// As [`Target::open`]; an end of the file before the end of the room is one.
    pub fn read(&self, room: &mut [u8], place_bytes: u64) -> Result<(), Failed> {
        self.file.read_exact_at(room, place_bytes).map_err(|error| {
            if error.kind() == io::ErrorKind::UnexpectedEof {
                return Failed::new(format!(
                    "ERROR: {} ends before byte {}; write it with the same -b, -t and -s first",
                    self.path.display(),
                    place_bytes + room.len() as u64
                ));
            }
            failed("read", &self.path, &error, self.through)
        })
    }

    /// close(2), whose error may be the only word of bytes that never reached their place (network
    /// file systems, FUSE).
    ///
    /// # Errors
    /// As [`Target::open`].
    pub fn close(self) -> Result<(), Failed> {
        let (path, through) = (self.path, self.through);
        nix::unistd::close(self.file)
            .map_err(|error| failed("close", &path, &error.into(), through))
    }

    /// fsync(2).
    ///
    /// # Errors
    /// As [`Target::open`].
    pub fn sync(&self) -> Result<(), Failed> {
        self.file
            .sync_all()
            .map_err(|error| failed("sync", &self.path, &error, self.through))
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.path.display().fmt(f)
    }
}

/// Removes a file; one that is not there is no error.
///
/// # Errors
/// Path and reason.
pub fn remove(path: &str) -> Result<(), Failed> {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Failed::new(format!("ERROR: cannot remove {path}: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_folder_is_named_and_not_made_but_for_that_of_each_task() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("absent");
        let path = folder.join("below/f").to_string_lossy().into_owned();
        for write in [true, false] {
            let open = Target::open(&path, write, Through::default());
            let why = open.unwrap_err().to_string();
            let words = format!("the folder {} is missing", folder.display());
            assert!(why.contains(&words), "{why}");
        }
        assert!(
            make_own_folder(&path)
                .unwrap_err()
                .to_string()
                .contains("is missing")
        );
        assert!(!folder.exists());
        std::fs::create_dir(&folder).unwrap();
        make_own_folder(&path).unwrap();
        make_own_folder(&path).unwrap();
        Target::open(&path, true, Through::default()).unwrap();
    }

    #[test]
    fn what_is_written_is_read_and_a_short_file_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f").to_string_lossy().into_owned();
        let target = Target::open(&path, true, Through::default()).unwrap();
        target.write(b"abcdefgh", 4).unwrap();
        let mut room = [0; 4];
        target.read(&mut room, 6).unwrap();
        assert_eq!(&room, b"cdef");
        let why = target.read(&mut room, 10).unwrap_err().to_string();
        assert!(why.contains("ends before byte 14"), "{why}");
        remove(&path).unwrap();
        remove(&path).unwrap();
        let why = Target::open(&path, false, Through::default())
            .unwrap_err()
            .to_string();
        assert!(
            why.contains(&path) && why.contains("write it first"),
            "{why}"
        );
    }
}
