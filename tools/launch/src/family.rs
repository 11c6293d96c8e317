// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The three MPI families: recognised by what an `mpiexec` says of itself, and by what a libmpi
//! exports.
//!
//! Called by `discover.rs` and `choose.rs`. The texts are those printed by Open MPI 4.1 to 5.0,
//! MPICH 4.0 to 5.0 (Hydra) and Intel MPI 2021.

use std::fmt;
use std::path::Path;

use serde::Serialize;

use crate::elf;

/// A family of MPI implementations that share a launcher, an ABI and their settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// Open MPI 4 and 5.
    OpenMpi,
    /// MPICH 4 and 5 with the Hydra launcher.
    Mpich,
    /// Intel MPI 2021: MPICH's ABI, its own settings.
    Intel,
}

impl Family {
    /// The name used for `--mpi`.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::OpenMpi => "openmpi",
            Self::Mpich => "mpich",
            Self::Intel => "intel",
        }
    }

    /// Whether a program linked to `self` can run on `other`: MPICH and Intel MPI share one ABI.
    #[must_use]
    pub fn shares_abi_with(self, other: Self) -> bool {
        (self == Self::OpenMpi) == (other == Self::OpenMpi)
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OpenMpi => "Open MPI",
            Self::Mpich => "MPICH",
            Self::Intel => "Intel MPI",
        })
    }
}

/// A version with up to three numbers; letters behind them are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// First number.
    pub major: u32,
    /// Second number, 0 if absent.
    pub minor: u32,
    /// Third number, 0 if absent.
    pub patch: u32,
}

impl Version {
    /// Reads the first word of `text` that starts with a digit and contains a dot.
    #[must_use]
    pub fn find(text: &str) -> Option<Self> {
        let word = text
            .split(|c: char| c.is_whitespace() || matches!(c, ',' | ')' | '('))
            .find(|w| w.starts_with(|c: char| c.is_ascii_digit()) && w.contains('.'))?;
        let mut numbers = word.split('.').map(|part| {
            part.chars()
                .take_while(char::is_ascii_digit)
                .collect::<String>()
                .parse::<u32>()
                .unwrap_or(0)
        });
        Some(Self {
            major: numbers.next()?,
            minor: numbers.next().unwrap_or(0),
            patch: numbers.next().unwrap_or(0),
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl Serialize for Version {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What `mpiexec --version` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Whose launcher it is.
    pub family: Family,
    /// Its version.
    pub version: Version,
    /// MPICH: the network modules it was built with (`ucx`, `ofi`), from its configure options;
    /// empty where it does not say.
    pub netmods: Vec<String>,
}

/// Recognises the output of `mpiexec --version`; `None` for launchers that Weft does not know (for
/// example Slurm's `srun` posing as one).
#[must_use]
pub fn recognise(output: &str) -> Option<Identity> {
    let first = output.lines().next().unwrap_or("");
    if first.contains("Open MPI") || first.contains("OpenRTE") {
        return Some(Identity {
            family: Family::OpenMpi,
            version: Version::find(first)?,
            netmods: Vec::new(),
        });
    }
    if output.contains("Intel(R) MPI Library") {
        let after = output.split("Version").nth(1).unwrap_or(output);
        return Some(Identity {
            family: Family::Intel,
            version: Version::find(after)?,
            netmods: Vec::new(),
        });
    }
    if output.contains("HYDRA build details") {
        let line = output
            .lines()
            .find(|line| line.trim_start().starts_with("Version:"))?;
        return Some(Identity {
            family: Family::Mpich,
            version: Version::find(line)?,
            netmods: netmods(output),
        });
    }
    None
}

/// The network modules in MPICH's configure option `--with-device=ch4:ucx,ofi`.
fn netmods(output: &str) -> Vec<String> {
    let Some((_, rest)) = output.split_once("--with-device=ch4:") else {
        return Vec::new();
    };
    let list = rest
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == ',' || c == '_'))
        .next()
        .unwrap_or("");
    list.split(',')
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The family of the shared library at `path`, told by symbols that only one family exports; `None`
/// if it is no MPI library.
#[must_use]
pub fn of_library(path: &Path) -> Option<Family> {
    let exported = elf::exported_symbols(path).ok()?;
    let has = |name: &str| exported.iter().any(|symbol| symbol == name);
    if has("ompi_mpi_comm_world") {
        Some(Family::OpenMpi)
    } else if has("I_MPI_Check_image_status") {
        Some(Family::Intel)
    } else if has("MPI_Init") {
        Some(Family::Mpich)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_mpi_says_its_name_in_two_ways() {
        let five = recognise("mpiexec (Open MPI) 5.0.11\n\nReport bugs to ...").unwrap();
        assert_eq!(
            (five.family, five.version),
            (
                Family::OpenMpi,
                Version {
                    major: 5,
                    minor: 0,
                    patch: 11
                }
            )
        );
        let four = recognise("mpiexec.openmpi (OpenRTE) 4.1.4\n").unwrap();
        assert_eq!(
            (four.family, four.version.major, four.version.minor),
            (Family::OpenMpi, 4, 1)
        );
    }

    #[test]
    fn mpich_tells_its_network_modules() {
        let text = "HYDRA build details:\n    Version:          5.0.2\n    Configure options:   \
                    --with-device=ch4:ucx,ofi --with-pm=hydra\n";
        let identity = recognise(text).unwrap();
        assert_eq!(
            (identity.family, identity.version.patch),
            (Family::Mpich, 2)
        );
        assert_eq!(identity.netmods, ["ucx", "ofi"]);
        let debian = recognise(
            "HYDRA build details:\n Version:  4.0.2\n Configure options: '--with-device=ch4:ucx' \
             'FFLAGS=-O2'\n",
        )
        .unwrap();
        assert_eq!(debian.netmods, ["ucx"]);
    }

    #[test]
    fn intel_is_not_taken_for_mpich() {
        let identity = recognise(
            "Intel(R) MPI Library for Linux* OS, Version 2021.18.1 Build 20260626 (id: \
             b44796a)\nCopyright\n",
        )
        .unwrap();
        assert_eq!(
            (identity.family, identity.version),
            (
                Family::Intel,
                Version {
                    major: 2021,
                    minor: 18,
                    patch: 1
                }
            )
        );
    }

    #[test]
    fn an_unknown_launcher_is_not_guessed() {
        assert_eq!(recognise("slurm 23.02.1"), None);
        assert_eq!(recognise(""), None);
    }

    #[test]
    fn only_mpich_and_intel_share_an_abi() {
        assert!(Family::Mpich.shares_abi_with(Family::Intel));
        assert!(!Family::OpenMpi.shares_abi_with(Family::Mpich));
        assert!(Family::OpenMpi.shares_abi_with(Family::OpenMpi));
    }
}
