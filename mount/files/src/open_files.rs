// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Open files: open, read, release. [`crate::bucket_files`] holds them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use weft_store::Failure;

use crate::core::Core;
use crate::fault::{Fault, Reason};
use crate::handles::Open;
use crate::pieces::Pieces;
use crate::reader::Reader;
use crate::search;
use crate::version::Version;

/// Chosen: a name that is opened was looked up the moment before, also where nothing is believed
/// for any time.
const SAME_MOMENT: Duration = Duration::from_millis(100);

/// A file that is open.
struct OpenFile {
    reader: Reader,
}

/// A file was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened {
    /// For the calls that follow.
    pub handle: u64,
    /// The content is the one whose pages the kernel may hold.
    pub keeps_pages: bool,
}

/// The open files of a mount.
pub struct OpenFiles {
    core: Arc<Core>,
    open: Open<OpenFile>,
    pieces: Pieces,
}

impl OpenFiles {
    /// None yet.
    pub fn new(core: Arc<Core>) -> Self {
        let (store, runtime) = (Arc::clone(&core.store), core.runtime.clone());
        let pieces = Pieces::new(store, runtime, core.settings.cache_bytes);
        Self {
            core,
            open: Open::default(),
            pieces,
        }
    }

    /// Opens a file for reading: the content that the store has now, or had within the time to
    /// live. Later changes of the object are not read through this handle.
    ///
    /// # Errors
    /// `NotFound`, `IsFolder`, and `Denied` for what lies in an archive.
    pub async fn open(&self, ino: u64) -> Result<Opened, Fault> {
        let ttl = self.core.settings.ttl.max(SAME_MOMENT);
        search::freshen(&self.core, ino, ttl).await?;
        let key = self.core.key(ino)?;
        let mut nodes = self.core.nodes();
        let Some(file) = nodes.file(ino) else {
            return Err(Reason::IsFolder.into());
        };
        if file.info.is_archived {
            let text = format!("`{key}` lies in an archive; restore it, then open it again");
            return Err(Fault::because(Reason::Denied, text));
        }
        let etag = Some(file.info.etag.clone());
        let keeps_pages = file.pages_of == etag;
        file.pages_of = etag;
        let version = Version::new(key, &file.info);
        drop(nodes);
        let handle = self.open.add(OpenFile {
            reader: Reader::new(Arc::new(version)),
        });
        Ok(Opened {
            handle,
            keeps_pages,
        })
    }

    /// Up to `size` bytes from `offset` on; fewer only at the end of the file.
    ///
    /// # Errors
    /// `Stale` where the object is another one since it was opened.
    pub async fn read(&self, handle: u64, offset: u64, size: u64) -> Result<Bytes, Fault> {
        let file = self.open.get(handle)?;
        let read = file.reader.read(&self.pieces, offset, size).await;
        read.map_err(|error| match error.failure {
            Failure::Missing | Failure::Changed => Fault::because(Reason::Stale, error.to_string()),
            _ => error.into(),
        })
    }

    /// Closes a file that was opened for reading.
    pub fn close(&self, handle: u64) {
        self.open.remove(handle);
    }
}
