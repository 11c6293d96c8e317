// SPDX-License-Identifier: Apache-2.0 OR MIT
//! More clients than there are slots, each killed after it has sent once, or between taking a slot
//! and naming itself: their slots are given back, and the next one makes contact. Clients are
//! endpoints of this test binary, started again.

#[path = "shared/processes.rs"]
mod processes;
#[path = "shared/transports.rs"]
mod transports;

use std::net::SocketAddr;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use processes::{Other, command, words};
use transports::{open, region_of, send_word};
use weft_contract::*;
use weft_memory::BytesView;
use weft_os::local_socket::Bell;
use weft_ring::layout::{SLOT_BYTES, SLOT_COUNT, SLOTS_OFFSET};
use weft_shm::{Settings, Transport};

const PER_PROCESS: usize = 100;
const PROCESS_COUNT: usize = 11;
const UNNAMED_COUNT: usize = 24;
const PATIENCE: Duration = Duration::from_secs(60);

/// Counts what arrives; every address is a remote of its own.
#[derive(Default)]
struct Server {
    addresses: Vec<SocketAddr>,
    message_count: usize,
    lost_count: usize,
}

impl Owner for Server {
    fn on_message(&mut self, _: &Envelope, _: BytesView<'_>, _: Option<AckToken>) -> bool {
        self.message_count += 1;
        true
    }
    fn on_offer(&mut self, _: &Envelope, _: OfferId) -> Option<Landing> {
        None
    }
    fn on_landed(&mut self, _: LandingToken, _: Result<(), TransferError>) {}
    fn on_sent(&mut self, _: SendToken, _: Result<(), TransferError>) {}
    fn on_remote_lost(&mut self, _: RemoteId, _: TransferError) {
        self.lost_count += 1;
    }
    fn remote_at(&mut self, address: SocketAddr) -> RemoteId {
        let known = self.addresses.iter().position(|&other| other == address);
        RemoteId(known.unwrap_or_else(|| {
            self.addresses.push(address);
            self.addresses.len() - 1
        }) as u32)
    }
}

/// Sends once from each of many endpoints, and waits to be killed.
#[test]
fn clients_role() {
    let Some(server) = words() else {
        return;
    };
    let clients: Vec<_> = (0..PER_PROCESS)
        .map(|_| {
            let mut client = open(Settings::default());
            client.add_remote(RemoteId(0), server.parse().expect("an address"));
            // When all slots are taken there is no room; that is for the parent to see.
            let sent = send_word(&mut client).is_ok();
            (client, sent)
        })
        .collect();
    let sent = clients.iter().filter(|(_, sent)| *sent).count();
    println!("\nsent {sent}");
    loop {
        std::thread::park();
    }
}

/// Takes the first slots that are free as whoever dies before it has named itself: with a bell,
/// which is gone at the end of this call.
fn take_slots_unnamed(server: &Transport) {
    let region = region_of(server).expect("the region");
    let mut taken = 0;
    for slot in 0..SLOT_COUNT {
        let place = (SLOTS_OFFSET + slot * SLOT_BYTES) as u64;
        let mut state = [0; 8];
        region.read_exact_at(&mut state, place).expect("a slot");
        if state == [0; 8] && taken < UNNAMED_COUNT {
            let incarnation = 4096 + 4 * slot as u64;
            let bell = Bell::bind(&format!("weft/bell/{incarnation:016x}")).expect("a bell");
            let claimed = incarnation | 1;
            region
                .write_all_at(&claimed.to_le_bytes(), place)
                .expect("claimed");
            drop(bell);
            taken += 1;
        }
    }
    assert_eq!(taken, UNNAMED_COUNT, "free slots");
}

#[test]
fn clients_that_are_killed_give_their_slots_back() {
    if words().is_some() {
        return;
    }
    let (mut transport, mut server) = (open(Settings::default()), Server::default());
    // Nobody looks after the dead until every slot is taken; some of them were heard before they
    // died.
    let mut sent_count = 0;
    for number in 0..PROCESS_COUNT {
        let address = transport.local_address().to_string();
        let mut clients = Other::start(&mut command("clients_role", &address)).expect("clients");
        let sent = clients
            .hear("sent ")
            .expect("the clients say how many sent");
        sent_count += sent.parse::<usize>().expect("a number");
        if number == 0 {
            for _ in 0..100 {
                transport.progress(&mut server);
            }
        }
        if number == PROCESS_COUNT - 2 {
            take_slots_unnamed(&transport);
        }
        clients.kill();
    }
    let tried_count = PROCESS_COUNT * PER_PROCESS;
    assert!(sent_count < tried_count, "there was room for all of them");
    let mut last = open(Settings::default());
    last.add_remote(RemoteId(0), transport.local_address());
    let end = Instant::now() + PATIENCE;
    let before = loop {
        let before = server.message_count;
        match send_word(&mut last) {
            Ok(_) => break before,
            Err(PostError::Busy) => {}
            Err(PostError::Failed(why)) => panic!("no contact after {tried_count} clients: {why}"),
        }
        for transport in [&mut last, &mut transport] {
            transport.progress(&mut server);
        }
        assert!(
            Instant::now() < end,
            "no contact after {tried_count} clients"
        );
    };
    while server.message_count == before || server.lost_count < server.addresses.len() - 1 {
        transport.progress(&mut server);
        assert!(
            Instant::now() < end,
            "{} of {} lost, {} messages",
            server.lost_count,
            server.addresses.len(),
            server.message_count
        );
    }
    assert_eq!(server.message_count, sent_count + 1, "each was heard once");
}
