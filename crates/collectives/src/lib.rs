// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Collectives of the ranks of one host, through memory that all of them map.
//!
//! - *Purpose*: barrier, bcast, reduce and allreduce as fast as the memory is, with results that
//!   have the same bits every time. docs/collectives.md specifies layout and algorithms.
//! - *Used by*: whoever has a communicator, a segment for it and a way to wait.
//! - *Start at*: [`team`], then `exchange`.
//!
//! Pure above memory: no system call, no lock, no allocation after [`Team::attach`]. In the order
//! in which a call meets them:
//!
//! - [`team`]: the calls; checks arguments. [`fault`]: why a call fails. [`shape`]: what is known
//!   of the machine.
//! - `barrier`, `bcast`, `allreduce` (with `sliced` for long data): the algorithms.
//! - [`arithmetic`]: elements, operations, and the loops over them.
//! - `exchange`: the hand-over in steps that all algorithms are made of. [`wait`]: how ranks wait.
//! - `segment`: the shared memory; [`layout`]: where everything lies. `sync`: the atomics.

mod allreduce;
pub mod arithmetic;
mod barrier;
mod bcast;
mod buffers;
mod exchange;
pub mod fault;
pub mod layout;
mod segment;
pub mod shape;
mod sliced;
mod sync;
pub mod team;
pub mod wait;

pub use arithmetic::{Element, Operation, Reduction};
pub use fault::{Fault, Stopped};
pub use layout::{LAYOUT_VERSION, RANK_LIMIT, segment_bytes};
pub use shape::Shape;
pub use team::Team;
pub use wait::Wait;
