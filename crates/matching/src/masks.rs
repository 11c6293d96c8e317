// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The masks with which receives wait in the table, each with a number while there are any.
//!
//! Used by `hashed`, which looks a message up once for each of them; calls nothing. Programs use
//! one to four masks.

use crate::want::{Key, Mask};

/// A mask and how many receives are posted with it; reused for another mask when that is 0.
#[derive(Debug)]
struct MaskUse {
    mask: Mask,
    salt: u64,
    posted: u32,
}

/// Spreads the masks of the one table; chosen: 2^64 over the golden ratio.
const SALT_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Unused masks at the end of the list are dropped beyond this many; chosen: more than programs
/// use.
const MASKS_KEPT: usize = 8;

/// The masks by number.
#[derive(Debug, Default)]
pub(crate) struct Masks(Vec<MaskUse>);

impl Masks {
    /// The number of a mask with which one more receive is posted.
    #[inline]
    pub fn add(&mut self, mask: Mask) -> u32 {
        let known = self.0.iter().position(|other| other.mask == mask);
        let number = known.unwrap_or_else(|| self.enter(mask));
        self.0[number].posted += 1;
        number as u32
    }

    #[cold]
    fn enter(&mut self, mask: Mask) -> usize {
        let unused = self.0.iter().position(|other| other.posted == 0);
        let number = unused.unwrap_or(self.0.len());
        let entered = MaskUse {
            mask,
            salt: (number as u64).wrapping_mul(SALT_STEP),
            posted: 0,
        };
        match self.0.get_mut(number) {
            Some(place) => *place = entered,
            None => self.0.push(entered),
        }
        number
    }

    /// One receive less is posted with a mask; answers the mask.
    #[inline]
    pub fn subtract(&mut self, number: u32) -> Mask {
        let mask_use = &mut self.0[number as usize];
        let mask = mask_use.mask;
        mask_use.posted -= 1;
        if mask_use.posted == 0 && self.0.len() > MASKS_KEPT {
            self.drop_unused();
        }
        mask
    }

    #[cold]
    fn drop_unused(&mut self) {
        while self.0.len() > MASKS_KEPT && self.0.last().is_some_and(|last| last.posted == 0) {
            self.0.pop();
        }
    }

    /// The mask of a number.
    #[inline]
    pub fn get(&self, number: u32) -> Mask {
        self.0[number as usize].mask
    }

    /// The hash of a key under the mask of a number.
    #[inline]
    pub fn hash(&self, number: u32, key: Key) -> u32 {
        let mask_use = &self.0[number as usize];
        mask_use.mask.hash(key, mask_use.salt)
    }

    /// The numbers of the masks with which receives are posted.
    #[inline]
    pub fn in_use(&self) -> impl Iterator<Item = u32> {
        let numbered = (0..).zip(&self.0);
        numbered.filter_map(|(number, mask_use)| (mask_use.posted > 0).then_some(number))
    }
}
