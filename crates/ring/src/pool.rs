// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Chunks that change hands with the messages they carry (docs/shm-layout.md, clause 4a). Driven by
//! shm's sends and by its progress.
//!
//! A chunk belongs to one of two processes. Who sends in it gives it away; who has copied the
//! message out keeps it and sends its own next message in it. Where two processes answer each
//! other, the same few lines go to and fro: the sender writes what it read a moment ago, and
//! nothing has to be taken back from the other's cache.

use weft_memory::{BytesView, BytesViewMut, Mapping};

use crate::layout::{LANE_DATA_BYTES, PAGE_BYTES, POOL_CHUNK_BYTES, POOL_CHUNKS, lane_offset};

const _: () = assert!(POOL_CHUNKS == u64::BITS as usize, "one bit for each chunk");

/// The chunks of one lane, as one of its two processes sees them.
#[derive(Debug)]
pub struct Pool {
    chunks: *mut u8,
    /// One bit for each chunk that is ours.
    ours: u64,
    /// Holds the mapping; absent only over a test's heap.
    _keep: Option<Mapping>,
}

// SAFETY: the chunks lie in a mapping that belongs to the process, and are only copied.
unsafe impl Send for Pool {}

/// Whose lane a pool belongs to, seen from a message: the lane that carries it, or the one the
/// other way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// The pool of the lane with the message.
    Same,
    /// The pool of the lane that leads from the message's receiver to its sender.
    Opposite,
}

/// A stretch of a chunk, as a cell names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stretch {
    /// In which of the two pools.
    pub way: Way,
    /// Which chunk; below [`POOL_CHUNKS`].
    pub chunk: usize,
    /// How much of it, from its start; at most [`POOL_CHUNK_BYTES`].
    pub length_bytes: usize,
}

/// A chunk of ours, to send in.
#[derive(Debug)]
pub struct OwnChunk<'a> {
    pool: &'a mut Pool,
    way: Way,
    index: usize,
}

impl Pool {
    /// The chunks of the lane of `slot`, none of which is ours yet. None if the slot is out of
    /// range. Setup.
    pub fn attach(region: &Mapping, slot: usize) -> Option<Self> {
        let base = lane_offset(slot) + PAGE_BYTES + LANE_DATA_BYTES;
        let chunks = region.bytes(base, POOL_CHUNKS * POOL_CHUNK_BYTES).ok()?;
        Some(Self {
            chunks,
            ours: 0,
            _keep: Some(region.clone()),
        })
    }

    /// The sender of the lane begins to use its chunks: all are its own at first. Only once for
    /// each lane.
    pub fn open(&mut self) {
        self.ours = u64::MAX;
    }

    /// A chunk to send to the remote of these two pools: one that came from it, else one of the
    /// lane that leads to it. The lowest first, so that few are in use where each message is
    /// answered. Fast path.
    #[inline]
    pub fn pick<'a>(ahead: &'a mut Self, back: Option<&'a mut Self>) -> Option<OwnChunk<'a>> {
        match back {
            Some(pool) if pool.ours != 0 => OwnChunk::lowest(pool, Way::Opposite),
            _ => OwnChunk::lowest(ahead, Way::Same),
        }
    }

    /// What a remote sent in a chunk that it says was its own; None if it was ours, and the remote
    /// may not write it. Fast path.
    #[inline]
    pub fn arrived(&self, stretch: Stretch) -> Option<BytesView<'_>> {
        if self.ours & 1 << stretch.chunk != 0 || stretch.length_bytes > POOL_CHUNK_BYTES {
            return None;
        }
        // SAFETY: the stretch lies inside its chunk, by the check above, and the chunk inside the
        // pool.
        Some(unsafe { BytesView::from_raw(self.start(stretch.chunk), stretch.length_bytes) })
    }

    /// What came in a chunk is copied out: the chunk is ours. Fast path.
    #[inline]
    pub fn keep(&mut self, chunk: usize) {
        self.ours |= 1 << (chunk % POOL_CHUNKS);
    }

    /// How many chunks are ours.
    pub fn count(&self) -> u32 {
        self.ours.count_ones()
    }

    #[inline]
    fn start(&self, chunk: usize) -> *mut u8 {
        self.chunks
            .wrapping_add(chunk % POOL_CHUNKS * POOL_CHUNK_BYTES)
    }
}

impl<'a> OwnChunk<'a> {
    #[inline]
    fn lowest(pool: &'a mut Pool, way: Way) -> Option<Self> {
        let index = pool.ours.trailing_zeros() as usize;
        (index < POOL_CHUNKS).then_some(Self { pool, way, index })
    }

    /// Where to write. What is written is nobody's until the chunk is given away.
    #[inline]
    pub(crate) fn bytes(&mut self) -> BytesViewMut<'_> {
        // SAFETY: the chunk lies inside the pool and is ours: the remote neither reads nor writes
        // it now.
        unsafe { BytesViewMut::from_raw(self.pool.start(self.index), POOL_CHUNK_BYTES) }
    }

    /// The chunk goes away with a message of so many bytes; answers how a cell names it.
    #[inline]
    pub(crate) fn give(self, length_bytes: usize) -> Stretch {
        self.pool.ours &= !(1 << self.index);
        Stretch {
            way: self.way,
            chunk: self.index,
            length_bytes,
        }
    }
}

