// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory that libfabric will free: everything in a `struct fi_info` is released by the host with
//! C's `free`.
//!
//! Called by info only. Source: fi_getinfo(3), fi_freeinfo.

use std::ffi::{CStr, c_char, c_void};
use std::ptr;

use weft_fabric_sys::info::FiInfo;

/// Zeroed bytes behind every structure: a newer host copies its own, longer structure out of ours.
/// Chosen: eight times what libfabric appended from 1.17 to 2.6.
const ROOM_TO_GROW_BYTES: usize = 256;

/// The host's memory is exhausted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoMemory;

/// Moves a structure into memory of its own.
pub fn place<T: Copy>(value: T) -> Result<*mut T, NoMemory> {
    // SAFETY: calloc has no preconditions.
    let room = unsafe { libc::calloc(1, size_of::<T>() + ROOM_TO_GROW_BYTES) }.cast::<T>();
    if room.is_null() {
        return Err(NoMemory);
    }
    // SAFETY: calloc's memory is aligned for every C structure and long enough.
    unsafe { room.write(value) };
    Ok(room)
}

/// Copies bytes.
pub fn place_bytes(bytes: &[u8]) -> Result<*mut c_void, NoMemory> {
    // SAFETY: calloc has no preconditions.
    let room = unsafe { libc::calloc(1, bytes.len() + ROOM_TO_GROW_BYTES) };
    if room.is_null() {
        return Err(NoMemory);
    }
    // SAFETY: the room is new and long enough.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), room.cast(), bytes.len()) };
    Ok(room)
}

/// Copies a string.
pub fn place_name(name: &CStr) -> Result<*mut c_char, NoMemory> {
    // SAFETY: the argument is a C string.
    let copy = unsafe { libc::strdup(name.as_ptr()) };
    if copy.is_null() {
        Err(NoMemory)
    } else {
        Ok(copy)
    }
}

/// Frees one `fi_info` and all that hangs on it; used when it could not be completed.
///
/// # Safety
/// `info` must come from [`place`], and each pointer in it must be null or come from this module.
pub unsafe fn free_info(info: *mut FiInfo) {
    // SAFETY: the contract; free takes null.
    unsafe {
        let parts = &*info;
        if let Some(domain) = parts.domain_attr.as_ref() {
            libc::free(domain.name.cast());
        }
        if let Some(fabric) = parts.fabric_attr.as_ref() {
            libc::free(fabric.name.cast());
        }
        for part in [
            parts.src_addr,
            parts.dest_addr,
            parts.tx_attr.cast(),
            parts.rx_attr.cast(),
        ] {
            libc::free(part);
        }
        for part in [
            parts.ep_attr.cast(),
            parts.domain_attr.cast(),
            parts.fabric_attr.cast(),
            info.cast(),
        ] {
            libc::free(part);
        }
    }
}
