// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Completion queues that belong to another provider: what completes is written to the owner's queue.
//!
//! The owner passes its queue to fi_cq_open with FI_PEER, and reads nothing from ours: it calls fi_cq_read for nothing but
//! progress, and finds the completions in its own queue. Source: fi_peer(3), fi_cq(3).

use std::ffi::{c_int, c_void};

use weft_endpoint::{Completion, Error};
use weft_fabric_sys::FiAddr as RawFiAddr;
use weft_fabric_sys::cq::{FiCqErrEntry, FiOpsCq, FidCq};
use weft_fabric_sys::errno::{FI_EINVAL, FI_ENOSYS};
use weft_fabric_sys::flags::FI_PEER;
use weft_fabric_sys::peer::{FiPeerCqContext, FidPeerCq};

use crate::cq::{self, Queue};
use crate::lock::Lock;
use crate::{errno, host, peer};

/// Completions that are taken from the endpoint crate at a time. Chosen: a few hundred bytes of stack each.
const BATCH: usize = 16;

/// The owner's queue in the context of fi_cq_open; null without FI_PEER.
///
/// # Errors
/// `FI_ENOSYS` with a library whose Peer API is another, `FI_EINVAL` for a context that is none.
///
/// # Safety
/// With FI_PEER in `flags`, `context` must be null or what that flag asks for.
pub unsafe fn owner(flags: u64, context: *const c_void) -> Result<*mut FidPeerCq, c_int> {
    if flags & FI_PEER == 0 {
        return Ok(std::ptr::null_mut());
    }
    if !peer::is_known() {
        return Err(FI_ENOSYS);
    }
    // SAFETY: the contract.
    let context = unsafe { context.cast::<FiPeerCqContext>().as_ref() };
    context
        .filter(|context| context.size >= size_of::<FiPeerCqContext>())
        .map(|context| context.cq)
        .filter(|queue| !queue.is_null())
        .ok_or(FI_EINVAL)
}

/// The table of calls.
pub fn ops<L: Lock>() -> &'static FiOpsCq {
    const {
        &FiOpsCq {
            size: size_of::<FiOpsCq>(),
            read: progress::<L>,
            readfrom: no_read_from,
            readerr: no_read_error,
            sread: no_sread,
            sreadfrom: no_sread_from,
            signal: no_signal,
            strerror: cq::strerror,
        }
    }
}

/// Makes progress and hands everything that is complete to the owner.
unsafe extern "C" fn progress<L: Lock>(queue: *mut FidCq, _: *mut c_void, _: usize) -> isize {
    // SAFETY: this table belongs to queues of this kind of lock only.
    let queue = unsafe { Queue::<L>::from_fid(queue) };
    let id = queue.id();
    loop {
        let mut batch: [Option<Completion>; BATCH] = [None; BATCH];
        let mut count = 0;
        let answer = queue.domain().with(|guarded| {
            guarded.read_queue(id, BATCH, |completion| {
                batch[count] = Some(*completion);
                count += 1;
            })
        });
        batch
            .iter()
            .flatten()
            .for_each(|completion| write(queue.owner(), completion));
        match answer {
            Ok(count) if count == BATCH => {}
            Ok(_) | Err(Error::Again) => return 0,
            Err(Error::ErrorAvailable) => write_error(queue),
            Err(error) => return -(errno::number(error) as isize),
        }
    }
}

fn write(owner: *mut FidPeerCq, completion: &Completion) {
    // SAFETY: the owner's queue outlives ours (fi_peer(3)).
    unsafe {
        ((*(*owner).owner_ops).write)(
            owner,
            completion.context as *mut c_void,
            completion.flags,
            completion.length_bytes,
            completion.address as *mut c_void,
            completion.cq_data,
            completion.tag,
            completion.source.0,
        );
    }
}

fn write_error<L: Lock>(queue: &Queue<L>) {
    let Ok(error) = queue
        .domain()
        .with(|guarded| guarded.read_error(queue.id()))
    else {
        return;
    };
    // SAFETY: an entry of numbers and pointers, for which zero is valid; the library knows all of its members, since it is
    // new enough for the Peer API; the owner's queue outlives ours (fi_peer(3)).
    unsafe {
        let mut entry: FiCqErrEntry = std::mem::zeroed();
        cq::write_error(&error, &mut entry, host::version());
        let owner = queue.owner();
        ((*(*owner).owner_ops).writeerr)(owner, &entry);
    }
}

unsafe extern "C" fn no_read_from(
    _: *mut FidCq,
    _: *mut c_void,
    _: usize,
    _: *mut RawFiAddr,
) -> isize {
    -(FI_ENOSYS as isize)
}

unsafe extern "C" fn no_read_error(_: *mut FidCq, _: *mut FiCqErrEntry, _: u64) -> isize {
    -(FI_ENOSYS as isize)
}

unsafe extern "C" fn no_sread(
    _: *mut FidCq,
    _: *mut c_void,
    _: usize,
    _: *const c_void,
    _: c_int,
) -> isize {
    -(FI_ENOSYS as isize)
}

// structure: allow arguments because libfabric's callers pass them so
unsafe extern "C" fn no_sread_from(
    _: *mut FidCq,
    _: *mut c_void,
    _: usize,
    _: *mut RawFiAddr,
    _: *const c_void,
    _: c_int,
) -> isize {
    -(FI_ENOSYS as isize)
}

unsafe extern "C" fn no_signal(_: *mut FidCq) -> c_int {
    -FI_ENOSYS
}
