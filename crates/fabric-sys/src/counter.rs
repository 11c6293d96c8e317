// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `struct fid_cntr`, the counter of completions, and its table of functions.
//!
//! Used by the provider's counter module. Source: fi_eq.h, fi_cntr(3).

use crate::fid::Fid;
use libc::{c_int, c_void};

/// Count operations.
pub const FI_CNTR_EVENTS_COMP: u32 = 0;

/// How to open a counter (`struct fi_cntr_attr`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct FiCntrAttr {
    /// What is counted.
    pub events: u32,
    /// `FI_WAIT_*`.
    pub wait_obj: u32,
    /// Wait set, or null.
    pub wait_set: *mut c_void,
    /// None known.
    pub flags: u64,
    /// Accelerator context (after 2.6).
    pub xpu_ctx: *mut c_void,
}

layout! { FiCntrAttr = "struct fi_cntr_attr", 32: events 0, wait_obj 4, wait_set 8, flags 16,
xpu_ctx 24 }

/// A counter as C sees it.
#[repr(C)]
#[derive(Debug)]
pub struct FidCntr {
    /// Head of the object.
    pub fid: Fid,
    /// What it can do.
    pub ops: *const FiOpsCntr,
}

layout! { FidCntr = "struct fid_cntr", 32: fid 0, ops 24 }

/// What a counter can do (`struct fi_ops_cntr`), up to 2.6.
#[repr(C)]
#[derive(Debug)]
pub struct FiOpsCntr {
    /// Bytes of this table that are filled.
    pub size: usize,
    /// The count.
    pub read: unsafe extern "C" fn(*mut FidCntr) -> u64,
    /// The count of failures.
    pub readerr: unsafe extern "C" fn(*mut FidCntr) -> u64,
    /// Add to the count.
    pub add: unsafe extern "C" fn(*mut FidCntr, u64) -> c_int,
    /// Set the count.
    pub set: unsafe extern "C" fn(*mut FidCntr, u64) -> c_int,
    /// Wait for the count.
    pub wait: unsafe extern "C" fn(*mut FidCntr, u64, c_int) -> c_int,
    /// Add to the count of failures.
    pub adderr: unsafe extern "C" fn(*mut FidCntr, u64) -> c_int,
    /// Set the count of failures.
    pub seterr: unsafe extern "C" fn(*mut FidCntr, u64) -> c_int,
}

ops_layout! { FiOpsCntr = "struct fi_ops_cntr": read, readerr, add, set, wait, adderr, seterr }
