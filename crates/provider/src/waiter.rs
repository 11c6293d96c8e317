// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How the readers of one completion queue or counter sleep.
//!
//! Used by cq_wait and counter, and by fabric for fi_trywait. Their descriptor is a set that holds
//! a bell and the descriptors of the transports concerned, which come when endpoints are enabled.
//! Before a sleep the endpoint crate is told, so that senders ring, and so that the bell rings for
//! what another thread brings; the sleeper's next read tells it that the sleep is over. Source:
//! fi_cq(3), fi_cntr(3), fi_poll(3).

use std::ffi::{c_int, c_void};
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use weft_endpoint::Waitable;
use weft_fabric_sys::eq::{FI_WAIT_FD, FI_WAIT_NONE, FI_WAIT_SET, FI_WAIT_UNSPEC, FI_WAIT_YIELD};
use weft_fabric_sys::errno::{FI_EAGAIN, FI_EINVAL, FI_ENODATA, FI_ENOMEM, FI_ENOSYS, FI_SUCCESS};
use weft_fabric_sys::fid::{FI_GETWAIT, FI_GETWAITOBJ, Fid};
use weft_os::sleep::{WaitSet, wait_readable};

use crate::domain::Domain;
use crate::lock::Lock;
use crate::object::opened;
use crate::wait::{Bell, Deadline, LONGEST_SLEEP_MS, Pace};
use crate::wait_set::{Calls, Membership};

/// How the readers of one object sleep.
#[derive(Debug)]
#[repr(C)]
pub struct Waiter {
    /// What callers that do not know the object's kind of lock need.
    calls: Calls,
    wait_object: u32,
    state: Mutex<State>,
    sleeping: Option<Sleeping>,
}

#[derive(Debug)]
struct Sleeping {
    set: WaitSet,
    /// Rings for fi_cq_signal and for what other threads bring.
    bell: Arc<Bell>,
}

#[derive(Debug, Default)]
struct State {
    /// The thread that announced a sleep by fi_trywait, while that sleep is not over.
    announced: Option<ThreadId>,
    /// fi_cq_signal was called, and no reader has seen this yet.
    signalled: bool,
    /// Every transport concerned is in the set.
    all_wake: bool,
}

impl Waiter {
    /// For one kind of wait object.
    ///
    /// # Errors
    /// `FI_ENOSYS` if it is not offered, `FI_ENOMEM` if the system refuses descriptors.
    pub fn new(wait_object: u32, calls: Calls) -> Result<Self, c_int> {
        let sleeping = match wait_object {
            FI_WAIT_NONE | FI_WAIT_YIELD => None,
            FI_WAIT_UNSPEC | FI_WAIT_FD | FI_WAIT_SET => Some(Sleeping::new().ok_or(FI_ENOMEM)?),
            _ => return Err(FI_ENOSYS),
        };
        Ok(Self {
            calls,
            wait_object,
            state: Mutex::default(),
            sleeping,
        })
    }

    /// Has the endpoint crate ring the bell. Setup.
    pub fn set_alarm<L: Lock>(&self, domain: &Domain<L>, on: Waitable) {
        if let Some(sleeping) = &self.sleeping {
            let bell = Arc::clone(&sleeping.bell);
            // It fails only for an object that is not there.
            let _ = domain.with(|guarded| {
                guarded
                    .waiting(on)
                    .set_alarm(Box::new(move || bell.raise()))
            });
        }
    }

    /// Whether the application may block at all.
    pub fn may_block(&self) -> bool {
        self.wait_object != FI_WAIT_NONE
    }

    /// Whether a sleep may have been announced. Fast path.
    #[inline(always)]
    pub fn can_sleep(&self) -> bool {
        self.sleeping.is_some()
    }

    /// Ends the sleep that this thread announced by fi_trywait, if it announced one. Another
    /// thread's sleep goes on, and the bell wakes it.
    #[cold]
    pub fn wake_up<L: Lock>(&self, domain: &Domain<L>, on: Waitable) {
        let ours = |state: &mut State| state.announced == Some(thread::current().id());
        self.end_announced(domain, on, ours);
    }

    fn end_announced<L: Lock>(
        &self,
        domain: &Domain<L>,
        on: Waitable,
        is_meant: impl FnOnce(&mut State) -> bool,
    ) {
        let mut state = self.state();
        if state.announced.is_some() && is_meant(&mut state) {
            state.announced = None;
            drop(state);
            self.end_sleep(domain, on);
        }
    }

    /// Makes the object a member of the wait set that it was opened with. Setup.
    pub fn join(&self, set: &Membership, fid: *const Fid) {
        let descriptor = self
            .sleeping
            .as_ref()
            .map(|sleeping| sleeping.set.descriptor());
        set.begin(fid, self.calls, descriptor);
    }

    /// Whether there is something to read, or somebody signalled. Makes progress first.
    pub fn has_event<L: Lock>(&self, domain: &Domain<L>, on: Waitable) -> bool {
        self.take_signal() || domain.with(|guarded| guarded.waiting(on).has_event()) == Ok(true)
    }

    /// Takes the transports of a newly enabled endpoint into the set.
    pub fn learn_transports<L: Lock>(&self, domain: &Domain<L>, on: Waitable) {
        let Some(sleeping) = &self.sleeping else {
            return;
        };
        let all = domain.with(|guarded| {
            guarded
                .waiting(on)
                .fds(|descriptor| sleeping.add(descriptor))
        });
        // A transport without a descriptor cannot wake a sleeper, so nobody may sleep.
        self.state().all_wake = all.is_ok();
    }

