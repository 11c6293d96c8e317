// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Storage for entries that are reused, each stamped with a sequence number that is never reused.
//!
//! Used by `posted` and `unexpected`; calls nothing. The sequence number is both the order of
//! posting (or arrival) and the generation of an id: 64 bits do not wrap in the life of a process,
//! so a stale id never names a later entry. Memory is kept at its highest use and reused; when the
//! slab runs empty the cells are handed out from the first again, so that the next burst lies in
//! order.

use crate::chain::{HasLink, Link, Links, NONE};

/// Names one stay of an entry in a slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Id {
    pub index: u32,
    pub sequence: u64,
}

#[derive(Debug)]
struct Cell<H, T> {
    /// 0 while the cell is vacant.
    sequence: u64,
    head: H,
    body: Option<T>,
}

/// Entries of a small plain head, which the indexes read, and a body, which belongs to the owner.
#[derive(Debug)]
pub(crate) struct Slab<H, T> {
    cells: Vec<Cell<H, T>>,
    /// Vacant cells below `untouched`, the one freed last on top.
    vacant: Vec<u32>,
    /// All cells from here on are vacant.
    untouched: u32,
    count: u32,
    last_sequence: u64,
}

impl<H: Default, T> Slab<H, T> {
    pub fn new() -> Self {
        Slab {
            cells: Vec::new(),
            vacant: Vec::new(),
            untouched: 0,
            count: 0,
            last_sequence: 0,
        }
    }

    /// Entries present.
    #[inline(always)]
    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// Stores an entry and gives its index. Allocates only beyond the highest use so far.
    #[inline(always)]
    pub fn insert(&mut self, head: H, body: T) -> u32 {
        self.last_sequence += 1;
        self.insert_as(self.last_sequence, head, body)
    }

    /// As [`Slab::insert`], for an entry whose place in the order of all was decided before.
    #[inline(always)]
    pub fn insert_as(&mut self, sequence: u64, head: H, body: T) -> u32 {
        self.count += 1;
        let index = match self.vacant.pop() {
            Some(index) => index,
            None => {
                self.untouched += 1;
                self.untouched - 1
            }
        };
        if self.cells.len() <= index as usize {
            self.grow();
        }
        // Field by field: a cell built elsewhere and copied would be read back in other widths than
        // it was written.
        let cell = &mut self.cells[index as usize];
        cell.sequence = sequence;
        cell.head = head;
        // The cell was vacant: there is nothing to drop, and to forget it spares the question.
        std::mem::forget(cell.body.replace(body));
        index
    }

    #[cold]
    fn grow(&mut self) {
        let limit = NONE as usize;
        assert!(
            self.cells.len() < limit,
            "{limit} entries wait for a match, the most there can be: receive or cancel some"
        );
        self.cells.push(Cell {
            sequence: 0,
            head: H::default(),
            body: None,
        });
    }

    /// Takes the entry at `index` out; `None` when the cell is vacant.
    #[inline(always)]
    pub fn remove(&mut self, index: u32) -> Option<T> {
        let body = self.cells.get_mut(index as usize)?.body.take()?;
        self.vacate(index);
        Some(body)
    }

    /// Drops the entry at `index`, which must be present, where it lies: what [`Slab::remove`]
    /// does, less the move.
    #[inline(always)]
    pub fn discard(&mut self, index: u32) {
        self.cells[index as usize].body = None;
        self.vacate(index);
    }

    /// The cell at `index` has no entry any more.
    #[inline(always)]
    fn vacate(&mut self, index: u32) {
        self.cells[index as usize].sequence = 0;
        self.count -= 1;
        if self.count == 0 {
            self.vacant.clear();
            self.untouched = 0;
        } else {
            self.vacant.push(index);
        }
    }

    /// The id of the entry at `index`, which must be present.
    #[inline(always)]
    pub fn id(&self, index: u32) -> Id {
        Id {
            index,
            sequence: self.sequence(index),
        }
    }

    /// Where the entry that `id` names lies; `None` when it has left.
    #[inline(always)]
    pub fn index(&self, id: Id) -> Option<u32> {
        let cell = self.cells.get(id.index as usize)?;
        (cell.sequence == id.sequence).then_some(id.index)
    }

    /// The order of the entry at `index` among all: smaller came earlier.
    #[inline(always)]
    pub fn sequence(&self, index: u32) -> u64 {
        self.cells[index as usize].sequence
    }

    #[inline(always)]
    pub fn head(&self, index: u32) -> &H {
        &self.cells[index as usize].head
    }

    #[inline(always)]
    pub fn body(&self, index: u32) -> Option<&T> {
        self.cells[index as usize].body.as_ref()
    }

    #[inline(always)]
    pub fn body_mut(&mut self, index: u32) -> Option<&mut T> {
        self.cells[index as usize].body.as_mut()
    }

    /// All entries in storage order: index, sequence, head and body. Linear in the highest use
    /// since the slab was last empty.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u64, &H, &T)> {
        let touched = self.cells.iter().take(self.untouched as usize);
        (0..).zip(touched).filter_map(|(index, cell)| {
            Some((index, cell.sequence, &cell.head, cell.body.as_ref()?))
        })
    }
}

impl<H: HasLink, T> Links for Slab<H, T> {
    #[inline]
    fn link(&self, index: u32) -> Link {
        self.cells[index as usize].head.link()
    }
    #[inline]
    fn link_mut(&mut self, index: u32) -> &mut Link {
        self.cells[index as usize].head.link_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stale_id_names_nothing_even_when_its_cell_is_reused() {
        let mut slab = Slab::new();
        let first = slab.insert((), 'a');
        let stale = slab.id(first);
        assert_eq!(slab.remove(first), Some('a'));
        assert_eq!(slab.index(stale), None);
        let second = slab.insert((), 'b');
        assert_eq!(second, first);
        assert_eq!(slab.index(stale), None);
        assert_eq!(slab.index(slab.id(second)), Some(second));
        assert_eq!(slab.remove(second), Some('b'));
        assert_eq!(slab.remove(second), None);
    }

    #[test]
    fn storage_is_reused_and_handed_out_in_order_after_running_empty() {
        let mut slab = Slab::new();
        for round in 0..3 {
            let all: Vec<u32> = (0..100).map(|n| slab.insert((), n + round)).collect();
            assert_eq!(all, (0..100).collect::<Vec<_>>());
            for index in (0..100).map(|n| (n * 37) % 100) {
                assert!(slab.remove(index).is_some());
            }
        }
        assert_eq!(slab.cells.len(), 100);
        assert_eq!(slab.count(), 0);
    }
}
