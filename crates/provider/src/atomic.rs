// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Atomic operations on remote memory: the C calls, each turned into one call of the endpoint crate, and the questions
//! which operations there are.
//!
//! Called through the endpoint's table, and through the domain's for fi_query_atomic. Source: fi_atomic(3).

use std::ffi::{c_int, c_void};

use weft_endpoint::{
    ATOMIC_LIMIT_BYTES, Access, Atomic, Element, Error, FiAddr, Operator, RANGE_LIMIT, Range,
    UserBuffer,
};
use weft_fabric_sys::FiAddr as RawFiAddr;
use weft_fabric_sys::atomic::{FiAtomicAttr, FiIoc, FiMsgAtomic, FiOpsAtomic};
use weft_fabric_sys::domain::FidDomain;
use weft_fabric_sys::endpoint::FidEp;
use weft_fabric_sys::errno::{FI_EINVAL, FI_EOPNOTSUPP, FI_SUCCESS};
use weft_fabric_sys::flags::{FI_COMPARE_ATOMIC, FI_FETCH_ATOMIC, FI_TAGGED, FI_TRIGGER};

use crate::endpoint::Endpoint;
use crate::errno::long_code;
use crate::lock::Lock;
use crate::offer::PIECES;

/// The table of calls.
pub fn ops<L: Lock>() -> &'static FiOpsAtomic {
    const {
        &FiOpsAtomic {
            size: size_of::<FiOpsAtomic>(),
            write: write::<L>,
            writev: writev::<L>,
            writemsg: writemsg::<L>,
            inject: inject::<L>,
            readwrite: fetch::<L>,
            readwritev: fetchv::<L>,
            readwritemsg: fetchmsg::<L>,
            compwrite: compare::<L>,
            compwritev: comparev::<L>,
            compwritemsg: comparemsg::<L>,
            writevalid: write_valid,
            readwritevalid: fetch_valid,
            compwritevalid: compare_valid,
        }
    }
}

/// The three kinds of calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    Base,
    Fetch,
    Compare,
}

impl Form {
    /// The operation that these numbers name, if calls of this form do it.
    fn find(self, datatype: u32, op: u32) -> Result<(Element, Operator), Error> {
        let element = Element::of(datatype).ok_or(Error::Unsupported)?;
        let operator = Operator::of(op).ok_or(Error::Unsupported)?;
        let fits = match self {
            Self::Base => !operator.compares() && !operator.only_reads(),
            Self::Fetch => !operator.compares(),
            Self::Compare => operator.compares(),
        };
        if fits && element.allows(operator) {
            Ok((element, operator))
        } else {
            Err(Error::Unsupported)
        }
    }

    /// Elements of one call, at most.
    fn count(self, element: Element) -> usize {
        let buffers = if self == Self::Compare { 2 } else { 1 };
        ATOMIC_LIMIT_BYTES / buffers / element.size_bytes()
    }
}

/// A call, as far as all forms are alike.
struct Call<'a> {
    form: Form,
    to: RawFiAddr,
    ranges: &'a [Range],
    datatype: u32,
    op: u32,
    flags: Option<u64>,
    inject: bool,
    context: *mut c_void,
}

/// Local elements of a call.
#[derive(Clone, Copy)]
struct Elements {
    pieces: *const FiIoc,
    count: usize,
}

/// No elements.
const NONE: Elements = Elements {
    pieces: std::ptr::null(),
    count: 0,
};

