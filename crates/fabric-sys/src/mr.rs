// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `struct fid_mr`, a registered region, and the table of functions that register one.
//!
//! Used by the provider's mr module. Source: fi_domain.h, fi_mr(3).

use crate::fid::Fid;
use libc::{c_int, c_void, iovec};

/// Ordinary memory.
pub const FI_HMEM_SYSTEM: u32 = 0;

/// What to register (`struct fi_mr_attr`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct FiMrAttr {
    /// The pieces of memory.
    pub mr_iov: *const iovec,
    /// How many pieces.
    pub iov_count: usize,
    /// What may be done to them.
    pub access: u64,
    /// Address of the first byte as others see it.
    pub offset: u64,
    /// The key asked for.
    pub requested_key: u64,
    /// The application's pointer.
    pub context: *mut c_void,
    /// Bytes of `auth_key`.
    pub auth_key_size: usize,
    /// Key that endpoints of one job share.
    pub auth_key: *mut u8,
    /// Kind of memory, `FI_HMEM_*` (1.9).
    pub iface: u32,
    /// Which accelerator (1.9).
    pub device: u64,
    /// More about accelerator memory (1.18).
    pub hmem_data: *mut c_void,
    /// Page size wanted (1.20).
    pub page_size: usize,
    /// Region that this one is a part of (1.20).
    pub base_mr: *const FidMr,
    /// Parts expected (1.20).
    pub sub_mr_cnt: usize,
}

layout! { FiMrAttr = "struct fi_mr_attr", 112: mr_iov 0, iov_count 8, access 16, offset 24,
requested_key 32, context 40, auth_key_size 48, auth_key 56, iface 64, device 72, hmem_data 80,
page_size 88, base_mr 96, sub_mr_cnt 104 }

/// A registered region as C sees it.
#[repr(C)]
#[derive(Debug)]
pub struct FidMr {
    /// Head of the object.
    pub fid: Fid,
    /// What local operations pass along.
    pub mem_desc: *mut c_void,
    /// What remote operations name the region by.
    pub key: u64,
}

layout! { FidMr = "struct fid_mr", 40: fid 0, mem_desc 24, key 32 }

/// How memory is registered (`struct fi_ops_mr`).
#[repr(C)]
#[derive(Debug)]
pub struct FiOpsMr {
    /// Bytes of this table that are filled.
    pub size: usize,
    /// `reg(domain, buf, len, access, offset, requested_key, flags, mr, context)`.
    pub reg: FiMrReg,
    /// `regv(domain, iov, count, access, offset, requested_key, flags, mr, context)`.
    pub regv: FiMrRegv,
    /// `regattr(domain, attr, flags, mr)`.
    pub regattr: unsafe extern "C" fn(*mut Fid, *const FiMrAttr, u64, *mut *mut FidMr) -> c_int,
}

ops_layout! { FiOpsMr = "struct fi_ops_mr": reg, regv, regattr }

/// Registers one piece of memory.
pub type FiMrReg = unsafe extern "C" fn(
    *mut Fid,
    *const c_void,
    usize,
    u64,
    u64,
    u64,
    u64,
    *mut *mut FidMr,
    *mut c_void,
) -> c_int;

/// Registers several pieces of memory as one region.
pub type FiMrRegv = unsafe extern "C" fn(
    *mut Fid,
    *const iovec,
    usize,
    u64,
    u64,
    u64,
    u64,
    *mut *mut FidMr,
    *mut c_void,
) -> c_int;