impl Stretch {
    /// The word for it in a cell: offset from the start of the data area in the upper half, length
    /// in the lower. The pool follows the data area, and the opposite pool is named as if it
    /// followed that.
    #[inline]
    pub(crate) fn pack(self) -> u64 {
        let pool = match self.way {
            Way::Same => 0,
            Way::Opposite => POOL_CHUNKS,
        };
        let offset = LANE_DATA_BYTES + (pool + self.chunk) * POOL_CHUNK_BYTES;
        (offset as u64) << 32 | self.length_bytes as u64
    }

    /// The stretch that a word names; None if it names none.
    #[inline]
    pub(crate) fn unpack(place: u64) -> Option<Self> {
        let (offset, length_bytes) = ((place >> 32) as usize, place as u32 as usize);
        let beyond = offset.checked_sub(LANE_DATA_BYTES)?;
        let (index, within) = (beyond / POOL_CHUNK_BYTES, beyond % POOL_CHUNK_BYTES);
        if index >= 2 * POOL_CHUNKS || within != 0 || length_bytes > POOL_CHUNK_BYTES {
            return None;
        }
        let way = if index < POOL_CHUNKS {
            Way::Same
        } else {
            Way::Opposite
        };
        Some(Self {
            way,
            chunk: index % POOL_CHUNKS,
            length_bytes,
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// The two processes' views of one lane's chunks, over heap memory that is never freed.
    fn both_ends() -> (Pool, Pool) {
        let chunks = vec![0_u8; POOL_CHUNKS * POOL_CHUNK_BYTES].leak();
        let base = chunks.as_mut_ptr();
        let end = || Pool {
            chunks: base,
            ours: 0,
            _keep: None,
        };
        let (mut sender, receiver) = (end(), end());
        sender.open();
        (sender, receiver)
    }

    #[test]
    fn a_chunk_that_came_carries_the_answer() {
        let (mut ahead, mut received) = both_ends();
        let (mut unused, mut back) = both_ends();
        for round in 0..200_u32 {
            let mut chunk = Pool::pick(&mut ahead, Some(&mut back)).expect("a chunk");
            chunk.bytes().copy_from_slice(&round.to_le_bytes());
            let stretch = chunk.give(4);
            assert_eq!((stretch.way, stretch.chunk), (Way::Same, 0));
            let payload = received.arrived(stretch).expect("it was the sender's");
            assert_eq!(payload.to_vec(), round.to_le_bytes());
            received.keep(stretch.chunk);
            let answer = Pool::pick(&mut unused, Some(&mut received)).expect("a chunk");
            let stretch = answer.give(0);
            assert_eq!((stretch.way, stretch.chunk), (Way::Opposite, 0));
            assert!(ahead.arrived(stretch).is_some());
            ahead.keep(stretch.chunk);
        }
        assert_eq!((ahead.count(), received.count()), (64, 0));
    }

    #[test]
    fn chunks_that_only_go_one_way_run_out() {
        let (mut ahead, mut received) = both_ends();
        for expected in 0..POOL_CHUNKS {
            let stretch = Pool::pick(&mut ahead, None).expect("a chunk").give(1);
            assert_eq!(stretch.chunk, expected);
            received.keep(stretch.chunk);
        }
        assert!(Pool::pick(&mut ahead, None).is_none());
        assert_eq!(received.count(), 64);
    }

    #[test]
    fn a_chunk_that_is_ours_is_not_read_as_a_message() {
        let (mut ahead, mut received) = both_ends();
        let stretch = Pool::pick(&mut ahead, None).expect("a chunk").give(1);
        received.keep(stretch.chunk);
        assert!(received.arrived(stretch).is_none());
    }

    #[test]
    fn words_name_what_they_were_made_for_and_nothing_else() {
        for way in [Way::Same, Way::Opposite] {
            for chunk in [0, 1, POOL_CHUNKS - 1] {
                let stretch = Stretch {
                    way,
                    chunk,
                    length_bytes: 777,
                };
                assert_eq!(Stretch::unpack(stretch.pack()), Some(stretch));
            }
        }
        let word = |offset: usize, length: usize| (offset as u64) << 32 | length as u64;
        let end = LANE_DATA_BYTES + 2 * POOL_CHUNKS * POOL_CHUNK_BYTES;
        for bad in [
            word(0, 1),
            word(LANE_DATA_BYTES - POOL_CHUNK_BYTES, 1),
            word(LANE_DATA_BYTES + 64, 1),
            word(LANE_DATA_BYTES, POOL_CHUNK_BYTES + 1),
            word(end, 1),
            u64::MAX,
        ] {
            assert_eq!(Stretch::unpack(bad), None, "{bad:#x}");
        }
    }
}
