// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where one read of a completion queue puts its entries: the application's array, in C's layout.
//!
//! Made by the provider for each read; filled by the endpoint's queue, while it makes progress or
//! from what waited before. Source: fi_cq(3); each entry format is the beginning of the next longer
//! one.

use crate::UserBuffer;

/// Words of the longest entry: context, flags, length, address, data, tag.
pub const ENTRY_WORDS: usize = 6;

/// Room for some entries, of which the first ones are taken.
#[derive(Debug)]
pub struct CqBuffer {
    next: *mut u64,
    /// Where sources go, or null.
    next_source: *mut u64,
    /// Words of an entry.
    words: usize,
    taken: usize,
    room: usize,
}

// SAFETY: the contract of `over` lends the memory to whoever holds the value, not to one thread.
unsafe impl Send for CqBuffer {}

impl CqBuffer {
    /// One without room.
    pub const fn closed() -> Self {
        Self {
            next: core::ptr::null_mut(),
            next_source: core::ptr::null_mut(),
            words: ENTRY_WORDS,
            taken: 0,
            room: 0,
        }
    }

    /// One over an application's array for `room` entries of `words` words each, at most
    /// [`ENTRY_WORDS`], and over one for as many sources unless that is null. Fast path.
    ///
    /// # Safety
    /// Both must be aligned to words and writable for `room` elements until the value is closed or
    /// dropped, and nothing else may touch them meanwhile.
    #[inline(always)]
    pub const unsafe fn over(
        entries: *mut u64,
        words: usize,
        sources: *mut u64,
        room: usize,
    ) -> Self {
        Self {
            next: entries,
            next_source: sources,
            words,
            taken: 0,
            room,
        }
    }

    /// One over a buffer of one piece, for as many entries of `words` words as fit: for tests,
    /// which do without `unsafe`. None if the buffer is in pieces or not aligned, or if there is no
    /// such format.
    pub fn in_buffer(buffer: &UserBuffer, words: usize) -> Option<Self> {
        let base = buffer.address() as *mut u64;
        let fits =
            buffer.is_contiguous() && base.is_aligned() && (1..=ENTRY_WORDS).contains(&words);
        let room = buffer.length_bytes() / (8 * words.max(1));
        // SAFETY: the buffer is ours to write until its completion is written (its constructor's
        // contract).
        fits.then(|| unsafe { Self::over(base, words, core::ptr::null_mut(), room) })
    }

    /// Whether one more entry fits. Fast path.
    #[inline(always)]
    pub fn has_room(&self) -> bool {
        self.taken < self.room
    }

    /// How many entries were put.
    #[inline(always)]
    pub fn taken(&self) -> usize {
        self.taken
    }

    /// Takes no more. Fast path.
    #[inline(always)]
    pub fn close(&mut self) {
        self.room = self.taken;
    }

    /// Puts an entry, as much of it as its format has, and its source. Without room it does
    /// nothing. Fast path.
    #[inline(always)]
    pub fn put(&mut self, entry: [u64; ENTRY_WORDS], source: u64) {
        if !self.has_room() {
            return;
        }
        let [context, flags, length_bytes, address, data, tag] = entry;
        // SAFETY: there is room for one more entry of `words` words, and for its source if these
        // are wanted (contract).
        unsafe {
            self.next.write(context);
            if self.words > 1 {
                self.next.add(1).write(flags);
                self.next.add(2).write(length_bytes);
            }
            if self.words > 3 {
                self.next.add(3).write(address);
                self.next.add(4).write(data);
            }
            if self.words > 5 {
                self.next.add(5).write(tag);
            }
            self.next = self.next.add(self.words);
            if !self.next_source.is_null() {
                self.next_source.write(source);
                self.next_source = self.next_source.add(1);
            }
        }
        self.taken += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_gets_its_part_of_an_entry_and_no_more_than_there_is_room_for() {
        for words in [1, 3, 5, 6] {
            let mut entries = [9_u64; 3 * ENTRY_WORDS];
            let mut sources = [9_u64; 3];
            // SAFETY: both arrays have room for two, and are not touched while the buffer is used.
            let mut buffer =
                unsafe { CqBuffer::over(entries.as_mut_ptr(), words, sources.as_mut_ptr(), 2) };
            for number in 0..3 {
                let entry = [0, 1, 2, 3, 4, 5].map(|word| 10 * number + word);
                assert_eq!(buffer.has_room(), number < 2);
                buffer.put(entry, number);
            }
            assert_eq!(buffer.taken(), 2);
            let first = (0..words as u64).chain((0..words as u64).map(|word| 10 + word));
            let expected: Vec<u64> = first.chain(std::iter::repeat(9)).take(18).collect();
            assert_eq!((&entries[..], sources), (&expected[..], [0, 1, 9]));
        }
    }

    #[test]
    fn a_closed_buffer_keeps_what_it_has_and_takes_no_more() {
        let mut entries = [9_u64; 2];
        // SAFETY: the array has room for what is said, and outlives the buffer.
        let mut buffer =
            unsafe { CqBuffer::over(entries.as_mut_ptr(), 1, core::ptr::null_mut(), 2) };
        buffer.put([1; ENTRY_WORDS], 0);
        buffer.close();
        buffer.put([2; ENTRY_WORDS], 0);
        assert_eq!((buffer.taken(), entries), (1, [1, 9]));
        assert!(!CqBuffer::closed().has_room());
    }
}
