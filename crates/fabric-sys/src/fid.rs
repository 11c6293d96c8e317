// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `struct fid`, which every object begins with, its table of functions, and the control commands.
//!
//! Used by all of the provider's object modules. Source: fabric.h, fi_control(3).

use libc::{c_char, c_int, c_void};

/// A fabric.
pub const FI_CLASS_FABRIC: usize = 1;
/// A domain.
pub const FI_CLASS_DOMAIN: usize = 2;
/// An endpoint.
pub const FI_CLASS_EP: usize = 3;
/// A shared receive context.
pub const FI_CLASS_SRX_CTX: usize = 6;
/// An address vector.
pub const FI_CLASS_AV: usize = 11;
/// A registered region.
pub const FI_CLASS_MR: usize = 12;
/// An event queue.
pub const FI_CLASS_EQ: usize = 13;
/// A completion queue.
pub const FI_CLASS_CQ: usize = 14;
/// A counter.
pub const FI_CLASS_CNTR: usize = 15;
/// A wait set.
pub const FI_CLASS_WAIT: usize = 16;
/// A poll set.
pub const FI_CLASS_POLL: usize = 17;

/// Get the operation flags of one side.
pub const FI_GETOPSFLAG: c_int = 2;
/// Set the operation flags of one side.
pub const FI_SETOPSFLAG: c_int = 3;
/// Get what to wait on.
pub const FI_GETWAIT: c_int = 5;
/// Enable an endpoint.
pub const FI_ENABLE: c_int = 6;
/// Get a region's long key.
pub const FI_GET_RAW_MR: c_int = 8;
/// Get the kind of wait object.
pub const FI_GETWAITOBJ: c_int = 16;
/// Mappings of a region have changed.
pub const FI_REFRESH: c_int = 14;

/// The head of every object.
#[repr(C)]
#[derive(Debug)]
pub struct Fid {
    /// Kind of object, `FI_CLASS_*`.
    pub fclass: usize,
    /// The application's pointer, given when the object was opened.
    pub context: *mut c_void,
    /// What every object can do.
    pub ops: *const FiOps,
}

layout! { Fid = "struct fid", 24: fclass 0, context 8, ops 16 }

/// Declares objects whose tables of functions take them, as `struct fid_ep;` does in C: calls see a
/// pointer, and the file of the object says what is behind it.
macro_rules! declare {
    ($($(#[$about:meta])* $name:ident)*) => {$(
        $(#[$about])*
        #[repr(C)]
        #[derive(Debug)]
        pub struct $name {
            _declared: [u8; 0],
        }
    )*};
}

declare! {
    /// A fabric, laid out by [`FabricObject`](crate::fabric::FabricObject).
    FidFabric
    /// A domain, laid out by [`DomainObject`](crate::domain::DomainObject).
    FidDomain
    /// An endpoint, laid out by [`EndpointObject`](crate::endpoint::EndpointObject).
    FidEp
}

/// What every object can do (`struct fi_ops`).
#[repr(C)]
#[derive(Debug)]
pub struct FiOps {
    /// Bytes of this table that are filled.
    pub size: usize,
    /// Close the object.
    pub close: unsafe extern "C" fn(*mut Fid) -> c_int,
    /// Bind another object to it.
    pub bind: unsafe extern "C" fn(*mut Fid, *mut Fid, u64) -> c_int,
    /// Do one of `FI_GETWAIT`, `FI_ENABLE`, ...
    pub control: unsafe extern "C" fn(*mut Fid, c_int, *mut c_void) -> c_int,
    /// Get a named table of functions.
    pub ops_open:
        unsafe extern "C" fn(*mut Fid, *const c_char, u64, *mut *mut c_void, *mut c_void) -> c_int,
    /// Describe the object.
    pub tostr: unsafe extern "C" fn(*const Fid, *mut c_char, usize) -> c_int,
    /// Replace a named table of functions.
    pub ops_set:
        unsafe extern "C" fn(*mut Fid, *const c_char, u64, *mut c_void, *mut c_void) -> c_int,
}

ops_layout! { FiOps = "struct fi_ops": close, bind, control, ops_open, tostr, ops_set }
