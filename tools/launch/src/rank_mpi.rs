// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The MPI of a rank that another launcher started: the one that the program is linked to, else the
//! launcher's own. Every rank asks, so as few programs as possible are asked.
//!
//! Called by `exec.rs`; `choose.rs` decides, as for `weft run`.

use std::path::{Path, PathBuf};

use crate::choose::{self, Chosen};
use crate::discover::{self, Candidate, Surroundings};
use crate::elf;
use crate::family::Family;
use crate::fault::Fault;
use crate::mpi_choice::MpiChoice;
use crate::program::{Binding, Program};
use crate::started::Starter;

/// Chooses. `folder` is that of the launcher's program.
///
/// # Errors
/// As [`choose::choose`].
pub fn of(
    asked: &MpiChoice,
    program: &Program,
    starter: Option<Starter>,
    folder: Option<&Path>,
) -> Result<Chosen, Fault> {
    let launcher = folder.and_then(|folder| beside(starter?, folder));
    let first = launcher.clone().map(|mpiexec| Candidate {
        mpiexec,
        origin: "the launcher".into(),
    });
    let mut near: Vec<Candidate> = first.into_iter().collect();
    near.extend(choose::named(asked));
    near.extend(choose::natural(program));
    let here = discover::installations(&near);
    let of_launcher = here
        .iter()
        .find(|mpi| Some(&mpi.mpiexec) == launcher.as_ref());
    let fits = |family| starter != Some(Starter::OpenMpi) || family == Family::OpenMpi;
    match of_launcher.filter(|mpi| fits(mpi.family)) {
        Some(mpi) if *asked == MpiChoice::Auto && is_open(program) => Ok(Chosen {
            installation: mpi.clone(),
            note: None,
        }),
        _ => match choose::choose(asked, program, &here, true) {
            Ok(chosen) if chosen.note.is_none() => Ok(chosen),
            _ => {
                near.extend(Surroundings::of_this_process().candidates());
                choose::choose(asked, program, &discover::installations(&near), true)
            }
        },
    }
}

/// Whether the program leaves open which MPI it is for: a script, a Python, one that binds at run
/// time. A program that is no script and has nothing of MPI is not meant.
fn is_open(program: &Program) -> bool {
    match program.binding {
        Binding::AtRunTime | Binding::Python { .. } => true,
        Binding::None(_) => !elf::is_elf(&program.path),
        Binding::Linked(_) => false,
    }
}

/// The launcher that says what MPI it belongs to, in the folder of the process that started the
/// rank. Debian has two MPIs in one folder.
fn beside(starter: Starter, folder: &Path) -> Option<PathBuf> {
    let names: &[&str] = match starter {
        Starter::OpenMpi => &["mpiexec.openmpi", "mpiexec"],
        Starter::Hydra => &["mpiexec.mpich", "mpiexec.hydra", "mpiexec"],
        Starter::Slurm | Starter::Other => &[],
    };
    let paths = names.iter().map(|name| folder.join(name));
    paths.into_iter().find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launcher_is_asked_by_the_name_that_only_its_mpi_has() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        assert_eq!(beside(Starter::OpenMpi, folder.path()), None);
        for name in ["mpiexec", "mpiexec.openmpi", "mpiexec.mpich"] {
            std::fs::write(at(name), "").unwrap();
        }
        for (starter, name) in [
            (Starter::OpenMpi, Some("mpiexec.openmpi")),
            (Starter::Hydra, Some("mpiexec.mpich")),
            (Starter::Slurm, None),
        ] {
            assert_eq!(beside(starter, folder.path()), name.map(at));
        }
    }

    #[test]
    fn only_what_leaves_its_mpi_open_takes_the_launchers() {
        let program = |path: &str, binding| Program {
            path: path.into(),
            binding,
        };
        let none = || Binding::None(String::new());
        assert!(is_open(&program("/dev/null", none())));
        assert!(is_open(&program("/bin/sh", Binding::AtRunTime)));
        assert!(!is_open(&program("/bin/sh", none())));
    }
}
