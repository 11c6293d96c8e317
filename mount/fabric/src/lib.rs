// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The mounts of one job talk to each other. Each is an endpoint of Weft's own fabric between
//! hosts, with the job's key. Here questions and answers are only bytes; `mount/files` knows their
//! meaning (docs/job-cache.md).
//!
//! - [`fabric`]: asks a node, and receives the questions of others; any thread may call it.
//! - [`link`]: what those threads and the endpoint's thread send each other.
//! - [`owner`]: the thread that has the endpoint, and sleeps on its descriptor.
//! - [`buffers`]: memory that the endpoint reads and writes, used again and again.
#![forbid(unsafe_code)]

mod buffers;
pub mod fabric;
pub mod link;
mod owner;

pub use fabric::Fabric;
pub use link::{ANSWER_LIMIT_BYTES, Asked, QUESTION_LIMIT_BYTES, Refused, Settings, Silence};
