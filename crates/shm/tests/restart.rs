// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A process is killed and another one starts at its address: nothing of the first one meets the
//! second, and the second is not taken for the first. The other process is this test binary,
//! started again.

use std::io::{BufRead, BufReader, Lines, Write};
use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use weft_contract::*;
use weft_memory::{BytesView, UserBuffer};
use weft_shm::{Settings, Transport};

const ROLE_VARIABLE: &str = "WEFT_TEST_RESTART";
const PATIENCE: Duration = Duration::from_secs(60);

/// Keeps receipts instead of giving them.
#[derive(Default)]
struct Keeper {
    tags: Vec<u64>,
    receipts: Vec<AckToken>,
    sent: Vec<(u64, bool)>,
    lost: Vec<TransferError>,
}

impl Owner for Keeper {
    fn on_message(
        &mut self,
        envelope: &Envelope,
        _: BytesView<'_>,
        receipt: Option<AckToken>,
    ) -> bool {
        self.tags.push(envelope.tag);
        self.receipts.extend(receipt);
        receipt.is_none()
    }
    fn on_offer(&mut self, _: &Envelope, _: OfferId) -> Option<Landing> {
        None
    }
    fn on_landed(&mut self, _: LandingToken, _: Result<(), TransferError>) {}
    fn on_sent(&mut self, token: SendToken, outcome: Result<(), TransferError>) {
        self.sent.push((token.0, outcome.is_ok()));
    }
    fn on_remote_lost(&mut self, _: RemoteId, why: TransferError) {
        self.lost.push(why);
    }
    fn remote_at(&mut self, _: SocketAddr) -> RemoteId {
        RemoteId(0)
    }
}

/// A transport that knows one remote.
struct Side {
    transport: Transport,
    keeper: Keeper,
}

impl Side {
    fn open(own: SocketAddr, other: SocketAddr) -> Self {
        let mut transport = Transport::open(Settings {
            address: Some(own),
            ..Settings::default()
        })
        .expect("transport");
        transport.add_remote(RemoteId(0), other);
        let keeper = Keeper::default();
        Self { transport, keeper }
    }

    fn post(&mut self, tag: u64, level: CompletionLevel) -> Result<Posted, PostError> {
        let op = SendOp {
            remote: RemoteId(0),
            class: Class::Tagged,
            tag,
            cq_data: None,
            level,
            token: SendToken(tag),
            inject: false,
        };
        self.transport.post_send(&op, &UserBuffer::leaked(&[8]))
    }

    /// Sends, as soon as there is room.
    fn send(&mut self, tag: u64, level: CompletionLevel) {
        self.until("there is no room", |side| match side.post(tag, level) {
            Ok(_) => true,
            Err(PostError::Busy) => false,
            Err(PostError::Failed(why)) => panic!("message {tag} cannot be sent: {why}"),
        });
    }

    fn until(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !done(self) {
            self.transport.progress(&mut self.keeper);
            let Keeper {
                tags, sent, lost, ..
            } = &self.keeper;
            assert!(
                Instant::now() < end,
                "{what}: {tags:?} came, {sent:?} went, lost {lost:?}"
            );
        }
    }

    fn await_tag(&mut self, tag: u64) {
        self.until("not heard", |side| side.keeper.tags.contains(&tag));
    }
}

/// Does what its parent says, a word a line, and tells of every event.
#[test]
fn other_role() {
    let Ok(words) = std::env::var(ROLE_VARIABLE) else {
        return;
    };
    let (own, parent) = words.split_once(' ').expect("two addresses");
    let [own, parent] = [own, parent].map(|text| text.parse().expect("an address"));
    let mut side = Side::open(own, parent);
    println!("\nopen");
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let (verb, tag) = line.split_once(' ').expect("a verb and a tag");
        let tag: u64 = tag.parse().expect("a tag");
        match verb {
            "send" => side.send(tag, CompletionLevel::Transmit),
            "send-delivery" => side.send(tag, CompletionLevel::Delivery),
            "hear" => side.await_tag(tag),
            "sent" => side.until("no receipt", |side| side.keeper.sent == [(tag, true)]),
            "not-sent" => {
                for _ in 0..200_000 {
                    side.transport.progress(&mut side.keeper);
                }
                assert_eq!((&side.keeper.sent, &side.keeper.lost), (&vec![], &vec![]));
            }
            _ => panic!("{verb}?"),
        }
        println!("\ndone {tag}");
    }
}

