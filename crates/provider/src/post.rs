// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The way of every send and receive from C's arguments to one call of the endpoint crate.
//!
//! Called by message and tagged; calls [`weft_endpoint::Domain`] under the domain's lock. This is
//! the fast path: a pointer cast, the lock (or none), the call. Source: fi_msg(3), fi_tagged(3).

use std::ffi::c_void;
use std::slice;

use libc::iovec;
use weft_endpoint::{Error, FiAddr, Inject, RANGE_LIMIT, Range, Receive, Send, UserBuffer};
use weft_fabric_sys::FiAddr as RawFiAddr;
use weft_fabric_sys::fid::FidEp;
use weft_fabric_sys::flags::FI_REMOTE_CQ_DATA;

use crate::endpoint::Endpoint;
use crate::errno::long_code;
use crate::lock::Lock;
use crate::object::opened;
use crate::offer::PIECES;

/// One piece of the application's memory.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// Its address.
    pub base: *const c_void,
    /// Its length.
    pub length_bytes: usize,
}

/// The ranges of remote memory that a call with all its parts names.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ranges {
    named: [Range; RANGE_LIMIT],
    count: usize,
}

impl Ranges {
    /// Takes so many ranges of C's, which are not read if they cannot be taken: `None` if they are
    /// too many, or `first` is null and there is one.
    ///
    /// # Safety
    /// `first` must be null or point to `count` of them.
    pub unsafe fn of<T>(
        first: *const T,
        count: usize,
        range_of: impl Fn(&T) -> Range,
    ) -> Option<Self> {
        if count > RANGE_LIMIT || (count > 0 && first.is_null()) {
            return None;
        }
        let mut ranges = Self {
            count,
            ..Self::default()
        };
        for (index, range) in ranges.named.iter_mut().enumerate().take(count) {
            // SAFETY: there are `count` of them (contract), and the pointer is not null.
            *range = range_of(unsafe { &*first.add(index) });
        }
        Some(ranges)
    }

    /// All of them.
    pub fn as_slice(&self) -> &[Range] {
        &self.named[..self.count]
    }
}

/// Sends one piece. Fast path.
///
/// # Safety
/// `endpoint` must be an open endpoint of this kind of lock; the piece must stay valid as fi_msg(3)
/// says.
#[inline(always)]
pub unsafe fn send<L: Lock>(
    endpoint: *mut FidEp,
    piece: Piece,
    to: RawFiAddr,
    send: Send,
) -> isize {
    // SAFETY: the contract; the endpoint crate does not call back into the domain.
    let ((mut domain, id), payload) =
        unsafe { (opened::<Endpoint<L>>(endpoint).enter(), one(piece)) };
    long_code(match domain.endpoint(id) {
        Ok(endpoint) => endpoint.send(FiAddr(to), &send, &payload),
        Err(error) => Err(error),
    })
}

/// Sends one short piece that is free again on return. Fast path.
///
/// # Safety
/// `endpoint` must be an open endpoint of this kind of lock; the piece must be readable.
#[inline(always)]
pub unsafe fn inject<L: Lock>(
    endpoint: *mut FidEp,
    piece: Piece,
    to: RawFiAddr,
    inject: Inject,
) -> isize {
    // SAFETY: the contract; the endpoint crate does not call back into the domain.
    let ((mut domain, id), payload) =
        unsafe { (opened::<Endpoint<L>>(endpoint).enter(), one(piece)) };
    long_code(match domain.endpoint(id) {
        Ok(endpoint) => endpoint.inject(FiAddr(to), &inject, &payload),
        Err(error) => Err(error),
    })
}

/// Receives into one piece. Fast path.
///
/// # Safety
/// As for [`send`]; the piece must be writable.
#[inline(always)]
pub unsafe fn receive<L: Lock>(endpoint: *mut FidEp, piece: Piece, receive: Receive) -> isize {
    // SAFETY: the contract; the endpoint crate does not call back into the domain.
    let (mut domain, id) = unsafe { opened::<Endpoint<L>>(endpoint).enter() };
    long_code(match domain.endpoint(id) {
        // SAFETY: the contract.
        Ok(endpoint) => endpoint.receive(&receive, || unsafe { one(piece) }),
        Err(error) => Err(error),
    })
}

