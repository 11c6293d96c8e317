// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Completion queues: reading entries in the four formats, reading errors.
//!
//! Opened from a domain; calls the endpoint crate's queues. Blocking reads are in cq_wait. The
//! tables of functions exist once for each kind of lock and each format. Source: fi_cq(3).

use std::ffi::{c_int, c_void};
use std::ptr;

use weft_endpoint::{Error, ErrorCompletion, FiAddr, QueueId, QueueSettings, Waitable};
use weft_fabric_sys::FiAddr as RawFiAddr;
use weft_fabric_sys::cq::*;
use weft_fabric_sys::errno::{FI_EAGAIN, FI_EBUSY, FI_EINVAL, FI_ENOSYS, FI_SUCCESS};
use weft_fabric_sys::fid::FidDomain;
use weft_fabric_sys::fid::{FI_CLASS_CQ, Fid};
use weft_fabric_sys::peer::FidPeerCq;
use weft_fabric_sys::version::{VERSION_ERR_DATA_SIZE, VERSION_ERR_SRC_ADDR};
use weft_memory::CqBuffer;

use crate::domain::Domain;
use crate::entry::Entry;
use crate::lock::{Lock, Locked, Unlocked};
use crate::object::{Dependents, Held, hand_out, head, no_bind, opened, table, take_back};
use crate::wait_set::Membership;
use crate::waiter::{self, WAITER_OFFSET, Waited, Waiter};
use crate::{errno, idle_hook, peer};

/// A completion queue.
#[repr(C)]
#[derive(Debug)]
pub struct Queue<L> {
    fid: FidCq,
    /// How its readers sleep. Second, so that it can be found without knowing the kind of lock.
    pub(crate) waiter: Waiter,
    domain: Held<Domain<L>>,
    id: QueueId,
    api_version: u32,
    /// Blocking reads wait for a number of entries (FI_CQ_COND_THRESHOLD).
    threshold: bool,
    /// The wait set with which it was opened.
    set: Membership,
    /// Poll sets that ask it.
    polls: Dependents,
    /// Where completions go if another provider owns them (FI_PEER); else null.
    owner: *mut FidPeerCq,
}

// fi_trywait finds the waiter of a queue whose kind of lock it does not know.
const _: () = assert!(std::mem::offset_of!(Queue<Locked>, waiter) == WAITER_OFFSET);
const _: () = assert!(std::mem::offset_of!(Queue<Unlocked>, waiter) == WAITER_OFFSET);

/// Opens a completion queue.
///
/// # Safety
/// The arguments must be those of fi_cq_open(3), the domain one of ours with this kind of lock.
pub unsafe extern "C" fn open<L: Lock>(
    domain: *mut FidDomain,
    attr: *mut FiCqAttr,
    queue: *mut *mut FidCq,
    context: *mut c_void,
) -> c_int {
    if queue.is_null() || attr.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: the application's attributes, of which only members that every version has are read.
    let (flags, size_hint, format, condition) = unsafe {
        (
            (*attr).flags,
            (*attr).size,
            (*attr).format,
            (*attr).wait_cond,
        )
    };
    // SAFETY: the application's attributes; these members every version has.
    let (wait_object, wait_set) = unsafe { ((*attr).wait_obj, (*attr).wait_set) };
    // SAFETY: with FI_PEER the context is the owner's (contract).
    let owner = match unsafe { peer::queue_owner(flags, context) } {
        Ok(owner) => owner,
        Err(code) => return -code,
    };
    let ops = match ops_of::<L>(format) {
        _ if !owner.is_null() => L::peer_queue(),
        Some(ops) => ops,
        None => return -FI_ENOSYS,
    };
    let waiter = match Waiter::new(wait_object, waiter::calls::<L, Queue<L>>()) {
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
    let id = domain.with(|guarded| guarded.queues().open(QueueSettings { size_hint }));
    waiter.set_alarm(&domain, id.into());
    let fid = FidCq {
        fid: head(
            FI_CLASS_CQ,
            context,
            const { &table(close::<L>, no_bind, control::<L>) },
        ),
        ops,
    };
    let api_version = domain.fabric().api_version();
    let opened = Queue {
        fid,
        waiter,
        domain,
        id,
        api_version,
        threshold: condition == FI_CQ_COND_THRESHOLD,
        set,
        polls: Dependents::none(),
        owner,
    };
    // SAFETY: the place is not null and the application's; what was stored there is open.
    let opened = unsafe { &*hand_out(opened, queue) };
    opened.waiter.join(&opened.set, &opened.fid.fid);
    FI_SUCCESS
}

/// The table of functions for entries of this format; `None` if there is no such format.
fn ops_of<L: Lock>(format: u32) -> Option<&'static FiOpsCq> {
    Some(match format {
        FI_CQ_FORMAT_UNSPEC | FI_CQ_FORMAT_CONTEXT => L::queue::<FiCqEntry>(),
        FI_CQ_FORMAT_MSG => L::queue::<FiCqMsgEntry>(),
        FI_CQ_FORMAT_DATA => L::queue::<FiCqDataEntry>(),
        FI_CQ_FORMAT_TAGGED => L::queue::<FiCqTaggedEntry>(),
        _ => return None,
    })
}

impl<L: Lock> Queue<L> {
    /// Its name in the endpoint crate.
    pub fn id(&self) -> QueueId {
        self.id
    }

    /// The poll sets that ask it.
    pub fn polls(&self) -> &Dependents {
        &self.polls
    }

