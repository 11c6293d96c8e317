// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Atomic operations on remote memory: not offered, so every call answers `-FI_ENOSYS` or `-FI_EOPNOTSUPP`.
//!
//! The table is here because C's inline functions call through it without asking. Source: fi_atomic(3).

use std::ffi::c_int;

use weft_fabric_sys::atomic::FiOpsAtomic;
use weft_fabric_sys::endpoint::FidEp;
use weft_fabric_sys::errno::{FI_ENOSYS, FI_EOPNOTSUPP};

/// The table of calls.
pub static OPS: FiOpsAtomic = FiOpsAtomic {
    size: size_of::<FiOpsAtomic>(),
    write: absent,
    writev: absent,
    writemsg: absent,
    inject: absent,
    readwrite: absent,
    readwritev: absent,
    readwritemsg: absent,
    compwrite: absent,
    compwritev: absent,
    compwritemsg: absent,
    writevalid: not_valid,
    readwritevalid: not_valid,
    compwritevalid: not_valid,
};

unsafe extern "C" fn absent(_: *mut FidEp) -> isize {
    -(FI_ENOSYS as isize)
}

unsafe extern "C" fn not_valid(_: *mut FidEp, _: u32, _: u32, _: *mut usize) -> c_int {
    -FI_EOPNOTSUPP
}
