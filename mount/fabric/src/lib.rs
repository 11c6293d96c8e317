// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Mounts of one job talk to each other: each is an endpoint of Weft's own fabric between hosts,
//! with the job's key. Questions and answers are bytes; what they mean only `mount/files` knows
//! (docs/job-cache.md).
//!
//! - [`fabric`]: asks a node, and takes what others ask; any thread may.
//! - [`link`]: what those threads and the one that has the endpoint say to each other.
//! - [`owner`]: the thread that has the endpoint, and sleeps on its descriptor.
//! - [`buffers`]: memory that the endpoint reads and writes, used again and again.
#![forbid(unsafe_code)]

mod buffers;
pub mod fabric;
pub mod link;
mod owner;

pub use fabric::Fabric;
pub use link::{ANSWER_LIMIT_BYTES, Asked, QUESTION_LIMIT_BYTES, Refused, Settings, Silence};
