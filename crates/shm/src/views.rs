// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What an endpoint knows of one remote's registered memory: which of it lies in shared files, and where it is mapped here.
//! Asked by direct for every access.

use std::collections::HashMap;

use weft_memory::ForeignMemory;
use weft_ring::Lease;

/// Registrations in a row that were in no shared file, after which the next ones are looked up later. Chosen: memory of a
/// program tends to be of one kind.
const PATIENCE_COUNT: u32 = 8;

/// Accesses of a registration before it is looked up, when patience is at its end. Chosen: a look-up reads /proc, some tens
/// of microseconds, which that many accesses earn back.
const LATE_COUNT: u32 = 32;

/// One registration.
#[derive(Debug)]
struct View {
    generation: u64,
    /// Accesses still to come before it is looked up; `None` if it was.
    to_look_up: Option<u32>,
    memory: Option<ForeignMemory>,
}

/// All registrations of a remote that were accessed.
#[derive(Debug, Default)]
pub(crate) struct Views {
    by_entry: HashMap<usize, View>,
    private_count: u32,
}

impl Views {
    /// The memory of a registration, if it can be mapped here; `pid` is its owner's process, 0 if that is not visible.
    /// Fast path but for first accesses.
    #[inline]
    pub(crate) fn memory(&mut self, lease: &Lease, pid: u32) -> Option<&ForeignMemory> {
        let is_known = self
            .by_entry
            .get(&lease.index)
            .is_some_and(|view| view.generation == lease.generation && view.to_look_up.is_none());
        if !is_known {
            self.meet(lease, pid);
        }
        self.by_entry.get(&lease.index)?.memory.as_ref()
    }

    #[cold]
    fn meet(&mut self, lease: &Lease, pid: u32) {
        let patient = self.private_count < PATIENCE_COUNT;
        let fresh = || View {
            generation: lease.generation,
            to_look_up: Some(if patient { 0 } else { LATE_COUNT }),
            memory: None,
        };
        let view = self.by_entry.entry(lease.index).or_insert_with(fresh);
        if view.generation != lease.generation {
            *view = fresh();
        }
        match &mut view.to_look_up {
            Some(0) => view.to_look_up = None,
            Some(count) => {
                *count -= 1;
                return;
            }
            None => return,
        }
        let registration = &lease.registration;
        let mapped = (pid != 0)
            .then(|| ForeignMemory::map(pid, registration.address, registration.length_bytes));
        view.memory = mapped.and_then(Result::ok);
        match view.memory {
            Some(_) => self.private_count = 0,
            None => self.private_count = self.private_count.saturating_add(1),
        }
    }

    /// Unmaps what its owner took back; `generation_of` tells what an entry holds now. Slow path.
    pub(crate) fn forget(&mut self, is_current: impl Fn(usize, u64) -> bool) {
        self.by_entry
            .retain(|&index, view| is_current(index, view.generation));
    }

    /// How many registrations are known.
    pub(crate) fn count(&self) -> usize {
        self.by_entry.len()
    }
}
