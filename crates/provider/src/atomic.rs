// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Atomic operations on remote memory: the C calls, one function for each.
//!
//! Called through the endpoint's table; what they share is in atomic_call. Source: fi_atomic(3).

use std::ffi::c_void;

use weft_fabric_sys::FiAddr as RawFiAddr;
use weft_fabric_sys::atomic::{FiIoc, FiMsgAtomic};
use weft_fabric_sys::fid::FidEp;

use crate::atomic_call::{
    Call, Elements, Lists, What, only, piece, post, post_message, range, total,
};
use crate::atomic_offer::Form;
use crate::lock::Lock;

/// The lists of a call that takes operands alone.
#[inline(always)]
fn operands(operands: Elements) -> Lists {
    Lists {
        operands,
        ..Lists::NONE
    }
}

// structure: allow arguments because libfabric's callers pass them so
pub(crate) unsafe extern "C" fn write<L: Lock>(
    endpoint: *mut FidEp,
    base: *const c_void,
    count: usize,
    _desc: *mut c_void,
    to: RawFiAddr,
    address: u64,
    key: u64,
    datatype: u32,
    op: u32,
    context: *mut c_void,
) -> isize {
    let ranges = &range(address, key, count, datatype);
    let call = Call::new(Form::Base, to, ranges, What { datatype, op }, context);
    // SAFETY: this table belongs to endpoints of this kind of lock only; the arguments are
    // fi_atomic's.
    unsafe { post::<L>(endpoint, &call, operands(only(&piece(base, count)))) }
}

// structure: allow arguments because libfabric's callers pass them so
pub(crate) unsafe extern "C" fn writev<L: Lock>(
    endpoint: *mut FidEp,
    pieces: *const FiIoc,
    _desc: *mut *mut c_void,
    count: usize,
    to: RawFiAddr,
    address: u64,
    key: u64,
    datatype: u32,
    op: u32,
    context: *mut c_void,
) -> isize {
    // SAFETY: the arguments are fi_atomicv's, and the table with this function belongs to
    // objects of this kind of lock.
    let ranges = &range(address, key, unsafe { total(pieces, count) }, datatype);
    let call = Call::new(Form::Base, to, ranges, What { datatype, op }, context);
    // SAFETY: the application lends this memory until the operation ends, and the endpoint is of
    // this kind of lock.
    unsafe { post::<L>(endpoint, &call, operands(Elements { pieces, count })) }
}

pub(crate) unsafe extern "C" fn writemsg<L: Lock>(
    endpoint: *mut FidEp,
    message: *const FiMsgAtomic,
    flags: u64,
) -> isize {
    // SAFETY: the arguments are fi_atomicmsg's, and the table with this function belongs to
    // objects of this kind of lock.
    unsafe { post_message::<L>(endpoint, Form::Base, message, Lists::NONE, flags) }
}

// structure: allow arguments because libfabric's callers pass them so
pub(crate) unsafe extern "C" fn inject<L: Lock>(
    endpoint: *mut FidEp,
    base: *const c_void,
    count: usize,
    to: RawFiAddr,
    address: u64,
    key: u64,
    datatype: u32,
    op: u32,
) -> isize {
    let ranges = &range(address, key, count, datatype);
    let call = Call {
        inject: true,
        ..Call::new(
            Form::Base,
            to,
            ranges,
            What { datatype, op },
            std::ptr::null_mut(),
        )
    };
    // SAFETY: the arguments are fi_inject_atomic's, and the table with this function belongs to
    // objects of this kind of lock.
    unsafe { post::<L>(endpoint, &call, operands(only(&piece(base, count)))) }
}

// structure: allow arguments because libfabric's callers pass them so
pub(crate) unsafe extern "C" fn fetch<L: Lock>(
    endpoint: *mut FidEp,
    base: *const c_void,
    count: usize,
    _desc: *mut c_void,
    result: *mut c_void,
    _result_desc: *mut c_void,
    to: RawFiAddr,
    address: u64,
    key: u64,
    datatype: u32,
    op: u32,
    context: *mut c_void,
) -> isize {
    let ranges = &range(address, key, count, datatype);
    let call = Call::new(Form::Fetch, to, ranges, What { datatype, op }, context);
    let (pieces, result) = (piece(base, count), piece(result, count));
    // SAFETY: the arguments are fi_fetch_atomic's, and the table with this function belongs to
    // objects of this kind of lock.
    unsafe {
        post::<L>(
            endpoint,
            &call,
            Lists {
                results: only(&result),
                ..operands(only(&pieces))
            },
        )
    }
}

