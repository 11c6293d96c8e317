// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One host of the world of `pair`: its machine, and what came of it.

use std::collections::BTreeMap;

use weft_srd::{Config, Failure, Instant, Machine, Offer, Remote, Transmit};
use weft_wire::{Message, Segment};

use crate::links::{Clock, Got, Policy};

pub struct Landing {
    pub slot: usize,
    pub seen: Vec<bool>,
}

pub struct Host {
    pub machine: Machine,
    pub got: Vec<Got>,
    pub offers: Vec<(Offer, Message)>,
    pub sent: Vec<u64>,
    pub failed: Vec<(u64, Failure)>,
    pub lost: Vec<(Remote, Failure)>,
    pub landings_failed: usize,
    /// Messages handed out straight from their datagram.
    pub direct_count: usize,
    pub policy: Policy,
    /// Takes no datagrams and no timers until then, as a process that computes.
    pub away_until: u64,
    pub clock: Clock,
    pub landings: BTreeMap<u64, Landing>,
    pub next_landing: u64,
    pub payloads: BTreeMap<u64, Vec<u8>>,
}

impl Host {
    /// What leaves behind the head: its part of the message, and padding.
    pub fn payload_of(&self, transmit: &Transmit) -> Vec<u8> {
        let mut payload = match transmit.payload {
            None => Vec::new(),
            Some(part) => {
                let start = part.offset_bytes as usize;
                self.payloads[&part.token][start..start + part.length_bytes as usize].to_vec()
            }
        };
        payload.resize(payload.len() + usize::from(transmit.padding_bytes), 0);
        payload
    }

    pub fn new(config: Config, incarnation: u64) -> Self {
        Self {
            machine: Machine::new(config, incarnation).unwrap(),
            got: Vec::new(),
            offers: Vec::new(),
            sent: Vec::new(),
            failed: Vec::new(),
            lost: Vec::new(),
            landings_failed: 0,
            direct_count: 0,
            policy: Policy::Accept,
            away_until: 0,
            clock: Clock::default(),
            landings: BTreeMap::new(),
            next_landing: 0,
            payloads: BTreeMap::new(),
        }
    }

    /// Half of the messages go to a landing from their first piece on, the others come whole.
    pub fn on_begun(&mut self, now: Instant, mut got: Got, segment: &Segment, payload: &[u8]) {
        let from = got.from;
        if segment.message.id.is_multiple_of(2) {
            return self.machine.at(from).begin(now, segment, payload, None);
        }
        let landing = self.next_landing;
        self.next_landing += 1;
        let mut seen = vec![false; got.payload.len()];
        let start = segment.offset_bytes as usize;
        let range = start..start + payload.len();
        got.payload[range.clone()].copy_from_slice(payload);
        seen[range].fill(true);
        let slot = self.got.len();
        self.got.push(got);
        self.landings.insert(landing, Landing { slot, seen });
        let machine = &mut self.machine;
        machine.at(from).begin(now, segment, payload, Some(landing));
    }
}
