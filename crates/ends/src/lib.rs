// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is preloaded into a launcher: `libweft-ends.so`. It tells how the ranks of this host end.
//!
//! - *Purpose*: launchers of MPIs pass on different exit codes, and some wait for ever when a rank
//!   has failed. The process that starts the ranks is their parent, and so only it hears how each
//!   one ends. This library tells `weft run` what its parent hears.
//! - *Used by*: `weft run`, which preloads it into the MPI's launcher. The launcher's own processes
//!   inherit it, and /usr/bin/env, which then becomes the rank without it. No crate links to it.
//!   Ranks that MPI_Comm_spawn starts have it, too; there it does what the C library does.
//!   On several hosts it tells nothing, and only keeps Intel's mpiexec from dying by SIGPIPE.
//! - *Start at*: [`calls`], the functions that replace those of the C library, and [`writes`].
//!
//! A process with a launcher's variable of ranks says its number when the library is loaded. A
//! launcher says which of its children have ended, and how, and which signals it sends. All words
//! go to the socket that [`word::VARIABLE`] names.

pub mod calls;
pub mod pause;
pub mod word;
pub mod writes;
