// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reads and writes of remote memory: `struct fi_msg_rma` and `struct fi_ops_rma`.
//!
//! Used by the provider's rma module. Source: fi_rma.h, fi_rma(3).

use crate::FiAddr;
use crate::fid::FidEp;
use libc::{c_void, iovec};

/// A piece of remote memory (`struct fi_rma_iov`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct FiRmaIov {
    /// Address or offset in the region.
    pub addr: u64,
    /// Bytes.
    pub len: usize,
    /// The region's key.
    pub key: u64,
}

layout! { FiRmaIov = "struct fi_rma_iov", 24: addr 0, len 8, key 16 }

/// One transfer with all its parts (`struct fi_msg_rma`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct FiMsgRma {
    /// The pieces of the local buffer.
    pub msg_iov: *const iovec,
    /// Their registrations, or null.
    pub desc: *mut *mut c_void,
    /// How many pieces.
    pub iov_count: usize,
    /// The other endpoint.
    pub addr: FiAddr,
    /// The pieces of remote memory.
    pub rma_iov: *const FiRmaIov,
    /// How many pieces.
    pub rma_iov_count: usize,
    /// The operation's context.
    pub context: *mut c_void,
    /// Remote completion data.
    pub data: u64,
}

layout! { FiMsgRma = "struct fi_msg_rma", 64: msg_iov 0, desc 8, iov_count 16, addr 24, rma_iov 32,
rma_iov_count 40, context 48, data 56 }

/// `read(ep, buf, len, desc, src_addr, addr, key, context)`.
pub type FiRead = unsafe extern "C" fn(
    *mut FidEp,
    *mut c_void,
    usize,
    *mut c_void,
    FiAddr,
    u64,
    u64,
    *mut c_void,
) -> isize;
/// `write(ep, buf, len, desc, dest_addr, addr, key, context)`.
pub type FiWrite = unsafe extern "C" fn(
    *mut FidEp,
    *const c_void,
    usize,
    *mut c_void,
    FiAddr,
    u64,
    u64,
    *mut c_void,
) -> isize;
/// `readv` and `writev(ep, iov, desc, count, addr, remote address, key, context)`.
pub type FiTransferVector = unsafe extern "C" fn(
    *mut FidEp,
    *const iovec,
    *mut *mut c_void,
    usize,
    FiAddr,
    u64,
    u64,
    *mut c_void,
) -> isize;
/// `writedata(ep, buf, len, desc, data, dest_addr, addr, key, context)`.
pub type FiWritedata = unsafe extern "C" fn(
    *mut FidEp,
    *const c_void,
    usize,
    *mut c_void,
    u64,
    FiAddr,
    u64,
    u64,
    *mut c_void,
) -> isize;

/// Calls for remote memory (`struct fi_ops_rma`).
#[repr(C)]
#[derive(Debug)]
pub struct FiOpsRma {
    /// Bytes of this table that are filled.
    pub size: usize,
    /// Read.
    pub read: FiRead,
    /// Read into a vector.
    pub readv: FiTransferVector,
    /// Read, with everything given.
    pub readmsg: unsafe extern "C" fn(*mut FidEp, *const FiMsgRma, u64) -> isize,
    /// Write.
    pub write: FiWrite,
    /// Write from a vector.
    pub writev: FiTransferVector,
    /// Write, with everything given.
    pub writemsg: unsafe extern "C" fn(*mut FidEp, *const FiMsgRma, u64) -> isize,
    /// `inject(ep, buf, len, dest_addr, addr, key)`.
    pub inject: unsafe extern "C" fn(*mut FidEp, *const c_void, usize, FiAddr, u64, u64) -> isize,
    /// Write with remote completion data.
    pub writedata: FiWritedata,
    /// `injectdata(ep, buf, len, data, dest_addr, addr, key)`.
    pub injectdata:
        unsafe extern "C" fn(*mut FidEp, *const c_void, usize, u64, FiAddr, u64, u64) -> isize,
}

ops_layout! { FiOpsRma = "struct fi_ops_rma": read, readv, readmsg, write, writev, writemsg,
inject, writedata, injectdata }
