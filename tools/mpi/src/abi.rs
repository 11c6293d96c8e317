// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The two binary interfaces in use: their constants, predefined handles and status layout.
//!
//! Called by library (which decides between them), session and communicator. Source: `mpi.h` of
//! Open MPI 4.1 and 5.0, of MPICH 4.0 and 5.0 and of Intel MPI 2021; the MPICH values are fixed by
//! the MPICH ABI Compatibility Initiative.
//!
//! A handle is kept as `usize` for both. MPICH's are C `int`s: every supported machine (x86-64,
//! AArch64, both little-endian) passes an `int` in the low half of a register or 8-byte stack slot
//! and ignores the rest, so one function type serves both. Only arrays of handles differ, by the
//! stride [`Abi::handle_bytes`].

use std::ffi::c_int;

#[cfg(not(all(target_endian = "little", target_pointer_width = "64")))]
compile_error!(
    "weft-mpi passes MPICH's 32-bit handles in 64-bit registers, which needs a 64-bit \
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
}

/// Type of the elements of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Datatype {
    /// `MPI_CHAR`, 1 byte.
    Char,
    /// `MPI_BYTE`, 1 byte.
    Byte,
    /// `MPI_INT`, 4 bytes.
    Int,
    /// `MPI_FLOAT`, 4 bytes.
    Float,
    /// `MPI_DOUBLE`, 8 bytes.
    Double,
    /// `MPI_LONG`, 8 bytes.
    Long,
}

/// A predefined reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `MPI_SUM`.
    Sum,
    /// `MPI_MIN`.
    Min,
    /// `MPI_MAX`.
    Max,
}

impl Datatype {
    /// All of them, in the order of their discriminants.
    pub const ALL: [Datatype; 6] = [
        Self::Char,
        Self::Byte,
        Self::Int,
        Self::Float,
        Self::Double,
        Self::Long,
    ];

    /// The name MPI gives it.
    pub const fn name(self) -> &'static str {
        [
            "MPI_CHAR",
            "MPI_BYTE",
            "MPI_INT",
            "MPI_FLOAT",
            "MPI_DOUBLE",
            "MPI_LONG",
        ][self as usize]
    }

    /// log2 of the size of one element in bytes.
    pub const fn size_shift(self) -> u32 {
        [0, 0, 2, 2, 3, 3][self as usize]
    }

    /// Size of one element in bytes.
    pub const fn size_bytes(self) -> usize {
        1 << self.size_shift()
    }

    pub(crate) const fn symbol(self) -> &'static std::ffi::CStr {
        [
            c"ompi_mpi_char",
            c"ompi_mpi_byte",
            c"ompi_mpi_int",
            c"ompi_mpi_float",
            c"ompi_mpi_double",
            c"ompi_mpi_long",
        ][self as usize]
    }

    pub(crate) const fn mpich_handle(self) -> usize {
        [
            0x4c00_0101,
            0x4c00_010d,
            0x4c00_0405,
            0x4c00_040a,
            0x4c00_080b,
            0x4c00_0807,
        ][self as usize]
    }
}

impl Operation {
    /// All of them, in the order of their discriminants.
    pub const ALL: [Operation; 3] = [Self::Sum, Self::Min, Self::Max];

    pub(crate) const fn symbol(self) -> &'static std::ffi::CStr {
        [c"ompi_mpi_op_sum", c"ompi_mpi_op_min", c"ompi_mpi_op_max"][self as usize]
    }

    pub(crate) const fn mpich_handle(self) -> usize {
        [0x5800_0003, 0x5800_0002, 0x5800_0001][self as usize]
    }
}

