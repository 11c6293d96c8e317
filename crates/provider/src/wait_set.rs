// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Wait sets: one call that sleeps until any of several completion queues, counters and event
//! queues has something.
//!
//! Opened from a fabric; members join when they are opened with FI_WAIT_SET and leave when they are
//! closed. Knows them by what waiter and eq tell of them. Deprecated since libfabric 2.0 in favour
//! of the descriptors of FI_WAIT_FD, which are underneath here too. Source: fi_poll(3), fi_cq(3).

use std::ffi::{c_int, c_void};
use std::os::fd::RawFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use weft_fabric_sys::eq::{FI_WAIT_FD, FI_WAIT_SET, FI_WAIT_UNSPEC};
use weft_fabric_sys::errno::{
    FI_EAGAIN, FI_EBADFLAGS, FI_EBUSY, FI_EINVAL, FI_ENOMEM, FI_ENOSYS, FI_ETIMEDOUT, FI_SUCCESS,
};
use weft_fabric_sys::fid::FidFabric;
use weft_fabric_sys::fid::{FI_CLASS_WAIT, FI_GETWAIT, FI_GETWAITOBJ, FiOps, Fid};
use weft_fabric_sys::wait::{FiWaitAttr, FidWait};
use weft_os::sleep::{WaitSet as Descriptors, wait_readable};

use crate::fabric::Fabric;
use crate::lock::Unlocked;
use crate::object::{Held, class_of, hand_out, head, no_bind, table, take_back};
use crate::tables::Tables;
use crate::wait::{Deadline, LONGEST_SLEEP_MS, Pace};

/// The calls of a set to its members, for all kinds of objects and locks.
#[derive(Clone, Copy, Debug)]
pub struct Calls {
    /// Announces a sleep: `FI_SUCCESS`, or `-FI_EAGAIN` if there is something to do first.
    pub try_wait: unsafe fn(*const Fid) -> c_int,
    /// Whether there is something to read, or the member was signalled; makes progress first.
    pub has_event: unsafe fn(*const Fid) -> bool,
    /// Ends the sleep.
    pub wake_up: unsafe fn(*const Fid),
}

#[derive(Clone, Copy, Debug)]
struct Member {
    fid: *const Fid,
    calls: Calls,
}

/// A wait set.
#[repr(C)]
#[derive(Debug)]
pub struct WaitSet {
    fid: FidWait,
    fabric: Held<Fabric>,
    members: Mutex<Vec<Member>>,
    /// Readable when any member may have an event.
    descriptors: Descriptors,
}

/// Membership of one object in a set; `None` for objects that wait in another way.
#[derive(Debug)]
pub struct Membership(Option<*const WaitSet>);

static FID_OPS: FiOps = table(close, no_bind, control);

/// Opens a wait set.
///
/// # Safety
/// The arguments must be those of fi_wait_open(3), the fabric one of ours.
pub unsafe extern "C" fn open(
    fabric: *mut FidFabric,
    attr: *mut FiWaitAttr,
    set: *mut *mut FidWait,
) -> c_int {
    // SAFETY: null or the application's attributes; their layout is the same in all versions.
    let (wait_object, flags) =
        unsafe { attr.as_ref() }.map_or((FI_WAIT_UNSPEC, 0), |attr| (attr.wait_obj, attr.flags));
    if set.is_null() {
        return -FI_EINVAL;
    }
    if flags != 0 {
        return -FI_EBADFLAGS;
    }
    if !matches!(wait_object, FI_WAIT_UNSPEC | FI_WAIT_FD) {
        return -FI_ENOSYS;
    }
    let Ok(descriptors) = Descriptors::new() else {
        return -FI_ENOMEM;
    };
    // SAFETY: the fabric is open (contract).
    let fabric = unsafe { Held::new(fabric.cast::<Fabric>()) };
    let opened = WaitSet {
        fid: FidWait {
            fid: head(FI_CLASS_WAIT, std::ptr::null_mut(), &FID_OPS),
            ops: Unlocked::wait_set(),
        },
        fabric,
        members: Mutex::default(),
        descriptors,
    };
    // SAFETY: the place is not null and the application's.
    unsafe { hand_out(opened, set) };
    FI_SUCCESS
}

impl Membership {
    /// For an object that is opened on `fabric` with a wait object and, if that is FI_WAIT_SET, a
    /// set.
    ///
    /// # Errors
    /// `FI_EINVAL` if the set is none, or one of another fabric.
    ///
    /// # Safety
    /// With FI_WAIT_SET, `set` must be null or an open object.
    pub unsafe fn asked(
        wait_object: u32,
        set: *const c_void,
        fabric: *const Fabric,
    ) -> Result<Self, c_int> {
        if wait_object != FI_WAIT_SET {
            return Ok(Self(None));
        }
        // SAFETY: the contract.
        if unsafe { class_of(set.cast()) } != Some(FI_CLASS_WAIT) {
            return Err(FI_EINVAL);
        }
        let set = set.cast::<WaitSet>();
        // SAFETY: the class says what it is, and it is open.
        if !std::ptr::eq(&*unsafe { &*set }.fabric, fabric) {
            return Err(FI_EINVAL);
        }
        Ok(Self(Some(set)))
    }

