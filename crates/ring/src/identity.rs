// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who an endpoint is (docs/shm-layout.md, clause 1a): in a region its owner, in a slot its
//! claimant.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use weft_os::process_id::{ProcessId, START_BITS};

use crate::sync::{AtomicU64, Ordering};

/// Who an endpoint is, as its region and its claims say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Its address.
    pub address: SocketAddr,
    /// Made by [`Identity::incarnation_of`]: tells a restarted process from its predecessor at the
    /// same address.
    pub incarnation: u64,
    /// Its process, as it says.
    pub process: ProcessId,
}

/// Bits of a slot's state that say how far a claim is; 0 in every incarnation. Specified.
pub(crate) const STAGE_BITS: u64 = 3;

/// Bits of a port, below the start time. Specified.
const PORT_BITS: u32 = 16;

const _: () = assert!(PORT_BITS + START_BITS == u64::BITS, "they fill a word");

impl Identity {
    /// An incarnation out of random bits: not 0, and 0 in the bits that a slot's state needs.
    pub fn incarnation_of(random: u64) -> u64 {
        (random & !STAGE_BITS).max(STAGE_BITS + 1)
    }

    /// From its words, in the order of docs/shm-layout.md, clause 1a.
    pub(crate) fn from_words(words: [u64; 5]) -> Self {
        let [incarnation, process, port, high, low] = words;
        let ip = Ipv6Addr::from_bits(u128::from(high) << 64 | u128::from(low));
        let ip = ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4);
        Self {
            address: SocketAddr::new(ip, port as u16),
            incarnation,
            process: ProcessId {
                pid: process as u32,
                namespace: (process >> 32) as u32,
                started_ticks: port >> PORT_BITS,
            },
        }
    }

    fn words(&self) -> [u64; 5] {
        let ip = match self.address.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped().to_bits(),
            IpAddr::V6(ip) => ip.to_bits(),
        };
        [
            self.incarnation,
            u64::from(self.process.pid) | u64::from(self.process.namespace) << 32,
            u64::from(self.address.port()) | self.process.started_ticks << PORT_BITS,
            (ip >> 64) as u64,
            ip as u64,
        ]
    }
}

#[repr(C)]
#[derive(Debug)]
pub(crate) struct IdentityWords {
    pub(crate) words: [AtomicU64; 5],
}

impl IdentityWords {
    pub(crate) fn store(&self, identity: &Identity) {
        for (word, value) in self.words.iter().zip(identity.words()) {
            word.store(value, Ordering::Relaxed);
        }
    }

    pub(crate) fn load(&self) -> Identity {
        let word = |index: usize| self.words[index].load(Ordering::Relaxed);
        Identity::from_words(core::array::from_fn(word))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_incarnation_leaves_room_for_the_stage_of_a_claim() {
        for random in [0, 3, 4, u64::MAX] {
            let incarnation = Identity::incarnation_of(random);
            assert!(incarnation > STAGE_BITS && incarnation & STAGE_BITS == 0);
        }
    }
}
