// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The end of a file that is written in order: the bytes of parts that were not sent yet, in memory
//! beside the log. So a part need not be read of the log before it is sent. What is not here lies
//! in the log all the same. [`crate::staging::publication`] holds one.

use std::collections::VecDeque;

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;
use weft_store::Range;

use crate::staging::ways::Ways;

/// Which parts the next bytes are of.
#[derive(Debug, Clone, Copy)]
pub struct Grid {
    /// All before it is in parts that were sent.
    pub start: u64,
    /// Of each part behind it.
    pub part_bytes: u64,
}

/// Chosen: the beginning of a file takes no more memory than it needs until it is longer; then it
/// takes that of a part. Below the least that [`weft_store::Buffers`] keeps.
const SMALL_BYTES: usize = 512 << 10;

/// A part, as far as it was written.
#[derive(Debug)]
struct Filling {
    range: Range,
    bytes: Vec<u8>,
    /// Of `bytes`, as counted.
    room_bytes: usize,
    /// Until the part is sent.
    room: Option<OwnedSemaphorePermit>,
}

impl Filling {
    /// Has memory for so many bytes more; false where there is none.
    fn grow(&mut self, ways: &Ways, more_bytes: usize) -> bool {
        let wanted = self.bytes.len() + more_bytes;
        if wanted <= self.room_bytes {
            return true;
        }
        let part_bytes = self.range.byte_count() as usize;
        let is_small = self.range.start == 0 && wanted <= SMALL_BYTES;
        let room_bytes = match wanted.next_power_of_two() {
            bytes if is_small => bytes.min(part_bytes),
            _ => part_bytes,
        };
        let Some(room) = ways.room_to_fill((room_bytes - self.room_bytes) as u64) else {
            return false;
        };
        match &mut self.room {
            Some(own) => own.merge(room),
            None => self.room = Some(room),
        }
        let mut bytes = ways.buffers.take(room_bytes);
        bytes.extend_from_slice(&self.bytes);
        ways.buffers.give(std::mem::replace(&mut self.bytes, bytes));
        self.room_bytes = room_bytes;
        true
    }

    fn end(&self) -> u64 {
        self.range.start + self.bytes.len() as u64
    }

    fn is_whole(&self) -> bool {
        self.end() == self.range.end
    }
}

/// Parts in their order; all but the last are whole. Between them some may lack.
#[derive(Debug, Default)]
pub struct Tail {
    parts: VecDeque<Filling>,
}

impl Tail {
    /// Takes `data`, which was written at the end of the file, at `offset`. Where there is no room,
    /// it is not here.
    pub fn append(&mut self, ways: &Ways, grid: Grid, offset: u64, data: &[u8]) {
        let is_left = |last: &Filling| !last.is_whole() && last.end() != offset;
        if self.parts.back().is_some_and(is_left) {
            self.parts.pop_back();
        }
        let end = offset + data.len() as u64;
        let mut at = offset;
        while at < end {
            if self.parts.back().is_none_or(Filling::is_whole) {
                let Some(start) = self.begin(grid, Range::new(at, end)) else {
                    return;
                };
                at = start;
            }
            let Some(last) = self.parts.back_mut() else {
                return;
            };
            let stop = end.min(last.range.end);
            let piece = &data[(at - offset) as usize..(stop - offset) as usize];
            if !last.grow(ways, piece.len()) {
                self.parts.pop_back();
                return;
            }
            last.bytes.extend_from_slice(piece);
            at = stop;
        }
    }

    /// A part that begins within `range`; where.
    fn begin(&mut self, grid: Grid, range: Range) -> Option<u64> {
        let parts = range.start.saturating_sub(grid.start);
        let start = grid.start + parts.next_multiple_of(grid.part_bytes);
        if start >= range.end {
            return None;
        }
        self.parts.push_back(Filling {
            range: Range::new(start, start + grid.part_bytes),
            bytes: Vec::new(),
            room_bytes: 0,
            room: None,
        });
        Some(start)
    }

    /// A range is about to be written, or is not of the file any more.
    pub fn change(&mut self, range: Range) {
        let is_here = |part: &Filling| part.range.start < range.end && range.start < part.end();
        if self.parts.iter().any(is_here) {
            self.clear();
        }
    }

    /// The bytes of a range that is sent now, if all of them are here. They are here no more.
    pub fn take(&mut self, ways: &Ways, range: Range) -> Option<Bytes> {
        let mut found: Option<Filling> = None;
        let is_asked = |part: &Filling| part.range.start < range.end;
        while self.parts.front().is_some_and(is_asked) {
            let Some(part) = self.parts.pop_front() else {
                break;
            };
            match &mut found {
                None if part.range.start == range.start => found = Some(part),
                // A last part may be longer than the others.
                Some(found) if found.end() == part.range.start => {
                    found.bytes.extend_from_slice(&part.bytes);
                    ways.buffers.give(part.bytes);
                }
                // What is sent otherwise is not sent from here.
                _ => ways.buffers.give(part.bytes),
            }
        }
        let found = found.filter(|found| found.end() == range.end)?;
        Some(ways.buffers.share(found.bytes))
    }

