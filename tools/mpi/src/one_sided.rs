// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Accesses to another rank's window, and the calls that begin and end them.
//!
//! Called by programs; extends window. An access is open until a completing call for its rank
//! (flush, flush_local, unlock, unlock_all, fence, complete); until then the window's buffers
//! cannot be reached. All calls are fast path.

use crate::abi::{Datatype, Operation};
use crate::communicator::element_count;
use crate::error::{Error, Result};
use crate::window::Window;
use std::ffi::c_int;
use std::ops::Range;

/// The other rank and a place in its window.
#[derive(Clone, Copy, Debug)]
pub struct There {
    /// The rank.
    pub rank: i32,
    /// Bytes from the start of its window.
    pub place: usize,
}

/// What an access looks like to MPI, checked.
struct Access {
    start: usize,
    count: c_int,
    displacement: isize,
}

macro_rules! synchronise {
    ($(
        $(#[$about:meta])*
        $name:ident($($argument:ident: $kind:ty),*) = $function:literal, $call:expr, $ends:expr;
    )*) => {
        impl Window<'_> { $(
            $(#[$about])*
            ///
            /// # Errors
            /// `Call` when MPI fails.
            #[inline]
            pub fn $name(&mut self $(, $argument: $kind)*) -> Result<()> {
                let session = self.communicator.session;
                let code = $call(self $(, $argument)*);
                if self.open.is_some_and($ends) {
                    self.open = None;
                }
                session.check($function, code)
            }
        )* }
    };
}

synchronise! {
    /// `MPI_Win_lock`, shared: others may lock the same rank's window at the same time.
    lock(rank: i32) = "MPI_Win_lock", |window: &Window<'_>, rank| {
        let session = window.communicator.session;
        let lock = session.functions.window.lock;
        // SAFETY: a live window; MPI checks the rank.
        unsafe { lock(session.abi.shared_lock(), rank, 0, window.handle) }
    }, |_| false;
    /// `MPI_Win_unlock`: everything sent to the rank has arrived.
    unlock(rank: i32) = "MPI_Win_unlock", |window: &Window<'_>, rank| {
        // SAFETY: a live window; MPI checks the rank.
        unsafe { (window.communicator.session.functions.window.unlock)(rank, window.handle) }
    }, |open| open == rank;
    /// `MPI_Win_lock_all`.
    lock_all() = "MPI_Win_lock_all", |window: &Window<'_>| {
        // SAFETY: a live window.
        unsafe { (window.communicator.session.functions.window.lock_all)(0, window.handle) }
    }, |_| false;
    /// `MPI_Win_unlock_all`: everything sent has arrived.
    unlock_all() = "MPI_Win_unlock_all", |window: &Window<'_>| {
        // SAFETY: a live window.
        unsafe { (window.communicator.session.functions.window.unlock_all)(window.handle) }
    }, |_| true;
    /// `MPI_Win_flush`: everything sent to the rank has arrived.
    flush(rank: i32) = "MPI_Win_flush", |window: &Window<'_>, rank| {
        // SAFETY: a live window; MPI checks the rank.
        unsafe { (window.communicator.session.functions.window.flush)(rank, window.handle) }
    }, |open| open == rank;
    /// `MPI_Win_flush_local`: the local buffers may be used again.
    flush_local(rank: i32) = "MPI_Win_flush_local", |window: &Window<'_>, rank| {
        // SAFETY: a live window; MPI checks the rank.
        unsafe { (window.communicator.session.functions.window.flush_local)(rank, window.handle) }
    }, |open| open == rank;
    /// `MPI_Win_fence`: collective; ends the accesses before it and begins those after it.
    fence() = "MPI_Win_fence", |window: &Window<'_>| {
        // SAFETY: a live window.
        unsafe { (window.communicator.session.functions.window.fence)(0, window.handle) }
    }, |_| true;
    /// `MPI_Win_post`: the paired rank may access this rank's window.
    post() = "MPI_Win_post", |window: &Window<'_>| {
        let post = window.communicator.session.functions.window.post;
        // SAFETY: a live window, and a group that pair_with made.
        unsafe { post(window.group(), 0, window.handle) }
    }, |_| false;
    /// `MPI_Win_start`: begins accesses to the paired rank's window.
    start() = "MPI_Win_start", |window: &Window<'_>| {
        let start = window.communicator.session.functions.window.start;
        // SAFETY: a live window, and a group that pair_with made.
        unsafe { start(window.group(), 0, window.handle) }
    }, |_| false;
    /// `MPI_Win_complete`: ends them.
    complete() = "MPI_Win_complete", |window: &Window<'_>| {
        // SAFETY: a live window.
        unsafe { (window.communicator.session.functions.window.complete)(window.handle) }
    }, |_| true;
    /// `MPI_Win_wait`: the paired rank's accesses have ended.
    wait() = "MPI_Win_wait", |window: &Window<'_>| {
        // SAFETY: a live window.
        unsafe { (window.communicator.session.functions.window.wait)(window.handle) }
    }, |_| false;
}

