// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whose packet it is: first contact, restarted remotes, ended flows (srd-protocol 6, 13). The other half of machine.

use std::net::SocketAddr;

use weft_wire::{Body, Head, Header, Packet, Stale};

use crate::events::{Failure, Remote, Transmit};
use crate::flow::Rest;
use crate::machine::{Machine, Slot};
use crate::receive::may_begin;

/// At most one stale answer in this time (srd-protocol 6.5).
const STALE_EVERY_NS: u64 = 10_000_000;
/// Refused datagrams that end a flow (srd-protocol 13.3).
const REFUSED_LIMIT: u32 = 3;

impl Machine {
    /// Finds or creates the flow of a packet (srd-protocol 6.3 to 6.5).
    pub(crate) fn locate(
        &mut self,
        packet: &Packet<'_>,
        from: SocketAddr,
        now_ns: u64,
    ) -> Option<u32> {
        let header = &packet.header;
        if let Body::Stale(stale) = packet.body {
            self.take_stale(stale.incarnation, header.source);
            return None;
        }
        if header.target != 0 && header.target != self.shared.incarnation {
            self.answer_stale(header, from, now_ns);
            return None;
        }
        let index = match header.context {
            0 => {
                let hello = packet.hello.filter(|_| may_begin(packet.body.kind()))?;
                self.remote(SocketAddr::new(from.ip(), hello.ports[0]))?.0
            }
            context => context - 1,
        };
        let slot = self.slots.get_mut(index as usize)?;
        let known = match &slot.flow {
            Some(flow) => flow.identity.incarnation,
            None => slot.rest.identity.incarnation,
        };
        if slot.former.contains(&header.source) {
            return None;
        }
        if slot.ended.is_some() {
            // It knows a flow of ours that has ended: tell it. One that knows nothing of us may begin.
            if header.target != 0 || known == header.source {
                self.answer_stale(header, from, now_ns);
                return None;
            }
            slot.ended = None;
        }
        if known == header.source {
            return Some(index);
        }
        packet.hello.as_ref()?;
        if known != 0 {
            self.restart(index, known);
        }
        Some(index)
    }

    /// The remote is another process now (srd-protocol 6.4).
    fn restart(&mut self, index: u32, gone: u64) {
        let slot = &mut self.slots[index as usize];
        slot.former = [gone, slot.former[0]];
        slot.rest = Rest::new(slot.rest.identity.address);
        if let Some(mut flow) = slot.flow.take() {
            flow.fail(&mut self.shared, Failure::Restarted);
        }
    }

    /// srd-protocol 6.5. Slow path; a scan, since the answer comes from a process that does not know our context.
    fn take_stale(&mut self, incarnation: u64, source: u64) {
        let named = |slot: &Slot| {
            let identity = slot
                .flow
                .as_ref()
                .map_or(&slot.rest.identity, |flow| &flow.identity);
            identity.incarnation == incarnation
        };
        let Some(index) = self.slots.iter().position(named) else {
            return;
        };
        if source == incarnation {
            // The same process has ended its flow with us.
            self.end(index as u32, Failure::Lost);
        } else {
            self.restart(index as u32, incarnation);
        }
    }

    /// srd-protocol 6.5, 14.3: shorter than any packet it answers that has more than a header.
    fn answer_stale(&mut self, header: &Header, from: SocketAddr, now_ns: u64) {
        if self.stale_ns != 0 && now_ns < self.stale_ns + STALE_EVERY_NS {
            return;
        }
        self.stale_ns = now_ns;
        let path = header.path.reverse();
        let incarnation = if header.target == 0 {
            self.shared.incarnation
        } else {
            header.target
        };
        let packet = Packet {
            header: Header {
                path,
                acknowledge_now: false,
                retransmission: false,
                sealed: false,
                context: 0,
                source: self.shared.incarnation,
                target: header.source,
                sent_ns: now_ns,
                sequence: 0,
            },
            hello: None,
            acknowledgement: None,
            body: Body::Stale(Stale { incarnation }),
            payload: &[],
        };
        let mut head = Head::new();
        packet.write(&mut head);
        self.stale = Some(Transmit {
            to: from,
            path,
            head,
            payload: None,
        });
    }

    /// The system said that a host refuses our datagrams (srd-protocol 13.3).
    pub fn handle_refused(&mut self, now_ns: u64, remote: Remote) {
        let Ok((flow, _)) = self.known_flow(remote.0) else {
            return;
        };
        flow.silence.refused_count += 1;
        if flow.silence.refused_count >= REFUSED_LIMIT {
            self.end(remote.0, Failure::Lost);
        } else {
            self.settle(remote.0, now_ns, true);
        }
    }

    /// Ends a flow for good (srd-protocol 13.1).
    pub(crate) fn end(&mut self, index: u32, why: Failure) {
        let slot = &mut self.slots[index as usize];
        slot.ended = Some(why);
        if let Some(mut flow) = slot.flow.take() {
            let address = flow.identity.address;
            let incarnation = flow.identity.incarnation;
            flow.fail(&mut self.shared, why);
            slot.rest = Rest::new(address);
            slot.rest.identity.incarnation = incarnation;
        }
    }
}
