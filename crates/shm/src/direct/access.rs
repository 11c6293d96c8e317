// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Accessing a remote's registered memory without its help: by load and store where it lies in a
//! shared file, else by single copy where that pays.
//!
//! Called by the transport; calls ring's registrations and memory. Whatever cannot be done here, or
//! must not be, is asked of the owner by message, which also finds out what was wrong with it.

use weft_contract::{DirectOp, Range, RemoteId};
use weft_memory::atomic::apply;
use weft_memory::single_copy::ProcessMemory;
use weft_memory::{RemoteMemory, single_copy};
use weft_os::clock;
use weft_ring::Lease;

use crate::contact::attached::Attached;
use crate::contact::contacts::Contacts;
use crate::protocol::copy_method::prefers_single_copy;
use crate::settings::SingleCopy;
use crate::statistics::Count;

/// An owner that showed no sign of progress for so long is not waited for. Chosen: some of the
/// ticks in which it shows one.
const AWAY_NS: u64 = 5_000_000;

/// Lengths that are copied by system call even while the owner serves requests. Measured
/// (docs/lab/2026-11-22-one-sided-beside-shm.md): below, the system call costs more than an answer;
/// above, both sides at work through chunks are as fast, and the choice is that of messages.
const COPIED_BYTES: std::ops::Range<usize> = 8192..1 << 20;

/// Accesses of remotes' memory so far, and what they may use.
#[derive(Debug)]
pub(crate) struct Access {
    single_copy: SingleCopy,
    mapped: Count,
    copied: Count,
}

impl Access {
    pub(crate) fn new(single_copy: SingleCopy) -> Self {
        Self {
            single_copy,
            mapped: Count::default(),
            copied: Count::default(),
        }
    }

    /// Accesses by load and store.
    pub(crate) fn mapped(&self) -> Count {
        self.mapped
    }

    /// Accesses by single copy.
    pub(crate) fn copied(&self) -> Count {
        self.copied
    }

    /// Reads or writes registered memory of `remote` now, without its help; false if that cannot
    /// be, and nothing was done. Fast path where the memory is mapped.
    pub(crate) fn access(
        &mut self,
        contacts: &mut Contacts,
        remote: RemoteId,
        range: &Range,
        op: &mut DirectOp<'_>,
    ) -> bool {
        contacts.contact(remote);
        let shares_cores = contacts.own.node().shares_cores;
        let Some(attached) = contacts.remote_mut(remote).attached_mut() else {
            return false;
        };
        let length_bytes = range.length_bytes as usize;
        let mut registered = attached.registered();
        let Some(lease) = registered.begin(range.key) else {
            return false;
        };
        let Some(offset_bytes) = allowed_offset(&lease, range, op) else {
            registered.end();
            return false;
        };
        if let Some(memory) = registered.memory(&lease) {
            let done = load_and_store(memory, offset_bytes, length_bytes, op);
            registered.end();
            if done {
                self.mapped.add(length_bytes as u64);
            }
            return done;
        }
        let address = lease.registration.address.wrapping_add(offset_bytes as u64);
        let done = self.pays(attached, length_bytes, op, shares_cores)
            && copy(&attached.memory(), address, length_bytes, op);
        attached.registered().end();
        if done {
            self.copied.add(length_bytes as u64);
        }
        done
    }

    /// Whether to copy by system call, where that is permitted and faster than to ask: for a short
    /// length it costs more than the answer of a remote that waits for requests, and far less than
    /// waiting for one that computes or has no processor.
    #[inline(never)]
    fn pays(
        &self,
        attached: &mut Attached,
        length_bytes: usize,
        op: &DirectOp<'_>,
        shares_cores: bool,
    ) -> bool {
        let last_ns = attached.region().last_progress_ns();
        let is_away = || clock::monotonic_ns().saturating_sub(last_ns) > AWAY_NS;
        !matches!(op, DirectOp::Atomic(..))
            && self.single_copy != SingleCopy::Never
            && (COPIED_BYTES.contains(&length_bytes)
                || prefers_single_copy(self.single_copy, shares_cores)
                || is_away())
            && attached.may_be_read()
    }
}

/// Where a range begins in its registration, if it lies inside and may be accessed so.
#[inline]
fn allowed_offset(lease: &Lease, range: &Range, op: &DirectOp<'_>) -> Option<usize> {
    let registration = &lease.registration;
    let (reads, writes) = op.reads_and_writes();
    let offset = range.address.checked_sub(registration.base)?;
    let end = offset.checked_add(range.length_bytes)?;
    let is_allowed = (!reads || registration.readable) && (!writes || registration.writable);
    (is_allowed && end <= registration.length_bytes).then_some(offset as usize)
}

/// Accesses mapped memory; false if an element cannot be changed at once from here.
#[inline]
fn load_and_store(
    memory: &RemoteMemory,
    offset_bytes: usize,
    length_bytes: usize,
    op: &mut DirectOp<'_>,
) -> bool {
    memory.with(offset_bytes, length_bytes, |there| match op {
        DirectOp::Read(here) => there.copy_to(here, 0) == length_bytes,
        DirectOp::Write(here) => here.copy_to(there, 0) == length_bytes,
        DirectOp::Atomic(change, before) => {
            let is_atomic = change.is_at_once(there);
            if is_atomic {
                apply(change, there, before);
            }
            is_atomic
        }
    })
}

/// Copies between the two processes; false if it was refused, and the owner must be asked after
/// all.
fn copy(memory: &ProcessMemory, address: u64, length_bytes: usize, op: &DirectOp<'_>) -> bool {
    let mut done = 0;
    while done < length_bytes {
        let (there, left) = (address.wrapping_add(done as u64), length_bytes - done);
        let copied = match op {
            DirectOp::Read(here) => single_copy::pull(memory, there, here, done, left),
            DirectOp::Write(here) => single_copy::push(memory, there, here, done, left),
            DirectOp::Atomic(..) => return false,
        };
        match copied {
            Ok(count) if count > 0 => done += count,
            _ => return false,
        }
    }
    true
}
