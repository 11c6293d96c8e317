// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which buffers are offered again and again. Asked by table for every long message; pure.
//!
//! Sharing a buffer costs about as much as twenty copies out of shared memory save
//! (docs/lab/2026-11-22-shared-when-offered-again.md). So a buffer is shared only after it was
//! offered some times. If sharing ended before it had paid, the buffer must be offered more often
//! before it is shared again. A buffer that nobody offers again costs nothing.

use crate::spans::PAGE_BYTES;

/// Offers of a buffer before it is shared, where sharing was not asked for. Chosen: few enough for
/// short programs, many enough that a buffer that is used once or twice stays as it is.
pub const PATIENT: u32 = 6;

/// Offers out of shared memory that have paid for sharing it. Measured:
/// docs/lab/2026-11-22-shared-when-offered-again.md.
const PAID_OFFERS: u32 = 40;

/// What the number of offers is multiplied by when sharing has not paid. Chosen.
const PENALTY: u32 = 4;

/// Most offers that are waited for. Chosen: sharing that never pays then costs a hundredth.
const MOST_OFFERS: u32 = 1 << 14;

/// Buffers that are remembered. Chosen: more than a program sends in turns, in 24 KiB.
const BUFFERS: usize = 1024;

/// What is known of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Buffer {
    /// Number of its first whole page; 0 if the entry is free.
    page: usize,
    /// Offers before it is shared.
    left: u32,
    /// Offers since, while it was shared.
    used: u32,
    /// How many offers it took to have it shared the last time.
    took: u32,
}

const FREE: Buffer = Buffer {
    page: 0,
    left: 0,
    used: 0,
    took: 0,
};

/// The buffers that were offered lately.
#[derive(Debug)]
pub struct Offers {
    /// Offers of a buffer before it is shared the first time.
    pub first: u32,
    buffers: [Buffer; BUFFERS],
}

impl Offers {
    /// None yet.
    pub const fn new() -> Self {
        Self {
            first: PATIENT,
            buffers: [FREE; BUFFERS],
        }
    }

    /// The entry of a buffer. It may take the entry of another buffer, which is then forgotten.
    fn entry(&mut self, address: usize) -> &mut Buffer {
        let (page, first) = (address / PAGE_BYTES, self.first);
        // Fibonacci hashing (Knuth 1973): neighbouring pages lie apart.
        let hash = (page as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let entry = &mut self.buffers[hash as usize % BUFFERS];
        if entry.page != page {
            *entry = Buffer {
                page,
                left: first,
                used: 0,
                took: first,
            };
        }
        entry
    }

    /// Counts an offer of a private buffer; true if the buffer is to be shared now.
    pub fn note(&mut self, address: usize) -> bool {
        let entry = self.entry(address);
        entry.left = entry.left.saturating_sub(1);
        entry.left == 0
    }

    /// Notes that a buffer is shared from now on.
    pub fn begin(&mut self, address: usize) {
        let first = self.first;
        let entry = self.entry(address);
        (entry.used, entry.left) = (0, first);
    }

    /// Counts an offer of a shared buffer.
    #[inline]
    pub fn use_shared(&mut self, address: usize) {
        let entry = self.entry(address);
        entry.used = entry.used.saturating_add(1);
    }

    /// Notes that a buffer is private again, because its memory was freed.
    pub fn end(&mut self, address: usize) {
        let first = self.first;
        let entry = self.entry(address);
        entry.took = if entry.used < PAID_OFFERS {
            entry.took.saturating_mul(PENALTY).min(MOST_OFFERS)
        } else {
            first
        };
        entry.left = entry.took;
    }

    /// Notes that a buffer may not be shared now. After more offers it is tried again.
    pub fn refuse(&mut self, address: usize) {
        self.entry(address).used = 0;
        self.end(address);
    }
}

impl Default for Offers {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offers_until_due(offers: &mut Offers, address: usize) -> u32 {
        1 + (0..).find(|_| offers.note(address)).unwrap_or(u32::MAX)
    }

    #[test]
    fn a_buffer_is_shared_after_some_offers_and_later_if_that_did_not_pay() {
        let mut offers = Offers::new();
        let mut waited = Vec::new();
        for _ in 0..6 {
            waited.push(offers_until_due(&mut offers, 8192));
            offers.begin(8192);
            (0..PAID_OFFERS - 1).for_each(|_| offers.use_shared(8192));
            offers.end(8192);
        }
        assert_eq!(waited, [6, 24, 96, 384, 1536, 6144]);
        offers.begin(8192);
        (0..PAID_OFFERS).for_each(|_| offers.use_shared(8192));
        offers.end(8192);
        assert_eq!(offers_until_due(&mut offers, 8192), PATIENT);
    }

    #[test]
    fn what_was_refused_is_looked_at_again_less_and_less_often() {
        let mut offers = Offers::new();
        assert_eq!(offers_until_due(&mut offers, 4096), PATIENT);
        offers.refuse(4096);
        assert_eq!(offers_until_due(&mut offers, 4096), 24);
        offers.refuse(4096);
        assert_eq!(offers_until_due(&mut offers, 4096), 96);
    }
}
