// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Domains: one endpoint-crate domain behind one lock, or none, and everything that is opened from
//! it.
//!
//! Opened from a fabric; opens av, cq, counter, endpoint and mr objects. Source: fi_domain(3).

use std::ffi::{c_int, c_void};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use weft_endpoint::DomainSettings;
use weft_fabric_sys::domain::DomainObject;
use weft_fabric_sys::errno::{
    FI_EBUSY, FI_EINVAL, FI_ENOMEM, FI_ENOSYS, FI_EOPNOTSUPP, FI_SUCCESS,
};
use weft_fabric_sys::fid::FidDomain;
use weft_fabric_sys::fid::FidFabric;
use weft_fabric_sys::fid::{FI_CLASS_DOMAIN, FI_CLASS_EQ, FiOps, Fid};
use weft_fabric_sys::info::{FI_PROGRESS_AUTO, FI_THREAD_DOMAIN, FiInfo};
use weft_fabric_sys::peer::FidPeerSrx;

use crate::fabric::Fabric;
use crate::lock::{Lock, Locked, Unlocked};
use crate::log::{Subsystem, info as log_info};
use crate::object::{
    Dependents, Held, OpenList, Parent, class_of, hand_out, head, no_control, table, take_back,
};
use crate::progress_thread::WithProgressThread;
use crate::region_mode::RegionMode;
use crate::routes::{self, Guarded};
use crate::{hints, parameters, report};

/// A domain.
#[repr(C)]
#[derive(Debug)]
pub struct Domain<L> {
    fid: DomainObject,
    fabric: Held<Fabric>,
    lock: L,
    /// Objects that are open, regions included.
    children: Dependents,
    /// Providers that own receives of endpoints.
    owners: Mutex<Vec<*mut FidPeerSrx>>,
    /// How regions are named.
    pub(crate) region_mode: RegionMode,
    inject_size_bytes: usize,
}

static OPEN: OpenList = OpenList::new();

/// Whether hints name a domain of ours, or none.
pub fn is_open(domain: *const FidDomain) -> bool {
    domain.is_null() || OPEN.contains(domain)
}

/// Opens a domain with the kind of lock that the threading model needs.
///
/// # Safety
/// The arguments must be those of fi_domain(3), the fabric one of ours.
pub unsafe extern "C" fn open(
    fabric: *mut FidFabric,
    info: *mut FiInfo,
    domain: *mut *mut FidDomain,
    context: *mut c_void,
) -> c_int {
    if info.is_null() || domain.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: the fabric is open (contract).
    let fabric = unsafe { Held::new(fabric.cast::<Fabric>()) };
    let Some(settings) = parameters::settings() else {
        return -FI_EINVAL;
    };
    // SAFETY: an application's fi_info, of which only members that every version has are read.
    let asked = unsafe { hints::Hints::read(info, weft_fabric_sys::version::fi_version(1, 17)) };
    let alone = asked.domain.threading == FI_THREAD_DOMAIN;
    let automatic =
        [asked.domain.control_progress, asked.domain.data_progress].contains(&FI_PROGRESS_AUTO);
    log_info(
        Subsystem::Domain,
        format_args!(
            "opening a domain {} lock",
            if alone && !automatic {
                "without a"
            } else {
                "with one"
            }
        ),
    );
    let guarded = Guarded::with_local_settings(
        DomainSettings {
            inject_limit_bytes: settings.inject_size_bytes,
        },
        routes::settings(settings),
    );
    let region_mode = RegionMode::of(asked.domain.mr_mode);
    let parts = Parts {
        fabric,
        guarded,
        region_mode,
        inject_size_bytes: settings.inject_size_bytes,
        context,
    };
    // SAFETY: the place is not null and the application's.
    let assembled = unsafe {
        match (automatic, alone) {
            (true, _) => parts.assemble::<WithProgressThread>(domain),
            (false, true) => parts.assemble::<Unlocked>(domain),
            (false, false) => parts.assemble::<Locked>(domain),
        }
    };
    match assembled {
        Ok(()) => FI_SUCCESS,
        Err(error) => {
            report::line(&format!(
                "no domain can be opened: {error}; see the limits of threads and of open files \
                 (ulimit -u, ulimit -n)"
            ));
            -FI_ENOMEM
        }
    }
}

