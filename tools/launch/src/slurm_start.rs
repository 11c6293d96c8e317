// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How ranks start inside an allocation of Slurm: by srun where it offers a PMI that the program's
//! MPI speaks, else by the MPI's own launcher, which asks Slurm for the nodes.
//!
//! Called by `weft submit` before a script is written, and by `slurm.rs` (`weft run --slurm`)
//! inside the allocation. `pmi.rs` knows which MPI speaks what. docs/slurm.md has what was tried.

use std::ffi::OsStr;
use std::io;
use std::process::Command;

use weft_job::sbatch::Start;

use crate::choose::Chosen;
use crate::discover::Installation;
use crate::family::Family;
use crate::fault::Fault;
use crate::mpi_choice::MpiChoice;
use crate::pmi::{self, Offer};
use crate::program::{self, Program};
use crate::rank_mpi;
use crate::started::Starter;

/// The word of `--pmi` that stands for the MPI's own launcher.
pub const MPIRUN: &str = "mpirun";

/// What is decided of a job's start.
#[derive(Debug, Clone)]
pub struct Decided {
    /// The program, as it was found here.
    pub program: Program,
    /// Its MPI.
    pub chosen: Chosen,
    /// How the ranks start.
    pub start: Start,
}

/// Decides how the program `name` starts. `offered` is the answer of [`offered`], `asked` the value
/// of `--pmi`.
///
/// # Errors
/// As `weft exec`: no such program, no MPI for it. As [`choose`].
pub fn decide(
    name: &OsStr,
    mpi: &MpiChoice,
    offered: &[String],
    asked: Option<&str>,
) -> Result<Decided, Fault> {
    let program = program::inspect_here(name)?;
    let chosen = rank_mpi::of(mpi, &program, Some(Starter::Slurm), None)?;
    let start = choose(&chosen.installation, offered, asked)?;
    Ok(Decided {
        program,
        chosen,
        start,
    })
}

/// The ways that srun offers which have to do with PMI: `pmix`, `pmix_v4`, `pmi2`.
///
/// # Errors
/// When srun cannot be started.
pub fn offered() -> io::Result<Vec<String>> {
    let output = Command::new("srun").arg("--mpi=list").output()?;
    // Older versions write the list to stderr.
    let text = [output.stdout, output.stderr].concat();
    Ok(read_offer(&String::from_utf8_lossy(&text)))
}

/// The names in an answer of `srun --mpi=list`: one a line, and versions behind a colon.
fn read_offer(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    for line in text.lines() {
        let list = match line.split_once("available:") {
            Some((_, versions)) => versions,
            None => line.trim_start().trim_start_matches("srun:"),
        };
        // The other lines are sentences.
        if line.contains("available:") || list.split_whitespace().count() == 1 {
            let words = list.split([',', ' ']).map(str::trim);
            names.extend(
                words
                    .filter(|word| word.starts_with("pmi"))
                    .map(str::to_owned),
            );
        }
    }
    names
}

/// Chooses the way that needs least of the others.
///
/// # Errors
/// `Fault::Mismatch` where `asked` is not offered, or would give each rank a world of its own.
pub fn choose(mpi: &Installation, offered: &[String], asked: Option<&str>) -> Result<Start, Fault> {
    match asked {
        Some(MPIRUN) => Ok(own_launcher(mpi)),
        Some(pmi) => asked_for(mpi, offered, pmi),
        None => {
            let way = order(mpi.family)
                .into_iter()
                .find(|way| offered.iter().any(|one| one == way) && speaks(mpi, way));
            Ok(way.map_or_else(|| own_launcher(mpi), by_srun))
        }
    }
}

/// What is taken first: the PMI that an MPI has spoken longest.
fn order(family: Family) -> [&'static str; 2] {
    match family {
        Family::OpenMpi => ["pmix", "pmi2"],
        Family::Mpich | Family::Intel => ["pmi2", "pmix"],
    }
}

fn speaks(mpi: &Installation, way: &str) -> bool {
    // Open MPI 4 speaks PMI 2 only where it was built so, which its library does not tell.
    let is_pmix = way.starts_with("pmix");
    let is_known = mpi.family != Family::OpenMpi || is_pmix;
    let offer = Offer {
        by: Starter::Slurm,
        pmix: is_pmix,
        pmi: way == "pmi2",
    };
    is_known && pmi::understands(mpi, &offer)
}

