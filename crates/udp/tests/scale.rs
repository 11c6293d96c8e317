// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Many endpoints at once over real sockets: first contact of all with all, and what a remote costs
//! in memory.
#![cfg(target_os = "linux")]

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use weft_contract::{
    AckToken, Class, CompletionLevel, Envelope, Landing, LandingToken, OfferId, Owner, Peer,
    RemoteId, SendOp, SendToken, TransferError,
};
use weft_memory::{BytesView, UserBuffer};
use weft_udp::{Settings, SocketPorts, Transport};

/// One endpoint's owner: whom it knows, and how often it heard of each.
struct Member {
    addresses: Arc<HashMap<SocketAddr, u32>>,
    received: Vec<usize>,
    sent: usize,
    failed: usize,
}

impl Owner for Member {
    fn on_message(&mut self, envelope: &Envelope, _: BytesView<'_>, _: Option<AckToken>) -> bool {
        self.received[envelope.remote.0 as usize] += 1;
        true
    }
    fn on_offer(&mut self, _: &Envelope, _: OfferId) -> Option<Landing> {
        None
    }
    fn on_landed(&mut self, _: LandingToken, _: Result<(), TransferError>) {}
    fn on_sent(&mut self, _: SendToken, outcome: Result<(), TransferError>) {
        match outcome {
            Ok(()) => self.sent += 1,
            Err(_) => self.failed += 1,
        }
    }
    fn on_remote_lost(&mut self, _: RemoteId, _: TransferError) {
        self.failed += 1;
    }
    fn remote_at(&mut self, address: SocketAddr) -> RemoteId {
        RemoteId(self.addresses[&address])
    }
}

/// Endpoints on loopback that know each other's addresses and have never been in contact.
struct Endpoints(Vec<(Transport<SocketPorts>, Member)>);

impl Endpoints {
    fn open(count: usize) -> Self {
        let settings = Settings {
            address: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
            ..Settings::default()
        };
        let transports: Vec<Transport<SocketPorts>> = (0..count)
            .map(|_| Transport::open(&settings).expect("sockets"))
            .collect();
        let addresses: Vec<SocketAddr> = transports.iter().map(Transport::local_address).collect();
        let known = Arc::new(addresses.iter().copied().zip(0..).collect());
        let member = |mut transport: Transport<SocketPorts>| {
            for (address, remote) in addresses.iter().zip(0..) {
                transport.add_remote(RemoteId(remote), *address);
            }
            let member = Member {
                addresses: Arc::clone(&known),
                received: vec![0; count],
                sent: 0,
                failed: 0,
            };
            (transport, member)
        };
        Self(transports.into_iter().map(member).collect())
    }

    fn post(&mut self, from: usize, to: usize, payload: &UserBuffer) {
        let op = SendOp {
            remote: RemoteId(to as u32),
            class: Class::Tagged,
            tag: 1,
            cq_data: None,
            level: CompletionLevel::Transmit,
            token: SendToken(7),
            inject: false,
        };
        self.0[from].0.post_send(&op, payload).expect("posted");
    }

    /// Everybody's progress until `done` of all members says so.
    fn run(&mut self, done: impl Fn(&Member) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(200);
        while !self.0.iter().all(|(_, member)| done(member)) {
            assert!(Instant::now() < deadline, "not done in minutes");
            for (transport, member) in &mut self.0 {
                transport.progress(member);
            }
        }
    }
}

/// Tests that count what the whole process has take turns.
static ALONE: Mutex<()> = Mutex::new(());

/// How many entries a folder of this process has.
fn count_in(folder: &str) -> usize {
    std::fs::read_dir(folder).expect("procfs").count()
}

/// How many threads this process has, without that of the other test, which may begin or end
/// meanwhile. A thread without a name of its own has that of its maker.
fn count_threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").expect("procfs");
    let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).ok();
    let names = tasks.filter_map(|task| name(task.expect("procfs")));
    names.filter(|name| !OTHER.starts_with(name.trim())).count()
}

