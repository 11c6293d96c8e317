// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Copies between open files inside the store (copy_file_range(2)). `mount/daemon` calls it.

use std::sync::Arc;

use weft_store::Range;

use crate::fault::{Fault, Reason};
use crate::handles::REMOTE;
use crate::open_files::{OpenFiles, Place};

/// Chosen: what is shorter costs less to read and write than to copy by a request.
const LEAST_COPY_BYTES: u64 = 1 << 20;

/// Copies a range of one open file to another one inside the store; how many bytes.
///
/// # Errors
/// `Unsupported` where their bytes must pass through the client: ranges that are short, or
/// that the store does not have; `NotOpen`.
pub async fn copy_range(
    files: &OpenFiles,
    from: Place,
    to: Place,
    most: u64,
) -> Result<u64, Fault> {
    if (from.handle | to.handle) & REMOTE != 0 {
        // Another node of the job has one of them.
        return Err(Reason::Unsupported.into());
    }
    let (source, target) = (files.open.get(from.handle)?, files.open.get(to.handle)?);
    let draft = target.draft.as_ref().ok_or(Reason::NotOpen)?;
    if source.ino == target.ino {
        return Err(Reason::Unsupported.into());
    }
    let version = Arc::new(files.version(source.ino)?);
    let size = version.size_bytes;
    if from.offset >= size {
        return Ok(0);
    }
    let range = Range::new(
        from.offset,
        size.min(from.offset.saturating_add(most.max(1))),
    );
    if range.byte_count() < LEAST_COPY_BYTES {
        return Err(Reason::Unsupported.into());
    }
    let (version, at) = match files.draft(source.ino) {
        Some(draft) => draft
            .in_one_object(range)
            .await
            .ok_or(Reason::Unsupported)?,
        None if version.etag == *files.reader(&source)?.etag() => (version, range.start),
        None => return Err(Reason::Unsupported.into()),
    };
    let there = Range::new(at, at + range.byte_count());
    draft.copy(to.offset, &version, there).await?;
    Ok(range.byte_count())
}
