// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random traffic against the laws of matching, checked afterwards from what both sides were told.
//!
//! When a message arrives is up to the transport, so no model can foretell the matches. But
//! whatever the timing, every message is received once, unchanged, by a receive that it matches,
//! and nothing overtakes: of two messages from one sender that one receive matches, the earlier
//! takes it, or an earlier receive; and of two receives that one message matches, the earlier takes
//! it, or took an earlier message (MPI-4.1, 3.5).

use fastrand::Rng;
use weft_endpoint::{Class, FiAddr, Receive, Send, UserBuffer, flags};

use crate::pair::*;

const MESSAGES: usize = 250;
/// Contexts of sends begin here, those of receives at 0: who cancels a receive must not meet a send
/// of the same context that is queued.
const FIRST_SEND: usize = 1 << 32;
/// Lengths that meet every protocol.
const LENGTHS: [usize; 9] = [0, 3, 8, 40, 64, 300, 5000, 20_000, 150_000];

#[derive(Clone, Copy)]
struct Sent {
    from: usize,
    to: usize,
    class: Class,
    tag: u64,
    length: usize,
    /// The receive that took it, by number.
    taken_by: Option<usize>,
}

struct Posted {
    side: usize,
    receive: Receive,
    /// The only sender it takes from, if it names one.
    from: Option<usize>,
    buffer: UserBuffer,
    /// The message that it took, by number.
    took: Option<usize>,
    canceled: bool,
}

impl Posted {
    fn matches(&self, message: &Sent) -> bool {
        let Receive {
            class, tag, ignore, ..
        } = self.receive;
        self.side == message.to
            && class == message.class
            && self.from.is_none_or(|from| from == message.from)
            && (tag ^ message.tag) & !ignore == 0
    }
}

struct Traffic<F: Fabric> {
    pair: Pair<F>,
    random: Rng,
    sent: Vec<Sent>,
    sends_ended: usize,
    posted: Vec<Posted>,
}

