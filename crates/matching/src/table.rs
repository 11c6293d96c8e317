// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An open-addressed hash table from a key to the head of the list of entries that have this key.
//!
//! Used by `posted` (one table for all its classes) and `unexpected` (one per index); calls
//! `chain`. Linear probing over eight-byte slots that carry the hash, so that probing, growing and
//! deleting read no entry but those of equal hash; deletion moves later slots back (Knuth, The Art
//! of Computer Programming 3, algorithm 6.4R), so there are no tombstones and lookups do not age.
//! Capacity is kept.

use crate::chain::{self, Links, NONE};

#[derive(Clone, Copy, Debug)]
struct Slot {
    hash: u32,
    /// Head of the list; `NONE` in an empty slot.
    head: u32,
}

const EMPTY: Slot = Slot {
    hash: 0,
    head: NONE,
};

/// Slots of a fresh table, as a power of two; chosen: eight cache lines.
const FIRST_BITS: u32 = 6;

/// Where a key is, or would be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// The key's list starts at `head`.
    Found { slot: usize, head: u32 },
    /// The key has no list; it would go here.
    Vacant { slot: usize },
}

/// The table; see the module.
#[derive(Debug)]
pub(crate) struct Table {
    slots: Vec<Slot>,
    /// What is left of a hash when it is shifted by this is its home.
    shift: u32,
    used: usize,
}

impl Table {
    pub fn new() -> Self {
        Table {
            slots: vec![EMPTY; 1 << FIRST_BITS],
            shift: u32::BITS - FIRST_BITS,
            used: 0,
        }
    }

    /// Forgets all keys; keeps the memory.
    pub fn clear(&mut self) {
        self.slots.fill(EMPTY);
        self.used = 0;
    }

    #[inline]
    fn home(&self, hash: u32) -> usize {
        (hash >> self.shift) as usize
    }

    #[inline]
    fn after(&self, slot: usize) -> usize {
        (slot + 1) & (self.slots.len() - 1)
    }

    /// Looks for a key; `same` tells whether the key of the list at a head is the one sought.
    #[inline]
    pub fn probe(&self, hash: u32, mut same: impl FnMut(u32) -> bool) -> Place {
        let mut slot = self.home(hash);
        loop {
            let Slot { hash: other, head } = self.slots[slot];
            if head == NONE {
                return Place::Vacant { slot };
            }
            if other == hash && same(head) {
                return Place::Found { slot, head };
            }
            slot = self.after(slot);
        }
    }

    /// Makes sure that one more key fits; call before the `probe` whose place goes to `append`.
    #[inline]
    pub fn reserve(&mut self) {
        // At most half full: chosen, so that a miss probes 2.5 slots at most on average.
        if self.used >= self.slots.len() / 2 {
            self.grow();
        }
    }

    #[cold]
    fn grow(&mut self) {
        assert!(
            self.shift > 1,
            "more than 2^30 different tags wait for a match: receive or cancel some"
        );
        self.shift -= 1;
        let slots = vec![EMPTY; self.slots.len() * 2];
        let old = std::mem::replace(&mut self.slots, slots);
        for moved in old.into_iter().filter(|slot| slot.head != NONE) {
            let mut slot = self.home(moved.hash);
            while self.slots[slot].head != NONE {
                slot = self.after(slot);
            }
            self.slots[slot] = moved;
        }
    }

    /// Adds entry `index` at the end of its key's list, which `probe` has found or not.
    #[inline]
    pub fn append(&mut self, place: Place, hash: u32, links: &mut impl Links, index: u32) {
        match place {
            Place::Found { head, .. } => chain::append(links, head, index),
            Place::Vacant { slot } => {
                chain::start(links, index);
                self.slots[slot] = Slot { hash, head: index };
                self.used += 1;
            }
        }
    }

    /// Takes entry `index` out of its key's list, which `probe` has found.
    #[inline]
    pub fn remove(&mut self, place: Place, links: &mut impl Links, index: u32) {
        let next = chain::unlink(links, index);
        if let Place::Found { slot, head } = place {
            if next == NONE {
                self.erase(slot);
            } else if head == index {
                self.slots[slot].head = next;
            }
        }
    }