/// `MPI_COMM_WORLD` in the MPICH interface (specified).
pub(crate) const MPICH_COMM_WORLD: usize = 0x4400_0000;
/// `MPI_ERRORS_RETURN` in the MPICH interface (specified).
pub(crate) const MPICH_ERRORS_RETURN: usize = 0x5400_0001;
/// `MPI_INFO_NULL` in the MPICH interface (specified).
pub(crate) const MPICH_INFO_NULL: usize = 0x1c00_0000;
/// Room for the longest string either interface returns: `MPI_MAX_LIBRARY_VERSION_STRING` is 8192
/// in MPICH (specified).
pub(crate) const LONGEST_STRING_BYTES: usize = 8192;
impl Abi {
    /// Bytes of one handle in an array of handles.
    pub const fn handle_bytes(self) -> usize {
        match self {
            Self::OpenMpi => size_of::<usize>(),
            Self::Mpich => size_of::<c_int>(),
        }
    }

    /// `MPI_PROC_NULL`.
    pub const fn null_process(self) -> i32 {
        match self {
            Self::OpenMpi => -2,
            Self::Mpich => -1,
        }
    }

    /// `MPI_LOCK_EXCLUSIVE` and `MPI_LOCK_SHARED`.
    pub(crate) const fn lock_kind(self, exclusive: bool) -> c_int {
        match (self, exclusive) {
            (Self::OpenMpi, true) => 1,
            (Self::OpenMpi, false) => 2,
            (Self::Mpich, true) => 234,
            (Self::Mpich, false) => 235,
        }
    }

    /// `MPI_IN_PLACE` as an address.
    pub(crate) const fn in_place(self) -> usize {
        match self {
            Self::OpenMpi => 1,
            Self::Mpich => usize::MAX,
        }
    }

    /// `MPI_STATUS_IGNORE` and `MPI_STATUSES_IGNORE` as an address.
    pub(crate) const fn status_ignore(self) -> usize {
        match self {
            Self::OpenMpi => 0,
            Self::Mpich => 1,
        }
    }

    /// How people call the family.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenMpi => "Open MPI",
            Self::Mpich => "MPICH",
        }
    }
}

/// A library with another binary interface; the first line of its version.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("its binary interface is neither Open MPI's nor MPICH's (it calls itself \"{0}\")")]
pub(crate) struct UnknownAbi(String);

/// Which interface a library has, from whether it exports `ompi_mpi_comm_world` and from what
/// `MPI_Get_library_version` says.
///
/// # Errors
/// Neither interface fits.
pub(crate) fn recognise(
    exports_open_mpi_objects: bool,
    version: &str,
) -> std::result::Result<Abi, UnknownAbi> {
    const MPICH_FAMILY: [&str; 5] = [
        "MPICH",
        "Intel(R) MPI",
        "MVAPICH",
        "CRAY MPICH",
        "ParaStation",
    ];
    if exports_open_mpi_objects {
        return Ok(Abi::OpenMpi);
    }
    if MPICH_FAMILY.iter().any(|name| version.contains(name)) {
        return Ok(Abi::Mpich);
    }
    let first_line = version.lines().next().unwrap_or("");
    Err(UnknownAbi(first_line.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn library_with_exported_objects_is_open_mpi() {
        assert_eq!(recognise(true, "Open MPI v5.0.11"), Ok(Abi::OpenMpi));
    }

    #[test]
    fn relatives_of_mpich_are_recognised_by_their_version() {
        for version in [
            "MPICH Version:      5.0.2\n",
            "Intel(R) MPI Library 2021.17 for Linux* OS\n",
            "MVAPICH2 Version : 2.3",
        ] {
            assert_eq!(recognise(false, version), Ok(Abi::Mpich), "{version}");
        }
    }

    #[test]
    fn strange_library_is_refused_with_its_own_words() {
        let reason = recognise(false, "Fancy MPI 1\nmore")
            .unwrap_err()
            .to_string();
        assert!(reason.contains("\"Fancy MPI 1\""), "{reason}");
    }

    #[test]
    fn mpich_type_handles_carry_their_element_size_in_the_second_byte() {
        for kind in Datatype::ALL {
            assert_eq!(
                (kind.mpich_handle() >> 8) & 0xff,
                kind.size_bytes(),
                "{}",
                kind.name()
            );
        }
    }
}
