// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which pages of the heap are whose: extents of whole pages, merged with their free neighbours, found by size. Called by arena under
//! its lock; pure, so that its laws are tested without a heap.
//!
//! One entry for each page, of which only those at the two ends of an extent mean anything (boundary tags, Knuth 1968). So the table
//! may be sparse memory that costs a page for some MiB of heap in use. Free extents are in lists by the power of two below their length.

/// Pages of an extent are counted in this size. Specified: the base page of all supported machines is this or a multiple.
pub const PAGE_BYTES: usize = 4096;

/// Lists of free extents: one for each power of two that a `u32` holds.
const LIST_COUNT: usize = 32;

/// Extents of the list where only some fit that are looked at before the next list is taken. Chosen: bounds the time of a call.
const LOOK_COUNT: usize = 64;

/// No page.
const NONE: u32 = u32::MAX;

/// What an extent is, as its first page says; zero is none of them.
const FREE: u32 = 1;
/// Free, and its pages are known to read as zero and to cost nothing.
const CLEAN: u32 = 2;
/// Allocated: the first page.
const USED: u32 = 3;
/// Allocated: the last page, if there are several.
const USED_END: u32 = 4;

/// What is known of one page. All zero at first.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct Entry {
    kind: u32,
    /// Pages of the extent, at both ends of a free one and at the first page of an allocated one.
    pages: u32,
    next: u32,
    previous: u32,
}

/// A stretch of pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Its first page.
    pub first: u32,
    /// How many there are, at least one.
    pub pages: u32,
    /// Whether they are known to read as zero.
    pub is_clean: bool,
}

/// All pages of a heap.
#[derive(Debug)]
pub struct Extents<'a> {
    entries: &'a mut [Entry],
    lists: [u32; LIST_COUNT],
    /// Free pages that may hold memory.
    idle_pages: u64,
    /// Pages that are allocated.
    used_pages: u64,
}

fn list_of(pages: u32) -> usize {
    pages.max(1).ilog2() as usize
}

impl<'a> Extents<'a> {
    /// One free extent of as many pages as there are zeroed entries, at most 2^32 - 2.
    pub fn new(entries: &'a mut [Entry]) -> Self {
        let mut extents = Self {
            entries,
            lists: [NONE; LIST_COUNT],
            idle_pages: 0,
            used_pages: 0,
        };
        let pages = u32::try_from(extents.entries.len()).unwrap_or(NONE - 1);
        if pages > 0 {
            extents.insert(Extent {
                first: 0,
                pages,
                is_clean: true,
            });
        }
        extents
    }

    /// Free pages that may hold memory.
    pub fn idle_pages(&self) -> u64 {
        self.idle_pages
    }

    /// Pages that are allocated.
    pub fn used_pages(&self) -> u64 {
        self.used_pages
    }

    /// Takes `pages` pages, the first at a multiple of `align_pages` (a power of two); `None` if there is no such stretch.
    pub fn allocate(&mut self, pages: u32, align_pages: u32) -> Option<Extent> {
        let (found, skipped) = self.find(pages.max(1), align_pages.max(1))?;
        self.remove(found);
        let extent = Extent {
            first: found.first + skipped,
            pages: pages.max(1),
            ..found
        };
        if skipped > 0 {
            self.insert(Extent {
                pages: skipped,
                ..found
            });
        }
        let rest = found.pages - skipped - extent.pages;
        if rest > 0 {
            self.insert(Extent {
                first: extent.first + extent.pages,
                pages: rest,
                ..found
            });
        }
        self.mark_used(extent);
        Some(extent)
    }

    /// Gives an allocation back by its first page and merges it with its neighbours; answers the free extent that it is
    /// part of now, or `None` if no allocation begins at that page.
    pub fn free(&mut self, first: u32) -> Option<Extent> {
        let pages = self.used(first)?;
        self.used_pages -= u64::from(pages);
        let freed = Extent {
            first,
            pages,
            is_clean: false,
        };
        Some(self.insert_merged(freed))
    }

    /// The pages of the allocation that begins at `first`, if one does.
    pub fn used(&self, first: u32) -> Option<u32> {
        let entry = self.entries.get(first as usize)?;
        (entry.kind == USED).then_some(entry.pages)
    }

    /// Makes an allocation `pages` long where it lies; answers what it was, or `None` if there is no room behind it.
    /// New pages are not clean.
    pub fn resize(&mut self, first: u32, pages: u32) -> Option<u32> {
        let before = self.used(first)?;
        let end = first + before;
        if pages > before {
            let next = self.free_at(end)?;
            let missing = pages - before;
            if next.pages < missing {
                return None;
            }
            self.remove(next);
            if next.pages > missing {
                self.insert(Extent {
                    first: end + missing,
                    pages: next.pages - missing,
                    ..next
                });
            }
        }
        self.used_pages -= u64::from(before);
        self.mark_used(Extent {
            first,
            pages: pages.max(1),
            is_clean: false,
        });
        if pages < before {
            self.insert_merged(Extent {
                first: first + pages.max(1),
                pages: before - pages.max(1),
                is_clean: false,
            });
        }
        Some(before)
    }

