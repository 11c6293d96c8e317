// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a whole node costs: 192 endpoints, all pairs in contact, stay under half a GiB of resident
//! memory. All endpoints live in this process, so that pages that several of them map are counted
//! once (Pss of /proc/self/smaps_rollup). scripts/scale.sh prints the figure.

#[path = "shared/transports.rs"]
mod transports;

use std::net::SocketAddr;

use transports::{open, word};
use weft_contract::*;
use weft_memory::{BytesView, UserBuffer};
use weft_shm::{Settings, Transport};

/// Endpoints on one node. Specified.
const ENDPOINTS: usize = 192;
/// What all of them may have resident. Specified.
const LIMIT_KIB: u64 = 512 * 1024;

/// Counts messages; knows all addresses.
struct Counter<'a> {
    addresses: &'a [SocketAddr],
    arrived: usize,
}

impl Owner for Counter<'_> {
    fn on_message(&mut self, _: &Envelope, _: BytesView<'_>, _: Option<AckToken>) -> bool {
        self.arrived += 1;
        true
    }
    fn on_offer(&mut self, _: &Envelope, _: OfferId) -> Option<Landing> {
        None
    }
    fn on_landed(&mut self, _: LandingToken, _: Result<(), TransferError>) {}
    fn on_sent(&mut self, _: SendToken, _: Result<(), TransferError>) {}
    fn on_remote_lost(&mut self, _: RemoteId, _: TransferError) {}
    fn remote_at(&mut self, address: SocketAddr) -> RemoteId {
        let index = self.addresses.iter().position(|other| *other == address);
        RemoteId(index.expect("one of us") as u32)
    }
}

/// A number of KiB in a file of lines `NAME: NUMBER kB`.
fn kib(path: &str, name: &str) -> u64 {
    let text = std::fs::read_to_string(path).expect(path);
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .expect(name);
    line.trim_matches([':', ' ', '\t', 'k', 'B'])
        .parse()
        .expect(name)
}

#[test]
#[ignore = "some 37,000 mappings in one process take a minute and more; scripts/scale.sh runs it"]
fn a_node_of_192_endpoints_in_full_contact_stays_under_half_a_gib() {
    let before_kib = kib("/proc/self/smaps_rollup", "Pss");
    let mut all: Vec<Transport> = (0..ENDPOINTS).map(|_| open(Settings::default())).collect();
    let addresses: Vec<SocketAddr> = all.iter().map(Transport::local_address).collect();
    for one in &mut all {
        for (index, address) in addresses.iter().enumerate() {
            one.add_remote(RemoteId(index as u32), *address);
        }
    }
    let payload = UserBuffer::leaked(&[8]);
    for one in &mut all {
        for remote in 0..ENDPOINTS as u32 {
            let op = SendOp {
                remote: RemoteId(remote),
                ..word()
            };
            assert_eq!(one.post_send(&op, &payload), Ok(Posted::Complete));
        }
    }
    for one in &mut all {
        let mut owner = Counter {
            addresses: &addresses,
            arrived: 0,
        };
        while owner.arrived < ENDPOINTS {
            one.progress(&mut owner);
        }
    }
    let used_kib = kib("/proc/self/smaps_rollup", "Pss") - before_kib;
    eprintln!(
        "{ENDPOINTS} endpoints, all pairs in contact: {} MiB resident, and {} MiB of page tables",
        used_kib / 1024,
        kib("/proc/self/status", "VmPTE") / 1024
    );
    assert!(used_kib < LIMIT_KIB, "{used_kib} KiB");
}
