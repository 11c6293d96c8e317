// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The disk cache of a mount: blocks of contents in files, checked by checksums, kept across
//! mounts, bounded. The format is docs/mount-cache.md.
//!
//! `mount/files` asks it before it asks the store. All calls wait for the disk: they are made on
//! threads that may wait.
//!
//! - [`disk_cache`]: the folder: what is open, what it takes, what leaves it.
//! - [`content`]: the two files of one content.
//! - [`mod@format`]: names, heads and entries as bytes.
#![forbid(unsafe_code)]

pub mod content;
pub mod disk_cache;
pub mod format;

pub use disk_cache::{DiskCache, Found, Limit};
pub use format::{BLOCK_BYTES, ContentName};
