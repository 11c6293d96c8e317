// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The predefined reductions and their handles in each interface.

use crate::Constant;

/// A predefined reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `MPI_MAX`.
    Max,
    /// `MPI_MIN`.
    Min,
    /// `MPI_SUM`.
    Sum,
    /// `MPI_PROD`.
    Product,
    /// `MPI_LAND`.
    LogicalAnd,
    /// `MPI_BAND`.
    BitAnd,
    /// `MPI_LOR`.
    LogicalOr,
    /// `MPI_BOR`.
    BitOr,
    /// `MPI_LXOR`.
    LogicalXor,
    /// `MPI_BXOR`.
    BitXor,
    /// `MPI_MINLOC`.
    MinPlace,
    /// `MPI_MAXLOC`.
    MaxPlace,
}

/// Each with its handle.
pub const ALL: [(Operation, Constant); 12] = [
    row(Operation::Max, c"ompi_mpi_op_max", 0x5800_0001, 0x23),
    row(Operation::Min, c"ompi_mpi_op_min", 0x5800_0002, 0x22),
    row(Operation::Sum, c"ompi_mpi_op_sum", 0x5800_0003, 0x21),
    row(Operation::Product, c"ompi_mpi_op_prod", 0x5800_0004, 0x24),
    row(
        Operation::LogicalAnd,
        c"ompi_mpi_op_land",
        0x5800_0005,
        0x30,
    ),
    row(Operation::BitAnd, c"ompi_mpi_op_band", 0x5800_0006, 0x28),
    row(Operation::LogicalOr, c"ompi_mpi_op_lor", 0x5800_0007, 0x31),
    row(Operation::BitOr, c"ompi_mpi_op_bor", 0x5800_0008, 0x29),
    row(
        Operation::LogicalXor,
        c"ompi_mpi_op_lxor",
        0x5800_0009,
        0x32,
    ),
    row(Operation::BitXor, c"ompi_mpi_op_bxor", 0x5800_000a, 0x2a),
    row(
        Operation::MinPlace,
        c"ompi_mpi_op_minloc",
        0x5800_000b,
        0x38,
    ),
    row(
        Operation::MaxPlace,
        c"ompi_mpi_op_maxloc",
        0x5800_000c,
        0x39,
    ),
];

const fn row(
    operation: Operation,
    open_mpi: &'static std::ffi::CStr,
    mpich: u32,
    standard: u32,
) -> (Operation, Constant) {
    (operation, Constant::new(open_mpi, mpich, standard))
}

/// `MPI_MAX`.
pub const MAX: Constant = ALL[0].1;
/// `MPI_SUM`.
pub const SUM: Constant = ALL[2].1;
/// `MPI_MIN`.
pub const MIN: Constant = ALL[1].1;
