// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reads and writes of remote memory: the C calls, each turned into one call of the endpoint crate.
//!
//! Called through the endpoint's table; uses post for buffers. Source: fi_rma(3).

use std::ffi::c_void;

use libc::iovec;
use weft_endpoint::{Access, Error, FiAddr, Range, UserBuffer};
use weft_fabric_sys::FiAddr as RawFiAddr;
use weft_fabric_sys::fid::FidEp;
use weft_fabric_sys::flags::FI_TRIGGER;
use weft_fabric_sys::rma::{FiMsgRma, FiRmaIov};

use crate::endpoint::Endpoint;
use crate::errno::long_code;
use crate::lock::Lock;
use crate::object::opened;
use crate::post::{Piece, Ranges, data_if_flagged, one, several};

/// The range of a call that names one.
fn range(address: u64, key: u64, length_bytes: usize) -> Range {
    Range {
        address,
        length_bytes: length_bytes as u64,
        key,
    }
}

/// What a call without flags says.
fn access<'a>(to: RawFiAddr, ranges: &'a [Range], context: *mut c_void) -> Access<'a> {
    Access {
        to: FiAddr(to),
        ranges,
        cq_data: None,
        flags: None,
        inject: false,
        context: context as usize,
    }
}

/// # Safety
/// `endpoint` must be an open endpoint of this kind of lock.
#[inline(always)]
unsafe fn post_write<L: Lock>(
    endpoint: *mut FidEp,
    access: &Access<'_>,
    payload: &UserBuffer,
) -> isize {
    // SAFETY: the contract.
    let endpoint = unsafe { opened::<Endpoint<L>>(endpoint) };
    long_code(endpoint.with(|domain, id| domain.endpoint(id)?.write(access, payload)))
}

/// # Safety
/// `endpoint` must be an open endpoint of this kind of lock.
#[inline(always)]
unsafe fn post_read<L: Lock>(
    endpoint: *mut FidEp,
    access: &Access<'_>,
    target: UserBuffer,
) -> isize {
    // SAFETY: the contract.
    let endpoint = unsafe { opened::<Endpoint<L>>(endpoint) };
    long_code(endpoint.with(|domain, id| domain.endpoint(id)?.read(access, target)))
}

/// What fi_readmsg and fi_writemsg are given, checked.
struct Parts<'a> {
    message: &'a FiMsgRma,
    ranges: Ranges,
    /// The local memory.
    memory: UserBuffer,
}

/// A message with its ranges and its local memory, and its flags checked.
///
/// # Safety
/// `message` must be null or as fi_readmsg and fi_writemsg want it (fi_rma(3)).
unsafe fn parts_of<'a>(message: *const FiMsgRma, flags: u64) -> Result<Parts<'a>, Error> {
    let range_of = |range: &FiRmaIov| Range {
        address: range.addr,
        length_bytes: range.len as u64,
        key: range.key,
    };
    // SAFETY: the contract.
    unsafe {
        let message = message.as_ref().ok_or(Error::Invalid)?;
        if flags & FI_TRIGGER != 0 {
            return Err(Error::Unsupported);
        }
        let ranges = Ranges::of(message.rma_iov, message.rma_iov_count, range_of);
        Ok(Parts {
            message,
            ranges: ranges.ok_or(Error::Invalid)?,
            memory: several(message.msg_iov, message.iov_count)?,
        })
    }
}

// structure: allow arguments because libfabric's callers pass them so
pub(crate) unsafe extern "C" fn read<L: Lock>(
    endpoint: *mut FidEp,
    base: *mut c_void,
    length_bytes: usize,
    _desc: *mut c_void,
    to: RawFiAddr,
    address: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    let ranges = [range(address, key, length_bytes)];
    // SAFETY: this table belongs to endpoints of this kind of lock only; the arguments are
    // fi_read's.
    unsafe {
        let target = one(Piece { base, length_bytes });
        post_read::<L>(endpoint, &access(to, &ranges, context), target)
    }
}

// structure: allow arguments because libfabric's callers pass them so
pub(crate) unsafe extern "C" fn readv<L: Lock>(
    endpoint: *mut FidEp,
    pieces: *const iovec,
    _desc: *mut *mut c_void,
    count: usize,
    to: RawFiAddr,
    address: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: the arguments are fi_readv's, and the table with this function belongs to
    // objects of this kind of lock.
    let target = match unsafe { several(pieces, count) } {
        Ok(target) => target,
        Err(error) => return long_code(Err(error)),
    };
    let ranges = [range(address, key, target.length_bytes())];
    // SAFETY: the application lends this memory until the operation ends, and the endpoint is of
    // this kind of lock.
    unsafe { post_read::<L>(endpoint, &access(to, &ranges, context), target) }
}