/// The other test; the kernel keeps 15 bytes of a thread's name.
const OTHER: &str = "a_remote_costs_a_process_less_than_four_kib_once_met_and_sixty_four_when_busy";

#[test]
fn sixty_four_endpoints_that_greet_all_others_at_once_hear_each_once() {
    const COUNT: usize = 64;
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut endpoints = Endpoints::open(COUNT);
    let open = (count_in("/proc/self/fd"), count_threads());
    let payload = UserBuffer::leaked(&[100]);
    for from in 0..COUNT {
        for to in (0..COUNT).filter(|&to| to != from) {
            endpoints.post(from, to, &payload);
        }
    }
    endpoints.run(|member| {
        member.sent == COUNT - 1 && member.received.iter().sum::<usize>() >= COUNT - 1
    });
    for (own, (_, member)) in endpoints.0.iter().enumerate() {
        assert_eq!(member.failed, 0);
        let expected: Vec<usize> = (0..COUNT).map(|from| usize::from(from != own)).collect();
        assert_eq!(member.received, expected, "at {own}");
    }
    // 63 remotes each, and no more sockets or threads: a connected one, and the file of what is
    // published.
    let met = (count_in("/proc/self/fd"), count_threads());
    assert!(met.0 <= open.0 + 2 * COUNT, "{open:?}, then {met:?}");
    assert_eq!(met.1, open.1, "threads");
}

/// Bytes of this process that lie in memory.
fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/statm").expect("statm");
    let pages = status.split(' ').nth(1).expect("resident pages");
    pages.parse::<usize>().expect("a number") * 4096
}

#[test]
fn a_remote_costs_a_process_less_than_four_kib_once_met_and_sixty_four_when_busy() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    const COUNT: usize = 64;
    const WAITING: usize = 32;
    let mut endpoints = Endpoints::open(COUNT);
    let small = UserBuffer::leaked(&[100]);
    let large = UserBuffer::leaked(&[32 * 1024]);
    // One pair first, so that what an endpoint has once is there already: places for datagrams that
    // wait, too.
    for own in 0..COUNT {
        endpoints.post(own, (own + 1) % COUNT, &large);
        for _ in 0..WAITING {
            endpoints.post(own, (own + 1) % COUNT, &small);
        }
    }
    let first = 1 + WAITING;
    endpoints.run(|member| member.sent == first && member.received.iter().sum::<usize>() == first);
    let before = resident_bytes();
    let pairs = COUNT * (COUNT - 2);
    for from in 0..COUNT {
        for to in (0..COUNT).filter(|&to| to != from && to != (from + 1) % COUNT) {
            endpoints.post(from, to, &small);
        }
    }
    endpoints.run(|member| member.sent == COUNT - 2 + first);
    let idle = (resident_bytes() - before) / pairs;
    for from in 0..COUNT {
        for to in (0..COUNT).filter(|&to| to != from && to != (from + 1) % COUNT) {
            endpoints.post(from, to, &large);
        }
    }
    let mut busiest = 0;
    let deadline = Instant::now() + Duration::from_secs(200);
    while endpoints
        .0
        .iter()
        .any(|(_, member)| member.sent < 2 * (COUNT - 2) + first)
    {
        assert!(Instant::now() < deadline, "not done in minutes");
        for (transport, member) in &mut endpoints.0 {
            transport.progress(member);
        }
        busiest = busiest.max(resident_bytes());
    }
    let busy = (busiest - before) / pairs;
    println!("{idle} bytes for a remote just met, {busy} when all are busy at once");
    // Of that 4 KiB are the remote's (the machine's own laws); the rest are buffers that go after a
    // second, and what the allocator keeps.
    assert!(idle < 4 << 10, "{idle} bytes once met");
    assert!(busy < 64 * 1024, "{busy} bytes when busy");
}
