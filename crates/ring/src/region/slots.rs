// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The directory of those who send into a region (docs/shm-layout.md, clauses 3 and 3a): claimed by
//! senders, read, refused and freed by the owner. Used by shm through [`super::Region::slots`].

use weft_memory::{Mapping, SharedLayout};
use weft_os::crash_point;

use crate::identity::{Identity, IdentityWords, STAGE_BITS};
use crate::layout::{SLOT_COUNT, SLOTS_OFFSET};
use crate::registrations::Registrations;
use crate::sync::{AtomicU64, Ordering};

/// One claim in the directory.
#[repr(C, align(64))]
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) state: AtomicU64,
    pub(super) claimant: IdentityWords,
    /// Messages and bytes that came through it; the owner's words.
    pub(super) received: [AtomicU64; 2],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Slot>() == crate::layout::SLOT_BYTES);

// SAFETY: repr(C), all fields atomic words; any bytes are valid.
unsafe impl SharedLayout for Slot {}

pub(super) const SLOT_FREE: u64 = 0;
/// Stages of a claim, beside the claimant's incarnation.
pub(super) const STAGE_CLAIMED: u64 = 1;
const STAGE_ACTIVE: u64 = 2;
const STAGE_REFUSED: u64 = 3;

/// Whether the state of a slot says that its claimant is named.
pub(crate) fn is_active(state: u64) -> bool {
    state & STAGE_BITS == STAGE_ACTIVE
}

impl Slot {
    pub(super) fn claim(&self, claimant: &Identity) -> bool {
        let incarnation = claimant.incarnation & !STAGE_BITS;
        // Whoever dies after this exchange has said who it was: its bell is named after its
        // incarnation. Pairs with the release store in `free`: the lane has been reset.
        let taken = self.state.compare_exchange(
            SLOT_FREE,
            incarnation | STAGE_CLAIMED,
            Ordering::Acquire,
            Ordering::Relaxed,
        );
        if taken.is_err() {
            return false;
        }
        crash_point!(8, "claim: a slot is taken, its claimant not named");
        self.claimant.store(claimant);
        // Pairs with the load in `claimant`.
        self.state
            .store(incarnation | STAGE_ACTIVE, Ordering::Release);
        crash_point!(9, "claim: the claimant is named, nothing sent");
        true
    }

    pub(super) fn claimant(&self) -> Option<Identity> {
        // Pairs with the last store in `claim`.
        is_active(self.state.load(Ordering::Acquire)).then(|| self.claimant.load())
    }

    /// The incarnation that holds it, named or not.
    pub(super) fn holder(&self) -> Option<u64> {
        let state = self.state.load(Ordering::Acquire);
        (state != SLOT_FREE).then_some(state & !STAGE_BITS)
    }

    /// By the owner: the claimant is to take back what lies in its lane.
    pub(super) fn refuse(&self) {
        let held = self.state.load(Ordering::Relaxed) & !STAGE_BITS;
        // Pairs with the load in `is_refused`: the claimant then sees how much was taken.
        self.state.store(held | STAGE_REFUSED, Ordering::Release);
    }

    pub(super) fn is_refused(&self, incarnation: u64) -> bool {
        let refused = (incarnation & !STAGE_BITS) | STAGE_REFUSED;
        self.state.load(Ordering::Acquire) == refused
    }

    pub(super) fn free(&self) {
        for word in &self.received {
            word.store(0, Ordering::Relaxed);
        }
        self.state.store(SLOT_FREE, Ordering::Release);
    }
}

/// The slots of a region, one's own or a remote's.
#[derive(Clone, Copy, Debug)]
pub struct Slots<'a> {
    mapping: &'a Mapping,
    /// Where the next claim starts to look.
    claim_hint: &'a AtomicU64,
}

impl<'a> Slots<'a> {
    pub(super) fn of(mapping: &'a Mapping, claim_hint: &'a AtomicU64) -> Self {
        Self {
            mapping,
            claim_hint,
        }
    }

    pub(super) fn at(&self, index: usize) -> Option<&'a Slot> {
        self.mapping
            .values::<Slot>(SLOTS_OFFSET, SLOT_COUNT)
            .ok()?
            .get(index)
    }

    /// Claims a slot to send through; None if all are taken. Slow path: a few locked operations.
    pub fn claim(&self, claimant: &Identity) -> Option<usize> {
        let start = self.claim_hint.fetch_add(1, Ordering::Relaxed) as usize;
        for step in 0..SLOT_COUNT {
            let index = (start.wrapping_add(step)) % SLOT_COUNT;
            if self.at(index)?.claim(claimant) {
                return Some(index);
            }
        }
        None
    }

    /// How many slots were ever claimed, at most: those from here on are free. A remote's word,
    /// kept in range.
    pub fn claimed_count(&self) -> usize {
        let hint = self.claim_hint.load(Ordering::Relaxed);
        usize::try_from(hint).map_or(SLOT_COUNT, |hint| hint.min(SLOT_COUNT))
    }

    /// Who sends through a slot of one's own region; None if it is free or the claim is not
    /// complete.
    pub fn claimant(&self, index: usize) -> Option<Identity> {
        self.at(index)?.claimant()
    }

    /// The incarnation of whoever has taken a slot of one's own region, even if the claim is not
    /// complete; None if it is free.
    pub fn holder(&self, index: usize) -> Option<u64> {
        self.at(index)?.holder()
    }

    /// Tells whoever sends through a slot of one's own region that nothing more is taken from it:
    /// its owner cannot answer. What was not taken is its sender's again, and the slot is its to
    /// free. The consumer must have settled.
    pub fn refuse(&self, index: usize) {
        if let Some(slot) = self.at(index) {
            slot.refuse();
        }
    }

    /// Whether the owner of a region takes nothing more from a slot that we claimed as
    /// `incarnation`. Reads a shared line: slow path.
    pub fn is_refused(&self, index: usize, incarnation: u64) -> bool {
        self.at(index)
            .is_some_and(|slot| slot.is_refused(incarnation))
    }

    /// Shows what came through a slot of ours since it was claimed.
    pub fn publish_inflow(&self, index: usize, messages: u64, bytes: u64) {
        if let Some(slot) = self.at(index) {
            slot.received[0].store(messages, Ordering::Relaxed);
            slot.received[1].store(bytes, Ordering::Relaxed);
        }
    }

    /// Frees a slot whose claimant is gone. Its lane must have been reset.
    pub fn free(&self, index: usize) {
        if let Some(slot) = self.at(index) {
            // Whoever died at our memory is not at it any more.
            Registrations::of(self.mapping).end(index);
            slot.free();
        }
    }
}
