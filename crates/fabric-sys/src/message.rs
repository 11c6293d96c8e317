// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Untagged messages: `struct fi_msg` and `struct fi_ops_msg`.
//!
//! Used by the provider's message module. Source: fi_endpoint.h, fi_msg(3).

use crate::FiAddr;
use crate::fid::FidEp;
use libc::{c_void, iovec};

/// One message with all its parts (`struct fi_msg`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct FiMsg {
    /// The pieces of the buffer.
    pub msg_iov: *const iovec,
    /// Their registrations, or null.
    pub desc: *mut *mut c_void,
    /// How many pieces.
    pub iov_count: usize,
    /// Target or source.
    pub addr: FiAddr,
    /// The operation's context.
    pub context: *mut c_void,
    /// Remote completion data.
    pub data: u64,
}

layout! { FiMsg = "struct fi_msg", 48: msg_iov 0, desc 8, iov_count 16, addr 24, context 32,
data 40 }

/// Calls for untagged messages (`struct fi_ops_msg`).
#[repr(C)]
#[derive(Debug)]
pub struct FiOpsMsg {
    /// Bytes of this table that are filled.
    pub size: usize,
    /// `recv(ep, buf, len, desc, src_addr, context)`.
    pub recv: unsafe extern "C" fn(
        *mut FidEp,
        *mut c_void,
        usize,
        *mut c_void,
        FiAddr,
        *mut c_void,
    ) -> isize,
    /// `recvv(ep, iov, desc, count, src_addr, context)`.
    pub recvv: unsafe extern "C" fn(
        *mut FidEp,
        *const iovec,
        *mut *mut c_void,
        usize,
        FiAddr,
        *mut c_void,
    ) -> isize,
    /// `recvmsg(ep, msg, flags)`.
    pub recvmsg: unsafe extern "C" fn(*mut FidEp, *const FiMsg, u64) -> isize,
    /// `send(ep, buf, len, desc, dest_addr, context)`.
    pub send: unsafe extern "C" fn(
        *mut FidEp,
        *const c_void,
        usize,
        *mut c_void,
        FiAddr,
        *mut c_void,
    ) -> isize,
    /// `sendv(ep, iov, desc, count, dest_addr, context)`.
    pub sendv: unsafe extern "C" fn(
        *mut FidEp,
        *const iovec,
        *mut *mut c_void,
        usize,
        FiAddr,
        *mut c_void,
    ) -> isize,
    /// `sendmsg(ep, msg, flags)`.
    pub sendmsg: unsafe extern "C" fn(*mut FidEp, *const FiMsg, u64) -> isize,
    /// `inject(ep, buf, len, dest_addr)`.
    pub inject: unsafe extern "C" fn(*mut FidEp, *const c_void, usize, FiAddr) -> isize,
    /// `senddata(ep, buf, len, desc, data, dest_addr, context)`.
    pub senddata: unsafe extern "C" fn(
        *mut FidEp,
        *const c_void,
        usize,
        *mut c_void,
        u64,
        FiAddr,
        *mut c_void,
    ) -> isize,
    /// `injectdata(ep, buf, len, data, dest_addr)`.
    pub injectdata: unsafe extern "C" fn(*mut FidEp, *const c_void, usize, u64, FiAddr) -> isize,
}

ops_layout! { FiOpsMsg = "struct fi_ops_msg": recv, recvv, recvmsg, send, sendv, sendmsg, inject,
senddata, injectdata }
