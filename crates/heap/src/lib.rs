// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A heap that other processes of the same user can map: `libweft-heap.so`, preloaded into each rank by `weft run`
//! (docs/adr/0011-heap-within-reach.md), which does so unless told otherwise.
//!
//! It takes the place of malloc and its family. Allocations of 16 KiB and more come from one anonymous file of the process, mapped
//! shared; all others go to the C library as before. So the long buffers of an unmodified program lie where a receiver on
//! the same host can map them and copy straight out of them, and where one-sided operations reach them by load and store, without a
//! kernel module and without a system call for each message.
//!
//! What stays as with the C library: alignment, `realloc` over the threshold both ways, zeroed `calloc`, memory that is returned to the
//! system when it is freed, core files, a child process that has its own copy after fork(2), and failure with ENOMEM. What does not: fork(2) copies
//! it at once instead of page by page, and shared memory has large pages only where the system is set so ([`unasked`]).
//!
//! One allocation down: [`interpose`] (the C functions) -> [`arena`] (the file, its mapping and the lock) -> [`extents`] (which pages are
//! whose). [`fork`] gives a child its copy. [`arena`] also answers the provider, which asks where the heap lies
//! (`weft_heap_v1`, docs/shm-layout.md, clause 11) and shows that to the remotes of this host.
//!
//! The crate stands alone and uses nothing of the standard library that allocates: whatever does would call back into it.

pub mod arena;
pub mod extents;
pub mod fork;
#[cfg(not(test))]
pub mod interpose;
mod limit;
mod process;
mod unasked;