    /// Empties a slot and moves back the slots that were pushed beyond it.
    #[inline]
    fn erase(&mut self, slot: usize) {
        self.used -= 1;
        let wrap = self.slots.len() - 1;
        let mut hole = slot;
        let mut next = self.after(slot);
        loop {
            let candidate = self.slots[next];
            if candidate.head == NONE {
                break;
            }
            // It may move into the hole unless its home lies after the hole, on the way to where it
            // is now.
            let pushed = next.wrapping_sub(self.home(candidate.hash)) & wrap;
            if pushed >= next.wrapping_sub(hole) & wrap {
                self.slots[hole] = candidate;
                hole = next;
            }
            next = self.after(next);
        }
        self.slots[hole] = EMPTY;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::Link;
    use crate::want::{Key, Mask, Want};
    use weft_contract::RemoteId;

    /// Enters the hashes as entries 0, 1, 2 ..., each a key of its own even where the hashes are
    /// equal.
    fn filled(hashes: &[u32]) -> (Table, Vec<Link>) {
        let mut table = Table::new();
        let mut links = vec![Link::default(); hashes.len()];
        for (index, &hash) in (0..).zip(hashes) {
            table.reserve();
            let place = table.probe(hash, |_| false);
            table.append(place, hash, &mut links, index);
        }
        (table, links)
    }

    #[test]
    fn every_key_is_found_while_others_are_removed_even_with_equal_and_wrapping_hashes() {
        // Home slots at the very end of a small table, so that the run wraps around; some hashes
        // equal.
        let hashes: Vec<u32> = (0..200u32).map(|n| u32::MAX - n / 3 * 1000).collect();
        let (mut table, mut links) = filled(&hashes);
        let order: Vec<u32> = (0..200).map(|n| (n * 73) % 200).collect();
        for (removed, &index) in order.iter().enumerate() {
            let place = table.probe(hashes[index as usize], |head| head == index);
            assert!(matches!(place, Place::Found { head, .. } if head == index));
            table.remove(place, &mut links, index);
            for (at, &other) in order.iter().enumerate() {
                let place = table.probe(hashes[other as usize], |head| head == other);
                assert_eq!(
                    matches!(place, Place::Found { .. }),
                    at > removed,
                    "entry {other}"
                );
            }
        }
        assert!(table.slots.iter().all(|slot| slot.head == NONE));
        assert_eq!(table.used, 0);
    }

    fn longest_probe(keys: impl Iterator<Item = (u32, u64)>) -> usize {
        let mask = Mask::of(Want {
            source: Some(RemoteId(0)),
            tag: 0,
            ignore: 0,
        });
        let hashes: Vec<u32> = keys
            .map(|(source, tag)| mask.hash(Key { source, tag }, 0))
            .collect();
        let (table, _) = filled(&hashes);
        let wrap = table.slots.len() - 1;
        let used = table
            .slots
            .iter()
            .enumerate()
            .filter(|(_, slot)| slot.head != NONE);
        used.map(|(at, slot)| at.wrapping_sub(table.home(slot.hash)) & wrap)
            .max()
            .unwrap_or(0)
    }

    #[test]
    fn keys_as_programs_make_them_lie_close_to_their_home_slots() {
        // Random hashes in a table of this size, half full, have a longest probe of about this
        // length.
        const LIMIT: usize = 60;
        for shift in 0..51 {
            let longest = longest_probe((0..8192).map(|n| (0, n << shift)));
            assert!(
                longest <= LIMIT,
                "tags that differ from bit {shift} on: {longest}"
            );
        }
        let longest = longest_probe((0..8192).map(|n| (n, 42)));
        assert!(longest <= LIMIT, "one tag, many sources: {longest}");
        for shift in [0, 20, 24, 32, 40, 48] {
            let longest = longest_probe((0..8192).map(|n| (n % 90, u64::from(n / 90) << shift)));
            assert!(
                longest <= LIMIT,
                "sources times tags from bit {shift} on: {longest}"
            );
        }
        // Some MPI libraries put the source into the tag as well.
        for shift in [20, 24, 32, 40, 48] {
            let longest = longest_probe(
                (0..8192).map(|n| (n % 90, u64::from(n / 90) | u64::from(n % 90) << shift)),
            );
            assert!(
                longest <= LIMIT,
                "sources in the tag from bit {shift} on: {longest}"
            );
        }
    }
}
