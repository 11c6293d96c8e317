// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Errors of a store. `mount/files` turns them into errno, `mount/daemon` logs them.

use std::fmt;

/// Why a request failed, as far as its caller must know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Failure {
    /// There is no object of this key.
    Missing,
    /// There is no bucket of this name.
    NoBucket,
    /// The credentials do not allow it, or there are none.
    Denied,
    /// The clock of this host or of the store is wrong, so that signatures are not valid.
    Skewed,
    /// The condition did not hold: somebody else wrote the object, or removed it.
    Changed,
    /// The store asks to be asked less (503, 429), or failed inside (500).
    Busy,
    /// No answer: no connection, a connection that broke, a time limit.
    Unreachable,
    /// The bytes that came are not those that the store holds, by number or by checksum.
    Corrupt,
    /// The object lies in an archive.
    Archived,
    /// The store does not know this operation, or this condition.
    Unsupported,
    /// The request is wrong, or of a kind that is not known here.
    Refused,
}

impl Failure {
    /// Whether the same request may succeed later.
    pub fn may_pass(self) -> bool {
        matches!(self, Self::Busy | Self::Unreachable | Self::Corrupt)
    }
}

/// A request that failed after all attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreError {
    /// Why.
    pub failure: Failure,
    /// The operation's name at S3, as `GetObject`.
    pub operation: &'static str,
    /// The key, or a prefix for listings.
    pub key: String,
    /// What the store or the system said.
    pub message: String,
    /// By which the store's owner finds the request.
    pub request_id: Option<String>,
    /// The request was sent more than once. The store may have done an earlier attempt, whose
    /// answer was lost: then a condition does not hold any more because of this client's own write.
    pub is_repeated: bool,
}

impl StoreError {
    /// Without a request id, of a request that was sent once.
    pub fn new(failure: Failure, operation: &'static str, key: &str, message: &str) -> Self {
        Self {
            failure,
            operation,
            key: key.to_owned(),
            message: message.to_owned(),
            request_id: None,
            is_repeated: false,
        }
    }

    /// The same, of a request that was sent more than once.
    pub fn repeated(self) -> Self {
        Self {
            is_repeated: true,
            ..self
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            operation,
            key,
            message,
            ..
        } = self;
        write!(f, "{operation} of `{key}` failed: {message}")?;
        match &self.request_id {
            Some(id) => write!(f, " (request {id})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for StoreError {}