    /// The domain it belongs to.
    #[inline(always)]
    pub fn domain(&self) -> &Domain<L> {
        &self.domain
    }

    /// The queue of the provider that owns the completions, or null.
    pub fn owner(&self) -> *mut FidPeerCq {
        self.owner
    }

    /// Whether blocking reads wait for a number of entries.
    pub fn waits_for_count(&self) -> bool {
        self.threshold
    }

    /// Writes up to `count` entries, and their sources if `sources` is not null. Fast path.
    ///
    /// # Safety
    /// `entries`, and `sources` unless null, must be writable for `count` elements.
    #[inline(always)]
    pub unsafe fn read<E: Entry>(
        &self,
        entries: *mut E,
        count: usize,
        sources: *mut RawFiAddr,
    ) -> Result<usize, Error> {
        if self.waiter.can_sleep() {
            self.waiter.wake_up(self.domain(), self.id.into());
        }
        // SAFETY: the endpoint crate does not call back into the domain.
        let mut domain = unsafe { self.domain().enter() };
        // SAFETY: the contract; the endpoint crate uses one at a time.
        let buffer = || unsafe { CqBuffer::over(entries.cast(), E::WORDS, sources, count) };
        domain.queues().read_into(self.id, count, buffer)
    }
}

pub(crate) unsafe extern "C" fn read<L: Lock, E: Entry>(
    queue: *mut FidCq,
    entries: *mut c_void,
    count: usize,
) -> isize {
    // SAFETY: this table belongs to queues of this kind of lock and format only.
    let queue = unsafe { opened::<Queue<L>>(queue) };
    // SAFETY: the arguments are fi_cq_read's.
    let read = unsafe { queue.read::<E>(entries.cast(), count, ptr::null_mut()) };
    idle_hook::unless_idle(&queue.waiter, errno::count_code(read))
}

pub(crate) unsafe extern "C" fn read_from<L: Lock, E: Entry>(
    queue: *mut FidCq,
    entries: *mut c_void,
    count: usize,
    sources: *mut RawFiAddr,
) -> isize {
    // SAFETY: the table with this function belongs to objects of this kind of lock.
    let queue = unsafe { opened::<Queue<L>>(queue) };
    // SAFETY: the arguments are fi_cq_readfrom's.
    let read = unsafe { queue.read::<E>(entries.cast(), count, sources) };
    idle_hook::unless_idle(&queue.waiter, errno::count_code(read))
}

pub(crate) unsafe extern "C" fn read_error<L: Lock>(
    queue: *mut FidCq,
    entry: *mut FiCqErrEntry,
    _flags: u64,
) -> isize {
    if entry.is_null() {
        return -(FI_EINVAL as isize);
    }
    // SAFETY: this table belongs to queues of this kind of lock only.
    let queue = unsafe { opened::<Queue<L>>(queue) };
    match queue
        .domain()
        .with(|guarded| guarded.queues().read_error(queue.id))
    {
        Ok(error) => {
            // SAFETY: the application's entry has the layout of its interface version.
            unsafe { write_error(&error, entry, queue.api_version) };
            1
        }
        Err(Error::Again) => -(FI_EAGAIN as isize),
        Err(error) => -(errno::number(error) as isize),
    }
}

impl<L: Lock> Waited<L> for Queue<L> {
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

/// Fills C's entry for an error.
///
/// # Safety
/// `entry` must be writable as far as `api_version` knows the structure.
pub unsafe fn write_error(error: &ErrorCompletion, entry: *mut FiCqErrEntry, api_version: u32) {
    let completion = &error.completion;
    // SAFETY: the contract; the members that not every version has are written only where it has
    // them.
    unsafe {
        (*entry).op_context = completion.context as *mut c_void;
        (*entry).flags = completion.flags;
        (*entry).len = completion.length_bytes;
        (*entry).buf = completion.address as *mut c_void;
        (*entry).data = completion.cq_data;
        (*entry).tag = completion.tag;
        (*entry).olen = error.overflow_bytes;
        (*entry).err = errno::number(error.error);
        (*entry).prov_errno = errno::provider_number(error.error);
        if api_version < VERSION_ERR_DATA_SIZE || (*entry).err_data_size == 0 {
            (*entry).err_data = ptr::null_mut();
        }
        if api_version >= VERSION_ERR_DATA_SIZE {
            (*entry).err_data_size = 0;
        }
        if api_version >= VERSION_ERR_SRC_ADDR && completion.source != FiAddr::UNSPEC {
            (*entry).src_addr = completion.source.0;
        }
    }
}

unsafe extern "C" fn control<L: Lock>(
    fid: *mut Fid,
    command: c_int,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: this table belongs to queues of this kind of lock only; the arguments are
    // fi_control's.
    unsafe { opened::<Queue<L>>(fid).waiter.control(command, argument) }
}

unsafe extern "C" fn close<L: Lock>(fid: *mut Fid) -> c_int {
    // SAFETY: this table belongs to queues of this kind of lock only.
    let queue = unsafe { opened::<Queue<L>>(fid) };
    if queue.polls.exist() {
        return -FI_EBUSY;
    }
    let closed = errno::code(
        queue
            .domain()
            .with(|guarded| guarded.queues().close(queue.id)),
    );
    if closed == FI_SUCCESS {
        queue.set.end(fid);
        // SAFETY: it came from `hand_out`, and nothing refers to it any more.
        drop(unsafe { take_back(fid.cast::<Queue<L>>()) });
    }
    closed
}
