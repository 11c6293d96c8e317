// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which calls of MPI a program has in it that an MPI cannot do in the way it is usually set up.
//!
//! Called by `job.rs`; the files of `transport` and `known_problems.rs` act on it. Seen in the
//! symbols that the program, or the library through which it comes to its MPI, expects from others.

use std::path::Path;

use crate::elf;
use crate::program::{Binding, Program};

/// What a program calls; `false` also where that cannot be seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Calls {
    /// MPI_Comm_spawn, or ports: processes that come later.
    pub processes: bool,
    /// Windows: one-sided communication.
    pub windows: bool,
    /// MPI_Init_thread, with which a program may ask for MPI_THREAD_MULTIPLE.
    pub threads: bool,
    /// MPI_Mrecv or MPI_Imrecv.
    pub matched_receives: bool,
}

impl Calls {
    /// Looks into the program's file. An mpi4py has every call in it: what its script does is not
    /// seen, but it asks for MPI_THREAD_MULTIPLE, and so windows must bear that.
    #[must_use]
    pub fn of(program: &Program) -> Self {
        match &program.binding {
            Binding::Linked(need) => Self::in_files([&program.path, &need.asked_by]),
            Binding::Python { .. } => Self {
                windows: true,
                threads: true,
                ..Self::default()
            },
            Binding::AtRunTime | Binding::None(_) => Self::default(),
        }
    }

    fn in_files<'a>(files: impl IntoIterator<Item = &'a std::path::PathBuf>) -> Self {
        let missing = |file: &Path| elf::missing_symbols(file).unwrap_or_default();
        let names: Vec<String> = files.into_iter().flat_map(|file| missing(file)).collect();
        Self::among(&names)
    }

    fn among(names: &[String]) -> Self {
        let has = |stems: &[&str]| {
            let is_one = |name: &String| stems.iter().any(|stem| stands_for(name, stem));
            names.iter().any(is_one)
        };
        Self {
            processes: has(&["mpi_comm_spawn", "mpi_comm_accept", "mpi_comm_connect"]),
            windows: has(&["mpi_win_create", "mpi_win_allocate"]),
            threads: has(&["mpi_init_thread"]),
            matched_receives: has(&["mpi_mrecv", "mpi_imrecv"]),
        }
    }
}

/// Whether a symbol is the call `stem` or one whose name goes on behind it: as it is in C
/// (MPI_Mrecv), with the profiling interface's name (PMPI_Mrecv), in Fortran (mpi_mrecv_).
fn stands_for(symbol: &str, stem: &str) -> bool {
    let name = symbol.to_ascii_lowercase();
    let name = match name.strip_prefix('p') {
        Some(rest) if rest.starts_with("mpi_") => rest,
        _ => name.as_str(),
    };
    name.strip_prefix(stem)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn among(names: &[&str]) -> Calls {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        Calls::among(&names)
    }

    #[test]
    fn calls_are_known_in_c_in_fortran_and_by_their_profiling_names() {
        assert_eq!(among(&["MPI_Send", "MPI_Init"]), Calls::default());
        for name in [
            "MPI_Comm_spawn_multiple",
            "PMPI_Comm_accept",
            "mpi_comm_connect_",
        ] {
            assert!(among(&[name]).processes, "{name}");
        }
        for name in ["MPI_Mrecv", "MPI_Imrecv", "mpi_mrecv_f08_", "MPI_Mrecv_c"] {
            assert!(among(&[name]).matched_receives, "{name}");
        }
        let windows = among(&["MPI_Win_allocate_shared", "mpi_init_thread__"]);
        assert!(windows.windows && windows.threads && !windows.matched_receives);
        assert_eq!(among(&["MPI_Mrecvs", "XMPI_Mrecv"]), Calls::default());
    }

    #[test]
    fn a_programs_own_file_says_what_it_calls() {
        let folder = tempfile::tempdir().unwrap();
        let source = "int MPI_Mrecv(void); int call(void) { return MPI_Mrecv(); }";
        let (input, output) = (folder.path().join("a.c"), folder.path().join("a"));
        std::fs::write(&input, source).unwrap();
        let mut compiler = std::process::Command::new("cc");
        let options = ["-shared", "-fPIC", "-o"];
        let built = compiler.arg(&input).args(options).arg(&output).status();
        assert!(built.unwrap().success());
        let calls = Calls::in_files([&output]);
        assert!(calls.matched_receives && !calls.processes, "{calls:?}");
    }
}
