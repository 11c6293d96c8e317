// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Blocking reads of a completion queue: fi_cq_sread, fi_cq_sreadfrom, fi_cq_signal.
//!
//! Called through cq's tables; sleeps by waiter. Source: fi_cq(3).

use std::ffi::{c_int, c_void};
use std::ptr;

use weft_endpoint::Error;
use weft_fabric_sys::FiAddr as RawFiAddr;
use weft_fabric_sys::cq::FidCq;
use weft_fabric_sys::errno::FI_ENOSYS;

use crate::cq::Queue;
use crate::entry::Entry;
use crate::errno;
use crate::lock::Lock;
use crate::object::opened;
use crate::wait::{Deadline, Pace};

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
    let queue = unsafe { opened::<Queue<L>>(queue) };
    if !queue.waiter.may_block() {
        return -(FI_ENOSYS as isize);
    }
    let wanted = if queue.waits_for_count() {
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

/// Reads until `wanted` entries are there, an error is next, the queue is signalled, or the time is
/// over.
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
        if queue.waiter.take_signal() || deadline.is_over() {
            return if done > 0 {
                Ok(done)
            } else {
                Err(Error::Again)
            };
        }
        let on = queue.id().into();
        queue.waiter.pause(queue.domain(), on, deadline, &mut pace);
    }
}

/// `fi_cq_signal`: wakes a reader.
///
/// # Safety
/// `queue` must be an open completion queue of this kind of lock.
pub unsafe extern "C" fn signal<L: Lock>(queue: *mut FidCq) -> c_int {
    // SAFETY: the contract.
    unsafe { opened::<Queue<L>>(queue) }.waiter.signal()
}
