// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Two processes of one host of which one has no addresses left for the other's region
//! (RLIMIT_AS): over shared memory as far as that goes and over the network for the rest, every
//! message arrives once, whole and in order, whoever sends first. The other process is this test
//! binary, started again.

use std::io::{BufRead, BufReader, Lines, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use weft_contract::TransferError;
use weft_endpoint::routes::{self, RouteSettings, Routes, Scope};
use weft_endpoint::{Error, FiAddr, Send, UserBuffer, flags};

use weft_memory::BytesViewMut;
use {weft_shm as shm, weft_udp as srd};

use crate::pair::*;

type BothRoutes = Routes<shm::Transport, srd::Transport>;

const ROLE_VARIABLE: &str = "WEFT_TEST_ADDRESSES";
const MESSAGES: usize = 120;

/// What the limited process may still map: less than a region, more than messages need.
const LEFT_KIB: u64 = 3 << 10;

fn length_of(number: usize) -> usize {
    [8, 300_000, 200, 5_000, 20_000, 0, 70_000, 64][number % 8]
}

/// Some ask to be told when they are delivered.
fn send_of(number: usize) -> Send {
    let delivery = flags::COMPLETION | flags::DELIVERY_COMPLETE;
    Send {
        flags: number.is_multiple_of(5).then_some(delivery),
        ..plain(number)
    }
}

/// Whether our side was told that a remote cannot be reached through shared memory.
static TOLD: AtomicBool = AtomicBool::new(false);

fn network() -> RouteSettings<srd::Settings> {
    RouteSettings {
        settings: srd::Settings::default(),
        scope: Scope::Everybody,
    }
}

fn open(has_network: bool) -> Side<BothRoutes> {
    let report = |what: &str| {
        let names_the_limit = what.contains("no shared memory with") && what.contains("ulimit -v");
        TOLD.fetch_or(names_the_limit, Ordering::Relaxed);
        eprintln!("{what}");
    };
    let settings = routes::Settings {
        first: RouteSettings {
            settings: shm::Settings {
                report,
                ..shm::Settings::default()
            },
            scope: Scope::Host,
        },
        others: has_network.then(network).into_iter().collect(),
        report,
        way_out: "Permit it.",
    };
    let address = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    Side::open(address, settings, Options::default())
}

/// Takes nearly all addresses from this process that it does not use yet.
fn limit_addresses() {
    let status = std::fs::read_to_string("/proc/self/status").expect("proc_pid_status(5)");
    let size = status
        .lines()
        .find_map(|line| line.strip_prefix("VmSize:"))
        .and_then(|rest| rest.trim().strip_suffix(" kB")?.parse::<u64>().ok())
        .expect("VmSize");
    let limit_bytes = (size + LEFT_KIB) << 10;
    let done = Command::new("prlimit")
        .args(["--pid", &std::process::id().to_string()])
        .arg(format!("--as={limit_bytes}"))
        .status();
    assert!(done.expect("prlimit(1)").success());
}

/// All that one side sends and receives, made before addresses are short.
struct Messages {
    sends: Vec<UserBuffer>,
    rooms: Vec<UserBuffer>,
    posted: usize,
    sent: usize,
    received: usize,
    /// Where the payload of a message is looked at.
    bytes: Vec<u8>,
}

/// Seeds of what the two processes send.
const PARENTS: usize = 0;
const LIMITEDS: usize = 1000;

impl Messages {
    fn new(side: &mut Side<BothRoutes>, seed: usize) -> Self {
        let sends =
            (0..MESSAGES).map(|number| buffer_of(&pattern(seed + number, length_of(number))));
        let rooms: Vec<UserBuffer> = (0..MESSAGES)
            .map(|number| room(length_of(number)))
            .collect();
        for (number, room) in rooms.iter().enumerate() {
            let receive = want_plain(MESSAGES + number);
            let posted = side.calls().receive(&receive, || room.clone());
            posted.expect("a receive");
        }
        Self {
            sends: sends.collect(),
            rooms,
            posted: 0,
            sent: 0,
            received: 0,
            bytes: vec![0; 300_000],
        }
    }

    /// Posts the next send, if there is one and room for it.
    fn post(&mut self, side: &mut Side<BothRoutes>, to: FiAddr) {
        if let Some(buffer) = self.sends.get(self.posted) {
            match side.calls().send(to, &send_of(self.posted), buffer) {
                Ok(()) => self.posted += 1,
                Err(error) => assert_eq!(error, Error::Again),
            }
        }
    }

    /// Sends all, and hears of all that was sent and received.
    fn exchange(&mut self, side: &mut Side<BothRoutes>, to: FiAddr, other_seed: usize) {
        let start = Instant::now();
        while self.sent + self.received < 2 * MESSAGES {
            self.post(side, to);
            side.poll();
            while let Some(outcome) = side.heard() {
                let context = outcome.expect("no message fails").context;
                if context < MESSAGES {
                    self.sent += 1;
                } else {
                    self.check(context - MESSAGES, other_seed);
                }
            }
            let Self {
                posted,
                sent,
                received,
                ..
            } = self;
            assert!(
                start.elapsed() < PATIENCE,
                "{posted} posted, {sent} sent, {received} received"
            );
        }
    }

    /// Looks whether a receive holds the message of its number: order. Allocates nothing.
    fn check(&mut self, number: usize, other_seed: usize) {
        let bytes = &mut self.bytes[..length_of(number)];
        self.rooms[number].drain(0, &mut BytesViewMut::from_slice(bytes));
        let is_right = |(at, &byte): (usize, &u8)| byte == byte_of(other_seed + number, at);
        assert!(bytes.iter().enumerate().all(is_right), "message {number}");
        self.received += 1;
    }
}

/// Says where it is, and does what its parent says, in a process with few addresses.
#[test]
fn limited_role() {
    let Ok(words) = std::env::var(ROLE_VARIABLE) else {
        return;
    };
    let (role, parent) = words.split_once(' ').expect("a role and an address");
    let mut side = open(role != "alone");
    let other = side.insert(parent.parse().expect("an address"));
    let mut messages = Messages::new(&mut side, LIMITEDS);
    println!("\nat {}", side.address());
    let mut lines = std::io::stdin().lines().map_while(Result::ok);
    lines.next().expect("go");
    limit_addresses();
    if role == "alone" {
        println!(
            "\nfailed {:?}",
            failure(&mut side, other, &messages.sends[1])
        );
    } else {
        messages.exchange(&mut side, other, PARENTS);
    }
    let told = TOLD.load(Ordering::Relaxed);
    assert!(told, "the user was not told of the limit");
    println!("\ndone");
    // What its parent has not received yet goes on.
    while lines.next().is_some_and(|line| line != "end") {
        side.poll();
    }
}

/// How a send to somebody who cannot be reached ends.
fn failure(side: &mut Side<BothRoutes>, to: FiAddr, buffer: &UserBuffer) -> Error {
    let start = Instant::now();
    if let Err(error) = side.calls().send(to, &plain(0), buffer) {
        return error;
    }
    loop {
        side.poll();
        if let Some(outcome) = side.heard() {
            return outcome.expect_err("there is no route").error;
        }
        assert!(start.elapsed() < PATIENCE, "the send does not end");
    }
}

/// The other process; killed if it outlives its test.
struct Limited {
    child: Child,
    words: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Limited {
    fn start(name: &str, parent: SocketAddr) -> Self {
        let role = "addresses::limited_role";
        let mut child = Command::new(std::env::current_exe().expect("own path"))
            .args([role, "--exact", "--nocapture", "--test-threads=1"])
            .env(ROLE_VARIABLE, format!("{name} {parent}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the other process");
        let words = child.stdin.take().expect("stdin");
        let lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
        Self {
            child,
            words,
            lines,
        }
    }

    /// What follows `start` in the next line that begins so.
    fn hear(&mut self, start: &str) -> String {
        let mut lines = self.lines.by_ref().map_while(Result::ok);
        let found = lines.find_map(|line| Some(line.strip_prefix(start)?.to_owned()));
        found.unwrap_or_else(|| panic!("the other process ended before it said '{start}'"))
    }

    fn say(&mut self, word: &str) {
        writeln!(self.words, "{word}").expect("told");
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Exchanges messages with a limited process that begins when `count` of ours are posted.
fn exchange_after(count: usize) {
    if std::env::var_os(ROLE_VARIABLE).is_some() {
        return;
    }
    let mut side = open(true);
    let mut messages = Messages::new(&mut side, PARENTS);
    let mut other = Limited::start("joined", side.address());
    let to = side.insert(other.hear("at ").parse().expect("an address"));
    while messages.posted < count {
        messages.post(&mut side, to);
    }
    other.say("go");
    messages.exchange(&mut side, to, LIMITEDS);
    let statistics = side
        .domain
        .endpoints()
        .statistics(side.endpoint)
        .expect("open");
    let both = statistics.local.expect("enabled");
    let network = both.others[0];
    assert!(network.sent_messages > MESSAGES as u64 / 2, "{network:?}");
    assert_eq!(network.received_messages, MESSAGES as u64);
    other.hear("done");
    other.say("end");
}

#[test]
fn who_finds_no_addresses_for_a_lane_that_is_full_gets_the_rest_over_the_network() {
    exchange_after(40);
}

#[test]
fn two_that_begin_at_once_meet_over_the_network() {
    exchange_after(0);
}

#[test]
fn without_a_network_the_send_fails_and_the_limit_is_named() {
    if std::env::var_os(ROLE_VARIABLE).is_some() {
        return;
    }
    let mut side = open(false);
    let mut other = Limited::start("alone", side.address());
    side.insert(other.hear("at ").parse().expect("an address"));
    other.say("go");
    let no_memory = Error::Transfer(TransferError::NoMemory);
    assert_eq!(other.hear("failed "), format!("{no_memory:?}"));
    other.hear("done");
}
