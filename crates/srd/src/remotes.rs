// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All remotes of a machine, by number and by address, whether anything is under way with them or
//! not. Owned by flows.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::ops::{Index, IndexMut};
use weft_wire::time::Instant;

use crate::config::Config;
use crate::events::Failure;
use crate::flow::{Flow, Rest};
use crate::identity::Identity;
use crate::mtu::DatagramSize;

/// One remote.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) rest: Rest,
    pub(crate) flow: Option<Box<Flow>>,
    /// Incarnations that are gone; their packets are dropped (srd-protocol 6.4).
    pub(crate) former: [u64; 2],
    /// Set once the flow has ended for good: a new incarnation alone can begin again.
    pub(crate) ended: Option<Failure>,
    /// The entry in the deadlines that holds.
    pub(crate) armed_ns: Instant,
    pub(crate) in_turn: bool,
}

impl Slot {
    pub(crate) fn identity(&self) -> &Identity {
        let flow = self.flow.as_ref().map(|flow| &flow.identity);
        flow.unwrap_or(&self.rest.identity)
    }

    /// Of the remote; 0 if not known.
    pub(crate) fn incarnation(&self) -> u64 {
        self.identity().incarnation
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Remotes {
    slots: Vec<Slot>,
    by_address: HashMap<SocketAddr, u32>,
}

impl Remotes {
    /// The number of the remote at this address, which may be new; `None` when the table is full.
    pub(crate) fn add(&mut self, address: SocketAddr, config: &Config) -> Option<u32> {
        if let Some(index) = self.at(address) {
            return Some(index);
        }
        if self.slots.len() >= config.memory.remote_limit as usize {
            return None;
        }
        let index = self.slots.len() as u32;
        let size = DatagramSize::new(config.datagram_bytes, true);
        self.slots.push(Slot {
            rest: Rest::new(Identity::new(address, size, config)),
            flow: None,
            former: [0; 2],
            ended: None,
            armed_ns: Instant::NEVER,
            in_turn: false,
        });
        self.by_address.insert(address, index);
        Some(index)
    }

    /// The number of the remote at this address.
    pub(crate) fn at(&self, address: SocketAddr) -> Option<u32> {
        self.by_address.get(&address).copied()
    }

    pub(crate) fn get(&self, index: u32) -> Option<&Slot> {
        self.slots.get(index as usize)
    }

    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut Slot> {
        self.slots.get_mut(index as usize)
    }

    /// They are numbered from 0.
    pub(crate) fn count(&self) -> usize {
        self.slots.len()
    }

    /// In the order of their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter()
    }

    /// What is under way, in the order of the remotes' numbers.
    pub(crate) fn flows(&self) -> impl Iterator<Item = &Flow> {
        self.slots.iter().filter_map(|slot| slot.flow.as_deref())
    }
}

/// By a number that [`Remotes`] gave out.
impl Index<u32> for Remotes {
    type Output = Slot;

    #[inline]
    fn index(&self, index: u32) -> &Slot {
        &self.slots[index as usize]
    }
}

impl IndexMut<u32> for Remotes {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut Slot {
        &mut self.slots[index as usize]
    }
}
