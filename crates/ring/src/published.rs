// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What an endpoint lets its own user's tools see: counts in its region (docs/shm-layout.md, clause
//! 9).
//!
//! Written by shm about once a millisecond, by the owner alone, with plain stores; read by `weft
//! top` as a copy of the file. Nobody decides anything by these words.

use crate::sync::{AtomicU64, Ordering};

/// Ways to send that are counted apart: inline, eager, streamed, single copy, pipelined, mapped.
pub const PROTOCOL_COUNT: usize = 6;

/// Size classes of the choice: one for each power of two.
pub const CLASS_COUNT: usize = 64;

/// Words of [`Counters`]: its fields in order, with eight choices to a word.
pub(crate) const WORDS: usize = 1 + 2 * PROTOCOL_COUNT + 8 + CLASS_COUNT / 8 + 4;

/// Where the words begin: behind the doorbell. Specified by the layout.
pub(crate) const PUBLISHED_OFFSET: usize = 384;

/// The words in the region.
#[repr(C, align(128))]
#[derive(Debug)]
pub(crate) struct Published {
    words: [AtomicU64; WORDS],
}

/// The counts of one endpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counters {
    /// CLOCK_MONOTONIC in nanoseconds when they were written: when the endpoint last made progress,
    /// to about a millisecond.
    pub written_ns: u64,
    /// Messages and bytes sent, by protocol in the order of [`PROTOCOL_COUNT`].
    pub sent: [[u64; 2]; PROTOCOL_COUNT],
    /// Messages and bytes received from all remotes, those that are gone included.
    pub received: [u64; 2],
    /// Remotes that were in contact, and those given up.
    pub remotes_count: u64,
    /// Remotes given up.
    pub lost_count: u64,
    /// Sends and answers that wait for room in a lane.
    pub waiting_count: u64,
    /// Messages being fetched and messages being fed to their receivers.
    pub moving_count: u64,
    /// Messages announced and not matched yet.
    pub offered_count: u64,
    /// Lanes of ours that use their whole data area.
    pub wide_lanes_count: u64,
    /// By which copy method a message of 2^index bytes would be fetched now, in the lower 4 bits,
    /// and in the upper 4 while traffic is bidirectional: 0 not known, 1 single copy, 2 pipelined,
    /// 3 pipelined with non-temporal stores, 4 mapped, 5 mapped with non-temporal stores, 6
    /// cooperative copy.
    pub choices: [u8; CLASS_COUNT],
    /// Accesses of remotes' memory without their help, and their bytes: by load and store, and by
    /// single copy.
    pub direct: [[u64; 2]; 2],
}

impl Default for Counters {
    fn default() -> Self {
        Self::from_words(&[0; WORDS])
    }
}

impl Counters {
    fn words(&self) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        words[0] = self.written_ns;
        for (pair, count) in words[1..].chunks_mut(2).zip(self.sent) {
            pair.copy_from_slice(&count);
        }
        let rest = &mut words[1 + 2 * PROTOCOL_COUNT..];
        rest[..2].copy_from_slice(&self.received);
        rest[2] = self.remotes_count;
        rest[3] = self.lost_count;
        rest[4] = self.waiting_count;
        rest[5] = self.moving_count;
        rest[6] = self.offered_count;
        rest[7] = self.wide_lanes_count;
        let (choices, direct) = rest[8..].split_at_mut(CLASS_COUNT / 8);
        for (pair, count) in direct.chunks_mut(2).zip(self.direct) {
            pair.copy_from_slice(&count);
        }
        for (word, eight) in choices.iter_mut().zip(self.choices.chunks_exact(8)) {
            *word = eight
                .iter()
                .rev()
                .fold(0, |word, &choice| word << 8 | u64::from(choice));
        }
        words
    }

    pub(crate) fn from_words(words: &[u64; WORDS]) -> Self {
        let rest = &words[1 + 2 * PROTOCOL_COUNT..];
        let choices = core::array::from_fn(|index| (rest[8 + index / 8] >> (index % 8 * 8)) as u8);
        Self {
            written_ns: words[0],
            sent: core::array::from_fn(|index| [words[1 + 2 * index], words[2 + 2 * index]]),
            received: [rest[0], rest[1]],
            remotes_count: rest[2],
            lost_count: rest[3],
            waiting_count: rest[4],
            moving_count: rest[5],
            offered_count: rest[6],
            wide_lanes_count: rest[7],
            choices,
            direct: core::array::from_fn(|index| {
                let first = 8 + CLASS_COUNT / 8 + 2 * index;
                [rest[first], rest[first + 1]]
            }),
        }
    }
}

impl Published {
    #[cfg(all(test, loom))]
    pub(crate) fn new() -> Self {
        Self {
            words: core::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    #[inline]
    pub(crate) fn written_ns(&self) -> u64 {
        self.words[0].load(Ordering::Relaxed)
    }

    pub(crate) fn store(&self, counters: &Counters) {
        for (word, value) in self.words.iter().zip(counters.words()) {
            word.store(value, Ordering::Relaxed);
        }
    }
}
