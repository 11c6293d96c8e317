// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A ring of cache-sized chunks in the receiver's region, lent to one sender for one large message
//! (docs/shm-layout.md, clause 7). Driven by shm's pipelined copies.

use weft_memory::{BytesView, BytesViewMut, Mapping, SharedLayout};
use weft_os::crash_point;

use crate::layout::{CHUNK_BYTES, PIPE_CHUNKS, PIPE_COUNT, PIPE_STATES_BYTES, pipe_offset};
use crate::sync::{AtomicU64, Ordering};

/// The state of one chunk: 0 while the writer may fill it, else the number of bytes to read. In a
/// pair of lines of its own, since it changes hands twice for each use.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct ChunkState {
    filled_bytes: AtomicU64,
    #[cfg(not(loom))]
    reserved: [AtomicU64; 15],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<ChunkState>() * PIPE_CHUNKS == PIPE_STATES_BYTES);

// SAFETY: repr(C), all fields atomic words; any bytes are valid.
unsafe impl SharedLayout for ChunkState {}

impl ChunkState {
    #[inline]
    pub(crate) fn word(&self) -> &AtomicU64 {
        &self.filled_bytes
    }
}

/// The states of a pipe's chunks; None if there is no such pipe.
pub(crate) fn states(region: &Mapping, pipe: usize) -> Option<*const ChunkState> {
    if pipe >= PIPE_COUNT {
        return None;
    }
    let states = region.values::<ChunkState>(pipe_offset(pipe), PIPE_CHUNKS);
    Some(states.ok()?.as_ptr())
}

#[cfg(test)]
pub(crate) fn new_states() -> Vec<ChunkState> {
    let state = || ChunkState {
        filled_bytes: AtomicU64::new(0),
        #[cfg(not(loom))]
        reserved: [const { AtomicU64::new(0) }; 15],
    };
    (0..PIPE_CHUNKS).map(|_| state()).collect()
}

/// What both ends share: the pipe's parts and the next chunk's place.
#[derive(Debug)]
struct PipeEnd {
    states: *const ChunkState,
    chunks: *mut u8,
    next: usize,
    /// Holds the mapping; absent only over a test's heap.
    _keep: Option<Mapping>,
}

// SAFETY: the pointers belong to the process, shared words are atomic, payload is only copied.
unsafe impl Send for PipeEnd {}

impl PipeEnd {
    fn in_region(region: &Mapping, pipe: usize) -> Option<Self> {
        Some(Self {
            states: states(region, pipe)?,
            chunks: region
                .bytes(
                    pipe_offset(pipe) + PIPE_STATES_BYTES,
                    PIPE_CHUNKS * CHUNK_BYTES,
                )
                .ok()?,
            next: 0,
            _keep: Some(region.clone()),
        })
    }

    #[inline]
    fn state(&self) -> &AtomicU64 {
        // SAFETY: made from checked references into a mapping that is kept; next is below
        // PIPE_CHUNKS.
        unsafe { &(*self.states.add(self.next)).filled_bytes }
    }

    #[inline]
    fn chunk(&self) -> *mut u8 {
        self.chunks.wrapping_add(self.next * CHUNK_BYTES)
    }

    #[inline]
    fn step(&mut self) {
        self.next = (self.next + 1) % PIPE_CHUNKS;
    }
}

/// The sender's end.
#[derive(Debug)]
pub struct PipeWriter {
    end: PipeEnd,
}

impl PipeWriter {
    /// Takes the pipe that the receiver lent us, from `first_chunk` on; None if it named what it
    /// does not have.
    pub fn attach(region: &Mapping, pipe: usize, first_chunk: usize) -> Option<Self> {
        let mut end = PipeEnd::in_region(region, pipe)?;
        end.next = (first_chunk < PIPE_CHUNKS).then_some(first_chunk)?;
        Some(Self { end })
    }

