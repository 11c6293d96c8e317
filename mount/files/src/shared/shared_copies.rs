// SPDX-License-Identifier: Apache-2.0 OR MIT
//! copy_file_range(2) between files that several nodes may write. `mount/daemon` calls it.

use crate::copying;
use crate::fault::{Fault, Reason};
use crate::handles::REMOTE;
use crate::open_files::Place;
use crate::shared::messages::DATA_BYTES;
use crate::shared::shared_files::SharedFiles;

/// Chosen: what one call copies through this node; a signal can end a copy between two calls.
const COPIED_BYTES: u64 = 16 << 20;

/// As [`copying::copy_range`]. Where another node has one of the two files, or the store does not
/// have their bytes, these pass through this node: the kernel would copy from pages that it keeps,
/// and others write the file.
///
/// # Errors
/// As there; those of reading and writing, if nothing was copied.
pub async fn copy_range(
    shared: &SharedFiles,
    from: Place,
    to: Place,
    most: u64,
) -> Result<u64, Fault> {
    if (from.handle | to.handle) & REMOTE == 0 {
        let copied = copying::copy_range(&shared.files.open_files, from, to, most).await;
        let passes = |fault: &Fault| fault.reason == Reason::Unsupported;
        if shared.others.job.is_none() || !copied.as_ref().is_err_and(passes) {
            return copied;
        }
    }
    let most = most.min(COPIED_BYTES);
    let mut copied = 0;
    while copied < most {
        let size = (most - copied).min(DATA_BYTES);
        match pass(shared, from, to, copied, size).await {
            Ok(0) => break,
            Ok(length) => copied += length,
            // What was copied before is told; the next call meets the error again.
            Err(fault) if copied == 0 => return Err(fault),
            Err(_) => break,
        }
    }
    Ok(copied)
}

/// Copies up to `size` bytes that lie `at` bytes behind both places; how many there were.
async fn pass(
    shared: &SharedFiles,
    from: Place,
    to: Place,
    at: u64,
    size: u64,
) -> Result<u64, Fault> {
    let data = shared.read(from.handle, from.offset + at, size).await?;
    let length = data.len() as u64;
    if length > 0 {
        shared.write(to.handle, to.offset + at, data).await?;
    }
    Ok(length)
}
