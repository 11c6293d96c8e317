// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What an endpoint knows of one remote's registered memory: which of it lies in shared files, and
//! where it is mapped here. Asked by direct for every access.

use weft_memory::RemoteMemory;
use weft_os::process_id::ProcessId;
use weft_ring::{Lease, Registrations};

/// Registrations in a row that were in no shared file, after which the next ones are looked up
/// later. Chosen: memory of a program tends to be of one kind.
const PATIENCE_COUNT: u32 = 8;

/// Accesses of a registration before it is looked up, when patience is at its end. Chosen: a
/// look-up reads /proc, some tens of microseconds, which that many accesses earn back.
const LATE_COUNT: u32 = 32;

/// Registrations known above which those taken back are unmapped at the next access. Chosen.
const VIEWS_COUNT: usize = 16;

/// One registration.
#[derive(Debug)]
struct View {
    generation: u64,
    /// Accesses still to come before it is looked up; `None` if it was.
    to_look_up: Option<u32>,
    memory: Option<RemoteMemory>,
}

/// All registrations of a remote that were accessed.
#[derive(Debug, Default)]
pub(crate) struct Views {
    /// By the number of its entry, so that a look-up is an index; a region has at most a thousand
    /// entries.
    by_entry: Vec<Option<Box<View>>>,
    count: usize,
    private_count: u32,
}

impl Views {
    /// The memory of a registration, if it can be mapped here; all are of its owner, and `pid` is
    /// its process's number, 0 if that is not visible. Fast path but for first accesses.
    #[inline]
    pub(crate) fn memory(
        &mut self,
        lease: &Lease,
        registrations: &Registrations<'_>,
        pid: u32,
        process: &ProcessId,
    ) -> Option<&RemoteMemory> {
        if self.count > VIEWS_COUNT {
            self.forget(registrations);
        }
        let is_known =
            |view: &View| view.generation == lease.generation && view.to_look_up.is_none();
        if !self.view(lease.index).is_some_and(is_known) {
            self.meet(lease, pid, process);
        }
        self.view(lease.index)?.memory.as_ref()
    }

    #[inline(always)]
    fn view(&self, index: usize) -> Option<&View> {
        self.by_entry.get(index)?.as_deref()
    }

    #[cold]
    fn meet(&mut self, lease: &Lease, pid: u32, process: &ProcessId) {
        let patient = self.private_count < PATIENCE_COUNT;
        let fresh = || View {
            generation: lease.generation,
            to_look_up: Some(if patient { 0 } else { LATE_COUNT }),
            memory: None,
        };
        if self.by_entry.len() <= lease.index {
            self.by_entry.resize_with(lease.index + 1, || None);
        }
        let place = &mut self.by_entry[lease.index];
        self.count += usize::from(place.is_none());
        let view = place.get_or_insert_with(|| Box::new(fresh()));
        if view.generation != lease.generation {
            **view = fresh();
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
            .then(|| RemoteMemory::map(pid, registration.address, registration.length_bytes));
        // What was mapped is the owner's only if its number is still its own.
        view.memory = mapped
            .and_then(Result::ok)
            .filter(|_| !process.has_ended(&ProcessId::own()));
        match view.memory {
            Some(_) => self.private_count = 0,
            None => self.private_count = self.private_count.saturating_add(1),
        }
    }

    /// Unmaps what its owner took back. Slow path.
    #[cold]
    fn forget(&mut self, registrations: &Registrations<'_>) {
        for (index, place) in self.by_entry.iter_mut().enumerate() {
            let is_old = |view: &View| !registrations.is_current(index, view.generation);
            if place.as_deref().is_some_and(is_old) {
                *place = None;
                self.count -= 1;
            }
        }
    }
}
