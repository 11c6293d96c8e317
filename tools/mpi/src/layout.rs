// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where each rank's part lies in the buffer of an exchange with parts of different lengths.
//!
//! Made by programs once, checked by collective at each call with three comparisons.

use crate::abi::Datatype;
use crate::communicator::Communicator;
use crate::error::{Error, Result};
use crate::table::Source;
use std::ffi::c_int;

/// Counts and displacements in elements of one type, for alltoallv.
#[derive(Clone, Debug)]
pub struct Layout {
    counts: Vec<c_int>,
    displacements: Vec<c_int>,
    end_elements: usize,
}

/// Counts, displacements in bytes and types, for alltoallw; belongs to the session that made it.
pub(crate) struct TypedLayout {
    bytes: Layout,
    types: Vec<u8>,
}

impl Layout {
    /// One `(count, displacement)` in elements per rank. Allocates; setup.
    ///
    /// # Errors
    /// `Argument` when a part ends beyond 2^31 - 1 elements.
    pub fn new(parts: impl IntoIterator<Item = (usize, usize)>) -> Result<Self> {
        let mut layout = Self {
            counts: Vec::new(),
            displacements: Vec::new(),
            end_elements: 0,
        };
        for (count, displacement) in parts {
            layout.push(count, displacement, count.saturating_add(displacement))?;
        }
        Ok(layout)
    }

    fn push(&mut self, count: usize, displacement: usize, end: usize) -> Result<()> {
        if end > c_int::MAX as usize {
            return Err(Error::argument(
                "end of a part in an exchange",
                end,
                format!("must be at most {}", c_int::MAX),
            ));
        }
        self.counts.push(count as c_int);
        self.displacements.push(displacement as c_int);
        self.end_elements = self.end_elements.max(if count == 0 { 0 } else { end });
        Ok(())
    }

    pub(crate) fn counts(&self) -> *const c_int {
        self.counts.as_ptr()
    }

    pub(crate) fn displacements(&self) -> *const c_int {
        self.displacements.as_ptr()
    }

    /// Whether it has one part per rank and ends within the buffer.
    #[inline]
    pub(crate) fn check(
        &self,
        rank_count: usize,
        buffer_bytes: usize,
        kind: Datatype,
    ) -> Result<()> {
        let end_bytes = self.end_elements << kind.size_shift();
        if self.counts.len() == rank_count && end_bytes <= buffer_bytes {
            return Ok(());
        }
        Err(self.misfit(rank_count, buffer_bytes, end_bytes))
    }

    #[cold]
    fn misfit(&self, rank_count: usize, buffer_bytes: usize, end_bytes: usize) -> Error {
        let got = format!("{} parts ending at byte {end_bytes}", self.counts.len());
        Error::argument(
            "layout of an exchange",
            got,
            format!("must be {rank_count} parts within {buffer_bytes} bytes"),
        )
    }
}

impl TypedLayout {
    /// One `(count, displacement in bytes, type)` per rank. Allocates; setup.
    ///
    /// # Errors
    /// As [`Layout::new`].
    pub(crate) fn new(
        communicator: &Communicator<'_>,
        parts: impl IntoIterator<Item = (usize, usize, Datatype)>,
    ) -> Result<Self> {
        let mut layout = Self {
            bytes: Layout::new([])?,
            types: Vec::new(),
        };
        let width = communicator.session.abi.handle_bytes();
        for (count, displacement_bytes, kind) in parts {
            let end = count
                .saturating_mul(kind.size_bytes())
                .saturating_add(displacement_bytes);
            layout.bytes.push(count, displacement_bytes, end)?;
            layout
                .types
                .extend_from_slice(&communicator.type_handle(kind).to_ne_bytes()[..width]);
        }
        layout.align_types();
        Ok(layout)
    }

    /// MPI reads the type array as integers or pointers. The allocators of this platform align
    /// every block of 8 bytes or more to 16; a shorter one (a single MPICH handle) is grown until
    /// it is such a block.
    fn align_types(&mut self) {
        self.types.reserve(16);
        assert!(
            self.types.as_ptr().addr().is_multiple_of(8),
            "the allocator aligns blocks of 16 bytes to at least 8"
        );
    }

    pub(crate) fn counts(&self) -> *const c_int {
        self.bytes.counts()
    }

    pub(crate) fn displacements(&self) -> *const c_int {
        self.bytes.displacements()
    }

    pub(crate) fn types(&self) -> Source {
        self.types.as_ptr().cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_fits_exactly_to_its_last_byte() {
        let layout = Layout::new([(2, 0), (3, 2)]).expect("small");
        assert!(layout.check(2, 20, Datatype::Int).is_ok());
        assert!(layout.check(2, 19, Datatype::Int).is_err());
    }

    #[test]
    fn layout_for_another_number_of_ranks_is_refused() {
        let text = Layout::new([(1, 0)])
            .expect("small")
            .check(2, 100, Datatype::Char)
            .unwrap_err()
            .to_string();
        assert!(
            text.contains("1 parts") && text.contains("must be 2 parts"),
            "{text}"
        );
    }

    #[test]
    fn part_beyond_a_c_int_is_refused() {
        assert!(Layout::new([(1, c_int::MAX as usize)]).is_err());
        assert!(Layout::new([(usize::MAX, 1)]).is_err());
    }

    #[test]
    fn empty_part_may_lie_anywhere() {
        assert!(
            Layout::new([(0, 1000)])
                .expect("small")
                .check(1, 0, Datatype::Char)
                .is_ok()
        );
    }
}
