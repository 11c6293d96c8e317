// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Operations under way, by the number that a transport knows them by. Numbers are used again at once.
//!
//! Used by core.rs for pending sends, messages being received, and multi-receives.

enum Slot<T> {
    /// Empty; names the next empty slot.
    Free(u32),
    Full(T),
}

/// The operations. Nothing is allocated while fewer are under way than were before.
pub(crate) struct Slots<T> {
    slots: Vec<Slot<T>>,
    /// The first empty slot; the length of `slots` if there is none.
    free: u32,
}

impl<T> Slots<T> {
    pub(crate) const fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: 0,
        }
    }

    /// The number that `insert` will answer next. Fast path.
    #[inline(always)]
    pub(crate) fn next(&self) -> u32 {
        self.free
    }

    /// Fast path.
    #[inline]
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        let number = self.free;
        match self.slots.get_mut(number as usize) {
            Some(slot) => {
                if let Slot::Free(next) = *slot {
                    self.free = next;
                }
                *slot = Slot::Full(value);
            }
            None => {
                self.slots.push(Slot::Full(value));
                self.free = self.slots.len() as u32;
            }
        }
        number
    }

    /// Calls `visit` with everything. Slow path.
    pub(crate) fn for_each_mut(&mut self, mut visit: impl FnMut(&mut T)) {
        for slot in &mut self.slots {
            if let Slot::Full(value) = slot {
                visit(value);
            }
        }
    }

    /// Fast path.
    #[inline]
    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        match self.slots.get_mut(number as usize)? {
            Slot::Full(value) => Some(value),
            Slot::Free(_) => None,
        }
    }

    /// Whether a value holds among those that are full. Slow path.
    pub(crate) fn any(&self, holds: impl Fn(&T) -> bool) -> bool {
        self.slots
            .iter()
            .any(|slot| matches!(slot, Slot::Full(value) if holds(value)))
    }

    /// The numbers of the values that hold. Slow path.
    pub(crate) fn numbers_where(&self, holds: impl Fn(&T) -> bool) -> Vec<u32> {
        let full = self.slots.iter().enumerate();
        full.filter(|(_, slot)| matches!(slot, Slot::Full(value) if holds(value)))
            .map(|(number, _)| number as u32)
            .collect()
    }

    /// Fast path.
    #[inline]
    pub(crate) fn remove(&mut self, number: u32) -> Option<T> {
        let slot = self.slots.get_mut(number as usize)?;
        if matches!(slot, Slot::Free(_)) {
            return None;
        }
        match std::mem::replace(slot, Slot::Free(self.free)) {
            Slot::Full(value) => {
                self.free = number;
                Some(value)
            }
            Slot::Free(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Slots;

    #[test]
    fn the_next_number_is_foretold_and_numbers_are_used_again() {
        let mut slots = Slots::new();
        for round in 0..3 {
            let numbers: Vec<u32> = (0..5)
                .map(|value| {
                    let next = slots.next();
                    assert_eq!(slots.insert(value * 10 + round), next);
                    next
                })
                .collect();
            assert!(
                numbers.iter().all(|&number| number < 5),
                "slots are used again: {numbers:?}"
            );
            for (value, &number) in numbers.iter().enumerate() {
                assert_eq!(slots.remove(number), Some(value as i32 * 10 + round));
                assert_eq!(slots.remove(number), None, "removed twice");
            }
        }
        assert_eq!(slots.get_mut(99), None);
    }
}
