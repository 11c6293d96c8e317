// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Operations in which every rank of a communicator takes part.
//!
//! Called by programs; calls the collective functions. All of them block. Lengths are checked
//! against the communicator's size before MPI gets a pointer, so a wrong length is an error here
//! instead of memory corruption there.

use crate::abi::{Datatype, Operation};
use crate::communicator::{Communicator, element_count};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::table::Source;

impl Communicator<'_> {
    /// `MPI_Barrier`.
    ///
    /// # Errors
    /// `Call` when MPI fails; the same for all methods below.
    #[inline]
    pub fn barrier(&self) -> Result<()> {
        // SAFETY: the handle is a live communicator.
        let code = unsafe { (self.session.functions.collective.barrier)(self.handle) };
        self.session.check("MPI_Barrier", code)
    }

    /// `MPI_Bcast`: `bytes` of `root` to everyone.
    ///
    /// # Errors
    /// `Argument` when the length is not a whole number of elements; the same for all methods
    /// below.
    #[inline]
    pub fn bcast(&self, bytes: &mut [u8], kind: Datatype, root: usize) -> Result<()> {
        let count = element_count(bytes.len(), kind)?;
        let bcast = self.session.functions.collective.bcast;
        // SAFETY: the slice is readable and writable for `count` elements; MPI checks the root.
        let code = unsafe {
            bcast(
                bytes.as_mut_ptr().cast(),
                count,
                self.type_handle(kind),
                root as i32,
                self.handle,
            )
        };
        self.session.check("MPI_Bcast", code)
    }

    /// `MPI_Allreduce` with `MPI_IN_PLACE`: the result replaces what each rank gives.
    ///
    /// # Errors
    /// As [`Communicator::bcast`].
    #[inline]
    pub fn allreduce_in_place(
        &self,
        bytes: &mut [u8],
        kind: Datatype,
        operation: Operation,
    ) -> Result<()> {
        let count = element_count(bytes.len(), kind)?;
        let allreduce = self.session.functions.collective.allreduce;
        // SAFETY: MPI_IN_PLACE is allowed as the source of an allreduce on every rank; the slice
        // holds `count` elements of the type.
        let code = unsafe {
            allreduce(
                self.session.abi.in_place() as Source,
                bytes.as_mut_ptr().cast(),
                count,
                self.type_handle(kind),
                self.session.operations[operation as usize],
                self.handle,
            )
        };
        self.session.check("MPI_Allreduce", code)
    }

    /// `MPI_Allgather`: the `given` of rank r to part r of `gathered` on every rank.
    ///
    /// # Errors
    /// `Argument` when `gathered` is not size times as long as `given`.
    #[inline]
    pub fn allgather(&self, given: &[u8], gathered: &mut [u8], kind: Datatype) -> Result<()> {
        let count = element_count(given.len(), kind)?;
        self.check_parts("room of an allgather in bytes", gathered.len(), given.len())?;
        let (allgather, handle) = (
            self.session.functions.collective.allgather,
            self.type_handle(kind),
        );
        // SAFETY: `given` holds `count` elements and `gathered` size times as many, apart from each
        // other.
        let code = unsafe {
            allgather(
                given.as_ptr().cast(),
                count,
                handle,
                gathered.as_mut_ptr().cast(),
                count,
                handle,
                self.handle,
            )
        };
        self.session.check("MPI_Allgather", code)
    }

    /// `MPI_Alltoall`: part r of `given` to rank r; part r of `taken` from rank r. Both have size
    /// equal parts.
    ///
    /// # Errors
    /// `Argument` when the lengths differ or cannot be divided by the number of ranks.
    #[inline]
    pub fn alltoall(&self, given: &[u8], taken: &mut [u8], kind: Datatype) -> Result<()> {
        let part_bytes = given.len() / self.size();
        let count = element_count(part_bytes, kind)?;
        self.check_parts("data of an alltoall in bytes", given.len(), part_bytes)?;
        self.check_parts("room of an alltoall in bytes", taken.len(), part_bytes)?;
        let (alltoall, handle) = (
            self.session.functions.collective.alltoall,
            self.type_handle(kind),
        );
        // SAFETY: both slices hold size times `count` elements, apart from each other.
        let code = unsafe {
            alltoall(
                given.as_ptr().cast(),
                count,
                handle,
                taken.as_mut_ptr().cast(),
                count,
                handle,
                self.handle,
            )
        };
        self.session.check("MPI_Alltoall", code)
    }

    /// `MPI_Alltoallv`: as alltoall, with parts of any length at any place.
    ///
    /// # Errors
    /// `Argument` when a layout does not fit its buffer or the communicator.
    #[inline]
    pub fn alltoallv(
        &self,
        given: (&[u8], &Layout),
        taken: (&mut [u8], &Layout),
        kind: Datatype,
    ) -> Result<()> {
        given.1.check(self.size(), given.0.len(), kind)?;
        taken.1.check(self.size(), taken.0.len(), kind)?;
        let (alltoallv, handle) = (
            self.session.functions.collective.alltoallv,
            self.type_handle(kind),
        );
        let (from, to) = (given.1, taken.1);
        // SAFETY: each layout has one entry per rank and ends within its slice (checked above); the
        // slices are apart.
        let code = unsafe {
            alltoallv(
                given.0.as_ptr().cast(),
                from.counts(),
                from.displacements(),
                handle,
                taken.0.as_mut_ptr().cast(),
                to.counts(),
                to.displacements(),
                handle,
                self.handle,
            )
        };
        self.session.check("MPI_Alltoallv", code)
    }

    #[inline]
    fn check_parts(&self, what: &'static str, got_bytes: usize, part_bytes: usize) -> Result<()> {
        if got_bytes == part_bytes * self.size() {
            return Ok(());
        }
        Err(Error::argument(
            what,
            got_bytes,
            format!("must be {} parts of {part_bytes} bytes", self.size()),
        ))
    }
}
