// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages in flight, started inside a scope. The scope ends only after all of them have ended.
//!
//! Called by programs through [`Requests::scope`]; calls isend, irecv, waitall and testall. The
//! scope borrows every buffer it uses until it ends, and it always ends with a wait. So MPI never
//! touches memory that Rust code uses. Nothing is allocated inside: [`Requests`] is made once.

use crate::abi::Datatype;
use crate::buffer::Buffer;
use crate::communicator::{Communicator, element_count};
use crate::error::{Error, Result};
use crate::table::Target;
use std::ffi::c_int;
use std::marker::PhantomData;
use std::ops::Range;

/// Room for the handles of a number of messages in flight.
pub struct Requests {
    /// Handles of the interface's width, back to back; `usize` for alignment.
    room: Vec<usize>,
    limit: usize,
}

impl Requests {
    /// Room for `limit` messages. Allocates; setup.
    ///
    /// # Panics
    /// When `limit` is above 2^31 - 1, which MPI cannot wait for at once.
    pub fn new(limit: usize) -> Self {
        assert!(
            limit <= c_int::MAX as usize,
            "MPI waits for at most 2^31 - 1 requests, not {limit}"
        );
        Self {
            room: vec![0; limit],
            limit,
        }
    }

    /// Runs `body`, which starts messages, and waits for all of them before it returns, also when
    /// `body` fails. Fast path.
    ///
    /// # Errors
    /// What `body` returns, or `Call` when waiting fails.
    ///
    /// # Panics
    /// A panic of `body` ends the process: its messages could neither be waited for nor taken back.
    #[inline]
    pub fn scope<'env>(
        &mut self,
        communicator: &Communicator<'_>,
        body: impl FnOnce(&mut Scope<'_, 'env>) -> Result<()>,
    ) -> Result<()> {
        let guard = EndOfProcess;
        let mut scope = Scope {
            communicator,
            requests: self,
            started: 0,
            _borrows: PhantomData,
        };
        let result = body(&mut scope);
        let waited = scope.wait_all();
        std::mem::forget(guard);
        result.and(waited)
    }
}

/// Messages started and not yet waited for.
pub struct Scope<'scope, 'env> {
    communicator: &'scope Communicator<'scope>,
    requests: &'scope mut Requests,
    started: usize,
    /// Invariant: a buffer must live for all of `'env`, not only for some shorter time.
    _borrows: PhantomData<&'env mut &'env Buffer>,
}