    /// Says that the pages of a free extent were given back to the system, and merges it with clean neighbours.
    pub fn cleaned(&mut self, extent: Extent) {
        self.remove(extent);
        self.insert_merged(Extent {
            is_clean: true,
            ..extent
        });
    }

    /// Some free extent that may hold memory, if there is one.
    pub fn idle(&self) -> Option<Extent> {
        let mut heads = self.lists.iter().rev().copied();
        heads.find_map(|head| self.chain(head).find(|extent| !extent.is_clean))
    }

    fn chain(&self, head: u32) -> impl Iterator<Item = Extent> {
        let step = |&first: &u32| {
            let next = self.entries[first as usize].next;
            (next != NONE).then_some(next)
        };
        let first = (head != NONE).then_some(head);
        std::iter::successors(first, step).map(|first| self.extent_at(first))
    }

    fn extent_at(&self, first: u32) -> Extent {
        let entry = &self.entries[first as usize];
        Extent {
            first,
            pages: entry.pages,
            is_clean: entry.kind == CLEAN,
        }
    }

    /// The free extent that begins at a page.
    fn free_at(&self, first: u32) -> Option<Extent> {
        let entry = self.entries.get(first as usize)?;
        matches!(entry.kind, FREE | CLEAN).then(|| self.extent_at(first))
    }

    /// The free extent that ends before a page.
    fn free_before(&self, page: u32) -> Option<Extent> {
        let end = &self.entries[page.checked_sub(1)? as usize];
        matches!(end.kind, FREE | CLEAN).then(|| self.extent_at(page - end.pages))
    }

    /// A free extent with room, and the pages to skip for alignment: of the shortest that have it, one that was freed lately. So
    /// the long stretch that was never used is taken last.
    fn find(&self, pages: u32, align_pages: u32) -> Option<(Extent, u32)> {
        let fit = |extent: Extent| {
            let skipped = extent.first.next_multiple_of(align_pages) - extent.first;
            let fits = u64::from(skipped) + u64::from(pages) <= u64::from(extent.pages);
            fits.then_some((extent, skipped))
        };
        let in_list = |&head: &u32| self.chain(head).take(LOOK_COUNT).find_map(fit);
        self.lists[list_of(pages)..].iter().find_map(in_list)
    }

    fn mark_used(&mut self, extent: Extent) {
        self.used_pages += u64::from(extent.pages);
        let last = (extent.first + extent.pages - 1) as usize;
        self.entries[last].kind = USED_END;
        let entry = &mut self.entries[extent.first as usize];
        (entry.kind, entry.pages) = (USED, extent.pages);
    }

    fn insert_merged(&mut self, mut extent: Extent) -> Extent {
        let same = |other: &Extent| other.is_clean == extent.is_clean;
        let before = self.free_before(extent.first).filter(same);
        let after = self.free_at(extent.first + extent.pages).filter(same);
        // Whoever asks for the middle of a merged extent must not find an allocation there.
        self.entries[extent.first as usize].kind = FREE;
        if let Some(after) = after {
            self.remove(after);
            extent.pages += after.pages;
        }
        if let Some(before) = before {
            self.remove(before);
            extent.first = before.first;
            extent.pages += before.pages;
        }
        self.insert(extent);
        extent
    }

    /// Puts a free extent at the front of its list.
    fn insert(&mut self, extent: Extent) {
        let kind = if extent.is_clean { CLEAN } else { FREE };
        let list = list_of(extent.pages);
        let next = self.lists[list];
        if next != NONE {
            self.entries[next as usize].previous = extent.first;
        }
        self.lists[list] = extent.first;
        let last = (extent.first + extent.pages - 1) as usize;
        (self.entries[last].kind, self.entries[last].pages) = (kind, extent.pages);
        self.entries[extent.first as usize] = Entry {
            kind,
            pages: extent.pages,
            next,
            previous: NONE,
        };
        if !extent.is_clean {
            self.idle_pages += u64::from(extent.pages);
        }
    }

    fn remove(&mut self, extent: Extent) {
        let Entry { next, previous, .. } = self.entries[extent.first as usize];
        if next != NONE {
            self.entries[next as usize].previous = previous;
        }
        if previous == NONE {
            self.lists[list_of(extent.pages)] = next;
        } else {
            self.entries[previous as usize].next = next;
        }
        if !extent.is_clean {
            self.idle_pages -= u64::from(extent.pages);
        }
    }
}

#[cfg(test)]
#[path = "extents_tests.rs"]
mod tests;
