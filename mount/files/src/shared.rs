// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Files that several nodes of a job write at once (docs/job-cache.md, clause 5). Each file has an
//! owner among the nodes. While programs write the file, the owner has its draft, and the calls of
//! all nodes go there.
//!
//! - [`shared_files`]: the calls of this node's programs; `mount/daemon` makes them here.
//! - [`shared_names`]: the same, on names.
//! - [`shared_times`]: the same, on times that are set while a file is written.
//! - [`shared_copies`]: copies between them.
//! - [`others`]: asks the owners of files by name.
//! - [`remote_file`]: one open file that another node has.
//! - [`owned_files`]: the files that this node has for all.
//! - [`answers`]: what other nodes ask of this one.
//! - [`folder_moves`]: what is asked of all nodes before one renames a folder.
//! - [`messages`]: the questions and answers as bytes.

pub mod answers;
mod folder_moves;
pub(crate) mod messages;
mod others;
pub mod owned_files;
mod remote_file;
pub mod shared_copies;
pub mod shared_files;
pub mod shared_names;
pub mod shared_times;
