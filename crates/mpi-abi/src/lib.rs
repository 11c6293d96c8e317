// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The binary interfaces of MPI libraries: the value of each constant of `mpi.h` in each library.
//!
//! - *Purpose*: one library of Weft, and one benchmark program, serve all MPIs.
//! - *Used by*: crates/intercept in the job, tools/mpi in the benchmarks.
//! - *Start at*: [`Abi`]; then [`datatype`] and [`operation`], the tables.
//!
//! Sources: `mpi.h` of Open MPI 4.1 and 5.0, of MPICH 4.0 and 5.0 and of Intel MPI 2021, whose
//! values the MPICH ABI Compatibility Initiative fixes; `mpi_abi.h` of MPI 5.0, chapter 20.
//!
//! A handle is kept as `usize` for all. MPICH's are C `int`s: every supported machine (x86-64,
//! AArch64, both little-endian) passes an `int` in the low half of a register or of an 8-byte stack
//! slot and ignores the rest, so one function type serves all. A handle that comes from an MPI or
//! its program may have any bits in the upper half: [`Abi::handle`] clears them.

#![forbid(unsafe_code)]

use std::ffi::{CStr, c_int};

pub mod datatype;
pub mod operation;

#[cfg(not(all(target_endian = "little", target_pointer_width = "64")))]
compile_error!(
    "weft-mpi-abi passes MPICH's 32-bit handles in 64-bit registers, which needs a 64-bit \
     little-endian machine"
);

/// A family of MPI libraries that share one binary interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abi {
    /// Open MPI: handles are addresses of exported objects. `libmpi.so.40`.
    OpenMpi,
    /// MPICH and relatives (Intel MPI, MVAPICH, Cray): handles are integers. `libmpi.so.12`,
    /// Debian's `libmpich.so.12`.
    Mpich,
    /// The standard's own since MPI 5.0: handles are pointers, the predefined ones small numbers.
    /// `libmpi_abi.so`.
    Standard,
}

/// A predefined object in all interfaces.
#[derive(Clone, Copy, Debug)]
pub struct Constant {
    open_mpi: &'static CStr,
    mpich: u32,
    standard: u32,
}

/// What a predefined handle is in one interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The address of the symbol of this name.
    Symbol(&'static CStr),
    /// This number.
    Number(usize),
}

impl Constant {
    const fn new(open_mpi: &'static CStr, mpich: u32, standard: u32) -> Self {
        Self {
            open_mpi,
            mpich,
            standard,
        }
    }

    /// What it is in an interface.
    pub const fn place(&self, abi: Abi) -> Place {
        match abi {
            Abi::OpenMpi => Place::Symbol(self.open_mpi),
            Abi::Mpich => Place::Number(self.mpich as usize),
            Abi::Standard => Place::Number(self.standard as usize),
        }
    }
}

/// `MPI_COMM_WORLD`.
pub const COMM_WORLD: Constant = Constant::new(c"ompi_mpi_comm_world", 0x4400_0000, 0x101);
/// `MPI_COMM_SELF`.
pub const COMM_SELF: Constant = Constant::new(c"ompi_mpi_comm_self", 0x4400_0001, 0x102);
/// `MPI_COMM_NULL`.
pub const COMM_NULL: Constant = Constant::new(c"ompi_mpi_comm_null", 0x0400_0000, 0x100);
/// `MPI_DATATYPE_NULL`.
pub const DATATYPE_NULL: Constant = Constant::new(c"ompi_mpi_datatype_null", 0x0c00_0000, 0x200);

/// `MPI_ERRORS_RETURN`.
pub const ERRORS_RETURN: Constant = Constant::new(c"ompi_mpi_errors_return", 0x5400_0001, 0x142);
/// `MPI_INFO_NULL`.
pub const INFO_NULL: Constant = Constant::new(c"ompi_mpi_info_null", 0x1c00_0000, 0x130);

/// Room for the longest string that an interface returns: `MPI_MAX_LIBRARY_VERSION_STRING` is 8192
/// in MPICH and in the standard (specified).
pub const LONGEST_STRING_BYTES: usize = 8192;

