// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The contents of files, and the check of what was read: words of 8 bytes that depend on the
//! writing task, the seed and the position in the file.
//!
//! Called by phase, outside the timed calls. The words are our own. Like IOR's, they show whether a
//! block comes from another task, another position or another run.

use weft_ranks::mix::mix;

/// -l: which words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Task, seed and place can be read off them.
    #[default]
    Offset,
    /// No compressor gets anything out of them.
    Incompressible,
    /// The seed alone.
    Timestamp,
}

impl Kind {
    /// By IOR's names or their first letters.
    pub fn named(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "offset" | "o" => Some(Self::Offset),
            "incompressible" | "i" | "random" | "r" => Some(Self::Incompressible),
            "timestamp" | "t" => Some(Self::Timestamp),
            _ => None,
        }
    }
}

/// Everything a task's words depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    /// Which words.
    pub kind: Kind,
    /// -G.
    pub signature: u32,
    /// Who wrote, or should have.
    pub task: u32,
}

impl Content {
    fn word(self, place_bytes: u64) -> u64 {
        let who = u64::from(self.task) << 32 | u64::from(self.signature);
        match self.kind {
            Kind::Offset => who.wrapping_add(place_bytes / 8),
            Kind::Timestamp => u64::from(self.signature) << 32 | u64::from(self.signature),
            Kind::Incompressible => mix(who ^ mix(place_bytes)),
        }
    }

    /// Fills `room` with what belongs at `place_bytes` of the file. A last part shorter than a word
    /// gets its first bytes.
    pub fn fill(self, room: &mut [u8], place_bytes: u64) {
        for (index, part) in room.chunks_mut(8).enumerate() {
            let word = self.word(place_bytes + 8 * index as u64).to_le_bytes();
            part.copy_from_slice(&word[..part.len()]);
        }
    }

    /// How many words of `found` are not what belongs at `place_bytes`, and where the first one is.
    pub fn compare(self, found: &[u8], place_bytes: u64) -> Option<Wrong> {
        let mut wrong: Option<Wrong> = None;
        for (index, part) in found.chunks(8).enumerate() {
            let at_bytes = place_bytes + 8 * index as u64;
            let expected = self.word(at_bytes).to_le_bytes();
            if part != &expected[..part.len()] {
                let mut first = [0; 8];
                first[..part.len()].copy_from_slice(part);
                let entry = wrong.get_or_insert(Wrong {
                    count: 0,
                    at_bytes,
                    expected: u64::from_le_bytes(expected),
                    found: u64::from_le_bytes(first),
                });
                entry.count += 1;
            }
        }
        wrong
    }
}

/// Words that were not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// How many.
    pub count: u64,
    /// Where the first one is in the file.
    pub at_bytes: u64,
    /// What it should be.
    pub expected: u64,
    /// What it is.
    pub found: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [Kind; 3] = [Kind::Offset, Kind::Incompressible, Kind::Timestamp];

    #[test]
    fn what_was_written_is_right_and_one_changed_byte_is_found_where_it_is() {
        for kind in KINDS {
            let content = Content {
                kind,
                signature: 7,
                task: 3,
            };
            let mut room = vec![0; 4096];
            content.fill(&mut room, 1 << 20);
            assert_eq!(content.compare(&room, 1 << 20), None);
            room[1001] ^= 0x10;
            let wrong = content.compare(&room, 1 << 20).unwrap();
            assert_eq!((wrong.count, wrong.at_bytes), (1, (1 << 20) + 1000));
        }
    }

    #[test]
    fn words_stay_those_of_the_files_that_were_written_before() {
        let bytes = |kind| {
            let mut room = [0; 8];
            let content = Content {
                kind,
                signature: 7,
                task: 3,
            };
            content.fill(&mut room, 1 << 20);
            u64::from_le_bytes(room)
        };
        let words = KINDS.map(bytes);
        assert_eq!(words, [0x3_0002_0007, 0x74a9_22c5_4606_cba1, 0x7_0000_0007]);
    }

    #[test]
    fn another_tasks_block_another_place_and_another_seed_are_wrong() {
        for kind in [Kind::Offset, Kind::Incompressible] {
            let own = Content {
                kind,
                signature: 7,
                task: 3,
            };
            let mut room = vec![0; 64];
            own.fill(&mut room, 512);
            assert_eq!(own.compare(&room, 1024).unwrap().count, 8);
            assert_eq!(
                Content { task: 4, ..own }
                    .compare(&room, 512)
                    .unwrap()
                    .count,
                8
            );
            assert_eq!(
                Content {
                    signature: 8,
                    ..own
                }
                .compare(&room, 512)
                .unwrap()
                .count,
                8
            );
        }
    }
}
