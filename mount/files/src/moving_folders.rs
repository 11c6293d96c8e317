// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The folders that this mount is renaming. While a folder is renamed, attributes in it are not
//! written; afterwards they are written at the new name. An object written at the old name during
//! the rename would remain there, and show as an empty folder. [`crate::changes`] begins,
//! [`crate::attribute_sync`] waits.
//!
//! The same for files that are written: while a file or a folder is renamed, nothing is published
//! in it. [`crate::bucket_files`] begins, [`crate::draft`] waits.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// By the folders' numbers.
#[derive(Default)]
pub struct MovingFolders {
    folders: Mutex<Vec<u64>>,
    ended: Notify,
}

/// A rename that goes on until this is dropped.
pub struct Moving<'a> {
    all: &'a MovingFolders,
    folder: u64,
}

impl MovingFolders {
    fn folders(&self) -> MutexGuard<'_, Vec<u64>> {
        self.folders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A folder is renamed from now on.
    pub fn begin(&self, folder: u64) -> Moving<'_> {
        self.folders().push(folder);
        Moving { all: self, folder }
    }

    /// Whether one is renamed for which `concerns` is true.
    pub fn has(&self, concerns: impl Fn(u64) -> bool) -> bool {
        self.folders().iter().any(|folder| concerns(*folder))
    }

    /// Waits until none is renamed for which `concerns` is true.
    pub async fn wait(&self, concerns: impl Fn(u64) -> bool) {
        loop {
            let ended = self.ended.notified();
            if !self.has(&concerns) {
                return;
            }
            ended.await;
        }
    }
}

impl Drop for Moving<'_> {
    fn drop(&mut self) {
        let mut folders = self.all.folders();
        if let Some(at) = folders.iter().position(|folder| *folder == self.folder) {
            folders.swap_remove(at);
        }
        drop(folders);
        self.all.ended.notify_waiters();
    }
}
