// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages in segments over a bad wire: into receives that wait and into none, into receives that
//! are too short, and out of buffers that are used again as soon as their send is complete.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use weft_contract::{
    AckToken, Class, CompletionLevel, Envelope, Landing, LandingToken, OfferId, Owner, Peer,
    PostError, Posted, RemoteId, SendOp, SendToken, TransferError,
};
use weft_memory::{BytesView, BytesViewMut, UserBuffer};
use weft_simulated_wire::{Conditions, Transport, Wire, open};

const MESSAGE_COUNT: u64 = 80;
/// Steps of both sides after which something hangs.
const STEPS_MOST: usize = 1_000_000;
const LENGTHS: [usize; 8] = [0, 100, 1_500, 4_097, 9_000, 20_000, 65_000, 65_536];

/// Deterministic, from the seed that the test prints.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        let next = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = next.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

fn byte(tag: u64, at: usize) -> u8 {
    (tag as usize * 31 + at * 7 + at / 251) as u8
}

fn content(tag: u64, length: usize) -> Vec<u8> {
    (0..length).map(|at| byte(tag, at)).collect()
}

fn buffer_of(bytes: &[u8]) -> UserBuffer {
    let buffer = UserBuffer::leaked(&[bytes.len()]);
    buffer.fill(0, BytesView::from_slice(bytes));
    buffer
}

/// Gives a receive to some of the messages, of which some are too short.
#[derive(Default)]
struct Taker {
    next_tag: u64,
    landings: BTreeMap<u64, (UserBuffer, usize)>,
    landed_count: u64,
    whole_count: u64,
    sent: Vec<SendToken>,
}

impl Taker {
    fn matched(&mut self, envelope: &Envelope) {
        assert_eq!(envelope.tag, self.next_tag, "in the sender's order");
        self.next_tag += 1;
    }
}

impl Owner for Taker {
    fn on_begun(&mut self, envelope: &Envelope) -> Option<Landing> {
        let (tag, length) = (envelope.tag, envelope.length_bytes as usize);
        let room = match tag % 5 {
            0 | 1 => return None,
            2 => length / 3,
            3 => length + 100,
            _ => length,
        };
        self.matched(envelope);
        let buffer = UserBuffer::leaked(&[room]);
        self.landings.insert(tag, (buffer.clone(), length));
        Some(Landing {
            token: LandingToken(tag),
            buffer,
        })
    }
    fn on_message(
        &mut self,
        envelope: &Envelope,
        payload: BytesView<'_>,
        _: Option<AckToken>,
    ) -> bool {
        self.matched(envelope);
        let length = envelope.length_bytes as usize;
        let buffer = UserBuffer::leaked(&[length]);
        buffer.fill(0, payload);
        let mut got = vec![0; length];
        buffer.drain(0, &mut BytesViewMut::from_slice(&mut got));
        assert!(
            got == content(envelope.tag, length),
            "message {}",
            envelope.tag
        );
        self.whole_count += 1;
        true
    }
    fn on_offer(&mut self, _: &Envelope, _: OfferId) -> Option<Landing> {
        panic!("no message is that long");
    }
    fn on_landed(&mut self, landing: LandingToken, outcome: Result<(), TransferError>) {
        assert_eq!(outcome, Ok(()));
        let (buffer, length) = self.landings.remove(&landing.0).expect("it ends once");
        let room = buffer.length_bytes();
        let mut got = vec![0; room];
        buffer.drain(0, &mut BytesViewMut::from_slice(&mut got));
        let end = room.min(length);
        assert!(
            got[..end] == content(landing.0, end),
            "message {}",
            landing.0
        );
        assert!(
            got[end..].iter().all(|byte| *byte == 0),
            "beyond the message"
        );
        self.landed_count += 1;
    }
    fn on_sent(&mut self, token: SendToken, outcome: Result<(), TransferError>) {
        assert_eq!(outcome, Ok(()));
        self.sent.push(token);
    }
    fn on_remote_lost(&mut self, _: RemoteId, why: TransferError) {
        panic!("lost: {why}");
    }
    fn remote_at(&mut self, _: SocketAddr) -> RemoteId {
        RemoteId(0)
    }
}

/// Sends at these levels may be complete as soon as they were copied.
const EARLY: [CompletionLevel; 2] = [CompletionLevel::Inject, CompletionLevel::Unstated];

fn op(tag: u64, level: CompletionLevel) -> SendOp {
    SendOp {
        remote: RemoteId(0),
        class: Class::Tagged,
        tag,
        cq_data: None,
        level,
        token: SendToken(tag),
        inject: false,
    }
}

/// One side sends all messages to the other; answers how many of them landed as they came.
fn send_all(conditions: Conditions) -> u64 {
    let seed = conditions.seed;
    println!("seed {seed}");
    let mut random = Random(seed);
    let wire = Wire::open(conditions);
    let (mut sends, mut sender) = (open(wire, 3000), Taker::default());
    let (mut takes, mut taker) = (open(wire, 4000), Taker::default());
    sends.add_remote(RemoteId(0), takes.local_address());
    takes.add_remote(RemoteId(0), sends.local_address());
    let mut lent = BTreeMap::new();
    let mut tag = 0;
    for _ in 0..STEPS_MOST {
        // Now and then nothing is under way.
        let posts = tag < MESSAGE_COUNT && (random.below(50) == 0 || tag % 7 != 0);
        if posts {
            let length = LENGTHS[random.below(LENGTHS.len())];
            let payload = buffer_of(&content(tag, length));
            let level = EARLY[tag as usize % 3 % 2];
            match sends.post_send(&op(tag, level), &payload) {
                Ok(Posted::Complete) => {
                    payload.fill(0, BytesView::from_slice(&vec![0xee; length]));
                    tag += 1;
                }
                Ok(Posted::Pending) => {
                    lent.insert(tag, payload);
                    tag += 1;
                }
                Err(why) => assert_eq!(why, PostError::Busy),
            }
        }
        sends.progress(&mut sender);
        takes.progress(&mut taker);
        for token in sender.sent.drain(..) {
            assert!(lent.remove(&token.0).is_some(), "a send ends once");
        }
        if taker.landed_count + taker.whole_count == MESSAGE_COUNT && lent.is_empty() {
            return taker.landed_count;
        }
    }
    panic!(
        "{tag} posted, {} landed, {} whole",
        taker.landed_count, taker.whole_count
    );
}

