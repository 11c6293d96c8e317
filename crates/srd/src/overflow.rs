// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether queues overflow before delay says so: a switch may hold back less than the delay target,
//! or the shortest round trip that we saw may have had a queue in it (srd-protocol 10.10). Called
//! by window.

/// Losses are counted among so many packets (chosen: 1 % of random losses are then 16 of them once
/// in ten thousand times).
const BLOCK_PACKETS: u64 = 512;
/// Queues overflow when of a block more than this part, 3 %, was lost (chosen: well above what bad
/// cables lose, and below what a window loses that grows by an eighth in a round trip).
const OVERFLOW_PART: u64 = 32;

/// Bytes of the block so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Overflow {
    acked_bytes: u64,
    lost_bytes: u64,
}

impl Overflow {
    /// So many bytes were acknowledged.
    #[inline]
    pub(crate) fn on_acknowledged(&mut self, bytes: u64, packet_bytes: u64) {
        self.acked_bytes += bytes;
        if self.acked_bytes > BLOCK_PACKETS * packet_bytes {
            *self = Self::default();
        }
    }

    /// So many bytes were lost on paths that went on to carry others. Answers whether queues
    /// overflow; the next block begins then.
    pub(crate) fn on_lost(&mut self, bytes: u64, packet_bytes: u64) -> bool {
        self.lost_bytes += bytes;
        let overflows = self.lost_bytes * OVERFLOW_PART >= BLOCK_PACKETS * packet_bytes;
        if overflows {
            *self = Self::default();
        }
        overflows
    }

    /// So many bytes that were taken for lost were not.
    pub(crate) fn on_false_loss(&mut self, bytes: u64) {
        self.lost_bytes = self.lost_bytes.saturating_sub(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// How often queues seem to overflow in so many packets with so many losses in 10,000.
    fn overflows(packet_count: u64, losses: u64) -> usize {
        let (mut overflow, mut random) = (Overflow::default(), Random::new(7));
        let lost = |random: &mut Random| random.below(10_000) < losses;
        (0..packet_count)
            .filter(|_| {
                if lost(&mut random) {
                    return overflow.on_lost(1000, 1000);
                }
                overflow.on_acknowledged(1000, 1000);
                false
            })
            .count()
    }

    #[test]
    fn one_loss_in_a_hundred_is_no_overflow_and_one_in_twenty_is() {
        assert!(
            overflows(1_000_000, 100) < 4,
            "{}",
            overflows(1_000_000, 100)
        );
        assert!(overflows(10_000, 500) > 10, "{}", overflows(10_000, 500));
    }
}
