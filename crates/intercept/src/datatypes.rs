// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The MPI's predefined types and operations, and what crates/collectives calls them. Asked once,
//! at the first collective call; used by buffers and reduction.

use weft_collectives::{Element, Operation, Reduction};
use weft_mpi_abi::Constant;
use weft_mpi_abi::datatype::{self, Kind};
use weft_mpi_abi::operation;

use crate::functions::{Functions, Handle};
use crate::gaps::Gaps;

/// A predefined type.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    handle: Handle,
    /// Bytes of an element, without gaps.
    pub size_bytes: usize,
    /// Where the gaps are of elements that do not lie side by side.
    pub gaps: Option<Gaps>,
    kind: Kind,
}

impl Known {
    /// What the MPI says of one of its types; `None` if it lies otherwise than expected.
    fn ask(handle: Handle, kind: Kind, mpi: &Functions) -> Option<Self> {
        let (mut size_bytes, mut lowest, mut extent_bytes) = (0, 0, 0);
        // SAFETY: a predefined type of this MPI, and places of ours.
        let codes = unsafe {
            [
                (mpi.type_size)(handle, &mut size_bytes),
                (mpi.type_extent)(handle, &mut lowest, &mut extent_bytes),
            ]
        };
        let size_bytes = usize::try_from(size_bytes).ok()?;
        let gaps = gaps(kind, size_bytes);
        let expected_bytes = gaps.map_or(size_bytes, Gaps::extent_bytes);
        let lies_as_expected = lowest == 0 && usize::try_from(extent_bytes) == Ok(expected_bytes);
        (codes == [0, 0] && size_bytes > 0 && lies_as_expected).then_some(Self {
            handle,
            size_bytes,
            gaps,
            kind,
        })
    }
}

/// All predefined types, and some handles.
#[derive(Debug)]
pub struct Datatypes {
    /// By handle.
    known: Vec<Known>,
    operations: Vec<(Handle, operation::Operation)>,
    /// MPI_DATATYPE_NULL.
    pub null: Handle,
    /// MPI_BYTE.
    pub byte: Handle,
    /// MPI_INT.
    pub int: Handle,
    /// MPI_MIN.
    pub min: Handle,
}

impl Datatypes {
    /// Asks the MPI for the sizes of all types that it has.
    pub fn ask(handle: &impl Fn(Constant) -> Option<Handle>, mpi: &Functions) -> Option<Self> {
        let null = handle(weft_mpi_abi::DATATYPE_NULL)?;
        let mut known: Vec<Known> = Vec::new();
        for one in &datatype::ALL {
            let Some(found) = handle(one.handle).filter(|&found| found != null) else {
                continue;
            };
            known.extend(Known::ask(found, one.kind, mpi));
        }
        known.sort_by_key(|one| one.handle);
        let operations = operation::ALL.iter();
        let operations = operations.filter_map(|&(name, place)| Some((handle(place)?, name)));
        Some(Self {
            known,
            operations: operations.collect(),
            null,
            byte: handle(datatype::BYTE)?,
            int: handle(datatype::INT)?,
            min: handle(operation::MIN)?,
        })
    }

    /// What is known of a type; `None` for derived types.
    #[inline]
    pub fn known(&self, handle: Handle) -> Option<Known> {
        let at = self.known.binary_search_by_key(&handle, |one| one.handle);
        at.ok().map(|at| self.known[at])
    }

    /// What a reduction adds up and how, and the gaps that its elements have; `None` if that is for
    /// the MPI to do, or to refuse.
    #[inline]
    pub fn reduction(&self, kind: Handle, operation: Handle) -> Option<(Reduction, Option<Gaps>)> {
        let known = self.known(kind)?;
        let mut operations = self.operations.iter();
        let (_, name) = operations.find(|(handle, _)| *handle == operation)?;
        let (element, operation) = pair(known, *name)?;
        Some((Reduction::new(element, operation)?, known.gaps))
    }
}

