// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The MPI's predefined types and operations, and what crates/collectives calls them. Asked once,
//! at the first collective call; used by buffers and reduction.

use weft_collectives::{Element, Operation, Reduction};
use weft_mpi_abi::Constant;
use weft_mpi_abi::datatype::{self, Kind};
use weft_mpi_abi::operation;

use crate::functions::{Functions, Handle};

/// A predefined type.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    handle: Handle,
    /// Bytes of an element; elements lie side by side.
    pub size_bytes: usize,
    kind: Kind,
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
            let mut size_bytes = 0;
            // SAFETY: a predefined type of this MPI, and a place of ours.
            let code = unsafe { (mpi.type_size)(found, &mut size_bytes) };
            if let (0, Ok(size_bytes @ 1..)) = (code, usize::try_from(size_bytes)) {
                known.push(Known {
                    handle: found,
                    size_bytes,
                    kind: one.kind,
                });
            }
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

    /// What is known of a type; `None` for derived types and for pairs with gaps.
    #[inline]
    pub fn known(&self, handle: Handle) -> Option<Known> {
        let at = self.known.binary_search_by_key(&handle, |one| one.handle);
        at.ok().map(|at| self.known[at])
    }

    /// What a reduction adds up and how; `None` if that is for the MPI to do, or to refuse.
    #[inline]
    pub fn reduction(&self, kind: Handle, operation: Handle) -> Option<Reduction> {
        let known = self.known(kind)?;
        let mut operations = self.operations.iter();
        let (_, name) = operations.find(|(handle, _)| *handle == operation)?;
        let (element, operation) = pair(known, *name)?;
        Reduction::new(element, operation)
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
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(kind: Kind, size_bytes: usize) -> Known {
        Known {
            handle: 1,
            size_bytes,
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
            (Kind::FloatAndInt, 12, Named::MaxPlace, false),
            (Kind::Bytes, 1, Named::BitXor, true),
            (Kind::Bytes, 1, Named::Max, false),
            (Kind::Other, 1, Named::Max, false),
        ] {
            let found = pair(known(kind, size_bytes), operation);
            assert_eq!(found.is_some(), is_served, "{kind:?} {operation:?}");
        }
    }
}
