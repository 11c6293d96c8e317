// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which buffers are to be shared. Asked by table for every long message; pure.
//!
//! To share a buffer costs time once; then each message out of it costs less. Nobody knows how
//! often a buffer will be offered. So it is shared once its messages have *lost* as much time, by
//! being copied out of private memory, as sharing costs: the rule for renting or buying skis
//! (Karlin et al. 1988). What comes after cannot make that a loss of more than the factor of 2. A
//! buffer that is offered a few times only is never shared.
//!
//! Where messages follow each other closely more of them are likely to come. There a buffer is
//! shared once its messages have lost a tenth of what sharing costs. The rest is a *stake*. It
//! comes out of the process's credit, and comes back as the buffer's messages save it. So all that
//! a process can lose by early sharing is what its credit was at the beginning.
//!
//! Memory that is freed and allocated again is a new buffer at the address of an old one. If
//! sharing the old one paid, the new one is shared at half the loss; if it brought little, at twice
//! the loss (Purohit et al. 2018). Then the factor is at most 3, and 1.5 where lives are alike.

use crate::spans::{PAGE_BYTES, Span};

/// What it costs to share a buffer: questions to the system and two mappings, and for each page the
/// copy into the file and the page faults on both sides. Measured:
/// docs/lab/2026-11-30-sharing-within-the-warm-up.md, and for the pages
/// docs/lab/2026-11-29-what-sharing-brings-programs.md.
const SHARING_NS: u64 = 110_000;
const SHARING_PAGE_NS: u64 = 3_700;

/// What a message out of private memory takes longer, where its receiver would copy it out of
/// shared memory. Measured:
/// docs/lab/2026-11-29-what-sharing-brings-programs.md.
const LOSS_NS: u64 = 1_200;
const LOSS_PAGE_NS: u64 = 200;

/// The loss after which a buffer is shared, in halves of what sharing costs.
const USUAL_HALVES: u64 = 2;
const HALVES_WHERE_IT_PAID: u64 = 1;
const HALVES_WHERE_IT_DID_NOT: u64 = 4;

/// The part of what sharing costs that messages must have lost which follow each other closely.
/// Chosen: at 16 KiB it is lost by the time at which they are seen to be close, 7 messages.
const EARLY_PART: u64 = 10;

/// Credit of a process at the beginning, in nanoseconds. Chosen: a buffer of 1 MiB, or five of 256
/// KiB. Measured: docs/lab/2026-11-30-sharing-within-the-warm-up.md. With 4 ms FT of class W shared
/// 4 MiB at the seventh of its eight calls.
const CREDIT_NS: u64 = 1_500_000;

/// Sharing brought little if it saved less than this part of what it costs. Chosen.
const LITTLE_PART: u64 = 4;

/// What the loss until the next look is multiplied by where memory was refused. Chosen.
const REFUSED: u64 = 4;

/// Most halves. Chosen: looking at memory that is always refused then costs a thousandth.
const MOST_HALVES: u64 = 1 << 11;

/// Buffers that are remembered. Chosen: more than a program sends in turns, in 32 KiB.
const BUFFERS: usize = 1024;

/// What it costs to share so many bytes of whole pages.
const fn sharing_ns(bytes: usize) -> u64 {
    SHARING_NS + (bytes / PAGE_BYTES) as u64 * SHARING_PAGE_NS
}

/// What a message with so many bytes of whole pages loses where they are private.
const fn loss_ns(bytes: usize) -> u64 {
    LOSS_NS + (bytes / PAGE_BYTES) as u64 * LOSS_PAGE_NS
}

/// What is known of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Buffer {
    /// Number of its first whole page; 0 if the entry is free.
    page: usize,
    /// What its messages have lost while it was private.
    lost_ns: u64,
    /// What they have saved since, while it was shared.
    saved_ns: u64,
    /// The loss after which it is shared, in halves of what that costs.
    halves: u64,
    /// What is taken out of the credit if it is shared now.
    stake_ns: u64,
    /// What was taken, as far as it has not come back.
    owed_ns: u64,
}

const FREE: Buffer = Buffer {
    page: 0,
    lost_ns: 0,
    saved_ns: 0,
    halves: 0,
    stake_ns: 0,
    owed_ns: 0,
};