// structure: allow arguments because libfabric's callers pass them so
pub(crate) unsafe extern "C" fn fetchv<L: Lock>(
    endpoint: *mut FidEp,
    pieces: *const FiIoc,
    _desc: *mut *mut c_void,
    count: usize,
    results: *mut FiIoc,
    _result_desc: *mut *mut c_void,
    result_count: usize,
    to: RawFiAddr,
    address: u64,
    key: u64,
    datatype: u32,
    op: u32,
    context: *mut c_void,
) -> isize {
    // SAFETY: the arguments are fi_fetch_atomicv's, and the table with this function belongs to
    // objects of this kind of lock.
    let ranges = &range(
        address,
        key,
        unsafe { total(results, result_count) },
        datatype,
    );
    let call = Call::new(Form::Fetch, to, ranges, What { datatype, op }, context);
    let results = Elements {
        pieces: results,
        count: result_count,
    };
    // SAFETY: the application lends this memory until the operation ends, and the endpoint is of
    // this kind of lock.
    unsafe {
        post::<L>(
            endpoint,
            &call,
            Lists {
                results,
                ..operands(Elements { pieces, count })
            },
        )
    }
}

// structure: allow arguments because libfabric's callers pass them so
pub(crate) unsafe extern "C" fn fetchmsg<L: Lock>(
    endpoint: *mut FidEp,
    message: *const FiMsgAtomic,
    results: *mut FiIoc,
    _result_desc: *mut *mut c_void,
    result_count: usize,
    flags: u64,
) -> isize {
    let results = Elements {
        pieces: results,
        count: result_count,
    };
    // SAFETY: the arguments are fi_fetch_atomicmsg's, and the table with this function belongs to
    // objects of this kind of lock.
    unsafe {
        post_message::<L>(
            endpoint,
            Form::Fetch,
            message,
            Lists {
                results,
                ..Lists::NONE
            },
            flags,
        )
    }
}

// structure: allow arguments because libfabric's callers pass them so
pub(crate) unsafe extern "C" fn compare<L: Lock>(
    endpoint: *mut FidEp,
    base: *const c_void,
    count: usize,
    _desc: *mut c_void,
    comparands: *const c_void,
    _compare_desc: *mut c_void,
    result: *mut c_void,
    _result_desc: *mut c_void,
    to: RawFiAddr,
    address: u64,
    key: u64,
    datatype: u32,
    op: u32,
    context: *mut c_void,
) -> isize {
    let ranges = &range(address, key, count, datatype);
    let call = Call::new(Form::Compare, to, ranges, What { datatype, op }, context);
    let [base, comparands, result] =
        [base, comparands, result.cast_const()].map(|base| piece(base, count));
    let lists = Lists {
        operands: only(&base),
        comparands: only(&comparands),
        results: only(&result),
    };
    // SAFETY: the arguments are fi_compare_atomic's, and the table with this function belongs to
    // objects of this kind of lock.
    unsafe { post::<L>(endpoint, &call, lists) }
}

// structure: allow arguments because libfabric's callers pass them so
pub(crate) unsafe extern "C" fn comparev<L: Lock>(
    endpoint: *mut FidEp,
    pieces: *const FiIoc,
    _desc: *mut *mut c_void,
    count: usize,
    comparands: *const FiIoc,
    _compare_desc: *mut *mut c_void,
    compare_count: usize,
    results: *mut FiIoc,
    _result_desc: *mut *mut c_void,
    result_count: usize,
    to: RawFiAddr,
    address: u64,
    key: u64,
    datatype: u32,
    op: u32,
    context: *mut c_void,
) -> isize {
    // SAFETY: the arguments are fi_compare_atomicv's, and the table with this function belongs to
    // objects of this kind of lock.
    let ranges = &range(address, key, unsafe { total(pieces, count) }, datatype);
    let call = Call::new(Form::Compare, to, ranges, What { datatype, op }, context);
    let lists = Lists {
        operands: Elements { pieces, count },
        comparands: Elements {
            pieces: comparands,
            count: compare_count,
        },
        results: Elements {
            pieces: results,
            count: result_count,
        },
    };
    // SAFETY: the application lends this memory until the operation ends, and the endpoint is of
    // this kind of lock.
    unsafe { post::<L>(endpoint, &call, lists) }
}

// structure: allow arguments because libfabric's callers pass them so
pub(crate) unsafe extern "C" fn comparemsg<L: Lock>(
    endpoint: *mut FidEp,
    message: *const FiMsgAtomic,
    comparands: *const FiIoc,
    _compare_desc: *mut *mut c_void,
    compare_count: usize,
    results: *mut FiIoc,
    _result_desc: *mut *mut c_void,
    result_count: usize,
    flags: u64,
) -> isize {
    let lists = Lists {
        comparands: Elements {
            pieces: comparands,
            count: compare_count,
        },
        results: Elements {
            pieces: results,
            count: result_count,
        },
        ..Lists::NONE
    };
    // SAFETY: the arguments are fi_compare_atomicmsg's, and the table with this function belongs to
    // objects of this kind of lock.
    unsafe { post_message::<L>(endpoint, Form::Compare, message, lists, flags) }
}
