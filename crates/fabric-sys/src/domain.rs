// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `struct fid_domain` and its tables of functions.
//!
//! Used by the provider's domain module. Source: fi_domain.h, fi_domain(3).

use crate::atomic::FiAtomicAttr;
use crate::av::{FiAvAttr, FidAv};
use crate::counter::{FiCntrAttr, FidCntr};
use crate::cq::{FiCqAttr, FidCq};
use crate::fid::{Fid, FidDomain, FidEp};
use crate::info::{FiInfo, FiRxAttr, FiTxAttr};
use crate::mr::FiOpsMr;
use crate::poll::{FiPollAttr, FidPoll};
use libc::{c_int, c_void};

/// What a [`FidDomain`] points to (`struct fid_domain`).
#[repr(C)]
#[derive(Debug)]
pub struct DomainObject {
    /// Head of the object.
    pub fid: Fid,
    /// What a domain can do.
    pub ops: *const FiOpsDomain,
    /// How memory is registered.
    pub mr: *const FiOpsMr,
}

layout! { DomainObject = "struct fid_domain", 40: fid 0, ops 24, mr 32 }

/// What a domain can do (`struct fi_ops_domain`), up to 2.6: the call behind `endpoint2` came
/// later.
#[repr(C)]
#[derive(Debug)]
pub struct FiOpsDomain {
    /// Bytes of this table that are filled.
    pub size: usize,
    /// Open an address vector.
    pub av_open:
        unsafe extern "C" fn(*mut FidDomain, *mut FiAvAttr, *mut *mut FidAv, *mut c_void) -> c_int,
    /// Open a completion queue.
    pub cq_open:
        unsafe extern "C" fn(*mut FidDomain, *mut FiCqAttr, *mut *mut FidCq, *mut c_void) -> c_int,
    /// Open an endpoint.
    pub endpoint: FiOpenEndpoint,
    /// Open an endpoint of several contexts.
    pub scalable_ep: FiOpenEndpoint,
    /// Open a counter.
    pub cntr_open: unsafe extern "C" fn(
        *mut FidDomain,
        *mut FiCntrAttr,
        *mut *mut FidCntr,
        *mut c_void,
    ) -> c_int,
    /// Open a poll set.
    pub poll_open:
        unsafe extern "C" fn(*mut FidDomain, *mut FiPollAttr, *mut *mut FidPoll) -> c_int,
    /// Open a shared sending context.
    pub stx_ctx:
        unsafe extern "C" fn(*mut FidDomain, *mut FiTxAttr, *mut *mut c_void, *mut c_void) -> c_int,
    /// Open a shared receiving context.
    pub srx_ctx:
        unsafe extern "C" fn(*mut FidDomain, *mut FiRxAttr, *mut *mut FidEp, *mut c_void) -> c_int,
    /// Which atomic operations are there?
    pub query_atomic:
        unsafe extern "C" fn(*mut FidDomain, u32, u32, *mut FiAtomicAttr, u64) -> c_int,
    /// Which collectives are there?
    pub query_collective: unsafe extern "C" fn(*mut FidDomain, u32, *mut c_void, u64) -> c_int,
    /// Open an endpoint, with flags.
    pub endpoint2: unsafe extern "C" fn(
        *mut FidDomain,
        *mut FiInfo,
        *mut *mut FidEp,
        u64,
        *mut c_void,
    ) -> c_int,
}

ops_layout! { FiOpsDomain = "struct fi_ops_domain": av_open, cq_open, endpoint, scalable_ep,
cntr_open, poll_open, stx_ctx, srx_ctx, query_atomic, query_collective, endpoint2 }

/// `endpoint(domain, info, endpoint, context)`.
pub type FiOpenEndpoint =
    unsafe extern "C" fn(*mut FidDomain, *mut FiInfo, *mut *mut FidEp, *mut c_void) -> c_int;
