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
    /// The socket failed call after call: what waits there was not read.
    pub(super) is_cut: bool,
}

/// What a call found in a socket that is read one by one. Small enough for registers.
#[derive(Clone, Copy)]
pub(super) enum Single {
    /// Nothing waited.
    Nothing,
    /// See [`Found::is_cut`].
    Cut,
    /// A datagram, of which so many were let in.
    Datagram(usize),
}

impl From<Single> for Found {
    fn from(single: Single) -> Self {
        match single {
            Single::Nothing => Self::default(),
            Single::Cut => Self::cut(),
            Single::Datagram(admitted_count) => Self {
                datagram_count: admitted_count,
                joined_count: 1,
                ..Self::default()
            },
        }
    }
}

impl Found {
    /// Of a socket that could not be read.
    pub(super) fn cut() -> Self {
        Self {
            is_cut: true,
            ..Self::default()
        }
    }

    /// Whether a look has found that nothing waits.
    pub(super) fn is_nothing(&self) -> bool {
        self.joined_count == 0 && !self.is_cut
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
        self.is_cut |= more.is_cut;
    }
}
