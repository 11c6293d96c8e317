// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The disk cache of a mount: files with blocks of contents. Blocks are checked by checksums and
//! kept across mounts; the size is limited. The format is docs/mount-cache.md.
//!
//! `mount/files` asks it before it asks the store. All calls wait for the disk, so they are made on
//! threads that may block.
//!
//! - [`disk_cache`]: the folder: which contents are open, which blocks it accepts and removes.
//! - [`content`]: the two files of one content.
//! - [`mod@format`]: names, heads and entries as bytes.
#![forbid(unsafe_code)]

pub mod content;
pub mod disk_cache;
pub mod format;

pub use disk_cache::{DiskCache, Found, Limit};
pub use format::{BLOCK_BYTES, ContentName};