    /// Fills the next chunk through `fill`, which answers how many bytes it wrote (at least one),
    /// and hands it to the reader. False if the reader has not emptied it yet.
    #[inline]
    pub fn write(&mut self, fill: impl FnOnce(BytesViewMut<'_>) -> usize) -> bool {
        // Pairs with the release store in `read`: the reader has copied what was here.
        if self.end.state().load(Ordering::Acquire) != 0 {
            return false;
        }
        // SAFETY: an empty chunk is the writer's alone.
        let count = fill(unsafe { BytesViewMut::from_raw(self.end.chunk(), CHUNK_BYTES) });
        debug_assert!((1..=CHUNK_BYTES).contains(&count));
        crash_point!(35, "pipe: a chunk is filled, not handed over");
        // Pairs with the acquire load in `read`.
        self.end.state().store(count as u64, Ordering::Release);
        crash_point!(36, "pipe: a chunk is handed over");
        self.end.step();
        true
    }
}

/// The receiver's end.
#[derive(Debug)]
pub struct PipeReader {
    end: PipeEnd,
}

/// A chunk that claims more bytes than a chunk has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadChunk;

impl PipeReader {
    /// Takes one of one's own pipes and empties it; None if there is no such pipe. It may then be
    /// lent again and again, as long as each sender's message is read to its end.
    pub fn attach(region: &Mapping, pipe: usize) -> Option<Self> {
        let mut end = PipeEnd::in_region(region, pipe)?;
        for _ in 0..PIPE_CHUNKS {
            // Without release: the cell that lends the pipe is published with it, after this.
            end.state().store(0, Ordering::Relaxed);
            end.step();
        }
        Some(Self { end })
    }

    /// The chunk that comes next, for the next sender to begin with: a pipe goes round and round,
    /// so that the lines of a chunk have left our own cache when they are written again.
    pub fn next_chunk(&self) -> usize {
        self.end.next
    }

