// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Atomic operations on remote memory: the message structures and `struct fi_ops_atomic`.
//!
//! Used by the provider's atomic module. Source: fi_atomic.h, fi_atomic(3).

use crate::FiAddr;
use crate::fid::FidEp;
use libc::{c_int, c_void};

/// A piece of local memory, counted in elements (`struct fi_ioc`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct FiIoc {
    /// First element.
    pub addr: *mut c_void,
    /// How many.
    pub count: usize,
}

layout! { FiIoc = "struct fi_ioc", 16: addr 0, count 8 }

/// A piece of remote memory, counted in elements (`struct fi_rma_ioc`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct FiRmaIoc {
    /// Address or offset in the region.
    pub addr: u64,
    /// How many elements.
    pub count: usize,
    /// The region's key.
    pub key: u64,
}

layout! { FiRmaIoc = "struct fi_rma_ioc", 24: addr 0, count 8, key 16 }

/// What an atomic operation can do (`struct fi_atomic_attr`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct FiAtomicAttr {
    /// Elements of one operation.
    pub count: usize,
    /// Bytes of one element.
    pub size: usize,
}

layout! { FiAtomicAttr = "struct fi_atomic_attr", 16: count 0, size 8 }

/// One atomic operation with all its parts (`struct fi_msg_atomic`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct FiMsgAtomic {
    /// The pieces of the local operand.
    pub msg_iov: *const FiIoc,
    /// Their registrations, or null.
    pub desc: *mut *mut c_void,
    /// How many pieces.
    pub iov_count: usize,
    /// The other endpoint.
    pub addr: FiAddr,
    /// The pieces of remote memory.
    pub rma_iov: *const FiRmaIoc,
    /// How many pieces.
    pub rma_iov_count: usize,
    /// Type of the elements.
    pub datatype: u32,
    /// What is done.
    pub op: u32,
    /// The operation's context.
    pub context: *mut c_void,
    /// Remote completion data.
    pub data: u64,
}

layout! { FiMsgAtomic = "struct fi_msg_atomic", 72: msg_iov 0, desc 8, iov_count 16, addr 24,
rma_iov 32, rma_iov_count 40, datatype 48, op 52, context 56, data 64 }

/// `write(ep, buf, count, desc, dest_addr, addr, key, datatype, op, context)`.
pub type FiAtomicWrite = unsafe extern "C" fn(
    *mut FidEp,
    *const c_void,
    usize,
    *mut c_void,
    FiAddr,
    u64,
    u64,
    u32,
    u32,
    *mut c_void,
) -> isize;

/// `writev(ep, iov, desc, count, dest_addr, addr, key, datatype, op, context)`.
pub type FiAtomicWritev = unsafe extern "C" fn(
    *mut FidEp,
    *const FiIoc,
    *mut *mut c_void,
    usize,
    FiAddr,
    u64,
    u64,
    u32,
    u32,
    *mut c_void,
) -> isize;

/// `inject(ep, buf, count, dest_addr, addr, key, datatype, op)`.
pub type FiAtomicInject =
    unsafe extern "C" fn(*mut FidEp, *const c_void, usize, FiAddr, u64, u64, u32, u32) -> isize;

/// `readwrite(ep, buf, count, desc, result, result_desc, dest_addr, addr, key, datatype, op,
/// context)`.
pub type FiAtomicFetch = unsafe extern "C" fn(
    *mut FidEp,
    *const c_void,
    usize,
    *mut c_void,
    *mut c_void,
    *mut c_void,
    FiAddr,
    u64,
    u64,
    u32,
    u32,
    *mut c_void,
) -> isize;

/// `readwritev(ep, iov, desc, count, resultv, result_desc, result_count, dest_addr, addr, key,
/// datatype, op, context)`.
pub type FiAtomicFetchv = unsafe extern "C" fn(
    *mut FidEp,
    *const FiIoc,
    *mut *mut c_void,
    usize,
    *mut FiIoc,
    *mut *mut c_void,
    usize,
    FiAddr,
    u64,
    u64,
    u32,
    u32,
    *mut c_void,
) -> isize;

/// `readwritemsg(ep, msg, resultv, result_desc, result_count, flags)`.
pub type FiAtomicFetchMessage = unsafe extern "C" fn(
    *mut FidEp,
    *const FiMsgAtomic,
    *mut FiIoc,
    *mut *mut c_void,
    usize,
    u64,
) -> isize;

/// `compwrite(ep, buf, count, desc, compare, compare_desc, result, result_desc, dest_addr, addr,
/// key, datatype, op, context)`.
pub type FiAtomicCompare = unsafe extern "C" fn(
    *mut FidEp,
    *const c_void,
    usize,
    *mut c_void,
    *const c_void,
    *mut c_void,
    *mut c_void,
    *mut c_void,
    FiAddr,
    u64,
    u64,
    u32,
    u32,
    *mut c_void,
) -> isize;

/// `compwritev(ep, iov, desc, count, comparev, compare_desc, compare_count, resultv, result_desc,
/// result_count, dest_addr, addr, key, datatype, op, context)`.
pub type FiAtomicComparev = unsafe extern "C" fn(
    *mut FidEp,
    *const FiIoc,
    *mut *mut c_void,
    usize,
    *const FiIoc,
    *mut *mut c_void,
    usize,
    *mut FiIoc,
    *mut *mut c_void,
    usize,
    FiAddr,
    u64,
    u64,
    u32,
    u32,
    *mut c_void,
) -> isize;

/// `compwritemsg(ep, msg, comparev, compare_desc, compare_count, resultv, result_desc,
/// result_count, flags)`.
pub type FiAtomicCompareMessage = unsafe extern "C" fn(
    *mut FidEp,
    *const FiMsgAtomic,
    *const FiIoc,
    *mut *mut c_void,
    usize,
    *mut FiIoc,
    *mut *mut c_void,
    usize,
    u64,
) -> isize;

/// `writevalid(ep, datatype, op, count)` and its two sisters.
pub type FiAtomicValid = unsafe extern "C" fn(*mut FidEp, u32, u32, *mut usize) -> c_int;

/// Calls for atomic operations (`struct fi_ops_atomic`).
#[repr(C)]
#[derive(Debug)]
pub struct FiOpsAtomic {
    /// Bytes of this table that are filled.
    pub size: usize,
    /// Change remote memory.
    pub write: FiAtomicWrite,
    /// From a vector.
    pub writev: FiAtomicWritev,
    /// With everything given.
    pub writemsg: unsafe extern "C" fn(*mut FidEp, *const FiMsgAtomic, u64) -> isize,
    /// Without a completion.
    pub inject: FiAtomicInject,
    /// Change remote memory and fetch what was there.
    pub readwrite: FiAtomicFetch,
    /// From a vector.
    pub readwritev: FiAtomicFetchv,
    /// With everything given.
    pub readwritemsg: FiAtomicFetchMessage,
    /// Compare, then change.
    pub compwrite: FiAtomicCompare,
    /// From a vector.
    pub compwritev: FiAtomicComparev,
    /// With everything given.
    pub compwritemsg: FiAtomicCompareMessage,
    /// Is a change there?
    pub writevalid: FiAtomicValid,
    /// Is a fetch there?
    pub readwritevalid: FiAtomicValid,
    /// Is a compare there?
    pub compwritevalid: FiAtomicValid,
}

ops_layout! { FiOpsAtomic = "struct fi_ops_atomic": write, writev, writemsg, inject, readwrite,
readwritev, readwritemsg, compwrite, compwritev, compwritemsg, writevalid, readwritevalid,
compwritevalid }
