// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `struct fid_cq`, the completion queue, its entry formats and its table of functions.
//!
//! Used by the provider's cq module. Source: fi_eq.h, fi_cq(3).

use crate::FiAddr;
use crate::fid::Fid;
use libc::{c_char, c_int, c_void};

/// The provider picks the format.
pub const FI_CQ_FORMAT_UNSPEC: u32 = 0;
/// Entries are [`FiCqEntry`].
pub const FI_CQ_FORMAT_CONTEXT: u32 = 1;
/// Entries are [`FiCqMsgEntry`].
pub const FI_CQ_FORMAT_MSG: u32 = 2;
/// Entries are [`FiCqDataEntry`].
pub const FI_CQ_FORMAT_DATA: u32 = 3;
/// Entries are [`FiCqTaggedEntry`].
pub const FI_CQ_FORMAT_TAGGED: u32 = 4;

/// Blocking reads wait for one entry.
pub const FI_CQ_COND_NONE: u32 = 0;
/// Blocking reads wait for a number of entries.
pub const FI_CQ_COND_THRESHOLD: u32 = 1;

/// How to open a completion queue (`struct fi_cq_attr`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct FiCqAttr {
    /// Entries that fit; 0 leaves it to the provider.
    pub size: usize,
    /// `FI_AFFINITY`, `FI_PEER`.
    pub flags: u64,
    /// `FI_CQ_FORMAT_*`.
    pub format: u32,
    /// `FI_WAIT_*`.
    pub wait_obj: u32,
    /// Processor for interrupts.
    pub signaling_vector: c_int,
    /// `FI_CQ_COND_*`.
    pub wait_cond: u32,
    /// Wait set, or null.
    pub wait_set: *mut c_void,
    /// Accelerator context (after 2.6).
    pub xpu_ctx: *mut c_void,
}

layout! { FiCqAttr = "struct fi_cq_attr", 48: size 0, flags 8, format 16, wait_obj 20,
signaling_vector 24, wait_cond 28, wait_set 32, xpu_ctx 40 }

/// A completion: which operation (`struct fi_cq_entry`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct FiCqEntry {
    /// The operation's context.
    pub op_context: *mut c_void,
}

layout! { FiCqEntry = "struct fi_cq_entry", 8: op_context 0 }

/// A completion with its length (`struct fi_cq_msg_entry`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct FiCqMsgEntry {
    /// The operation's context.
    pub op_context: *mut c_void,
    /// What it was.
    pub flags: u64,
    /// Bytes received.
    pub len: usize,
}

layout! { FiCqMsgEntry = "struct fi_cq_msg_entry", 24: op_context 0, flags 8, len 16 }

/// A completion with remote data (`struct fi_cq_data_entry`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct FiCqDataEntry {
    /// The operation's context.
    pub op_context: *mut c_void,
    /// What it was.
    pub flags: u64,
    /// Bytes received.
    pub len: usize,
    /// Where in a multi-receive buffer.
    pub buf: *mut c_void,
    /// Remote completion data.
    pub data: u64,
}

layout! { FiCqDataEntry = "struct fi_cq_data_entry", 40: op_context 0, flags 8, len 16, buf 24,
data 32 }

/// A completion with a tag (`struct fi_cq_tagged_entry`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct FiCqTaggedEntry {
    /// The operation's context.
    pub op_context: *mut c_void,
    /// What it was.
    pub flags: u64,
    /// Bytes received.
    pub len: usize,
    /// Where in a multi-receive buffer.
    pub buf: *mut c_void,
    /// Remote completion data.
    pub data: u64,
    /// The message's tag.
    pub tag: u64,
}

layout! { FiCqTaggedEntry = "struct fi_cq_tagged_entry", 48: op_context 0, flags 8, len 16, buf 24,
data 32, tag 40 }

/// A failed operation (`struct fi_cq_err_entry`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct FiCqErrEntry {
    /// The operation's context.
    pub op_context: *mut c_void,
    /// What it was.
    pub flags: u64,
    /// Bytes received.
    pub len: usize,
    /// Where in a multi-receive buffer.
    pub buf: *mut c_void,
    /// Remote completion data.
    pub data: u64,
    /// The message's tag.
    pub tag: u64,
    /// Bytes that did not fit.
    pub olen: usize,
    /// `FI_E*`, positive.
    pub err: c_int,
    /// The provider's own number.
    pub prov_errno: c_int,
    /// More about the error.
    pub err_data: *mut c_void,
    /// Bytes of `err_data` (1.5).
    pub err_data_size: usize,
    /// The source of the message (1.20).
    pub src_addr: FiAddr,
}

layout! { FiCqErrEntry = "struct fi_cq_err_entry", 88: op_context 0, flags 8, len 16, buf 24,
data 32, tag 40, olen 48, err 56, prov_errno 60, err_data 64, err_data_size 72, src_addr 80 }

/// A completion queue as C sees it.
#[repr(C)]
#[derive(Debug)]
pub struct FidCq {
    /// Head of the object.
    pub fid: Fid,
    /// What it can do.
    pub ops: *const FiOpsCq,
}

layout! { FidCq = "struct fid_cq", 32: fid 0, ops 24 }

/// What a completion queue can do (`struct fi_ops_cq`), up to 2.6.
#[repr(C)]
#[derive(Debug)]
pub struct FiOpsCq {
    /// Bytes of this table that are filled.
    pub size: usize,
    /// Take completions.
    pub read: unsafe extern "C" fn(*mut FidCq, *mut c_void, usize) -> isize,
    /// Take completions and their sources.
    pub readfrom: unsafe extern "C" fn(*mut FidCq, *mut c_void, usize, *mut FiAddr) -> isize,
    /// Take an error.
    pub readerr: unsafe extern "C" fn(*mut FidCq, *mut FiCqErrEntry, u64) -> isize,
    /// Take completions, waiting for them.
    pub sread: unsafe extern "C" fn(*mut FidCq, *mut c_void, usize, *const c_void, c_int) -> isize,
    /// Take completions and their sources, waiting for them.
    pub sreadfrom: unsafe extern "C" fn(
        *mut FidCq,
        *mut c_void,
        usize,
        *mut FiAddr,
        *const c_void,
        c_int,
    ) -> isize,
    /// Wake a waiting reader.
    pub signal: unsafe extern "C" fn(*mut FidCq) -> c_int,
    /// Describe a provider's error number.
    pub strerror:
        unsafe extern "C" fn(*mut FidCq, c_int, *const c_void, *mut c_char, usize) -> *const c_char,
}

ops_layout! { FiOpsCq = "struct fi_ops_cq": read, readfrom, readerr, sread, sreadfrom, signal,
strerror }
