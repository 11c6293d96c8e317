// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The loads in which tar unpacks small files.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::commands::{Outcome, run, text, words};
use crate::fault::Fault;

/// Unpacks so many files into a new folder. They stay in the bucket: to remove them would take a
/// program as long again, and each run has a folder with a name of its own.
///
/// # Errors
/// The archive or the folder cannot be made, or tar fails.
pub fn unpack(folder: &Path, files: u64, limit: Duration) -> Result<Outcome, Fault> {
    let failed = Fault::system("make an archive");
    let source = tempfile::TempDir::new().map_err(&failed)?;
    for file in 0..files {
        fs::write(source.path().join(format!("f{file:05}")), [7; 4096]).map_err(&failed)?;
    }
    let archive = tempfile::NamedTempFile::new().map_err(&failed)?;
    let (archive, source) = (text(archive.path()), text(source.path()));
    run(
        &mut words("tar", &["-C", &source, "-cf", &archive, "."]),
        limit,
    )?;
    let unpacked = tempfile::Builder::new()
        .prefix("unpacked-")
        .tempdir_in(folder)
        .map_err(Fault::system(format!(
            "make a folder in {}",
            folder.display()
        )))?;
    let to = text(&unpacked.keep());
    let tar = &[
        "-C",
        &to,
        "--no-same-owner",
        "--no-same-permissions",
        "-m",
        "-xf",
        &archive,
    ];
    let ended = run(&mut words("tar", tar), limit)?;
    Ok(Outcome {
        figure: ended.seconds,
        asked_bytes: 0,
        is_cut: ended.is_cut,
    })
}
