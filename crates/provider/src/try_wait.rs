// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `fi_trywait`: may the application sleep on the descriptors of these objects?
//!
//! Called through the fabric's table; asks each object's own module. Source: fi_poll(3).

use std::ffi::c_int;

use weft_fabric_sys::errno::{FI_EINVAL, FI_SUCCESS};
use weft_fabric_sys::fid::FidFabric;
use weft_fabric_sys::fid::{FI_CLASS_CNTR, FI_CLASS_CQ, FI_CLASS_EQ, FI_CLASS_WAIT, Fid};

use crate::object::class_of;
use crate::{eq, wait_set, waiter};

pub(crate) unsafe extern "C" fn try_wait(
    _: *mut FidFabric,
    fids: *mut *mut Fid,
    count: c_int,
) -> c_int {
    let Ok(count) = usize::try_from(count) else {
        return -FI_EINVAL;
    };
    for index in 0..count {
        // SAFETY: the application passes `count` open objects (fi_poll(3)).
        let fid = unsafe { *fids.add(index) };
        // SAFETY: an open object of the application.
        let answer = match unsafe { class_of(fid) } {
            // SAFETY: the class says what the object is.
            Some(FI_CLASS_CQ | FI_CLASS_CNTR) => unsafe { waiter::try_wait(fid) },
            // SAFETY: the class says what the object is.
            Some(FI_CLASS_EQ) => unsafe { eq::try_wait(fid) },
            // SAFETY: the class says what the object is.
            Some(FI_CLASS_WAIT) => unsafe { wait_set::try_wait(fid) },
            _ => -FI_EINVAL,
        };
        if answer != FI_SUCCESS {
            return answer;
        }
    }
    FI_SUCCESS
}