struct Other {
    child: Child,
    words: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Other {
    fn start(own: SocketAddr, parent: SocketAddr) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("own path"))
            .args(["other_role", "--exact", "--nocapture", "--test-threads=1"])
            .env(ROLE_VARIABLE, format!("{own} {parent}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the other process");
        let words = child.stdin.take().expect("stdin");
        let lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
        let mut other = Self {
            child,
            words,
            lines,
        };
        other.await_line("open");
        other
    }

    fn await_line(&mut self, wanted: &str) {
        let mut lines = self.lines.by_ref().map_while(Result::ok);
        assert!(lines.any(|line| line == wanted), "the other process ended");
    }

    fn begin(&mut self, verb: &str, tag: u64) {
        writeln!(self.words, "{verb} {tag}").expect("told");
    }

    fn does(&mut self, verb: &str, tag: u64) {
        self.begin(verb, tag);
        self.await_line(&format!("done {tag}"));
    }

    fn kill(mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("waited for");
    }
}

fn free_address() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("port");
    socket.local_addr().expect("address")
}

#[test]
fn a_receipt_of_the_dead_completes_nothing_of_their_successor() {
    if std::env::var_os(ROLE_VARIABLE).is_some() {
        return;
    }
    let (own, theirs) = (free_address(), free_address());
    let mut side = Side::open(own, theirs);
    let mut first = Other::start(theirs, own);
    first.does("send-delivery", 1);
    side.await_tag(1);
    first.kill();
    let mut second = Other::start(theirs, own);
    second.does("send-delivery", 2);
    side.await_tag(2);
    let receipts = std::mem::take(&mut side.keeper.receipts);
    assert_eq!(receipts.len(), 2);
    side.transport.acknowledge(receipts[0]);
    side.send(3, CompletionLevel::Transmit);
    second.does("hear", 3);
    second.does("not-sent", 4);
    side.transport.acknowledge(receipts[1]);
    side.transport.progress(&mut side.keeper);
    second.does("sent", 2);
    assert_eq!(
        side.keeper.lost,
        [TransferError::RemoteLost],
        "the first one"
    );
    second.kill();
}

/// We have sent to the first one, and it never to us: what we know of it is its region.
#[test]
fn a_successor_that_sends_first_is_answered() {
    if std::env::var_os(ROLE_VARIABLE).is_some() {
        return;
    }
    let (own, theirs) = (free_address(), free_address());
    let mut side = Side::open(own, theirs);
    let mut first = Other::start(theirs, own);
    side.send(1, CompletionLevel::Transmit);
    first.does("hear", 1);
    first.kill();
    let mut second = Other::start(theirs, own);
    second.does("send", 2);
    side.await_tag(2);
    side.send(3, CompletionLevel::Transmit);
    second.does("hear", 3);
    second.kill();
}

/// The first one has sent to us, and we never to it: what we know of it is a lane of ours.
#[test]
fn a_successor_that_is_sent_to_first_hears_and_is_heard() {
    if std::env::var_os(ROLE_VARIABLE).is_some() {
        return;
    }
    let (own, theirs) = (free_address(), free_address());
    let mut side = Side::open(own, theirs);
    let mut first = Other::start(theirs, own);
    first.does("send", 1);
    side.await_tag(1);
    first.does("send", 2);
    first.kill();
    let mut second = Other::start(theirs, own);
    side.send(3, CompletionLevel::Transmit);
    assert_eq!(side.keeper.tags, [1, 2], "the last words of the first one");
    second.does("hear", 3);
    second.does("send", 4);
    side.await_tag(4);
    assert_eq!(
        side.keeper.lost,
        [TransferError::RemoteLost],
        "the first one"
    );
    second.kill();
}

/// Nobody waits for anything, and we only ever send: the end of the first one is noticed
/// nevertheless.
#[test]
fn whoever_only_sends_learns_of_a_death_within_a_second() {
    if std::env::var_os(ROLE_VARIABLE).is_some() {
        return;
    }
    let (own, theirs) = (free_address(), free_address());
    let mut side = Side::open(own, theirs);
    let mut first = Other::start(theirs, own);
    side.send(1, CompletionLevel::Transmit);
    first.does("hear", 1);
    first.kill();
    let second = Other::start(theirs, own);
    side.until("the death is not noticed", |side| {
        !side.keeper.lost.is_empty()
    });
    side.transport.name_again(RemoteId(0));
    let mut second = second;
    side.send(2, CompletionLevel::Transmit);
    second.does("hear", 2);
    second.kill();
}