fn asked_for(mpi: &Installation, offered: &[String], pmi: &str) -> Result<Start, Fault> {
    let list = || match offered {
        [] => "no PMI".to_owned(),
        names => names.join(", "),
    };
    if !offered.iter().any(|one| one == pmi) {
        return Err(Fault::Mismatch(format!(
            "--pmi {pmi}: srun offers {} (srun --mpi=list); write one of them, or --pmi {MPIRUN}",
            list()
        )));
    }
    if speaks(mpi, pmi) {
        return Ok(by_srun(pmi));
    }
    let better = match choose(mpi, offered, None)? {
        Start::Srun { pmi } => pmi,
        _ => MPIRUN.to_owned(),
    };
    Err(Fault::Mismatch(format!(
        "--pmi {pmi}: {} does not understand it, so each rank would be a job of its own; write \
         --pmi {better}, or leave the option out",
        mpi.describe()
    )))
}

fn by_srun(pmi: &str) -> Start {
    Start::Srun {
        pmi: pmi.to_owned(),
    }
}

fn own_launcher(mpi: &Installation) -> Start {
    let path = mpi.mpiexec.clone();
    match mpi.family {
        Family::OpenMpi => Start::OpenMpi(path),
        Family::Mpich | Family::Intel => Start::Hydra(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mpi(family: Family, major: u32, minor: u32) -> Installation {
        let mut mpi = Installation {
            // Imports neither PMI nor PMIx.
            libmpi: std::env::current_exe().ok(),
            ..Installation::nowhere(family, major)
        };
        mpi.version.minor = minor;
        mpi
    }

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn answers_of_new_and_old_versions_are_read() {
        let new = "MPI plugin types are...\n\tpmix\n\tnone\n\tcray_shasta\n\tpmi2\nspecific pmix \
                   plugin versions available: pmix_v4,pmix_v3\n";
        assert_eq!(read_offer(new), ["pmix", "pmi2", "pmix_v4", "pmix_v3"]);
        let old = "srun: MPI types are...\nsrun: none\nsrun: pmi2\nsrun: pmix_v3\n";
        assert_eq!(read_offer(old), ["pmi2", "pmix_v3"]);
        assert!(read_offer("srun: error: no such pmix plugin\n").is_empty());
    }

    #[test]
    fn each_mpi_gets_the_pmi_that_it_speaks_else_its_own_launcher() {
        let both = names(&["pmix", "pmi2", "pmix_v4"]);
        let path = || "/m/bin/mpiexec".into();
        let five = mpi(Family::OpenMpi, 5, 0);
        let four = mpi(Family::OpenMpi, 4, 1);
        let mpich = mpi(Family::Mpich, 5, 0);
        let intel = mpi(Family::Intel, 2021, 18);
        let old_intel = mpi(Family::Intel, 2021, 10);
        for (mpi, offered, start) in [
            (&five, both.clone(), by_srun("pmix")),
            (&five, names(&["pmi2"]), Start::OpenMpi(path())),
            (&four, both.clone(), by_srun("pmix")),
            (&four, names(&["pmi2"]), Start::OpenMpi(path())),
            (&mpich, both.clone(), by_srun("pmi2")),
            (&mpich, names(&["pmix"]), Start::Hydra(path())),
            (&intel, both.clone(), by_srun("pmi2")),
            (&intel, names(&["pmix"]), by_srun("pmix")),
            (&old_intel, names(&["pmix"]), Start::Hydra(path())),
            (&intel, Vec::new(), Start::Hydra(path())),
        ] {
            let text = format!("{} with {offered:?}", mpi.describe());
            assert_eq!(choose(mpi, &offered, None).unwrap(), start, "{text}");
        }
    }

    #[test]
    fn a_pair_that_would_give_worlds_of_one_rank_is_refused_with_the_other_way() {
        let both = names(&["pmix", "pmi2"]);
        let five = mpi(Family::OpenMpi, 5, 0);
        let mpich = mpi(Family::Mpich, 5, 0);
        for (mpi, offered, asked, remedy) in [
            (&five, &both[..], "pmi2", "--pmi pmix"),
            (&five, &both[1..], "pmi2", "--pmi mpirun"),
            (&mpich, &both[..], "pmix", "--pmi pmi2"),
            (&mpich, &both[..], "none", "srun offers pmix, pmi2"),
            (&mpich, &[], "pmi2", "srun offers no PMI"),
        ] {
            let fault = choose(mpi, offered, Some(asked)).unwrap_err().to_string();
            assert!(fault.contains(remedy), "{fault}");
        }
        assert_eq!(
            choose(&mpich, &both, Some(MPIRUN)).unwrap(),
            own_launcher(&mpich)
        );
    }
}
