// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A group of ranks and the blocking messages between them.
//!
//! Made by session and by [`Communicator::split`]; calls the point-to-point functions. Collectives
//! are in collective, messages in flight in requests.

use crate::abi::Datatype;
use crate::error::{Error, Result};
use crate::session::Session;
use crate::table::{Handle, Target};
use std::ffi::c_int;

/// A communicator; freed when dropped unless it is the world's.
pub struct Communicator<'session> {
    pub(crate) session: &'session Session,
    pub(crate) handle: Handle,
    rank: usize,
    size: usize,
    owned: bool,
    /// How many ranks it takes from and gives to, when it is a graph of neighbours.
    pub(crate) degrees: Option<(usize, usize)>,
}

impl<'session> Communicator<'session> {
    /// The communicator of all ranks. Setup.
    ///
    /// # Errors
    /// `Call` when MPI refuses.
    pub fn world(session: &'session Session) -> Result<Self> {
        Self::of_handle(session, session.world)
    }

    /// A communicator that this process has made: it is freed when this is dropped.
    pub(crate) fn made(session: &'session Session, handle: Handle) -> Result<Self> {
        let mut made = Self::of_handle(session, handle)?;
        made.owned = true;
        Ok(made)
    }

    fn of_handle(session: &'session Session, handle: Handle) -> Result<Self> {
        let (mut rank, mut size): (c_int, c_int) = (0, 0);
        let environment = &session.functions.environment;
        // SAFETY: the handle is a communicator of this library and `rank` is writable.
        session.check("MPI_Comm_rank", unsafe {
            (environment.rank)(handle, &mut rank)
        })?;
        // SAFETY: the handle is a communicator of this library and `size` is writable.
        session.check("MPI_Comm_size", unsafe {
            (environment.size)(handle, &mut size)
        })?;
        Ok(Self {
            session,
            handle,
            rank: rank as usize,
            size: size as usize,
            owned: false,
            degrees: None,
        })
    }

    /// This process's rank, from 0.
    #[inline]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// How many ranks there are.
    #[inline]
    pub fn size(&self) -> usize {
        self.size
    }

    /// The session it belongs to.
    pub fn session(&self) -> &'session Session {
        self.session
    }

    /// `MPI_Send`: blocks until `message` may be reused. Fast path.
    ///
    /// # Errors
    /// `Call` when MPI fails; `Argument` when the length is not a whole number of elements or above
    /// 2^31 - 1 of them.
    #[inline]
    pub fn send(&self, message: &[u8], kind: Datatype, target: i32, tag: i32) -> Result<()> {
        let count = element_count(message.len(), kind)?;
        let send = self.session.functions.point.send;
        // SAFETY: the slice is readable for `count` elements of `kind` during the call, which
        // blocks until MPI is done with it.
        let code = unsafe {
            send(
                message.as_ptr().cast(),
                count,
                self.type_handle(kind),
                target,
                tag,
                self.handle,
            )
        };
        self.session.check("MPI_Send", code)
    }

    /// `MPI_Recv` without a status: blocks until a message has arrived in `room`. Fast path.
    ///
    /// # Errors
    /// As [`Communicator::send`]; also when the message is longer than `room`.
    #[inline]
    pub fn recv(&self, room: &mut [u8], kind: Datatype, source: i32, tag: i32) -> Result<()> {
        let count = element_count(room.len(), kind)?;
        let recv = self.session.functions.point.recv;
        // SAFETY: the slice is writable for `count` elements during the call; MPI_STATUS_IGNORE is
        // always allowed.
        let code = unsafe {
            recv(
                room.as_mut_ptr().cast(),
                count,
                self.type_handle(kind),
                source,
                tag,
                self.handle,
                self.session.abi.status_ignore() as Target,
            )
        };
        self.session.check("MPI_Recv", code)
    }

    /// `MPI_Comm_split`: ranks of the same colour share a new communicator, ordered by `key`.
    /// Collective; setup.
    ///
    /// # Errors
    /// `Call` when MPI fails; `Argument` for a negative colour.
    pub fn split(&self, colour: i32, key: i32) -> Result<Communicator<'session>> {
        if colour < 0 {
            return Err(Error::argument(
                "colour of a split",
                colour,
                "must be 0 or more",
            ));
        }
        // Zero first: MPICH writes only the low half.
        let mut handle: Handle = 0;
        // SAFETY: the communicator is valid; `handle` has room for either interface's handle.
        let code = unsafe {
            (self.session.functions.environment.split)(self.handle, colour, key, &mut handle)
        };
        self.session.check("MPI_Comm_split", code)?;
        Communicator::made(self.session, handle)
    }

    #[inline]
    pub(crate) fn type_handle(&self, kind: Datatype) -> Handle {
        self.session.types[kind as usize]
    }
}

impl Drop for Communicator<'_> {
    fn drop(&mut self) {
        if self.owned {
            // SAFETY: made by MPI_Comm_split or as a graph, and freed once; the session, and so
            // MPI, is still alive.
            unsafe { (self.session.functions.environment.free)(&mut self.handle) };
        }
    }
}

/// Length in bytes as a count of elements. Fast path.
#[inline]
pub(crate) fn element_count(length_bytes: usize, kind: Datatype) -> Result<c_int> {
    let count = length_bytes >> kind.size_shift();
    if count << kind.size_shift() != length_bytes || count > c_int::MAX as usize {
        return Err(bad_length(length_bytes, kind));
    }
    Ok(count as c_int)
}

#[cold]
fn bad_length(length_bytes: usize, kind: Datatype) -> Error {
    let limit = format!(
        "must be a multiple of {} and hold at most {} elements",
        kind.size_bytes(),
        c_int::MAX
    );
    Error::argument("length of a message in bytes", length_bytes, limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_counts_whole_elements() {
        assert_eq!(element_count(24, Datatype::Double).expect("whole"), 3);
        assert_eq!(element_count(0, Datatype::Int).expect("empty"), 0);
    }

    #[test]
    fn broken_element_is_refused_with_the_limit() {
        let text = element_count(6, Datatype::Int).unwrap_err().to_string();
        assert!(
            text.contains("got 6") && text.contains("multiple of 4"),
            "{text}"
        );
    }

    #[test]
    fn message_beyond_a_c_int_is_refused() {
        assert!(element_count(1 << 31, Datatype::Char).is_err());
        assert!(element_count(1 << 31, Datatype::Int).is_ok());
    }
}
