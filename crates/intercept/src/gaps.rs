// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Pairs with gaps (MPI_DOUBLE_INT, MPI_LONG_INT, MPI_SHORT_INT): a value and its place, laid out
//! as C lays out a structure of the two, with bytes between or behind them that belong to neither.
//! Pure but for the program's memory. Used by buffers; MPI 4.1, 6.9.4.
//!
//! Reductions work on a copy, so that the gaps of the program's buffer are neither read nor
//! written: the last one may lie behind the end of the buffer.

/// Bytes of a place, which is an `int`.
const PLACE_BYTES: usize = 4;

/// Where the two parts of such a pair lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gaps {
    /// Length of the value, which lies at the beginning.
    value_bytes: usize,
    /// Where the place lies, from the beginning.
    place_at_bytes: usize,
    /// From one pair to the next.
    extent_bytes: usize,
}

impl Gaps {
    /// Of a value of so many bytes, 2 or 8, and an `int`, which lies at a multiple of its size.
    pub const fn of_value(value_bytes: usize) -> Self {
        let place_at_bytes = value_bytes.next_multiple_of(PLACE_BYTES);
        let alignment_bytes = if value_bytes > PLACE_BYTES {
            value_bytes
        } else {
            PLACE_BYTES
        };
        Self {
            value_bytes,
            place_at_bytes,
            extent_bytes: (place_at_bytes + PLACE_BYTES).next_multiple_of(alignment_bytes),
        }
    }

    /// From one pair to the next, in bytes.
    pub const fn extent_bytes(self) -> usize {
        self.extent_bytes
    }

    /// The program's pairs, of which there are so many bytes with their gaps. The gaps are 0.
    ///
    /// # Safety
    /// The parts of so many pairs must be readable at `from`.
    pub unsafe fn read(self, from: *const u8, length_bytes: usize) -> Vec<u8> {
        let mut pairs = vec![0; length_bytes];
        // SAFETY: the caller's promise.
        unsafe { self.read_into(from, &mut pairs) };
        pairs
    }

    /// # Safety
    /// As [`Self::read`].
    unsafe fn read_into(self, from: *const u8, room: &mut [u8]) {
        for (at, pair) in room.chunks_exact_mut(self.extent_bytes).enumerate() {
            let from = from.wrapping_add(at * self.extent_bytes);
            let (value, rest) = pair.split_at_mut(self.value_bytes);
            let place = &mut rest[self.place_at_bytes - self.value_bytes..][..PLACE_BYTES];
            // SAFETY: the caller's promise; the slices are ours and as long as what is copied.
            unsafe {
                value
                    .as_mut_ptr()
                    .copy_from_nonoverlapping(from, value.len());
                let from = from.add(self.place_at_bytes);
                place
                    .as_mut_ptr()
                    .copy_from_nonoverlapping(from, PLACE_BYTES);
            }
        }
    }

    /// Copies pairs to where the program wants them. The gaps there stay as they are.
    ///
    /// # Safety
    /// The parts of so many pairs must be writable at `to`.
    pub unsafe fn write(self, pairs: &[u8], to: *mut u8) {
        for (at, pair) in pairs.chunks_exact(self.extent_bytes).enumerate() {
            let to = to.wrapping_add(at * self.extent_bytes);
            let value = &pair[..self.value_bytes];
            let place = &pair[self.place_at_bytes..][..PLACE_BYTES];
            // SAFETY: the caller's promise; the slices are ours and as long as what is copied.
            unsafe {
                to.copy_from_nonoverlapping(value.as_ptr(), value.len());
                let to = to.add(self.place_at_bytes);
                to.copy_from_nonoverlapping(place.as_ptr(), PLACE_BYTES);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_lie_as_in_c() {
        for (value_bytes, place_at_bytes, extent_bytes) in [(2, 4, 8), (8, 8, 16)] {
            let gaps = Gaps::of_value(value_bytes);
            assert_eq!(gaps.place_at_bytes, place_at_bytes);
            assert_eq!(gaps.extent_bytes, extent_bytes);
        }
    }

    /// The buffers end with the last place, as those of a program may that knows of no gap behind
    /// it.
    #[test]
    fn nothing_but_the_parts_is_read_or_written() {
        for (value_bytes, is_part) in [
            (
                2,
                [true, true, false, false, true, true, true, true].as_slice(),
            ),
            (8, &[[true; 12].as_slice(), &[false; 4]].concat()),
        ] {
            let gaps = Gaps::of_value(value_bytes);
            let length_bytes = 2 * gaps.extent_bytes + gaps.place_at_bytes + PLACE_BYTES;
            let program: Vec<u8> = (1..=length_bytes as u8).collect();
            // SAFETY: three pairs, the last one without the gap behind it.
            let copy = unsafe { gaps.read(program.as_ptr(), 3 * gaps.extent_bytes) };
            let mut result = vec![0xff; length_bytes];
            let everywhere = vec![7; copy.len()];
            // SAFETY: as above.
            unsafe { gaps.write(&everywhere, result.as_mut_ptr()) };
            for (at, &is_part) in is_part.iter().cycle().take(length_bytes).enumerate() {
                assert_eq!(copy[at], if is_part { program[at] } else { 0 }, "byte {at}");
                assert_eq!(result[at], if is_part { 7 } else { 0xff }, "byte {at}");
            }
        }
    }
}
