// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A window that losses shrink and time lets grow, as TCP's does: who moves by it gets as much of a
//! full queue as a TCP flow (srd-protocol 10.10). Called by rivals. Source: RFC 9438.

use weft_wire::time::{Instant, Nanos};

/// What a loss leaves of the window, in tenths (specified: RFC 9438, 4.6).
const BETA_TENTHS: u64 = 7;
/// Packets per second cubed (specified: RFC 9438, 5).
const C: f64 = 0.4;
/// Growth in packets per round trip that gives what Reno gets (specified: RFC 9438, 4.3).
const FRIENDLY: f64 = 9.0 / 17.0;

/// CUBIC's memory of the last loss. Sizes in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cubic {
    packet_bytes: f64,
    /// The window before the last loss, and after it.
    most_bytes: f64,
    least_bytes: f64,
    cut_ns: Instant,
    /// After so long the window is what it was before: K of RFC 9438, 4.2.
    turn_seconds: f64,
    /// Where Reno's window would be.
    friendly_bytes: f64,
}

impl Cubic {
    /// After a loss with this window. `before` is the memory of the loss before it.
    pub(crate) fn after_loss(
        before: Option<&Self>,
        cwnd_bytes: u64,
        packet_bytes: u64,
        now_ns: Instant,
    ) -> Self {
        let cwnd = cwnd_bytes as f64;
        let least_bytes = (cwnd_bytes * BETA_TENTHS / 10) as f64;
        // Who has less than at the loss before makes room (fast convergence, RFC 9438, 4.7).
        let falls = before.is_some_and(|before| cwnd < before.most_bytes);
        let most_bytes = if falls {
            (cwnd + least_bytes) / 2.0
        } else {
            cwnd
        };
        let packet_bytes = packet_bytes as f64;
        let lost = (most_bytes - least_bytes) / packet_bytes;
        Self {
            packet_bytes,
            most_bytes,
            least_bytes,
            cut_ns: now_ns,
            turn_seconds: (lost / C).cbrt(),
            friendly_bytes: least_bytes,
        }
    }

    /// The window right after the loss.
    pub(crate) fn least_bytes(&self) -> u64 {
        self.least_bytes as u64
    }

    /// The window after so many more bytes were acknowledged, while it was in use.
    pub(crate) fn grown_bytes(
        &mut self,
        cwnd_bytes: u64,
        acked_bytes: u64,
        now_ns: Instant,
        rtt_ns: Nanos,
    ) -> u64 {
        let (cwnd, acked) = (cwnd_bytes as f64, acked_bytes as f64);
        let since_ns = now_ns.saturating_since(self.cut_ns) + rtt_ns;
        let seconds = since_ns.0 as f64 / 1e9;
        let aim = self.most_bytes + C * (seconds - self.turn_seconds).powi(3) * self.packet_bytes;
        let step = (aim.clamp(cwnd, 1.5 * cwnd) - cwnd) * (acked / cwnd).min(1.0);
        let slope = if self.friendly_bytes < self.most_bytes {
            FRIENDLY
        } else {
            1.0
        };
        self.friendly_bytes += slope * self.packet_bytes * acked / cwnd;
        (cwnd + step).max(self.friendly_bytes) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: u64 = 1000;

    /// The window after so much time of round trips of this length in which all of it arrived.
    fn after(cubic: &mut Cubic, rtt_ns: u64, total_ns: u64) -> u64 {
        let mut cwnd_bytes = cubic.least_bytes();
        for trip in 1..=total_ns / rtt_ns {
            let now_ns = Instant(trip * rtt_ns);
            cwnd_bytes = cubic.grown_bytes(cwnd_bytes, cwnd_bytes, now_ns, Nanos(rtt_ns));
        }
        cwnd_bytes
    }

    /// K of RFC 9438, 4.2: the cube root of 0.3 times 1000 packets over 0.4 is 9.1 s.
    #[test]
    fn a_loss_leaves_seven_tenths_and_the_rest_comes_back_after_the_rfcs_time() {
        let cut = || Cubic::after_loss(None, 1000 * PACKET, PACKET, Instant::START);
        assert_eq!(cut().least_bytes(), 700 * PACKET);
        let part = |seconds: u64| after(&mut cut(), 100_000_000, seconds * 1_000_000_000) / PACKET;
        assert!((960..1000).contains(&part(6)), "{}", part(6));
        assert!((998..1005).contains(&part(9)), "{}", part(9));
        assert!((1040..1100).contains(&part(14)), "{}", part(14));
    }

    #[test]
    fn where_round_trips_are_short_it_grows_as_reno_would() {
        let mut cubic = Cubic::after_loss(None, 100 * PACKET, PACKET, Instant::START);
        // 9/17 of a packet in each of 40 round trips.
        let grown = after(&mut cubic, 100_000, 4_000_000) / PACKET;
        assert!((90..=92).contains(&grown), "{grown}");
    }

    #[test]
    fn who_has_less_than_at_the_loss_before_makes_room() {
        let first = Cubic::after_loss(None, 100 * PACKET, PACKET, Instant::START);
        let second = Cubic::after_loss(Some(&first), 80 * PACKET, PACKET, Instant::START);
        assert_eq!(second.most_bytes as u64, 68 * PACKET);
    }
}