    /// Passes the next chunk to `take` and hands it back to the writer. False if it is not filled
    /// yet.
    ///
    /// # Errors
    /// [`BadChunk`] if its length cannot be.
    #[inline]
    pub fn read(&mut self, take: impl FnOnce(BytesView<'_>)) -> Result<bool, BadChunk> {
        // Pairs with the release store in `write`.
        let count = self.end.state().load(Ordering::Acquire);
        if count == 0 {
            return Ok(false);
        }
        if count > CHUNK_BYTES as u64 {
            return Err(BadChunk);
        }
        // SAFETY: the length was just checked against the chunk's; a filled chunk is ours to read.
        take(unsafe { BytesView::from_raw(self.end.chunk(), count as usize) });
        crash_point!(37, "pipe: a chunk is read, not handed back");
        self.end.state().store(0, Ordering::Release);
        crash_point!(38, "pipe: a chunk is handed back");
        self.end.step();
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heap_ends(states: &[ChunkState], chunks: &mut [u8]) -> (PipeWriter, PipeReader) {
        let base = chunks.as_mut_ptr();
        let end = || PipeEnd {
            states: states.as_ptr(),
            chunks: base,
            next: 0,
            _keep: None,
        };
        (PipeWriter { end: end() }, PipeReader { end: end() })
    }

    #[test]
    #[cfg(not(loom))]
    #[cfg_attr(miri, ignore = "three MiB byte by byte take Miri minutes")]
    fn a_message_longer_than_the_pipe_comes_out_as_it_went_in() {
        let states = new_states();
        let mut chunks = vec![0; PIPE_CHUNKS * CHUNK_BYTES];
        let (mut writer, mut reader) = heap_ends(&states, &mut chunks);
        let message: Vec<u8> = (0..3 * PIPE_CHUNKS * CHUNK_BYTES + 17)
            .map(|i| (i / 7) as u8)
            .collect();
        let (mut sent, mut received) = (0, Vec::new());
        while received.len() < message.len() {
            while sent < message.len() {
                let filled = writer.write(|mut chunk| {
                    let count = (message.len() - sent).min(chunk.length_bytes());
                    chunk.copy_from_slice(&message[sent..sent + count]);
                    sent += count;
                    count
                });
                if !filled {
                    break;
                }
            }
            while reader
                .read(|chunk| received.extend_from_slice(&chunk.to_vec()))
                .expect("good chunk")
            {}
        }
        assert_eq!(received, message);
    }

    /// For interpreters and sanitizers that see data races.
    #[test]
    #[cfg(not(loom))]
    fn two_threads_hand_chunks_over() {
        struct Moved<T>(T);
        // SAFETY: each end is used by one thread alone, and the pipe outlives both.
        unsafe impl<T> Send for Moved<T> {}
        let states = new_states();
        let mut chunks = vec![0; PIPE_CHUNKS * CHUNK_BYTES];
        let (writer, mut reader) = heap_ends(&states, &mut chunks);
        let moved = Moved(writer);
        let count = 3 * PIPE_CHUNKS;
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let Moved(mut writer) = { moved };
                for round in 0..count {
                    let bytes = [round as u8; 100];
                    while !writer.write(|mut chunk| {
                        chunk.copy_from_slice(&bytes[..1 + round % 100]);
                        1 + round % 100
                    }) {
                        std::thread::yield_now();
                    }
                }
            });
            for round in 0..count {
                let mut got = Vec::new();
                while !reader
                    .read(|chunk| got = chunk.to_vec())
                    .expect("good chunk")
                {
                    std::thread::yield_now();
                }
                assert_eq!(got, vec![round as u8; 1 + round % 100]);
            }
        });
    }

    #[test]
    #[cfg(not(loom))]
    fn a_chunk_longer_than_chunks_are_is_not_read() {
        let states = new_states();
        let mut chunks = vec![0; PIPE_CHUNKS * CHUNK_BYTES];
        let (_, mut reader) = heap_ends(&states, &mut chunks);
        states[0]
            .filled_bytes
            .store(CHUNK_BYTES as u64 + 1, Ordering::Relaxed);
        assert_eq!(reader.read(|_| panic!("must not be read")), Err(BadChunk));
    }

    /// What a chunk holds is watched by loom: whoever reads it before it is published, or writes it
    /// before it is handed back, is caught.
    #[cfg(loom)]
    #[test]
    fn no_chunk_is_lost_or_read_early_through_every_interleaving() {
        use crate::sync::UnsafeCell;
        use std::sync::Arc;

        loom::model(|| {
            let states = Box::leak(new_states().into_boxed_slice());
            let chunks = Box::leak(vec![0; PIPE_CHUNKS * CHUNK_BYTES].into_boxed_slice());
            let (mut writer, mut reader) = heap_ends(states, chunks);
            let contents = Arc::new([0; PIPE_CHUNKS].map(UnsafeCell::new));
            let written = contents.clone();
            let sender = loom::thread::spawn(move || {
                for length in 1..=3usize {
                    let content = &written[(length - 1) % PIPE_CHUNKS];
                    while !writer.write(|_| {
                        // SAFETY: the chunk is the writer's; loom asserts it.
                        content.with_mut(|content| unsafe { *content = length });
                        length
                    }) {
                        loom::thread::yield_now();
                    }
                }
            });
            for expected in 1..=3usize {
                let content = &contents[(expected - 1) % PIPE_CHUNKS];
                let mut got = (0, 0);
                while !reader
                    .read(|chunk| {
                        // SAFETY: the chunk is the reader's; loom asserts it.
                        let held = content.with(|content| unsafe { *content });
                        got = (chunk.length_bytes(), held);
                    })
                    .expect("good chunk")
                {
                    loom::thread::yield_now();
                }
                assert_eq!(got, (expected, expected));
            }
            sender.join().expect("sender");
        });
    }
}
