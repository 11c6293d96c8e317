// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory that other processes of the same user can map: `libweft-heap.so`
//! (docs/adr/0013-memory-shared-when-offered-again.md).
//!
//! - *Purpose*: receivers on the same host copy long messages directly out of the sender's memory.
//! - *Used by*: `weft run`, which preloads it into each rank; crates/os, which finds its one
//!   function by name. No crate links to it.
//! - *Start at*: [`interface`], what a rank asks of it; then [`offers`].
//!
//! A program still gets its memory from the C library and the system. When it sends long messages
//! from the same buffer repeatedly, this library moves the whole pages inside the buffer into one
//! anonymous file, at the same addresses and with the same bytes. A receiver on the same host maps
//! that file and copies directly out of it, without a system call for each message. All other
//! memory stays as it is.
//!
//! The way of a long message: [`interface`] (the provider asks) -> [`table`] (what is shared, under
//! a lock) -> [`offers`] (was the buffer offered often enough) -> [`eligible`] (may it be shared,
//! by its [`mappings`] and by what [`keepers`] there are) -> [`table`] again, which moves it into
//! the [`mod@file`].
//!
//! The way of a free(3): [`interpose`] -> [`filter`] (nearly always nothing of it is shared, and
//! [`real`] frees it) -> [`table`]. Mappings take the same way through [`interpose_maps`] and
//! [`remap`]. [`fork`] gives a child its own copy.

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
mod keepers;
mod limit;
mod mappings;
pub mod offers;
mod process;
pub mod real;
pub mod remap;
pub mod spans;
pub mod table;
