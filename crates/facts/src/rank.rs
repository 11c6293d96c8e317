// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How launchers tell a process which rank it is. The provider and `weft top` read it.

/// Variables that hold a process's rank in MPI_COMM_WORLD, the surest first: a launcher inside a
/// batch job leaves the batch system's to its ranks. Specified by Open MPI (mpirun(1)), PMIx, Hydra
/// and Slurm (srun(1)).
pub const VARIABLES: [&str; 4] = [
    "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK",
    "PMI_RANK",
    "SLURM_PROCID",
];