    /// Nothing of it is needed any more.
    pub fn clear(&mut self) {
        self.parts.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use tokio::runtime::{Builder, Runtime};
    use weft_store::memory::MemoryStore;

    use super::*;

    const MIB: u64 = 1 << 20;
    const PART_BYTES: u64 = 16;

    /// With room for `filling` parts that are being filled.
    fn ways(filling: u64) -> (Runtime, Ways) {
        let runtime = Builder::new_current_thread().build().unwrap();
        let store = Arc::new(MemoryStore::new());
        // There is no room for them below 8 MiB.
        let ways = Ways::new(store, runtime.handle().clone(), filling * 4 * MIB);
        (runtime, ways)
    }

    #[derive(Debug, Clone)]
    enum Step {
        Append(usize),
        /// Written again, from here on, so many bytes.
        Again(u64, u64),
        /// Zeros at the end.
        Grow(u64),
        /// All whole parts are sent.
        Send,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (1..40_usize).prop_map(Step::Append),
            1 => (0..200_u64, 1..9_u64).prop_map(|(at, length)| Step::Again(at, length)),
            1 => (1..40_u64).prop_map(Step::Grow),
            2 => Just(Step::Send),
        ]
    }

    proptest! {
        #[test]
        fn what_is_taken_is_what_was_written_last(
            steps in prop::collection::vec(step(), 1..60),
        ) {
            let (_runtime, ways) = ways(8);
            let (mut tail, mut file) = (Tail::default(), Vec::<u8>::new());
            let (mut sent, mut next) = (0, 0_u8);
            for step in steps {
                let size = file.len() as u64;
                next = next.wrapping_add(1);
                match step {
                    Step::Append(length) => {
                        let data: Vec<u8> = (0..length).map(|at| next ^ at as u8).collect();
                        file.extend_from_slice(&data);
                        let grid = Grid { start: sent, part_bytes: PART_BYTES };
                        tail.append(&ways, grid, size, &data);
                    }
                    Step::Again(at, length) => {
                        let range = match (at.min(size), (at + length).min(size)) {
                            (start, end) if start < end => Range::new(start, end),
                            _ => continue,
                        };
                        tail.change(range);
                        file[range.start as usize..range.end as usize].fill(next);
                    }
                    Step::Grow(length) => file.resize((size + length) as usize, 0),
                    Step::Send => while sent + PART_BYTES <= size {
                        let range = Range::new(sent, sent + PART_BYTES);
                        sent = range.end;
                        if let Some(bytes) = tail.take(&ways, range) {
                            prop_assert_eq!(
                                &bytes[..],
                                &file[range.start as usize..range.end as usize]
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn small_files_take_what_they_need_and_no_room_of_whole_parts() {
        let (_runtime, ways) = ways(8);
        let grid = Grid {
            start: 0,
            part_bytes: 8 * MIB,
        };
        let mut tails: Vec<Tail> = (0..2100).map(|_| Tail::default()).collect();
        for tail in &mut tails {
            tail.append(&ways, grid, 0, &[1; 4000]);
        }
        let are_here = tails
            .iter_mut()
            .filter_map(|tail| tail.take(&ways, Range::new(0, 4000)));
        assert_eq!(are_here.count(), 2048, "4 KiB each of 8 MiB");
        // The room is free again: for one part.
        for is_here in [true, false] {
            let mut tail = Tail::default();
            tail.append(&ways, grid, 0, &vec![2; 600 << 10]);
            let found = tail.parts.len();
            assert_eq!(found == 1, is_here);
            tails.push(tail);
        }
    }

    #[test]
    fn file_in_order_is_here_part_by_part_as_far_as_there_is_room() {
        let (_runtime, ways) = ways(8);
        let grid = Grid {
            start: 0,
            part_bytes: 5 * MIB,
        };
        let mut tail = Tail::default();
        // 8 MiB are for one part, and the second one finds no room.
        tail.append(&ways, grid, 0, &vec![1; 7 << 20]);
        let first = tail.take(&ways, Range::new(0, 5 * MIB)).unwrap();
        assert!(first.len() == 5 << 20 && first.iter().all(|byte| *byte == 1));
        assert_eq!(tail.take(&ways, Range::new(5 * MIB, 7 * MIB)), None);
        // The next part that begins within a write is here again, and its end, too.
        tail.append(&ways, grid, 7 * MIB, &vec![2; 4 << 20]);
        let rest = tail.take(&ways, Range::new(10 * MIB, 11 * MIB)).unwrap();
        assert!(rest.len() == 1 << 20 && rest.iter().all(|byte| *byte == 2));
    }
}
