// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Staged files: bytes that were written and are not yet published, on the disk of this host.
//! [`crate::draft`] builds on it.
//!
//! - [`stage`]: the folder, the mount's session in it, and its size limit.
//! - [`record`]: the records of a log; [`log`]: one staged file's log and data.
//! - [`extents`]: ranges and their sources; [`places`]: which bytes of a file lie where.
//! - [`content`]: one staged file as a whole: written, truncated, read; [`staged_id`]: its name in
//!   the metadata of the object that it becomes.
//! - [`plan`]: how it becomes parts of an upload; [`uploading`]: the upload, of which
//!   [`beginning`] is the request that begins it and [`sending`] its parts.
//! - [`publication`]: how it becomes an object; [`ways`]: what every upload needs.
//! - [`tail`]: what of it stays in memory until it is sent.
//! - [`recovery`]: what a dead mount left.

pub mod beginning;
pub mod content;
pub mod extents;
pub mod log;
pub mod places;
pub mod plan;
pub mod publication;
pub mod record;
pub mod recovery;
pub mod sending;
pub mod stage;
pub mod staged_id;
pub mod tail;
pub mod uploading;
pub mod ways;