pub(crate) unsafe extern "C" fn open_with_flags(
    fabric: *mut FidFabric,
    info: *mut FiInfo,
    domain: *mut *mut FidDomain,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    if flags != 0 {
        return -FI_ENOSYS;
    }
    // SAFETY: the arguments are those of fi_domain2(3), and the fabric is ours.
    unsafe { open(fabric, info, domain, context) }
}

/// What a domain is made of, before its kind of lock is known.
struct Parts {
    fabric: Held<Fabric>,
    guarded: Guarded,
    region_mode: RegionMode,
    inject_size_bytes: usize,
    context: *mut c_void,
}

impl Parts {
    /// # Safety
    /// `place` must be valid for writing.
    unsafe fn assemble<L: Lock>(self, place: *mut *mut FidDomain) -> io::Result<()> {
        let fid = DomainObject {
            fid: head(FI_CLASS_DOMAIN, self.context, &Domain::<L>::FID_OPS),
            ops: L::domain(),
            mr: L::regions(),
        };
        let domain = Domain {
            fid,
            fabric: self.fabric,
            lock: L::new(self.guarded)?,
            children: Dependents::none(),
            owners: Mutex::default(),
            region_mode: self.region_mode,
            inject_size_bytes: self.inject_size_bytes,
        };
        // SAFETY: the contract.
        OPEN.add(unsafe { hand_out(domain, place) });
        Ok(())
    }
}

impl<L> Domain<L> {
    /// The fabric it was opened from.
    pub fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// Longest injected message in bytes.
    pub fn inject_size_bytes(&self) -> usize {
        self.inject_size_bytes
    }

    /// Providers that own receives of its endpoints, one for each.
    pub fn owners(&self) -> MutexGuard<'_, Vec<*mut FidPeerSrx>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<L> Parent for Domain<L> {
    fn children(&self) -> &Dependents {
        &self.children
    }
}

impl<L: Lock> Domain<L> {
    /// Calls `work` with the endpoint crate's domain, while no other thread uses it. Fast path.
    /// `work` must not call this again.
    #[inline(always)]
    pub fn with<R>(&self, work: impl FnOnce(&mut Guarded) -> R) -> R {
        self.lock.with(work)
    }

    /// The endpoint crate's domain; no other thread uses it until the result is dropped. Fast path.
    ///
    /// # Safety
    /// As for [`Lock::enter`].
    #[inline(always)]
    pub unsafe fn enter(&self) -> L::Entered<'_> {
        // SAFETY: the contract.
        unsafe { self.lock.enter() }
    }

    /// Hears that an endpoint was enabled. Setup.
    pub fn learn_transports(&self) {
        self.lock.learn_transports();
    }

    const FID_OPS: FiOps = table(close::<L>, bind, no_control);
}

unsafe extern "C" fn close<L: Lock>(fid: *mut Fid) -> c_int {
    let domain = fid.cast::<Domain<L>>();
    // SAFETY: this table belongs to domains of this kind of lock only, and the application closes
    // an object once.
    if unsafe { &*domain }.children.exist() {
        return -FI_EBUSY;
    }
    OPEN.remove(domain);
    // SAFETY: it came from `hand_out`, and nothing refers to it any more.
    drop(unsafe { take_back(domain) });
    FI_SUCCESS
}

/// Event queues may be bound; no operation on a domain reports there.
unsafe extern "C" fn bind(_: *mut Fid, other: *mut Fid, _: u64) -> c_int {
    // SAFETY: null or an open object of the application.
    match unsafe { class_of(other) } {
        Some(FI_CLASS_EQ) => FI_SUCCESS,
        _ => -FI_EINVAL,
    }
}

pub(crate) unsafe extern "C" fn no_collectives(
    _: *mut FidDomain,
    _: u32,
    _: *mut c_void,
    _: u64,
) -> c_int {
    -FI_EOPNOTSUPP
}
