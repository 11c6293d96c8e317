// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests which conditions a store keeps. Each test makes some requests on objects of one byte,
//! which are removed again. [`crate::careful`] replaces what is missing.

use bytes::Bytes;

use crate::error::{Failure, StoreError};
use crate::object::{Condition, ETag};
use crate::store::Store;

/// Conditions on one kind of request. S3 keeps all of them since 2025 (the user guide,
/// "Conditional requests"); other stores ignore some, or refuse them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ability {
    /// On writing an object whole.
    Puts,
    /// On the completion of an upload in parts.
    Completions,
    /// On the destination of a copy.
    Copies,
    /// On removal.
    Deletes,
}

impl Ability {
    /// All.
    pub const ALL: [Self; 4] = [Self::Puts, Self::Completions, Self::Copies, Self::Deletes];

    /// The request's name at S3.
    pub fn operation(self) -> &'static str {
        match self {
            Self::Puts => "PutObject",
            Self::Completions => "CompleteMultipartUpload",
            Self::Copies => "CopyObject",
            Self::Deletes => "DeleteObject",
        }
    }

    /// Whether a store has it. `key` is one that nobody else uses; with letters behind it, it is
    /// written and removed.
    ///
    /// # Errors
    /// `Denied`, `Unreachable` and all else that keeps it from being found out.
    pub async fn is_kept(self, store: &dyn Store, key: &str) -> Result<bool, StoreError> {
        let keys = [format!("{key}-a"), format!("{key}-b")];
        let kept = self.tried(store, &keys[0], &keys[1]).await;
        for key in &keys {
            let removed = store.delete(key, &Condition::Always).await;
            if kept.is_ok() {
                removed?;
            }
        }
        kept
    }

    async fn tried(self, store: &dyn Store, one: &str, two: &str) -> Result<bool, StoreError> {
        let body = || Bytes::from_static(b"?");
        // As S3 writes entity tags, and no object's.
        let wrong = Condition::IfMatch(ETag::new("\"00000000000000000000000000000000\""));
        let etag = store.put(one, body(), &Condition::Always).await?;
        match self {
            Self::Puts => {
                let absent = store.put(one, body(), &Condition::IfAbsent).await;
                Ok(holds(absent)? && holds(store.put(one, body(), &wrong).await)?)
            }
            Self::Deletes => holds(store.delete(one, &wrong).await),
            Self::Copies => {
                store.put(two, body(), &Condition::Always).await?;
                let absent = store.copy(one, &etag, two, &Condition::IfAbsent).await;
                Ok(holds(absent)? && holds(store.copy(one, &etag, two, &wrong).await)?)
            }
            Self::Completions => {
                let upload = store.begin(one).await?;
                let part = [store.send(&upload, 1, body()).await?];
                let absent = store.complete(&upload, &part, &Condition::IfAbsent).await;
                let kept = match holds(absent) {
                    Ok(true) => holds(store.complete(&upload, &part, &wrong).await),
                    other => other,
                };
                // One that was completed is none any more, which some stores call an error.
                let _ = store.abort(&upload).await;
                kept
            }
        }
    }
}

/// Whether a condition that does not hold was kept: a request that was done all the same, or not
/// understood, says that it is not.
fn holds<T>(answer: Result<T, StoreError>) -> Result<bool, StoreError> {
    match answer {
        Ok(_) => Ok(false),
        Err(error) => match error.failure {
            Failure::Changed => Ok(true),
            Failure::Unsupported | Failure::Refused | Failure::Missing => Ok(false),
            _ => Err(error),
        },
    }
}
