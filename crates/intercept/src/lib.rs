// SPDX-License-Identifier: Apache-2.0 OR MIT
//! libweft-mpi.so: serves MPI's collectives inside a host (docs/collectives.md).
//!
//! - *Purpose*: ranks on one host exchange data in shared memory instead of by messages, under
//!   every MPI.
//! - *Used by*: `weft run --collectives`, which preloads it into each rank. No crate links to it.
//! - *Start at*: [`entries`], the functions that replace the MPI's; then [`communicators`].
//!
//! The way of an MPI_Allreduce:
//!
//! 1. [`entries`]: the function with the MPI's name.
//! 2. [`reduction`]: are the type and the operation known to Weft?
//! 3. [`communicators`]: what is known of the communicator. At its first calls all its ranks agree
//!    ([`agreement`]), and the result is kept ([`served`]).
//! 4. crates/collectives; or [`across`], where the ranks are on several hosts, with messages
//!    between [`leaders`].
//!
//! A call that Weft does not serve goes to the next definition of the same name: the MPI's, or
//! another tool's.
//!
//! Whether a call is served depends only on what the standard says is equal on all ranks: the
//! communicator, the call, the length in bytes, and for a reduction the type and the operation. So
//! all ranks decide in the same way without asking each other. Where each rank knows only its own
//! lengths, a rank that cannot be served tells the others ([`shares`]).
//!
//! Other modules:
//! - [`nonblocking`] begins nonblocking calls; [`pending`] continues them where [`driver`] found
//!   that it can; [`request_communicator`]: the communicator whose error handler is called when
//!   they fail; [`result_buffer`]: where their results go.
//! - [`movement`] and [`exchange`] move blocks between ranks; [`shares`]: what the ranks have in
//!   common; [`reach`]: the ranks' memory, where long data are read.
//! - [`mpi`] finds the MPI of the process and its binary interface; [`functions`]: those that this
//!   library calls itself; [`next`]: those that it replaces; [`large`]: MPIs without large counts.
//! - [`datatypes`]: types; [`buffers`]: the data that they describe; [`parts`]: blocks with places
//!   of their own.
//! - [`limits`]: how long data may be; [`in_place_tries`]: whether they are read in place.
//! - [`waiting`] makes the MPI's progress while a rank waits, by an [`idle_request`]; [`liveness`]
//!   checks whether the others live; [`yielding`] offers the processor to others.
//! - [`start`] does what is quicker before the MPI starts threads; [`one_provider`] answers Open
//!   MPI which provider to take, where there is only one.
//! - [`unfinished`] tells the launcher the exit code of a rank that never called MPI_Finalize;
//!   [`other_tool`] which tool of the profiling interface kept all calls from us.
//! - [`outcome`]: how a call ends; [`calls`]: counts for `weft run`; [`published`]: counts for
//!   `weft top`; [`shared_count`]: a number that threads share.
//! - [`asked`]: who is to serve, as the launcher said; [`sessions`]: whether the program has begun
//!   a session.

pub mod across;
pub mod agreement;
pub mod asked;
pub mod buffers;
pub mod calls;
pub mod communicators;
pub mod datatypes;
pub mod domains;
pub mod driver;
pub mod entries;
pub mod exchange;
pub mod functions;
mod gaps;
pub mod idle_request;
pub mod in_place_tries;
pub mod large;
pub mod leaders;
pub mod limits;
pub mod liveness;
pub mod movement;
pub mod mpi;
pub mod next;
pub mod nonblocking;
pub mod one_provider;
pub mod other_tool;
pub mod outcome;
pub mod parts;
pub mod pending;
pub mod published;
pub mod reach;
pub mod reduction;
pub mod request_communicator;
pub mod result_buffer;
pub mod served;
pub mod sessions;
pub mod shared_count;
pub mod shares;
pub mod start;
pub mod unfinished;
pub mod waiting;
pub mod yielding;
