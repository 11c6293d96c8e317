// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Persistent messages between two ranks: prepared once for one buffer, then started and waited for
//! any number of times.
//!
//! Made by programs from a communicator. As in prepared, the buffer belongs to the messages and is
//! reachable only while none of them is in flight. Source: MPI 3.1, section 3.9.

use crate::abi::Datatype;
use crate::buffer::Buffer;
use crate::communicator::{Communicator, element_count};
use crate::error::{Error, Result};
use crate::table::Target;
use std::ffi::c_int;
use std::ops::Range;

/// Which way persistent messages go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// `MPI_Send_init`.
    Send,
    /// `MPI_Recv_init`.
    Receive,
}

/// The other rank and the tag.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// Which way.
    pub direction: Direction,
    /// Type of the elements.
    pub kind: Datatype,
    /// The other rank.
    pub other: i32,
    /// The tag.
    pub tag: i32,
}

/// Messages prepared for one buffer.
pub struct Persistent<'a> {
    communicator: &'a Communicator<'a>,
    line: Line,
    buffer: Buffer,
    /// Handles of the interface's width, back to back; `usize` for alignment.
    requests: Vec<usize>,
    count: usize,
    is_started: bool,
}

impl<'a> Persistent<'a> {
    /// Makes the buffer; no message is prepared yet. Setup.
    pub fn new(communicator: &'a Communicator<'a>, line: Line, room_bytes: usize) -> Self {
        Self {
            communicator,
            line,
            buffer: Buffer::new(room_bytes),
            requests: Vec::new(),
            count: 0,
            is_started: false,
        }
    }

    /// Prepares one message for each part of the buffer, in place of those before. Setup.
    ///
    /// # Errors
    /// `Argument` when a part lies outside or is no whole number of elements; `Call` when MPI
    /// fails.
    pub fn prepare(&mut self, parts: impl IntoIterator<Item = Range<usize>>) -> Result<()> {
        self.release()?;
        self.requests.clear();
        let session = self.communicator.session;
        let width = session.abi.handle_bytes();
        for part in parts {
            if part.start > part.end || part.end > self.buffer.len() {
                let limit = format!("the buffer holds {} bytes", self.buffer.len());
                let got = format!("{}..{}", part.start, part.end);
                return Err(Error::argument("part of a buffer", got, limit));
            }
            let elements = element_count(part.end - part.start, self.line.kind)?;
            self.requests.push(0);
            // SAFETY: `requests` has a usize for each handle, and a handle is at most that wide.
            let slot = unsafe {
                let room = self.requests.as_mut_ptr().cast::<u8>();
                room.add(self.count * width)
            };
            // SAFETY: the part was checked to lie within the buffer.
            let start = unsafe { self.buffer.start().as_ptr().add(part.start) };
            self.prepare_one(start, elements, slot.cast())?;
            self.count += 1;
        }
        Ok(())
    }

    fn prepare_one(&self, start: *mut u8, elements: c_int, slot: Target) -> Result<()> {
        let Line {
            direction,
            kind,
            other,
            tag,
        } = self.line;
        let (session, world) = (self.communicator.session, self.communicator.handle);
        let (point, kind) = (
            &session.functions.point,
            self.communicator.type_handle(kind),
        );
        // SAFETY: the buffer holds the elements and lives until the request is freed; the slot has
        // room for a handle.
        let code = unsafe {
            match direction {
                Direction::Send => {
                    let start = start.cast_const().cast();
                    (point.send_init)(start, elements, kind, other, tag, world, slot)
                }
                Direction::Receive => {
                    (point.recv_init)(start.cast(), elements, kind, other, tag, world, slot)
                }
            }
        };
        let function = match direction {
            Direction::Send => "MPI_Send_init",
            Direction::Receive => "MPI_Recv_init",
        };
        session.check(function, code)
    }

    /// The buffer.
    ///
    /// # Panics
    /// While messages are in flight.
    pub fn bytes(&mut self) -> &mut [u8] {
        assert!(!self.is_started, "its messages are in flight");
        self.buffer.bytes()
    }

    /// `MPI_Startall`, or `MPI_Start` for a single message. Fast path.
    ///
    /// # Errors
    /// `Call` when MPI fails.
    ///
    /// # Panics
    /// While messages are in flight.
    #[inline]
    pub fn start(&mut self) -> Result<()> {
        assert!(!self.is_started, "its messages are in flight already");
        let session = self.communicator.session;
        let (count, room) = (self.count as c_int, self.requests.as_mut_ptr().cast());
        let point = &session.functions.point;
        // SAFETY: `count` inactive persistent requests, whose buffer stays with them.
        let code = unsafe {
            if count == 1 {
                (point.start)(room)
            } else {
                (point.start_all)(count, room)
            }
        };
        session.check("MPI_Startall", code)?;
        self.is_started = true;
        Ok(())
    }

    /// `MPI_Waitall`, or `MPI_Wait` for a single message. Fast path.
    ///
    /// # Errors
    /// `Call` when MPI fails; the messages then count as ended.
    #[inline]
    pub fn wait(&mut self) -> Result<()> {
        if !self.is_started {
            return Ok(());
        }
        let session = self.communicator.session;
        let (count, room) = (self.count as c_int, self.requests.as_mut_ptr().cast());
        let ignore = session.abi.status_ignore() as Target;
        let point = &session.functions.point;
        self.is_started = false;
        // SAFETY: `count` requests that are in flight; statuses may be ignored.
        let code = unsafe {
            if count == 1 {
                (point.wait)(room, ignore)
            } else {
                (point.waitall)(count, room, ignore)
            }
        };
        session.check("MPI_Waitall", code)
    }

    fn release(&mut self) -> Result<()> {
        self.wait()?;
        let session = self.communicator.session;
        let width = session.abi.handle_bytes();
        for index in 0..std::mem::take(&mut self.count) {
            // SAFETY: handle `index` was written by prepare; a persistent request that is inactive
            // is freed once.
            let code = unsafe {
                let slot = self.requests.as_mut_ptr().cast::<u8>().add(index * width);
                (session.functions.point.request_free)(slot.cast())
            };
            session.check("MPI_Request_free", code)?;
        }
        Ok(())
    }
}

impl Drop for Persistent<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() && self.is_started {
            eprintln!("weft-mpi: a panic while messages were in flight; ending the process");
            std::process::abort();
        }
        let _ = self.release();
    }
}
