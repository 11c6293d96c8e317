// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Heartbeats: what answers, in the name of an endpoint whose program computes, whoever asks
//! whether its process lives (srd-protocol 13.6). Called by the driver's thread; silence says when
//! one is asked for.

use std::net::SocketAddr;

use weft_wire::time::Instant;
use weft_wire::{Alive, Body, Head, Header, Packet};

/// Answers heartbeats for an endpoint while its program computes. It holds what a thread beside the
/// machine needs for that.
#[derive(Clone, Copy, Debug)]
pub struct HeartbeatResponder {
    /// The endpoint's incarnation.
    pub incarnation: u64,
    /// Its address and first port.
    pub home: SocketAddr,
    /// The incarnation under which the answers are sent. Nobody else has it, so no other sender
    /// uses the same counts.
    pub speaker: u64,
}

impl HeartbeatResponder {
    /// The answer to a datagram that asks whether this endpoint lives; `None` for other datagrams.
    /// The answer is not longer than the question (srd-protocol 13.6, 14.3).
    pub fn answer(&self, datagram: &[u8]) -> Option<Head> {
        let packet = Packet::parse(datagram).ok()?;
        let header = &packet.header;
        let stranger = header.target == 0 && packet.hello.is_some();
        let asks = matches!(packet.body, Body::Probe) && header.source != self.incarnation;
        if !asks || !(stranger || header.target == self.incarnation) {
            return None;
        }
        let alive = Alive {
            incarnation: self.incarnation,
            echo_sent_ns: header.sent_ns,
            home: self.home,
        };
        // Nothing of it counts as heard, so it has no time of its own: it speaks of the time of the
        // question.
        let answer = Header::unreliable(
            header.path.reverse(),
            self.speaker,
            header.source,
            Instant::START,
        );
        let mut head = Head::new();
        Packet::write_parts(&answer, None, None, &Body::Alive(alive), &mut head);
        Some(head)
    }
}
