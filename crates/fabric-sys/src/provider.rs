// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `struct fi_provider`, which a provider hands to libfabric when it is loaded, and libfabric's
//! parameter functions.
//!
//! Used by the provider's prov_ini and parameters modules. Source: fi_prov.h, fi_provider(3).

use crate::fid::FidFabric;
use crate::info::{FiFabricAttr, FiInfo};
use libc::{c_char, c_int, c_void};

/// Scratch of the library inside [`FiProvider`].
#[repr(C)]
#[derive(Debug)]
pub struct FiContext {
    /// Not for the provider.
    pub internal: [*mut c_void; 4],
}

layout! { FiContext = "struct fi_context", 32: internal 0 }

/// What `fi_prov_ini` returns. It lives as long as the library is loaded, and the host writes to
/// it.
#[repr(C)]
#[derive(Debug)]
pub struct FiProvider {
    /// The provider's own version.
    pub version: u32,
    /// The interface version it serves; the host skips a provider that is older than what is asked
    /// for.
    pub fi_version: u32,
    /// Scratch of the host.
    pub context: FiContext,
    /// The name that users write in `FI_PROVIDER`.
    pub name: *const c_char,
    /// Answers `fi_getinfo`.
    pub getinfo: FiGetinfo,
    /// Opens a fabric.
    pub fabric: unsafe extern "C" fn(*mut FiFabricAttr, *mut *mut FidFabric, *mut c_void) -> c_int,
    /// Called before the provider is unloaded.
    pub cleanup: unsafe extern "C" fn(),
}

layout! { FiProvider = "struct fi_provider", 72: version 0, fi_version 4, context 8, name 40,
getinfo 48, fabric 56, cleanup 64 }

/// `getinfo(version, node, service, flags, hints, info)`.
pub type FiGetinfo = unsafe extern "C" fn(
    u32,
    *const c_char,
    *const c_char,
    u64,
    *const FiInfo,
    *mut *mut FiInfo,
) -> c_int;

/// A parameter's value is a string.
pub const FI_PARAM_STRING: u32 = 0;
/// A parameter's value is a `c_int`.
pub const FI_PARAM_INT: u32 = 1;
/// A parameter's value is a `c_int` 0 or 1.
pub const FI_PARAM_BOOL: u32 = 2;
/// A parameter's value is a `usize`.
pub const FI_PARAM_SIZE_T: u32 = 3;

/// `fi_version()`: the version of the running library.
pub type FiVersion = unsafe extern "C" fn() -> u32;

/// `fi_param_define(provider, name, type, format, ...)`.
pub type FiParamDefine =
    unsafe extern "C" fn(*const FiProvider, *const c_char, u32, *const c_char, ...) -> c_int;

/// `fi_param_get(provider, name, value)`.
pub type FiParamGet = unsafe extern "C" fn(*mut FiProvider, *const c_char, *mut c_void) -> c_int;
