// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which libmpi an ELF program would load: a walk over its needed libraries, as the dynamic loader
//! would do it.
//!
//! Called by `program.rs`; uses `elf.rs` for the facts of a file and `loader.rs` for the search. A
//! program often needs libmpi only through another library (gmx_mpi through libgromacs_mpi), hence
//! the walk.

use std::collections::{HashSet, VecDeque};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use crate::elf;
use crate::loader::{Loader, expand};

/// The libmpi that a program asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MpiNeed {
    /// The name it asks for, for example `libmpi.so.40`.
    pub soname: String,
    /// The file that the loader would take today; `None` if it would find none.
    pub path: Option<PathBuf>,
    /// The file that asks: the program itself or one of its libraries.
    pub asked_by: PathBuf,
}

/// Whether `soname` is the C library of an MPI: Open MPI's and Intel's libmpi, Debian's libmpich,
/// the standard ABI's libmpi_abi.
#[must_use]
pub fn is_mpi_library(soname: &str) -> bool {
    ["libmpi.so", "libmpich.so", "libmpi_abi.so"]
        .iter()
        .any(|stem| {
            soname
                .strip_prefix(stem)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
}

struct Visit {
    path: PathBuf,
    inherited_rpath: Vec<PathBuf>,
}

/// Walks the libraries of `program`, nearest first, and returns the first libmpi that is asked for.
///
/// # Errors
/// When `program` itself is no readable 64-bit ELF file; a library that does not parse is passed
/// over.
pub fn find_mpi(program: &Path, loader: &Loader) -> io::Result<Option<MpiNeed>> {
    let mut seen: HashSet<OsString> = HashSet::new();
    let mut waiting = VecDeque::from([Visit {
        path: program.to_owned(),
        inherited_rpath: Vec::new(),
    }]);
    let mut first = true;
    while let Some(visit) = waiting.pop_front() {
        let facts = match elf::dynamic(&visit.path) {
            Ok(facts) => facts,
            Err(error) if first => return Err(error),
            Err(_) => continue,
        };
        first = false;
        // $ORIGIN is the folder of the file itself, not of a link to it.
        let origin = visit
            .path
            .canonicalize()
            .unwrap_or_else(|_| visit.path.clone());
        for soname in &facts.needed {
            if !seen.insert(soname.clone()) {
                continue;
            }
            let path = loader.resolve(soname, &origin, &facts, &visit.inherited_rpath);
            if let Some(name) = soname.to_str().filter(|name| is_mpi_library(name)) {
                return Ok(Some(MpiNeed {
                    soname: name.to_owned(),
                    path,
                    asked_by: visit.path,
                }));
            }
            if let Some(path) = path {
                let own = facts.rpath.iter().map(|entry| expand(entry, &origin));
                let inherited_rpath = own.chain(visit.inherited_rpath.iter().cloned()).collect();
                waiting.push_back(Visit {
                    path,
                    inherited_rpath,
                });
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiled::cc;

    #[test]
    fn libmpi_is_found_through_another_library() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        let mpi = cc(
            here,
            "libmpi.so.999",
            "int MPI_Init(void){return 0;}",
            &["-shared", "-fPIC", "-Wl,-soname,libmpi.so.999"],
        );
        let options = [
            "-shared",
            "-fPIC",
            "-Wl,-soname,libcode.so",
            "libmpi.so.999",
            "-Wl,--enable-new-dtags,-rpath,$ORIGIN",
        ];
        let code = cc(
            here,
            "libcode.so",
            "int MPI_Init(void); int code(void){return MPI_Init();}",
            &options,
        );
        let link = [
            "libcode.so",
            "-Wl,--enable-new-dtags,-rpath,$ORIGIN",
            "-Wl,--allow-shlib-undefined",
        ];
        let program = cc(
            here,
            "program",
            "int code(void); int main(void){return code();}",
            &link,
        );

        let need = find_mpi(&program, &Loader::default()).unwrap().unwrap();
        assert_eq!(need.soname, "libmpi.so.999");
        assert_eq!(
            need.path.unwrap().canonicalize().unwrap(),
            mpi.canonicalize().unwrap()
        );
        assert_eq!(
            need.asked_by.canonicalize().unwrap(),
            code.canonicalize().unwrap()
        );

        std::fs::remove_file(&mpi).unwrap();
        let lost = find_mpi(&program, &Loader::default()).unwrap().unwrap();
        assert_eq!((lost.soname.as_str(), lost.path), ("libmpi.so.999", None));
    }

    #[test]
    fn a_program_without_mpi_needs_none() {
        let folder = tempfile::tempdir().unwrap();
        let program = cc(folder.path(), "plain", "int main(void){return 0;}", &[]);
        assert_eq!(
            find_mpi(&program, &Loader::of_this_machine(None)).unwrap(),
            None
        );
    }

    #[test]
    fn names_of_helper_libraries_are_not_libmpi() {
        for yes in [
            "libmpi.so",
            "libmpi.so.12",
            "libmpich.so.12",
            "libmpi_abi.so.1",
        ] {
            assert!(is_mpi_library(yes), "{yes}");
        }
        for no in [
            "libmpi_mpifh.so.40",
            "libmpicxx.so.12",
            "libmpifort.so.12",
            "libmpighost.so",
            "libmpi.solo",
        ] {
            assert!(!is_mpi_library(no), "{no}");
        }
    }
}
