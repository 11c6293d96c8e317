// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Run-time binding to any MPI, so that one binary measures every MPI on the machine.
//!
//! A benchmark that is linked against one MPI can use only that MPI's binary interface. Open MPI
//! names its predefined objects by the addresses of exported variables; MPICH and its family (Intel
//! MPI, MVAPICH, Cray MPICH) name them by integers. To compare them with two executables would also
//! compare the output of two compilers. This crate opens the library when the program starts, looks
//! each function up once, and keeps plain function pointers. A call is one indirect jump. A call in
//! a directly linked program costs the same, through the procedure linkage table.
//!
//! In the order of a program's life:
//! - [`locate`]: which library files to try, from `WEFT_MPI_LIBRARY`, the launcher's environment
//!   and the launcher's own path
//! - [`library`]: opens one and finds out which binary interface it has
//! - [`abi`]: the constants and the status layout of each interface
//! - `table`: the functions, grouped
//! - [`session`]: initialise, finalise, abort, clock, names
//! - [`communicator`]: rank, size, blocking messages, split
//! - [`collective`]: barrier, broadcast, reductions, exchanges; [`layout`]: where each rank's part
//!   lies in an exchange
//! - [`neighbours`]: communicators of neighbours; [`threads`]: one communicator for several threads
//! - [`prepared`]: a collective with its memory, blocking, non-blocking or persistent;
//!   [`collective_call`] and [`entry`]: the arguments and the functions of each collective
//! - [`requests`]: messages in flight, inside a scope that always waits for them; [`buffer`]: the
//!   page-aligned memory they use
//! - [`persistent`]: messages prepared once and started often
//! - [`window`] and [`one_sided`]: memory that other ranks reach, and the accesses to it;
//!   [`window_memory`]: this rank's part of it
//! - [`sleeping_children`]: child processes, to test whether an MPI supports a fork
//! - [`error`]: errors as sentences
//!
//! Everything public is safe: lengths are checked, buffers of messages in flight cannot be touched,
//! and a session stays on the thread that initialised it.

pub mod abi;
pub mod buffer;
pub mod collective;
pub mod collective_call;
pub mod communicator;
pub mod entry;
pub mod error;
pub mod layout;
pub mod library;
pub mod locate;
pub mod neighbours;
pub mod one_sided;
pub mod persistent;
pub mod prepared;
pub mod requests;
pub mod session;
pub mod sleeping_children;
mod table;
pub mod threads;
pub mod window;
pub mod window_memory;

pub use abi::{Datatype, Operation};
pub use buffer::Buffer;
pub use collective_call::Collective;
pub use communicator::Communicator;
pub use entry::Form;
pub use error::{Error, Result};
pub use layout::Layout;
pub use neighbours::graph;
pub use one_sided::There;
pub use persistent::{Direction, Line, Persistent};
pub use prepared::{Prepared, Specification};
pub use requests::{Requests, Scope};
pub use session::{Session, ThreadLevel};
pub use sleeping_children::SleepingChildren;
pub use threads::Shared;
pub use weft_mpi_abi::Abi;
pub use window::{Origin, Window};
pub use window_memory::WindowMemory;
