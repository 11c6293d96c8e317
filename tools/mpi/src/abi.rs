// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The datatypes and reductions that benchmarks use, and how to recognise a library's binary
//! interface.
//!
//! Called by library (which decides between the interfaces), session and communicator. The values
//! of the constants are in crates/mpi-abi. A library with the standard interface of MPI 5 is
//! refused: the same MPI's other library is measured.

use weft_mpi_abi::{Abi, Constant, datatype, operation};

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

    /// Its handle in each interface.
    pub(crate) const fn handle(self) -> Constant {
        match self {
            Self::Char => datatype::CHAR,
            Self::Byte => datatype::BYTE,
            Self::Int => datatype::INT,
            Self::Float => datatype::FLOAT,
            Self::Double => datatype::DOUBLE,
            Self::Long => datatype::LONG,
        }
    }
}

impl Operation {
    /// All of them, in the order of their discriminants.
    pub const ALL: [Operation; 3] = [Self::Sum, Self::Min, Self::Max];

    /// Its handle in each interface.
    pub(crate) const fn handle(self) -> Constant {
        match self {
            Self::Sum => operation::SUM,
            Self::Min => operation::MIN,
            Self::Max => operation::MAX,
        }
    }
}

/// A library with another binary interface; the first line of its version.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("its binary interface is neither Open MPI's nor MPICH's (it calls itself \"{0}\")")]
pub(crate) struct UnknownAbi(String);

/// Which interface a library has, from whether it exports `ompi_mpi_comm_world` and from what
/// `MPI_Get_library_version` says. Those that its file's name tells are found out before.
///
/// # Errors
/// Neither interface fits.
pub(crate) fn recognise(
    exports_open_mpi_objects: bool,
    version: &str,
) -> std::result::Result<Abi, UnknownAbi> {
    weft_mpi_abi::recognise("", exports_open_mpi_objects, version).ok_or_else(|| {
        let first_line = version.lines().next().unwrap_or("");
        UnknownAbi(first_line.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_mpi_abi::Place;

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
            let Place::Number(handle) = kind.handle().place(Abi::Mpich) else {
                panic!("MPICH's handles are numbers");
            };
            assert_eq!((handle >> 8) & 0xff, kind.size_bytes(), "{}", kind.name());
        }
    }
}
