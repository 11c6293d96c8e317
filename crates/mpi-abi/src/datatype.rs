// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The predefined datatypes: their handles in each interface, and what arithmetic they take part
//! in. Used by whoever must know a datatype without asking the MPI.

use crate::Constant;

/// What a reduction may do with the elements of a type (MPI 4.1, 6.9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A signed integer.
    Signed,
    /// An unsigned integer.
    Unsigned,
    /// A floating point number.
    Float,
    /// Two floating point numbers.
    Complex,
    /// A truth value of C, one byte.
    Truth,
    /// Bits.
    Bytes,
    /// A truth value of Fortran: not 0 is true (MPI_LOGICAL).
    Logical,
    /// Two integers of one type, a value and a place.
    Pair,
    /// Two floating point numbers of one type, a value and a place.
    FloatPair,
    /// A floating point number, and a place as an `int`; there may be gaps.
    FloatAndInt,
    /// A signed integer, and a place as an `int`; with gaps.
    SignedAndInt,
    /// Only to be moved, as far as Weft is concerned.
    Other,
}

/// One predefined datatype. Its size in bytes is the library's to say (MPI_Type_size).
#[derive(Clone, Copy, Debug)]
pub struct Datatype {
    /// Its handle.
    pub handle: Constant,
    /// Its arithmetic.
    pub kind: Kind,
}

const fn row(open_mpi: &'static std::ffi::CStr, mpich: u32, standard: u32, kind: Kind) -> Datatype {
    Datatype {
        handle: Constant::new(open_mpi, mpich, standard),
        kind,
    }
}

/// All whose elements lie side by side without gaps, and the pairs in C of two numbers.
pub const ALL: [Datatype; 54] = [
    row(c"ompi_mpi_char", 0x4c00_0101, 0x243, Kind::Other), // MPI_CHAR
    row(c"ompi_mpi_signed_char", 0x4c00_0118, 0x244, Kind::Signed), // MPI_SIGNED_CHAR
    row(
        c"ompi_mpi_unsigned_char",
        0x4c00_0102,
        0x245,
        Kind::Unsigned,
    ), // MPI_UNSIGNED_CHAR
    row(c"ompi_mpi_byte", 0x4c00_010d, 0x247, Kind::Bytes), // MPI_BYTE
    row(c"ompi_mpi_packed", 0x4c00_010f, 0x207, Kind::Other), // MPI_PACKED
    row(c"ompi_mpi_wchar", 0x4c00_040e, 0x23c, Kind::Other), // MPI_WCHAR
    row(c"ompi_mpi_short", 0x4c00_0203, 0x208, Kind::Signed), // MPI_SHORT
    row(
        c"ompi_mpi_unsigned_short",
        0x4c00_0204,
        0x20c,
        Kind::Unsigned,
    ), // MPI_UNSIGNED_SHORT
    row(c"ompi_mpi_int", 0x4c00_0405, 0x209, Kind::Signed), // MPI_INT
    row(c"ompi_mpi_unsigned", 0x4c00_0406, 0x20d, Kind::Unsigned), // MPI_UNSIGNED
    row(c"ompi_mpi_long", 0x4c00_0807, 0x20a, Kind::Signed), // MPI_LONG
    row(
        c"ompi_mpi_unsigned_long",
        0x4c00_0808,
        0x20e,
        Kind::Unsigned,
    ), // MPI_UNSIGNED_LONG
    row(c"ompi_mpi_long_long_int", 0x4c00_0809, 0x20b, Kind::Signed), // MPI_LONG_LONG
    row(
        c"ompi_mpi_unsigned_long_long",
        0x4c00_0819,
        0x20f,
        Kind::Unsigned,
    ), // MPI_UNSIGNED_LONG_LONG
    row(c"ompi_mpi_float", 0x4c00_040a, 0x210, Kind::Float), // MPI_FLOAT
    row(c"ompi_mpi_double", 0x4c00_080b, 0x214, Kind::Float), // MPI_DOUBLE
    row(c"ompi_mpi_long_double", 0x4c00_100c, 0x220, Kind::Other), // MPI_LONG_DOUBLE
    row(
        c"ompi_mpi_c_float_complex",
        0x4c00_0840,
        0x212,
        Kind::Complex,
    ), // MPI_C_FLOAT_COMPLEX
    row(
        c"ompi_mpi_c_double_complex",
        0x4c00_1041,
        0x216,
        Kind::Complex,
    ), // MPI_C_DOUBLE_COMPLEX
    row(c"ompi_mpi_c_bool", 0x4c00_013f, 0x238, Kind::Truth), // MPI_C_BOOL
    row(c"ompi_mpi_int8_t", 0x4c00_0137, 0x240, Kind::Signed), // MPI_INT8_T
    row(c"ompi_mpi_uint8_t", 0x4c00_013b, 0x241, Kind::Unsigned), // MPI_UINT8_T
    row(c"ompi_mpi_int16_t", 0x4c00_0238, 0x248, Kind::Signed), // MPI_INT16_T
    row(c"ompi_mpi_uint16_t", 0x4c00_023c, 0x249, Kind::Unsigned), // MPI_UINT16_T
    row(c"ompi_mpi_int32_t", 0x4c00_0439, 0x250, Kind::Signed), // MPI_INT32_T
    row(c"ompi_mpi_uint32_t", 0x4c00_043d, 0x251, Kind::Unsigned), // MPI_UINT32_T
    row(c"ompi_mpi_int64_t", 0x4c00_083a, 0x258, Kind::Signed), // MPI_INT64_T
    row(c"ompi_mpi_uint64_t", 0x4c00_083e, 0x259, Kind::Unsigned), // MPI_UINT64_T
    row(c"ompi_mpi_aint", 0x4c00_0843, 0x201, Kind::Signed), // MPI_AINT
    row(c"ompi_mpi_offset", 0x4c00_0844, 0x203, Kind::Signed), // MPI_OFFSET
    row(c"ompi_mpi_count", 0x4c00_0845, 0x202, Kind::Signed), // MPI_COUNT
    row(c"ompi_mpi_character", 0x4c00_011a, 0x21e, Kind::Other), // MPI_CHARACTER
    row(c"ompi_mpi_logical", 0x4c00_041d, 0x218, Kind::Logical), // MPI_LOGICAL
    row(c"ompi_mpi_integer", 0x4c00_041b, 0x219, Kind::Signed), // MPI_INTEGER
    row(c"ompi_mpi_real", 0x4c00_041c, 0x21a, Kind::Float), // MPI_REAL
    row(c"ompi_mpi_dblprec", 0x4c00_081f, 0x21c, Kind::Float), // MPI_DOUBLE_PRECISION
    row(c"ompi_mpi_cplex", 0x4c00_081e, 0x21b, Kind::Complex), // MPI_COMPLEX
    row(c"ompi_mpi_dblcplex", 0x4c00_1022, 0x21d, Kind::Complex), // MPI_DOUBLE_COMPLEX
    row(c"ompi_mpi_integer1", 0x4c00_012d, 0x2c1, Kind::Signed), // MPI_INTEGER1
    row(c"ompi_mpi_integer2", 0x4c00_022f, 0x2c9, Kind::Signed), // MPI_INTEGER2
    row(c"ompi_mpi_integer4", 0x4c00_0430, 0x2d1, Kind::Signed), // MPI_INTEGER4
    row(c"ompi_mpi_integer8", 0x4c00_0831, 0x2d9, Kind::Signed), // MPI_INTEGER8
    row(c"ompi_mpi_real4", 0x4c00_0427, 0x2d2, Kind::Float), // MPI_REAL4
    row(c"ompi_mpi_real8", 0x4c00_0829, 0x2da, Kind::Float), // MPI_REAL8
    row(c"ompi_mpi_complex8", 0x4c00_0828, 0x2db, Kind::Complex), // MPI_COMPLEX8
    row(c"ompi_mpi_complex16", 0x4c00_102a, 0x2e3, Kind::Complex), // MPI_COMPLEX16
    row(c"ompi_mpi_2int", 0x4c00_0816, 0x22b, Kind::Pair),  // MPI_2INT
    row(c"ompi_mpi_2integer", 0x4c00_0820, 0x232, Kind::Pair), // MPI_2INTEGER
    row(c"ompi_mpi_2real", 0x4c00_0821, 0x230, Kind::FloatPair), // MPI_2REAL
    row(c"ompi_mpi_2dblprec", 0x4c00_1023, 0x231, Kind::FloatPair), // MPI_2DOUBLE_PRECISION
    row(c"ompi_mpi_float_int", 0x8c00_0000, 0x228, Kind::FloatAndInt), // MPI_FLOAT_INT
    row(
        c"ompi_mpi_double_int",
        0x8c00_0001,
        0x229,
        Kind::FloatAndInt,
    ), // MPI_DOUBLE_INT
    row(c"ompi_mpi_long_int", 0x8c00_0002, 0x22a, Kind::SignedAndInt), // MPI_LONG_INT
    row(
        c"ompi_mpi_short_int",
        0x8c00_0003,
        0x22c,
        Kind::SignedAndInt,
    ), // MPI_SHORT_INT
];

