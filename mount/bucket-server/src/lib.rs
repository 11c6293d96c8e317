// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An S3 server for tests and benchmarks: objects in memory, or made from a seed; the calls that a
//! file system on a bucket needs, with their conditions and checksums; faults and speeds that are
//! set at will; counters of what was asked. Tests start it as a library, suites and benchmarks as
//! the command `weft-bucket-server`. Source: the Amazon S3 API Reference.
//!
//! A request goes `server` (connections) to `dispatch` (faults, signature, body) to `calls` (one
//! file for each group of S3's calls) to `store`, and back as an `answer` through `wire`, which
//! keeps to the rates. [`Faults`] says what can be set.

#![forbid(unsafe_code)]

mod answer;
mod calls;
mod checksum;
mod chunked;
mod condition;
mod content;
mod control;
mod counter;
mod dispatch;
mod error;
mod fault;
mod object;
mod operation;
mod pace;
mod payload;
mod request;
mod server;
mod sign;
mod state;
mod store;
mod wire;
mod xml;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use control::Fill;
pub use counter::{Counts, Range};
pub use fault::{Faults, Support};
pub use operation::Operation;
pub use server::Server;
pub use sign::Keys;
pub use state::Options;

/// Locks; what a panicking thread left behind is as good as any state here.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
