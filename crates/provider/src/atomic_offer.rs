// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which atomic operations there are: the C calls that ask, and what the others check against.
//!
//! Called through the endpoint's and the domain's tables, and by atomic_call. Source: fi_atomic(3).

use std::ffi::c_int;

use weft_endpoint::{ATOMIC_LIMIT_BYTES, Element, Error, Operator};
use weft_fabric_sys::atomic::FiAtomicAttr;
use weft_fabric_sys::errno::{FI_EINVAL, FI_EOPNOTSUPP, FI_SUCCESS};
use weft_fabric_sys::fid::FidDomain;
use weft_fabric_sys::fid::FidEp;
use weft_fabric_sys::flags::{FI_COMPARE_ATOMIC, FI_FETCH_ATOMIC, FI_TAGGED};

/// The three kinds of calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Changes.
    Base,
    /// Changes, and fetches what was there.
    Fetch,
    /// Compares, changes, and fetches what was there.
    Compare,
}

impl Form {
    /// The operation that these numbers name, if calls of this form carry it out.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if there is none.
    pub fn find(self, datatype: u32, op: u32) -> Result<(Element, Operator), Error> {
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

/// Is there such a call of this form, and for how many elements?
///
/// # Safety
/// `count` must be null or the application's to be written.
pub unsafe extern "C" fn write_valid(
    _: *mut FidEp,
    datatype: u32,
    op: u32,
    count: *mut usize,
) -> c_int {
    // SAFETY: the arguments are fi_atomicvalid's.
    unsafe { valid(Form::Base, datatype, op, count) }
}

/// Is there such a call of this form, and for how many elements?
///
/// # Safety
/// `count` must be null or the application's to be written.
pub unsafe extern "C" fn fetch_valid(
    _: *mut FidEp,
    datatype: u32,
    op: u32,
    count: *mut usize,
) -> c_int {
    // SAFETY: the arguments are fi_fetch_atomicvalid's.
    unsafe { valid(Form::Fetch, datatype, op, count) }
}

/// Is there such a call of this form, and for how many elements?
///
/// # Safety
/// `count` must be null or the application's to be written.
pub unsafe extern "C" fn compare_valid(
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
