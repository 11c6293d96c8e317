// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Options of an endpoint, cancelling, and how much more can be posted.
//!
//! Called through the endpoint's table. Source: fi_endpoint(3).

use std::ffi::{c_int, c_void};

use weft_fabric_sys::endpoint::*;
use weft_fabric_sys::errno::*;
use weft_fabric_sys::fid::{Fid, FidEp};

use crate::endpoint::Endpoint;
use crate::lock::Lock;
use crate::object::opened;
use crate::routes::Guarded;
use crate::{errno, offer};

pub(crate) unsafe extern "C" fn cancel<L: Lock>(fid: *mut Fid, context: *mut c_void) -> isize {
    // SAFETY: this table belongs to endpoints of this kind of lock only.
    let endpoint = unsafe { opened::<Endpoint<L>>(fid) };
    errno::long_code(endpoint.with(|guarded, id| guarded.endpoint(id)?.cancel(context as usize)))
}

impl<L: Lock> Endpoint<L> {
    fn option(&self, name: c_int) -> Result<usize, c_int> {
        match name {
            FI_OPT_MIN_MULTI_RECV => self
                .with(|guarded, id| guarded.endpoints().min_multi_receive_bytes(id))
                .map_err(errno::number),
            FI_OPT_CM_DATA_SIZE => Ok(0),
            FI_OPT_TX_SIZE | FI_OPT_RX_SIZE => Ok(offer::DEPTH),
            FI_OPT_MAX_MSG_SIZE | FI_OPT_MAX_TAGGED_SIZE => Ok(offer::MESSAGE_SIZE_BYTES),
            FI_OPT_INJECT_MSG_SIZE | FI_OPT_INJECT_TAGGED_SIZE => {
                Ok(self.domain().inject_size_bytes())
            }
            _ => Err(FI_ENOPROTOOPT),
        }
    }

    fn set_option(&self, name: c_int, value: usize) -> c_int {
        match name {
            FI_OPT_MIN_MULTI_RECV => errno::code(
                self.with(|guarded, id| guarded.endpoints().set_min_multi_receive_bytes(id, value)),
            ),
            FI_OPT_MAX_MSG_SIZE | FI_OPT_MAX_TAGGED_SIZE if value <= offer::MESSAGE_SIZE_BYTES => {
                FI_SUCCESS
            }
            FI_OPT_INJECT_MSG_SIZE | FI_OPT_INJECT_TAGGED_SIZE
                if value <= self.domain().inject_size_bytes() =>
            {
                FI_SUCCESS
            }
            FI_OPT_MAX_MSG_SIZE
            | FI_OPT_MAX_TAGGED_SIZE
            | FI_OPT_INJECT_MSG_SIZE
            | FI_OPT_INJECT_TAGGED_SIZE => -FI_EINVAL,
            _ => -FI_ENOPROTOOPT,
        }
    }
}

pub(crate) unsafe extern "C" fn getopt<L: Lock>(
    fid: *mut Fid,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    length: *mut usize,
) -> c_int {
    if level != FI_OPT_ENDPOINT || length.is_null() {
        return if level == FI_OPT_ENDPOINT {
            -FI_EINVAL
        } else {
            -FI_ENOPROTOOPT
        };
    }
    // SAFETY: this table belongs to endpoints of this kind of lock only.
    let found = match unsafe { opened::<Endpoint<L>>(fid) }.option(name) {
        Ok(found) => found,
        Err(code) => return -code,
    };
    // SAFETY: the application's value is writable for the length it says (fi_endpoint(3)).
    unsafe {
        let fits = *length >= size_of::<usize>() && !value.is_null();
        *length = size_of::<usize>();
        if !fits {
            return -FI_ETOOSMALL;
        }
        value.cast::<usize>().write_unaligned(found);
    }
    FI_SUCCESS
}

pub(crate) unsafe extern "C" fn setopt<L: Lock>(
    fid: *mut Fid,
    level: c_int,
    name: c_int,
    value: *const c_void,
    length: usize,
) -> c_int {
    if level != FI_OPT_ENDPOINT {
        return -FI_ENOPROTOOPT;
    }
    match name {
        // No accelerator memory is touched and shared memory is Weft's own way: each of these may
        // be allowed, and the first two cost nothing to forbid.
        FI_OPT_FI_HMEM_P2P | FI_OPT_CUDA_API_PERMITTED => return FI_SUCCESS,
        // SAFETY: the application's value is readable for the length it says.
        FI_OPT_SHARED_MEMORY_PERMITTED => return unsafe { permit_shared_memory(value, length) },
        _ => {}
    }
    if value.is_null() || length != size_of::<usize>() {
        return -FI_EINVAL;
    }
    // SAFETY: the value is as long as a number of that kind.
    let value = unsafe { value.cast::<usize>().read_unaligned() };
    // SAFETY: this table belongs to endpoints of this kind of lock only.
    unsafe { opened::<Endpoint<L>>(fid) }.set_option(name, value)
}

/// # Safety
/// `value` must be null or readable for `length` bytes.
unsafe fn permit_shared_memory(value: *const c_void, length: usize) -> c_int {
    if value.is_null() || length != size_of::<bool>() {
        return -FI_EINVAL;
    }
    // SAFETY: one byte is there.
    if unsafe { *value.cast::<u8>() } != 0 {
        FI_SUCCESS
    } else {
        -FI_EOPNOTSUPP
    }
}

/// Nothing limits how much is posted but memory; an endpoint that is not enabled takes nothing.
pub(crate) unsafe extern "C" fn size_left<L: Lock>(endpoint: *mut FidEp) -> isize {
    // SAFETY: this table belongs to endpoints of this kind of lock only.
    let endpoint = unsafe { opened::<Endpoint<L>>(endpoint) };
    let enabled = endpoint.with(|guarded: &mut Guarded, id| guarded.endpoints().local_address(id));
    match enabled {
        Ok(_) => offer::DEPTH as isize,
        Err(error) => -(errno::number(error) as isize),
    }
}
