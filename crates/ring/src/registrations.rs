// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What remotes of this host may touch without asking: the owner's registered memory, and who is at
//! it (docs/shm-layout.md, clause 10). Written by shm when memory is registered, asked by its
//! remotes for every direct access.
//!
//! A remote marks what it touches before it looks again whether that is still registered; the owner
//! takes a registration back before it looks at the marks. One of the two therefore sees the other,
//! and memory is the owner's alone again once no mark names it.

use weft_memory::{Mapping, SharedLayout};

use crate::layout::{MARKS_OFFSET, REGISTRATION_COUNT, REGISTRATIONS_OFFSET, SLOT_COUNT};
use crate::sync::{AtomicU64, Ordering, fence};

/// Places at which a key may lie, from the one that its hash names. Specified: clause 10.
const PROBE_COUNT: usize = if REGISTRATION_COUNT < 8 {
    REGISTRATION_COUNT
} else {
    8
};

const READABLE: u64 = 1;
const WRITABLE: u64 = 2;

/// Registered memory, as its owner publishes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Registration {
    /// Its key.
    pub key: u64,
    /// What remotes call its first byte.
    pub base: u64,
    /// Its length in bytes.
    pub length_bytes: u64,
    /// Where its first byte lies in the owner's memory.
    pub address: u64,
    /// Remotes may read it.
    pub readable: bool,
    /// Remotes may write it.
    pub writable: bool,
}

/// One published registration.
#[repr(C, align(64))]
#[derive(Debug)]
struct Entry {
    /// Odd while the rest is valid; raised by every change.
    generation: AtomicU64,
    key: AtomicU64,
    base: AtomicU64,
    length_bytes: AtomicU64,
    address: AtomicU64,
    rights: AtomicU64,
}

/// What the remote of one slot is at: the number of an entry, raised by one, or 0.
#[repr(C, align(64))]
#[derive(Debug)]
struct Mark {
    entry: AtomicU64,
}

// SAFETY: repr(C), all fields atomic words; any bytes are valid.
unsafe impl SharedLayout for Entry {}
// SAFETY: repr(C), its one field an atomic word; any bytes are valid.
unsafe impl SharedLayout for Mark {}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Entry>() == crate::layout::REGISTRATION_BYTES);
#[cfg(not(loom))]
const _: () = assert!(size_of::<Mark>() == crate::layout::MARK_BYTES);

impl Entry {
    fn is_valid(generation: u64) -> bool {
        generation % 2 == 1
    }

    fn store(&self, registration: &Registration) {
        let rights = u64::from(registration.readable) * READABLE
            + u64::from(registration.writable) * WRITABLE;
        self.key.store(registration.key, Ordering::Relaxed);
        self.base.store(registration.base, Ordering::Relaxed);
        self.length_bytes
            .store(registration.length_bytes, Ordering::Relaxed);
        self.address.store(registration.address, Ordering::Relaxed);
        self.rights.store(rights, Ordering::Relaxed);
        // Pairs with the fence in `begin`: who sees the generation sees the rest.
        self.generation.fetch_add(1, Ordering::Release);
    }

    fn load(&self) -> Registration {
        let rights = self.rights.load(Ordering::Relaxed);
        Registration {
            key: self.key.load(Ordering::Relaxed),
            base: self.base.load(Ordering::Relaxed),
            length_bytes: self.length_bytes.load(Ordering::Relaxed),
            address: self.address.load(Ordering::Relaxed),
            readable: rights & READABLE != 0,
            writable: rights & WRITABLE != 0,
        }
    }
}

/// Leave to touch registered memory of a remote, until [`Registrations::end`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lease {
    /// The entry.
    pub index: usize,
    /// Which registration it holds; the next one in the same entry has another.
    pub generation: u64,
    /// What it says.
    pub registration: Registration,
}

/// The registrations in a region, one's own or a remote's.
#[derive(Clone, Copy, Debug)]
pub struct Registrations<'a> {
    entries: &'a [Entry],
    marks: &'a [Mark],
}

impl<'a> Registrations<'a> {
    /// Those in a region. Fast path.
    ///
    /// # Panics
    /// Never: every mapped region reaches that far.
    #[inline]
    pub fn of(mapping: &'a Mapping) -> Self {
        let entries = mapping.values(REGISTRATIONS_OFFSET, REGISTRATION_COUNT);
        let marks = mapping.values(MARKS_OFFSET, SLOT_COUNT);
        Self {
            entries: entries.expect("every mapped region has its registrations"),
            marks: marks.expect("every mapped region has its marks"),
        }
    }

