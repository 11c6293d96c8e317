// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Another user of the host takes the names that first contact goes by, before us and after our
//! death: endpoints open, meet, and miss their dead as ever. Needs root, to become another user.

#[path = "shared/processes.rs"]
mod processes;
#[path = "shared/transports.rs"]
mod transports;

use std::net::SocketAddr;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::time::{Duration, Instant};

use processes::{Other, command, words};
use transports::{Ear, own_address, region_of, send_word};
use weft_contract::*;
use weft_os::local_socket::{Bell, Listener};
use weft_os::process;
use weft_ring::layout::SLOTS_OFFSET;
use weft_shm::{Settings, Transport};

const PATIENCE: Duration = Duration::from_secs(60);
/// Nobody (passwd(5)).
const STRANGER: u32 = 65534;

fn open(address: SocketAddr) -> Transport {
    transports::open(Settings {
        address: Some(address),
        ..Settings::default()
    })
}

/// Does what its first word says.
#[test]
fn other_role() {
    let Some(words) = words() else {
        return;
    };
    let words: Vec<&str> = words.split(' ').collect();
    let _held: Box<dyn std::any::Any> = match words[..] {
        ["listen", name] => Box::new(Listener::bind(name).expect("the name is free")),
        ["ring", name] => loop {
            if let Ok(bell) = Bell::bind(name) {
                break Box::new(bell);
            }
            std::thread::sleep(Duration::from_millis(1));
        },
        ["endpoint", own, other] => {
            let mut endpoint = open(own.parse().expect("an address"));
            endpoint.add_remote(RemoteId(0), other.parse().expect("an address"));
            while send_word(&mut endpoint).is_err() {
                endpoint.progress(&mut Ear::default());
            }
            Box::new(endpoint)
        }
        _ => panic!("{words:?}?"),
    };
    println!("\ndone");
    loop {
        std::thread::park();
    }
}

/// Another process; as another user if that is asked for and may be.
fn start(words: &str, is_stranger: bool) -> Option<Other> {
    let mut command = command("other_role", words);
    command.current_dir("/");
    if is_stranger {
        command.uid(STRANGER).gid(STRANGER);
    }
    match Other::start(&mut command) {
        Ok(other) => Some(other),
        Err(error) => {
            eprintln!("skip: nobody cannot run this program: {error}");
            None
        }
    }
}

/// Whether this test is to be run: not as the other process, and by somebody who may become another
/// user.
fn may_run() -> bool {
    if process::own_uid() != 0 {
        eprintln!("skip: only root can become another user");
    }
    words().is_none() && process::own_uid() == 0
}

fn meet(sender: &mut Transport, receiver: &mut Transport) {
    let (mut ear, end) = (Ear::default(), Instant::now() + PATIENCE);
    loop {
        match send_word(sender) {
            Ok(_) => break,
            Err(error) => assert_eq!(error, PostError::Busy, "no contact"),
        }
        receiver.progress(&mut ear);
        sender.progress(&mut Ear::default());
        assert!(Instant::now() < end, "no contact");
    }
    while ear.message_count == 0 {
        receiver.progress(&mut ear);
        assert!(Instant::now() < end, "not heard");
    }
}

#[test]
fn an_endpoint_whose_name_a_stranger_has_is_reached_nevertheless() {
    if !may_run() {
        return;
    }
    let address = own_address();
    let Some(mut stranger) = start(&format!("listen weft/{address}"), true) else {
        return;
    };
    stranger.await_line("done");
    let mut receiver = open(address);
    let mut sender = open(own_address());
    sender.add_remote(RemoteId(0), address);
    meet(&mut sender, &mut receiver);
    // The stranger goes: nobody has the name now.
    drop(stranger);
    let mut second = open(own_address());
    second.add_remote(RemoteId(0), address);
    meet(&mut second, &mut receiver);
}

#[test]
fn a_stranger_where_no_endpoint_is_is_named_and_not_waited_for() {
    if !may_run() {
        return;
    }
    let address = own_address();
    let Some(mut stranger) = start(&format!("listen weft/{address}"), true) else {
        return;
    };
    stranger.await_line("done");
    let mut sender = open(own_address());
    sender.add_remote(RemoteId(0), address);
    let refused = Err(PostError::Failed(TransferError::NotPermitted));
    assert_eq!(send_word(&mut sender), refused);
}

/// The incarnation that has claimed the first slot of an endpoint (docs/shm-layout.md, clause 3).
fn first_claimant(endpoint: &Transport) -> u64 {
    let region = region_of(endpoint).expect("the region");
    let mut words = [0; 16];
    region
        .read_exact_at(&mut words, SLOTS_OFFSET as u64)
        .expect("a slot");
    u64::from_le_bytes(words[8..].try_into().expect("eight bytes"))
}

#[test]
fn the_dead_are_missed_though_a_stranger_takes_their_names() {
    if !may_run() {
        return;
    }
    let (own, theirs) = (own_address(), own_address());
    let mut survivor = open(own);
    survivor.add_remote(RemoteId(0), theirs);
    let words = format!("endpoint {theirs} {own}");
    let mut victim = start(&words, false).expect("an endpoint");
    victim.await_line("done");
    let mut ear = Ear::default();
    let end = Instant::now() + PATIENCE;
    while ear.message_count == 0 {
        survivor.progress(&mut ear);
        assert!(Instant::now() < end, "the victim is not heard");
    }
    let bell = format!("weft/bell/{:016x}", first_claimant(&survivor));
    let Some(mut stranger) = start(&format!("ring {bell}"), true) else {
        return;
    };
    drop(victim);
    stranger.await_line("done");
    while ear.lost.is_empty() {
        survivor.progress(&mut ear);
        assert!(Instant::now() < end, "the death is not noticed");
    }
    assert_eq!(ear.lost, [TransferError::RemoteLost]);
}
