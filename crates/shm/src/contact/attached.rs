// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A remote whose region we have: our lane in it, its memory as far as we may reach it.

use weft_memory::single_copy::{self, ProcessMemory};
use weft_memory::{RemoteHeap, RemoteMemory};
use weft_os::heap::Heap;
use weft_os::process_id::ProcessId;
use weft_ring::layout::{PIPE_BYTES, pipe_offset};
use weft_ring::{Identity, Lease, Region, Registrations};

use crate::contact::outbound::Outbound;
use crate::contact::own::Own;
use crate::direct::views::Views;

/// A message has a row before it if so many went to its remote, and none came from it meanwhile.
/// Chosen: the least that an exchange in both directions does not look like.
const ROW: u32 = 2;

/// A remote whose region we have.
#[derive(Debug)]
pub(crate) struct Attached {
    /// Our lane in its region.
    lane: Outbound,
    /// All of its region but the lanes.
    region: Region,
    /// Who it belongs to.
    owner: Identity,
    /// Its process, in our namespace; 0 if not visible.
    pid: u32,
    /// Whether its memory may be read, once tried.
    may_be_read: Option<bool>,
    /// Its heap, once looked for; None inside if it cannot be mapped.
    heap: Option<Option<RemoteHeap>>,
    /// Payload that had come from it when we last sent a long message, and long messages since that
    /// found no more.
    heard_bytes: u64,
    row: u32,
    /// What we know of its registered memory.
    views: Views,
}

/// Our lane.
impl Attached {
    /// The region of `owner` and our lane in it; `pid` is the owner's process, 0 if that is not
    /// visible.
    pub(super) fn new(region: Region, owner: Identity, lane: Outbound, pid: u32) -> Self {
        Self {
            lane,
            region,
            owner,
            pid,
            may_be_read: None,
            heap: None,
            heard_bytes: 0,
            row: 0,
            views: Views::default(),
        }
    }

    /// Our lane in its region.
    #[inline(always)]
    pub(crate) fn lane(&self) -> &Outbound {
        &self.lane
    }

    #[inline(always)]
    pub(crate) fn lane_mut(&mut self) -> &mut Outbound {
        &mut self.lane
    }

    /// Rings for what was pushed into our lane; wakes the remote if it sleeps.
    #[cold]
    pub(crate) fn ring(&self, own: &Own) {
        if self.region.doorbell().ring(self.lane.slot()) {
            own.ring(self.owner.incarnation);
        }
    }

    /// The same for a remote that is awake, since it is given more in a moment.
    pub(crate) fn knock(&self) {
        let _ = self.region.doorbell().ring(self.lane.slot());
    }

    /// Frees our slot, which nobody uses any more or has heard of yet.
    pub(crate) fn free_slot(&self) {
        self.region.slots().free(self.lane.slot());
    }
}

/// The remote and its memory.
impl Attached {
    /// Who its region belongs to.
    pub(crate) fn owner(&self) -> &Identity {
        &self.owner
    }

    /// All of its region but the lanes.
    #[inline(always)]
    pub(crate) fn region(&self) -> &Region {
        &self.region
    }

    /// Its memory, as single copy reaches it.
    pub(crate) fn memory(&self) -> ProcessMemory {
        ProcessMemory {
            pid: self.pid,
            probe: self.region.probe(),
        }
    }

    /// Whether its memory may be read by system call; found out by reading a word of it, once.
    pub(crate) fn may_be_read(&mut self) -> bool {
        *self.may_be_read.get_or_insert_with(|| {
            let (address, value) = self.region.probe();
            self.pid != 0 && single_copy::can_read(self.pid, address, value)
        })
    }

    /// Reading its memory was refused, and is not tried again.
    pub(crate) fn must_not_be_read(&mut self) {
        self.may_be_read = Some(false);
    }

    /// Its shared memory, if it shows some that can be mapped; found out once.
    pub(crate) fn heap(&mut self) -> Option<&mut RemoteHeap> {
        if self.heap.is_none() {
            let claimed = Heap::of_words(self.region.heap());
            let may_be = self.pid != 0 && claimed.length_bytes != 0;
            let mapped = may_be.then(|| RemoteHeap::map(self.pid, &claimed));
            // What was mapped is the owner's only if its number is still its own.
            let owner = &self.owner.process;
            let is_its = |_: &_| !owner.has_ended(&ProcessId::own());
            self.heap = Some(mapped.and_then(Result::ok).filter(is_its));
        }
        self.heap.as_mut()?.as_mut()
    }

    /// Its registered memory. Fast path.
    #[inline(always)]
    pub(crate) fn registered(&mut self) -> Registered<'_> {
        Registered {
            registrations: Registrations::of(self.region.mapping()),
            views: &mut self.views,
            slot: self.lane.slot(),
            pid: self.pid,
            process: &self.owner.process,
        }
    }

    /// A long message is about to go to it, which has sent `heard_bytes` so far: whether it is one
    /// of a row. To be asked once for each.
    pub(crate) fn is_in_a_row(&mut self, heard_bytes: u64) -> bool {
        if self.heard_bytes != heard_bytes {
            (self.heard_bytes, self.row) = (heard_bytes, 0);
            return false;
        }
        self.row = self.row.saturating_add(1);
        self.row >= ROW
    }
}

/// What it takes to reach a remote's registered memory without its help.
pub(crate) struct Registered<'a> {
    registrations: Registrations<'a>,
    views: &'a mut Views,
    slot: usize,
    pid: u32,
    process: &'a ProcessId,
}

impl Registered<'_> {
    /// Says that we are at a registration, if it is there. Fast path.
    #[inline(always)]
    pub(crate) fn begin(&self, key: u64) -> Option<Lease> {
        self.registrations.begin(self.slot, key)
    }

    /// Says that we are at it no more. Fast path.
    #[inline(always)]
    pub(crate) fn end(&self) {
        self.registrations.end(self.slot);
    }

    /// Its memory, if it can be mapped here. Fast path but for first accesses.
    #[inline]
    pub(crate) fn memory(&mut self, lease: &Lease) -> Option<&RemoteMemory> {
        self.views
            .memory(lease, &self.registrations, self.pid, self.process)
    }
}

/// Has the pages made of the pipe that is lent before all others.
pub(super) fn warm_pipe(region: &Region) {
    region.mapping().populate(pipe_offset(0), PIPE_BYTES);
}