    /// The entries in which a key may lie.
    #[inline]
    fn places(key: u64) -> impl Iterator<Item = usize> {
        // An odd constant near 2^64 divided by the golden ratio; its products spread over the upper
        // bits.
        let first = (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize;
        (0..PROBE_COUNT).map(move |step| (first + step) % REGISTRATION_COUNT)
    }

    /// The owner: shows a registration to remotes; false if there is no room, and remotes must ask.
    /// `is_left` says whether nobody is at an entry any more that was taken back.
    pub fn publish(&self, registration: &Registration, is_left: impl Fn(usize) -> bool) -> bool {
        let is_free = |index: &usize| {
            !Entry::is_valid(self.entries[*index].generation.load(Ordering::Relaxed))
                && is_left(*index)
        };
        let place = Self::places(registration.key).find(is_free);
        place
            .map(|index| self.entries[index].store(registration))
            .is_some()
    }

    /// The owner: takes a registration back, so that nobody begins to touch it from now on; names
    /// its entry, which remotes may still be at ([`Self::users`]). `None` if it was not published.
    pub fn withdraw(&self, key: u64) -> Option<usize> {
        let (index, _) = self.find(key)?;
        self.entries[index]
            .generation
            .fetch_add(1, Ordering::Relaxed);
        // Pairs with the fence in `begin`: the mark is seen by us, or the change by the remote.
        fence(Ordering::SeqCst);
        Some(index)
    }

    /// The owner: all that is published.
    pub fn keys(&self) -> Vec<u64> {
        let valid = |entry: &&Entry| Entry::is_valid(entry.generation.load(Ordering::Relaxed));
        let entries = self.entries.iter().filter(valid);
        entries
            .map(|entry| entry.key.load(Ordering::Relaxed))
            .collect()
    }

    /// The owner: the slots, of the first `slot_count`, whose remotes are at an entry.
    pub fn users(&self, index: usize, slot_count: usize) -> Vec<usize> {
        let is_user = |slot: &usize| {
            // Pairs with the store in `end`: what the remote did before is done.
            self.marks[*slot].entry.load(Ordering::Acquire) == index as u64 + 1
        };
        (0..slot_count.min(SLOT_COUNT)).filter(is_user).collect()
    }

    /// The entry that holds a key, and its generation.
    #[inline]
    fn find(&self, key: u64) -> Option<(usize, u64)> {
        Self::places(key).find_map(|index| {
            let entry = &self.entries[index];
            // Without acquire: the fence in `begin` stands between this and all that is believed of
            // the entry.
            let generation = entry.generation.load(Ordering::Relaxed);
            (Entry::is_valid(generation) && entry.key.load(Ordering::Relaxed) == key)
                .then_some((index, generation))
        })
    }

    /// The remote of `slot`: begins to touch the memory of a key; `None` if it is not published.
    /// [`Self::end`] must follow. Fast path: one fence.
    #[inline]
    pub fn begin(&self, slot: usize, key: u64) -> Option<Lease> {
        let (index, generation) = self.find(key)?;
        let mark = &self.marks.get(slot)?.entry;
        mark.store(index as u64 + 1, Ordering::Relaxed);
        // Pairs with the fence in `withdraw`.
        fence(Ordering::SeqCst);
        let entry = &self.entries[index];
        let registration = entry.load();
        fence(Ordering::Acquire);
        if entry.generation.load(Ordering::Relaxed) != generation || registration.key != key {
            // What was touched under an earlier lease comes before it by the fence above: the owner
            // may see this store alone.
            mark.store(0, Ordering::Relaxed);
            return None;
        }
        Some(Lease {
            index,
            generation,
            registration,
        })
    }

    /// Whether an entry still holds the registration of that generation.
    pub fn is_current(&self, index: usize, generation: u64) -> bool {
        let entry = self.entries.get(index);
        entry.is_some_and(|entry| entry.generation.load(Ordering::Relaxed) == generation)
    }

    /// The remote of `slot`: is at nothing any more. The owner says so for one that died. Fast
    /// path.
    #[inline]
    pub fn end(&self, slot: usize) {
        if let Some(mark) = self.marks.get(slot) {
            // Pairs with the load in `users`.
            mark.entry.store(0, Ordering::Release);
        }
    }
}

#[cfg(all(test, not(loom)))]
#[path = "registrations_tests.rs"]
mod tests;

#[cfg(all(test, loom))]
#[path = "registrations_models.rs"]
mod models;
