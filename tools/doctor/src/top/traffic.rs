// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages and bytes in one direction, in all and a second. Called by `network.rs` and `rates.rs`.

use serde::Serialize;

/// Messages and bytes: how many a second now, and how many in all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Traffic {
    /// Messages a second.
    pub messages_per_s: f64,
    /// Bytes a second.
    pub bytes_per_s: f64,
    /// Messages in all.
    pub messages: u64,
    /// Bytes in all.
    pub bytes: u64,
}

impl Traffic {
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            messages_per_s: self.messages_per_s + other.messages_per_s,
            bytes_per_s: self.bytes_per_s + other.bytes_per_s,
            messages: self.messages + other.messages,
            bytes: self.bytes + other.bytes,
        }
    }

    /// Of counts of messages and bytes at two moments.
    pub(super) fn between(before: [u64; 2], now: [u64; 2], elapsed_s: f64) -> Self {
        // Counts that fell are those of another process at the same address.
        let rate = |index: usize| now[index].saturating_sub(before[index]) as f64 / elapsed_s;
        Self {
            messages_per_s: rate(0),
            bytes_per_s: rate(1),
            messages: now[0],
            bytes: now[1],
        }
    }
}
