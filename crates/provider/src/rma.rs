// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reads and writes of remote memory: not offered, so every call answers `-FI_ENOSYS`.
//!
//! The table is here because C's inline functions call through it without asking. Source: fi_rma(3).

use std::ffi::c_void;

use libc::iovec;
use weft_fabric_sys::FiAddr;
use weft_fabric_sys::endpoint::FidEp;
use weft_fabric_sys::errno::FI_ENOSYS;
use weft_fabric_sys::rma::{FiMsgRma, FiOpsRma};

/// The answer of every call.
const ABSENT: isize = -(FI_ENOSYS as isize);

/// The table of calls.
pub static OPS: FiOpsRma = FiOpsRma {
    size: size_of::<FiOpsRma>(),
    read,
    readv: vector,
    readmsg: message,
    write,
    writev: vector,
    writemsg: message,
    inject,
    writedata,
    injectdata,
};

// structure: allow arguments because libfabric's callers pass them so
unsafe extern "C" fn read(
    _: *mut FidEp,
    _: *mut c_void,
    _: usize,
    _: *mut c_void,
    _: FiAddr,
    _: u64,
    _: u64,
    _: *mut c_void,
) -> isize {
    ABSENT
}

// structure: allow arguments because libfabric's callers pass them so
unsafe extern "C" fn write(
    _: *mut FidEp,
    _: *const c_void,
    _: usize,
    _: *mut c_void,
    _: FiAddr,
    _: u64,
    _: u64,
    _: *mut c_void,
) -> isize {
    ABSENT
}

// structure: allow arguments because libfabric's callers pass them so
unsafe extern "C" fn vector(
    _: *mut FidEp,
    _: *const iovec,
    _: *mut *mut c_void,
    _: usize,
    _: FiAddr,
    _: u64,
    _: u64,
    _: *mut c_void,
) -> isize {
    ABSENT
}

unsafe extern "C" fn message(_: *mut FidEp, _: *const FiMsgRma, _: u64) -> isize {
    ABSENT
}

// structure: allow arguments because libfabric's callers pass them so
unsafe extern "C" fn inject(
    _: *mut FidEp,
    _: *const c_void,
    _: usize,
    _: FiAddr,
    _: u64,
    _: u64,
) -> isize {
    ABSENT
}

// structure: allow arguments because libfabric's callers pass them so
unsafe extern "C" fn writedata(
    _: *mut FidEp,
    _: *const c_void,
    _: usize,
    _: *mut c_void,
    _: u64,
    _: FiAddr,
    _: u64,
    _: u64,
    _: *mut c_void,
) -> isize {
    ABSENT
}

// structure: allow arguments because libfabric's callers pass them so
unsafe extern "C" fn injectdata(
    _: *mut FidEp,
    _: *const c_void,
    _: usize,
    _: u64,
    _: FiAddr,
    _: u64,
    _: u64,
) -> isize {
    ABSENT
}