pub fn random_traffic_keeps_every_law_of_matching<F: Fabric>() {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    let chosen = std::env::var("WEFT_TEST_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let first = chosen.unwrap_or(now.as_nanos() as u64);
    for seed in first..first + 3 {
        println!("WEFT_TEST_SEED={seed}");
        let random = Rng::with_seed(seed);
        let (sent, posted) = (Vec::new(), Vec::new());
        let mut traffic = Traffic {
            pair: Pair::<F>::open(),
            random,
            sent,
            sends_ended: 0,
            posted,
        };
        traffic.run();
        traffic.drain();
        traffic.check();
    }
}

impl<F: Fabric> Traffic<F> {
    /// Random steps until enough was sent.
    fn run(&mut self) {
        while self.sent.len() < MESSAGES {
            let side = self.random.usize(..2);
            match self.random.usize(..20) {
                0..8 => self.send(side),
                8..15 => self.post(side),
                15 => self.cancel(side),
                16 => self.peek(side),
                _ => self.pair.poll(),
            }
            self.hear();
        }
    }

    fn send(&mut self, from: usize) {
        let random = &mut self.random;
        let to = if random.usize(..5) == 0 {
            from
        } else {
            1 - from
        };
        let class = if random.usize(..4) == 0 {
            Class::Message
        } else {
            Class::Tagged
        };
        let tag = if class == Class::Tagged {
            random.usize(..4) as u64
        } else {
            0
        };
        let length = LENGTHS[random.usize(..LENGTHS.len())];
        let levels = [
            0,
            flags::INJECT_COMPLETE,
            flags::TRANSMIT_COMPLETE,
            flags::DELIVERY_COMPLETE,
        ];
        let flags = Some(levels[random.usize(..levels.len())]);
        let number = self.sent.len();
        let name = if to == from {
            self.pair.sides[from].myself
        } else {
            self.pair.sides[from].other
        };
        let send = Send {
            class,
            tag,
            cq_data: Some(number as u64),
            flags,
            context: FIRST_SEND + number,
        };
        self.pair
            .send_buffer(from, name, send, &buffer_of(&pattern(number, length)));
        self.sent.push(Sent {
            from,
            to,
            class,
            tag,
            length,
            taken_by: None,
        });
    }

    fn post(&mut self, side: usize) {
        let random = &mut self.random;
        let class = if random.usize(..4) == 0 {
            Class::Message
        } else {
            Class::Tagged
        };
        let tag = if class == Class::Tagged {
            random.usize(..4) as u64
        } else {
            0
        };
        let ignore = if class == Class::Tagged {
            [0, 0, 1, 2, u64::MAX][random.usize(..5)]
        } else {
            0
        };
        let from = [None, Some(side), Some(1 - side)][random.usize(..3)];
        let room = [0, 40, 150_000, 150_000][random.usize(..4)];
        self.post_exactly(
            side,
            Receive {
                class,
                tag,
                ignore,
                ..want_tag(0, 0)
            },
            from,
            room,
        );
    }

    fn post_exactly(
        &mut self,
        side: usize,
        receive: Receive,
        from: Option<usize>,
        room_bytes: usize,
    ) {
        let names = &self.pair.sides[side];
        let source = match from {
            None => FiAddr::UNSPEC,
            Some(from) if from == side => names.myself,
            Some(_) => names.other,
        };
        let receive = Receive {
            source,
            context: self.posted.len(),
            ..receive
        };
        let buffer = room(room_bytes);
        self.pair.receive(side, receive, &buffer);
        self.posted.push(Posted {
            side,
            receive,
            from,
            buffer,
            took: None,
            canceled: false,
        });
    }

    fn cancel(&mut self, side: usize) {
        let waiting: Vec<usize> = (0..self.posted.len())
            .filter(|&index| self.posted[index].took.is_none() && self.posted[index].side == side)
            .collect();
        if waiting.is_empty() {
            return;
        }
        let context = waiting[self.random.usize(..waiting.len())];
        let endpoint = self.pair.sides[side].endpoint;
        // It may be canceled already, or matched by a message that is still on its way.
        let _ = self.pair.sides[side]
            .domain
            .endpoint(endpoint)
            .unwrap()
            .cancel(context);
    }

    /// A peek changes nothing, whatever it finds.
    fn peek(&mut self, side: usize) {
        let receive = Receive {
            flags: Some(flags::PEEK),
            ignore: u64::MAX,
            ..want_tag(0, usize::MAX)
        };
        self.pair.receive(side, receive, &UserBuffer::empty());
    }

    /// Notes what ended; answers whether anything did.
    fn hear(&mut self) -> bool {
        let mut heard = false;
        for side in [A, B] {
            while let Some(outcome) = self.pair.heard(side) {
                heard = true;
                self.note(outcome);
            }
        }
        heard
    }

    fn note(&mut self, outcome: Outcome) {
        let entry = outcome
            .as_ref()
            .copied()
            .unwrap_or_else(|failed| failed.completion);
        if entry.context == usize::MAX {
            return;
        }
        if entry.flags & flags::SEND != 0 {
            assert!(outcome.is_ok(), "{outcome:?}");
            self.sends_ended += 1;
            return;
        }
        let posted = &mut self.posted[entry.context];
        assert!(
            posted.took.is_none() && !posted.canceled,
            "receive {} ended twice",
            entry.context
        );
        if let Err(failed) = outcome {
            if failed.error == weft_endpoint::Error::Canceled {
                posted.canceled = true;
                return;
            }
            assert_eq!(failed.error, weft_endpoint::Error::Truncated);
        }
        let number = entry.cq_data as usize;
        let message = &mut self.sent[number];
        assert!(
            message.taken_by.is_none(),
            "message {number} was received twice"
        );
        assert!(posted.matches(message), "message {number} matches not");
        let whole = message.length <= posted.buffer.length_bytes();
        assert_eq!(outcome.is_ok(), whole);
        assert_eq!(
            entry.length_bytes,
            message.length.min(posted.buffer.length_bytes())
        );
        let expected = pattern(number, message.length);
        assert!(
            bytes_in(&posted.buffer)[..entry.length_bytes] == expected[..entry.length_bytes],
            "bytes of {number}"
        );
        posted.took = Some(number);
        message.taken_by = Some(entry.context);
    }

    /// Receives what is left.
    fn drain(&mut self) {
        for _ in 0..MESSAGES {
            for side in [A, B] {
                for receive in [
                    want_plain(0),
                    Receive {
                        ignore: u64::MAX,
                        ..want_tag(0, 0)
                    },
                ] {
                    let class = receive.class;
                    let open = |message: &&Sent| {
                        message.taken_by.is_none() && message.to == side && message.class == class
                    };
                    if self.sent.iter().filter(open).count() > 0 {
                        self.post_exactly(side, receive, None, 150_000);
                    }
                }
            }
            self.pair.settle();
            if !self.hear() && self.sent.iter().all(|message| message.taken_by.is_some()) {
                break;
            }
        }
        let lost = self
            .sent
            .iter()
            .filter(|message| message.taken_by.is_none())
            .count();
        assert_eq!(
            (lost, self.sends_ended),
            (0, MESSAGES),
            "messages lost, sends ended"
        );
    }

    fn check(&self) {
        for (earlier, first) in self.sent.iter().enumerate() {
            let first_taker = first.taken_by.unwrap();
            for (later, second) in self.sent.iter().enumerate().skip(earlier + 1) {
                let second_taker = second.taken_by.unwrap();
                let same_way =
                    (first.from, first.to, first.class) == (second.from, second.to, second.class);
                if !same_way {
                    continue;
                }
                if self.posted[second_taker].matches(first) {
                    assert!(
                        first_taker < second_taker,
                        "message {later} overtook {earlier}"
                    );
                }
            }
        }
        for (later, taker) in self.posted.iter().enumerate() {
            let Some(message) = taker.took else { continue };
            for (earlier, other) in self.posted.iter().enumerate().take(later) {
                if other.canceled || !other.matches(&self.sent[message]) {
                    continue;
                }
                // A receive that waits on although a later one took a message that it matches was
                // passed over.
                assert!(
                    other.took.is_some(),
                    "message {message} passed over receive {earlier} for {later}"
                );
            }
        }
    }
}
