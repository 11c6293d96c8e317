// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which of the threads that take the kernel's calls may stage what is written. Where the disk is
//! slow they wait for it, and one must stay for the other calls. For [`crate::filesystem`].

use tokio::sync::{Semaphore, SemaphorePermit};

/// All but one.
pub struct StagingThreads(Semaphore);

impl StagingThreads {
    /// Of so many threads.
    pub fn of(thread_count: u16) -> Self {
        Self(Semaphore::new(usize::from(thread_count.saturating_sub(1))))
    }

    /// Whether this thread may stage, until what is returned is dropped.
    pub fn begin(&self) -> Option<SemaphorePermit<'_>> {
        self.0.try_acquire().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_always_stays_for_other_calls() {
        assert!(StagingThreads::of(1).begin().is_none());
        let threads = StagingThreads::of(3);
        let first = threads.begin();
        let second = threads.begin();
        assert!(first.is_some() && second.is_some() && threads.begin().is_none());
        drop(first);
        assert!(threads.begin().is_some());
    }
}
