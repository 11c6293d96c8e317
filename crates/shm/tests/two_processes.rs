// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Two real processes, one of which dies by SIGKILL at a random moment of a mixed exchange: the
//! other hears of it within a second, nothing hangs, nothing is left behind. The child is this test
//! binary, started again.

#[path = "shared/processes.rs"]
mod processes;
#[path = "shared/random.rs"]
mod random;
#[path = "shared/transports.rs"]
mod transports;

use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use processes::{Other, command, words};
use random::Random;
use transports::tagged;
use weft_contract::*;
use weft_memory::{BytesView, OwnHeap, UserBuffer, own_heap};
use weft_shm::{Settings, SingleCopy, Transport};

/// One length for each protocol: inline, eager, streamed, offered.
const LENGTHS: [usize; 4] = [8, 3000, 40_000, 3_000_000];

/// An owner whose receives are always posted, and that only counts.
#[derive(Default)]
struct Counter {
    messages: u64,
    sent: u64,
    failed: u64,
    landings: u64,
    lost: Option<(RemoteId, TransferError)>,
}

impl Owner for Counter {
    fn on_message(&mut self, _: &Envelope, _: BytesView<'_>, _: Option<AckToken>) -> bool {
        self.messages += 1;
        true
    }
    fn on_offer(&mut self, envelope: &Envelope, _: OfferId) -> Option<Landing> {
        let buffer = LANDING.with(|landing| landing.part(0, envelope.length_bytes as usize));
        self.landings += 1;
        Some(Landing {
            token: LandingToken(self.landings),
            buffer,
        })
    }
    fn on_landed(&mut self, _: LandingToken, outcome: Result<(), TransferError>) {
        match outcome {
            Ok(()) => self.messages += 1,
            Err(_) => self.failed += 1,
        }
    }
    fn on_sent(&mut self, _: SendToken, outcome: Result<(), TransferError>) {
        match outcome {
            Ok(()) => self.sent += 1,
            Err(_) => self.failed += 1,
        }
    }
    fn on_remote_lost(&mut self, remote: RemoteId, why: TransferError) {
        self.lost = Some((remote, why));
    }
    fn remote_at(&mut self, address: SocketAddr) -> RemoteId {
        assert!(address.ip().is_loopback());
        RemoteId(0)
    }
}

thread_local! {
    static LANDING: UserBuffer = UserBuffer::leaked(&[LENGTHS[3]]);
    /// In a heap that receivers may map, if the transport says so.
    static SOURCE: (OwnHeap, UserBuffer) = own_heap::leaked(LENGTHS[3]).expect("a heap");
}

fn open(method: &str) -> Transport {
    let single_copy = match method {
        "single copy" => SingleCopy::Always,
        _ => SingleCopy::Never,
    };
    let heap = (method == "mapped").then(|| SOURCE.with(|(heap, _)| heap.clone()));
    transports::open(Settings {
        single_copy,
        heap,
        ..Settings::default()
    })
}

/// Posts the `index`th send of a mix; false if there is no room.
fn post(transport: &mut Transport, index: u64) -> Result<bool, TransferError> {
    let level = if index % 7 == 3 {
        CompletionLevel::Delivery
    } else {
        CompletionLevel::Transmit
    };
    let op = tagged(index, level);
    let length = LENGTHS[(index % 4) as usize];
    match transport.post_send(&op, &SOURCE.with(|(_, source)| source.part(0, length))) {
        Ok(_) => Ok(true),
        Err(PostError::Busy) => Ok(false),
        Err(PostError::Failed(why)) => Err(why),
    }
}

/// The child's part: send and receive until killed.
#[test]
fn child_role() {
    let Some(words) = words() else {
        return;
    };
    let (parent, method) = words.split_once(' ').expect("an address and a method");
    let mut transport = open(method);
    transport.add_remote(RemoteId(0), parent.parse().expect("address"));
    let mut owner = Counter::default();
    let start = Instant::now();
    for index in 0.. {
        while !post(&mut transport, index).expect("the parent outlives the child") {
            transport.progress(&mut owner);
        }
        transport.progress(&mut owner);
        assert!(
            start.elapsed() < Duration::from_secs(200),
            "the parent should have ended this"
        );
    }
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("proc").count()
}

/// The tests that count this process's descriptors run one at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn kill_at_random_moments(method: &str, rounds: u64) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut random = Random::seeded();
    let mut noticed_after = Vec::new();
    SOURCE.with(|_| ());
    let files_before = open_files();
    for round in 0..rounds {
        let mut transport = open(method);
        let mut owner = Counter::default();
        let words = format!("{} {method}", transport.local_address());
        let mut other = Other::start(&mut command("child_role", &words)).expect("child");
        while owner.messages == 0 {
            transport.progress(&mut owner);
        }
        transport.watch(RemoteId(0), true);
        let end = Instant::now() + Duration::from_micros(random.below(20_000));
        let mut index = 0;
        while Instant::now() < end {
            index += u64::from(post(&mut transport, index).expect("the child lives"));
            transport.progress(&mut owner);
        }
        other.child.kill().expect("kill");
        let killed = Instant::now();
        while owner.lost.is_none() {
            transport.progress(&mut owner);
            assert!(
                killed.elapsed() < Duration::from_secs(60),
                "round {round}: the death went unnoticed"
            );
        }
        noticed_after.push(killed.elapsed());
        other.child.wait().expect("reap");
        assert_eq!(
            owner.lost,
            Some((RemoteId(0), TransferError::RemoteLost)),
            "round {round}"
        );
        assert_eq!(
            post(&mut transport, 0),
            Err(TransferError::RemoteLost),
            "round {round}"
        );
    }
    // A machine that stops now and then may delay some, but not half of them.
    noticed_after.sort_unstable();
    let median = noticed_after[noticed_after.len() / 2];
    assert!(median < Duration::from_secs(1), "{noticed_after:?}");
    assert_eq!(open_files(), files_before, "descriptors leaked");
}

#[test]
fn a_killed_remote_is_noticed_within_a_second_amid_single_copies() {
    kill_at_random_moments("single copy", 25);
}

#[test]
fn a_killed_remote_is_noticed_within_a_second_amid_pipelined_copies() {
    kill_at_random_moments("pipelined", 25);
}

#[test]
fn a_killed_remote_is_noticed_within_a_second_amid_copies_out_of_its_heap() {
    kill_at_random_moments("mapped", 15);
}
