// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A job key from a file that nobody else may read. Called by trust.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use zeroize::Zeroizing;

use crate::job_key::{BadKey, JobKey};

/// What is read at most: a key, and room for line ends.
const LIMIT_BYTES: u64 = 256;

/// Why a file gave no key.
#[derive(Debug)]
pub enum BadFile {
    /// It cannot be opened or read.
    Unreadable(io::Error),
    /// Its group or everybody may read or write it; the permission bits.
    Permissions(u32),
    /// What it holds is no key.
    Key(BadKey),
}

impl fmt::Display for BadFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(error) => write!(f, "it cannot be read: {error}"),
            Self::Permissions(mode) => write!(
                f,
                "others may read or write it (mode {mode:04o}), so the key in it is no secret: \
                 make a new one, and chmod 600"
            ),
            Self::Key(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for BadFile {}

/// Reads a key file. Setup.
///
/// # Errors
/// See [`BadFile`]; the permissions are those of the file that was opened, whatever happens to its
/// name meanwhile.
pub fn read(path: &Path) -> Result<JobKey, BadFile> {
    let file = File::open(path).map_err(BadFile::Unreadable)?;
    let mode = file.metadata().map_err(BadFile::Unreadable)?.mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(BadFile::Permissions(mode));
    }
    let mut text = Zeroizing::new(String::with_capacity(LIMIT_BYTES as usize));
    let mut reader = file.take(LIMIT_BYTES);
    reader
        .read_to_string(&mut text)
        .map_err(BadFile::Unreadable)?;
    JobKey::parse(&text).map_err(BadFile::Key)
}
