// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Undoes what losses did to a window, for packets that arrive after all (srd-protocol 10.9).
//! Called by window.

/// By how much the window shrank, and for how many packets. Both count from the last time that
/// packets were known to be really lost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LossUndo {
    bytes: u64,
    /// Packets found lost, for which nothing has been given back.
    packet_count: u64,
}

impl LossUndo {
    /// So many packets were found lost.
    pub(crate) fn on_lost(&mut self, packet_count: u64) {
        self.packet_count += packet_count;
    }

    /// The window shrank from one size to another. If no packet was found lost before, it shrank
    /// for another reason, and nothing is counted.
    pub(crate) fn on_shrunk(&mut self, from_bytes: u64, to_bytes: u64) {
        if self.packet_count > 0 {
            self.bytes += from_bytes.saturating_sub(to_bytes);
        }
    }

    /// So many packets were not lost. Answers how many of them count, and the bytes to give back.
    pub(crate) fn give_back(&mut self, packet_count: u64) -> (u64, u64) {
        let count = packet_count.min(self.packet_count);
        if count == 0 {
            return (0, 0);
        }
        let bytes = self.bytes * count / self.packet_count;
        self.bytes -= bytes;
        self.packet_count -= count;
        (count, bytes)
    }

    /// Whether nothing was lost that has not come back.
    pub(crate) fn is_none(&self) -> bool {
        self.packet_count == 0
    }
}
