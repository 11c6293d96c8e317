// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Atomic operations on remote memory: the message structures and `struct fi_ops_atomic`.
//!
//! Used by the provider's atomic module. Source: fi_atomic.h, fi_atomic(3).

use crate::FiAddr;
use crate::endpoint::FidEp;
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

layout! { FiMsgAtomic = "struct fi_msg_atomic", 72: msg_iov 0, desc 8, iov_count 16, addr 24, rma_iov 32,
rma_iov_count 40, datatype 48, op 52, context 56, data 64 }

/// A call of the table whose arguments this version of the provider does not look at.
///
/// Every call of an operation takes the endpoint first; a function that looks at no argument may stand for all of them.
pub type FiAtomicCall = unsafe extern "C" fn(*mut FidEp) -> isize;

/// `writevalid(ep, datatype, op, count)` and its two sisters.
pub type FiAtomicValid = unsafe extern "C" fn(*mut FidEp, u32, u32, *mut usize) -> c_int;

/// Calls for atomic operations (`struct fi_ops_atomic`).
#[repr(C)]
#[derive(Debug)]
pub struct FiOpsAtomic {
    /// Bytes of this table that are filled.
    pub size: usize,
    /// Change remote memory.
    pub write: FiAtomicCall,
    /// From a vector.
    pub writev: FiAtomicCall,
    /// With everything given.
    pub writemsg: FiAtomicCall,
    /// Without a completion.
    pub inject: FiAtomicCall,
    /// Change remote memory and fetch what was there.
    pub readwrite: FiAtomicCall,
    /// From a vector.
    pub readwritev: FiAtomicCall,
    /// With everything given.
    pub readwritemsg: FiAtomicCall,
    /// Compare, then change.
    pub compwrite: FiAtomicCall,
    /// From a vector.
    pub compwritev: FiAtomicCall,
    /// With everything given.
    pub compwritemsg: FiAtomicCall,
    /// Is a change there?
    pub writevalid: FiAtomicValid,
    /// Is a fetch there?
    pub readwritevalid: FiAtomicValid,
    /// Is a compare there?
    pub compwritevalid: FiAtomicValid,
}

ops_layout! { FiOpsAtomic = "struct fi_ops_atomic": write, writev, writemsg, inject, readwrite, readwritev, readwritemsg,
compwrite, compwritev, compwritemsg, writevalid, readwritevalid, compwritevalid }
