// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Registered regions: the C calls. Registration pins nothing; it tells the endpoint crate what
//! remotes may touch.
//!
//! Called through the domain's table. Source: fi_mr(3).

use std::ffi::{c_int, c_void};

use libc::iovec;
use weft_endpoint::{Error, KeyChoice, RegionSettings};
use weft_fabric_sys::errno::{FI_EDOMAIN, FI_EINVAL, FI_ENOSYS, FI_SUCCESS};
use weft_fabric_sys::fid::{FI_CLASS_CNTR, FI_CLASS_EP, FI_CLASS_MR, FI_ENABLE, FI_REFRESH, Fid};
use weft_fabric_sys::flags::{FI_REMOTE_READ, FI_REMOTE_WRITE};
use weft_fabric_sys::mr::{FI_HMEM_SYSTEM, FiMrAttr, FidMr};
use weft_fabric_sys::version::fi_version;
use weft_os::{clock, sleep};

use crate::counter::Counter;
use crate::domain::Domain;
use crate::errno;
use crate::lock::Lock;
use crate::object::{Held, class_of, hand_out, head, opened, table, take_back};
use crate::post::several;

/// How long a close waits for messages at the memory while nothing moves at all. Chosen: many times
/// the pause of a process that lost its processor; and a program that drives both sides itself is
/// told soon.
const IDLE_LIMIT_NS: u64 = 1_000_000_000;

/// Longest wait of a close. Chosen: some gigabytes.
const CLOSE_LIMIT_NS: u64 = 5_000_000_000;

/// A registered region.
#[repr(C)]
#[derive(Debug)]
struct Region<L> {
    fid: FidMr,
    domain: Held<Domain<L>>,
}

/// A call to register memory.
struct MrRequest {
    pieces: *const iovec,
    count: usize,
    access: u64,
    offset: u64,
    key: u64,
    context: *mut c_void,
}

// structure: allow arguments because libfabric's callers pass them so
pub(crate) unsafe extern "C" fn reg<L: Lock>(
    domain: *mut Fid,
    buffer: *const c_void,
    length: usize,
    access: u64,
    offset: u64,
    key: u64,
    flags: u64,
    region: *mut *mut FidMr,
    context: *mut c_void,
) -> c_int {
    let whole = iovec {
        iov_base: buffer.cast_mut(),
        iov_len: length,
    };
    let pieces = &raw const whole;
    // SAFETY: the arguments are those of fi_mr_reg(3), and the piece is there during the call.
    unsafe {
        regv::<L>(
            domain, pieces, 1, access, offset, key, flags, region, context,
        )
    }
}

// structure: allow arguments because libfabric's callers pass them so
pub(crate) unsafe extern "C" fn regv<L: Lock>(
    domain: *mut Fid,
    pieces: *const iovec,
    count: usize,
    access: u64,
    offset: u64,
    key: u64,
    _flags: u64,
    region: *mut *mut FidMr,
    context: *mut c_void,
) -> c_int {
    let request = MrRequest {
        pieces,
        count,
        access,
        offset,
        key,
        context,
    };
    // SAFETY: the arguments are those of fi_mr_regv(3).
    unsafe { register::<L>(domain, &request, region) }
}

pub(crate) unsafe extern "C" fn regattr<L: Lock>(
    domain: *mut Fid,
    attr: *const FiMrAttr,
    _flags: u64,
    region: *mut *mut FidMr,
) -> c_int {
    if attr.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: `iface` exists from interface version 1.9 on; older applications' structures end
    // before it.
    let interface = unsafe {
        let known = (&*domain.cast::<Domain<L>>()).fabric().api_version() >= fi_version(1, 9);
        if known { (*attr).iface } else { FI_HMEM_SYSTEM }
    };
    if interface != FI_HMEM_SYSTEM {
        return -FI_ENOSYS;
    }
    // SAFETY: these members exist in every version.
    let request = unsafe {
        MrRequest {
            pieces: (*attr).mr_iov,
            count: (*attr).iov_count,
            access: (*attr).access,
            offset: (*attr).offset,
            key: (*attr).requested_key,
            context: (*attr).context,
        }
    };
    // SAFETY: the arguments are those of fi_mr_regattr(3).
    unsafe { register::<L>(domain, &request, region) }
}

