// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lock-free structures in shared memory.
//!
//! - *Purpose*: two processes exchange cells and chunks without a lock. Atomics live here (and in
//!   memory's remote atomics, and in the preloaded heap). docs/shm-layout.md specifies the layout;
//!   each file cites its clause.
//! - *Used by*: shm; `weft doctor` and `weft top`, which read what a region publishes.
//! - *Start at*: [`layout`], then [`lane`].
//!
//! One region belongs to one endpoint, its *receiver*. Every remote that sends to it maps the
//! region and claims a slot in it. Modules, in the order in which a message passes them:
//!
//! - [`layout`]: all offsets and sizes.
//! - [`region`]: making one's own region, attaching to a remote's, claiming and releasing slots;
//!   [`identity`]: who does so.
//! - [`lane`]: the queue of one sender in one receiver's region: [`lane::Producer`] and
//!   [`lane::Consumer`]. Its [`cell`]s are one cache line each and carry header and short payload
//!   together; longer payload goes to the lane's data area, named by a cell.
//! - [`pool`]: chunks of a lane that change their owner with the messages that they carry.
//! - [`doorbell`]: a sender tells the receiver to look at a lane that the receiver does not poll.
//! - [`pipe`]: a ring of cache-sized chunks for large messages where single copy is refused or
//!   slower.
//! - [`chunk_claims`]: who copies which chunk of a message that both processes copy.
//! - [`registrations`]: memory that remotes may access by themselves, and which remotes do so now.
//! - [`published`]: the counts that an endpoint shows to tools.
//! - [`sync`]: the atomics, replaced by loom's when its models run.
//!
//! No reader ever waits for a writer. One release store publishes a message; before that it is
//! invisible. So a sender that dies leaves nothing half done. Data that a remote wrote is checked
//! once, where it is read.

pub mod cell;
pub mod chunk_claims;
pub mod doorbell;
pub mod identity;
pub mod lane;
pub mod layout;
pub mod pipe;
pub mod pool;
pub mod published;
pub mod region;
pub mod registrations;
pub mod snapshot;
pub(crate) mod sync;

pub use cell::{CELL_PAYLOAD_BYTES, Head, INLINE_PAYLOAD_BYTES};
pub use chunk_claims::{CLAIM_LIMIT, ChunkClaims, ChunkStage};
pub use identity::Identity;
pub use lane::{Arrival, Consumer, Full, Producer};
pub use pipe::{PipeReader, PipeWriter};
pub use pool::{OwnChunk, Pool, Stretch, Way};
pub use region::{AttachError, Region, Slots, map_lane};
pub use registrations::{Lease, Registration, Registrations};
