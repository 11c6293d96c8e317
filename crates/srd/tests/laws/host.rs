// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One host of the world of `pair`: its machine, and what came of it.

use std::collections::BTreeMap;

use weft_srd::{Config, Failure, Machine, Offer, Remote};
use weft_wire::Message;

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
}
