// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why a bucket is not mounted, or what is not published: a sentence that names the mount, the
//! cause and the remedy. It comes from another process, or goes to one.

use thiserror::Error;

/// The sentence.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub(crate) struct MountError(pub String);

impl MountError {
    /// For `map_err`: what was being done, and what the system said.
    pub(crate) fn system(what: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |error| Self(format!("{what}: {error}"))
    }
}
