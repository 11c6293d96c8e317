// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Names of an open folder whose nodes were made before the kernel asks for them, while it and the
//! program still work on what they got last. [`crate::folders`] keeps one for each open folder.
//!
//! Each node counts as told to the kernel. What is not told after all is forgotten.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::core::Core;
use crate::listing::Listing;

/// Chosen: a page of the store.
const LIMIT: usize = 1000;

/// Nodes of names that follow each other in a listing.
pub struct EnteredAhead {
    core: Arc<Core>,
    /// Where the first name stands in the listing.
    first: usize,
    nodes: VecDeque<u64>,
}

impl EnteredAhead {
    /// None yet.
    pub fn new(core: Arc<Core>) -> Self {
        Self {
            core,
            first: 0,
            nodes: VecDeque::new(),
        }
    }

    /// Makes the nodes of the names in `folder` from `index` on, as far as they were listed.
    pub fn fill(&mut self, folder: u64, listing: &Listing, index: usize) {
        if self.first != index {
            self.clear();
            self.first = index;
        }
        let mut nodes = self.core.nodes();
        while let Some((page, at)) = listing.find(index + self.nodes.len()) {
            let left = LIMIT - self.nodes.len();
            if left == 0 {
                return;
            }
            for (name, listed) in page.names[at..].iter().take(left) {
                let ino = nodes.enter(folder, name, listed, page.at);
                self.nodes.push_back(ino);
            }
        }
    }

    /// The node of the name at `index`. Who takes it tells the kernel of it. A reader goes on
    /// behind the last name that it got; between that and the first name here are names that went.
    pub fn take(&mut self, index: usize) -> Option<u64> {
        if index < self.first {
            return None;
        }
        if index > self.first {
            self.clear();
            return None;
        }
        self.first += 1;
        self.nodes.pop_front()
    }

    /// The kernel had no room for the name at `index`.
    pub fn put_back(&mut self, index: usize, ino: u64) {
        if self.first != index + 1 {
            self.clear();
        }
        self.first = index;
        self.nodes.push_front(ino);
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        if self.nodes.is_empty() {
            return;
        }
        let mut nodes = self.core.nodes();
        for ino in self.nodes.drain(..) {
            nodes.forget(ino, 1);
        }
    }
}

impl Drop for EnteredAhead {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant, SystemTime};

    use tokio::runtime::Runtime;
    use weft_store::memory::MemoryStore;
    use weft_store::{ETag, ObjectInfo};

    use super::*;
    use crate::core::{Publish, Settings, Writes};
    use crate::names::Listed;
    use crate::nodes::ROOT;

    #[test]
    fn nodes_made_ahead_are_there_though_names_before_them_went() {
        let runtime = Runtime::new().unwrap();
        let settings = Settings {
            prefix: String::new(),
            ttl: Duration::ZERO,
            cache_bytes: 1 << 20,
            writes: Writes::temporary(Publish::Close).unwrap(),
        };
        let store = Arc::new(MemoryStore::new());
        let core = Core::new(store, runtime.handle().clone(), settings, |_| {});
        let core = Arc::new(core);
        let names = ["a", "b", "c", "d"].map(|name| {
            let info = ObjectInfo {
                size_bytes: 0,
                etag: ETag::new("\"1\""),
                modified: SystemTime::UNIX_EPOCH,
                is_archived: false,
            };
            (name.into(), Listed::File(info))
        });
        let listing = Listing::known(String::new(), names.into(), Instant::now());
        let mut ahead = EnteredAhead::new(Arc::clone(&core));
        // `a` was given, `b` went; the reader goes on behind `a`.
        ahead.fill(ROOT, &listing, 2);
        assert_eq!(ahead.take(1), None);
        let node = ahead.take(2);
        assert!(node.is_some());
        assert_eq!(node, core.nodes().find(ROOT, "c"));
        // Who goes elsewhere gets none of them.
        assert_eq!(ahead.take(9), None);
        assert_eq!(ahead.take(3), None);
    }
}
