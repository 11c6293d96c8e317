// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory that other processes of the same user can map: `libweft-heap.so`
//! (docs/adr/0013-memory-shared-when-offered-again.md).
//!
//! - *Purpose*: receivers on the same host copy long messages straight out of the sender's memory.
//! - *Used by*: `weft run`, which preloads it into each rank; crates/os, which finds its one
//!   function by name. No crate links to it.
//! - *Start at*: [`interface`], what a rank asks of it; then [`offers`].
//!
//! A program's memory is the C library's and the system's as ever. When a long message is offered
//! out of the same buffer again and again, the whole pages inside the buffer are put into one
//! anonymous file, in place, with the same bytes; a receiver on the same host maps that file and
//! copies straight out of it, without a system call for each message. Memory that is not sent so
//! stays as it is.
//!
//! One long message down: [`interface`] (the provider asks) -> [`table`] (what is shared, under a
//! lock) -> [`offers`] (was it offered often enough) -> [`eligible`] (may it be shared) ->
//! [`table`] again, which puts it into the [`mod@file`]. One free(3) down: [`interpose`] ->
//! [`filter`] (nearly always: nothing of it is shared, and [`real`] does the rest) -> [`table`];
//! the same for mappings in [`interpose_maps`], and [`remap`]. [`fork`] gives a child its own copy.

mod automatic;
pub mod eligible;
pub mod file;
pub mod filter;
mod fork;
pub mod interface;
#[cfg(not(test))]
pub mod interpose;
#[cfg(not(test))]
pub mod interpose_maps;
mod limit;
pub mod offers;
mod process;
pub mod real;
pub mod remap;
pub mod spans;
pub mod table;
