// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The bytes of an object: pieces in memory, and pieces of a fixed pattern that need no memory.
//! Cutting and joining copy no bytes. Benchmarks' objects of many GiB consist of the pattern alone.

use std::sync::OnceLock;

use bytes::Bytes;

/// Chosen: a prime, so that blocks at powers of two never look alike; 4 MiB stay in memory.
pub const PATTERN_BYTES: u64 = 4_194_319;

/// Chosen: so many bytes are handed to the connection at once.
const CHUNK_BYTES: u64 = 128 << 10;

/// An object's bytes. Cloning is cheap: memory is shared.
#[derive(Clone, Debug, Default)]
pub struct Content {
    pieces: Vec<Piece>,
    length: u64,
}

#[derive(Clone, Debug)]
struct Piece {
    /// Where in the content the piece begins.
    begin: u64,
    length: u64,
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    Memory(Bytes),
    /// The pattern from this offset on, repeated for ever.
    Pattern(u64),
}

/// The pattern that synthetic objects show, made once.
fn pattern() -> &'static Bytes {
    static PATTERN: OnceLock<Bytes> = OnceLock::new();
    PATTERN.get_or_init(|| {
        let mut random = fastrand::Rng::with_seed(1);
        let mut bytes = vec![0; PATTERN_BYTES as usize];
        random.fill(&mut bytes);
        Bytes::from(bytes)
    })
}

impl Content {
    /// The bytes of one buffer.
    pub fn from_bytes(bytes: Bytes) -> Self {
        let mut content = Self::default();
        content.push(bytes);
        content
    }

    /// `length` bytes of the pattern; another seed begins elsewhere in it.
    pub fn from_seed(seed: u64, length: u64) -> Self {
        let start = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) % PATTERN_BYTES;
        let mut content = Self::default();
        content.add(length, Source::Pattern(start));
        content
    }

    /// How many bytes there are.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Appends a buffer.
    pub fn push(&mut self, bytes: Bytes) {
        self.add(bytes.len() as u64, Source::Memory(bytes));
    }

    /// Appends what another content shows.
    pub fn append(&mut self, other: &Content) {
        for piece in &other.pieces {
            self.add(piece.length, piece.source.clone());
        }
    }

    fn add(&mut self, length: u64, source: Source) {
        if length > 0 {
            let begin = self.length;
            self.pieces.push(Piece {
                begin,
                length,
                source,
            });
            self.length += length;
        }
    }

    /// The bytes from `from` up to `to`, which lies at the end or before it.
    pub fn slice(&self, from: u64, to: u64) -> Content {
        let mut cut = Content::default();
        let mut at = from;
        while at < to {
            let piece = self.piece_at(at);
            let inside = at - piece.begin;
            let length = (piece.length - inside).min(to - at);
            let source = match &piece.source {
                Source::Memory(bytes) => {
                    Source::Memory(bytes.slice(inside as usize..(inside + length) as usize))
                }
                Source::Pattern(start) => Source::Pattern((start + inside) % PATTERN_BYTES),
            };
            cut.add(length, source);
            at += length;
        }
        cut
    }

    /// Some bytes at `at`, which lies before `to`: at least one, at most a chunk.
    pub fn chunk(&self, at: u64, to: u64) -> Bytes {
        let piece = self.piece_at(at);
        let inside = at - piece.begin;
        let length = (piece.length - inside).min(to - at).min(CHUNK_BYTES);
        match &piece.source {
            Source::Memory(bytes) => bytes.slice(inside as usize..(inside + length) as usize),
            Source::Pattern(start) => {
                let begin = (start + inside) % PATTERN_BYTES;
                let length = length.min(PATTERN_BYTES - begin);
                pattern().slice(begin as usize..(begin + length) as usize)
            }
        }
    }

    /// Hands all bytes to `take`, in order.
    pub fn each_chunk(&self, mut take: impl FnMut(&[u8])) {
        let mut at = 0;
        while at < self.length {
            let chunk = self.chunk(at, self.length);
            at += chunk.len() as u64;
            take(&chunk);
        }
    }

    /// The same bytes in one buffer of their own, so that small objects hold no large buffers.
    pub fn compact(&self) -> Content {
        let mut bytes = Vec::with_capacity(self.length as usize);
        self.each_chunk(|chunk| bytes.extend_from_slice(chunk));
        Content::from_bytes(Bytes::from(bytes))
    }

    fn piece_at(&self, at: u64) -> &Piece {
        let index = self.pieces.partition_point(|piece| piece.begin <= at);
        &self.pieces[index - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(content: &Content) -> Vec<u8> {
        let mut all = Vec::new();
        content.each_chunk(|chunk| all.extend_from_slice(chunk));
        all
    }

    #[test]
    fn slices_of_joined_pieces_are_the_bytes_between() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let mut content = Content::from_seed(random.u64(..), 300_000);
        content.push(Bytes::from_static(b"between"));
        content.append(&Content::from_seed(random.u64(..), 5_000_000));
        let all = read(&content);
        assert_eq!(all.len() as u64, content.length());
        for _ in 0..20 {
            let from = random.u64(..content.length());
            let to = random.u64(from..=content.length());
            let cut = content.slice(from, to);
            assert_eq!(read(&cut), all[from as usize..to as usize]);
        }
    }

    #[test]
    fn pattern_goes_on_where_it_is_cut() {
        let whole = Content::from_seed(7, 3 * PATTERN_BYTES);
        let late = whole.slice(2 * PATTERN_BYTES - 3, 2 * PATTERN_BYTES + 5);
        let again = Content::from_seed(7, 3 * PATTERN_BYTES);
        let late_again = again.slice(PATTERN_BYTES - 3, PATTERN_BYTES + 5);
        assert_eq!(read(&late), read(&late_again));
        let blocks = [0, 1 << 20, 1 << 22].map(|at| read(&whole.slice(at, at + 64)));
        assert_ne!(blocks[0], blocks[1]);
        assert_ne!(blocks[0], blocks[2]);
    }
}
