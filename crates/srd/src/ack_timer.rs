// SPDX-License-Identifier: Apache-2.0 OR MIT
//! When an acknowledgement must leave (srd-protocol 7.3). Asked by ack and transmit, told by flow
//! and receiver.

use weft_wire::time::{Instant, Nanos};
use weft_wire::{Body, Packet};

use crate::ack_hold::AckHold;
use crate::config::Timing;

/// Packets after which an acknowledgement waits no longer (srd-protocol 7.3; specified: REPS).
const ACKNOWLEDGE_AFTER: u16 = 8;

/// The longest message whose acknowledgement may be held back (chosen: up to here all-to-alls gain
/// most, and no sender waits until less is in flight before the eighth message).
pub(crate) const HELD_BYTES: u64 = 8 << 10;

/// See the module.
#[derive(Debug)]
pub(crate) struct AckTimer {
    unacknowledged_count: u16,
    due_ns: Instant,
    /// The remote asks before it must wait: then acknowledgements of messages in segments may be
    /// held back too (srd-protocol 7.3).
    pub(crate) is_asked_in_time: bool,
    /// What is learned of acknowledgements that are held back.
    pub(crate) hold: AckHold,
}

impl AckTimer {
    /// Nothing is to be acknowledged.
    pub(crate) fn new() -> Self {
        Self {
            unacknowledged_count: 0,
            due_ns: Instant::NEVER,
            is_asked_in_time: false,
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
        let (rest_ns, delay_ns) = match &packet.body {
            Body::Eager(_) if may_wait => (None, self.hold.begin(now_ns, usual_ns)),
            Body::Segment(segment) => {
                let may_wait = may_wait && self.is_asked_in_time && !is_long(&packet.body);
                let delay_ns = match may_wait {
                    true => self.hold_segment(at_once, now_ns, usual_ns),
                    false => usual_ns,
                };
                ((segment.offset_bytes > 0).then_some(usual_ns), delay_ns)
            }
            Body::Receipt(_) => (None, timing.receipt_delay_ns()),
            _ => (None, usual_ns),
        };
        if matches!(packet.body, Body::Data(_)) {
            let further_count = u16::from(packet.header.further_count);
            self.unacknowledged_count = self.unacknowledged_count.saturating_add(further_count);
        }
        self.want(at_once, rest_ns, now_ns, delay_ns);
    }

    /// How long the acknowledgement of a segment may wait. When it was asked for, nothing is
    /// learned: the sender hears at once, and so would not learn with us.
    fn hold_segment(&mut self, at_once: bool, now_ns: Instant, usual_ns: Nanos) -> Nanos {
        if at_once {
            self.hold.skip(now_ns, usual_ns);
            return usual_ns;
        }
        self.hold.begin(now_ns, usual_ns)
    }

    /// A reliable packet wants to be acknowledged. `rest_ns`: it is of a message in segments and
    /// not its beginning, and so long its acknowledgement waits for the rest of the message.
    pub(crate) fn want(
        &mut self,
        at_once: bool,
        rest_ns: Option<Nanos>,
        now_ns: Instant,
        delay_ns: Nanos,
    ) {
        if rest_ns.is_none() || self.unacknowledged_count == 0 {
            self.unacknowledged_count = self.unacknowledged_count.saturating_add(1);
        }
        if at_once || self.unacknowledged_count >= ACKNOWLEDGE_AFTER {
            self.due_ns = Instant::START;
            return;
        }
        let is_at_once = self.due_ns == Instant::START;
        self.due_ns = self.due_ns.min(now_ns + delay_ns);
        if let Some(rest_ns) = rest_ns.filter(|_| !is_at_once) {
            // Of the message as a whole.
            self.due_ns = self.due_ns.max(now_ns + rest_ns);
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
        Body::Segment(segment) => segment.message.length_bytes > HELD_BYTES,
        Body::Offer(_) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_wire::{Header, Path};

    const DELAY_NS: Nanos = Nanos(20_000);

    #[test]
    fn the_eighth_packet_is_acknowledged_at_once_and_fewer_after_the_delay() {
        let mut timer = AckTimer::new();
        for _ in 0..7 {
            timer.want(false, None, Instant(1000), DELAY_NS);
            assert_eq!(timer.due_ns(), Instant(21_000));
        }
        timer.want(false, None, Instant(1000), DELAY_NS);
        assert_eq!(timer.due_ns(), Instant::START);
        timer.on_sent(false);
        assert_eq!(timer.due_ns(), Instant::NEVER);
        timer.want(true, None, Instant(1000), DELAY_NS);
        assert_eq!(timer.due_ns(), Instant::START);
    }

    /// A message of 64 KiB in 48 packets: its receiver's own message is to take the answer along.
    #[test]
    fn the_segments_of_a_message_are_acknowledged_together_after_the_last_one() {
        let mut timer = AckTimer::new();
        for step in 0..48 {
            let rest_ns = (step > 0).then_some(DELAY_NS);
            timer.want(false, rest_ns, Instant(1000 * step), DELAY_NS);
            assert_eq!(timer.due_ns(), Instant(1000 * step + 20_000));
        }
        for _ in 0..6 {
            timer.want(false, None, Instant(60_000), DELAY_NS);
        }
        assert_eq!(timer.due_ns(), Instant(67_000), "those of the eight");
        timer.want(false, None, Instant(60_000), DELAY_NS);
        assert_eq!(timer.due_ns(), Instant::START);
        timer.want(false, Some(DELAY_NS), Instant(60_000), DELAY_NS);
        assert_eq!(timer.due_ns(), Instant::START, "nothing puts it off");
        timer.on_sent(false);
        timer.want(false, Some(DELAY_NS), Instant(61_000), DELAY_NS);
        assert_eq!(timer.due_ns(), Instant(81_000));
    }

    #[test]
    fn an_answer_to_a_probe_leaves_what_has_arrived_besides_to_the_next_one() {
        let mut timer = AckTimer::new();
        timer.want(false, None, Instant(1000), DELAY_NS);
        timer.want_now();
        timer.on_sent(true);
        assert_eq!(timer.due_ns(), Instant::START);
        timer.on_sent(false);
        assert_eq!(timer.due_ns(), Instant::NEVER);
    }

    /// Segments of a message of 8 KiB to a timer that has learned to hold back for 2 ms. Answers
    /// when the acknowledgement must leave after each.
    fn segments(timer: &mut AckTimer, now_ns: u64, may_wait: bool) -> Vec<u64> {
        let timing = crate::Config::default().timing;
        let mut due_ns = Vec::new();
        for index in 0..12 {
            let segment = weft_wire::Segment {
                message: weft_wire::Message {
                    id: 0,
                    tag: None,
                    cq_data: None,
                    length_bytes: HELD_BYTES,
                    wants_receipt: false,
                    is_service: false,
                },
                offset_bytes: index * 683,
            };
            let packet = Packet {
                header: Header::unreliable(Path::from_ports(0, 0), 1, 1, Instant::START),
                hello: None,
                acknowledgement: None,
                body: Body::Segment(segment),
                payload: &[],
            };
            timer.want_for(&packet, may_wait, &timing, Instant(now_ns + index * 1000));
            due_ns.push(timer.due_ns().0);
        }
        due_ns
    }

    #[test]
    fn segments_are_held_back_from_the_first_on_and_only_for_who_asks_in_time() {
        let mut timer = AckTimer::new();
        for turn in 0..40 {
            let now_ns = turn * 100_000_000;
            timer.hold.begin(Instant(now_ns), DELAY_NS);
            timer.hold.on_message(Instant(now_ns + 2_000_000));
        }
        let start_ns = 1 << 40;
        let usual_ns: Vec<u64> = (0..12)
            .map(|step| start_ns + step * 1000 + 20_000)
            .collect();
        assert_eq!(
            segments(&mut timer, start_ns, true),
            usual_ns,
            "an older sender"
        );
        timer.on_sent(false);
        timer.is_asked_in_time = true;
        let held_ns = segments(&mut timer, start_ns, true);
        assert!(held_ns[0] > start_ns + 1_900_000, "{held_ns:?}");
        assert!(
            held_ns.iter().all(|due_ns| *due_ns == held_ns[0]),
            "{held_ns:?}"
        );
        let later_ns = segments(&mut timer, start_ns + 1_000_000, true);
        assert_eq!(later_ns, held_ns, "another message does not put it off");
        let above_gap_ns = segments(&mut timer, start_ns + 1_000_000, false);
        assert!(above_gap_ns[11] < start_ns + 1_050_000, "{above_gap_ns:?}");
    }
}
