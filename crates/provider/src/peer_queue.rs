// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Completion queues that belong to another provider: what completes is written to the owner's
//! queue.
//!
//! The owner passes its queue to fi_cq_open with FI_PEER, and reads nothing from ours: it calls
//! fi_cq_read for nothing but progress, and finds the completions in its own queue. Source:
//! fi_peer(3), fi_cq(3).

use std::ffi::c_void;

use weft_endpoint::{Completion, Error};
use weft_fabric_sys::cq::{FiCqErrEntry, FidCq};
use weft_fabric_sys::errno::FI_EAGAIN;
use weft_fabric_sys::peer::FidPeerCq;

use crate::cq::{self, Queue};
use crate::lock::Lock;
use crate::object::opened;
use crate::{errno, host, idle_hook};

/// Completions that are taken from the endpoint crate at a time. Chosen: a few hundred bytes of
/// stack each.
const BATCH: usize = 16;

/// Makes progress and hands everything that is complete to the owner.
pub(crate) unsafe extern "C" fn progress<L: Lock>(
    queue: *mut FidCq,
    _: *mut c_void,
    _: usize,
) -> isize {
    // SAFETY: this table belongs to queues of this kind of lock only.
    let queue = unsafe { opened::<Queue<L>>(queue) };
    let id = queue.id();
    loop {
        let mut batch: [Option<Completion>; BATCH] = [None; BATCH];
        let mut count = 0;
        let answer = queue.domain().with(|guarded| {
            guarded.queues().read(id, BATCH, |completion| {
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
            Ok(_) => return idle_hook::unless_idle(&queue.waiter, 0),
            Err(Error::Again) => {
                idle_hook::unless_idle(&queue.waiter, -(FI_EAGAIN as isize));
                return 0;
            }
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
        .with(|guarded| guarded.queues().read_error(queue.id()))
    else {
        return;
    };
    // SAFETY: an entry of numbers and pointers, for which zero is valid; the library knows all of
    // its members, since it is new enough for the Peer API; the owner's queue outlives ours
    // (fi_peer(3)).
    unsafe {
        let mut entry: FiCqErrEntry = std::mem::zeroed();
        cq::write_error(&error, &mut entry, host::version());
        let owner = queue.owner();
        ((*(*owner).owner_ops).writeerr)(owner, &entry);
    }
}