impl Buffer {
    /// It is private, and begins anew.
    fn renew(&mut self, halves: u64) {
        *self = Self {
            page: self.page,
            halves,
            ..FREE
        };
    }
}

/// An offer of a private buffer.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    /// Its whole pages.
    pub span: Span,
    /// Bytes of it that are not shared.
    pub private_bytes: usize,
    /// For how many messages it stands.
    pub messages: u64,
    /// They followed each other closely.
    pub are_close: bool,
}

/// The buffers that were offered lately.
#[derive(Debug)]
pub struct Offers {
    /// The user asks to have each buffer shared at its first offer.
    pub is_asked: bool,
    credit_ns: u64,
    buffers: [Buffer; BUFFERS],
}

impl Offers {
    /// None yet.
    pub const fn new() -> Self {
        Self {
            is_asked: false,
            credit_ns: CREDIT_NS,
            buffers: [FREE; BUFFERS],
        }
    }

    /// The entry of a buffer. It may take the entry of another buffer, which is then forgotten.
    fn entry(&mut self, address: usize) -> &mut Buffer {
        let (page, is_asked) = (address / PAGE_BYTES, self.is_asked);
        // Fibonacci hashing (Knuth 1973): neighbouring pages lie apart.
        let hash = (page as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let entry = &mut self.buffers[hash as usize % BUFFERS];
        if entry.page != page {
            entry.page = page;
            entry.renew(if is_asked { 0 } else { USUAL_HALVES });
        }
        entry
    }

    /// Counts an offer of a private buffer; true if the buffer is to be shared now.
    pub fn note(&mut self, offer: Offer) -> bool {
        let (span, credit_ns) = (offer.span, self.credit_ns);
        let entry = self.entry(span.start);
        let lost_ns = offer.messages.saturating_mul(loss_ns(span.bytes()));
        entry.lost_ns = entry.lost_ns.saturating_add(lost_ns);
        entry.stake_ns = 0;
        let cost_ns = sharing_ns(offer.private_bytes);
        if entry.lost_ns >= cost_ns / 2 * entry.halves {
            return true;
        }
        let stake_ns = cost_ns.saturating_sub(entry.lost_ns);
        let is_early = offer.are_close
            && entry.halves <= USUAL_HALVES
            && entry.lost_ns >= cost_ns / EARLY_PART
            && stake_ns <= credit_ns;
        entry.stake_ns = if is_early { stake_ns } else { 0 };
        is_early
    }

    /// Notes that a buffer is shared from now on.
    pub fn begin(&mut self, span: Span) {
        let entry = self.entry(span.start);
        let stake_ns = std::mem::take(&mut entry.stake_ns);
        (entry.lost_ns, entry.saved_ns) = (0, 0);
        entry.owed_ns += stake_ns;
        self.credit_ns = self.credit_ns.saturating_sub(stake_ns);
    }

    /// Counts an offer of a shared buffer that stands for so many messages.
    #[inline]
    pub fn use_shared(&mut self, span: Span, messages: u64) {
        let saved_ns = messages.saturating_mul(loss_ns(span.bytes()));
        let entry = self.entry(span.start);
        entry.saved_ns = entry.saved_ns.saturating_add(saved_ns);
        let back_ns = entry.owed_ns.min(saved_ns);
        entry.owed_ns -= back_ns;
        self.credit_ns += back_ns;
    }

    /// Notes that a buffer is private again, because its memory was freed.
    pub fn end(&mut self, span: Span) {
        let is_asked = self.is_asked;
        let entry = self.entry(span.start);
        let cost_ns = sharing_ns(span.bytes());
        let halves = match entry.saved_ns {
            saved_ns if saved_ns < cost_ns / LITTLE_PART => HALVES_WHERE_IT_DID_NOT,
            _ if is_asked => 0,
            saved_ns if saved_ns < cost_ns => USUAL_HALVES,
            _ => HALVES_WHERE_IT_PAID,
        };
        entry.renew(halves);
    }

    /// Notes that a buffer may not be shared now. After more offers it is tried again.
    pub fn refuse(&mut self, span: Span) {
        let entry = self.entry(span.start);
        let halves = entry.halves.max(USUAL_HALVES) * REFUSED;
        entry.renew(halves.min(MOST_HALVES));
    }
}

impl Default for Offers {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
#[path = "offers_tests.rs"]
mod tests;