impl Elements {
    /// The memory they lie in.
    ///
    /// # Safety
    /// `pieces` must be `count` pieces of memory that is ours until the operation's completion.
    unsafe fn buffer(self, size_bytes: usize) -> Result<UserBuffer, Error> {
        if self.count == 0 {
            return Ok(UserBuffer::empty());
        }
        if self.pieces.is_null() || self.count > PIECES {
            return Err(Error::Invalid);
        }
        // SAFETY: the application passes `count` pieces (contract), and the pointer is not null.
        let pieces = unsafe { std::slice::from_raw_parts(self.pieces, self.count) };
        if pieces
            .iter()
            .any(|piece| piece.count > usize::MAX / size_bytes)
        {
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

/// Carries out a call: operands, comparands, results.
///
/// # Safety
/// `endpoint` must be an open endpoint of this kind of lock; the elements as [`Elements::buffer`] says.
unsafe fn post<L: Lock>(
    endpoint: *mut FidEp,
    call: &Call<'_>,
    [operands, comparands, results]: [Elements; 3],
) -> isize {
    // SAFETY: the contract.
    long_code(unsafe { try_post::<L>(endpoint, call, [operands, comparands, results]) })
}

/// # Safety
/// As [`post`].
unsafe fn try_post<L: Lock>(
    endpoint: *mut FidEp,
    call: &Call<'_>,
    [operands, comparands, results]: [Elements; 3],
) -> Result<(), Error> {
    let flags = call.flags.unwrap_or(0);
    if flags & (FI_TRIGGER | FI_TAGGED) != 0 {
        return Err(Error::Unsupported);
    }
    let (element, operator) = call.form.find(call.datatype, call.op)?;
    let size_bytes = element.size_bytes();
    // SAFETY: the contract. What a call has no use for may be anything, and is not looked at.
    let (operands, comparands, result) = unsafe {
        (
            if operator.only_reads() {
                NONE
            } else {
                operands
            }
            .buffer(size_bytes)?,
            comparands.buffer(size_bytes)?,
            match call.form {
                Form::Base => None,
                Form::Fetch | Form::Compare => Some(results.buffer(size_bytes)?),
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
    let endpoint = unsafe { Endpoint::<L>::from_fid(endpoint) };
    endpoint.with(|domain, id| domain.atomic(id, &access, &atomic, result))
}

/// One piece of local memory.
fn piece(base: *const c_void, count: usize) -> FiIoc {
    FiIoc {
        addr: base.cast_mut(),
        count,
    }
}

/// That piece as a list.
fn only(piece: &FiIoc) -> Elements {
    Elements {
        pieces: piece,
        count: 1,
    }
}

/// The range of a call that names one, for as many elements; empty for a type that does not exist.
fn range(address: u64, key: u64, count: usize, datatype: u32) -> [Range; 1] {
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
unsafe fn total(pieces: *const FiIoc, count: usize) -> usize {
    if pieces.is_null() || count > PIECES {
        return 0;
    }
    // SAFETY: the contract.
    let pieces = unsafe { std::slice::from_raw_parts(pieces, count) };
    pieces
        .iter()
        .fold(0, |sum, piece| piece.count.saturating_add(sum))
}

/// The ranges of a call with everything given.
///
/// # Safety
/// As fi_atomicmsg(3) says of `rma_iov`.
unsafe fn ranges_of(message: &FiMsgAtomic) -> Result<([Range; RANGE_LIMIT], usize), Error> {
    let count = message.rma_iov_count;
    if count > RANGE_LIMIT || (count > 0 && message.rma_iov.is_null()) {
        return Err(Error::Invalid);
    }
    let mut ranges = [Range::default(); RANGE_LIMIT];
    for (index, place) in ranges.iter_mut().enumerate().take(count) {
        // SAFETY: the application passes `count` of them, and the pointer is not null.
        let found = unsafe { &*message.rma_iov.add(index) };
        *place = range(found.addr, found.key, found.count, message.datatype)[0];
    }
    Ok((ranges, count))
}

/// A call with everything given, and what it brings besides its message.
///
/// # Safety
/// As [`post`]; `message` must be null or as fi_atomicmsg(3) says.
unsafe fn post_message<L: Lock>(
    endpoint: *mut FidEp,
    form: Form,
    message: *const FiMsgAtomic,
    [comparands, results]: [Elements; 2],
    flags: u64,
) -> isize {
    // SAFETY: null or the application's message.
    let Some(message) = (unsafe { message.as_ref() }) else {
        return -(FI_EINVAL as isize);
    };
    // SAFETY: the contract.
    let (ranges, count) = match unsafe { ranges_of(message) } {
        Ok(ranges) => ranges,
        Err(error) => return long_code(Err(error)),
    };
    let call = Call {
        form,
        to: message.addr,
        ranges: &ranges[..count],
        datatype: message.datatype,
        op: message.op,
        flags: Some(flags),
        inject: false,
        context: message.context,
    };
    let operands = Elements {
        pieces: message.msg_iov,
        count: message.iov_count,
    };
    // SAFETY: the contract.
    unsafe { post::<L>(endpoint, &call, [operands, comparands, results]) }
}

// structure: allow arguments because libfabric's callers pass them so
unsafe extern "C" fn write<L: Lock>(
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
    let (form, flags, inject) = (Form::Base, None, false);
    let call = Call {
        form,
        to,
        ranges,
        datatype,
        op,
        flags,
        inject,
        context,
    };
    // SAFETY: this table belongs to endpoints of this kind of lock only; the arguments are fi_atomic's.
    unsafe { post::<L>(endpoint, &call, [only(&piece(base, count)), NONE, NONE]) }
}

// structure: allow arguments because libfabric's callers pass them so
unsafe extern "C" fn writev<L: Lock>(
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
    // SAFETY: as for `write`, with fi_atomicv's arguments.
    let ranges = &range(address, key, unsafe { total(pieces, count) }, datatype);
    let (form, flags, inject) = (Form::Base, None, false);
    let call = Call {
        form,
        to,
        ranges,
        datatype,
        op,
        flags,
        inject,
        context,
    };
    // SAFETY: as for `write`.
    unsafe { post::<L>(endpoint, &call, [Elements { pieces, count }, NONE, NONE]) }
}

unsafe extern "C" fn writemsg<L: Lock>(
    endpoint: *mut FidEp,
    message: *const FiMsgAtomic,
    flags: u64,
) -> isize {
    // SAFETY: as for `write`, with fi_atomicmsg's arguments.
    unsafe { post_message::<L>(endpoint, Form::Base, message, [NONE, NONE], flags) }
}

// structure: allow arguments because libfabric's callers pass them so
unsafe extern "C" fn inject<L: Lock>(
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
    let (form, flags, inject, context) = (Form::Base, None, true, std::ptr::null_mut());
    let call = Call {
        form,
        to,
        ranges,
        datatype,
        op,
        flags,
        inject,
        context,
    };
    // SAFETY: as for `write`, with fi_inject_atomic's arguments.
    unsafe { post::<L>(endpoint, &call, [only(&piece(base, count)), NONE, NONE]) }
}

// structure: allow arguments because libfabric's callers pass them so
unsafe extern "C" fn fetch<L: Lock>(
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
    let (form, flags, inject) = (Form::Fetch, None, false);
    let call = Call {
        form,
        to,
        ranges,
        datatype,
        op,
        flags,
        inject,
        context,
    };
    let (operands, result) = (piece(base, count), piece(result, count));
    // SAFETY: as for `write`, with fi_fetch_atomic's arguments.
    unsafe { post::<L>(endpoint, &call, [only(&operands), NONE, only(&result)]) }
}

// structure: allow arguments because libfabric's callers pass them so
unsafe extern "C" fn fetchv<L: Lock>(
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
    // SAFETY: as for `write`, with fi_fetch_atomicv's arguments.
    let ranges = &range(
        address,
        key,
        unsafe { total(results, result_count) },
        datatype,
    );
    let (form, flags, inject) = (Form::Fetch, None, false);
    let call = Call {
        form,
        to,
        ranges,
        datatype,
        op,
        flags,
        inject,
        context,
    };
    let results = Elements {
        pieces: results,
        count: result_count,
    };
    // SAFETY: as for `write`.
    unsafe { post::<L>(endpoint, &call, [Elements { pieces, count }, NONE, results]) }
}

// structure: allow arguments because libfabric's callers pass them so
unsafe extern "C" fn fetchmsg<L: Lock>(
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
    // SAFETY: as for `write`, with fi_fetch_atomicmsg's arguments.
    unsafe { post_message::<L>(endpoint, Form::Fetch, message, [NONE, results], flags) }
}

// structure: allow arguments because libfabric's callers pass them so
unsafe extern "C" fn compare<L: Lock>(
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
    let (form, flags, inject) = (Form::Compare, None, false);
    let call = Call {
        form,
        to,
        ranges,
        datatype,
        op,
        flags,
        inject,
        context,
    };
    let pieces = [base, comparands, result.cast_const()].map(|base| piece(base, count));
    // SAFETY: as for `write`, with fi_compare_atomic's arguments.
    unsafe {
        post::<L>(
            endpoint,
            &call,
            [only(&pieces[0]), only(&pieces[1]), only(&pieces[2])],
        )
    }
}

// structure: allow arguments because libfabric's callers pass them so
unsafe extern "C" fn comparev<L: Lock>(
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
    // SAFETY: as for `write`, with fi_compare_atomicv's arguments.
    let ranges = &range(address, key, unsafe { total(pieces, count) }, datatype);
    let (form, flags, inject) = (Form::Compare, None, false);
    let call = Call {
        form,
        to,
        ranges,
        datatype,
        op,
        flags,
        inject,
        context,
    };
    let lists = [
        Elements { pieces, count },
        Elements {
            pieces: comparands,
            count: compare_count,
        },
        Elements {
            pieces: results,
            count: result_count,
        },
    ];
    // SAFETY: as for `write`.
    unsafe { post::<L>(endpoint, &call, lists) }
}

// structure: allow arguments because libfabric's callers pass them so
unsafe extern "C" fn comparemsg<L: Lock>(
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
    let lists = [
        Elements {
            pieces: comparands,
            count: compare_count,
        },
        Elements {
            pieces: results,
            count: result_count,
        },
    ];
    // SAFETY: as for `write`, with fi_compare_atomicmsg's arguments.
    unsafe { post_message::<L>(endpoint, Form::Compare, message, lists, flags) }
}

/// # Safety
/// `count` must be null or the application's to be written.
unsafe fn valid(form: Form, datatype: u32, op: u32, count: *mut usize) -> c_int {
    let Ok((element, _)) = form.find(datatype, op) else {
        return -FI_EOPNOTSUPP;
    };
    if !count.is_null() {
        // SAFETY: the contract.
        unsafe { *count = form.count(element) };
    }
    FI_SUCCESS
}

unsafe extern "C" fn write_valid(
    _: *mut FidEp,
    datatype: u32,
    op: u32,
    count: *mut usize,
) -> c_int {
    // SAFETY: the arguments are fi_atomicvalid's.
    unsafe { valid(Form::Base, datatype, op, count) }
}

unsafe extern "C" fn fetch_valid(
    _: *mut FidEp,
    datatype: u32,
    op: u32,
    count: *mut usize,
) -> c_int {
    // SAFETY: the arguments are fi_fetch_atomicvalid's.
    unsafe { valid(Form::Fetch, datatype, op, count) }
}

unsafe extern "C" fn compare_valid(
    _: *mut FidEp,
    datatype: u32,
    op: u32,
    count: *mut usize,
) -> c_int {
    // SAFETY: the arguments are fi_compare_atomicvalid's.
    unsafe { valid(Form::Compare, datatype, op, count) }
}

/// Which atomic operations are there?
///
/// # Safety
/// The arguments must be those of fi_query_atomic(3).
pub unsafe extern "C" fn query(
    _: *mut FidDomain,
    datatype: u32,
    op: u32,
    attr: *mut FiAtomicAttr,
    flags: u64,
) -> c_int {
    const BOTH: u64 = FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC;
    let form = match flags & BOTH {
        0 => Form::Base,
        FI_FETCH_ATOMIC => Form::Fetch,
        FI_COMPARE_ATOMIC => Form::Compare,
        _ => return -FI_EINVAL,
    };
    if flags & FI_TAGGED != 0 {
        return -FI_EOPNOTSUPP;
    }
    if flags & !BOTH != 0 {
        return -FI_EINVAL;
    }
    let Ok((element, _)) = form.find(datatype, op) else {
        return -FI_EOPNOTSUPP;
    };
    if !attr.is_null() {
        // SAFETY: not null, and the application's to be written.
        unsafe {
            (*attr).count = form.count(element);
            (*attr).size = element.size_bytes();
        }
    }
    FI_SUCCESS
}
