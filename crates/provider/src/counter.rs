// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Counters of completed operations: read, add, set, wait.
//!
//! Opened from a domain; calls the endpoint crate's counters. Source: fi_cntr(3).

use std::ffi::{c_int, c_void};

use weft_endpoint::{CounterId, Error, Waitable};
use weft_fabric_sys::counter::{FI_CNTR_EVENTS_COMP, FiCntrAttr, FidCntr};
use weft_fabric_sys::eq::FI_WAIT_NONE;
use weft_fabric_sys::errno::{FI_EAVAIL, FI_EBUSY, FI_EINVAL, FI_ENOSYS, FI_ETIMEDOUT, FI_SUCCESS};
use weft_fabric_sys::fid::FidDomain;
use weft_fabric_sys::fid::{FI_CLASS_CNTR, Fid};

use crate::domain::Domain;
use crate::errno;
use crate::lock::{Lock, Locked, Unlocked};
use crate::object::{Dependents, Held, hand_out, head, no_bind, opened, table, take_back};
use crate::routes::Guarded;
use crate::wait::{Deadline, Pace};
use crate::wait_set::Membership;
use crate::waiter::{self, WAITER_OFFSET, Waited, Waiter};

/// A counter.
#[repr(C)]
#[derive(Debug)]
pub struct Counter<L> {
    fid: FidCntr,
    /// How its readers sleep. Second, so that it can be found without knowing the kind of lock.
    pub(crate) waiter: Waiter,
    domain: Held<Domain<L>>,
    id: CounterId,
    /// Of the wait set that it was opened with.
    set: Membership,
    /// Poll sets that ask it.
    polls: Dependents,
}

// fi_trywait finds the waiter of a counter whose kind of lock it does not know.
const _: () = assert!(std::mem::offset_of!(Counter<Locked>, waiter) == WAITER_OFFSET);
const _: () = assert!(std::mem::offset_of!(Counter<Unlocked>, waiter) == WAITER_OFFSET);

/// Opens a counter.
///
/// # Safety
/// The arguments must be those of fi_cntr_open(3), the domain one of ours with this kind of lock.
pub unsafe extern "C" fn open<L: Lock>(
    domain: *mut FidDomain,
    attr: *mut FiCntrAttr,
    counter: *mut *mut FidCntr,
    context: *mut c_void,
) -> c_int {
    // SAFETY: null or the application's attributes, of which only members that every version has
    // are read.
    let (events, wait_object, wait_set, flags) = if attr.is_null() {
        (FI_CNTR_EVENTS_COMP, FI_WAIT_NONE, std::ptr::null_mut(), 0)
    } else {
        // SAFETY: not null here, and the application's; these members every version has.
        unsafe {
            (
                (*attr).events,
                (*attr).wait_obj,
                (*attr).wait_set,
                (*attr).flags,
            )
        }
    };
    if counter.is_null() {
        return -FI_EINVAL;
    }
    // No flag is known; FI_PEER is one, and counters of other providers are not written.
    if events != FI_CNTR_EVENTS_COMP || flags != 0 {
        return -FI_ENOSYS;
    }
    let waiter = match Waiter::new(wait_object, waiter::calls::<L, Counter<L>>()) {
        Ok(waiter) => waiter,
        Err(code) => return -code,
    };
    // SAFETY: the contract.
    let domain = unsafe { Held::new(domain.cast::<Domain<L>>()) };
    // SAFETY: with FI_WAIT_SET the set is the application's.
    let set = match unsafe { Membership::asked(wait_object, wait_set, domain.fabric()) } {
        Ok(set) => set,
        Err(code) => return -code,
    };
    let fid = FidCntr {
        fid: head(
            FI_CLASS_CNTR,
            context,
            const { &table(close::<L>, no_bind, control::<L>) },
        ),
        ops: L::counter(),
    };
    let id = domain.with(|guarded| guarded.counters().open());
    waiter.set_alarm(&domain, id.into());
    let opened = Counter {
        fid,
        waiter,
        domain,
        id,
        set,
        polls: Dependents::none(),
    };
    // SAFETY: the place is not null and the application's; what was stored there is open.
    let opened = unsafe { &*hand_out(opened, counter) };
    opened.waiter.join(&opened.set, &opened.fid.fid);
    FI_SUCCESS
}

impl<L: Lock> Counter<L> {
    /// Its name in the endpoint crate.
    pub fn id(&self) -> CounterId {
        self.id
    }

    /// The poll sets that ask it.
    pub fn polls(&self) -> &Dependents {
        &self.polls
    }

    /// The domain it belongs to.
    pub fn domain(&self) -> &Domain<L> {
        &self.domain
    }

    /// Ends a sleep that this thread announced.
    fn wake_up(&self) {
        if self.waiter.can_sleep() {
            self.waiter.wake_up(self.domain(), self.id.into());
        }
    }