impl Window<'_> {
    /// `MPI_Put` of a part of the outgoing buffer.
    ///
    /// # Errors
    /// `Argument` when a part lies outside its buffer or window, is no whole number of elements, or
    /// accesses to another rank are open; `Call` when MPI fails. The same for all methods below.
    #[inline]
    pub fn put(&mut self, part: Range<usize>, kind: Datatype, there: There) -> Result<()> {
        let access = self.open(&part, self.outgoing.len(), kind, there)?;
        let (session, handle) = (
            self.communicator.session,
            self.communicator.type_handle(kind),
        );
        let Access {
            start,
            count,
            displacement,
        } = access;
        // SAFETY: the part lies in the outgoing buffer and the place in the other's window (checked
        // by open); the buffer is not touched until a completing call.
        let code = unsafe {
            let from = self
                .outgoing
                .start()
                .as_ptr()
                .add(start)
                .cast_const()
                .cast();
            let put = session.functions.one_sided.put;
            put(
                from,
                count,
                handle,
                there.rank,
                displacement,
                count,
                handle,
                self.handle,
            )
        };
        session.check("MPI_Put", code)
    }

    /// `MPI_Get` into a part of the incoming buffer.
    ///
    /// # Errors
    /// As [`Window::put`].
    #[inline]
    pub fn get(&mut self, part: Range<usize>, kind: Datatype, there: There) -> Result<()> {
        let access = self.open(&part, self.incoming.len(), kind, there)?;
        let (session, handle) = (
            self.communicator.session,
            self.communicator.type_handle(kind),
        );
        let Access {
            start,
            count,
            displacement,
        } = access;
        // SAFETY: the part lies in the incoming buffer and the place in the other's window (checked
        // by open); the buffer is not touched until a completing call.
        let code = unsafe {
            let into = self.incoming.start().as_ptr().add(start).cast();
            let get = session.functions.one_sided.get;
            get(
                into,
                count,
                handle,
                there.rank,
                displacement,
                count,
                handle,
                self.handle,
            )
        };
        session.check("MPI_Get", code)
    }

    /// `MPI_Accumulate` of a part of the outgoing buffer.
    ///
    /// # Errors
    /// As [`Window::put`].
    #[inline]
    pub fn accumulate(
        &mut self,
        part: Range<usize>,
        how: (Datatype, Operation),
        there: There,
    ) -> Result<()> {
        let access = self.open(&part, self.outgoing.len(), how.0, there)?;
        let session = self.communicator.session;
        let (handle, operation) = (
            self.communicator.type_handle(how.0),
            session.operations[how.1 as usize],
        );
        let (count, displacement) = (access.count, access.displacement);
        // SAFETY: the part lies in the outgoing buffer and the place in the other's window (checked
        // by open); the buffer is not touched until a completing call.
        let code = unsafe {
            let from = self.outgoing.start().as_ptr().add(access.start);
            (session.functions.one_sided.accumulate)(
                from.cast_const().cast(),
                count,
                handle,
                there.rank,
                displacement,
                count,
                handle,
                operation,
                self.handle,
            )
        };
        session.check("MPI_Accumulate", code)
    }

    /// `MPI_Get_accumulate`: what was there comes into the same part of the incoming buffer.
    ///
    /// # Errors
    /// As [`Window::put`].
    #[inline]
    pub fn get_accumulate(
        &mut self,
        part: Range<usize>,
        how: (Datatype, Operation),
        there: There,
    ) -> Result<()> {
        let access = self.open(&part, self.outgoing.len(), how.0, there)?;
        let session = self.communicator.session;
        let (handle, operation) = (
            self.communicator.type_handle(how.0),
            session.operations[how.1 as usize],
        );
        let (count, displacement) = (access.count, access.displacement);
        // SAFETY: the part lies in both buffers, which are equally long, and the place in the
        // other's window (checked by open); the buffers are not touched until a completing call.
        let code = unsafe {
            let from = self.outgoing.start().as_ptr().add(access.start);
            let into = self.incoming.start().as_ptr().add(access.start);
            (session.functions.one_sided.get_accumulate)(
                from.cast_const().cast(),
                count,
                handle,
                into.cast(),
                count,
                handle,
                there.rank,
                displacement,
                count,
                handle,
                operation,
                self.handle,
            )
        };
        session.check("MPI_Get_accumulate", code)
    }

    /// `MPI_Fetch_and_op` of the first element of the outgoing buffer into the first of the
    /// incoming one.
    ///
    /// # Errors
    /// As [`Window::put`].
    #[inline]
    pub fn fetch_and_op(&mut self, how: (Datatype, Operation), there: There) -> Result<()> {
        let part = 0..how.0.size_bytes();
        let displacement = self
            .open(&part, self.outgoing.len(), how.0, there)?
            .displacement;
        let session = self.communicator.session;
        let (handle, operation) = (
            self.communicator.type_handle(how.0),
            session.operations[how.1 as usize],
        );
        // SAFETY: the element lies in both buffers, which are equally long, and the place in the
        // other's window (checked by open); none is touched until a completing call.
        let code = unsafe {
            let from = self.outgoing.start().as_ptr().cast_const().cast();
            let into = self.incoming.start().as_ptr().cast();
            let fetch_and_op = session.functions.one_sided.fetch_and_op;
            fetch_and_op(
                from,
                into,
                handle,
                there.rank,
                displacement,
                operation,
                self.handle,
            )
        };
        session.check("MPI_Fetch_and_op", code)
    }

    /// `MPI_Compare_and_swap`: the first element of the outgoing buffer, where the compared one is
    /// there.
    ///
    /// # Errors
    /// As [`Window::put`].
    #[inline]
    pub fn compare_and_swap(&mut self, kind: Datatype, there: There) -> Result<()> {
        let part = 0..kind.size_bytes();
        let displacement = self
            .open(&part, self.compared.len(), kind, there)?
            .displacement;
        let (session, handle) = (
            self.communicator.session,
            self.communicator.type_handle(kind),
        );
        // SAFETY: the element lies in the compared buffer, the shortest of the three, and the place
        // in the other's window (checked by open); none is touched until a completing call.
        let code = unsafe {
            let from = self.outgoing.start().as_ptr().cast_const().cast();
            let compared = self.compared.start().as_ptr().cast_const().cast();
            let into = self.incoming.start().as_ptr().cast();
            let swap = session.functions.one_sided.compare_and_swap;
            swap(
                from,
                compared,
                into,
                handle,
                there.rank,
                displacement,
                self.handle,
            )
        };
        session.check("MPI_Compare_and_swap", code)
    }

    #[inline]
    fn open(
        &mut self,
        part: &Range<usize>,
        room: usize,
        kind: Datatype,
        there: There,
    ) -> Result<Access> {
        let is_other = self.open.is_some_and(|rank| rank != there.rank);
        if part.start > part.end || part.end > room || is_other {
            return Err(self.refused(part, room));
        }
        let length = part.end - part.start;
        let access = Access {
            start: part.start,
            count: element_count(length, kind)?,
            displacement: self.memory.displacement(there.rank, there.place, length)?,
        };
        self.open = Some(there.rank);
        Ok(access)
    }

    #[cold]
    fn refused(&self, part: &Range<usize>, room: usize) -> Error {
        let limit = match self.open {
            Some(rank) => format!("must lie in {room} bytes; accesses to rank {rank} are open"),
            None => format!("must lie in {room} bytes"),
        };
        Error::argument("part of a window's buffer", format!("{part:?}"), limit)
    }
}
