// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How often a remote has gone round memory that is lent to it.

use weft_ring::layout::{CHUNK_BYTES, LANE_DATA_BYTES, PIPE_CHUNKS, POOL_CHUNK_BYTES, POOL_CHUNKS};

/// Bytes of a pipe's chunks.
pub(crate) const PIPE_LAP_BYTES: usize = PIPE_CHUNKS * CHUNK_BYTES;

/// Bytes of a lane's chunks and data area.
pub(crate) const LANE_LAP_BYTES: usize = LANE_DATA_BYTES + POOL_CHUNKS * POOL_CHUNK_BYTES;

/// What came through. The first lap takes its pages from the system, in both processes, which is
/// several times slower and says nothing of the laps to come.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Laps {
    bytes: usize,
}

impl Laps {
    /// So many bytes came through; true if the first lap was over before.
    pub(crate) fn note(&mut self, bytes: usize, lap_bytes: usize) -> bool {
        let was_warm = self.bytes >= lap_bytes;
        self.bytes = self.bytes.saturating_add(bytes);
        was_warm
    }

    /// The pages were made before they were needed.
    pub(crate) fn skip_first(&mut self) {
        self.bytes = usize::MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_lap_is_not_warm() {
        let (mut laps, message_bytes) = (Laps::default(), 128 * 1024);
        for _ in 0..PIPE_LAP_BYTES / message_bytes {
            assert!(!laps.note(message_bytes, PIPE_LAP_BYTES));
        }
        assert!(laps.note(message_bytes, PIPE_LAP_BYTES));
    }
}
