// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sleeping on a completion queue: fi_cq_sread, fi_cq_signal, the descriptor of FI_WAIT_FD, fi_trywait.
//!
//! Called through cq's tables and by fabric. A queue's descriptor is a set that holds a bell, for fi_cq_signal, and the
//! descriptors of the transports bound to the queue, which come when endpoints are enabled. Before a sleep the endpoint
//! crate is told, so that senders ring; the next read tells it that the sleep is over. Source: fi_cq(3), fi_poll(3).

use std::ffi::{c_int, c_void};
use std::os::fd::{BorrowedFd, RawFd};
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use weft_endpoint::Error;
use weft_fabric_sys::FiAddr as RawFiAddr;
use weft_fabric_sys::cq::FidCq;
use weft_fabric_sys::eq::{FI_WAIT_FD, FI_WAIT_NONE, FI_WAIT_UNSPEC, FI_WAIT_YIELD};
use weft_fabric_sys::errno::{FI_EAGAIN, FI_EINVAL, FI_ENODATA, FI_ENOMEM, FI_ENOSYS, FI_SUCCESS};
use weft_fabric_sys::fid::{FI_GETWAIT, FI_GETWAITOBJ, Fid};
use weft_os::sleep::{WaitSet, wait_readable};

use crate::cq::{Entry, Queue};
use crate::errno;
use crate::lock::Lock;
use crate::wait::{Bell, Deadline, Pace};

/// How the readers of one queue sleep.
#[derive(Debug)]
#[repr(C)]
pub struct Waiter {
    /// Asks whether one may sleep; knows the queue's kind of lock.
    try_wait: unsafe fn(*const Fid) -> c_int,
    wait_object: u32,
    threshold: bool,
    sleeping: Option<Sleeping>,
}

#[derive(Debug)]
struct Sleeping {
    set: WaitSet,
    /// Rings for fi_cq_signal.
    bell: Bell,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The endpoint crate knows, from fi_trywait, of a sleep that is not over.
    announced: bool,
    /// fi_cq_signal was called and nobody has heard it.
    signalled: bool,
    /// Every transport bound to the queue is in the set.
    all_wake: bool,
}

impl Waiter {
    /// For one kind of wait object.
    ///
    /// # Errors
    /// `FI_ENOSYS` if it is not offered, `FI_ENOMEM` if the system refuses descriptors.
    pub fn new(
        wait_object: u32,
        threshold: bool,
        try_wait: unsafe fn(*const Fid) -> c_int,
    ) -> Result<Self, c_int> {
        let sleeping = match wait_object {
            FI_WAIT_NONE | FI_WAIT_YIELD => None,
            FI_WAIT_UNSPEC | FI_WAIT_FD => Some(Sleeping::new().ok_or(FI_ENOMEM)?),
            _ => return Err(FI_ENOSYS),
        };
        Ok(Self {
            try_wait,
            wait_object,
            threshold,
            sleeping,
        })
    }

    /// Whether a sleep may have been announced. Fast path.
    #[inline(always)]
    pub fn can_sleep(&self) -> bool {
        self.sleeping.is_some()
    }

    /// Ends the sleep that fi_trywait announced, if there is one.
    #[cold]
    pub fn wake_up<L: Lock>(&self, queue: &Queue<L>) {
        let announced = |sleeping: &Sleeping| std::mem::take(&mut sleeping.state().announced);
        if self.sleeping.as_ref().is_some_and(announced) {
            end_sleep(queue);
        }
    }

    /// Takes the transports of a newly enabled endpoint into the set.
    pub fn learn_transports<L: Lock>(&self, queue: &Queue<L>) {
        let Some(sleeping) = &self.sleeping else {
            return;
        };
        let all = queue
            .domain()
            .with(|guarded| guarded.wait_fds(queue.id(), |descriptor| sleeping.add(descriptor)));
        // A transport without a descriptor cannot wake a sleeper, so nobody may sleep.
        sleeping.state().all_wake = all.is_ok();
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
}

impl Sleeping {
    fn new() -> Option<Self> {
        let (set, bell) = (WaitSet::new().ok()?, Bell::new()?);
        set.add(bell.as_fd()).ok()?;
        let state = Mutex::default();
        Some(Self { set, bell, state })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, descriptor: RawFd) {
        // SAFETY: the transport keeps its descriptor open while its endpoint is, and the queue cannot close before.
        let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
        // It fails only if the descriptor is there already. A closed one leaves the set by itself.
        let _ = self.set.add(borrowed);
    }

