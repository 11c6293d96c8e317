// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `struct fid_wait`, a set of queues and counters that one call waits for.
//!
//! Used by the provider's wait_set module. Deprecated since libfabric 2.0, but still in its tables.
//! Source: fi_eq.h, fi_poll(3).

use crate::fid::Fid;
use libc::c_int;

/// How to open a wait set (`struct fi_wait_attr`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct FiWaitAttr {
    /// `FI_WAIT_*`.
    pub wait_obj: u32,
    /// None known.
    pub flags: u64,
}

layout! { FiWaitAttr = "struct fi_wait_attr", 16: wait_obj 0, flags 8 }

/// A wait set as C sees it.
#[repr(C)]
#[derive(Debug)]
pub struct FidWait {
    /// Head of the object.
    pub fid: Fid,
    /// What it can do.
    pub ops: *const FiOpsWait,
}

layout! { FidWait = "struct fid_wait", 32: fid 0, ops 24 }

/// What a wait set can do (`struct fi_ops_wait`).
#[repr(C)]
#[derive(Debug)]
pub struct FiOpsWait {
    /// Bytes of this table that are filled.
    pub size: usize,
    /// Wait until a member has an event, or for so many milliseconds.
    pub wait: unsafe extern "C" fn(*mut FidWait, c_int) -> c_int,
}

ops_layout! { FiOpsWait = "struct fi_ops_wait": wait }
