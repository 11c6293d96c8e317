// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The arithmetic of reductions: which operations there are for which elements, and the loops that
//! combine two buffers. Pure. Called by the algorithms; MPI 4.1, 6.9.2 to 6.9.4.
//!
//! `number` has the operations on numbers, `pair` those on a value with its place, and `table` says
//! which belongs to what. The loops of `combine` are plain, so that the compiler makes vectors of
//! them, and compiled twice on x86-64: for all processors, and for those with AVX2. Both give the
//! same bits, since each element is computed by itself.

mod combine;
mod element;
mod number;
mod pair;
mod table;

use weft_memory::{BytesView, BytesViewMut};

use combine::Loops;
pub use element::{Element, Operation};

/// An operation on elements of one type, ready to be carried out. Made once for each call, or kept.
#[derive(Clone, Copy, Debug)]
pub struct Reduction {
    /// Position of operation and element: what ranks must agree on.
    code: u8,
    size_bytes: usize,
    loops: Loops,
}

impl Reduction {
    /// None if MPI gives the operation no meaning for such elements (MPI 4.1, 6.9.2). Some
    /// nanoseconds.
    pub fn new(element: Element, operation: Operation) -> Option<Self> {
        Some(Self {
            code: (element as u8)
                .wrapping_mul(13)
                .wrapping_add(operation as u8),
            size_bytes: element.size_bytes(),
            loops: table::loops(element, operation)?,
        })
    }

    /// Bytes of one element.
    pub fn size_bytes(self) -> usize {
        self.size_bytes
    }

    /// A number that two reductions of different meaning seldom share.
    pub(crate) fn code(self) -> u8 {
        self.code
    }

    /// Combines whole elements of `first` with those of `second`, as far as both reach.
    #[inline]
    pub fn combine(self, first: &mut BytesViewMut<'_>, second: BytesView<'_>) {
        let length_bytes = self.whole(first.length_bytes().min(second.length_bytes()));
        // SAFETY: both views reach as far, one to write; a view to write is ours alone, so that
        // the two do not overlap.
        unsafe { (self.loops.into)(first.base(), second.base(), length_bytes) }
    }

    /// The same, with the result in `target`, as far as all three reach.
    #[inline]
    pub fn combine_apart(
        self,
        target: &mut BytesViewMut<'_>,
        first: BytesView<'_>,
        second: BytesView<'_>,
    ) {
        let length_bytes = first.length_bytes().min(second.length_bytes());
        let length_bytes = self.whole(length_bytes.min(target.length_bytes()));
        // SAFETY: as in `combine`.
        unsafe { (self.loops.apart)(target.base(), first.base(), second.base(), length_bytes) }
    }

    /// All bytes of the whole elements among so many; sizes are powers of two.
    #[inline(always)]
    fn whole(self, length_bytes: usize) -> usize {
        length_bytes & !(self.size_bytes - 1)
    }
}