/// Sends several pieces as one message.
///
/// # Safety
/// As for [`send`], for `count` pieces at `pieces`.
#[inline]
pub unsafe fn send_pieces<L: Lock>(
    endpoint: *mut FidEp,
    pieces: *const iovec,
    count: usize,
    to: RawFiAddr,
    send: Send,
) -> isize {
    // SAFETY: the contract.
    let (endpoint, payload) = unsafe { (opened::<Endpoint<L>>(endpoint), several(pieces, count)) };
    long_code(payload.and_then(|payload| send_payload(endpoint, to, &send, &payload)))
}

/// The rest of [`send_pieces`], which is rare: not inlined, so that its code exists once and not
/// in each caller.
#[inline(never)]
fn send_payload<L: Lock>(
    endpoint: &Endpoint<L>,
    to: RawFiAddr,
    send: &Send,
    payload: &UserBuffer,
) -> Result<(), Error> {
    endpoint.with(|domain, id| domain.endpoint(id)?.send(FiAddr(to), send, payload))
}

/// Receives one message into several pieces.
///
/// # Safety
/// As for [`receive`], for `count` pieces at `pieces`.
#[inline]
pub unsafe fn receive_pieces<L: Lock>(
    endpoint: *mut FidEp,
    pieces: *const iovec,
    count: usize,
    receive: Receive,
) -> isize {
    // SAFETY: the contract.
    let (endpoint, buffer) = unsafe { (opened::<Endpoint<L>>(endpoint), several(pieces, count)) };
    long_code(buffer.and_then(|buffer| receive_buffer(endpoint, &receive, buffer)))
}

/// The rest of [`receive_pieces`], which is rare: not inlined, as [`send_payload`].
#[inline(never)]
fn receive_buffer<L: Lock>(
    endpoint: &Endpoint<L>,
    receive: &Receive,
    buffer: UserBuffer,
) -> Result<(), Error> {
    endpoint.with(|domain, id| domain.endpoint(id)?.receive(receive, || buffer))
}

/// The data of a message, if its flags say that it carries any.
#[inline(always)]
pub fn data_if_flagged(flags: u64, data: u64) -> Option<u64> {
    (flags & FI_REMOTE_CQ_DATA != 0).then_some(data)
}

/// One piece as a buffer. Fast path.
///
/// # Safety
/// As for [`UserBuffer::from_raw`].
#[inline(always)]
pub unsafe fn one(piece: Piece) -> UserBuffer {
    // SAFETY: the contract.
    unsafe { UserBuffer::from_raw(piece.base.cast_mut().cast(), piece.length_bytes) }
}

/// Several pieces as a buffer. Fast path if there is one piece.
///
/// # Errors
/// [`Error::Invalid`] for too many pieces, or a null list.
///
/// # Safety
/// As for [`UserBuffer::from_raw`], for each of `count` pieces at `pieces`.
pub unsafe fn several(pieces: *const iovec, count: usize) -> Result<UserBuffer, Error> {
    if count == 0 {
        return Ok(UserBuffer::empty());
    }
    if pieces.is_null() || count > PIECES {
        return Err(Error::Invalid);
    }
    // SAFETY: the application passes `count` pieces, and the pointer is not null.
    let pieces = unsafe { slice::from_raw_parts(pieces, count) };
    if let [only] = pieces {
        let (base, length_bytes) = (only.iov_base.cast_const(), only.iov_len);
        // SAFETY: the contract.
        return Ok(unsafe { one(Piece { base, length_bytes }) });
    }
    // SAFETY: the contract.
    Ok(unsafe {
        UserBuffer::from_pieces(
            pieces
                .iter()
                .map(|piece| (piece.iov_base.cast(), piece.iov_len)),
        )
    })
}
