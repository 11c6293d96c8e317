// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Open files whose names were removed. The store copies such a file to a hidden key, and keeps it
//! until the last program closes the file. [`crate::open_files`] holds the table.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weft_store::{Condition, ObjectInfo};

use crate::core::Core;
use crate::fault::{Fault, Reason};
use crate::names::HIDDEN;
use crate::object_copies::{Source, copy_object};
use crate::staging::stage::{new_id, refused};
use crate::version::Version;

/// By the node's number: its copies' keys, and where each is noted. Of a file whose name stayed
/// after all there may be more than one.
pub struct Hidden {
    core: Arc<Core>,
    table: Mutex<HashMap<u64, Vec<(String, PathBuf)>>>,
}

impl Hidden {
    /// None yet.
    pub fn new(core: Arc<Core>) -> Self {
        Self {
            core,
            table: Mutex::default(),
        }
    }

    fn table(&self) -> MutexGuard<'_, HashMap<u64, Vec<(String, PathBuf)>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Copies the content of a node to a key that nothing shows; its version there.
    ///
    /// # Errors
    /// `Stale` where somebody else wrote it; what the store said.
    pub async fn hide(&self, ino: u64) -> Result<Arc<Version>, Fault> {
        let key = self.core.key(ino)?;
        let info = {
            let mut nodes = self.core.nodes();
            nodes.file(ino).ok_or(Reason::Stale)?.info.clone()
        };
        let hidden = format!("{}{HIDDEN}/{}", self.core.settings.prefix, new_id());
        let note = self.core.stage.note_hidden(&hidden);
        let note = note.map_err(|error| refused(&error, self.core.stage.folder()))?;
        let source = Source {
            key: &key,
            info: &info,
        };
        let copied = copy_object(&self.core.ways, source, &hidden, &Condition::Always).await;
        let etag = match copied {
            Ok(etag) => etag,
            Err(error) => {
                let _ = std::fs::remove_file(&note);
                return Err(error.into());
            }
        };
        let copy = (hidden.clone(), note);
        self.table().entry(ino).or_default().push(copy);
        let info = ObjectInfo { etag, ..info };
        Ok(Arc::new(Version::new(hidden, &info)))
    }

    /// Nobody has the node open any more.
    pub async fn closed(&self, ino: u64) {
        let copies = self.table().remove(&ino).unwrap_or_default();
        for (key, note) in copies {
            let deleted = self.core.store.delete(&key, &Condition::Always).await;
            // What this does not reach is noted.
            if deleted.is_ok() {
                let _ = std::fs::remove_file(note);
            }
        }
    }
}
