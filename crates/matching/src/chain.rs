// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Circular doubly linked lists whose links lie in someone else's storage: first-in first-out, with
//! removal anywhere, all in constant time.
//!
//! Used by `posted` and `unexpected` for entries of equal keys and for the order of arrival;
//! `table` keeps the heads. The head's `previous` is the tail, so a list is named by its head
//! alone.

/// No entry: the end of a slab's index range.
pub(crate) const NONE: u32 = u32::MAX;

/// An entry's neighbours in its list; itself where it is alone.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Link {
    pub previous: u32,
    pub next: u32,
}

/// Where the links of entries lie.
pub(crate) trait Links {
    /// The link of entry `index`.
    fn link(&self, index: u32) -> Link;
    /// The link of entry `index`, to be changed.
    fn link_mut(&mut self, index: u32) -> &mut Link;
}

/// An entry that carries a link itself.
pub(crate) trait HasLink {
    /// Its link.
    fn link(&self) -> Link;
    /// Its link, to be changed.
    fn link_mut(&mut self) -> &mut Link;
}

impl Links for Vec<Link> {
    #[inline]
    fn link(&self, index: u32) -> Link {
        self[index as usize]
    }
    #[inline]
    fn link_mut(&mut self, index: u32) -> &mut Link {
        &mut self[index as usize]
    }
}

/// Makes entry `index` a list of one.
#[inline]
pub(crate) fn start(links: &mut impl Links, index: u32) {
    *links.link_mut(index) = Link {
        previous: index,
        next: index,
    };
}

/// Appends entry `index` to the list that `head` names.
#[inline]
pub(crate) fn append(links: &mut impl Links, head: u32, index: u32) {
    let tail = links.link(head).previous;
    *links.link_mut(index) = Link {
        previous: tail,
        next: head,
    };
    links.link_mut(tail).next = index;
    links.link_mut(head).previous = index;
}

/// Takes entry `index` out of its list. Gives the entry after it, or `NONE` when it was alone.
#[inline]
pub(crate) fn unlink(links: &mut impl Links, index: u32) -> u32 {
    let Link { previous, next } = links.link(index);
    if next == index {
        return NONE;
    }
    links.link_mut(previous).next = next;
    links.link_mut(next).previous = previous;
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(links: &Vec<Link>, head: u32) -> Vec<u32> {
        let mut seen = vec![head];
        let mut at = links.link(head).next;
        while at != head {
            assert_eq!(links.link(links.link(at).previous).next, at);
            seen.push(at);
            at = links.link(at).next;
        }
        seen
    }

    #[test]
    fn entries_stay_in_the_order_appended_whichever_is_unlinked() {
        let mut links = vec![Link::default(); 4];
        start(&mut links, 2);
        for index in [0, 3, 1] {
            append(&mut links, 2, index);
        }
        assert_eq!(walk(&links, 2), [2, 0, 3, 1]);
        assert_eq!(unlink(&mut links, 3), 1);
        assert_eq!(walk(&links, 2), [2, 0, 1]);
        assert_eq!(unlink(&mut links, 2), 0);
        assert_eq!(walk(&links, 0), [0, 1]);
        assert_eq!(unlink(&mut links, 1), 0);
        assert_eq!(unlink(&mut links, 0), NONE);
    }
}
