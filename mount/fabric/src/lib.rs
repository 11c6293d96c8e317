// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Mounts of one job talk to each other: each is an endpoint of Weft's own fabric between hosts,
//! with the job's key. Questions and answers are bytes; what they mean only `mount/files` knows
//! (docs/job-cache.md).
//!
//! - [`fabric`]: asks a node, and takes what others ask; any thread may.
//! - [`owner`]: the thread that has the endpoint, and sleeps on its descriptor.
//! - [`buffers`]: memory that the endpoint reads and writes, used again and again.
#![forbid(unsafe_code)]

mod buffers;
pub mod fabric;
mod owner;

pub use fabric::{ANSWER_LIMIT_BYTES, Asked, Fabric, QUESTION_LIMIT_BYTES, Settings, Silence};