impl Abi {
    /// How people call the family.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenMpi => "Open MPI",
            Self::Mpich => "MPICH",
            Self::Standard => "the standard interface",
        }
    }

    /// Bytes of one handle in an array of handles.
    pub const fn handle_bytes(self) -> usize {
        match self {
            Self::OpenMpi | Self::Standard => size_of::<usize>(),
            Self::Mpich => size_of::<c_int>(),
        }
    }

    /// `MPI_PROC_NULL`.
    pub const fn null_process(self) -> c_int {
        match self {
            Self::OpenMpi => -2,
            Self::Mpich => -1,
            Self::Standard => -3,
        }
    }

    /// `MPI_LOCK_SHARED`.
    pub const fn shared_lock(self) -> c_int {
        match self {
            Self::OpenMpi => 2,
            Self::Mpich => 235,
            Self::Standard => 302,
        }
    }

    /// A handle as a program passes it: without what stands beside it in the register.
    pub const fn handle(self, passed: usize) -> usize {
        match self {
            Self::Mpich => passed & 0xffff_ffff,
            Self::OpenMpi | Self::Standard => passed,
        }
    }

    /// `MPI_IN_PLACE` as an address.
    pub const fn in_place(self) -> usize {
        match self {
            Self::OpenMpi | Self::Standard => 1,
            Self::Mpich => usize::MAX,
        }
    }

    /// `MPI_STATUS_IGNORE` and `MPI_STATUSES_IGNORE` as an address.
    pub const fn status_ignore(self) -> usize {
        match self {
            Self::OpenMpi | Self::Standard => 0,
            Self::Mpich => 1,
        }
    }

    /// `MPI_UNDEFINED`.
    pub const fn undefined(self) -> c_int {
        -32766
    }

    /// `MPI_ERR_TRUNCATE`.
    pub const fn error_truncate(self) -> c_int {
        match self {
            Self::OpenMpi | Self::Standard => 15,
            Self::Mpich => 14,
        }
    }

    /// `MPI_ERR_OTHER`.
    pub const fn error_other(self) -> c_int {
        match self {
            Self::OpenMpi | Self::Standard => 16,
            Self::Mpich => 15,
        }
    }
}

/// Which interface a library has: by its file's name, by whether it exports `ompi_mpi_comm_world`,
/// and by what `MPI_Get_library_version` says. `None` for one that has another: unknown, or with
/// integers of 64 bits.
pub fn recognise(file_name: &str, exports_open_mpi_objects: bool, version: &str) -> Option<Abi> {
    const MPICH_FAMILY: [&str; 5] = [
        "MPICH",
        "Intel(R) MPI",
        "MVAPICH",
        "CRAY MPICH",
        "ParaStation",
    ];
    if file_name.contains("ilp64") {
        return None;
    }
    if file_name.starts_with("libmpi_abi.") {
        return Some(Abi::Standard);
    }
    if exports_open_mpi_objects {
        return Some(Abi::OpenMpi);
    }
    let is_relative = MPICH_FAMILY.iter().any(|name| version.contains(name));
    is_relative.then_some(Abi::Mpich)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_known_by_its_name_its_objects_or_its_version() {
        for (file, objects, version, abi) in [
            ("libmpi.so.40", true, "Open MPI v5.0.11", Some(Abi::OpenMpi)),
            (
                "libmpi.so.12",
                false,
                "MPICH Version:      5.0.2\n",
                Some(Abi::Mpich),
            ),
            (
                "libmpi.so.12",
                false,
                "Intel(R) MPI Library 2021.17\n",
                Some(Abi::Mpich),
            ),
            (
                "libmpi_abi.so.1",
                false,
                "MPICH Version:      5.0.2\n",
                Some(Abi::Standard),
            ),
            (
                "libmpi_ilp64.so.4",
                false,
                "Intel(R) MPI Library 2021.17\n",
                None,
            ),
            ("libmpi.so.9", false, "Fancy MPI 1", None),
        ] {
            assert_eq!(recognise(file, objects, version), abi, "{file} {version}");
        }
    }

    #[test]
    fn a_handle_of_32_bits_loses_what_stands_beside_it() {
        assert_eq!(Abi::Mpich.handle(0xdead_0000_4400_0000), 0x4400_0000);
        assert_eq!(
            Abi::OpenMpi.handle(0x7fff_0000_4400_0000),
            0x7fff_0000_4400_0000
        );
    }
}
