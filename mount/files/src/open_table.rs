// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is open: files, and those that are being written or wait to be published.
//! [`crate::open_files`] holds it; [`crate::open_names`] and [`crate::following`] change it when
//! names change.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weft_store::ETag;

use crate::core::Core;
use crate::draft::Draft;
use crate::drafts::Drafts;
use crate::fault::{Fault, Reason};
use crate::handles::Open;
use crate::hidden::Hidden;
use crate::reader::Reader;
use crate::renames::trails::Trail;
use crate::version::Version;

/// A file that is open.
pub(crate) struct OpenFile {
    /// The node's number.
    pub(crate) ino: u64,
    pub(crate) reader: Mutex<Arc<Reader>>,
    /// Of who may write.
    pub(crate) draft: Option<Arc<Draft>>,
    pub(crate) mode: Mode,
}

impl OpenFile {
    /// The content with the tag `old` lies elsewhere now.
    pub(crate) fn read_of(&self, version: &Arc<Version>, old: Option<&ETag>) {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        if old.is_some_and(|old| old == reader.etag()) {
            *reader = Arc::new(Reader::new(Arc::clone(version)));
        }
    }
}

/// How a file is opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mode {
    /// O_WRONLY or O_RDWR.
    pub writes: bool,
    /// O_APPEND.
    pub appends: bool,
    /// O_TRUNC.
    pub truncates: bool,
    /// The process that opens it; 0 where that is not known.
    pub process: u32,
}

/// The open files of a mount, without what was fetched of them.
pub struct OpenTable {
    pub(crate) core: Arc<Core>,
    pub(crate) open: Open<OpenFile>,
    /// Files that are being written, or wait to be published.
    pub(crate) drafts: Arc<Drafts>,
    /// Files that are open, and whose names are gone.
    pub(crate) hidden: Hidden,
    /// Files that were moved with their folder, and whose objects nobody has seen since.
    unseen: Mutex<HashMap<u64, Trail>>,
}

impl OpenTable {
    /// None yet.
    pub fn new(core: Arc<Core>) -> Self {
        Self {
            drafts: Arc::new(Drafts::new(Arc::clone(&core))),
            hidden: Hidden::new(Arc::clone(&core)),
            core,
            open: Open::default(),
            unseen: Mutex::default(),
        }
    }

    /// Of a file that is being written.
    pub(crate) fn draft(&self, ino: u64) -> Option<Arc<Draft>> {
        self.drafts.get(ino)
    }

    /// The nodes of all files that are open, or wait to be published.
    pub(crate) fn inos(&self) -> Vec<u64> {
        let open = self.open.all().into_iter().map(|file| file.ino);
        open.chain(self.drafts.inos()).collect()
    }

    /// The content of a file now.
    pub(crate) fn version(&self, ino: u64) -> Result<Version, Fault> {
        let key = self.core.key(ino)?;
        let mut nodes = self.core.nodes();
        let Some(file) = nodes.file(ino) else {
            return Err(Reason::IsFolder.into());
        };
        if file.info.is_archived {
            let text = format!("`{key}` lies in an archive; restore it, then open it again");
            return Err(Fault::because(Reason::Denied, text));
        }
        Ok(Version::new(key, &file.info))
    }

    /// Files that were moved with their folder, and whose objects nobody has seen since.
    pub(crate) fn unseen(&self) -> MutexGuard<'_, HashMap<u64, Trail>> {
        self.unseen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
