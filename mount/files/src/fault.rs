// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why a call fails: a reason that becomes an errno, and the store's error for the log.

use std::fmt;

use weft_store::{Failure, StoreError};

/// Why; each is one errno.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// ENOENT.
    NotFound,
    /// EACCES.
    Denied,
    /// EROFS.
    ReadOnly,
    /// EEXIST.
    Exists,
    /// ENOTEMPTY.
    NotEmpty,
    /// ENOTDIR.
    NotFolder,
    /// EISDIR.
    IsFolder,
    /// EINVAL.
    Invalid,
    /// ENAMETOOLONG.
    NameTooLong,
    /// EBUSY.
    Busy,
    /// ESTALE: the object is another one by now.
    Stale,
    /// EBADF.
    NotOpen,
    /// EFBIG.
    TooLarge,
    /// ENOSPC: the disk of this host, or what may be staged there.
    NoSpace,
    /// ENOTSUP.
    Unsupported,
    /// ENODATA: there is no such extended attribute.
    NoAttribute,
    /// E2BIG: of an extended attribute.
    TooMuch,
    /// ENFILE: this node has as many files open at their owner as that permits.
    TooManyOpen,
    /// EAGAIN: somebody else holds a lock.
    Taken,
    /// EDEADLK: of a lock.
    Deadlock,
    /// EINTR: a signal came while a lock was waited for.
    Interrupted,
    /// ENOLCK: the node that keeps the locks of a file does not answer.
    NoLocks,
    /// EIO.
    Broken,
}

/// A call that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Becomes the errno.
    pub reason: Reason,
    /// What the log should say, where there is more to say than the errno.
    pub cause: Option<String>,
}

impl Fault {
    /// Whether the same may succeed later: the store is away or busy, credentials have ended, the
    /// disk is full.
    pub fn may_pass(&self) -> bool {
        matches!(
            self.reason,
            Reason::Broken | Reason::Denied | Reason::NoSpace
        )
    }

    /// With words for the log.
    pub fn because(reason: Reason, cause: impl Into<String>) -> Self {
        Self {
            reason,
            cause: Some(cause.into()),
        }
    }
}

/// A request that was under way when the mount's runtime ended.
pub(crate) fn mount_ends(operation: &'static str, key: &str) -> StoreError {
    StoreError::new(Failure::Unreachable, operation, key, "the mount ends")
}

impl From<Reason> for Fault {
    fn from(reason: Reason) -> Self {
        Self {
            reason,
            cause: None,
        }
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        let reason = match error.failure {
            Failure::Missing => return Reason::NotFound.into(),
            Failure::Denied | Failure::Skewed | Failure::Archived => Reason::Denied,
            Failure::Changed => Reason::Stale,
            Failure::Unsupported => Reason::Unsupported,
            Failure::NoBucket
            | Failure::Busy
            | Failure::Unreachable
            | Failure::Corrupt
            | Failure::Refused => Reason::Broken,
        };
        Self::because(reason, error.to_string())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Some(cause) => f.write_str(cause),
            None => write!(f, "{:?}", self.reason),
        }
    }
}

impl std::error::Error for Fault {}
