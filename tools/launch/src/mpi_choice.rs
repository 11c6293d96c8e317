// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The value of `--mpi`: which MPI the user asked for.
//!
//! Read by `arguments.rs`; `choose.rs` finds the MPI.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{OsStringValueParser, TypedValueParser};

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
            other => return Err(none_of(&format!("`{other}`"))),
        })
    }
}

fn none_of(shown: &str) -> String {
    format!(
        "{shown} is none of auto, openmpi, mpich, intel, debian-openmpi, debian-mpich; a path of \
         an mpiexec must contain a `/`"
    )
}

impl MpiChoice {
    /// The one that a word on the command line stands for: a path may be any bytes.
    fn of(word: &OsStr) -> Result<Self, String> {
        match word.to_str() {
            Some(text) => text.parse(),
            None if word.as_encoded_bytes().contains(&b'/') => Ok(Self::Path(word.into())),
            None => Err(none_of(&format!("{word:?}"))),
        }
    }

    /// As a parser of clap.
    pub(crate) fn parser() -> impl TypedValueParser<Value = Self> {
        OsStringValueParser::new().try_map(|word| Self::of(&word))
    }

    /// As it stands on a command line.
    #[must_use]
    pub fn to_word(&self) -> OsString {
        match self {
            Self::Path(path) => path.into(),
            named => named.to_string().into(),
        }
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
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn a_path_is_taken_and_handed_on_byte_for_byte() {
        let path = OsStr::from_bytes(b"/caf\xe9/mpiexec");
        let choice = MpiChoice::of(path).unwrap();
        assert_eq!(choice, MpiChoice::Path(path.into()));
        for word in [path, OsStr::new("mpich"), OsStr::new("debian-openmpi")] {
            assert_eq!(MpiChoice::of(word).unwrap().to_word(), word);
        }
        let refusal = MpiChoice::of(OsStr::from_bytes(b"mpich\xe9")).unwrap_err();
        assert!(
            refusal.starts_with(r#""mpich\xE9" is none of"#),
            "{refusal}"
        );
    }

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
