// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random use of memory, as programs, allocators and the provider make of it together.

use std::ffi::c_void;
use std::ptr;

use crate::forks::forked;
use crate::offering::*;

const SEED_VARIABLE: &str = "WEFT_TEST_SEED";
const ROUNDS: usize = 6000;

struct Random(u64);

impl Random {
    fn seeded() -> Self {
        let given = std::env::var(SEED_VARIABLE)
            .ok()
            .and_then(|text| text.parse().ok());
        let seed = given.unwrap_or_else(|| u64::from(std::process::id()) * 2_654_435_761);
        println!("{SEED_VARIABLE}={seed}");
        Self(seed)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// Memory, and what it should hold.
struct Piece {
    address: *mut u8,
    model: Vec<u8>,
    is_mapped: bool,
}

impl Piece {
    fn new(random: &mut Random) -> Self {
        let is_mapped = random.below(2) == 0;
        let bytes =
            (5000 + random.below(300_000)).next_multiple_of(if is_mapped { PAGE } else { 1 });
        let mark = random.below(256) as u8;
        let address = if is_mapped {
            mapped(bytes, mark)
        } else {
            block(bytes, mark)
        };
        let model = (0..bytes).map(|index| byte(index, mark)).collect();
        Self {
            address,
            model,
            is_mapped,
        }
    }

    fn check(&self) {
        assert!(bytes_at(self.address, self.model.len()) == self.model);
    }

    /// A stretch of it: offset and length.
    fn stretch(&self, random: &mut Random) -> (usize, usize) {
        let from = random.below(self.model.len());
        (from, 1 + random.below(self.model.len() - from))
    }

    fn write(&mut self, random: &mut Random) {
        let (from, length) = self.stretch(random);
        let mark = random.below(256) as u8;
        self.model[from..from + length].fill(mark);
        // SAFETY: memory of this piece.
        unsafe { ptr::write_bytes(self.address.wrapping_add(from), mark, length) };
    }

    /// Offers some or all of it, some times; what receivers would read is what it holds.
    fn offer(&self, random: &mut Random) {
        let (from, length) = match random.below(3) {
            0 => self.stretch(random),
            _ => (0, self.model.len()),
        };
        let at = self.address.wrapping_add(from);
        for _ in 0..random.below(60) {
            if offer(at, length) {
                assert!(is_right(at, length), "a receiver would read other bytes");
                return;
            }
        }
    }

    fn clear(&mut self, random: &mut Random) {
        let (from, length) = self.stretch(random);
        let at = self.address.wrapping_add(from);
        let (start, whole) = whole_pages(at, length.max(PAGE * 2).min(self.model.len() - from));
        if whole == 0 || whole > self.model.len() {
            return;
        }
        // SAFETY: whole pages of this piece.
        unsafe { libc::madvise(start as *mut c_void, whole, libc::MADV_DONTNEED) };
        let first = start - self.address as usize;
        self.model[first..first + whole].fill(0);
    }

    fn resize(&mut self, random: &mut Random) {
        let bytes = (5000 + random.below(300_000)).next_multiple_of(PAGE);
        // SAFETY: memory of this piece, which moves.
        let moved = unsafe {
            let old = self.address.cast::<c_void>();
            if self.is_mapped {
                libc::mremap(old, self.model.len(), bytes, libc::MREMAP_MAYMOVE)
            } else {
                libc::realloc(old, bytes)
            }
        };
        assert!(moved != libc::MAP_FAILED && !moved.is_null());
        self.address = moved.cast();
        let kept = bytes.min(self.model.len());
        self.model.resize(bytes, 0);
        // What has come is not to be relied on.
        // SAFETY: memory of this piece.
        unsafe { ptr::write_bytes(self.address.wrapping_add(kept), 0, bytes - kept) };
    }

    fn end(self) {
        self.check();
        // SAFETY: memory of this piece, of which nothing is left.
        unsafe {
            if self.is_mapped {
                libc::munmap(self.address.cast(), self.model.len());
            } else {
                libc::free(self.address.cast());
            }
        }
    }
}

#[test]
#[ignore = "run by a law of the same subject, preloaded"]
fn child_random() {
    let mut random = Random::seeded();
    let mut pieces: Vec<Piece> = Vec::new();
    for round in 0..ROUNDS {
        if pieces.len() < 4 || (pieces.len() < 12 && random.below(8) == 0) {
            pieces.push(Piece::new(&mut random));
        }
        let index = random.below(pieces.len());
        let piece = &mut pieces[index];
        match random.below(9) {
            0 | 1 => piece.write(&mut random),
            2..=4 => piece.offer(&mut random),
            5 => piece.clear(&mut random),
            6 => piece.resize(&mut random),
            7 => pieces.swap_remove(index).end(),
            _ if round % 10 == 0 => {
                let code = forked(|| {
                    pieces.iter().for_each(Piece::check);
                    pieces.iter_mut().for_each(|piece| piece.write(&mut random));
                    0
                });
                assert_eq!(code, 0, "a child found other bytes");
            }
            _ => piece.check(),
        }
    }
    pieces.into_iter().for_each(Piece::end);
    assert_eq!(file_bytes(), 0, "nothing is left in the file");
}
