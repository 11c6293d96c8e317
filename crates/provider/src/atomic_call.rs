// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What all calls of atomic operations have in common: from C's arguments to one call of the
//! endpoint crate.
//!
//! Called by atomic; asks atomic_offer. Source: fi_atomic(3).

use std::ffi::c_void;

use weft_endpoint::{Access, Atomic, Element, Error, FiAddr, Range, UserBuffer};
use weft_fabric_sys::FiAddr as RawFiAddr;
use weft_fabric_sys::atomic::{FiIoc, FiMsgAtomic, FiRmaIoc};
use weft_fabric_sys::errno::FI_EINVAL;
use weft_fabric_sys::fid::FidEp;
use weft_fabric_sys::flags::{FI_TAGGED, FI_TRIGGER};

use crate::atomic_offer::Form;
use crate::endpoint::Endpoint;
use crate::errno::long_code;
use crate::lock::Lock;
use crate::object::opened;
use crate::offer::PIECES;
use crate::post::Ranges;

/// What an atomic operation does, in libfabric's numbers.
#[derive(Clone, Copy, Debug)]
pub struct What {
    /// The type of the elements.
    pub datatype: u32,
    /// What is done with them.
    pub op: u32,
}

/// A call, as far as all forms are alike.
#[derive(Debug)]
pub struct Call<'a> {
    /// Its form.
    pub form: Form,
    /// The target.
    pub to: RawFiAddr,
    /// The target's elements.
    pub ranges: &'a [Range],
    /// What is done with them.
    pub what: What,
    /// Its flags, for calls that have some.
    pub flags: Option<u64>,
    /// Whether it has no completion.
    pub inject: bool,
    /// Its context.
    pub context: *mut c_void,
}

impl<'a> Call<'a> {
    /// A call without flags, with a completion.
    #[inline(always)]
    pub fn new(
        form: Form,
        to: RawFiAddr,
        ranges: &'a [Range],
        what: What,
        context: *mut c_void,
    ) -> Self {
        Self {
            form,
            to,
            ranges,
            what,
            flags: None,
            inject: false,
            context,
        }
    }
}

/// Local elements of a call.
#[derive(Clone, Copy, Debug)]
pub struct Elements {
    /// In pieces.
    pub pieces: *const FiIoc,
    /// How many pieces.
    pub count: usize,
}

/// No elements.
const NONE: Elements = Elements {
    pieces: std::ptr::null(),
    count: 0,
};

/// The local elements of a call; [`NONE`] for each list that the call does not take.
#[derive(Clone, Copy, Debug)]
pub struct Lists {
    /// What remote memory is changed with.
    pub operands: Elements,
    /// What remote memory is compared with.
    pub comparands: Elements,
    /// Where what was there goes.
    pub results: Elements,
}

impl Lists {
    /// No elements at all.
    pub const NONE: Self = Self {
        operands: NONE,
        comparands: NONE,
        results: NONE,
    };
}

impl Elements {
    /// The memory they lie in.
    ///
    /// # Safety
    /// `pieces` must be `count` pieces of memory that is ours until the operation's completion.
    #[inline(always)]
    unsafe fn buffer(self, size_bytes: usize) -> Result<UserBuffer, Error> {
        if self.count == 0 {
            return Ok(UserBuffer::empty());
        }
        if self.pieces.is_null() || self.count > PIECES {
            return Err(Error::Invalid);
        }
        // SAFETY: the application passes `count` pieces (contract), and the pointer is not null.
        let pieces = unsafe { std::slice::from_raw_parts(self.pieces, self.count) };
        if let [only] = pieces {
            let length_bytes = only.count.checked_mul(size_bytes).ok_or(Error::Invalid)?;
            // SAFETY: the contract.
            return Ok(unsafe { UserBuffer::from_raw(only.addr.cast(), length_bytes) });
        }
        let is_too_long = |piece: &FiIoc| piece.count.checked_mul(size_bytes).is_none();
        if pieces.iter().any(is_too_long) {
            return Err(Error::Invalid);
        }
        // SAFETY: the contract.
        Ok(unsafe {
            UserBuffer::from_pieces(
                pieces
                    .iter()
                    .map(|piece| (piece.addr.cast(), piece.count * size_bytes)),
            )
        })
    }
}

