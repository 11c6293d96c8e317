// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An S3 server for tests and benchmarks. It has:
//!
//! - objects in memory, or made from a seed
//! - the calls that a file system on a bucket needs, with their conditions and checksums
//! - faults and speeds that can be set
//! - counters of requests
//!
//! Tests start it as a library, suites and benchmarks as the command `weft-bucket-server`. Source:
//! the Amazon S3 API Reference.
//!
//! A request goes from `server` (connections) through `dispatch` (faults, signature, body) and
//! `calls` (one file for each group of S3's calls) to `store`. It comes back as an `answer` through
//! `wire`, which limits the rates. [`Faults`] says what can be set.

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
