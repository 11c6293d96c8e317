// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `struct fid_poll`, a set of queues and counters to be looked at together.
//!
//! Used by the provider's poll module. Deprecated since libfabric 2.0, but still in every table.
//! Source: fi_domain.h, fi_poll(3).

use crate::fid::Fid;
use libc::{c_int, c_void};

/// How to open a poll set (`struct fi_poll_attr`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct FiPollAttr {
    /// None known.
    pub flags: u64,
}

layout! { FiPollAttr = "struct fi_poll_attr", 8: flags 0 }

/// A poll set as C sees it.
#[repr(C)]
#[derive(Debug)]
pub struct FidPoll {
    /// Head of the object.
    pub fid: Fid,
    /// What it can do.
    pub ops: *const FiOpsPoll,
}

layout! { FidPoll = "struct fid_poll", 32: fid 0, ops 24 }

/// What a poll set can do (`struct fi_ops_poll`).
#[repr(C)]
#[derive(Debug)]
pub struct FiOpsPoll {
    /// Bytes of this table that are filled.
    pub size: usize,
    /// Store the contexts of members with events; answers how many.
    pub poll: unsafe extern "C" fn(*mut FidPoll, *mut *mut c_void, c_int) -> c_int,
    /// Add a queue or counter.
    pub poll_add: unsafe extern "C" fn(*mut FidPoll, *mut Fid, u64) -> c_int,
    /// Take one out.
    pub poll_del: unsafe extern "C" fn(*mut FidPoll, *mut Fid, u64) -> c_int,
}

ops_layout! { FiOpsPoll = "struct fi_ops_poll": poll, poll_add, poll_del }
