// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which loop belongs to which operation and element. Called by arithmetic.rs.

use super::combine::{Combine, Loops, of};
use super::element::{Element, Operation};
use super::number::{
    BitAnd, BitOr, BitXor, Complex, ComplexProduct, ComplexSum, Logical, LogicalAnd, LogicalOr,
    LogicalXor, Max, Min, Product, Sum, WrappingProduct, WrappingSum,
};
use super::pair::{MaxPlace, MinPlace, Pair};

/// The loops of an operation, if it has a meaning for such elements.
pub(super) fn loops(element: Element, operation: Operation) -> Option<Loops> {
    use Element as E;
    use Operation as O;
    let loops = match (element, operation) {
        (E::I8, O::Min) => of::<i8, Min>(),
        (E::I8, O::Max) => of::<i8, Max>(),
        (E::I16, O::Min) => of::<i16, Min>(),
        (E::I16, O::Max) => of::<i16, Max>(),
        (E::I32, O::Min) => of::<i32, Min>(),
        (E::I32, O::Max) => of::<i32, Max>(),
        (E::I64, O::Min) => of::<i64, Min>(),
        (E::I64, O::Max) => of::<i64, Max>(),
        (E::I8 | E::U8, _) => return integer::<u8>(operation),
        (E::I16 | E::U16, _) => return integer::<u16>(operation),
        (E::I32 | E::U32, _) => return integer::<u32>(operation),
        (E::I64 | E::U64, _) => return integer::<u64>(operation),
        (E::Logical, O::LogicalAnd) => of::<Logical, LogicalAnd>(),
        (E::Logical, O::LogicalOr) => of::<Logical, LogicalOr>(),
        (E::Logical, O::LogicalXor) => of::<Logical, LogicalXor>(),
        (E::F32, _) => return float::<f32>(operation),
        (E::F64, _) => return float::<f64>(operation),
        (E::ComplexF32, O::Sum) => of::<Complex<f32>, ComplexSum>(),
        (E::ComplexF32, O::Product) => of::<Complex<f32>, ComplexProduct>(),
        (E::ComplexF64, O::Sum) => of::<Complex<f64>, ComplexSum>(),
        (E::ComplexF64, O::Product) => of::<Complex<f64>, ComplexProduct>(),
        (E::F32I32, _) => return pair::<f32, i32>(operation),
        (E::F64I32, _) => return pair::<f64, i32>(operation),
        (E::I64I32, _) => return pair::<i64, i32>(operation),
        (E::I32I32, _) => return pair::<i32, i32>(operation),
        (E::I16I32, _) => return pair::<i16, i32>(operation),
        (E::F32F32, _) => return pair::<f32, f32>(operation),
        (E::F64F64, _) => return pair::<f64, f64>(operation),
        (E::ComplexF32 | E::ComplexF64 | E::Logical, _) => return None,
    };
    Some(loops)
}

fn integer<T: Copy>(operation: Operation) -> Option<Loops>
where
    WrappingSum: Combine<T>,
    WrappingProduct: Combine<T>,
    Min: Combine<T>,
    Max: Combine<T>,
    LogicalAnd: Combine<T>,
    LogicalOr: Combine<T>,
    LogicalXor: Combine<T>,
    BitAnd: Combine<T>,
    BitOr: Combine<T>,
    BitXor: Combine<T>,
{
    let loops = match operation {
        Operation::Sum => of::<T, WrappingSum>(),
        Operation::Product => of::<T, WrappingProduct>(),
        Operation::Min => of::<T, Min>(),
        Operation::Max => of::<T, Max>(),
        Operation::LogicalAnd => of::<T, LogicalAnd>(),
        Operation::LogicalOr => of::<T, LogicalOr>(),
        Operation::LogicalXor => of::<T, LogicalXor>(),
        Operation::BitAnd => of::<T, BitAnd>(),
        Operation::BitOr => of::<T, BitOr>(),
        Operation::BitXor => of::<T, BitXor>(),
        Operation::MinPlace | Operation::MaxPlace => return None,
    };
    Some(loops)
}

fn float<T: Copy>(operation: Operation) -> Option<Loops>
where
    Sum: Combine<T>,
    Product: Combine<T>,
    Min: Combine<T>,
    Max: Combine<T>,
{
    let loops = match operation {
        Operation::Sum => of::<T, Sum>(),
        Operation::Product => of::<T, Product>(),
        Operation::Min => of::<T, Min>(),
        Operation::Max => of::<T, Max>(),
        _ => return None,
    };
    Some(loops)
}

fn pair<V: Copy, P: Copy>(operation: Operation) -> Option<Loops>
where
    MinPlace: Combine<Pair<V, P>>,
    MaxPlace: Combine<Pair<V, P>>,
{
    match operation {
        Operation::MinPlace => Some(of::<Pair<V, P>, MinPlace>()),
        Operation::MaxPlace => Some(of::<Pair<V, P>, MaxPlace>()),
        _ => None,
    }
}
