// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Event queues: control events of address vectors and whatever the application writes into them.
//!
//! Opened from a fabric; av writes into them. They have a lock of their own, since they belong to
//! no domain. Source: fi_eq(3).

use std::collections::VecDeque;
use std::ffi::{c_int, c_void};
use std::sync::{Mutex, PoisonError};

use weft_fabric_sys::eq::*;
use weft_fabric_sys::errno::{
    FI_EAGAIN, FI_EAVAIL, FI_EBUSY, FI_EINVAL, FI_ENOMEM, FI_ENOSYS, FI_ETOOSMALL, FI_SUCCESS,
};
use weft_fabric_sys::fid::FidFabric;
use weft_fabric_sys::fid::{FI_CLASS_EQ, FI_GETWAIT, FI_GETWAITOBJ, FiOps, Fid};
use weft_fabric_sys::flags::{FI_PEEK, FI_WRITE};

use crate::fabric::Fabric;
use crate::lock::Unlocked;
use crate::object::{Dependents, Held, hand_out, head, no_bind, table, take_back};
use crate::tables::Tables;
use crate::wait::{Bell, Deadline};
use crate::wait_set::{Calls, Membership};

/// An entry of the queue.
#[derive(Debug)]
enum Entry {
    /// A kind of event and its bytes.
    Event(u32, Vec<u8>),
    /// Something failed later.
    Failure(Failure),
}

/// What an error entry says.
#[derive(Clone, Copy, Debug)]
pub struct Failure {
    /// The object whose operation failed.
    pub fid: *mut Fid,
    /// The operation's context.
    pub context: *mut c_void,
    /// Depends on the operation.
    pub data: u64,
    /// libfabric's number, positive.
    pub code: c_int,
}

/// An event queue.
#[repr(C)]
#[derive(Debug)]
pub struct EventQueue {
    fid: FidEq,
    fabric: Held<Fabric>,
    events: Mutex<VecDeque<Entry>>,
    /// Rings while there are events.
    bell: Bell,
    wait_object: u32,
    writable: bool,
    /// Objects that write into it.
    users: Dependents,
    /// Of the wait set that it was opened with.
    set: Membership,
}

static FID_OPS: FiOps = table(close, no_bind, control);

/// Opens an event queue.
///
/// # Safety
/// The arguments must be those of fi_eq_open(3), the fabric one of ours.
pub unsafe extern "C" fn open(
    fabric: *mut FidFabric,
    attr: *mut FiEqAttr,
    queue: *mut *mut FidEq,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the fabric is open (contract).
    let fabric = unsafe { Held::new(fabric.cast::<Fabric>()) };
    // SAFETY: null or the application's attributes; their layout is the same in all versions.
    let (wait_object, wait_set, flags) = unsafe { attr.as_ref() }
        .map_or((FI_WAIT_NONE, std::ptr::null_mut(), 0), |attr| {
            (attr.wait_obj, attr.wait_set, attr.flags)
        });
    if queue.is_null() {
        return -FI_EINVAL;
    }
    if !matches!(
        wait_object,
        FI_WAIT_NONE | FI_WAIT_UNSPEC | FI_WAIT_FD | FI_WAIT_YIELD | FI_WAIT_SET
    ) {
        return -FI_ENOSYS;
    }
    // SAFETY: with FI_WAIT_SET the set is the application's.
    let set = match unsafe { Membership::asked(wait_object, wait_set, &*fabric) } {
        Ok(set) => set,
        Err(code) => return -code,
    };
    let Some(bell) = Bell::new() else {
        return -FI_ENOMEM;
    };
    let opened = EventQueue {
        fid: FidEq {
            fid: head(FI_CLASS_EQ, context, &FID_OPS),
            ops: Unlocked::events(),
        },
        fabric,
        events: Mutex::new(VecDeque::new()),
        bell,
        wait_object,
        writable: flags & FI_WRITE != 0,
        users: Dependents::none(),
        set,
    };
    // SAFETY: the place is not null and the application's; what was stored there is open.
    let opened = unsafe { &*hand_out(opened, queue) };
    let number = opened.bell.number();
    opened.set.begin(&opened.fid.fid, CALLS, Some(number));
    FI_SUCCESS
}

impl EventQueue {
    /// Appends an event.
    pub fn push(&self, event: u32, bytes: Vec<u8>) {
        self.lock(|events| events.push_back(Entry::Event(event, bytes)));
        self.bell.raise();
    }

    /// Appends an error.
    pub fn push_failure(&self, failure: Failure) {
        self.lock(|events| events.push_back(Entry::Failure(failure)));
        self.bell.raise();
    }

    /// Takes the first entry if it is an error.
    fn take_failure(&self) -> Option<Failure> {
        self.lock(|events| {
            let &Entry::Failure(failure) = events.front()? else {
                return None;
            };
            events.pop_front();
            if events.is_empty() {
                self.bell.lower();
            }
            Some(failure)
        })
    }

    /// The objects that write into it.
    pub fn users(&self) -> &Dependents {
        &self.users
    }

    fn lock<R>(&self, work: impl FnOnce(&mut VecDeque<Entry>) -> R) -> R {
        work(&mut self.events.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Copies the first event out; with `keep` it stays. Answers its kind and how many bytes were
    /// copied.
    ///
    /// # Safety
    /// `buffer` must be writable for `length_bytes`.
    unsafe fn take(
        &self,
        buffer: *mut c_void,
        length_bytes: usize,
        keep: bool,
    ) -> Result<(u32, usize), c_int> {
        self.lock(|events| {
            let Entry::Event(event, bytes) = events.front().ok_or(FI_EAGAIN)? else {
                return Err(FI_EAVAIL);
            };
            if bytes.len() > length_bytes {
                return Err(FI_ETOOSMALL);
            }
            // SAFETY: there is room for all bytes (contract and check).
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), buffer.cast(), bytes.len()) };
            let answer = (*event, bytes.len());
            if !keep {
                events.pop_front();
            }
            if events.is_empty() {
                self.bell.lower();
            }
            Ok(answer)
        })
    }
}

