// SPDX-License-Identifier: Apache-2.0 OR MIT
//! libweft-mpi.so: serves MPI's collectives inside a host (docs/collectives.md).
//!
//! - *Purpose*: ranks on one host meet in shared memory instead of sending each other messages,
//!   under every MPI.
//! - *Used by*: `weft run --collectives`, which preloads it into each rank. No crate links to it.
//! - *Start at*: [`entries`], the functions that stand before the MPI's; then [`communicators`].
//!
//! One MPI_Allreduce down: [`entries`] (the MPI's name) -> [`reduction`] (is it a type and an
//! operation that Weft knows) -> [`communicators`] (what is known of the communicator; at its first
//! calls [`agreement`], in which all its ranks agree, and [`served`], what comes of that) ->
//! crates/collectives, or [`across`] where the ranks are on several hosts, with messages between
//! [`leaders`]. Whatever is not served goes on to the next definition of the same name: the MPI's,
//! or another tool's.
//!
//! Whether a call is served depends only on what the standard says is equal on all ranks: the
//! communicator, the call, the length in bytes, and of a reduction the type and the operation. So
//! all ranks decide alike without asking each other; where each rank knows only its own lengths,
//! one that cannot be served tells the others ([`shares`]).
//!
//! [`nonblocking`] begins the calls that do not wait, and [`pending`] goes on with them where
//! [`driver`] found that it can; [`home`] is whose they are.
//! [`movement`] and [`exchange`] bring blocks from ranks to ranks, with [`shares`], what they have
//! in common; [`reach`] is the ranks' memory, where long data are read. [`mpi`] finds the MPI of
//! the process and its binary interface; [`datatypes`] knows types, [`buffers`] the data that they
//! describe, [`lasting`] data of calls that end later, and [`parts`] blocks with places of their
//! own; [`limits`] says how long data may be, and [`tries`] whether they are read in place;
//! [`tally`] is a number that threads share; [`waiting`] drives the MPI while a rank waits,
//! [`lives`] looks whether the others live, and [`turns`] offers the processor to others;
//! [`outcome`] says how a call ends; [`calls`] are counted for `weft run`, and [`published`] for
//! `weft top`; [`large`] is for MPIs without large counts; [`functions`] are those that this
//! library calls itself, [`next`] those that it stands before.

pub mod across;
pub mod agreement;
pub mod buffers;
pub mod calls;
pub mod communicators;
pub mod datatypes;
pub mod driver;
pub mod entries;
pub mod exchange;
pub mod functions;
pub mod home;
pub mod large;
pub mod lasting;
pub mod leaders;
pub mod limits;
pub mod lives;
pub mod movement;
pub mod mpi;
pub mod next;
pub mod nonblocking;
pub mod outcome;
pub mod parts;
pub mod pending;
pub mod published;
pub mod reach;
pub mod reduction;
pub mod served;
pub mod shares;
pub mod tally;
pub mod tries;
pub mod turns;
pub mod waiting;
