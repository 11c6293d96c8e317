// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Mappings, views of memory that another process writes, the user's buffers, and copying between
//! them.
//!
//! - *Purpose*: other crates access payload through safe types; the unsafe code of copying is here.
//! - *Used by*: the provider, which makes the user's buffers; contract, endpoint, ring and the
//!   routes, which copy.
//! - *Start at*: [`user_buffer`] and [`view`], then [`copy`].
//!
//! A transport uses three kinds of memory, and each has one type here:
//!
//! - [`Mapping`]: a shared region mapped into this process. It knows its bounds, and gives typed
//!   references only to types that are valid for any bytes ([`SharedLayout`]).
//! - [`BytesView`] and [`BytesViewMut`]: a part of a mapping as payload. Another process may write
//!   it at any time, so no Rust reference to the bytes is ever made; they are only copied.
//! - [`UserBuffer`]: the iovec of a fi_send or fi_recv call. Made once, in the provider, by an
//!   unsafe constructor whose contract is libfabric's own (the buffer is ours until its completion
//!   is written); everything after that is safe.
//!
//! Modules: [`mapping`], [`view`], [`user_buffer`], [`scratch`] (memory to build messages in),
//! [`cq_buffer`] (completions in C's layout), [`copy`] (copy routines by size), [`single_copy`]
//! (CMA), [`remote_memory`] (memory of another process, mapped), [`own_heap`] and [`remote_heap`]
//! (what processes share when it is offered), [`density`] (when that may pay), [`gather`]
//! (datagrams), [`atomic`] and [`element`] (remote atomics, carried out).

pub mod atomic;
pub mod copy;
pub mod cq_buffer;
pub mod density;
pub mod element;
pub mod gather;
pub mod mapping;
pub mod own_heap;
pub mod remote_heap;
pub mod remote_memory;
pub mod scratch;
pub mod single_copy;
pub mod user_buffer;
pub mod view;

pub use cq_buffer::{CqBuffer, ENTRY_WORDS};
pub use density::Density;
pub use element::{Element, Operator};
pub use gather::{Gather, GatherSpace};
pub use mapping::{Mapping, Reserved, SharedLayout};
pub use own_heap::{Offering, OwnHeap};
pub use remote_heap::RemoteHeap;
pub use remote_memory::RemoteMemory;
pub use scratch::{SCRATCH_BYTES, Scratch};
pub use user_buffer::{IOV_LIMIT, UserBuffer};
pub use view::{BytesView, BytesViewMut};
