// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The latest posted receives in order of posting: a ring of fixed length that holds them whole.
//!
//! Used by `posted`, which looks at its front before anything is hashed; calls nothing. A ring of
//! its own instead of a `VecDeque`, since its length is known: no place needs a check. A receive is
//! written here once, and a message that matches the front touches this place and none elsewhere.

use crate::want::{Key, Mask};

/// Receives that fit; chosen: the window of the usual message-rate tests. A power of two.
pub(crate) const LENGTH: usize = 64;

/// One receive: what it asks for, and what its owner keeps with it.
#[derive(Debug)]
pub(crate) struct Recent<R> {
    tag: u64,
    compared_tag_bits: u64,
    source: u32,
    compared_source_bits: u32,
    /// The order of posting among all receives.
    pub sequence: u64,
    /// None only where the place is vacant.
    pub body: Option<R>,
}

impl<R> Recent<R> {
    const fn vacant() -> Self {
        Recent {
            tag: 0,
            compared_tag_bits: 0,
            source: 0,
            compared_source_bits: 0,
            sequence: 0,
            body: None,
        }
    }

    #[inline(always)]
    pub fn key(&self) -> Key {
        Key {
            source: self.source,
            tag: self.tag,
        }
    }

    #[inline(always)]
    pub fn mask(&self) -> Mask {
        Mask {
            compared_tag_bits: self.compared_tag_bits,
            compared_source_bits: self.compared_source_bits,
        }
    }

    /// Whether a message with this key matches.
    #[inline(always)]
    pub fn takes(&self, key: Key) -> bool {
        self.mask().same(self.key(), key)
    }
}

/// The earliest receive, still in the ring.
pub(crate) struct Front<'a, R> {
    pub recent: &'a mut Recent<R>,
    popped: &'a mut u32,
}

impl<R> Front<'_, R> {
    /// Takes it out where it lies, and drops nothing: for one that owns nothing.
    #[inline(always)]
    pub fn forget(self) {
        std::mem::forget(self.recent.body.take());
        *self.popped = self.popped.wrapping_add(1);
    }
}

/// The ring.
#[derive(Debug)]
pub(crate) struct Queue<R> {
    places: Box<[Recent<R>; LENGTH]>,
    /// Both wrap.
    pushed: u32,
    popped: u32,
}

impl<R> Queue<R> {
    pub fn new() -> Self {
        Queue {
            places: Box::new([const { Recent::vacant() }; LENGTH]),
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
    fn place(&mut self, number: u32) -> &mut Recent<R> {
        &mut self.places[number as usize % LENGTH]
    }

    /// Adds a receive behind all others; the queue must not be full.
    #[inline(always)]
    pub fn push(&mut self, mask: Mask, key: Key, sequence: u64, body: R) {
        debug_assert!(!self.is_full(), "the caller empties it first");
        // Field by field: an entry built elsewhere and copied would be read back in other widths
        // than it was written.
        let place = self.place(self.pushed);
        place.tag = key.tag;
        place.compared_tag_bits = mask.compared_tag_bits;
        place.source = key.source;
        place.compared_source_bits = mask.compared_source_bits;
        place.sequence = sequence;
        // The place was vacant: there is nothing to drop, and to forget it spares the question.
        std::mem::forget(place.body.replace(body));
        self.pushed = self.pushed.wrapping_add(1);
    }

    /// The earliest receive.
    #[inline(always)]
    pub fn front(&mut self) -> Option<Front<'_, R>> {
        if self.len() == 0 {
            return None;
        }
        Some(Front {
            recent: &mut self.places[self.popped as usize % LENGTH],
            popped: &mut self.popped,
        })
    }

    /// Takes the earliest receive out, if there is one: what it asks for, its order and its
    /// content.
    pub fn pop_front(&mut self) -> Option<(Mask, Key, u64, R)> {
        let Front { recent, popped } = self.front()?;
        let (mask, key, sequence) = (recent.mask(), recent.key(), recent.sequence);
        let body = recent.body.take()?;
        *popped = popped.wrapping_add(1);
        Some((mask, key, sequence, body))
    }

    /// Takes out the receive that is so many behind the front. Linear in those before it.
    pub fn remove(&mut self, behind: usize) -> Option<R> {
        if behind >= self.len() {
            return None;
        }
        for step in (0..behind as u32).rev() {
            let at = |step| self.popped.wrapping_add(step) as usize % LENGTH;
            let (left, right) = (at(step), at(step + 1));
            self.places.swap(left, right);
        }
        self.pop_front().map(|(.., body)| body)
    }

    /// The receive that is so many behind the front.
    #[inline]
    pub fn get(&self, behind: usize) -> Option<&Recent<R>> {
        let number = self.popped.wrapping_add(behind as u32) as usize;
        (behind < self.len()).then(|| &self.places[number % LENGTH])
    }

    /// The same, to be changed.
    #[inline]
    pub fn get_mut(&mut self, behind: usize) -> Option<&mut Recent<R>> {
        let number = self.popped.wrapping_add(behind as u32);
        (behind < self.len()).then(|| self.place(number))
    }

    /// All receives, the earliest first.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &Recent<R>> {
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
                let (mask, key) = (Mask::default(), Key::default());
                queue.push(mask, key, u64::from(index), index);
                model.push_back(index);
                if queue.is_full() || index % 3 == 0 {
                    let behind = index as usize * 7 % model.len();
                    let seen = queue.get(behind).and_then(|recent| recent.body);
                    assert_eq!(seen, model.get(behind).copied());
                    assert_eq!(queue.remove(behind), model.remove(behind));
                }
                if index % 5 == 0 {
                    let popped = queue.pop_front().map(|(.., body)| body);
                    assert_eq!(popped, model.pop_front());
                }
                if index % 7 == 0 && !model.is_empty() {
                    queue.front().expect("the model has one").forget();
                    model.pop_front();
                }
                let bodies = queue.iter().filter_map(|recent| recent.body);
                assert!(bodies.eq(model.iter().copied()));
                let sequences = queue.iter().map(|recent| recent.sequence);
                assert!(sequences.eq(model.iter().copied().map(u64::from)));
                let front = queue.front().and_then(|front| front.recent.body);
                assert_eq!(front, model.front().copied());
            }
        }
    }
}
