// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `struct fid_eq`, the queue of control events, and the kinds of wait object.
//!
//! Used by the provider's eq module; the wait kinds also by its cq and counter modules. Source:
//! fi_eq.h, fi_eq(3).

use crate::fid::Fid;
use libc::{c_char, c_int, c_void};

/// Nothing to wait on.
pub const FI_WAIT_NONE: u32 = 0;
/// Blocking calls only; how is the provider's choice.
pub const FI_WAIT_UNSPEC: u32 = 1;
/// A wait set.
pub const FI_WAIT_SET: u32 = 2;
/// A file descriptor.
pub const FI_WAIT_FD: u32 = 3;
/// A mutex and a condition.
pub const FI_WAIT_MUTEX_COND: u32 = 4;
/// Blocking calls that yield the processor.
pub const FI_WAIT_YIELD: u32 = 5;
/// A set of file descriptors for `poll`.
pub const FI_WAIT_POLLFD: u32 = 6;

/// How to open an event queue (`struct fi_eq_attr`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct FiEqAttr {
    /// Events that fit.
    pub size: usize,
    /// `FI_WRITE`, `FI_AFFINITY`.
    pub flags: u64,
    /// `FI_WAIT_*`.
    pub wait_obj: u32,
    /// Processor for interrupts.
    pub signaling_vector: c_int,
    /// Wait set, or null.
    pub wait_set: *mut c_void,
}

layout! { FiEqAttr = "struct fi_eq_attr", 32: size 0, flags 8, wait_obj 16, signaling_vector 20,
wait_set 24 }

/// A failed control operation (`struct fi_eq_err_entry`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct FiEqErrEntry {
    /// The object.
    pub fid: *mut Fid,
    /// Its context.
    pub context: *mut c_void,
    /// Depends on the event.
    pub data: u64,
    /// `FI_E*`, positive.
    pub err: c_int,
    /// The provider's own number.
    pub prov_errno: c_int,
    /// More about the error.
    pub err_data: *mut c_void,
    /// Bytes of `err_data`.
    pub err_data_size: usize,
}

layout! { FiEqErrEntry = "struct fi_eq_err_entry", 48: fid 0, context 8, data 16, err 24,
prov_errno 28, err_data 32, err_data_size 40 }

/// An event queue as C sees it.
#[repr(C)]
#[derive(Debug)]
pub struct FidEq {
    /// Head of the object.
    pub fid: Fid,
    /// What it can do.
    pub ops: *const FiOpsEq,
}

layout! { FidEq = "struct fid_eq", 32: fid 0, ops 24 }

/// What an event queue can do (`struct fi_ops_eq`).
#[repr(C)]
#[derive(Debug)]
pub struct FiOpsEq {
    /// Bytes of this table that are filled.
    pub size: usize,
    /// Take an event.
    pub read: unsafe extern "C" fn(*mut FidEq, *mut u32, *mut c_void, usize, u64) -> isize,
    /// Take an error.
    pub readerr: unsafe extern "C" fn(*mut FidEq, *mut FiEqErrEntry, u64) -> isize,
    /// Put an event.
    pub write: unsafe extern "C" fn(*mut FidEq, u32, *const c_void, usize, u64) -> isize,
    /// Take an event, waiting for one.
    pub sread: unsafe extern "C" fn(*mut FidEq, *mut u32, *mut c_void, usize, c_int, u64) -> isize,
    /// Describe a provider's error number.
    pub strerror:
        unsafe extern "C" fn(*mut FidEq, c_int, *const c_void, *mut c_char, usize) -> *const c_char,
}

ops_layout! { FiOpsEq = "struct fi_ops_eq": read, readerr, write, sread, strerror }