/// Carries out a call.
///
/// # Safety
/// `endpoint` must be an open endpoint of this kind of lock; the elements as [`Elements::buffer`]
/// says.
pub unsafe fn post<L: Lock>(endpoint: *mut FidEp, call: &Call<'_>, lists: Lists) -> isize {
    // SAFETY: the contract.
    long_code(unsafe { try_post::<L>(endpoint, call, lists) })
}

/// # Safety
/// As [`post`].
unsafe fn try_post<L: Lock>(
    endpoint: *mut FidEp,
    call: &Call<'_>,
    lists: Lists,
) -> Result<(), Error> {
    let flags = call.flags.unwrap_or(0);
    if flags & (FI_TRIGGER | FI_TAGGED) != 0 {
        return Err(Error::Unsupported);
    }
    let (element, operator) = call.form.find(call.what.datatype, call.what.op)?;
    let size_bytes = element.size_bytes();
    // SAFETY: the contract. What a call has no use for may be anything, and is not looked at.
    let (operands, comparands, result) = unsafe {
        (
            if operator.only_reads() {
                NONE
            } else {
                lists.operands
            }
            .buffer(size_bytes)?,
            lists.comparands.buffer(size_bytes)?,
            match call.form {
                Form::Base => None,
                Form::Fetch | Form::Compare => Some(lists.results.buffer(size_bytes)?),
            },
        )
    };
    let access = Access {
        to: FiAddr(call.to),
        ranges: call.ranges,
        cq_data: None,
        flags: call.flags,
        inject: call.inject,
        context: call.context as usize,
    };
    let atomic = Atomic {
        operator,
        element,
        operands: &operands,
        comparands: &comparands,
    };
    // SAFETY: the contract.
    let endpoint = unsafe { opened::<Endpoint<L>>(endpoint) };
    endpoint.with(|domain, id| domain.endpoint(id)?.atomic(&access, &atomic, result))
}

/// One piece of local memory.
pub fn piece(base: *const c_void, count: usize) -> FiIoc {
    FiIoc {
        addr: base.cast_mut(),
        count,
    }
}

/// That piece as a list.
pub fn only(piece: &FiIoc) -> Elements {
    Elements {
        pieces: piece,
        count: 1,
    }
}

/// The range of a call with one range, for this many elements; empty for a type that does not
/// exist.
pub fn range(address: u64, key: u64, count: usize, datatype: u32) -> [Range; 1] {
    let size_bytes = Element::of(datatype).map_or(0, Element::size_bytes);
    [Range {
        address,
        length_bytes: (count as u64).saturating_mul(size_bytes as u64),
        key,
    }]
}

/// Elements in a list of pieces.
///
/// # Safety
/// `pieces` must be null or `count` pieces.
pub unsafe fn total(pieces: *const FiIoc, count: usize) -> usize {
    if pieces.is_null() || count > PIECES {
        return 0;
    }
    // SAFETY: the contract.
    let pieces = unsafe { std::slice::from_raw_parts(pieces, count) };
    pieces
        .iter()
        .fold(0, |sum, piece| piece.count.saturating_add(sum))
}

/// A call of the form fi_atomicmsg, and the arguments that it has besides its message.
///
/// # Safety
/// As [`post`]; `message` must be null or as fi_atomicmsg(3) says.
pub unsafe fn post_message<L: Lock>(
    endpoint: *mut FidEp,
    form: Form,
    message: *const FiMsgAtomic,
    lists: Lists,
    flags: u64,
) -> isize {
    // SAFETY: null or the application's message.
    let Some(message) = (unsafe { message.as_ref() }) else {
        return -(FI_EINVAL as isize);
    };
    let range_of = |ioc: &FiRmaIoc| range(ioc.addr, ioc.key, ioc.count, message.datatype)[0];
    // SAFETY: the contract: the application passes so many.
    let ranges = unsafe { Ranges::of(message.rma_iov, message.rma_iov_count, range_of) };
    let Some(ranges) = ranges else {
        return -(FI_EINVAL as isize);
    };
    let call = Call {
        form,
        to: message.addr,
        ranges: ranges.as_slice(),
        what: What {
            datatype: message.datatype,
            op: message.op,
        },
        flags: Some(flags),
        inject: false,
        context: message.context,
    };
    let operands = Elements {
        pieces: message.msg_iov,
        count: message.iov_count,
    };
    // SAFETY: the contract.
    unsafe { post::<L>(endpoint, &call, Lists { operands, ..lists }) }
}
