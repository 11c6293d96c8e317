// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How much of a flow was in flight lately, and what left without a question (srd-protocol 7.5).
//! Owned by sender, asked by transmit, asking and loss.

/// After this part of the window the remote is asked for an answer (srd-protocol 7.5; chosen: it
/// comes while as much again can leave).
const ASKING_PART: u64 = 4;

/// See the module. In 32 bits where no window is larger: remotes are many.
#[derive(Debug)]
pub(crate) struct Tried {
    /// `most_bytes` counts since this was the next sequence, of which 32 bits are kept: it is near.
    from: u32,
    most_bytes: u32,
    unasked_bytes: u32,
    /// The sequence that asked last, of which 32 bits are kept.
    asked: u32,
    /// Somebody waits for a message that left without a question, since more was to leave behind
    /// it.
    pub(crate) owes: bool,
}

impl Tried {
    pub(crate) fn new(next: u64) -> Self {
        Self {
            from: next as u32,
            most_bytes: 0,
            unasked_bytes: 0,
            asked: next.wrapping_sub(1) as u32,
            owes: false,
        }
    }

    /// So many bytes have left, which are in flight now with others.
    #[inline]
    pub(crate) fn on_sent(&mut self, bytes: u32, in_flight_bytes: u64) {
        self.unasked_bytes = self.unasked_bytes.saturating_add(bytes);
        self.most_bytes = self.most_bytes.max(in_flight_bytes as u32);
    }

    /// The packet with this sequence, which left last, asks for an answer at once.
    #[inline]
    pub(crate) fn on_asked(&mut self, sequence: u64) {
        self.unasked_bytes = 0;
        self.owes = false;
        self.asked = sequence as u32;
    }

    /// Whether something has left behind it.
    #[inline]
    pub(crate) fn has_unasked(&self) -> bool {
        self.unasked_bytes > 0
    }

    /// The sequence that asked last, if `first` is no later.
    #[inline]
    pub(crate) fn asked_from(&self, first: u64) -> Option<u64> {
        let ahead = self.asked.wrapping_sub(first as u32) as i32;
        u64::try_from(ahead).ok().map(|ahead| first + ahead)
    }

    /// Whether, before a message of which so many bytes have left, so much is in flight and was not
    /// asked for that the remote should be asked.
    pub(crate) fn asks(&self, own_bytes: u64, in_flight_bytes: u64, cwnd_bytes: u64) -> bool {
        let unasked_bytes = u64::from(self.unasked_bytes).min(in_flight_bytes);
        ASKING_PART * unasked_bytes.saturating_sub(own_bytes) > cwnd_bytes
    }

    /// The most that was in flight lately. Begins anew once all that had left then is acknowledged
    /// up to `first`.
    pub(crate) fn take(&mut self, first: u64, next: u64, in_flight_bytes: u64) -> u64 {
        let most_bytes = self.most_bytes;
        let is_before = self.from.wrapping_sub(first as u32) as i32 > 0;
        if !is_before {
            self.from = next as u32;
            self.most_bytes = in_flight_bytes as u32;
        }
        most_bytes.into()
    }
}
