// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Registered regions. Registration is required of nobody and pins nothing: it hands out a key and remembers it.
//!
//! Called through the domain's table. Source: fi_mr(3).

use std::collections::HashSet;
use std::ffi::{c_int, c_void};
use std::sync::{Mutex, PoisonError};

use libc::iovec;
use weft_fabric_sys::errno::{FI_EINVAL, FI_ENOKEY, FI_ENOSYS, FI_SUCCESS};
use weft_fabric_sys::fid::{FI_CLASS_CNTR, FI_CLASS_EP, FI_CLASS_MR, FI_ENABLE, Fid};
use weft_fabric_sys::mr::{FI_HMEM_SYSTEM, FiMrAttr, FiOpsMr, FidMr};
use weft_fabric_sys::version::fi_version;

use crate::domain::Domain;
use crate::lock::Lock;
use crate::object::{class_of, hand_out, head, table};
use crate::offer;

/// A registered region.
#[repr(C)]
#[derive(Debug)]
struct Region<L> {
    fid: FidMr,
    domain: *const Domain<L>,
}

/// The keys in use in one domain.
#[derive(Debug)]
pub struct Regions {
    keys: Mutex<HashSet<u64>>,
    /// The application leaves the choice of keys to us.
    own_keys: bool,
}

impl Regions {
    /// None are in use.
    pub fn new(own_keys: bool) -> Self {
        Self {
            keys: Mutex::new(HashSet::new()),
            own_keys,
        }
    }

    /// Takes a key: the one asked for, or, where keys are ours to choose, the first free one from their count upwards.
    /// `None` if the one asked for is in use.
    fn take(&self, asked: u64) -> Option<u64> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let mut key = if self.own_keys {
            keys.len() as u64
        } else {
            asked
        };
        while !keys.insert(key) {
            if !self.own_keys {
                return None;
            }
            key += 1;
        }
        Some(key)
    }

    fn give_back(&self, key: u64) {
        self.keys
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&key);
    }
}

/// The table through which a domain registers memory.
pub fn ops<L: Lock>() -> &'static FiOpsMr {
    const {
        &FiOpsMr {
            size: size_of::<FiOpsMr>(),
            reg: reg::<L>,
            regv: regv::<L>,
            regattr: regattr::<L>,
        }
    }
}

// structure: allow arguments because libfabric's callers pass them so
unsafe extern "C" fn reg<L: Lock>(
    domain: *mut Fid,
    buffer: *const c_void,
    length: usize,
    _access: u64,
    _offset: u64,
    key: u64,
    _flags: u64,
    region: *mut *mut FidMr,
    context: *mut c_void,
) -> c_int {
    let whole = iovec {
        iov_base: buffer.cast_mut(),
        iov_len: length,
    };
    // SAFETY: the arguments are those of fi_mr_reg(3).
    unsafe { register::<L>(domain, &whole, 1, key, context, region) }
}

// structure: allow arguments because libfabric's callers pass them so
unsafe extern "C" fn regv<L: Lock>(
    domain: *mut Fid,
    pieces: *const iovec,
    count: usize,
    _access: u64,
    _offset: u64,
    key: u64,
    _flags: u64,
    region: *mut *mut FidMr,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the arguments are those of fi_mr_regv(3).
    unsafe { register::<L>(domain, pieces, count, key, context, region) }
}

unsafe extern "C" fn regattr<L: Lock>(
    domain: *mut Fid,
    attr: *const FiMrAttr,
    _flags: u64,
    region: *mut *mut FidMr,
) -> c_int {
    if attr.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: `iface` exists from interface version 1.9 on; older applications' structures end before it.
    let interface = unsafe {
        let known = (&*domain.cast::<Domain<L>>()).fabric().api_version() >= fi_version(1, 9);
        if known { (*attr).iface } else { FI_HMEM_SYSTEM }
    };
    if interface != FI_HMEM_SYSTEM {
        return -FI_ENOSYS;
    }
    // SAFETY: the arguments are those of fi_mr_regattr(3), and these members exist in every version.
    unsafe {
        register::<L>(
            domain,
            (*attr).mr_iov,
            (*attr).iov_count,
            (*attr).requested_key,
            (*attr).context,
            region,
        )
    }
}

/// # Safety
/// `domain` must be an open domain of this kind of lock, the rest as in fi_mr_regv(3).
// structure: allow arguments because libfabric's callers pass them so
unsafe fn register<L: Lock>(
    domain: *mut Fid,
    pieces: *const iovec,
    count: usize,
    key: u64,
    context: *mut c_void,
    place: *mut *mut FidMr,
) -> c_int {
    if place.is_null() || count > offer::PIECES || (pieces.is_null() && count > 0) {
        return -FI_EINVAL;
    }
    // SAFETY: the contract.
    let domain = unsafe { &*domain.cast::<Domain<L>>() };
    let Some(key) = domain.regions.take(key) else {
        return -FI_ENOKEY;
    };
    let fid = head(
        FI_CLASS_MR,
        context,
        const { &table(close::<L>, bind, control) },
    );
    let region = Region {
        fid: FidMr {
            fid,
            mem_desc: std::ptr::null_mut(),
            key,
        },
        domain: &raw const *domain,
    };
    // SAFETY: the place is not null and the application's; the new region is not known to anybody yet.
    unsafe {
        let region = hand_out(region, place);
        (*region).fid.mem_desc = region.cast();
    }
    domain.add_child();
    FI_SUCCESS
}

unsafe extern "C" fn close<L: Lock>(fid: *mut Fid) -> c_int {
    // SAFETY: this table belongs to regions of this kind of lock only, and the application closes an object once.
    let region = unsafe { Box::from_raw(fid.cast::<Region<L>>()) };
    // SAFETY: a domain stays open while it has children, of which this region is one.
    let domain = unsafe { &*region.domain };
    domain.regions.give_back(region.fid.key);
    domain.remove_child();
    FI_SUCCESS
}

/// Regions may be bound to endpoints and counters (FI_MR_ENDPOINT); nothing depends on it.
unsafe extern "C" fn bind(_: *mut Fid, other: *mut Fid, _: u64) -> c_int {
    // SAFETY: null or an open object of the application.
    match unsafe { class_of(other) } {
        Some(FI_CLASS_EP | FI_CLASS_CNTR) => FI_SUCCESS,
        _ => -FI_EINVAL,
    }
}

unsafe extern "C" fn control(_: *mut Fid, command: c_int, _: *mut c_void) -> c_int {
    if command == FI_ENABLE {
        FI_SUCCESS
    } else {
        -FI_ENOSYS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_used_once_until_it_is_given_back() {
        let regions = Regions::new(false);
        assert_eq!((regions.take(7), regions.take(7)), (Some(7), None));
        regions.give_back(7);
        assert_eq!(regions.take(7), Some(7));
    }

    #[test]
    fn own_keys_never_clash() {
        let regions = Regions::new(true);
        assert_eq!(
            [0; 3].map(|asked| regions.take(asked)),
            [Some(0), Some(1), Some(2)]
        );
        regions.give_back(1);
        assert_eq!(
            regions.take(0),
            Some(3),
            "two are in use, and 2 is one of them"
        );
    }
}
