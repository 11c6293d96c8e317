// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Open files or folders by the number (file handle) that the kernel was given. [`crate::folders`]
//! and [`crate::open_files`] each have one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::fault::Reason;

/// Handles of files that another node of the job has have this bit.
pub(crate) const REMOTE: u64 = 1 << 63;

/// What is open.
pub struct Open<T> {
    inner: Mutex<(u64, HashMap<u64, Arc<T>>)>,
}

impl<T> Default for Open<T> {
    fn default() -> Self {
        Self {
            inner: Mutex::new((0, HashMap::new())),
        }
    }
}

impl<T> Open<T> {
    fn lock(&self) -> MutexGuard<'_, (u64, HashMap<u64, Arc<T>>)> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens; the answer is its number.
    pub fn add(&self, what: T) -> u64 {
        let mut inner = self.lock();
        inner.0 += 1;
        let handle = inner.0;
        inner.1.insert(handle, Arc::new(what));
        handle
    }

    /// What a number stands for.
    pub fn get(&self, handle: u64) -> Result<Arc<T>, Reason> {
        self.lock().1.get(&handle).cloned().ok_or(Reason::NotOpen)
    }

    /// All that is open.
    pub fn all(&self) -> Vec<Arc<T>> {
        self.lock().1.values().cloned().collect()
    }

    /// Closes.
    pub fn remove(&self, handle: u64) -> Option<Arc<T>> {
        self.lock().1.remove(&handle)
    }
}
