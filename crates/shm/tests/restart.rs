// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A process is killed and another one starts at its address: nothing of the first one meets the
//! second, and the second is not taken for the first. The other process is this test binary,
//! started again.

#[path = "shared/processes.rs"]
mod processes;
#[path = "shared/transports.rs"]
mod transports;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use processes::{Other, command, words};
use transports::{own_address, tagged};
use weft_contract::*;
use weft_memory::{BytesView, UserBuffer};
use weft_shm::{Settings, Transport};

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
        let mut transport = transports::open(Settings {
            address: Some(own),
            ..Settings::default()
        });
        transport.add_remote(RemoteId(0), other);
        let keeper = Keeper::default();
        Self { transport, keeper }
    }

    fn post(&mut self, tag: u64, level: CompletionLevel) -> Result<Posted, PostError> {
        let payload = UserBuffer::leaked(&[8]);
        self.transport.post_send(&tagged(tag, level), &payload)
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
    let Some(words) = words() else {
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

fn start(own: SocketAddr, parent: SocketAddr) -> Other {
    let mut command = command("other_role", &format!("{own} {parent}"));
    let mut other = Other::start(&mut command).expect("the other process");
    other.await_line("open");
    other
}

/// Has it do something, and waits until it is done.
fn have(other: &mut Other, verb: &str, tag: u64) {
    other.say(&format!("{verb} {tag}"));
    other.await_line(&format!("done {tag}"));
}

#[test]
fn a_receipt_of_the_dead_completes_nothing_of_their_successor() {
    if words().is_some() {
        return;
    }
    let (own, theirs) = (own_address(), own_address());
    let mut side = Side::open(own, theirs);
    let mut first = start(theirs, own);
    have(&mut first, "send-delivery", 1);
    side.await_tag(1);
    first.kill();
    let mut second = start(theirs, own);
    have(&mut second, "send-delivery", 2);
    side.await_tag(2);
    let receipts = std::mem::take(&mut side.keeper.receipts);
    assert_eq!(receipts.len(), 2);
    side.transport.acknowledge(receipts[0]);
    side.send(3, CompletionLevel::Transmit);
    have(&mut second, "hear", 3);
    have(&mut second, "not-sent", 4);
    side.transport.acknowledge(receipts[1]);
    side.transport.progress(&mut side.keeper);
    have(&mut second, "sent", 2);
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
    if words().is_some() {
        return;
    }
    let (own, theirs) = (own_address(), own_address());
    let mut side = Side::open(own, theirs);
    let mut first = start(theirs, own);
    side.send(1, CompletionLevel::Transmit);
    have(&mut first, "hear", 1);
    first.kill();
    let mut second = start(theirs, own);
    have(&mut second, "send", 2);
    side.await_tag(2);
    side.send(3, CompletionLevel::Transmit);
    have(&mut second, "hear", 3);
    second.kill();
}

/// The first one has sent to us, and we never to it: what we know of it is a lane of ours.
#[test]
fn a_successor_that_is_sent_to_first_hears_and_is_heard() {
    if words().is_some() {
        return;
    }
    let (own, theirs) = (own_address(), own_address());
    let mut side = Side::open(own, theirs);
    let mut first = start(theirs, own);
    have(&mut first, "send", 1);
    side.await_tag(1);
    have(&mut first, "send", 2);
    first.kill();
    let mut second = start(theirs, own);
    side.send(3, CompletionLevel::Transmit);
    assert_eq!(side.keeper.tags, [1, 2], "the last words of the first one");
    have(&mut second, "hear", 3);
    have(&mut second, "send", 4);
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
    if words().is_some() {
        return;
    }
    let (own, theirs) = (own_address(), own_address());
    let mut side = Side::open(own, theirs);
    let mut first = start(theirs, own);
    side.send(1, CompletionLevel::Transmit);
    have(&mut first, "hear", 1);
    first.kill();
    let mut second = start(theirs, own);
    side.until("the death is not noticed", |side| {
        !side.keeper.lost.is_empty()
    });
    side.transport.name_again(RemoteId(0));
    side.send(2, CompletionLevel::Transmit);
    have(&mut second, "hear", 2);
    second.kill();
}