/// `MPI_CHAR`.
pub const CHAR: Constant = ALL[0].handle;
/// `MPI_BYTE`.
pub const BYTE: Constant = ALL[3].handle;
/// `MPI_INT`.
pub const INT: Constant = ALL[8].handle;
/// `MPI_LONG`.
pub const LONG: Constant = ALL[10].handle;
/// `MPI_FLOAT`.
pub const FLOAT: Constant = ALL[14].handle;
/// `MPI_DOUBLE`.
pub const DOUBLE: Constant = ALL[15].handle;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_types_with_names_of_their_own_are_those_of_the_table() {
        for (one, symbol) in [
            (CHAR, c"ompi_mpi_char"),
            (BYTE, c"ompi_mpi_byte"),
            (INT, c"ompi_mpi_int"),
            (LONG, c"ompi_mpi_long"),
            (FLOAT, c"ompi_mpi_float"),
            (DOUBLE, c"ompi_mpi_double"),
        ] {
            assert_eq!(one.open_mpi, symbol);
        }
    }

    #[test]
    fn no_two_types_have_one_handle() {
        for (index, one) in ALL.iter().enumerate() {
            for other in &ALL[..index] {
                assert_ne!(one.handle.open_mpi, other.handle.open_mpi);
                assert_ne!(one.handle.mpich, other.handle.mpich);
                assert_ne!(one.handle.standard, other.handle.standard);
            }
        }
    }

    #[test]
    fn handles_of_the_standard_that_carry_a_size_agree_with_those_of_mpich() {
        for one in &ALL {
            // MPI 5.0, 20.3.2: 0b1001 begins a type of fixed size, whose logarithm follows.
            if one.handle.standard >> 6 == 0b1001 || one.handle.standard >> 6 == 0b1011 {
                let size_bytes = 1 << ((one.handle.standard >> 3) & 7);
                assert_eq!((one.handle.mpich >> 8) & 0xff, size_bytes, "{one:?}");
            }
        }
    }
}