    /// Whether fi_cq_signal was called since the last time this was asked.
    fn take_signal(&self) -> bool {
        std::mem::take(&mut self.state().signalled) && self.bell.lower()
    }
}

/// Announces a sleep; false, and none is announced, if there is something to do first.
fn begin_sleep<L: Lock>(queue: &Queue<L>) -> bool {
    queue
        .domain()
        .with(|guarded| guarded.before_sleep(queue.id()))
}

fn end_sleep<L: Lock>(queue: &Queue<L>) {
    queue
        .domain()
        .with(|guarded| guarded.after_sleep(queue.id()));
}

/// May the application sleep on this queue's descriptor? For fi_trywait, which does not know the kind of lock.
///
/// # Safety
/// `fid` must be an open completion queue of ours.
pub unsafe fn try_wait(fid: *const Fid) -> c_int {
    // SAFETY: a queue begins with its fid and its waiter, whatever its kind of lock.
    unsafe {
        let waiter = fid.cast::<FidCq>().add(1).cast::<Waiter>();
        ((*waiter).try_wait)(fid)
    }
}

/// The same for one kind of lock.
///
/// # Safety
/// `fid` must be an open completion queue of this kind of lock.
pub unsafe fn try_wait_queue<L: Lock>(fid: *const Fid) -> c_int {
    // SAFETY: the contract.
    let queue = unsafe { Queue::<L>::from_fid(fid.cast()) };
    let Some(sleeping) = &queue.waiter.sleeping else {
        return -FI_ENOSYS;
    };
    queue.waiter.wake_up(queue);
    if !begin_sleep(queue) {
        return -FI_EAGAIN;
    }
    sleeping.state().announced = true;
    FI_SUCCESS
}

/// `fi_cq_sread`.
///
/// # Safety
/// The arguments must be those of fi_cq_sread(3), the queue of this kind of lock and format.
pub unsafe extern "C" fn read<L: Lock, E: Entry>(
    queue: *mut FidCq,
    entries: *mut c_void,
    count: usize,
    condition: *const c_void,
    timeout_ms: c_int,
) -> isize {
    // SAFETY: the contract.
    unsafe {
        read_from::<L, E>(
            queue,
            entries,
            count,
            ptr::null_mut(),
            condition,
            timeout_ms,
        )
    }
}

/// `fi_cq_sreadfrom`.
///
/// # Safety
/// The arguments must be those of fi_cq_sreadfrom(3), the queue of this kind of lock and format.
// structure: allow arguments because libfabric's callers pass them so
pub unsafe extern "C" fn read_from<L: Lock, E: Entry>(
    queue: *mut FidCq,
    entries: *mut c_void,
    count: usize,
    sources: *mut RawFiAddr,
    condition: *const c_void,
    timeout_ms: c_int,
) -> isize {
    // SAFETY: the contract.
    let queue = unsafe { Queue::<L>::from_fid(queue) };
    if queue.waiter.wait_object == FI_WAIT_NONE {
        return -(FI_ENOSYS as isize);
    }
    let wanted = if queue.waiter.threshold {
        (condition as usize).clamp(1, count.max(1))
    } else {
        1
    };
    let room = Room {
        entries: entries.cast::<E>(),
        sources,
        count,
    };
    // SAFETY: the contract.
    errno::count_code(unsafe { wait_for(queue, &room, wanted, Deadline::after_ms(timeout_ms)) })
}

/// Where entries go.
struct Room<E> {
    entries: *mut E,
    sources: *mut RawFiAddr,
    count: usize,
}

/// Reads until `wanted` entries are there, an error is next, the queue is signalled, or the time is over.
///
/// # Safety
/// The room must be writable as in [`Queue::read`].
unsafe fn wait_for<L: Lock, E: Entry>(
    queue: &Queue<L>,
    room: &Room<E>,
    wanted: usize,
    deadline: Deadline,
) -> Result<usize, Error> {
    let mut done = 0;
    let mut pace = Pace::default();
    loop {
        let sources = if room.sources.is_null() {
            room.sources
        } else {
            room.sources.wrapping_add(done)
        };
        // SAFETY: what is left of the room is writable (contract).
        let answer =
            unsafe { queue.read(room.entries.wrapping_add(done), room.count - done, sources) };
        match answer {
            Ok(count) => done += count,
            Err(Error::Again) => {}
            Err(error) => return if done > 0 { Ok(done) } else { Err(error) },
        }
        if done >= wanted {
            return Ok(done);
        }
        let signalled = queue
            .waiter
            .sleeping
            .as_ref()
            .is_some_and(Sleeping::take_signal);
        if signalled || deadline.is_over() {
            return if done > 0 {
                Ok(done)
            } else {
                Err(Error::Again)
            };
        }
        pause(queue, deadline, &mut pace);
    }
}

/// Longest sleep in one piece, milliseconds. Chosen: the death of a remote must be seen within a second.
const LONGEST_SLEEP_MS: i32 = 200;

fn pause<L: Lock>(queue: &Queue<L>, deadline: Deadline, pace: &mut Pace) {
    match &queue.waiter.sleeping {
        Some(sleeping) if pace.is_exhausted() && sleeping.state().all_wake => {
            if begin_sleep(queue) {
                wait_readable(
                    sleeping.set.descriptor(),
                    deadline.left_ms(LONGEST_SLEEP_MS),
                );
                end_sleep(queue);
            }
        }
        _ => pace.pause(),
    }
}

/// `fi_cq_signal`: wakes a reader.
///
/// # Safety
/// `queue` must be an open completion queue of this kind of lock.
pub unsafe extern "C" fn signal<L: Lock>(queue: *mut FidCq) -> c_int {
    // SAFETY: the contract.
    match &unsafe { Queue::<L>::from_fid(queue) }.waiter.sleeping {
        Some(sleeping) => {
            sleeping.bell.raise();
            sleeping.state().signalled = true;
            FI_SUCCESS
        }
        None => -FI_ENOSYS,
    }
}
