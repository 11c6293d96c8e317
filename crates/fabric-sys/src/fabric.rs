// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `struct fid_fabric` and its table of functions.
//!
//! Used by the provider's fabric module. Source: fabric.h, fi_fabric(3).

use crate::eq::{FiEqAttr, FidEq};
use crate::fid::{Fid, FidDomain, FidFabric};
use crate::info::FiInfo;
use crate::wait::{FiWaitAttr, FidWait};
use libc::{c_int, c_void};

/// What a [`FidFabric`] points to (`struct fid_fabric`).
#[repr(C)]
#[derive(Debug)]
pub struct FabricObject {
    /// Head of the object.
    pub fid: Fid,
    /// What a fabric can do.
    pub ops: *const FiOpsFabric,
    /// The application's interface version; the library fills it after opening.
    pub api_version: u32,
}

layout! { FabricObject = "struct fid_fabric", 40: fid 0, ops 24, api_version 32 }

/// What a fabric can do (`struct fi_ops_fabric`).
#[repr(C)]
#[derive(Debug)]
pub struct FiOpsFabric {
    /// Bytes of this table that are filled.
    pub size: usize,
    /// Open a domain.
    pub domain: unsafe extern "C" fn(
        *mut FidFabric,
        *mut FiInfo,
        *mut *mut FidDomain,
        *mut c_void,
    ) -> c_int,
    /// Open a listener.
    pub passive_ep:
        unsafe extern "C" fn(*mut FidFabric, *mut FiInfo, *mut *mut c_void, *mut c_void) -> c_int,
    /// Open an event queue.
    pub eq_open:
        unsafe extern "C" fn(*mut FidFabric, *mut FiEqAttr, *mut *mut FidEq, *mut c_void) -> c_int,
    /// Open a wait set.
    pub wait_open:
        unsafe extern "C" fn(*mut FidFabric, *mut FiWaitAttr, *mut *mut FidWait) -> c_int,
    /// May the application sleep on these objects?
    pub trywait: unsafe extern "C" fn(*mut FidFabric, *mut *mut Fid, c_int) -> c_int,
    /// Open a domain, with flags.
    pub domain2: unsafe extern "C" fn(
        *mut FidFabric,
        *mut FiInfo,
        *mut *mut FidDomain,
        u64,
        *mut c_void,
    ) -> c_int,
}

ops_layout! { FiOpsFabric = "struct fi_ops_fabric": domain, passive_ep, eq_open, wait_open,
trywait, domain2 }
