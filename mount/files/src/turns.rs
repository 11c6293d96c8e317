// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A lock for each folder: one caller at a time. A caller that waited for the same work finds it
//! done. [`crate::core`] has two, for listings and for attributes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OwnedMutexGuard;

/// Chosen: turns that are kept though nobody has them.
const SPARE: usize = 1024;

/// By the folder's number.
#[derive(Default)]
pub struct Turns {
    all: Mutex<HashMap<u64, Arc<tokio::sync::Mutex<()>>>>,
}

impl Turns {
    /// Waits until nobody else has the folder's turn.
    pub async fn take(&self, ino: u64) -> OwnedMutexGuard<()> {
        let turn = {
            let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
            // Turns that nobody holds or waits for are only in the table.
            if all.len() > SPARE {
                all.retain(|_, turn| Arc::strong_count(turn) > 1);
            }
            Arc::clone(all.entry(ino).or_default())
        };
        turn.lock_owned().await
    }
}
