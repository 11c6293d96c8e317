// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Two real processes, one of which dies by SIGKILL while it writes the other's registered memory
//! without its help: the owner takes the memory back at once, nothing lands any more, and the next
//! initiator finds it again. docs/one-sided.md, clause 8.
//!
//! The child is this test binary, started again.

#[path = "shared/processes.rs"]
mod processes;
#[path = "shared/random.rs"]
mod random;
#[path = "shared/transports.rs"]
mod transports;

use std::time::{Duration, Instant};

use processes::{Other, command, words};
use random::Random;
use transports::Ear;
use weft_contract::*;
use weft_memory::{BytesView, BytesViewMut, UserBuffer, single_copy};
use weft_shm::{Settings, SingleCopy, Transport};

/// Long enough that most of the child's time goes into the copy itself.
const LENGTH_BYTES: usize = 1 << 20;
const KEY: u64 = 9;
const ROUNDS: u64 = 15;
/// A withdrawal looks for the dead every millisecond; the rest is for a busy machine.
const PATIENCE: Duration = Duration::from_secs(100);

fn open() -> Transport {
    transports::open(Settings {
        single_copy: SingleCopy::Always,
        ..Settings::default()
    })
}

fn filled(byte: u8) -> UserBuffer {
    let buffer = UserBuffer::leaked(&[LENGTH_BYTES]);
    buffer.fill(0, BytesView::from_slice(&vec![byte; LENGTH_BYTES]));
    buffer
}

fn bytes_of(memory: &UserBuffer) -> Vec<u8> {
    let mut bytes = vec![0; LENGTH_BYTES];
    memory.drain(0, &mut BytesViewMut::from_slice(&mut bytes));
    bytes
}

/// The child's part: fill the parent's memory with ones, then twos, and so on until killed.
#[test]
fn child_role() {
    let Some(parent) = words() else {
        return;
    };
    let mut transport = open();
    transport.add_remote(RemoteId(0), parent.parse().expect("address"));
    let sources = [filled(1), filled(2)];
    let range = Range {
        key: KEY,
        address: 0,
        length_bytes: LENGTH_BYTES as u64,
    };
    let start = Instant::now();
    let mut done_count = 0;
    while start.elapsed() < Duration::from_secs(200) {
        let mut op = DirectOp::Write(&sources[done_count % 2]);
        if transport.access_directly(RemoteId(0), &range, &mut op) {
            done_count += 1;
            if done_count == 2 {
                println!("\nwrites");
            }
        } else {
            transport.progress(&mut Ear::default());
        }
    }
    panic!("the parent should have ended this");
}

/// Kills initiators at random moments; answers how many died within a copy.
fn kill_while_it_writes(memory: &UserBuffer) -> u64 {
    let (mut random, mut torn_count) = (Random::seeded(), 0);
    let mut owner = open();
    for round in 0..ROUNDS {
        memory.fill(0, BytesView::from_slice(&vec![0; LENGTH_BYTES]));
        owner.publish_registration(&Registration {
            key: KEY,
            base: 0,
            length_bytes: LENGTH_BYTES as u64,
            address: memory.address() as u64,
            readable: true,
            writable: true,
        });
        let address = owner.local_address().to_string();
        let mut other = Other::start(&mut command("child_role", &address)).expect("child");
        other.await_line("writes");
        std::thread::sleep(Duration::from_micros(random.below(3000)));
        other.child.kill().expect("kill");
        let killed = Instant::now();
        assert!(
            owner.withdraw_registration(KEY),
            "round {round}: the dead is waited for in vain"
        );
        assert!(
            killed.elapsed() < PATIENCE,
            "round {round}: {:?}",
            killed.elapsed()
        );
        let at_withdrawal = bytes_of(memory);
        other.child.wait().expect("reap");
        assert!(
            bytes_of(memory) == at_withdrawal,
            "round {round}: something landed after the memory was taken back"
        );
        assert!(at_withdrawal.iter().all(|&byte| byte == 1 || byte == 2));
        torn_count += u64::from(at_withdrawal.iter().any(|&byte| byte != at_withdrawal[0]));
        owner.progress(&mut Ear::default());
    }
    torn_count
}

#[test]
fn memory_in_a_shared_file_is_taken_back_from_an_initiator_killed_within_a_copy() {
    let memory = UserBuffer::leaked_shared(LENGTH_BYTES).expect("a shared file");
    if may_read_others() {
        assert!(
            kill_while_it_writes(&memory) > 0,
            "nobody was killed within a copy"
        );
    }
}

#[test]
fn private_memory_is_taken_back_from_an_initiator_killed_within_a_copy() {
    if may_read_others() {
        kill_while_it_writes(&filled(0));
    }
}

/// Whether this kernel lets a process read another's memory, which every access here takes.
fn may_read_others() -> bool {
    let word = Box::new(77_u64);
    let may = single_copy::can_read(std::process::id(), (&raw const *word) as u64, 77);
    if !may {
        eprintln!("skip: no process may read another's memory here");
    }
    may
}
