// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is asked of a remote of which nothing is heard: probes (srd-protocol 13.2), and heartbeats at the port where its
//! process answers while its program computes (13.6). Called by transmit and contact; silence judges.

use std::net::SocketAddr;

use weft_wire::{Alive, Body, Head, Header, Packet};

use crate::config::Config;
use crate::contact::{Came, said_home};
use crate::events::Transmit;
use crate::flow::{Flow, Shared};
use crate::machine::{Machine, Slot};
use crate::timers::NEVER;

/// A silent remote is asked whether it lives at each such part of `dead_after` (srd-protocol 13.6; chosen: so that three
/// answers may be lost).
const HEARTBEAT_PART: u64 = 5;
impl Flow {
    /// When to ask the remote's heartbeat port, because nothing is heard (srd-protocol 13.6); [`NEVER`] where nothing waits for
    /// an answer. Fast path.
    #[inline]
    pub(crate) fn heartbeat_ns(&self, config: &Config) -> u64 {
        if self.identity.reach.heartbeat_port == 0 {
            return NEVER;
        }
        let silence = &self.silence;
        let wait_ns = config.timing.dead_after_ns / HEARTBEAT_PART;
        if silence.wants_heartbeat {
            return 0;
        }
        let asked_ns = silence.heartbeat_ns.max(silence.unanswered_ns);
        asked_ns.saturating_add(wait_ns)
    }

    /// What is asked of the remote where nothing else leaves, and an acknowledgement that found no packet to go with.
    pub(crate) fn poll_questions(
        &mut self,
        shared: &mut Shared,
        now_ns: u64,
        place: &mut Transmit,
    ) -> bool {
        if self.heartbeat_ns(&shared.config) <= now_ns {
            self.send_heartbeat(shared, now_ns, place);
            return true;
        }
        if self.ask_ns(shared) <= now_ns {
            self.silence.asked_ns = now_ns;
            self.silence.asked_count += 1;
            self.silence.tried_count += 1;
            self.silence.unanswered_ns = self.silence.unanswered_ns.min(now_ns);
            let path = self.sender.paths.pick(now_ns, None);
            self.send_probe(shared, path, now_ns, place);
            return true;
        }
        if self.is_busy() {
            let srtt_ns = self.sender.round_trip.srtt_ns();
            if let Some(path) = self.sender.paths.take_probe(now_ns, srtt_ns) {
                self.send_path_probe(shared, path, now_ns, place);
                return true;
            }
        }
        if self.received.due_ns() <= now_ns {
            self.send_acknowledgement(shared, now_ns, place);
            return true;
        }
        false
    }

    /// srd-protocol 13.6.
    #[cold]
    fn send_heartbeat(&mut self, shared: &mut Shared, now_ns: u64, place: &mut Transmit) {
        self.silence.on_heartbeat(now_ns);
        let path = self.identity.reach.first_path(0);
        self.send_probe(shared, path, now_ns, place);
        place.to = self.identity.address;
        place.to.set_port(self.identity.reach.heartbeat_port);
    }
}

impl Machine {
    /// The process at a remote's address says that it lives (srd-protocol 13.6). Slow path, a scan.
    pub(crate) fn take_alive(&mut self, alive: &Alive, came: Came) {
        let home = said_home(alive.home, came.from);
        let named = |slot: &Slot| {
            let known = slot.incarnation();
            let same = known == alive.incarnation || known == 0;
            same && slot.identity().address == home
        };
        let index = self.slots.iter().position(named);
        let flow = index.and_then(|index| self.slots[index].flow.as_mut());
        if let (Some(index), Some(flow)) = (index, flow)
            && alive.echo_sent_ns <= came.now_ns
        {
            flow.silence.on_alive(alive.echo_sent_ns);
            self.settle(index as u32, came.now_ns, false);
        }
    }
}

/// Who answers heartbeats of an endpoint while its program computes: what a thread beside the machine needs to know.
#[derive(Clone, Copy, Debug)]
pub struct Living {
    /// The endpoint's incarnation.
    pub incarnation: u64,
    /// Its address and first port.
    pub home: SocketAddr,
    /// The incarnation under which the answers leave: nobody else's, so that their counts are no others' either.
    pub speaker: u64,
}

impl Living {
    /// The answer to a datagram, if it asks whether this endpoint lives: no longer than the question (srd-protocol 13.6, 14.3).
    pub fn answer(&self, datagram: &[u8]) -> Option<Head> {
        let packet = Packet::parse(datagram).ok()?;
        let header = &packet.header;
        let stranger = header.target == 0 && packet.hello.is_some();
        let asks = matches!(packet.body, Body::Probe) && header.source != self.incarnation;
        if !asks || !(stranger || header.target == self.incarnation) {
            return None;
        }
        let answer = Packet {
            header: Header {
                path: header.path.reverse(),
                acknowledge_now: false,
                retransmission: false,
                sealed: false,
                context: 0,
                source: self.speaker,
                target: header.source,
                // Nothing of it counts as heard: it speaks of the time of the question.
                sent_ns: 0,
                sequence: 0,
            },
            hello: None,
            acknowledgement: None,
            body: Body::Alive(Alive {
                incarnation: self.incarnation,
                echo_sent_ns: header.sent_ns,
                home: self.home,
            }),
            payload: &[],
        };
        let mut head = Head::new();
        answer.write(&mut head);
        Some(head)
    }
}
