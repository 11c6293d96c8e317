// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The value of `--mpi`: which MPI the user asked for.
//!
//! Read by `arguments.rs`; `choose.rs` finds the MPI.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Which MPI the user asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MpiChoice {
    /// The one that the program is linked to; the first that is found for a program that binds at
    /// run time.
    Auto,
    /// The first Open MPI in the order of search.
    OpenMpi,
    /// The first MPICH in the order of search.
    Mpich,
    /// The first Intel MPI in the order of search.
    Intel,
    /// Debian's own Open MPI, `/usr/bin/mpiexec.openmpi`.
    DebianOpenMpi,
    /// Debian's own MPICH, `/usr/bin/mpiexec.mpich`.
    DebianMpich,
    /// The `mpiexec` at this path.
    Path(PathBuf),
}

impl FromStr for MpiChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "auto" => Self::Auto,
            "openmpi" => Self::OpenMpi,
            "mpich" => Self::Mpich,
            "intel" => Self::Intel,
            "debian-openmpi" => Self::DebianOpenMpi,
            "debian-mpich" => Self::DebianMpich,
            path if path.contains('/') => Self::Path(PathBuf::from(path)),
            other => {
                return Err(format!(
                    "`{other}` is none of auto, openmpi, mpich, intel, debian-openmpi, \
                     debian-mpich; a path of an mpiexec must contain a `/`"
                ));
            }
        })
    }
}

impl fmt::Display for MpiChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::OpenMpi => f.write_str("openmpi"),
            Self::Mpich => f.write_str("mpich"),
            Self::Intel => f.write_str("intel"),
            Self::DebianOpenMpi => f.write_str("debian-openmpi"),
            Self::DebianMpich => f.write_str("debian-mpich"),
            Self::Path(path) => path.display().fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelled_mpi_is_told_apart_from_a_path() {
        assert_eq!(
            "./mpiexec".parse::<MpiChoice>().unwrap(),
            MpiChoice::Path("./mpiexec".into())
        );
        assert!(
            "openmp"
                .parse::<MpiChoice>()
                .unwrap_err()
                .contains("debian-openmpi")
        );
    }
}
