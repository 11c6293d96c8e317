// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What calls have found in sockets, and what that counts. Added up by reader.rs.

/// Each datagram counts as so many bytes more, so that empty ones keep nobody. Chosen: a window of
/// 64 short messages is read at once.
pub(super) const DATAGRAM_COST_BYTES: usize = 512;

/// What one call found in a socket.
#[derive(Clone, Copy, Default)]
pub(super) struct Found {
    pub(super) datagram_count: usize,
    /// Joined ones count as one: a message in many datagrams is still a message on its own.
    pub(super) joined_count: usize,
    pub(super) bytes: usize,
}

impl Found {
    /// What a socket gave that is read one by one: nothing, or a datagram, which was let in or not.
    pub(super) fn single(admitted_count: Option<usize>) -> Self {
        Self {
            datagram_count: admitted_count.unwrap_or(0),
            joined_count: usize::from(admitted_count.is_some()),
            bytes: 0,
        }
    }

    /// What it counts where the next look is decided: strangers do not decide it.
    pub(super) fn arrival_count(&self) -> usize {
        if self.datagram_count > 0 {
            self.joined_count
        } else {
            0
        }
    }

    /// What it counts where so much of a socket is read and no more.
    pub(super) fn cost_bytes(&self) -> usize {
        self.bytes + DATAGRAM_COST_BYTES * self.joined_count
    }

    pub(super) fn add(&mut self, more: &Self) {
        self.datagram_count += more.datagram_count;
        self.joined_count += more.joined_count;
        self.bytes += more.bytes;
    }
}
