// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where accepted messages go: names, lengths, and what has arrived (srd-protocol 12.3 to 12.5).
//! Called by flow and receive.

use weft_wire::Data;

use crate::config::MESSAGE_LIMIT;
use crate::reassembly::{Misfit, Ranges};

/// Low bits of a landing's wire name are its index, the rest a generation, so that an old name is
/// not a new one.
const INDEX_BITS: u32 = 8;

#[derive(Debug)]
struct Landing {
    token: u64,
    message_id: u64,
    length_bytes: u64,
    ranges: Ranges,
}

/// The landings of one flow.
#[derive(Debug, Default)]
pub(crate) struct Landings {
    slots: Vec<(u32, Option<Landing>)>,
    count: usize,
}

impl Landings {
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// A new landing; its wire name, or `None` when all 64 are in use.
    pub(crate) fn insert(&mut self, token: u64, message_id: u64, length_bytes: u64) -> Option<u32> {
        if self.count >= MESSAGE_LIMIT {
            return None;
        }
        let index = match self.slots.iter().position(|slot| slot.1.is_none()) {
            Some(index) => index,
            None => {
                self.slots.push((0, None));
                self.slots.len() - 1
            }
        };
        let (generation, slot) = &mut self.slots[index];
        *generation = generation.wrapping_add(1) & (u32::MAX >> INDEX_BITS);
        *slot = Some(Landing {
            token,
            message_id,
            length_bytes,
            ranges: Ranges::default(),
        });
        self.count += 1;
        Some(*generation << INDEX_BITS | index as u32)
    }

    fn get(&self, name: u32) -> Option<&Landing> {
        let (generation, slot) = self.slots.get((name & ((1 << INDEX_BITS) - 1)) as usize)?;
        if *generation != name >> INDEX_BITS {
            return None;
        }
        slot.as_ref()
    }

    /// How much of which message is wanted under this name: 0 once all of it has come.
    pub(crate) fn wanted_bytes(&self, name: u32, message_id: u64) -> u64 {
        match self.get(name) {
            Some(landing) if landing.message_id == message_id => landing.length_bytes,
            _ => 0,
        }
    }

    /// Whether a piece can be taken (srd-protocol 12.5).
    pub(crate) fn check(&self, data: &Data, length: u64) -> Result<(), Misfit> {
        let landing = self.get(data.landing).ok_or(Misfit::Overlap)?;
        let end = data.offset_bytes + length;
        if end > landing.length_bytes {
            return Err(Misfit::Overlap);
        }
        landing.ranges.check(data.offset_bytes, end)
    }

    /// Takes a checked piece. Answers the landing's token, and whether the landing is full.
    pub(crate) fn insert_piece(&mut self, data: &Data, length: u64) -> Option<(u64, bool)> {
        let index = (data.landing & ((1 << INDEX_BITS) - 1)) as usize;
        let slot = &mut self.slots.get_mut(index)?.1;
        let landing = slot.as_mut()?;
        landing
            .ranges
            .insert(data.offset_bytes, data.offset_bytes + length);
        let token = landing.token;
        let full = landing.ranges.total_bytes() == landing.length_bytes;
        if full {
            *slot = None;
            self.count -= 1;
        }
        Some((token, full))
    }

    /// Tokens of all landings that are not full.
    pub(crate) fn drain(&mut self) -> Vec<u64> {
        self.count = 0;
        self.slots
            .iter_mut()
            .filter_map(|slot| slot.1.take())
            .map(|landing| landing.token)
            .collect()
    }

    pub(crate) fn footprint_bytes(&self) -> usize {
        let ranges: usize = self
            .slots
            .iter()
            .filter_map(|slot| slot.1.as_ref())
            .map(|landing| landing.ranges.footprint_bytes())
            .sum();
        self.slots.capacity() * size_of::<(u32, Option<Landing>)>() + ranges
    }
}
