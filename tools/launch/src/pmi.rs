// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether an MPI understands the launcher that started it. One that does not begins alone: then N
//! jobs of one rank run, and all end well.
//!
//! Called by `exec.rs`. As tried under Open MPI's mpirun, Hydra and srun with Open MPI 4.1.4 and
//! 5.0.11, MPICH 5.0.2 and Intel MPI 2021.18; open-mpi/ompi issue 13523.

use crate::discover::Installation;
use crate::elf;
use crate::family::Family;
use crate::fault::Fault;
use crate::started::{Started, Starter};

/// Functions that an MPI imports when it was built with a library of PMI.
const PMIX: &str = "PMIx_Init";
const PMI: [&str; 2] = ["PMI_Init", "PMI2_Init"];

/// Whether this MPI's ranks find each other when they are started so.
///
/// # Errors
/// `Fault::Mismatch` where each rank would be a job of its own.
pub fn check(mpi: &Installation, started: &Started) -> Result<(), Fault> {
    if started.is_alone() || understands(mpi, &Offer::of(started)) {
        return Ok(());
    }
    let size = started
        .size
        .map_or("several".to_owned(), |size| size.to_string());
    Err(Fault::Mismatch(format!(
        "{} started {size} ranks in a way that {} does not understand: they would not find each \
         other. {}",
        started.by,
        mpi.describe(),
        remedy(mpi.family, started.by)
    )))
}

/// What a launcher offers its ranks to find each other by.
#[derive(Debug, Clone, Copy)]
pub struct Offer {
    /// Who starts the ranks.
    pub by: Starter,
    /// PMIx.
    pub pmix: bool,
    /// PMI 1 or 2.
    pub pmi: bool,
}

impl Offer {
    fn of(started: &Started) -> Self {
        Self {
            by: started.by,
            pmix: started.pmix,
            pmi: started.pmi,
        }
    }
}

/// Intel MPI speaks PMIx by itself from this version on; older ones take PMI alone. Specified by
/// Intel's release notes of 2021.11.
const INTEL_WITH_PMIX: (u32, u32) = (2021, 11);

/// Whether ranks of this MPI find each other by what is offered.
#[must_use]
pub fn understands(mpi: &Installation, started: &Offer) -> bool {
    let imports = |names: &[&str]| {
        let library = mpi.libmpi.as_deref();
        let missing = library.and_then(|path| elf::missing_symbols(path).ok());
        // A library that cannot be read is not known to lack anything.
        missing.is_none_or(|missing| {
            names
                .iter()
                .any(|name| missing.iter().any(|one| one == name))
        })
    };
    match mpi.family {
        // Version 4 could be built for each PMI, and says itself what it lacks.
        Family::OpenMpi if mpi.version.major < 5 => started.pmix || started.by != Starter::Hydra,
        Family::OpenMpi => started.pmix,
        Family::Mpich => started.pmi || (started.pmix && imports(&[PMIX])) || imports(&PMI),
        // It takes Slurm's PMIx, and not that of Open MPI's launchers: there each rank is alone.
        Family::Intel => {
            let named = std::env::var_os("I_MPI_PMI_LIBRARY").is_some();
            let version = (mpi.version.major, mpi.version.minor);
            let speaks = version >= INTEL_WITH_PMIX && started.by != Starter::OpenMpi;
            let pmix = started.pmix && speaks;
            started.pmi || pmix || named
        }
    }
}

fn remedy(family: Family, by: Starter) -> &'static str {
    match (family, by) {
        (Family::OpenMpi, Starter::Slurm) => "Write srun --mpi=pmix",
        (_, Starter::Slurm) => "Write srun --mpi=pmi2",
        _ => "Start it with the mpirun of the MPI that it was built with, or with weft run",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mpi(family: Family, major: u32) -> Installation {
        Installation {
            // Imports neither PMI nor PMIx.
            libmpi: std::env::current_exe().ok(),
            ..Installation::nowhere(family, major)
        }
    }

    fn started(by: Starter, pmix: bool, pmi: bool) -> Started {
        Started {
            by,
            variable: "X",
            rank: 0,
            size: Some(2),
            local_size: Some(2),
            local_rank: None,
            pmix,
            pmi,
        }
    }

    #[test]
    fn a_pair_that_would_give_jobs_of_one_rank_is_refused_with_the_remedy() {
        use Starter::{Hydra, OpenMpi, Slurm};
        let five = mpi(Family::OpenMpi, 5);
        let mpich = mpi(Family::Mpich, 5);
        let mut intel = mpi(Family::Intel, 2021);
        let old_intel = intel.clone();
        intel.version.minor = INTEL_WITH_PMIX.1;
        for (mpi, started, remedy) in [
            (&five, started(Slurm, false, true), "srun --mpi=pmix"),
            (&five, started(Slurm, false, false), "srun --mpi=pmix"),
            (&five, started(Hydra, false, true), "weft run"),
            (&mpich, started(OpenMpi, true, false), "weft run"),
            (&mpich, started(Slurm, true, false), "srun --mpi=pmi2"),
            (&intel, started(Slurm, false, false), "srun --mpi=pmi2"),
            (&intel, started(OpenMpi, true, false), "weft run"),
            (&old_intel, started(Slurm, true, false), "srun --mpi=pmi2"),
        ] {
            let text = check(mpi, &started).unwrap_err().to_string();
            assert!(text.contains(remedy), "{text}");
            let alone = Started {
                size: Some(1),
                ..started
            };
            assert!(check(mpi, &alone).is_ok());
        }
        for (mpi, started) in [
            (&five, started(OpenMpi, true, false)),
            (&mpich, started(Hydra, false, true)),
            (&mpich, started(Slurm, false, true)),
            (&intel, started(Slurm, true, false)),
        ] {
            assert!(check(mpi, &started).is_ok());
        }
    }
}
