// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests of one rename that are under way side by side. If one fails, no more begin, and those
//! that are under way end: an answer that nobody hears would have to be found out later, by reading
//! what was copied. For [`crate::renames::moving`].

use tokio::runtime::Handle;
use tokio::task::JoinSet;
use weft_store::StoreError;

use crate::fault::mount_ends;

/// Chosen: objects that are copied, compared or removed side by side.
const LIMIT: usize = 32;

/// Requests whose answers are of one kind. Dropped, they are given up.
pub struct SideBySide<T> {
    tasks: JoinSet<Result<T, StoreError>>,
    runtime: Handle,
    answers: Vec<T>,
}

impl<T: Send + 'static> SideBySide<T> {
    /// None yet; they run there.
    pub fn new(runtime: &Handle) -> Self {
        Self {
            tasks: JoinSet::new(),
            runtime: runtime.clone(),
            answers: Vec::new(),
        }
    }

    /// Begins one, as soon as there is room beside those that are under way.
    ///
    /// # Errors
    /// What the store said to an earlier one; all that began have ended then.
    pub async fn begin(
        &mut self,
        task: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<(), StoreError> {
        while self.tasks.len() >= LIMIT {
            self.wait_for_one().await?;
        }
        self.tasks.spawn_on(task, &self.runtime);
        Ok(())
    }

    /// The answers to all, in any order.
    ///
    /// # Errors
    /// What the store said to the first that failed; all have ended then.
    pub async fn end(mut self) -> Result<Vec<T>, StoreError> {
        while !self.tasks.is_empty() {
            self.wait_for_one().await?;
        }
        Ok(self.answers)
    }

    async fn wait_for_one(&mut self) -> Result<(), StoreError> {
        let error = match self.tasks.join_next().await {
            Some(Ok(Ok(answer))) => {
                self.answers.push(answer);
                return Ok(());
            }
            None => return Ok(()),
            Some(Ok(Err(error))) => error,
            Some(Err(_)) => mount_ends("CopyObject", ""),
        };
        while self.tasks.join_next().await.is_some() {}
        Err(error)
    }
}
