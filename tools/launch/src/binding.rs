// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a program comes to its MPI. Found by `program` and `python`.

use std::path::PathBuf;

use crate::linkage::MpiNeed;

/// How a program comes to its MPI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Binding {
    /// Linked to a libmpi.
    Linked(MpiNeed),
    /// Loads the libmpi named by WEFT_MPI_LIBRARY while it runs, as `weft bench` does: any MPI will
    /// do.
    AtRunTime,
    /// A Python whose mpi4py loads a libmpi while it runs: any MPI will do; this prefix's own, if
    /// it has one, is the natural one.
    Python {
        /// The prefix of the environment (`sys.prefix`).
        prefix: PathBuf,
    },
    /// Nothing of MPI was found; the text says what was looked at.
    None(String),
}
