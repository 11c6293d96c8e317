// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The latest posted receives in order of posting: a ring of fixed length that holds all that matching compares.
//!
//! Used by `posted`, which looks at its front before anything is hashed; calls nothing. A ring of its own instead of a `VecDeque`, since
//! its length is known: no place needs a check, and a message that matches the front touches one line here and none elsewhere.

use crate::want::{Key, Mask};

/// Receives that fit; chosen: the window of the usual message-rate tests. A power of two.
pub(crate) const LENGTH: usize = 64;

/// One receive.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Recent {
    pub key: Key,
    pub mask: Mask,
    /// Where it lies in the slab.
    pub index: u32,
}

/// The ring.
#[derive(Debug)]
pub(crate) struct Queue {
    places: Box<[Recent; LENGTH]>,
    /// Both wrap.
    pushed: u32,
    popped: u32,
}

impl Queue {
    pub fn new() -> Self {
        Queue {
            places: Box::new([Recent::default(); LENGTH]),
            pushed: 0,
            popped: 0,
        }
    }

    #[inline(always)]
    pub fn len(&self) -> usize {
        self.pushed.wrapping_sub(self.popped) as usize
    }

    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.len() == LENGTH
    }

    #[inline(always)]
    fn place(&mut self, number: u32) -> &mut Recent {
        &mut self.places[number as usize % LENGTH]
    }

    /// Adds a receive behind all others; the queue must not be full.
    #[inline(always)]
    pub fn push(&mut self, recent: Recent) {
        debug_assert!(!self.is_full(), "the caller empties it first");
        *self.place(self.pushed) = recent;
        self.pushed = self.pushed.wrapping_add(1);
    }

    /// The earliest receive.
    #[inline(always)]
    pub fn front(&self) -> Option<&Recent> {
        (self.len() > 0).then_some(&self.places[self.popped as usize % LENGTH])
    }

    /// Takes the earliest receive out, if there is one.
    #[inline(always)]
    pub fn pop_front(&mut self) -> Option<Recent> {
        let front = *self.front()?;
        self.popped = self.popped.wrapping_add(1);
        Some(front)
    }

    /// Takes out the receive that is so many behind the front. Linear in those before it.
    pub fn remove(&mut self, behind: usize) -> Option<Recent> {
        let removed = *self.iter().nth(behind)?;
        for step in (0..behind as u32).rev() {
            let number = self.popped.wrapping_add(step);
            *self.place(number.wrapping_add(1)) = *self.place(number);
        }
        self.popped = self.popped.wrapping_add(1);
        Some(removed)
    }

    /// All receives, the earliest first.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &Recent> {
        let number = |step| self.popped.wrapping_add(step) as usize;
        (0..self.len() as u32).map(move |step| &self.places[number(step) % LENGTH])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receives_keep_their_order_whichever_is_removed_and_wherever_the_ring_wraps() {
        for start in [0, u32::MAX - 30] {
            let mut queue = Queue::new();
            (queue.pushed, queue.popped) = (start, start);
            let mut model = std::collections::VecDeque::new();
            for index in 0..1000_u32 {
                queue.push(Recent {
                    index,
                    ..Recent::default()
                });
                model.push_back(index);
                if queue.is_full() || index % 3 == 0 {
                    let behind = index as usize * 7 % model.len();
                    assert_eq!(
                        queue.remove(behind).map(|recent| recent.index),
                        model.remove(behind)
                    );
                }
                if index % 5 == 0 {
                    let popped = queue.pop_front().map(|recent| recent.index);
                    assert_eq!(popped, model.pop_front());
                }
                assert!(
                    queue
                        .iter()
                        .map(|recent| recent.index)
                        .eq(model.iter().copied())
                );
                assert_eq!(
                    queue.front().map(|recent| recent.index),
                    model.front().copied()
                );
            }
        }
    }
}
