// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Writes that wait for nothing but this host's disk: a thread of the kernel's calls does them at
//! once. What they leave to be sent is sent behind them.

use crate::draft::Written;
use crate::fault::{Fault, Reason};
use crate::open_files::OpenFiles;

/// Writes as [`OpenFiles::write`], without waiting for anything but this host's disk. `None` where
/// it would have to wait, and then nothing is done.
///
/// # Errors
/// As [`OpenFiles::write`].
pub fn write_now(
    files: &OpenFiles,
    handle: u64,
    offset: u64,
    data: &[u8],
) -> Option<Result<Written, Fault>> {
    let file = files.open.get(handle).ok()?;
    let offset = (!file.mode.appends).then_some(offset);
    file.draft.as_ref()?.write_now(offset, data)
}

/// Sends what [`write_now`] left to be sent.
///
/// # Errors
/// As [`OpenFiles::write`].
pub async fn send_ready(files: &OpenFiles, handle: u64) -> Result<(), Fault> {
    let file = files.open.get(handle)?;
    let draft = file.draft.as_ref().ok_or(Reason::NotOpen)?;
    draft.send_ready().await
}
