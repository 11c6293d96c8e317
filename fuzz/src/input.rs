// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Bytes as a sequence of decisions; after their end all decisions are 0. Used by every target.

/// What is left of an input.
#[derive(Debug)]
pub struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    /// From its beginning.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Whether all has been used.
    pub fn is_over(&self) -> bool {
        self.rest.is_empty()
    }

    /// One byte.
    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.rest.split_first() else {
            return 0;
        };
        self.rest = rest;
        *first
    }

    /// Eight bytes.
    pub fn number(&mut self) -> u64 {
        (0..8).fold(0, |number, _| number << 8 | u64::from(self.byte()))
    }

    /// A number below `end`, which is 1 to 65536.
    pub fn below(&mut self, end: usize) -> usize {
        let two = usize::from(self.byte()) << 8 | usize::from(self.byte());
        two % end
    }

    /// Up to `most` of the bytes that are left.
    pub fn take(&mut self, most: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(most.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    /// Changes some bytes, mostly where a packet's fields lie, and sometimes the length.
    pub fn mutate(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.below(4) {
            if bytes.is_empty() {
                return;
            }
            let near = bytes.len().min(200);
            let at = self.below(near);
            match self.byte() % 6 {
                0 => bytes[at] = self.byte(),
                1 => bytes[at] ^= 1 << (self.byte() % 8),
                2 => bytes[at] = [0, 1, 127, 128, 254, 255][usize::from(self.byte() % 6)],
                3 => {
                    let end = (at + 8).min(bytes.len());
                    let fill = if self.byte().is_multiple_of(2) {
                        0
                    } else {
                        255
                    };
                    bytes[at..end].fill(fill);
                }
                4 => bytes.truncate(at),
                _ => bytes.extend_from_slice(self.take(16)),
            }
        }
    }
}
