// SPDX-License-Identifier: Apache-2.0 OR MIT
//! When an acknowledgement must leave (srd-protocol 7.3). Asked by ack and transmit, told by flow
//! and receiver.

use weft_wire::time::{Instant, Nanos};
use weft_wire::{Body, Packet};

use crate::ack_hold::AckHold;
use crate::config::Timing;

/// Packets after which an acknowledgement waits no longer (srd-protocol 7.3; specified: REPS).
const ACKNOWLEDGE_AFTER: u32 = 8;

/// Messages longer than this are long (measured: all-to-alls of 4 KiB gain by acknowledgements that
/// are held back, and those of 32 KiB take half as many sends again).
const LONG_FROM_BYTES: u64 = 8 << 10;

/// See the module.
#[derive(Debug)]
pub(crate) struct AckTimer {
    unacknowledged_count: u32,
    due_ns: Instant,
    /// What is learned of acknowledgements of short messages.
    pub(crate) hold: AckHold,
}

impl AckTimer {
    /// Nothing is to be acknowledged.
    pub(crate) fn new() -> Self {
        Self {
            unacknowledged_count: 0,
            due_ns: Instant::NEVER,
            hold: AckHold::new(),
        }
    }

    /// A fresh packet wants to be acknowledged, which `may_wait` for our own next message.
    pub(crate) fn want_for(
        &mut self,
        packet: &Packet<'_>,
        may_wait: bool,
        timing: &Timing,
        now_ns: Instant,
    ) {
        let at_once = packet.header.acknowledge_now;
        let usual_ns = timing.acknowledgement_delay_ns;
        if is_long(&packet.body) {
            self.hold.forget();
        }
        let (continues, delay_ns) = match &packet.body {
            Body::Eager(_) if may_wait => (false, self.hold.begin(now_ns, usual_ns)),
            Body::Segment(segment) => (segment.offset_bytes > 0, usual_ns),
            Body::Receipt(_) => (false, timing.receipt_delay_ns()),
            _ => (false, usual_ns),
        };
        if matches!(packet.body, Body::Data(_)) {
            self.unacknowledged_count += u32::from(packet.header.further_count);
        }
        self.want(at_once, continues, now_ns, delay_ns);
    }

    /// A reliable packet wants to be acknowledged. `continues`: it is of a message in segments, and
    /// not its beginning.
    pub(crate) fn want(
        &mut self,
        at_once: bool,
        continues: bool,
        now_ns: Instant,
        delay_ns: Nanos,
    ) {
        if !continues || self.unacknowledged_count == 0 {
            self.unacknowledged_count += 1;
        }
        if at_once || self.unacknowledged_count >= ACKNOWLEDGE_AFTER {
            self.due_ns = Instant::START;
        } else if continues && self.due_ns > Instant::START {
            // Of the message as a whole.
            self.due_ns = now_ns + delay_ns;
        } else {
            self.due_ns = self.due_ns.min(now_ns + delay_ns);
        }
    }

    /// The sender has sent something again, perhaps since it has waited for too long.
    #[cold]
    pub(crate) fn on_asked_again(&mut self, now_ns: Instant, usual_ns: Nanos) {
        if self.due_ns > Instant::START && self.due_ns < Instant::NEVER {
            let left_ns = self.due_ns.saturating_since(now_ns);
            self.hold.on_asked_again(left_ns, usual_ns);
        }
    }

    /// The sender should hear at once, of limits that have grown or of a probe.
    pub(crate) fn want_now(&mut self) {
        self.due_ns = Instant::START;
    }

    /// When an acknowledgement must leave; 0 for at once, [`Instant::NEVER`] for no need.
    pub(crate) fn due_ns(&self) -> Instant {
        self.due_ns
    }

    /// One leaves, for a probe alone or for all that has arrived.
    pub(crate) fn on_sent(&mut self, for_probe: bool) {
        if for_probe && self.unacknowledged_count > 0 {
            self.due_ns = Instant::START;
            return;
        }
        self.unacknowledged_count = 0;
        self.due_ns = Instant::NEVER;
        self.hold.on_acknowledged();
    }
}

/// Whether a packet is of a message that leaves sooner where nothing is in flight before it
/// (srd-protocol 10.1, 12.1): then its sender must soon hear of its short messages.
fn is_long(body: &Body) -> bool {
    match body {
        Body::Segment(segment) => segment.message.length_bytes > LONG_FROM_BYTES,
        Body::Offer(_) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAY_NS: Nanos = Nanos(20_000);

    #[test]
    fn the_eighth_packet_is_acknowledged_at_once_and_fewer_after_the_delay() {
        let mut timer = AckTimer::new();
        for _ in 0..7 {
            timer.want(false, false, Instant(1000), DELAY_NS);
            assert_eq!(timer.due_ns(), Instant(21_000));
        }
        timer.want(false, false, Instant(1000), DELAY_NS);
        assert_eq!(timer.due_ns(), Instant::START);
        timer.on_sent(false);
        assert_eq!(timer.due_ns(), Instant::NEVER);
        timer.want(true, false, Instant(1000), DELAY_NS);
        assert_eq!(timer.due_ns(), Instant::START);
    }

    /// A message of 64 KiB in 48 packets: its receiver's own message is to take the answer along.
    #[test]
    fn the_segments_of_a_message_are_acknowledged_together_after_the_last_one() {
        let mut timer = AckTimer::new();
        for step in 0..48 {
            timer.want(false, step > 0, Instant(1000 * step), DELAY_NS);
            assert_eq!(timer.due_ns(), Instant(1000 * step + 20_000));
        }
        for _ in 0..6 {
            timer.want(false, false, Instant(60_000), DELAY_NS);
        }
        assert_eq!(timer.due_ns(), Instant(67_000), "those of the eight");
        timer.want(false, false, Instant(60_000), DELAY_NS);
        assert_eq!(timer.due_ns(), Instant::START);
        timer.want(false, true, Instant(60_000), DELAY_NS);
        assert_eq!(timer.due_ns(), Instant::START, "nothing puts it off");
        timer.on_sent(false);
        timer.want(false, true, Instant(61_000), DELAY_NS);
        assert_eq!(timer.due_ns(), Instant(81_000));
    }

    #[test]
    fn an_answer_to_a_probe_leaves_what_has_arrived_besides_to_the_next_one() {
        let mut timer = AckTimer::new();
        timer.want(false, false, Instant(1000), DELAY_NS);
        timer.want_now();
        timer.on_sent(true);
        assert_eq!(timer.due_ns(), Instant::START);
        timer.on_sent(false);
        assert_eq!(timer.due_ns(), Instant::NEVER);
    }
}
