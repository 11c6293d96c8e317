// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Elements and operations as callers name them; MPI 4.1, 6.9.2 and 6.9.4. Used by table.rs.

/// What an element is. Types of C, Fortran and C++ are these: whoever calls knows their sizes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Element {
    /// Signed integer of 8 bits.
    I8,
    /// Unsigned integer of 8 bits; also bytes, and logical values of one byte.
    U8,
    /// Signed integer of 16 bits.
    I16,
    /// Unsigned integer of 16 bits.
    U16,
    /// Signed integer of 32 bits.
    I32,
    /// Unsigned integer of 32 bits.
    U32,
    /// Signed integer of 64 bits.
    I64,
    /// Unsigned integer of 64 bits.
    U64,
    /// Truth value of 32 bits of Fortran: not 0 is true, and each compiler has a word of its own
    /// for it, which a result keeps.
    Logical,
    /// Floating point number of 32 bits.
    F32,
    /// Floating point number of 64 bits.
    F64,
    /// Complex number of two f32.
    ComplexF32,
    /// Complex number of two f64.
    ComplexF64,
    /// f32, then an i32 (MPI_FLOAT_INT).
    F32I32,
    /// f64, then an i32 and four bytes that nobody reads (MPI_DOUBLE_INT).
    F64I32,
    /// i64, then an i32 and four bytes that nobody reads (MPI_LONG_INT).
    I64I32,
    /// Two i32 (MPI_2INT, MPI_2INTEGER).
    I32I32,
    /// i16, two bytes that nobody reads, then an i32 (MPI_SHORT_INT).
    I16I32,
    /// Two f32 (MPI_2REAL).
    F32F32,
    /// Two f64 (MPI_2DOUBLE_PRECISION).
    F64F64,
}

impl Element {
    /// Bytes of one, those that nobody reads included.
    pub const fn size_bytes(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::Logical | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 | Self::ComplexF32 => 8,
            Self::F32I32 | Self::I32I32 | Self::I16I32 | Self::F32F32 => 8,
            Self::ComplexF64 | Self::F64I32 | Self::I64I32 | Self::F64F64 => 16,
        }
    }
}

/// What is done with two elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Adds them; integers wrap around.
    Sum,
    /// Multiplies them; integers wrap around.
    Product,
    /// Keeps the smaller one.
    Min,
    /// Keeps the larger one.
    Max,
    /// 1 if both are not 0.
    LogicalAnd,
    /// 1 if one is not 0.
    LogicalOr,
    /// 1 if one of them alone is not 0.
    LogicalXor,
    /// And of the bits.
    BitAnd,
    /// Or of the bits.
    BitOr,
    /// Exclusive or of the bits.
    BitXor,
    /// Keeps the pair with the smaller value; of equal values that with the smaller place.
    MinPlace,
    /// Keeps the pair with the larger value; of equal values that with the smaller place.
    MaxPlace,
}