#[test]
fn every_message_comes_as_it_was_sent_however_bad_the_wire() {
    for seed in 0..6 {
        let landed_count = send_all(Conditions {
            seed,
            lost_per_mille: 20 * (seed % 3),
            repeated_per_mille: 10 * (seed % 2),
            spread_ns: 40_000 * (seed % 4),
            full_every: [0, 3, 17][seed as usize % 3],
            swallows_above_bytes: usize::MAX,
        });
        assert!(landed_count > 0, "no receive was waiting");
    }
}

/// Two endpoints on a wire that does no harm, and what they have heard.
type Ends = [(Transport, Taker); 2];

fn ends(conditions: Conditions) -> Ends {
    let wire = Wire::open(conditions);
    let mut ends = [3000, 4000].map(|port| (open(wire, port), Taker::default()));
    for (end, other) in [(0, 1), (1, 0)] {
        let address = ends[other].0.local_address();
        ends[end].0.add_remote(RemoteId(0), address);
    }
    ends
}

fn progress_of_both([one, other]: &mut Ends) {
    for _ in 0..200 {
        one.0.progress(&mut one.1);
        other.0.progress(&mut other.1);
    }
}

/// Messages go and are acknowledged until the two know each other.
fn meet(ends: &mut Ends) {
    for tag in 0..10 {
        let payload = buffer_of(&content(tag, 4_000));
        let posted = ends[0].0.post_send(&op(tag, EARLY[1]), &payload);
        assert!(posted.is_ok(), "{posted:?}");
        progress_of_both(ends);
    }
    ends[0].1.sent.clear();
}

/// Its owner may compute from then on, and call nothing.
#[test]
fn what_is_complete_at_once_has_left() {
    for level in EARLY {
        let mut ends = ends(Conditions::calm(1));
        meet(&mut ends);
        let mut complete_count = 0;
        for tag in 10..60 {
            let length = LENGTHS[tag as usize % LENGTHS.len()];
            let payload = buffer_of(&content(tag, length));
            let posted = ends[0]
                .0
                .post_send(&op(tag, level), &payload)
                .expect("room");
            let [(sends, sender), (takes, taker)] = &mut ends;
            for _ in 0..200 {
                if posted == Posted::Pending {
                    sends.progress(sender);
                }
                takes.progress(taker);
            }
            let got = taker.landed_count + taker.whole_count;
            assert_eq!(got, tag + 1, "a message of {length} bytes, {level:?}");
            complete_count += u32::from(posted == Posted::Complete && length > 16_384);
            // Whatever is not acknowledged yet.
            progress_of_both(&mut ends);
        }
        assert!(complete_count > 10, "long messages complete at once, too");
    }
}

/// So memory stays within bounds, and a sender that goes on sending is held back by its remote.
#[test]
fn sends_of_which_nothing_is_said_end_at_once_for_128_kib_and_then_with_the_remotes_word() {
    let mut ends = ends(Conditions::calm(2));
    meet(&mut ends);
    let length = 16_000;
    let mut posted = Vec::new();
    for tag in 10..30 {
        let payload = buffer_of(&content(tag, length));
        let outcome = ends[0].0.post_send(&op(tag, EARLY[1]), &payload);
        posted.push(outcome.expect("room"));
    }
    let at_once = posted.iter().take_while(|one| **one == Posted::Complete);
    let at_once = at_once.count();
    assert!((1..=(128 << 10) / length).contains(&at_once), "{at_once}");
    assert!(posted[at_once..].iter().all(|one| *one == Posted::Pending));
    let copied_count = ends[0].0.statistics().copied_messages;
    progress_of_both(&mut ends);
    assert_eq!(ends[0].1.sent.len(), posted.len() - at_once);
    assert_eq!(ends[0].0.statistics().copied_messages, copied_count);
}

/// A sender that computes sends nothing again. So where packets get lost it hears what became of
/// its message before it does.
#[test]
fn after_a_loss_no_send_of_which_nothing_is_said_ends_before_it_is_acknowledged() {
    let mut ends = ends(Conditions {
        lost_per_mille: 100,
        ..Conditions::calm(3)
    });
    meet(&mut ends);
    let is_lossy = |ends: &Ends| ends[0].0.statistics().machine.lost_count > 0;
    let mut tag = 10;
    let mut after_loss = 0;
    while after_loss < 50 {
        let payload = buffer_of(&content(tag, 20_000));
        let is_after_loss = is_lossy(&ends);
        let outcome = ends[0].0.post_send(&op(tag, EARLY[1]), &payload);
        if is_after_loss {
            assert_eq!(outcome, Ok(Posted::Pending), "message {tag}");
            after_loss += 1;
        }
        tag += 1;
        while ends[1].1.landed_count + ends[1].1.whole_count < tag {
            progress_of_both(&mut ends);
        }
    }
}
