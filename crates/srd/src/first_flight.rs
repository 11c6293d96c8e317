// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How much of a first flight, which is what leaves while nothing is in flight, keeps to one path
//! (srd-protocol 10.1). Asked by sender, told by loss what became of the last one.
//!
//! One path means one system call and one acknowledgement, and both hosts have it in their caches:
//! where the network is fast, a message of 64 KiB is done soonest on it. Where a path is slow, the
//! same message is done sooner on several. Which of the two holds is measured: by the delay of the
//! last packet of such a flight.

use weft_wire::Path;

use crate::config::{BATCH_BYTES, SEQUENCE_LIMIT};

/// The most that keeps to one path (chosen: a message of 64 KiB with its heads, the longest that
/// leaves unasked, in datagrams of 1472 bytes and more).
const MOST_BYTES: u32 = 72 << 10;

/// Lengths are kept in steps of so many bytes (chosen: flights fit 16 bits; every flow has one).
const STEP_BYTES: u32 = 16;

/// What one path may carry of a first flight, and the flight that is being measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstFlight {
    limit_steps: u16,
    /// What has left on that path.
    sent_steps: u16,
    /// The low bits of the last one's: more than are ever under way.
    last_sequence: u16,
    path: Option<Path>,
}

const _: () = assert!(
    SEQUENCE_LIMIT < 1 << 15,
    "the low bits of two sequences under way tell which is the later one"
);

const fn steps(bytes: u32) -> u16 {
    bytes.div_ceil(STEP_BYTES) as u16
}

impl FirstFlight {
    pub(crate) fn new() -> Self {
        Self {
            limit_steps: steps(BATCH_BYTES),
            sent_steps: 0,
            last_sequence: 0,
            path: None,
        }
    }

    /// So many bytes keep to one path.
    pub(crate) fn limit_bytes(&self) -> u32 {
        u32::from(self.limit_steps) * STEP_BYTES
    }

    /// Nothing is in flight, and a packet is about to leave on this path.
    #[inline]
    pub(crate) fn begin(&mut self, path: Path) {
        self.path = Some(path);
        self.sent_steps = 0;
    }

    /// A new packet leaves, with this sequence as its last one.
    #[inline]
    pub(crate) fn on_sent(&mut self, sequence: u64, bytes: u32, path: Path) {
        if self.path == Some(path) {
            let left = steps(bytes);
            self.sent_steps = self.sent_steps.saturating_add(left);
            self.last_sequence = sequence as u16;
        }
    }

    /// A packet has answered after a round trip through the network, and all below `cumulative`
    /// has arrived. If that is the whole flight, a round trip below the delay target (`is_quick`)
    /// says that the path carries twice as much as quickly, a longer one that it carries half. The
    /// packet may have left behind the flight, on another path: the answer names what arrived last.
    #[inline]
    pub(crate) fn on_echo(&mut self, cumulative: u64, is_quick: bool) {
        let beyond = (cumulative as u16).wrapping_sub(self.last_sequence) as i16;
        if self.path.is_none() || beyond <= 0 {
            return;
        }
        self.path = None;
        if !is_quick {
            self.limit_steps = (self.limit_steps / 2).max(steps(BATCH_BYTES));
        } else if self.sent_steps > self.limit_steps / 2 {
            self.limit_steps = (2 * self.limit_steps).min(steps(MOST_BYTES));
        }
    }

    /// Something was lost: nothing is known of what a path carries.
    pub(crate) fn forget(&mut self) {
        *self = Self::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends a flight, and hears of its last packet, quickly or late.
    fn fly(flight: &mut FirstFlight, from: u64, packets: u64, is_quick: bool) {
        let path = Path::from_ports(1, 2);
        flight.begin(path);
        for sequence in from..from + packets {
            flight.on_sent(sequence, 8_972, path);
        }
        flight.on_echo(from + packets, is_quick);
    }

    #[test]
    fn a_path_that_carries_a_flight_quickly_is_trusted_with_twice_as_much_up_to_a_limit() {
        let mut flight = FirstFlight::new();
        let mut limits = Vec::new();
        for step in 0..4 {
            let packets = u64::from(flight.limit_bytes() / 8_972);
            fly(&mut flight, 100 * step, packets, true);
            limits.push(flight.limit_bytes());
        }
        assert_eq!(limits, [32 << 10, 64 << 10, MOST_BYTES, MOST_BYTES]);
    }

    #[test]
    fn short_flights_say_nothing_of_long_ones() {
        let mut flight = FirstFlight::new();
        for step in 0..10 {
            let path = Path::from_ports(0, 0);
            flight.begin(path);
            flight.on_sent(step, 1_000, path);
            flight.on_echo(step + 1, true);
        }
        assert_eq!(flight.limit_bytes(), BATCH_BYTES);
    }

    /// The rate has fallen to a tenth between two messages: the next one pays for it, and no other.
    #[test]
    fn a_path_that_has_become_slow_is_trusted_with_half_and_a_loss_ends_all_trust() {
        let mut flight = FirstFlight::new();
        for step in 0..3 {
            fly(&mut flight, 100 * step, 8, true);
        }
        fly(&mut flight, 300, 8, false);
        assert_eq!(flight.limit_bytes(), MOST_BYTES / 2);
        fly(&mut flight, 400, 4, false);
        fly(&mut flight, 500, 4, false);
        assert_eq!(flight.limit_bytes(), BATCH_BYTES);
        fly(&mut flight, 600, 2, true);
        assert_eq!(flight.limit_bytes(), 2 * BATCH_BYTES);
        flight.forget();
        assert_eq!(flight.limit_bytes(), BATCH_BYTES);
    }

    #[test]
    fn a_flight_is_measured_once_all_of_it_has_arrived_and_once_only() {
        let mut flight = FirstFlight::new();
        let path = Path::from_ports(0, 0);
        flight.begin(path);
        flight.on_sent(65_535, 8_972, path);
        flight.on_sent(65_536, 8_972, path);
        flight.on_sent(65_537, 8_972, Path::from_ports(3, 3));
        flight.on_echo(65_536, true);
        assert_eq!(flight.limit_bytes(), BATCH_BYTES);
        // The answer names the packet on the other path, behind it.
        flight.on_echo(65_538, true);
        assert_eq!(flight.limit_bytes(), 2 * BATCH_BYTES);
        flight.on_echo(65_538, true);
        assert_eq!(flight.limit_bytes(), 2 * BATCH_BYTES);
    }
}