/// May the application sleep on this queue's descriptor?
///
/// # Safety
/// `fid` must be an open event queue of ours.
pub unsafe fn try_wait(fid: *const Fid) -> c_int {
    // SAFETY: the contract.
    let queue = unsafe { &*fid.cast::<EventQueue>() };
    if queue.lock(|events| events.is_empty()) {
        FI_SUCCESS
    } else {
        -FI_EAGAIN
    }
}

/// What a wait set asks of an event queue, whose descriptor rings whether a sleep was announced or
/// not.
const CALLS: Calls = Calls {
    try_wait,
    has_event: |fid| {
        // SAFETY: wait sets ask open event queues.
        unsafe { try_wait(fid) != FI_SUCCESS }
    },
    wake_up: |_| {},
};

unsafe extern "C" fn close(fid: *mut Fid) -> c_int {
    let queue = fid.cast::<EventQueue>();
    // SAFETY: this table belongs to event queues only, and the application closes an object once.
    if unsafe { &*queue }.users.exist() {
        return -FI_EBUSY;
    }
    // SAFETY: it stays open until it is taken back below.
    unsafe { &*queue }.set.end(fid);
    // SAFETY: it came from `hand_out`, and nothing refers to it any more.
    drop(unsafe { take_back(queue) });
    FI_SUCCESS
}

unsafe extern "C" fn control(fid: *mut Fid, command: c_int, argument: *mut c_void) -> c_int {
    // SAFETY: this table belongs to event queues only.
    let queue = unsafe { &*fid.cast::<EventQueue>() };
    let value = match command {
        FI_GETWAIT if matches!(queue.wait_object, FI_WAIT_FD | FI_WAIT_UNSPEC | FI_WAIT_SET) => {
            queue.bell.number()
        }
        FI_GETWAITOBJ => queue.wait_object as c_int,
        _ => return -FI_ENOSYS,
    };
    if argument.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: both commands take a pointer to an int (fi_eq(3)).
    unsafe { *argument.cast::<c_int>() = value };
    FI_SUCCESS
}

pub(crate) unsafe extern "C" fn read(
    queue: *mut FidEq,
    event: *mut u32,
    buffer: *mut c_void,
    length: usize,
    flags: u64,
) -> isize {
    // SAFETY: this table belongs to event queues only; the arguments are those of fi_eq_read(3).
    match unsafe { (*queue.cast::<EventQueue>()).take(buffer, length, flags & FI_PEEK != 0) } {
        Ok((kind, count)) => {
            if !event.is_null() {
                // SAFETY: the application's to be written.
                unsafe { *event = kind };
            }
            count as isize
        }
        Err(code) => -(code as isize),
    }
}

pub(crate) unsafe extern "C" fn readerr(
    queue: *mut FidEq,
    entry: *mut FiEqErrEntry,
    _: u64,
) -> isize {
    if entry.is_null() {
        return -(FI_EINVAL as isize);
    }
    // SAFETY: this table belongs to event queues only.
    let Some(failure) = (unsafe { &*queue.cast::<EventQueue>() }).take_failure() else {
        return -(FI_EAGAIN as isize);
    };
    // SAFETY: not null, and the application's to be written.
    unsafe {
        *entry = FiEqErrEntry {
            fid: failure.fid,
            context: failure.context,
            data: failure.data,
            err: failure.code,
            prov_errno: 0,
            err_data: std::ptr::null_mut(),
            err_data_size: 0,
        };
    }
    size_of::<FiEqErrEntry>() as isize
}

pub(crate) unsafe extern "C" fn write(
    queue: *mut FidEq,
    event: u32,
    buffer: *const c_void,
    length: usize,
    _: u64,
) -> isize {
    // SAFETY: this table belongs to event queues only.
    let queue = unsafe { &*queue.cast::<EventQueue>() };
    if !queue.writable || (buffer.is_null() && length > 0) {
        return -(FI_EINVAL as isize);
    }
    let mut bytes = vec![0u8; length];
    // SAFETY: the application's buffer is readable for its length (fi_eq_write(3)); no bytes are
    // read from null.
    unsafe { std::ptr::copy_nonoverlapping(buffer.cast(), bytes.as_mut_ptr(), length) };
    queue.push(event, bytes);
    length as isize
}

// structure: allow arguments because libfabric's callers pass them so
pub(crate) unsafe extern "C" fn sread(
    queue: *mut FidEq,
    event: *mut u32,
    buffer: *mut c_void,
    length: usize,
    timeout_ms: c_int,
    flags: u64,
) -> isize {
    let deadline = Deadline::after_ms(timeout_ms);
    loop {
        // SAFETY: the arguments are those of fi_eq_sread(3), a superset of fi_eq_read's.
        let answer = unsafe { read(queue, event, buffer, length, flags) };
        if answer != -(FI_EAGAIN as isize) || deadline.is_over() {
            return answer;
        }
        // SAFETY: this table belongs to event queues only.
        weft_os::sleep::wait_readable(
            unsafe { &*queue.cast::<EventQueue>() }.bell.number(),
            deadline.left_ms(-1),
        );
    }
}
