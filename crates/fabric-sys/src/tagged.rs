// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tagged messages: `struct fi_msg_tagged` and `struct fi_ops_tagged`.
//!
//! Used by the provider's tagged module. Source: fi_tagged.h, fi_tagged(3).

use crate::FiAddr;
use crate::fid::FidEp;
use libc::{c_void, iovec};

/// One tagged message with all its parts (`struct fi_msg_tagged`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct FiMsgTagged {
    /// The pieces of the buffer.
    pub msg_iov: *const iovec,
    /// Their registrations, or null.
    pub desc: *mut *mut c_void,
    /// How many pieces.
    pub iov_count: usize,
    /// Target or source.
    pub addr: FiAddr,
    /// The tag.
    pub tag: u64,
    /// Tag bits that any value matches.
    pub ignore: u64,
    /// The operation's context.
    pub context: *mut c_void,
    /// Remote completion data.
    pub data: u64,
}

layout! { FiMsgTagged = "struct fi_msg_tagged", 64: msg_iov 0, desc 8, iov_count 16, addr 24,
tag 32, ignore 40, context 48, data 56 }

/// Calls for tagged messages (`struct fi_ops_tagged`).
#[repr(C)]
#[derive(Debug)]
pub struct FiOpsTagged {
    /// Bytes of this table that are filled.
    pub size: usize,
    /// `recv(ep, buf, len, desc, src_addr, tag, ignore, context)`.
    pub recv: unsafe extern "C" fn(
        *mut FidEp,
        *mut c_void,
        usize,
        *mut c_void,
        FiAddr,
        u64,
        u64,
        *mut c_void,
    ) -> isize,
    /// `recvv(ep, iov, desc, count, src_addr, tag, ignore, context)`.
    pub recvv: unsafe extern "C" fn(
        *mut FidEp,
        *const iovec,
        *mut *mut c_void,
        usize,
        FiAddr,
        u64,
        u64,
        *mut c_void,
    ) -> isize,
    /// `recvmsg(ep, msg, flags)`.
    pub recvmsg: unsafe extern "C" fn(*mut FidEp, *const FiMsgTagged, u64) -> isize,
    /// `send(ep, buf, len, desc, dest_addr, tag, context)`.
    pub send: unsafe extern "C" fn(
        *mut FidEp,
        *const c_void,
        usize,
        *mut c_void,
        FiAddr,
        u64,
        *mut c_void,
    ) -> isize,
    /// `sendv(ep, iov, desc, count, dest_addr, tag, context)`.
    pub sendv: unsafe extern "C" fn(
        *mut FidEp,
        *const iovec,
        *mut *mut c_void,
        usize,
        FiAddr,
        u64,
        *mut c_void,
    ) -> isize,
    /// `sendmsg(ep, msg, flags)`.
    pub sendmsg: unsafe extern "C" fn(*mut FidEp, *const FiMsgTagged, u64) -> isize,
    /// `inject(ep, buf, len, dest_addr, tag)`.
    pub inject: unsafe extern "C" fn(*mut FidEp, *const c_void, usize, FiAddr, u64) -> isize,
    /// `senddata(ep, buf, len, desc, data, dest_addr, tag, context)`.
    pub senddata: unsafe extern "C" fn(
        *mut FidEp,
        *const c_void,
        usize,
        *mut c_void,
        u64,
        FiAddr,
        u64,
        *mut c_void,
    ) -> isize,
    /// `injectdata(ep, buf, len, data, dest_addr, tag)`.
    pub injectdata:
        unsafe extern "C" fn(*mut FidEp, *const c_void, usize, u64, FiAddr, u64) -> isize,
}

ops_layout! { FiOpsTagged = "struct fi_ops_tagged": recv, recvv, recvmsg, send, sendv, sendmsg,
inject, senddata, injectdata }