pub(crate) unsafe extern "C" fn readmsg<L: Lock>(
    endpoint: *mut FidEp,
    message: *const FiMsgRma,
    flags: u64,
) -> isize {
    // SAFETY: the arguments are fi_readmsg's, and the table with this function belongs to
    // objects of this kind of lock.
    match unsafe { parts_of(message, flags) } {
        Err(error) => long_code(Err(error)),
        Ok(parts) => {
            let message = parts.message;
            let access = Access {
                flags: Some(flags),
                ..access(message.addr, parts.ranges.as_slice(), message.context)
            };
            // SAFETY: the application lends this memory until the operation ends, and the endpoint
            // is of this kind of lock.
            unsafe { post_read::<L>(endpoint, &access, parts.memory) }
        }
    }
}

// structure: allow arguments because libfabric's callers pass them so
pub(crate) unsafe extern "C" fn write<L: Lock>(
    endpoint: *mut FidEp,
    base: *const c_void,
    length_bytes: usize,
    _desc: *mut c_void,
    to: RawFiAddr,
    address: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    let ranges = [range(address, key, length_bytes)];
    // SAFETY: the arguments are fi_write's, and the table with this function belongs to
    // objects of this kind of lock.
    unsafe {
        let payload = one(Piece { base, length_bytes });
        post_write::<L>(endpoint, &access(to, &ranges, context), &payload)
    }
}

// structure: allow arguments because libfabric's callers pass them so
pub(crate) unsafe extern "C" fn writev<L: Lock>(
    endpoint: *mut FidEp,
    pieces: *const iovec,
    _desc: *mut *mut c_void,
    count: usize,
    to: RawFiAddr,
    address: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: the arguments are fi_writev's, and the table with this function belongs to
    // objects of this kind of lock.
    let payload = match unsafe { several(pieces, count) } {
        Ok(payload) => payload,
        Err(error) => return long_code(Err(error)),
    };
    let ranges = [range(address, key, payload.length_bytes())];
    // SAFETY: the application lends this memory until the operation ends, and the endpoint is of
    // this kind of lock.
    unsafe { post_write::<L>(endpoint, &access(to, &ranges, context), &payload) }
}

pub(crate) unsafe extern "C" fn writemsg<L: Lock>(
    endpoint: *mut FidEp,
    message: *const FiMsgRma,
    flags: u64,
) -> isize {
    // SAFETY: the arguments are fi_writemsg's, and the table with this function belongs to
    // objects of this kind of lock.
    match unsafe { parts_of(message, flags) } {
        Err(error) => long_code(Err(error)),
        Ok(parts) => {
            let message = parts.message;
            let access = Access {
                flags: Some(flags),
                cq_data: data_if_flagged(flags, message.data),
                ..access(message.addr, parts.ranges.as_slice(), message.context)
            };
            // SAFETY: the application lends this memory until the operation ends, and the endpoint
            // is of this kind of lock.
            unsafe { post_write::<L>(endpoint, &access, &parts.memory) }
        }
    }
}

// structure: allow arguments because libfabric's callers pass them so
pub(crate) unsafe extern "C" fn inject<L: Lock>(
    endpoint: *mut FidEp,
    base: *const c_void,
    length_bytes: usize,
    to: RawFiAddr,
    address: u64,
    key: u64,
) -> isize {
    let ranges = [range(address, key, length_bytes)];
    let access = Access {
        inject: true,
        ..access(to, &ranges, std::ptr::null_mut())
    };
    // SAFETY: the arguments are fi_inject_write's, and the table with this function belongs to
    // objects of this kind of lock.
    unsafe { post_write::<L>(endpoint, &access, &one(Piece { base, length_bytes })) }
}

// structure: allow arguments because libfabric's callers pass them so
pub(crate) unsafe extern "C" fn writedata<L: Lock>(
    endpoint: *mut FidEp,
    base: *const c_void,
    length_bytes: usize,
    _desc: *mut c_void,
    data: u64,
    to: RawFiAddr,
    address: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    let ranges = [range(address, key, length_bytes)];
    let access = Access {
        cq_data: Some(data),
        ..access(to, &ranges, context)
    };
    // SAFETY: the arguments are fi_writedata's, and the table with this function belongs to
    // objects of this kind of lock.
    unsafe { post_write::<L>(endpoint, &access, &one(Piece { base, length_bytes })) }
}

// structure: allow arguments because libfabric's callers pass them so
pub(crate) unsafe extern "C" fn injectdata<L: Lock>(
    endpoint: *mut FidEp,
    base: *const c_void,
    length_bytes: usize,
    data: u64,
    to: RawFiAddr,
    address: u64,
    key: u64,
) -> isize {
    let ranges = [range(address, key, length_bytes)];
    let access = Access {
        inject: true,
        cq_data: Some(data),
        ..access(to, &ranges, std::ptr::null_mut())
    };
    // SAFETY: the arguments are fi_inject_writedata's, and the table with this function belongs to
    // objects of this kind of lock.
    unsafe { post_write::<L>(endpoint, &access, &one(Piece { base, length_bytes })) }
}
