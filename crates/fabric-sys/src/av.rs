// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `struct fid_av`, the address vector, and its table of functions.
//!
//! Used by the provider's av module. Source: fi_domain.h, fi_av(3).

use crate::FiAddr;
use crate::fid::Fid;
use libc::{c_char, c_int, c_void};

/// How to open an address vector (`struct fi_av_attr`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct FiAvAttr {
    /// `FI_AV_*`.
    pub r#type: u32,
    /// Address bits that name a receiving context.
    pub rx_ctx_bits: c_int,
    /// Addresses expected; a hint.
    pub count: usize,
    /// Endpoints expected on each node; a hint.
    pub ep_per_node: usize,
    /// Name under which processes share it, or null.
    pub name: *const c_char,
    /// Where a shared one is mapped.
    pub map_addr: *mut c_void,
    /// `FI_READ`, `FI_EVENT`, ...
    pub flags: u64,
}

layout! { FiAvAttr = "struct fi_av_attr", 48: r#type 0, rx_ctx_bits 4, count 8, ep_per_node 16,
name 24, map_addr 32, flags 40 }

/// An address vector as C sees it.
#[repr(C)]
#[derive(Debug)]
pub struct FidAv {
    /// Head of the object.
    pub fid: Fid,
    /// What it can do.
    pub ops: *const FiOpsAv,
}

layout! { FidAv = "struct fid_av", 32: fid 0, ops 24 }

/// What an address vector can do (`struct fi_ops_av`), up to 1.17; later calls are about keys and
/// groups.
#[repr(C)]
#[derive(Debug)]
pub struct FiOpsAv {
    /// Bytes of this table that are filled.
    pub size: usize,
    /// Insert addresses.
    pub insert: unsafe extern "C" fn(
        *mut FidAv,
        *const c_void,
        usize,
        *mut FiAddr,
        u64,
        *mut c_void,
    ) -> c_int,
    /// Insert one by node and service name.
    pub insertsvc: unsafe extern "C" fn(
        *mut FidAv,
        *const c_char,
        *const c_char,
        *mut FiAddr,
        u64,
        *mut c_void,
    ) -> c_int,
    /// Insert a range of nodes times a range of services.
    pub insertsym: FiAvInsertSym,
    /// Remove addresses.
    pub remove: unsafe extern "C" fn(*mut FidAv, *mut FiAddr, usize, u64) -> c_int,
    /// Get an address back.
    pub lookup: unsafe extern "C" fn(*mut FidAv, FiAddr, *mut c_void, *mut usize) -> c_int,
    /// Write an address as text.
    pub straddr:
        unsafe extern "C" fn(*mut FidAv, *const c_void, *mut c_char, *mut usize) -> *const c_char,
    /// Open a set of addresses for collectives.
    pub av_set:
        unsafe extern "C" fn(*mut FidAv, *mut c_void, *mut *mut c_void, *mut c_void) -> c_int,
}

ops_layout! { FiOpsAv = "struct fi_ops_av": insert, insertsvc, insertsym, remove, lookup, straddr,
av_set }

/// `insertsym(av, node, nodecnt, service, svccnt, fi_addr, flags, context)`.
pub type FiAvInsertSym = unsafe extern "C" fn(
    *mut FidAv,
    *const c_char,
    usize,
    *const c_char,
    usize,
    *mut FiAddr,
    u64,
    *mut c_void,
) -> c_int;
