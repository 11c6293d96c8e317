// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A host with one end of a [`Rival`]. Called by host.

use std::collections::VecDeque;

use crate::fabric::{Content, Outgoing, Packet};
use crate::hash::FiveTuple;
use crate::rival::{Control, Rival};
use crate::tcp::{HEADER_BYTES, Segment};

/// One end of the flow: a source that sends to a host, or the sink there.
#[derive(Debug)]
pub struct RivalHost {
    host: u32,
    remote: u32,
    source: Option<Rival>,
    payload_bytes: u64,
    answers: VecDeque<Segment>,
    /// Payload that has arrived.
    taken_bytes: u64,
}

impl RivalHost {
    /// Sends to `remote` for ever, in packets of so many bytes.
    pub fn source(host: u32, remote: u32, control: Control, payload_bytes: u64) -> Self {
        Self {
            source: Some(Rival::new(control)),
            ..Self::sink(host, remote, payload_bytes)
        }
    }

    /// Takes what `remote` sends.
    pub fn sink(host: u32, remote: u32, payload_bytes: u64) -> Self {
        Self {
            host,
            remote,
            source: None,
            payload_bytes,
            answers: VecDeque::new(),
            taken_bytes: 0,
        }
    }

    /// Payload that has arrived here.
    pub fn taken_bytes(&self) -> u64 {
        self.taken_bytes
    }

    /// Takes a packet.
    pub fn on_packet(&mut self, now_ns: u64, packet: &Packet) {
        let Content::Tcp(segment) = packet.content else {
            return;
        };
        match &mut self.source {
            Some(source) => source.on_acknowledged(&segment, now_ns),
            None => {
                self.taken_bytes += self.payload_bytes;
                self.answers.push_back(Segment {
                    acknowledges: true,
                    ..segment
                });
            }
        }
    }

    /// The next packet, if one may leave.
    pub fn poll(&mut self, now_ns: u64) -> Option<Outgoing> {
        let (segment, bytes) = match self.answers.pop_front() {
            Some(answer) => (answer, HEADER_BYTES),
            None => {
                let segment = self.source.as_mut()?.poll(now_ns)?;
                (segment, HEADER_BYTES + self.payload_bytes)
            }
        };
        let tuple = FiveTuple {
            source: self.host,
            target: self.remote,
            source_port: 5000,
            target_port: 5000,
            protocol: 6,
        };
        Some(Outgoing {
            tuple,
            bytes,
            content: Content::Tcp(segment),
        })
    }

    /// When to call [`RivalHost::on_timeout`].
    pub fn deadline_ns(&self) -> u64 {
        let source = self.source.as_ref();
        source.map_or(u64::MAX, Rival::deadline_ns)
    }

    /// Time has come.
    pub fn on_timeout(&mut self, now_ns: u64) {
        if let Some(source) = &mut self.source {
            source.on_timeout(now_ns);
        }
    }
}
