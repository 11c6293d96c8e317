// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Collectives of the ranks of one host, through memory that all of them map.
//!
//! - *Purpose*: barrier, bcast, reductions, gathers and exchanges at the speed of memory, with
//!   results that have the same bits every time. docs/collectives.md specifies layout and
//!   algorithms.
//! - *Used by*: crates/intercept, which gives it a communicator, a segment and a way to wait.
//! - *Start at*: [`team`], then `exchange`.
//!
//! This crate makes no system call, takes no lock, and allocates nothing after [`Team::attach`].
//! Modules, in the order in which a call passes them:
//!
//! - [`team`]: the calls, and [`reductions`] two of them; checks arguments. `kind`: which call it
//!   is. [`fault`]: why a call fails. [`shape`]: what is known of the machine.
//! - `by_domain`: short calls of ranks in several cache domains, which `domains` knows.
//! - `barrier`, `bcast`, `allreduce` (with `sliced` for long data): algorithms; `gathering`,
//!   `spreading`, `reduce_scatter` and `scan`: algorithms that `pipeline` runs chunk by chunk.
//!   [`blocks`]: where ranks' blocks lie; `agreement`: how long the longest one is; `uneven`:
//!   alltoall with it, and `beginnings` its first step.
//! - [`direct`]: algorithms for long data, which ranks read in place through [`reach`].
//! - [`leaving`]: calls that all ranks leave to the MPI.
//! - [`nonblocking`]: nonblocking calls, by the algorithms that `pipeline` runs.
//! - [`arithmetic`]: elements, operations, and the loops over them.
//! - `exchange`: the exchange in steps of which all algorithms consist; `posting`: one stretch of
//!   data in a step. [`wait`]: how ranks wait.
//! - `segment`: the shared memory; [`layout`]: where everything lies. `sync`: the atomics.

mod agreement;
mod allreduce;
pub mod arithmetic;
mod barrier;
mod bcast;
mod beginnings;
pub mod blocks;
mod buffers;
mod by_domain;
pub mod direct;
mod domains;
mod exchange;
pub mod fault;
mod gathering;
mod kind;
pub mod layout;
pub mod leaving;
#[cfg(all(test, loom))]
mod models;
pub mod nonblocking;
mod pipeline;
mod posting;
pub mod reach;
mod reduce_scatter;
pub mod reductions;
mod scan;
mod segment;
pub mod shape;
mod sliced;
mod spreading;
mod sync;
pub mod team;
mod uneven;
pub mod wait;

pub use arithmetic::{Element, Operation, Reduction};
pub use blocks::{Block, Blocks};
pub use direct::{Direct, Lengths};
pub use fault::{Fault, Stopped};
pub use layout::{LAYOUT_VERSION, RANK_LIMIT, segment_bytes};
pub use leaving::Leaving;
pub use nonblocking::{Combination, Nonblocking};
pub use reach::{Reach, Shown};
pub use reductions::Reductions;
pub use shape::Shape;
pub use team::{Team, Uneven};
pub use uneven::Terms;
pub use wait::Wait;
