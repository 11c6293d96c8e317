// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An upload that the store was asked to begin, and whose name has not come yet. The program writes
//! on meanwhile. [`crate::staging::uploading`] holds one.

use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use weft_store::{Metadata, StoreError, Upload};

use crate::fault::mount_ends;
use crate::staging::sending::ID;
use crate::staging::ways::Ways;

/// The question.
pub struct Beginning {
    key: String,
    /// In the metadata of the object to be.
    pub id: String,
    answer: JoinHandle<Result<Upload, StoreError>>,
}

/// What whoever sends the parts waits for.
pub struct Begun {
    /// Of the file's beginnings.
    pub number: u64,
    /// Ends when the answer comes.
    pub is_here: oneshot::Receiver<()>,
}

impl Beginning {
    /// Asks; what is returned ends when the answer comes.
    pub fn new(ways: &Ways, key: &str, about: Metadata) -> (Self, oneshot::Receiver<()>) {
        let (store, asked) = (Arc::clone(&ways.store), key.to_owned());
        let id = about.get(ID).cloned().unwrap_or_default();
        let (here, is_here) = oneshot::channel();
        let answer = ways.runtime.spawn(async move {
            let begun = store.begin_with(&asked, &about).await;
            drop(here);
            begun
        });
        let key = key.to_owned();
        (Self { key, id, answer }, is_here)
    }

    /// The answer.
    ///
    /// # Errors
    /// What the store said.
    pub async fn answer(self) -> Result<Upload, StoreError> {
        let answer = self.answer.await;
        answer.unwrap_or_else(|_| Err(mount_ends("CreateMultipartUpload", &self.key)))
    }

    /// Nobody needs the upload any more.
    pub fn give_up(self, ways: &Ways) {
        let store = Arc::clone(&ways.store);
        ways.runtime.spawn(async move {
            if let Ok(upload) = self.answer().await {
                // As for uploads whose name came: the bucket's list has what this does not reach.
                let _ = store.abort(&upload).await;
            }
        });
    }
}
