// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The node of a file that is being written: its name, and what programs see of it meanwhile and
//! once it is published. [`crate::draft`] has one.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use weft_store::{ETag, ObjectInfo};

use crate::attribute_calls;
use crate::core::Core;
use crate::facts::{Fact, Shown};
use crate::fault::Fault;
use crate::names::Listed;
use crate::staging::ways::Ways;

/// Of one draft.
pub struct DraftNode {
    /// Has the table of nodes.
    pub core: Arc<Core>,
    ino: u64,
}

impl DraftNode {
    /// By its number.
    pub fn new(core: Arc<Core>, ino: u64) -> Self {
        Self { core, ino }
    }

    /// What it is published through.
    pub fn ways(&self) -> &Ways {
        &self.core.ways
    }

    /// Under which it is published now.
    pub fn key(&self) -> Result<String, Fault> {
        self.core.key(self.ino)
    }

    /// Whether its object is getting another key.
    pub fn is_renaming(&self) -> bool {
        self.core.is_renaming(self.ino)
    }

    /// Waits until its object has its key.
    pub async fn wait_renamed(&self) {
        self.core.wait_renamed(self.ino).await;
    }

    /// Whether what is written must be sent soon, and is not before it has its key.
    pub fn must_wait_renamed(&self) -> bool {
        self.core.stage.is_crowded() && self.is_renaming()
    }

    /// It was written: programs see this size, and that it is new.
    pub fn show(&self, size_bytes: u64) {
        attribute_calls::written(&self.core, self.ino);
        if let Some(file) = self.core.nodes().file(self.ino) {
            file.info.size_bytes = size_bytes;
            file.info.modified = SystemTime::now();
            file.at = Instant::now();
        }
    }

    /// It has this size still, whatever was learned of its object.
    pub fn keep_size(&self, size_bytes: u64) {
        if let Some(file) = self.core.nodes().file(self.ino) {
            file.info.size_bytes = size_bytes;
        }
    }

    /// The object `etag` was made of it: what is known of that.
    pub fn published(&self, etag: ETag, size_bytes: u64) -> ObjectInfo {
        let before = {
            let mut nodes = self.core.nodes();
            nodes.file(self.ino).map(|file| file.info.clone())
        };
        // When it was written, not when the store had it.
        let modified = before.as_ref().map(|info| info.modified);
        let info = ObjectInfo {
            size_bytes,
            etag,
            modified: modified.unwrap_or_else(SystemTime::now),
            is_archived: false,
        };
        self.learn(&info);
        if let Some(before) = before {
            attribute_calls::published(&self.core, self.ino, &before.etag, &info.etag);
        }
        info
    }

    /// This mount wrote an object.
    fn learn(&self, info: &ObjectInfo) {
        let at = Instant::now();
        let mut nodes = self.core.nodes();
        let Some(node) = nodes.get(self.ino) else {
            return;
        };
        let (parent, name) = (node.parent, node.name.clone());
        if let Some(file) = nodes.file(self.ino) {
            file.info = info.clone();
            file.at = at;
            file.is_written_here = true;
            // The kernel has the pages that were written through it, but none that other mounts
            // wrote.
            file.pages_of = (!self.core.settings.writes.is_shared).then(|| info.etag.clone());
        }
        if let Some(folder) = nodes.folder(parent) {
            // At once: a listing that ends meanwhile has it by one or the other.
            folder.own.remove(&name);
            let listed = Some(Listed::File(info.clone()));
            folder.learn(&name, Fact { at, listed }, Shown::ByCall);
        }
    }
}
