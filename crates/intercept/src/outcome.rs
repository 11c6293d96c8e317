// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a call ends that Weft carries out. Made by movement, exchange, reduction and what they call;
//! communicators answers the program with it.

use std::ffi::c_int;
use std::io::Write;

use weft_collectives::Fault;

use crate::mpi::Mpi;

/// Why a call was not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The MPI carries it out, on all ranks, or refuses its arguments.
    Left,
    /// The MPI carries it out, on all ranks, because of the length that all name.
    Long,
    /// The MPI carries it out, since another rank has named a length for which it does.
    Followed,
    /// The MPI has failed with this error, which an error handler has heard of.
    Code(c_int),
    /// The MPI refused to pack or unpack data, and no error handler has heard of it.
    Unheard(c_int),
    /// The ranks' meeting failed.
    Fault(Fault),
}

impl Stop {
    /// Whether the MPI carries the call out.
    #[inline]
    pub fn is_for_the_mpi(self) -> bool {
        matches!(self, Self::Left | Self::Long | Self::Followed)
    }
}

/// How a call ends.
pub type Outcome = Result<(), Stop>;

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Refused => Self::Left,
            Fault::Left { .. } => Self::Followed,
            fault => Self::Fault(fault),
        }
    }
}

/// The MPI's error for a fault.
pub fn code_of(mpi: &Mpi, fault: Fault) -> c_int {
    match fault {
        Fault::Mismatch { .. } | Fault::Length { .. } => mpi.abi.error_truncate(),
        _ => mpi.abi.error_other(),
    }
}

/// Writes one line, at once: the launcher joins what the ranks write as it comes. A stderr that
/// cannot be written to is no reason to fail.
pub fn say(text: &str) {
    let _ = std::io::stderr().write_all(format!("weft: {text}\n").as_bytes());
}
