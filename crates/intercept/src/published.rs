// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How many calls of collectives went which way, for `weft top` while the program runs: counts in
//! an anonymous file, which the user's tools find among the process's descriptors
//! (docs/collectives.md, clause 9). Written by communicators, by plain stores.

use std::os::fd::AsFd;
use std::sync::{Mutex, OnceLock, PoisonError};

use weft_facts::collective::{FILE_BYTES, FILE_NAME, NAMES, SLOT_BYTES, SLOTS};
use weft_memory::{BytesView, BytesViewMut};
use weft_os::map::RawMap;
use weft_os::region_file::create_memfd;

use crate::calls::{Call, Calls};

/// The file, which stays open so that it can be found, and which slots have a communicator.
#[derive(Debug)]
struct Published {
    map: RawMap,
    _file: std::os::fd::OwnedFd,
    is_taken: Mutex<[bool; SLOTS]>,
}

/// `None` if it cannot be made: then nothing is shown.
static PUBLISHED: OnceLock<Option<Published>> = OnceLock::new();

fn published() -> Option<&'static Published> {
    let make = || {
        let file = create_memfd(FILE_NAME, FILE_BYTES as u64).ok()?;
        let map = RawMap::new(file.as_fd(), FILE_BYTES).ok()?;
        let mut is_taken = [false; SLOTS];
        is_taken[GONE] = true;
        Some(Published {
            map,
            _file: file,
            is_taken: Mutex::new(is_taken),
        })
    };
    PUBLISHED.get_or_init(make).as_ref()
}

/// The slot of communicators that are gone.
const GONE: usize = 0;

impl Published {
    #[inline]
    fn write(&self, slot: usize, at: usize, count: u64) {
        let base = self.map.base().wrapping_add(slot * SLOT_BYTES);
        // SAFETY: a slot lies in the mapping, which stays; each has one writer at a time, who holds
        // its communicator's lock or that of all that are gone.
        let mut words = unsafe { BytesViewMut::from_raw(base, SLOT_BYTES) };
        words.fill(at * size_of::<u64>(), BytesView::from_words(&[count]));
    }

    fn write_all(&self, slot: usize, calls: &Calls) {
        for (at, count) in calls.counts().enumerate() {
            self.write(slot, at, count);
        }
    }
}

/// A communicator's slot; free again when it goes.
#[derive(Debug)]
pub struct Slot(usize);

impl Slot {
    /// One that nobody has, if there is one. Set-up.
    pub fn take() -> Option<Self> {
        let published = published()?;
        let lock = published.is_taken.lock();
        let mut is_taken = lock.unwrap_or_else(PoisonError::into_inner);
        let free = is_taken.iter().position(|is_taken| !is_taken)?;
        is_taken[free] = true;
        Some(Self(free))
    }

    /// Shows how many calls of one kind there were. Fast path: one store.
    #[inline]
    pub fn show(&self, call: Call, is_served: bool, count: u64) {
        if let Some(published) = published() {
            let first = if is_served { 0 } else { NAMES.len() };
            published.write(self.0, first + call as usize, count);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(published) = published() {
            published.write_all(self.0, &Calls::NONE);
            let lock = published.is_taken.lock();
            lock.unwrap_or_else(PoisonError::into_inner)[self.0] = false;
        }
    }
}

/// Shows the calls of all communicators that are gone, whose lock the caller holds.
pub fn show_gone(calls: &Calls) {
    if let Some(published) = published() {
        published.write_all(GONE, calls);
    }
}
