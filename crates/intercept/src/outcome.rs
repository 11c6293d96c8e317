// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a call ends that Weft carries out. Made by movement, exchange, reduction and what they call;
//! communicators answers the program with it.

use std::ffi::c_int;

use weft_collectives::Fault;

/// Why a call was not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The MPI carries it out, on all ranks.
    Left,
    /// The MPI refused to pack or unpack data, with this error.
    Code(c_int),
    /// The ranks' meeting failed.
    Fault(Fault),
}

/// How a call ends.
pub type Outcome = Result<(), Stop>;

/// How a call ends that was tried in place: `None` if it was refused, by all ranks alike.
pub fn unless_refused(outcome: Outcome) -> Option<Outcome> {
    (outcome != Err(Stop::Left)).then_some(outcome)
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Refused => Self::Left,
            fault => Self::Fault(fault),
        }
    }
}
