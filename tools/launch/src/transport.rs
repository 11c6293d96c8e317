// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What carries the messages, and how each MPI is told so: pure functions from the choice to
//! launcher arguments and environment.
//!
//! Called by `lib.rs`; one file per MPI family below. Facts: the MPIs' own parameter lists
//! (`ompi_info --all`, `mpivars`, `impi_info`) and their behaviour as tried with Open MPI 4.1.4 and
//! 5.0.11, MPICH 4.0.2 and 5.0.2, Intel MPI 2021.18.

pub mod intel;
mod job;
pub mod mpich;
pub mod openmpi;
pub mod openmpi_rules;

use crate::discover::Installation;
use crate::family::Family;
use crate::fault::Fault;

pub(crate) use job::set_provider;
pub use job::{Settings, Shape, Transport};

/// The settings with which `mpi` runs a job of this shape over this transport.
///
/// # Errors
/// `Fault::Mismatch` where this MPI cannot use this transport.
pub fn settings(
    mpi: &Installation,
    transport: &Transport,
    shape: &Shape,
) -> Result<Settings, Fault> {
    if transport.provider().is_some() {
        mpi.can_use_libfabric()
            .map_err(|why| Fault::Mismatch(why.to_string()))?;
    }
    Ok(match mpi.family {
        Family::OpenMpi => openmpi::settings(mpi, transport, shape),
        Family::Mpich => mpich::settings(mpi, transport, shape),
        Family::Intel => intel::settings(mpi, transport, shape),
    })
}

#[cfg(test)]
#[path = "transport_tests.rs"]
mod alike;
