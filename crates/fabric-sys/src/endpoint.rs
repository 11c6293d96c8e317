// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `struct fid_ep`, the endpoint, its options and its tables for control and addresses.
//!
//! Used by the provider's endpoint module. Source: fi_endpoint.h, fi_cm.h, fi_endpoint(3),
//! fi_cm(3).

use crate::atomic::FiOpsAtomic;
use crate::fid::{Fid, FidEp};
use crate::info::{FiRxAttr, FiTxAttr};
use crate::message::FiOpsMsg;
use crate::rma::FiOpsRma;
use crate::tagged::FiOpsTagged;
use libc::{c_int, c_void};

/// The only level of options.
pub const FI_OPT_ENDPOINT: c_int = 0;
/// Bytes that must be left in a multi-receive buffer: `usize`.
pub const FI_OPT_MIN_MULTI_RECV: c_int = 0;
/// Bytes of connection data: `usize`.
pub const FI_OPT_CM_DATA_SIZE: c_int = 1;
/// Operations under way at once: `usize`.
pub const FI_OPT_TX_SIZE: c_int = 6;
/// Receives posted at once: `usize`.
pub const FI_OPT_RX_SIZE: c_int = 7;
/// Direct transfers of accelerator memory: `c_int`.
pub const FI_OPT_FI_HMEM_P2P: c_int = 8;
/// May accelerator calls be made: `bool`.
pub const FI_OPT_CUDA_API_PERMITTED: c_int = 10;
/// May shared memory be used: `bool`.
pub const FI_OPT_SHARED_MEMORY_PERMITTED: c_int = 11;
/// Largest message in bytes: `usize`.
pub const FI_OPT_MAX_MSG_SIZE: c_int = 12;
/// Largest tagged message in bytes: `usize`.
pub const FI_OPT_MAX_TAGGED_SIZE: c_int = 13;
/// Largest injected message in bytes: `usize`.
pub const FI_OPT_INJECT_MSG_SIZE: c_int = 16;
/// Largest injected tagged message in bytes: `usize`.
pub const FI_OPT_INJECT_TAGGED_SIZE: c_int = 17;

/// What a [`FidEp`] points to (`struct fid_ep`).
#[repr(C)]
#[derive(Debug)]
pub struct EndpointObject {
    /// Head of the object.
    pub fid: Fid,
    /// Options and contexts.
    pub ops: *const FiOpsEp,
    /// Addresses and connections.
    pub cm: *const FiOpsCm,
    /// Untagged messages.
    pub msg: *const FiOpsMsg,
    /// Remote memory.
    pub rma: *const FiOpsRma,
    /// Tagged messages.
    pub tagged: *const FiOpsTagged,
    /// Atomic operations.
    pub atomic: *const FiOpsAtomic,
    /// Collectives, or null.
    pub collective: *const c_void,
}

layout! { EndpointObject = "struct fid_ep", 80: fid 0, ops 24, cm 32, msg 40, rma 48, tagged 56,
atomic 64, collective 72 }

/// Options and contexts of an endpoint (`struct fi_ops_ep`), up to 2.6.
#[repr(C)]
#[derive(Debug)]
pub struct FiOpsEp {
    /// Bytes of this table that are filled.
    pub size: usize,
    /// Cancel an operation by its context.
    pub cancel: unsafe extern "C" fn(*mut Fid, *mut c_void) -> isize,
    /// Read an option.
    pub getopt: unsafe extern "C" fn(*mut Fid, c_int, c_int, *mut c_void, *mut usize) -> c_int,
    /// Set an option.
    pub setopt: unsafe extern "C" fn(*mut Fid, c_int, c_int, *const c_void, usize) -> c_int,
    /// Open a sending context.
    pub tx_ctx: unsafe extern "C" fn(
        *mut FidEp,
        c_int,
        *mut FiTxAttr,
        *mut *mut FidEp,
        *mut c_void,
    ) -> c_int,
    /// Open a receiving context.
    pub rx_ctx: unsafe extern "C" fn(
        *mut FidEp,
        c_int,
        *mut FiRxAttr,
        *mut *mut FidEp,
        *mut c_void,
    ) -> c_int,
    /// Receives that can still be posted.
    pub rx_size_left: unsafe extern "C" fn(*mut FidEp) -> isize,
    /// Sends that can still be posted.
    pub tx_size_left: unsafe extern "C" fn(*mut FidEp) -> isize,
}

ops_layout! { FiOpsEp = "struct fi_ops_ep": cancel, getopt, setopt, tx_ctx, rx_ctx, rx_size_left,
tx_size_left }

/// Addresses and connections (`struct fi_ops_cm`).
#[repr(C)]
#[derive(Debug)]
pub struct FiOpsCm {
    /// Bytes of this table that are filled.
    pub size: usize,
    /// Set the local address.
    pub setname: unsafe extern "C" fn(*mut Fid, *mut c_void, usize) -> c_int,
    /// Get the local address.
    pub getname: unsafe extern "C" fn(*mut Fid, *mut c_void, *mut usize) -> c_int,
    /// Get the connected address.
    pub getpeer: unsafe extern "C" fn(*mut FidEp, *mut c_void, *mut usize) -> c_int,
    /// Connect.
    pub connect: unsafe extern "C" fn(*mut FidEp, *const c_void, *const c_void, usize) -> c_int,
    /// Listen.
    pub listen: unsafe extern "C" fn(*mut c_void) -> c_int,
    /// Accept a connection.
    pub accept: unsafe extern "C" fn(*mut FidEp, *const c_void, usize) -> c_int,
    /// Reject a connection.
    pub reject: unsafe extern "C" fn(*mut c_void, *mut Fid, *const c_void, usize) -> c_int,
    /// End a connection.
    pub shutdown: unsafe extern "C" fn(*mut FidEp, u64) -> c_int,
    /// Join a multicast group.
    pub join: unsafe extern "C" fn(
        *mut FidEp,
        *const c_void,
        u64,
        *mut *mut c_void,
        *mut c_void,
    ) -> c_int,
}

ops_layout! { FiOpsCm = "struct fi_ops_cm": setname, getname, getpeer, connect, listen, accept,
reject, shutdown, join }