impl<'env> Scope<'_, 'env> {
    /// `MPI_Isend` of a range of `buffer`.
    ///
    /// # Errors
    /// `Argument` when the range lies outside or the requests are used up; `Call` when MPI fails.
    #[inline]
    pub fn isend(
        &mut self,
        buffer: &'env Buffer,
        range: Range<usize>,
        kind: Datatype,
        target: i32,
        tag: i32,
    ) -> Result<()> {
        let (start, count) = checked(buffer, &range, kind)?;
        let slot = self.slot()?;
        let (communicator, isend) = (
            self.communicator,
            self.communicator.session.functions.point.isend,
        );
        let handle = communicator.type_handle(kind);
        // SAFETY: the range lies in the buffer, which the scope borrows until it has waited; the
        // slot has room for a request.
        let code = unsafe {
            isend(
                start.cast_const().cast(),
                count,
                handle,
                target,
                tag,
                communicator.handle,
                slot,
            )
        };
        self.started(communicator.session.check("MPI_Isend", code))
    }

    /// `MPI_Irecv` into a range of `buffer`. Ranges of several receives may overlap; what then
    /// arrives there is unspecified.
    ///
    /// # Errors
    /// As [`Scope::isend`].
    #[inline]
    pub fn irecv(
        &mut self,
        buffer: &'env Buffer,
        range: Range<usize>,
        kind: Datatype,
        source: i32,
        tag: i32,
    ) -> Result<()> {
        let (start, count) = checked(buffer, &range, kind)?;
        let slot = self.slot()?;
        let (communicator, irecv) = (
            self.communicator,
            self.communicator.session.functions.point.irecv,
        );
        let handle = communicator.type_handle(kind);
        // SAFETY: the range lies in the buffer, which the scope borrows until it has waited, and
        // nobody reads or writes the bytes from Rust while that borrow lasts; the slot has room for
        // a request.
        let code = unsafe {
            irecv(
                start.cast(),
                count,
                handle,
                source,
                tag,
                communicator.handle,
                slot,
            )
        };
        self.started(communicator.session.check("MPI_Irecv", code))
    }

    /// `MPI_Waitall` for everything started so far.
    ///
    /// # Errors
    /// `Call` when MPI fails; the messages then count as ended.
    #[inline]
    pub fn wait_all(&mut self) -> Result<()> {
        let session = self.communicator.session;
        let (count, ignore) = (self.started as c_int, session.abi.status_ignore() as Target);
        self.started = 0;
        // SAFETY: the first `count` handles were written by isend or irecv and not waited for
        // since.
        let code = unsafe {
            (session.functions.point.waitall)(count, self.requests.room.as_mut_ptr().cast(), ignore)
        };
        session.check("MPI_Waitall", code)
    }

    /// `MPI_Testall`: whether everything started so far has ended. Lets MPI make progress; does not
    /// block.
    ///
    /// # Errors
    /// `Call` when MPI fails.
    #[inline]
    pub fn test_all(&mut self) -> Result<bool> {
        let session = self.communicator.session;
        let ignore = session.abi.status_ignore() as Target;
        let (requests, mut ended) = (self.requests.room.as_mut_ptr().cast(), 0);
        // SAFETY: `started` requests lie in the room; MPI sets them to null only when all have
        // ended.
        let code = unsafe {
            (session.functions.point.testall)(self.started as c_int, requests, &mut ended, ignore)
        };
        session.check("MPI_Testall", code)?;
        if ended != 0 {
            self.started = 0;
        }
        Ok(ended != 0)
    }

    #[inline]
    fn slot(&mut self) -> Result<Target> {
        if self.started == self.requests.limit {
            return Err(too_many(self.requests.limit));
        }
        let width = self.communicator.session.abi.handle_bytes();
        // SAFETY: `started` is below the limit and a handle is at most as wide as a usize, of which
        // there are `limit`.
        Ok(unsafe {
            self.requests
                .room
                .as_mut_ptr()
                .cast::<u8>()
                .add(self.started * width)
        }
        .cast())
    }

    #[inline]
    fn started(&mut self, result: Result<()>) -> Result<()> {
        self.started += usize::from(result.is_ok());
        result
    }
}

/// Ends the process when dropped, that is, when a panic unwinds through a scope.
struct EndOfProcess;

impl Drop for EndOfProcess {
    fn drop(&mut self) {
        eprintln!("weft-mpi: a panic while messages were in flight; ending the process");
        std::process::abort();
    }
}

#[cold]
fn too_many(limit: usize) -> Error {
    Error::argument(
        "messages in flight",
        limit + 1,
        format!("room was made for {limit}"),
    )
}

#[inline]
fn checked(buffer: &Buffer, range: &Range<usize>, kind: Datatype) -> Result<(*mut u8, c_int)> {
    if range.start > range.end || range.end > buffer.len() {
        return Err(outside(range, buffer.len()));
    }
    let count = element_count(range.end - range.start, kind)?;
    // SAFETY: the start was checked to lie within the buffer or at its end.
    Ok((unsafe { buffer.start().as_ptr().add(range.start) }, count))
}

#[cold]
fn outside(range: &Range<usize>, length: usize) -> Error {
    Error::argument(
        "part of a buffer",
        format!("{}..{}", range.start, range.end),
        format!("it holds {length} bytes"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_outside_the_buffer_is_refused() {
        let buffer = Buffer::new(16);
        assert!(checked(&buffer, &(0..16), Datatype::Int).is_ok());
        let text = checked(&buffer, &(8..17), Datatype::Char)
            .unwrap_err()
            .to_string();
        assert!(
            text.contains("8..17") && text.contains("16 bytes"),
            "{text}"
        );
        #[expect(clippy::reversed_empty_ranges, reason = "the case under test")]
        let reversed = checked(&buffer, &(9..8), Datatype::Char);
        assert!(reversed.is_err());
    }
}