    /// Commands of fi_control.
    ///
    /// # Safety
    /// `argument` must be what the command takes (fi_cq(3)).
    pub unsafe fn control(&self, command: c_int, argument: *mut c_void) -> c_int {
        let value = match (command, &self.sleeping) {
            (FI_GETWAIT, Some(sleeping)) => sleeping.set.descriptor(),
            (FI_GETWAIT, None) => return -FI_ENODATA,
            (FI_GETWAITOBJ, _) => self.wait_object as c_int,
            _ => return -FI_ENOSYS,
        };
        if argument.is_null() {
            return -FI_EINVAL;
        }
        // SAFETY: both commands take a pointer to an int or an enumeration.
        unsafe { *argument.cast::<c_int>() = value };
        FI_SUCCESS
    }

    /// May the application sleep on the descriptor?
    pub fn try_wait<L: Lock>(&self, domain: &Domain<L>, on: Waitable) -> c_int {
        if self.sleeping.is_none() {
            return -FI_ENOSYS;
        }
        self.end_announced(domain, on, |_| true);
        if self.take_signal() || !domain.with(|guarded| guarded.waiting(on).before_sleep()) {
            return -FI_EAGAIN;
        }
        self.state().announced = Some(thread::current().id());
        FI_SUCCESS
    }

    /// Sleeps for a while, or returns soon where sleeping is not possible. The caller then reads
    /// again.
    pub fn pause<L: Lock>(
        &self,
        domain: &Domain<L>,
        on: Waitable,
        deadline: Deadline,
        pace: &mut Pace,
    ) {
        match &self.sleeping {
            Some(sleeping) if pace.is_exhausted() && self.state().all_wake => {
                if domain.with(|guarded| guarded.waiting(on).before_sleep()) {
                    wait_readable(
                        sleeping.set.descriptor(),
                        deadline.left_ms(LONGEST_SLEEP_MS),
                    );
                    self.end_sleep(domain, on);
                }
            }
            _ => pace.pause(),
        }
    }

    fn end_sleep<L: Lock>(&self, domain: &Domain<L>, on: Waitable) {
        domain.with(|guarded| {
            // Under the lock: a ring for the next sleeper cannot be taken for one of the last.
            if let (true, Some(sleeping)) = (guarded.waiting(on).after_sleep(), &self.sleeping) {
                sleeping.bell.lower();
            }
        });
    }

    /// Wakes a reader; `FI_ENOSYS` if none can sleep.
    pub fn signal(&self) -> c_int {
        if !self.may_block() {
            return -FI_ENOSYS;
        }
        self.state().signalled = true;
        if let Some(sleeping) = &self.sleeping {
            sleeping.bell.raise();
        }
        FI_SUCCESS
    }

    /// Whether fi_cq_signal was called since the last time this was asked.
    pub fn take_signal(&self) -> bool {
        std::mem::take(&mut self.state().signalled)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A completion queue or a counter, whose readers sleep by a waiter.
pub trait Waited<L: Lock> {
    /// How they sleep.
    fn waiter(&self) -> &Waiter;
    /// The domain it belongs to.
    fn domain(&self) -> &Domain<L>;
    /// Its name in the endpoint crate.
    fn waitable(&self) -> Waitable;
}

/// What a wait set and fi_trywait ask of an object, of whatever kind and kind of lock.
pub const fn calls<L: Lock, T: Waited<L>>() -> Calls {
    Calls {
        try_wait: try_wait_on::<L, T>,
        has_event: has_event_of::<L, T>,
        wake_up: wake_up_from::<L, T>,
    }
}

/// # Safety
/// `fid` must be an open `T`.
unsafe fn try_wait_on<L: Lock, T: Waited<L>>(fid: *const Fid) -> c_int {
    // SAFETY: the contract.
    let object = unsafe { opened::<T>(fid) };
    object.waiter().try_wait(object.domain(), object.waitable())
}

/// # Safety
/// As [`try_wait_on`].
unsafe fn has_event_of<L: Lock, T: Waited<L>>(fid: *const Fid) -> bool {
    // SAFETY: the contract.
    let object = unsafe { opened::<T>(fid) };
    object
        .waiter()
        .has_event(object.domain(), object.waitable())
}

/// # Safety
/// As [`try_wait_on`].
unsafe fn wake_up_from<L: Lock, T: Waited<L>>(fid: *const Fid) {
    // SAFETY: the contract.
    let object = unsafe { opened::<T>(fid) };
    object.waiter().wake_up(object.domain(), object.waitable());
}

impl Sleeping {
    fn new() -> Option<Self> {
        let (set, bell) = (WaitSet::new().ok()?, Arc::new(Bell::new()?));
        set.add(bell.as_fd()).ok()?;
        Some(Self { set, bell })
    }

    fn add(&self, descriptor: RawFd) {
        // SAFETY: the transport keeps its descriptor open while its endpoint is, and the object
        // cannot close before.
        let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
        // It fails only if the descriptor is there already. A closed one leaves the set by itself.
        let _ = self.set.add(borrowed);
    }
}

/// May the application sleep on an object's descriptor? For fi_trywait, which does not know the
/// kind of lock.
///
/// # Safety
/// `fid` must be an open completion queue or counter of ours.
pub unsafe fn try_wait(fid: *const Fid) -> c_int {
    // SAFETY: both begin with their fid, of the same size, and their waiter, whatever their kind of
    // lock.
    unsafe {
        let waiter = fid.byte_add(WAITER_OFFSET).cast::<Waiter>();
        ((*waiter).calls.try_wait)(fid)
    }
}

/// Where the waiter lies in a queue and in a counter: behind C's part, which is the same in size
/// for both.
pub const WAITER_OFFSET: usize = size_of::<weft_fabric_sys::cq::FidCq>();
const _: () = assert!(WAITER_OFFSET == size_of::<weft_fabric_sys::counter::FidCntr>());
