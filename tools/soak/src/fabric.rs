// SPDX-License-Identifier: Apache-2.0 OR MIT
//! libfabric for the workers of a soak, without unsafe for its users: buffers belong to the library
//! from the post to the completion, and are handed back with it.
//!
//! `library` binds, `node` opens one endpoint with all that hangs on it, `post` and `remote` start
//! operations, `in_flight` holds their buffers, `completion` reads their ends. Called by the
//! worker. Everything here is for one thread.

mod completion;
mod in_flight;
mod library;
mod node;
mod post;
mod registered_memory;
mod remote;

use std::path::PathBuf;

pub use completion::{Completion, Ended};
pub use in_flight::Posted;
pub use library::Library;
pub use node::{Node, NodeOptions};
pub use post::{Outgoing, SendKind, Wanted};
pub use remote::RemotePart;

/// Why libfabric cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The library itself cannot be opened.
    #[error(
        "{path} cannot be opened: {why}. Install libfabric (Debian: libfabric1), or name one with \
         --libfabric PATH, such as that of an MPI"
    )]
    NoLibrary {
        /// What was asked for.
        path: PathBuf,
        /// The loader's reason.
        why: String,
    },
    /// A call failed.
    #[error("{call} answered {error} ({text})")]
    Call {
        /// The C name.
        call: &'static str,
        /// libfabric's number, positive.
        error: i32,
        /// What libfabric says about it.
        text: String,
    },
}