    #[inline(always)]
    fn with<R>(&self, work: impl FnOnce(&mut Guarded, CounterId) -> R) -> R {
        self.domain().with(|guarded| work(guarded, self.id))
    }

    fn wait(&self, threshold: u64, deadline: Deadline) -> c_int {
        self.wake_up();
        let errors_before = self.with(|guarded, id| guarded.counters().read_errors(id));
        let mut pace = Pace::default();
        loop {
            match self.with(|guarded, id| guarded.counters().read(id)) {
                Ok(value) if value >= threshold => return FI_SUCCESS,
                Ok(_) => {}
                Err(error) => return -errno::number(error),
            }
            if self.with(|guarded, id| guarded.counters().read_errors(id)) != errors_before {
                return -FI_EAVAIL;
            }
            if deadline.is_over() {
                return -FI_ETIMEDOUT;
            }
            let on = self.id.into();
            self.waiter.pause(self.domain(), on, deadline, &mut pace);
        }
    }
}

impl<L: Lock> Waited<L> for Counter<L> {
    fn waiter(&self) -> &Waiter {
        &self.waiter
    }

    fn domain(&self) -> &Domain<L> {
        &self.domain
    }

    fn waitable(&self) -> Waitable {
        self.id.into()
    }
}

pub(crate) unsafe extern "C" fn read<L: Lock>(counter: *mut FidCntr) -> u64 {
    // SAFETY: this table belongs to counters of this kind of lock only.
    let counter = unsafe { opened::<Counter<L>>(counter) };
    counter.wake_up();
    counter
        .with(|guarded, id| guarded.counters().read(id))
        .unwrap_or(0)
}

pub(crate) unsafe extern "C" fn read_errors<L: Lock>(counter: *mut FidCntr) -> u64 {
    // SAFETY: this table belongs to counters of this kind of lock only.
    unsafe { opened::<Counter<L>>(counter) }
        .with(|guarded, id| guarded.counters().read_errors(id))
        .unwrap_or(0)
}

/// # Safety
/// `counter` must be an open counter of this kind of lock.
unsafe fn change<L: Lock>(
    counter: *mut FidCntr,
    work: impl FnOnce(&mut Guarded, CounterId) -> Result<(), Error>,
) -> c_int {
    // SAFETY: the contract.
    errno::code(unsafe { opened::<Counter<L>>(counter) }.with(work))
}

pub(crate) unsafe extern "C" fn add<L: Lock>(counter: *mut FidCntr, value: u64) -> c_int {
    // SAFETY: this table belongs to counters of this kind of lock only.
    unsafe { change::<L>(counter, |guarded, id| guarded.counters().add(id, value, 0)) }
}

pub(crate) unsafe extern "C" fn add_errors<L: Lock>(counter: *mut FidCntr, value: u64) -> c_int {
    // SAFETY: this table belongs to counters of this kind of lock only.
    unsafe { change::<L>(counter, |guarded, id| guarded.counters().add(id, 0, value)) }
}

pub(crate) unsafe extern "C" fn set<L: Lock>(counter: *mut FidCntr, value: u64) -> c_int {
    // SAFETY: this table belongs to counters of this kind of lock only.
    unsafe { change::<L>(counter, |guarded, id| guarded.counters().set(id, value)) }
}

pub(crate) unsafe extern "C" fn set_errors<L: Lock>(counter: *mut FidCntr, value: u64) -> c_int {
    // SAFETY: this table belongs to counters of this kind of lock only.
    unsafe {
        change::<L>(counter, |guarded, id| {
            guarded.counters().set_errors(id, value)
        })
    }
}

pub(crate) unsafe extern "C" fn wait<L: Lock>(
    counter: *mut FidCntr,
    threshold: u64,
    timeout_ms: c_int,
) -> c_int {
    // SAFETY: this table belongs to counters of this kind of lock only.
    unsafe { opened::<Counter<L>>(counter) }.wait(threshold, Deadline::after_ms(timeout_ms))
}

unsafe extern "C" fn control<L: Lock>(
    fid: *mut Fid,
    command: c_int,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: this table belongs to counters of this kind of lock only; the arguments are
    // fi_control's.
    unsafe { opened::<Counter<L>>(fid).waiter.control(command, argument) }
}

unsafe extern "C" fn close<L: Lock>(fid: *mut Fid) -> c_int {
    // SAFETY: this table belongs to counters of this kind of lock only.
    let counter = unsafe { opened::<Counter<L>>(fid) };
    if counter.polls.exist() {
        return -FI_EBUSY;
    }
    let closed = errno::code(counter.with(|guarded, id| guarded.counters().close(id)));
    if closed == FI_SUCCESS {
        counter.set.end(fid);
        // SAFETY: it came from `hand_out`, and nothing refers to it any more.
        drop(unsafe { take_back(fid.cast::<Counter<L>>()) });
    }
    closed
}