    /// Begins, now that the member has its place in memory. `descriptor` is readable when it may
    /// have an event.
    pub fn begin(&self, fid: *const Fid, calls: Calls, descriptor: Option<RawFd>) {
        if let Some(set) = self.set() {
            set.members().push(Member { fid, calls });
            if let Some(descriptor) = descriptor {
                // It fails only where the system has no memory; fi_wait then looks five times a
                // second.
                let _ = set.descriptors.add_raw(descriptor);
            }
        }
    }

    /// Ends, before the member is closed. Its descriptor leaves the set by being closed.
    pub fn end(&self, fid: *const Fid) {
        if let Some(set) = self.set() {
            set.members().retain(|member| member.fid != fid);
        }
    }

    fn set(&self) -> Option<&WaitSet> {
        // SAFETY: a set stays open while it has members.
        self.0.map(|set| unsafe { &*set })
    }
}

impl WaitSet {
    fn members(&self) -> MutexGuard<'_, Vec<Member>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The members of this moment: the list is not locked while they are asked, since that may take
    /// a lock of theirs.
    fn snapshot(&self) -> Vec<Member> {
        self.members().clone()
    }

    fn wait(&self, deadline: Deadline) -> c_int {
        let mut pace = Pace::default();
        loop {
            let members = self.snapshot();
            // SAFETY: members are open: closing one while it is waited for is the application's
            // mistake (fi_poll(3)).
            let has_event = |member: &Member| unsafe { (member.calls.has_event)(member.fid) };
            if members.iter().any(has_event) {
                return FI_SUCCESS;
            }
            if deadline.is_over() {
                return -FI_ETIMEDOUT;
            }
            if !pace.is_exhausted() {
                pace.pause();
                continue;
            }
            if announce(&members) == FI_SUCCESS {
                wait_readable(
                    self.descriptors.descriptor(),
                    deadline.left_ms(LONGEST_SLEEP_MS),
                );
            } else {
                pace.pause();
            }
            for member in &members {
                // SAFETY: members are open: closing one while it is waited for is the
                // application's mistake (fi_poll(3)).
                unsafe { (member.calls.wake_up)(member.fid) };
            }
        }
    }
}

/// Announces a sleep on all members; `-FI_EAGAIN` if one of them has something to do first.
fn announce(members: &[Member]) -> c_int {
    for member in members {
        // SAFETY: members are open: closing one while it is waited for is the application's mistake
        // (fi_poll(3)).
        let answer = unsafe { (member.calls.try_wait)(member.fid) };
        // An object that one cannot sleep on is looked at again and again.
        if answer != FI_SUCCESS {
            return -FI_EAGAIN;
        }
    }
    FI_SUCCESS
}

/// May the application sleep on a set's descriptor? For fi_trywait.
///
/// # Safety
/// `fid` must be an open wait set of ours.
pub unsafe fn try_wait(fid: *const Fid) -> c_int {
    // SAFETY: the contract.
    announce(&unsafe { &*fid.cast::<WaitSet>() }.snapshot())
}

pub(crate) unsafe extern "C" fn wait(set: *mut FidWait, timeout_ms: c_int) -> c_int {
    // SAFETY: this table belongs to wait sets only.
    unsafe { &*set.cast::<WaitSet>() }.wait(Deadline::after_ms(timeout_ms))
}

unsafe extern "C" fn control(fid: *mut Fid, command: c_int, argument: *mut c_void) -> c_int {
    // SAFETY: this table belongs to wait sets only.
    let set = unsafe { &*fid.cast::<WaitSet>() };
    let value = match command {
        FI_GETWAIT => set.descriptors.descriptor(),
        FI_GETWAITOBJ => FI_WAIT_FD as c_int,
        _ => return -FI_ENOSYS,
    };
    if argument.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: both commands take a pointer to an int or an enumeration (fi_poll(3)).
    unsafe { *argument.cast::<c_int>() = value };
    FI_SUCCESS
}

unsafe extern "C" fn close(fid: *mut Fid) -> c_int {
    let set = fid.cast::<WaitSet>();
    // SAFETY: this table belongs to wait sets only, and the application closes an object once.
    if !unsafe { &*set }.members().is_empty() {
        return -FI_EBUSY;
    }
    // SAFETY: it came from `hand_out`, and nothing refers to it any more.
    drop(unsafe { take_back(set) });
    FI_SUCCESS
}