/// The words of crates/collectives, for what the standard gives a meaning (MPI 4.1, 6.9.2).
fn pair(known: Known, operation: operation::Operation) -> Option<(Element, Operation)> {
    use operation::Operation as Named;
    let element = element(known)?;
    let (is_logical, operation) = match operation {
        Named::Max => (false, Operation::Max),
        Named::Min => (false, Operation::Min),
        Named::Sum => (false, Operation::Sum),
        Named::Product => (false, Operation::Product),
        Named::LogicalAnd => (true, Operation::LogicalAnd),
        Named::LogicalOr => (true, Operation::LogicalOr),
        Named::LogicalXor => (true, Operation::LogicalXor),
        Named::BitAnd => (false, Operation::BitAnd),
        Named::BitOr => (false, Operation::BitOr),
        Named::BitXor => (false, Operation::BitXor),
        Named::MinPlace => (false, Operation::MinPlace),
        Named::MaxPlace => (false, Operation::MaxPlace),
    };
    let is_bits = matches!(
        operation,
        Operation::BitAnd | Operation::BitOr | Operation::BitXor
    );
    let has_meaning = match known.kind {
        Kind::Truth | Kind::Logical => is_logical,
        Kind::Bytes => is_bits,
        _ => true,
    };
    has_meaning.then_some((element, operation))
}

fn element(known: Known) -> Option<Element> {
    Some(match (known.kind, known.size_bytes) {
        (Kind::Signed, 1) => Element::I8,
        (Kind::Signed, 2) => Element::I16,
        (Kind::Signed, 4) => Element::I32,
        (Kind::Signed, 8) => Element::I64,
        (Kind::Unsigned | Kind::Truth | Kind::Bytes, 1) => Element::U8,
        (Kind::Unsigned, 2) => Element::U16,
        (Kind::Unsigned, 4) => Element::U32,
        (Kind::Unsigned, 8) => Element::U64,
        (Kind::Float, 4) => Element::F32,
        (Kind::Float, 8) => Element::F64,
        (Kind::Complex, 8) => Element::ComplexF32,
        (Kind::Complex, 16) => Element::ComplexF64,
        (Kind::Logical, 4) => Element::Logical,
        (Kind::Pair, 8) => Element::I32I32,
        (Kind::FloatPair, 8) => Element::F32F32,
        (Kind::FloatPair, 16) => Element::F64F64,
        (Kind::FloatAndInt, 8) => Element::F32I32,
        (Kind::FloatAndInt, 12) => Element::F64I32,
        (Kind::SignedAndInt, 12) => Element::I64I32,
        (Kind::SignedAndInt, 6) => Element::I16I32,
        _ => return None,
    })
}

/// The gaps of pairs whose parts have so many bytes.
fn gaps(kind: Kind, size_bytes: usize) -> Option<Gaps> {
    match (kind, size_bytes) {
        (Kind::FloatAndInt | Kind::SignedAndInt, 12) => Some(Gaps::of_value(8)),
        (Kind::SignedAndInt, 6) => Some(Gaps::of_value(2)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(kind: Kind, size_bytes: usize) -> Known {
        Known {
            handle: 1,
            size_bytes,
            gaps: gaps(kind, size_bytes),
            kind,
        }
    }

    #[test]
    fn only_what_the_standard_gives_a_meaning_is_served() {
        use operation::Operation as Named;
        for (kind, size_bytes, operation, is_served) in [
            (Kind::Signed, 4, Named::Sum, true),
            (Kind::Float, 16, Named::Sum, false),
            (Kind::Truth, 1, Named::LogicalOr, true),
            (Kind::Truth, 1, Named::Sum, false),
            (Kind::Logical, 4, Named::LogicalXor, true),
            (Kind::Logical, 4, Named::BitXor, false),
            (Kind::Logical, 8, Named::LogicalAnd, false),
            (Kind::FloatAndInt, 8, Named::MaxPlace, true),
            (Kind::FloatAndInt, 12, Named::MaxPlace, true),
            (Kind::FloatAndInt, 20, Named::MaxPlace, false),
            (Kind::SignedAndInt, 6, Named::MinPlace, true),
            (Kind::SignedAndInt, 12, Named::MinPlace, true),
            (Kind::SignedAndInt, 12, Named::Min, false),
            (Kind::Bytes, 1, Named::BitXor, true),
            (Kind::Bytes, 1, Named::Max, false),
            (Kind::Other, 1, Named::Max, false),
        ] {
            let found = pair(known(kind, size_bytes), operation);
            let found = found.and_then(|(element, operation)| Reduction::new(element, operation));
            assert_eq!(found.is_some(), is_served, "{kind:?} {operation:?}");
        }
    }
}
