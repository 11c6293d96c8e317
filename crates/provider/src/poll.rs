// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Poll sets: which of several completion queues and counters have something to read?
//!
//! Opened from a domain; asks the endpoint crate, which makes progress first. Deprecated since
//! libfabric 2.0 in favour of the descriptors of FI_WAIT_FD. Source: fi_poll(3).

use std::ffi::{c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

use weft_endpoint::Waitable;
use weft_fabric_sys::errno::{FI_EBADFLAGS, FI_EDOMAIN, FI_EINVAL, FI_ENOENT, FI_SUCCESS};
use weft_fabric_sys::fid::FidDomain;
use weft_fabric_sys::fid::{FI_CLASS_CNTR, FI_CLASS_CQ, FI_CLASS_POLL, Fid};
use weft_fabric_sys::poll::{FiPollAttr, FidPoll};

use crate::counter::Counter;
use crate::cq::Queue;
use crate::domain::Domain;
use crate::errno;
use crate::lock::Lock;
use crate::object::{
    Dependents, Held, class_of, hand_out, head, no_bind, no_control, opened, table, take_back,
};

/// A poll set.
#[repr(C)]
#[derive(Debug)]
pub struct PollSet<L> {
    fid: FidPoll,
    domain: Held<Domain<L>>,
    members: Mutex<Vec<Member>>,
}

/// A queue or counter in a set.
#[derive(Clone, Copy, Debug)]
struct Member {
    fid: *mut Fid,
    on: Waitable,
    /// The dependents of the queue or counter, which cannot be closed while it is in a set.
    polls: *const Dependents,
}

impl Member {
    fn polls(&self) -> &Dependents {
        // SAFETY: the object stays open while it is in a set.
        unsafe { &*self.polls }
    }
}

/// Opens a poll set.
///
/// # Safety
/// The arguments must be those of fi_poll_open(3), the domain one of ours with this kind of lock.
pub unsafe extern "C" fn open<L: Lock>(
    domain: *mut FidDomain,
    attr: *mut FiPollAttr,
    set: *mut *mut FidPoll,
) -> c_int {
    // SAFETY: null or the application's attributes.
    let flags = unsafe { attr.as_ref() }.map_or(0, |attr| attr.flags);
    if set.is_null() {
        return -FI_EINVAL;
    }
    if flags != 0 {
        return -FI_EBADFLAGS;
    }
    // SAFETY: the contract.
    let domain = unsafe { Held::new(domain.cast::<Domain<L>>()) };
    let opened = PollSet {
        fid: FidPoll {
            fid: head(
                FI_CLASS_POLL,
                std::ptr::null_mut(),
                const { &table(close::<L>, no_bind, no_control) },
            ),
            ops: L::poll_set(),
        },
        domain,
        members: Mutex::default(),
    };
    // SAFETY: the place is not null and the application's.
    unsafe { hand_out(opened, set) };
    FI_SUCCESS
}

impl<L: Lock> PollSet<L> {
    fn domain(&self) -> &Domain<L> {
        &self.domain
    }

    fn members(&self) -> MutexGuard<'_, Vec<Member>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// # Safety
/// The arguments must be those of fi_poll(3).
pub(crate) unsafe extern "C" fn poll<L: Lock>(
    set: *mut FidPoll,
    contexts: *mut *mut c_void,
    count: c_int,
) -> c_int {
    let Ok(room) = usize::try_from(count) else {
        return -FI_EINVAL;
    };
    if contexts.is_null() && room > 0 {
        return -FI_EINVAL;
    }
    // SAFETY: this table belongs to poll sets of this kind of lock only.
    let set = unsafe { opened::<PollSet<L>>(set) };
    let mut found = 0;
    for member in set.members().iter() {
        match set
            .domain()
            .with(|guarded| guarded.waiting(member.on).has_event())
        {
            Ok(true) if found < room => {
                // SAFETY: the application's array has room for `count` entries, and the member is
                // open: it cannot be closed while it is in a set.
                unsafe { *contexts.add(found) = (*member.fid).context };
                found += 1;
            }
            Ok(_) => {}
            Err(error) => return -errno::number(error),
        }
    }
    found as c_int
}

/// The queue or counter that the application names.
///
/// # Safety
/// `fid` must be null or an open object of ours.
unsafe fn member<L: Lock>(set: &PollSet<L>, fid: *mut Fid) -> Result<Member, c_int> {
    // SAFETY: the contract.
    let (domain, on, polls) = match unsafe { class_of(fid) } {
        Some(FI_CLASS_CQ) => {
            // SAFETY: the class says what the object is.
            let queue = unsafe { &*fid.cast::<Queue<L>>() };
            (queue.domain(), queue.id().into(), queue.polls())
        }
        Some(FI_CLASS_CNTR) => {
            // SAFETY: the class says what the object is.
            let counter = unsafe { &*fid.cast::<Counter<L>>() };
            (counter.domain(), counter.id().into(), counter.polls())
        }
        _ => return Err(FI_EINVAL),
    };
    if std::ptr::eq(domain, set.domain()) {
        Ok(Member { fid, on, polls })
    } else {
        Err(FI_EDOMAIN)
    }
}

pub(crate) unsafe extern "C" fn add<L: Lock>(
    set: *mut FidPoll,
    fid: *mut Fid,
    flags: u64,
) -> c_int {
    if flags != 0 {
        return -FI_EBADFLAGS;
    }
    // SAFETY: this table belongs to poll sets of this kind of lock only.
    let set = unsafe { opened::<PollSet<L>>(set) };
    // SAFETY: an open object of the application.
    match unsafe { member(set, fid) } {
        Ok(member) => {
            let mut members = set.members();
            if members.iter().all(|known| known.fid != fid) {
                member.polls().add();
                members.push(member);
            }
            FI_SUCCESS
        }
        Err(code) => -code,
    }
}

pub(crate) unsafe extern "C" fn remove<L: Lock>(
    set: *mut FidPoll,
    fid: *mut Fid,
    flags: u64,
) -> c_int {
    if flags != 0 {
        return -FI_EBADFLAGS;
    }
    // SAFETY: this table belongs to poll sets of this kind of lock only.
    let mut members = unsafe { opened::<PollSet<L>>(set) }.members();
    let Some(index) = members.iter().position(|known| known.fid == fid) else {
        return -FI_ENOENT;
    };
    members.remove(index).polls().remove();
    FI_SUCCESS
}

unsafe extern "C" fn close<L: Lock>(fid: *mut Fid) -> c_int {
    // SAFETY: this table belongs to poll sets of this kind of lock only.
    let set = unsafe { opened::<PollSet<L>>(fid) };
    set.members()
        .iter()
        .for_each(|member| member.polls().remove());
    // SAFETY: it came from `hand_out`, and nothing refers to it any more.
    drop(unsafe { take_back(fid.cast::<PollSet<L>>()) });
    FI_SUCCESS
}