/// # Safety
/// `domain` must be an open domain of this kind of lock, the rest as in fi_mr_regv(3).
unsafe fn register<L: Lock>(
    domain: *mut Fid,
    request: &MrRequest,
    place: *mut *mut FidMr,
) -> c_int {
    if place.is_null() || request.offset != 0 {
        return -FI_EINVAL;
    }
    // SAFETY: the contract.
    let domain = unsafe { Held::new(domain.cast::<Domain<L>>()) };
    // SAFETY: remotes touch registered memory only while it is registered, when the application
    // lends it (contract).
    let memory = match unsafe { several(request.pieces, request.count) } {
        Ok(memory) => memory,
        Err(error) => return -errno::number(error),
    };
    let mode = domain.region_mode;
    let settings = RegionSettings {
        base: if mode.virtual_addresses {
            memory.address() as u64
        } else {
            0
        },
        memory,
        readable: request.access & FI_REMOTE_READ != 0,
        writable: request.access & FI_REMOTE_WRITE != 0,
        key: if mode.own_keys {
            KeyChoice::Ours
        } else {
            KeyChoice::Theirs(request.key)
        },
    };
    let key = match domain.with(|guarded| guarded.regions().register(settings)) {
        Ok(key) => key,
        Err(error) => return -errno::number(error),
    };
    let ops = const { &table(close::<L>, bind::<L>, control) };
    let region = Region {
        fid: FidMr {
            fid: head(FI_CLASS_MR, request.context, ops),
            mem_desc: std::ptr::null_mut(),
            key,
        },
        domain,
    };
    // SAFETY: the place is not null and the application's; the new region is not known to anybody
    // yet.
    unsafe {
        let region = hand_out(region, place);
        (*region).fid.mem_desc = region.cast();
    }
    FI_SUCCESS
}

unsafe extern "C" fn close<L: Lock>(fid: *mut Fid) -> c_int {
    let region = fid.cast::<Region<L>>();
    // SAFETY: this table belongs to regions of this kind of lock only, which are open until they
    // are closed here.
    let open = unsafe { opened::<Region<L>>(region) };
    let closed = withdraw(&open.domain, open.fid.key);
    if closed == Err(Error::Busy) {
        // The object stays: somebody is at the memory, and the application may close it again.
        return errno::code(closed);
    }
    // SAFETY: made by `hand_out` from a box, and the application closes an object once.
    drop(unsafe { take_back(region) });
    errno::code(closed)
}

/// Ends a registration, with progress as long as messages move its bytes. Between rounds others may
/// enter the domain.
fn withdraw<L: Lock>(domain: &Domain<L>, key: u64) -> Result<(), Error> {
    let begin_ns = clock::monotonic_ns();
    let mut moved_ns = begin_ns;
    loop {
        let (closed, event_count) = domain.with(|guarded| {
            let closed = guarded.regions().deregister(key);
            let event_count = match closed {
                // The refusals of what was announced go now, not at some later call.
                Ok(()) | Err(Error::Busy) => guarded.progress_all(),
                Err(_) => 0,
            };
            (closed, event_count)
        });
        let now_ns = clock::monotonic_ns();
        if event_count > 0 {
            moved_ns = now_ns;
        }
        if closed != Err(Error::Busy)
            || now_ns - moved_ns > IDLE_LIMIT_NS
            || now_ns - begin_ns > CLOSE_LIMIT_NS
        {
            return closed;
        }
        sleep::yield_now();
    }
}

/// Regions may be bound to endpoints (FI_MR_ENDPOINT), on which nothing depends, and to a counter
/// of writes to them.
unsafe extern "C" fn bind<L: Lock>(fid: *mut Fid, other: *mut Fid, flags: u64) -> c_int {
    // SAFETY: null or an open object of the application.
    match unsafe { class_of(other) } {
        Some(FI_CLASS_EP) => FI_SUCCESS,
        Some(FI_CLASS_CNTR) => {
            // SAFETY: this table belongs to regions of this kind of lock only; counters are opened
            // from such domains.
            let (region, counter) =
                unsafe { (opened::<Region<L>>(fid), opened::<Counter<L>>(other)) };
            if !std::ptr::eq(&*region.domain, counter.domain()) {
                return -FI_EDOMAIN;
            }
            if flags & !FI_REMOTE_WRITE != 0 {
                return -FI_EINVAL;
            }
            let (key, counter) = (region.fid.key, counter.id());
            errno::code(
                region
                    .domain
                    .with(|guarded| guarded.regions().bind_counter(key, counter)),
            )
        }
        _ => -FI_EINVAL,
    }
}

/// Regions need neither enabling nor news of changed mappings; both may be told all the same.
unsafe extern "C" fn control(_: *mut Fid, command: c_int, _: *mut c_void) -> c_int {
    match command {
        FI_ENABLE | FI_REFRESH => FI_SUCCESS,
        _ => -FI_ENOSYS,
    }
}
