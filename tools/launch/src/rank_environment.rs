// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The ranks' environment, completed: the libmpi that they load, and what the user set.
//!
//! Called by `command.rs` for the ranks of `weft run`, and by `ranks.rs` for those that another
//! launcher starts; begins with the part of `transport.rs` that is for the ranks.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::discover::Installation;
use crate::environment::Environment;
use crate::family::Family;
use crate::fault::Fault;
use crate::linkage;
use crate::loader::Loader;
use crate::program::{BINDS_BY, Binding, Program};
use crate::rank_arguments::Variable;
use crate::transport::intel;

/// A program that is to be a rank, with what the user gave for it.
#[derive(Debug, Clone, Copy)]
pub struct RankProgram<'a> {
    /// The program.
    pub program: &'a Program,
    /// `--env`.
    pub variables: &'a [Variable],
    /// LD_LIBRARY_PATH as inherited.
    pub library_path: Option<&'a OsStr>,
}

impl RankProgram<'_> {
    /// Adds what makes the rank load this MPI's library and no other, and what the user set.
    ///
    /// # Errors
    /// `Fault::MpiMissing` when the program binds at run time and the MPI's library is unknown;
    /// `Fault::Mismatch` when the program would load another libmpi than the launcher's.
    pub fn complete(&self, ranks: &mut Environment, mpi: &Installation) -> Result<(), Fault> {
        self.name_library(ranks, mpi)?;
        for variable in self.variables {
            ranks.set(&variable.name, &variable.value);
        }
        Ok(())
    }

    /// Makes the ranks load this MPI's library and no other.
    fn name_library(&self, ranks: &mut Environment, mpi: &Installation) -> Result<(), Fault> {
        if let Some(library) = &mpi.libmpi {
            ranks.set(BINDS_BY, library.clone());
            if matches!(self.program.binding, Binding::Python { .. }) {
                ranks.set("MPI4PY_LIBMPI", library.clone());
            }
        } else if self.program.binding == Binding::AtRunTime {
            return Err(Fault::MpiMissing(format!(
                "{} was found, but not the libmpi that belongs to it, and {} loads it by name",
                mpi.describe(),
                self.program.path.display()
            )));
        }
        let folders = match (&self.program.binding, mpi.family) {
            (_, Family::Intel) => intel::library_folders(mpi),
            (Binding::Linked(need), _)
                if !need
                    .path
                    .as_deref()
                    .is_some_and(|path| mpi.owns_library(path)) =>
            {
                mpi.library_folder()
                    .map(Path::to_owned)
                    .into_iter()
                    .collect()
            }
            _ => Vec::new(),
        };
        if !folders.is_empty() {
            let inherited = self
                .library_path
                .filter(|text| !text.is_empty())
                .map(OsStr::to_owned);
            let list: Vec<OsString> = folders
                .into_iter()
                .map(PathBuf::into_os_string)
                .chain(inherited)
                .collect();
            ranks.set("LD_LIBRARY_PATH", list.join(OsStr::new(":")));
        }
        self.check_library(ranks, mpi)
    }

    /// Asks the loader's rules once more, now with the final LD_LIBRARY_PATH: an RPATH in the
    /// program would still win over it.
    fn check_library(&self, ranks: &Environment, mpi: &Installation) -> Result<(), Fault> {
        let Binding::Linked(need) = &self.program.binding else {
            return Ok(());
        };
        let path = ranks.value("LD_LIBRARY_PATH").map(OsString::as_os_str);
        let Some(path) = path else { return Ok(()) };
        let loader = Loader::of_this_machine(Some(path));
        match linkage::find_mpi(&self.program.path, &loader) {
            Ok(Some(now))
                if now
                    .path
                    .as_deref()
                    .is_some_and(|path| !mpi.owns_library(path)) =>
            {
                Err(Fault::Mismatch(format!(
                    "{} would load {} even under {}, because an RPATH in {} names it; build the \
                     program with that MPI, or leave --mpi out",
                    self.program.path.display(),
                    now.path.unwrap_or_default().display(),
                    mpi.describe(),
                    need.asked_by.display()
                )))
            }
            _ => Ok(()),
        }
    }
}
